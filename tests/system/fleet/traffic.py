"""What clients of a fleet do, in one thread: updates at the primary, and questions to each node and to the front.

Update number k of a zone sets the alias `a` to the name v<k>, which does not exist, and the address of one of HOSTS
names to one that k tells. It requires that the alias was v<k-1>. So the zone with serial S has the alias v<S - 1>, and
the answer for the alias has both: the alias, and the serial in the SOA record that denies its target. An answer whose
two numbers do not fit was never true."""

import base64
import hmac
import selectors
import socket
import struct
import threading
import time

HOSTS = 1000  # in a small zone changesets are more than the zone, so that IXFR is answered by all of it
WINDOW = 8  # updates of a zone under way
PATIENCE = 2.0  # seconds for an answer to an update or to a question
QUERY, UPDATE, ANSWER_FLAGS = 0x0000, 0x2800, 0x8403  # QR, AA, NXDOMAIN
A, CNAME, SOA, TXT, ANY = 1, 5, 6, 16, 255


def wire_name(text):
    return b"".join(bytes((len(label),)) + label.encode() for label in text.strip(".").split(".")) + b"\0"


def record(owner, rdtype, rdclass, ttl, rdata=b""):
    return owner + struct.pack("!HHIH", rdtype, rdclass, ttl, len(rdata)) + rdata


def address_of(number):
    """The address that update `number` gives to its host."""
    return bytes((10, number >> 16 & 255, number >> 8 & 255, number & 255))


def host_addresses(number):
    """Addresses of all hosts once update `number` is in the zone; 0 is the zone's file."""
    return {f"h{host}": address_of(number - (number - host) % HOSTS if number >= host else 0)
            for host in range(HOSTS)}


def zone_text():
    return ("@ 300 SOA ns admin 1 5 1 604800 60\n@ 300 NS ns\nns 300 A 192.0.2.53\na 5 CNAME v0\n"
            + "".join(f"h{host} 60 A 10.0.0.0\n" for host in range(HOSTS)))


class Signer:
    """TSIG by HMAC-SHA256 (RFC 8945 §4.2), without a library: a thousand messages a second are signed."""

    ALGORITHM = wire_name("hmac-sha256")

    def __init__(self, key):
        self.name, self.secret = wire_name(key["name"]), base64.b64decode(key["secret"])

    def sign(self, message):
        signed_at = struct.pack("!HIH", 0, int(time.time()), 300)
        variables = self.name + struct.pack("!HI", ANY, 0) + self.ALGORITHM + signed_at + b"\0\0\0\0"
        mac = hmac.digest(self.secret, message + variables, "sha256")
        rdata = self.ALGORITHM + signed_at + struct.pack("!H", len(mac)) + mac + message[:2] + b"\0\0\0\0"
        additional = struct.unpack("!H", message[10:12])[0] + 1
        return message[:10] + struct.pack("!H", additional) + message[12:] + record(self.name, 250, ANY, 0, rdata)


class WrongAnswer(Exception):
    """An answer that no version of the zone gives."""


class BusyZone:
    """A zone that changes all the time: its messages, and the truth about it."""

    def __init__(self, name):
        self.name, self.wire = name, wire_name(name)
        self.alias = b"\x01a" + self.wire
        self.sent = 0  # the highest update that has left
        self.acknowledged = 0
        self.acknowledged_at = {}  # update: time; those that were acknowledged by an answer alone

    def update(self, number, message_id, signer):
        host = bytes((len(f"h{number % HOSTS}"),)) + f"h{number % HOSTS}".encode() + self.wire
        message = struct.pack("!HHHHHH", message_id, UPDATE, 1, 1, 3, 0) + self.wire + struct.pack("!HH", SOA, 1)
        message += record(self.alias, CNAME, 1, 0, self.version(number - 1))
        message += record(self.alias, CNAME, 1, 5, self.version(number))
        message += record(host, A, ANY, 0) + record(host, A, 1, 60, address_of(number))
        return signer.sign(message)

    def version(self, number):
        text = f"v{number}".encode()
        return bytes((len(text),)) + text + self.wire

    def query(self, message_id):
        return (struct.pack("!HHHHHH", message_id, QUERY, 1, 0, 0, 0) + self.alias + struct.pack("!HH", TXT, 1))

    def number_of(self, wire):
        """The update that an answer shows; None for an error, which tells nothing about the zone."""
        _, flags, *counts = struct.unpack_from("!HHHHHH", wire)
        if flags & 0x000F not in (0, 3):
            return None
        at = 12 + len(self.alias) + 4
        if flags != ANSWER_FLAGS or counts != [1, 1, 1, 0] or wire[at:at + 6] != b"\xc0\x0c\0\x05\0\x01":
            raise WrongAnswer(f"{self.name}: {wire.hex()}")
        rdata = at + 12
        number = int(wire[rdata + 2:rdata + 1 + wire[rdata]])
        serial = struct.unpack("!I", wire[-20:-16])[0]
        if number != serial - 1 or number > self.sent:
            raise WrongAnswer(f"{self.name}: v{number} with serial {serial}; sent are {self.sent}")
        return number


class UpdateStream:
    """Sends the updates of a zone in order, WINDOW under way. After a failure it asks the primary where the zone is:
    a later update whose predecessor is missing is refused by its prerequisite, so none is applied out of order."""

    def __init__(self, zone, address, key, rate):
        self.zone, self.signer, self.pause = zone, Signer(key), 1 / rate
        self.socket = open_socket(address)
        self.under_way = {}  # message ID: update, time
        self.next, self.due, self.id = 1, time.monotonic(), 0
        self.lost = False  # something failed: find out where the zone is
        self.look_id, self.looked = None, 0.0
        self.resumed, self.ended = 0, False

    def work(self, now):
        if self.lost:
            if not self.under_way or now - max(sent for _, sent in self.under_way.values()) > PATIENCE:
                self.look(now)
            return
        if any(now - sent > PATIENCE for _, sent in self.under_way.values()):
            self.lost = True
            return
        while not self.ended and self.due <= now and len(self.under_way) < WINDOW:
            self.id = self.id + 1 & 0x7FFF
            self.zone.sent = max(self.zone.sent, self.next)
            send(self.socket, self.zone.update(self.next, self.id, self.signer))
            self.under_way[self.id] = (self.next, now)
            self.next += 1
            self.due = max(self.due + self.pause, now - 1)  # no long burst after a time without the primary

    def look(self, now):
        if now - self.looked > 0.5:
            self.looked, self.id = now, self.id + 1 & 0x7FFF
            self.look_id = self.id | 0x8000
            send(self.socket, self.zone.query(self.look_id))

    def on_message(self, wire, now):
        message_id, flags = struct.unpack_from("!HH", wire)
        if message_id == self.look_id:
            number = self.zone.number_of(wire)
            if number is None:
                return
            if number < self.zone.acknowledged:
                raise WrongAnswer(f"{self.zone.name}: v{self.zone.acknowledged} was acknowledged; there is v{number}")
            self.under_way.clear()
            self.zone.acknowledged = number
            self.next, self.due, self.lost, self.look_id = number + 1, now, False, None
            self.resumed += 1
        elif message_id in self.under_way:
            number, _ = self.under_way.pop(message_id)
            if flags & 0x000F:
                self.lost = True
            else:
                self.zone.acknowledged = max(self.zone.acknowledged, number)
                self.zone.acknowledged_at[number] = now


class Probe:
    """Asks one node for one zone again and again. What the node shows never goes back."""

    def __init__(self, node, zone, address, pause):
        self.node, self.zone, self.pause = node, zone, pause
        self.socket = open_socket(address)
        self.id, self.sent_at, self.floor, self.waiting = 0, 0.0, 0, False
        self.number = -1  # the newest update that it has shown
        self.seen = []  # (time, update) of each step
        self.errors = 0

    def work(self, now):
        if now - self.sent_at < (PATIENCE if self.waiting else self.pause):
            return
        self.id = self.id + 1 & 0xFFFF
        self.sent_at, self.floor, self.waiting = now, self.number, True
        send(self.socket, self.zone.query(self.id))

    def on_message(self, wire, now):
        if struct.unpack_from("!H", wire)[0] != self.id or not self.waiting:
            return
        self.waiting = False
        number = self.zone.number_of(wire)
        if number is None:
            self.errors += 1
            return
        if number < self.floor:
            raise WrongAnswer(f"{self.node} went back from v{self.floor} to v{number} of {self.zone.name}")
        if number > self.number:
            self.number = number
            self.seen.append((now, number))


class Questions:
    """Asks the front, and repeats a question that gets no answer or an error, as a resolver does."""

    def __init__(self, zones, address, rate):
        self.zones, self.pause = zones, 1 / rate
        self.socket = open_socket(address)
        self.under_way = {}  # message ID: zone, begin, time of the last try, tries
        self.due, self.id, self.ended = time.monotonic(), 0, False
        self.answered, self.repeated, self.errors, self.slowest = 0, 0, 0, 0.0

    def work(self, now):
        for message_id, (zone, begin, sent, tries) in list(self.under_way.items()):
            if now - sent > PATIENCE / 4:
                self.ask(message_id, zone, begin, now, tries + 1)
                self.repeated += 1
        if self.due <= now and not self.ended:
            self.id = self.id + 1 & 0xFFFF
            self.ask(self.id, self.zones[self.id % len(self.zones)], now, now, 1)
            self.due = max(self.due + self.pause, now - 0.1)

    def ask(self, message_id, zone, begin, now, tries):
        self.under_way[message_id] = (zone, begin, now, tries)
        send(self.socket, zone.query(message_id))

    def on_message(self, wire, now):
        message_id = struct.unpack_from("!H", wire)[0]
        if message_id not in self.under_way:
            return
        zone, begin, sent, tries = self.under_way[message_id]
        if zone.number_of(wire) is None:
            self.errors += 1
            return  # asked again after the time for an answer
        del self.under_way[message_id]
        self.answered += 1
        self.slowest = max(self.slowest, now - begin)


def open_socket(address):
    made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
    made.connect((address, 53))
    return made


def send(to, wire):
    try:
        to.send(wire)
    except OSError:  # refused by a host without a server, or the host is not there
        pass


class Traffic(threading.Thread):
    """Does the work of all of these in a namespace, until it is stopped or an answer is wrong."""

    def __init__(self, namespace, make_parts):
        super().__init__(daemon=True)
        self.namespace = namespace
        self.failure, self.ending = None, threading.Event()
        with namespace.inside():
            self.parts = make_parts()
        self.selector = selectors.DefaultSelector()
        for part in self.parts:
            self.selector.register(part.socket, selectors.EVENT_READ, part)

    def run(self):
        try:
            while not self.ending.is_set():
                self.step()
        except Exception as failure:  # told by check(), in the thread of the test
            self.failure = failure

    def step(self):
        for key, _ in self.selector.select(0.002):
            now = time.monotonic()
            while True:
                try:
                    wire = key.fileobj.recv(4096)
                except OSError:
                    break
                if len(wire) >= 12:
                    key.data.on_message(wire, now)
        now = time.monotonic()
        for part in self.parts:
            part.work(now)

    def check(self):
        if self.failure:
            raise self.failure

    def stop(self):
        self.ending.set()
        self.join()
        for part in self.parts:
            part.socket.close()
        self.check()
