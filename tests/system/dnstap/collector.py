"""A collector of dnstap messages, which reads Frame Streams and Protocol Buffers by itself: what Pando writes is
compared with the documents of both, and not with Pando's own code."""

import socket
import struct
import threading

import dns.exception
import dns.message

CONTENT_TYPE = b"protobuf:dnstap.Dnstap"
ACCEPT, START, STOP, READY, FINISH = 1, 2, 3, 4, 5

DNSTAP = {1: "identity", 2: "version", 3: "extra", 14: "message", 15: "type"}
MESSAGE = {1: "type", 2: "socket_family", 3: "socket_protocol", 4: "query_address", 5: "response_address",
           6: "query_port", 7: "response_port", 8: "query_time_sec", 9: "query_time_nsec", 10: "query_message",
           11: "query_zone", 12: "response_time_sec", 13: "response_time_nsec", 14: "response_message"}
TYPES = {1: "AUTH_QUERY", 2: "AUTH_RESPONSE", 13: "UPDATE_QUERY", 14: "UPDATE_RESPONSE"}
FIXED32 = {9, 13}


def varint(octets, at):
    value = shift = 0
    while True:
        octet = octets[at]
        value |= (octet & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if octet < 0x80:
            return value, at


def fields(octets):
    """(field number, wire type, value) of each field of a Protocol Buffers message."""
    at, found = 0, []
    while at < len(octets):
        tag, at = varint(octets, at)
        number, wire = tag >> 3, tag & 7
        if wire == 0:
            value, at = varint(octets, at)
        elif wire == 2:
            length, at = varint(octets, at)
            value, at = octets[at:at + length], at + length
            assert len(value) == length
        else:
            assert wire == 5, f"wire type {wire}"
            value, at = struct.unpack_from("<I", octets, at)[0], at + 4
        found.append((number, wire, value))
    return found


def decode(frame):
    """A message of dnstap as a mapping; each field at most once, and of the type that the schema says."""
    outer = {}
    for number, _, value in fields(frame):
        assert DNSTAP[number] not in outer
        outer[DNSTAP[number]] = value
    assert outer["type"] == 1
    tapped = {"identity": outer.get("identity", b"").decode(), "version": outer.get("version", b"").decode()}
    for number, wire, value in fields(outer["message"]):
        assert MESSAGE[number] not in tapped
        assert (wire == 5) == (number in FIXED32), number
        tapped[MESSAGE[number]] = value
    tapped["type"] = TYPES[tapped["type"]]
    for side in ("query", "response"):
        if f"{side}_address" in tapped:
            octets = tapped[f"{side}_address"]
            family = socket.AF_INET if len(octets) == 4 else socket.AF_INET6
            tapped[f"{side}_address"] = socket.inet_ntop(family, octets)
    return tapped


def control_frame(kind, content_type=CONTENT_TYPE):
    body = struct.pack(">I", kind)
    if content_type:
        body += struct.pack(">II", 1, len(content_type)) + content_type
    return struct.pack(">II", 0, len(body)) + body


class Stream:
    """One connection."""

    def __init__(self, connection):
        self.connection = connection
        self.messages = []
        self.taken = bytearray()  # behind the greeting, of a collector that does not decode
        self.started = self.stopped = self.ended = False

    def octets(self, count):
        got = b""
        while len(got) < count:
            part = self.connection.recv(count - len(got))
            if not part:
                raise EOFError
            got += part
        return got

    def control(self):
        length = struct.unpack(">I", self.octets(4))[0]
        assert length <= 512
        body = self.octets(length)
        return struct.unpack_from(">I", body)[0], body[4:]

    def run(self, collector):
        try:
            self.talk(collector)
        except (OSError, EOFError):
            pass
        self.ended = True

    def talk(self, collector):
        if collector.greeting is not None:
            self.connection.sendall(collector.greeting)
            while self.connection.recv(4096):
                pass
            return
        assert self.octets(4) == bytes(4)
        kind, content = self.control()
        assert kind == READY and content[8:] == CONTENT_TYPE
        self.connection.sendall(control_frame(ACCEPT))
        if not collector.decodes:
            while part := self.connection.recv(1 << 16):
                self.taken += part
            return
        assert self.octets(4) == bytes(4)
        kind, content = self.control()
        assert kind == START and content[8:] == CONTENT_TYPE
        self.started = True
        if not collector.reads:
            collector.end.wait()
            return
        while True:
            length = struct.unpack(">I", self.octets(4))[0]
            if length == 0:
                kind, _ = self.control()
                assert kind == STOP
                self.stopped = True
                self.connection.sendall(control_frame(FINISH, b""))
                return
            self.messages.append(decode(self.octets(length)))


class Collector:
    """Listens at `path`. `reads`: whether it reads what comes behind START. `greeting`: octets that it sends instead
    of speaking the protocol. `decodes`: else it greets as it should, and keeps whatever octets come."""

    def __init__(self, path, reads=True, greeting=None, decodes=True):
        self.path, self.reads, self.greeting, self.decodes = path, reads, greeting, decodes
        self.streams, self.threads = [], []
        self.end = threading.Event()
        path.unlink(missing_ok=True)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(str(path))
        self.listening.listen(64)
        self.listening.settimeout(0.1)
        self.threads.append(threading.Thread(target=self.accept, daemon=True))
        self.threads[0].start()

    def accept(self):
        while not self.end.is_set():
            try:
                connection, _ = self.listening.accept()
            except socket.timeout:
                continue
            connection.settimeout(None)
            stream = Stream(connection)
            self.streams.append(stream)
            thread = threading.Thread(target=stream.run, args=(self,), daemon=True)
            self.threads.append(thread)
            thread.start()

    def started(self):
        return [stream for stream in self.streams if stream.started]

    def messages(self, name=None, kind=None):
        """All messages so far, of this question's name and of this type."""
        found = [tapped for stream in list(self.streams) for tapped in list(stream.messages)]
        return [tapped for tapped in found if (kind is None or tapped["type"] == kind) and
                (name is None or name == name_of(tapped))]

    def told(self, name, streams=None):
        """How often the wire form of the name's first label stands in octets that were not decoded."""
        label = name.split(".")[0].encode()
        wire = bytes([len(label)]) + label
        return sum(bytes(stream.taken).lower().count(wire) for stream in streams or self.streams)

    def close(self):
        self.end.set()
        self.threads[0].join()
        self.listening.close()
        self.path.unlink(missing_ok=True)
        for stream in self.streams:
            try:
                stream.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            stream.connection.close()
        for thread in self.threads[1:]:
            thread.join()


def name_of(tapped):
    """The name in the question of a message; none of a malformed one."""
    try:
        message = dns.message.from_wire(tapped.get("response_message") or tapped["query_message"],
                                        question_only=True, ignore_trailing=True)
        return message.question[0].name.to_text(omit_final_dot=True)
    except (dns.exception.DNSException, IndexError):
        return None
