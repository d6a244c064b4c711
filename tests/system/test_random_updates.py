"""Random dynamic updates (RFC 2136), sent alike to Pando and to BIND: each message gets the same RCODE, and the
zones are the same record by record, TTLs and serial included.

The sequence is random, its seed is printed; PANDO_SEED=N repeats one, PANDO_FULL=1 sends ten times as many."""

import os
import random
import socket
import struct
import time

import dns.name
import dns.query
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest

import servers

FULL = bool(os.environ.get("PANDO_FULL"))
OPERATIONS = 100_000 if FULL else 10_000
LOOK_EVERY = 100  # messages between two comparisons of the whole zone
SERIALS = (1, 0x7FFFFFFF, 0xFFFFFF00)  # the last one wraps on the way (RFC 1982)

IN, NONE, ANY = 1, 254, 255
NOERROR, FORMERR, NOTZONE = 0, 1, 10

ZONE = """$ORIGIN example.
$TTL 300
@ SOA ns admin {serial} 3600 600 1209600 300
@ NS ns1.other.
@ NS ns2.other.
@ MX 10 mail.other.
ns A 192.0.2.1
mail A 192.0.2.2
mail AAAA 2001:db8::2
www CNAME mail
sub NS ns.sub
ns.sub A 192.0.2.3
*.wild TXT "anything"
a.b.c.d TXT "below empty non-terminals"
"""

LABELS = ["@", "ns", "mail", "www", "sub", "ns.sub", "*.wild", "x.wild", "a.b.c.d", "b.c.d", "d", "h1", "h2", "h3",
          "one.h1", "_acme.h2", "new", "very.deep.name.of.many.labels"]
# Values that are drawn often enough to meet again: what is added is deleted and asked for.
VALUES = {
    "A": [f"192.0.2.{i}" for i in range(1, 6)],
    "AAAA": ["2001:db8::1", "2001:db8::2"],
    "TXT": ['"one"', '"two" "parts"', '"ONE"', '""'],
    "MX": ["10 mail.other.", "20 mail.other.", "10 MAIL.other."],
    # BIND refuses what leaves a zone with a name server or mail exchanger of its own without address; RFC 2136 does not.
    "NS": ["ns1.other.", "ns2.other.", "ns3.other.", "NS3.other."],
    "CNAME": ["mail.example.", "h1.example.", "elsewhere.test."],
    "DNAME": ["target.test.", "other.test."],
    "SRV": ["0 0 53 ns.example.", "1 0 53 ns.example."],
    "PTR": ["h1.example.", "h2.example."],
    "CAA": ['0 issue "ca.test"', '0 issue "CA.test"'],
    "TYPE65400": ["\\# 2 abcd", "\\# 0"],
    "SSHFP": ["1 1 0123456789abcdef0123456789abcdef01234567"],
}
TYPES = list(VALUES)
TTLS = [0, 60, 60, 300, 300, 300, 3600, 0x7FFFFFFF]


def type_number(text):
    return int(dns.rdatatype.from_text(text))


def rdata_wire(rdtype, text):
    return dns.rdata.from_text(IN, type_number(rdtype), text, relativize=False).to_wire()


class Draw:
    """Random parts of UPDATE messages, the odd ones among them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.serial = None

    def owner(self):
        if self.random.random() < 0.01:
            return self.random.choice(["example.org.", "test.", ".", "notexample."])
        label = self.random.choice(LABELS)
        if self.random.random() < 0.1:
            label = label.upper()
        return "example." if label == "@" else f"{label}.example."

    def rr(self, owner, rdtype, rrclass, ttl, rdata=b""):
        number = rdtype if isinstance(rdtype, int) else type_number(rdtype)
        return (dns.name.from_text(owner).to_wire() + struct.pack("!HHIH", number, rrclass, ttl, len(rdata)) + rdata)

    def value(self, rdtype):
        return rdata_wire(rdtype, self.random.choice(VALUES[rdtype]))

    def soa(self):
        serial = (self.serial + self.random.choice([-5, 0, 1, 5])) % 2**32
        return rdata_wire("SOA", f"ns.example. admin.example. {serial} 3600 600 1209600 {self.random.choice([300, 60])}")

    def prerequisite(self):
        rdtype, owner = self.random.choice(TYPES), self.owner()
        kind = self.random.randrange(6)
        if kind == 0:
            return self.rr(owner, ANY, ANY, 0)  # name is in use
        if kind == 1:
            return self.rr(owner, ANY, NONE, 0)  # name is not in use
        if kind == 2:
            return self.rr(owner, rdtype, ANY, 0)  # RRset exists
        if kind == 3:
            return self.rr(owner, rdtype, NONE, 0)  # RRset does not exist
        if kind == 4:
            return self.rr(owner, rdtype, IN, 0, self.value(rdtype))  # RRset exists, with this value
        return self.odd_prerequisite(owner, rdtype)

    def odd_prerequisite(self, owner, rdtype):
        """Mostly FORMERR (RFC 2136 §3.2)."""
        if self.random.random() < 0.7:
            return self.rr(owner, rdtype, NONE, 0)
        return self.random.choice([
            self.rr(owner, rdtype, IN, 60, self.value(rdtype)), self.rr(owner, rdtype, ANY, 60),
            self.rr(owner, rdtype, ANY, 0, self.value(rdtype)), self.rr(owner, rdtype, NONE, 0, self.value(rdtype)),
            self.rr(owner, rdtype, 3, 0, self.value(rdtype))])

    def update(self):
        rdtype, owner, ttl = self.random.choice(TYPES), self.owner(), self.random.choice(TTLS)
        if owner.startswith("*") and rdtype in ("NS", "DNAME"):
            rdtype = "A"  # BIND ignores delegations at a wildcard (conformance.md: we serve them)
        kind = self.random.random()
        if kind < 0.55:
            # BIND takes another case of the owner's name for a change, with a new serial.
            return self.rr(owner.lower(), rdtype, IN, ttl, self.value(rdtype))
        if kind < 0.75:
            return self.rr(owner, rdtype, NONE, 0, self.value(rdtype))
        if kind < 0.88:
            return self.rr(owner, rdtype, ANY, 0)
        if kind < 0.93:
            return self.rr(owner, ANY, ANY, 0)
        if kind < 0.97:
            return self.rr(self.random.choice(["example.", "example.", "h1.example."]), "SOA", self.random.choice([IN, IN, NONE]),
                           0 if self.random.random() < 0.2 else 300, self.soa())
        if kind < 0.98:
            return self.rr("example.", "SOA", ANY, 0)
        return self.odd_update(owner, rdtype)

    def odd_update(self, owner, rdtype):
        """FORMERR (RFC 2136 §3.4.1)."""
        return self.random.choice([
            self.rr(owner, 255, IN, 60), self.rr(owner, 252, IN, 60), self.rr(owner, 251, ANY, 0),
            self.rr(owner, rdtype, ANY, 60), self.rr(owner, rdtype, ANY, 0, self.value(rdtype)),
            self.rr(owner, rdtype, NONE, 60, self.value(rdtype)), self.rr(owner, 255, NONE, 0),
            self.rr(owner, rdtype, 3, 0, self.value(rdtype))])

    def message(self, number):
        zone = dns.name.from_text("example.").to_wire() + struct.pack("!HH", 6, IN)
        prerequisites = [self.prerequisite() for _ in range(self.random.choice([0, 0, 0, 1, 1, 2]))]
        updates = [self.update() for _ in range(self.random.choice([1, 1, 2, 3, 6, 10]))]
        header = struct.pack("!HHHHHH", number % 65536, 5 << 11, 1, len(prerequisites), len(updates), 0)
        return header + zone + b"".join(prerequisites) + b"".join(updates), len(updates)


def exchange(port, message):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.settimeout(20)
        sock.sendto(message, ("127.0.0.1", port))
        answer = sock.recv(65535)
    assert answer[:2] == message[:2]
    return answer[3] & 15


@pytest.mark.parametrize("serial", SERIALS)
def test_pando_and_bind_come_to_the_same_zone(tmp_path, pando, peers, serial):
    seed = int(os.environ.get("PANDO_SEED", time.time_ns() % 1_000_000))
    print(f"PANDO_SEED={seed}")
    draw = Draw(f"{seed} {serial}")
    ours, theirs = tmp_path / "ours.zone", tmp_path / "theirs.zone"
    for path in (ours, theirs):
        path.write_text(ZONE.format(serial=serial))
    everybody = [{"address": "127.0.0.0/8"}]
    server = pando([{"name": "example", "file": str(ours), "allow-update": everybody, "allow-transfer": everybody}],
                   workers=1).start("example")
    bind = peers(servers.Bind(tmp_path / "bind", {"example": (
        f'type primary; file "{theirs}"; allow-update {{ any; }}; allow-transfer {{ any; }}; check-names ignore;')}), "example")
    sent, number, codes = 0, 0, {}
    draw.serial = serial
    while sent < OPERATIONS // len(SERIALS):
        message, operations = draw.message(number)
        number += 1
        got, expected = exchange(server.port, message), exchange(bind.port, message)
        # With two things wrong either may be told: we look at the form of the whole message first, BIND at the form of
        # the update section, then at the prerequisites one by one.
        both = got != NOERROR and expected != NOERROR and {got, expected} & {FORMERR, NOTZONE}
        assert got == expected or both, f"message {number} of seed {seed}: {message.hex()}"
        draw.serial = bind.serial("example")
        if server.serial("example") != draw.serial:
            compare(server, bind, f"message {number} of seed {seed}: {message.hex()}")
        codes[got] = codes.get(got, 0) + operations
        sent += operations
        if number % LOOK_EVERY == 0:
            compare(server, bind, f"after message {number} of seed {seed}")
    compare(server, bind, f"at the end of seed {seed}")
    print(f"{sent} operations in {number} messages, by RCODE: {codes}")
    assert len(codes) >= 5


def records_of(server):
    """All records by AXFR. Names do not tell case apart (RFC 4034 §6.2 says in which RDATA), all else does."""
    found = set()
    for message in dns.query.xfr("127.0.0.1", "example", port=server.port, relativize=False, lifetime=60):
        for rrset in message.answer:
            for rdata in rrset:
                digested = rdata.to_digestable(dns.name.root).hex()
                found.add(f"{str(rrset.name).lower()} {rrset.ttl} {dns.rdatatype.to_text(rdata.rdtype)} {digested}")
    return found


def compare(server, bind, where):
    ours, theirs = records_of(server), records_of(bind)
    assert ours == theirs, f"{where}: only ours {sorted(ours - theirs)}, only BIND's {sorted(theirs - ours)}"
