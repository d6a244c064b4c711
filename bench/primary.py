"""A primary for benchmarks: a zone of any size, whose next version is a difference of ten records, sent to any
secondary by AXFR and IXFR over TCP. Messages are made octet by octet, so that the primary's own work stays small."""

import os
import socket
import struct
import threading

PER_MESSAGE = 500
APEX = b"\xc0\x0c"  # the question's name
AXFR, IXFR, SOA = 252, 251, 6


def record(owner, rrtype, ttl, rdata):
    return owner + struct.pack(">HHIH", rrtype, 1, ttl, len(rdata)) + rdata


def soa(serial):
    return record(APEX, SOA, 300, b"\x02ns" + APEX + b"\x05admin" + APEX
                  + struct.pack(">IIIII", serial, 3600, 600, 1209600, 300))


def host(number, address):
    label = b"n%07d" % number
    return record(bytes([len(label)]) + label + APEX, 1, 300, struct.pack(">I", address))


class Primary:
    """A zone with `size` A records at n0000000 and on below its apex; whole, it is sent in canonical order, as servers
    do."""

    def __init__(self, size, zone="example"):
        self.zone = bytes([len(zone)]) + zone.encode() + b"\0"
        self.size, self.first, self.serial = size, 1, 1
        self.addresses, self.differences, self.transfers = {}, [], []
        self.base, self.whole = 0x0A000000, None
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.port = self.udp.getsockname()[1]
        self.tcp = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.tcp.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.tcp.bind(("127.0.0.1", self.port))
        self.tcp.listen(16)
        for target in (self.serve_udp, self.serve_tcp):
            threading.Thread(target=target, daemon=True).start()

    def address(self, number):
        return self.addresses.get(number, self.base + (number & 0xFFFFFF))

    def change(self, records=10):
        """The next version: half of so many records out, half in, of names all over the zone."""
        count = records // 2
        begin = len(self.differences) * count * 7919
        numbers = [(begin + i * 7919) % self.size for i in range(count)]
        out = [host(n, self.address(n)) for n in numbers]
        for n in numbers:
            self.addresses[n] = (self.address(n) + 1) & 0xFFFFFFFF
        new = [host(n, self.address(n)) for n in numbers]
        self.differences.append([soa(self.serial), *out, soa(self.serial + 1), *new])
        self.serial += 1

    def prepare(self):
        """Makes the messages of a whole transfer now, so that they are there when they are asked for."""
        self.whole = list(self.whole_zone())

    def renew(self):
        """The next version: other data throughout, and no difference to it."""
        self.serial += 1
        self.first = self.serial
        self.base += 1 << 20
        self.addresses, self.differences = {}, []
        self.prepare()

    def notify(self, port):
        message = struct.pack(">HHHHHH", self.serial & 0xFFFF, 0x2400, 1, 1, 0, 0) + self.zone + struct.pack(">HH", SOA, 1)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(message + soa(self.serial), ("127.0.0.1", port))

    def respond(self, query, records, count):
        """A response with `count` records, which are there as octets."""
        question = query[12:12 + len(self.zone) + 4]
        return query[:2] + struct.pack(">HHHHH", 0x8400, 1, count, 0, 0) + question + records

    def serve_udp(self):
        while True:
            query, client = self.udp.recvfrom(4096)
            self.udp.sendto(self.respond(query, soa(self.serial), 1), client)

    def serve_tcp(self):
        while True:
            connection, _ = self.tcp.accept()
            threading.Thread(target=self.serve_connection, args=(connection,), daemon=True).start()

    def serve_connection(self, connection):
        # It stands for another host: it is to take what the servers here leave, not half of their processor.
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 10)
        with connection:
            stream = connection.makefile("rb")
            while len(length := stream.read(2)) == 2:
                query = stream.read(struct.unpack(">H", length)[0])
                rrtype = struct.unpack_from(">H", query, 12 + len(self.zone))[0]
                self.transfers.append(rrtype)
                try:
                    for records, count in self.parts(query, rrtype):
                        message = self.respond(query, records, count)
                        connection.sendall(struct.pack(">H", len(message)) + message)
                except OSError:
                    return

    def parts(self, query, rrtype):
        """Records of each message, as octets, and how many."""
        if rrtype == SOA:
            yield soa(self.serial), 1
            return
        if rrtype == IXFR:
            # The authority section's SOA ends its RDATA with serial and four timers; behind it may be EDNS and TSIG,
            # which none of our benchmarks use but EDNS, whose size is fixed when it has no option.
            at = 12 + len(self.zone) + 4
            known = self.serial_in(query, at)
            if known >= self.first:
                wanted = self.differences[known - self.first:]
                records = [soa(self.serial)] + [r for part in wanted for r in part] + ([soa(self.serial)] if wanted else [])
                for begin in range(0, len(records), PER_MESSAGE):
                    part = records[begin:begin + PER_MESSAGE]
                    yield b"".join(part), len(part)
                return
        yield from self.whole if self.whole and not self.differences else self.whole_zone()

    def whole_zone(self):
        yield soa(self.serial) + record(APEX, 2, 300, b"\x02ns" + APEX), 2
        for begin in range(0, self.size, PER_MESSAGE):
            end = min(begin + PER_MESSAGE, self.size)
            yield b"".join(host(n, self.address(n)) for n in range(begin, end)), end - begin
        yield record(b"\x02ns" + APEX, 1, 300, b"\xc0\x00\x02\x01") + soa(self.serial), 2

    @staticmethod
    def serial_in(query, at):
        """Serial of the SOA record at `at`, whose names may be compressed or not."""
        def behind_name(at):
            while query[at] != 0:
                if query[at] >= 0xC0:
                    return at + 2
                at += 1 + query[at]
            return at + 1
        at = behind_name(at) + 10
        return struct.unpack_from(">I", query, behind_name(behind_name(at)))[0]
