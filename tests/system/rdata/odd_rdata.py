"""Odd RDATA of each type: samples of the corpus with octets changed, cut off, added or left out.

A server's opinion comes from UPDATE requests whose prerequisite fails. Each server reads the whole request first, so
that FORMERR says that it does not take the RDATA, and nothing changes.
"""

import select
import socket
import struct

import wire
from test_zone_text import SAMPLES

FORMERR, SERVFAIL, UPDATE = 1, 2, 5
CHANGED = 24  # octets at the beginning of each sample that are changed
VALUES = (0, 1, 2, 3, 4, 5, 0x3F, 0x40, 0x41, 0x7F, 0x80, 0xC0, 0xFF)
LONGEST = 200  # octets of a sample that is worth changing


def corpus(numbers):
    """(type, octets) of each sample; `numbers`: mnemonic → type."""
    kind = None
    for line in SAMPLES.read_text().splitlines():
        if line and line[0] not in "; ":
            kind = line.split()[0]
        elif line.startswith("  #"):
            number = int(kind[4:]) if kind.startswith("TYPE") else numbers[kind]
            yield number, bytes.fromhex(line[3:])


def changed(octets):
    """The octets with one change each."""
    yield octets
    for size in range(len(octets)):
        yield octets[:size]
    for more in (b"\0", b"\1", b"\1\0", b"a"):
        yield octets + more
    for at in range(min(len(octets), CHANGED)):
        yield octets[:at] + octets[at + 1:]
        yield octets[:at] + b"\0" + octets[at:]
        for value in (*VALUES, (octets[at] + 1) % 256, (octets[at] - 1) % 256):
            yield octets[:at] + bytes((value,)) + octets[at + 1:]


NAME = b"\7example\0"
# Substitution expressions (RFC 3402 §3.2) and texts that are near to one.
EXPRESSIONS = """!^.*$!sip:a@b! !a!b!i !a!b!ii !a!b!x !a!b !a! ! a iaibi 1a1b1 \\a\\b\\ !!b! !(a)!\\1! !(a)!\\2! !a!\\0! !a!\\1! !(a!b! !a)!b!
!)!b! !()!b! !(|a)!b! !(a|)!b! !a|!b! !|a!b! !a**!b! !*a!b! !a+?!b! !^*!b! !a^b$!b! !a{2}!b! !a{2,}!b! !a{2,3}!b! !a{3,2}!b! !a{256}!b!
!a{1,256}!b! !a{,2}!b! !a{x}!b! !{2}!b! !a{2!b! !a{2}{3}!b! !a{1,2,3}!b! ![a]!b! ![^a]!b! ![]a]!b! ![]!b! ![a!b! ![a-c]!b! ![c-a]!b!
![a-c-e]!b! ![a-]!b! ![-a]!b! ![a-c--]!b! ![[:alpha:]]!b! ![[:alph:]]!b! ![[:alpha:]-z]!b! ![a-[:alpha:]]!b! ![[.a.]]!b! ![[..]]!b!
![[.ab.]]!b! ![[.a.]-c]!b! ![a-[.c.]]!b! ![[=a=]]!b! ![[==]]!b! ![a-[=c=]]!b! ![[.a]!b! ![[a]!b! ![^]!b! ![^]a]!b! !\\(a\\)!\\1! !(a)\\1!b!
!(a)\\2!b! !a\\!b!c! !a!b\\!c! !a!b!\\! !((a)(b))!\\3! !((a)(b))!\\4! !.!! !a\\! !\\!b! /a/b/ !a!b!! !}!b! !a}!b! !(a|b|)!b! !((!b! !x(!b!
!\\9!b! !a{!b! !a{}!b! !a{1!b!} ![[:alpha:!b! ![[.!b! ![a-z0-9]+(x|y){1,3}!\\1! !$!b! !^!b! !(^)!b! !()*!b! !(a)(b)!\\1\\2! ![^^]!b! ![a^]!b!""".split()


def by_hand():
    """RDATA in which the length or shape of one field follows from another: (type, octets)."""
    for kind in range(7):
        for size in (0, 1, 2, 19, 20, 21, 31, 32, 33, 47, 48, 49, 63, 64, 65):
            yield 44, bytes((1, kind)) + b"x" * size  # SSHFP
            for digest in (43, 59, 32768, 32769):  # DS, CDS, TA, DLV
                yield digest, b"\0\1\10" + bytes((kind,)) + b"x" * size
            for association in (52, 53):  # TLSA, SMIMEA
                yield association, bytes((3, 1, kind)) + b"x" * size
            yield 63, b"\0\0\0\1\1" + bytes((kind,)) + b"x" * size  # ZONEMD
            yield 50, bytes((kind, 0, 0, 0, 0, size)) + b"x" * size  # NSEC3
            yield 45, bytes((1, kind, 2)) + b"x" * size  # IPSECKEY
            yield 260, bytes((1, kind)) + b"x" * size  # AMTRELAY
    for size in (154, 155, 156, 255):
        yield 50, bytes((2, 0, 0, 0, 0, size)) + b"x" * size
    for algorithm in (252, 253, 254, 255):
        for key in (b"", b"x", NAME, NAME + b"key", b"\6\x2a\x86\x48\x86\xf7", b"\6\6\4\x2a\3\4\5", b"\6\6\4\x2a\3\4\5key",
                    b"\5\6\4\x2a\3\4\5", b"\7\6\4\x2a\3\4\5k", b"\4\5\2\x2a\3"):
            for kind in (25, 48, 57, 60):  # KEY, DNSKEY, RKEY, CDNSKEY
                yield kind, b"\0\0\3" + bytes((algorithm,)) + key
            for kind in (24, 46):  # SIG, RRSIG
                yield kind, b"\0\1" + bytes((algorithm, 2)) + bytes(14) + NAME + key
    for flags in range(0, 65536, 4096):
        for kind in (25, 48, 57, 60):
            yield kind, struct.pack(">HBB", flags, 3, 8)
    for labels in range(4):
        for signer in (b"\0", NAME, b"\1a" + NAME):
            yield 46, b"\0\1\10" + bytes((labels,)) + bytes(14) + signer + b"x"
    for prefix in (0, 1, 4, 7, 8, 9, 64, 127, 128, 129):
        for suffix in (b"", *(bytes((first,)) * (16 - min(prefix, 128) // 8) for first in (0, 1, 0x80, 0xFF))):
            yield 38, bytes((prefix,)) + suffix
            yield 38, bytes((prefix,)) + suffix + NAME
    for expression in EXPRESSIONS:
        text = expression.replace("\\\\", "\\").encode()
        yield 35, b"\0\1\0\1\1u\0" + bytes((len(text),)) + text + b"\0"
    yield 35, b"\0\1\0\1\1u\0\6!\0!b!\0" + b"\0"
    for family in (0, 1, 2, 3, 65535):
        for prefix in (0, 8, 32, 33, 128, 129):
            for octets in (b"", b"\1", b"\1\0", b"\1\2\3\4", b"\1\2\3\4\5", b"x" * 16, b"x" * 17, b"\0"):
                yield 42, struct.pack(">HBB", family, prefix, len(octets)) + octets
                yield 42, struct.pack(">HBB", family, prefix, 0x80 | len(octets)) + octets
    for value in (b"\0", b"\1", b"\1x", b"\0005", b"\00512", b"\2ab", b"\1" + b"1" * 20, b"\0" + b"x" * 20, b"\3a1"):
        yield 34, value  # ATMA
        yield 22, value  # NSAP
    for text in (b"", b"1", b"-1", b"91", b"1.5", b"x", b"180", b"181", b"-180.5", b"+9", b"1e1", b" "):
        counted = bytes((len(text),)) + text
        yield 27, counted + b"\1" + b"1" + b"\1" + b"1"  # GPOS
        yield 27, b"\1" + b"1" + counted + b"\1" + b"1"
        yield 27, b"\1" + b"1" + b"\1" + b"1" + counted
    for parameters in (b"", b"\0\0\0\0", b"\0\1\0\0", b"\0\1\0\3\2h2", b"\0\1\0\3\3h2", b"\0\2\0\0", b"\0\2\0\0\0\1\0\3\2h2",
                       b"\0\1\0\3\2h2\0\2\0\0", b"\0\2\0\1x", b"\0\3\0\1x", b"\0\3\0\2\0\1", b"\0\3\0\3xxx", b"\0\4\0\0",
                       b"\0\4\0\3xxx", b"\0\4\0\4xxxx", b"\0\5\0\0", b"\0\5\0\1x", b"\0\6\0\4xxxx", b"\0\6\0\20" + b"x" * 16,
                       b"\0\7\0\0", b"\0\7\0\4/{?d", b"\0\7\0\7/{?dns}", b"\0\7\0\1\xff", b"\0\10\0\0", b"\0\10\0\1x",
                       b"\0\11\0\0", b"\0\11\0\2\0\1", b"\0\12\0\0", b"\0\12\0\2\1a", b"\0\0\0\2\0\1\0\1\0\3\2h2",
                       b"\0\0\0\2\0\1", b"\0\0\0\2\0\0", b"\0\0\0\4\0\3\0\1", b"\0\0\0\3\0\1\0", b"\0\3\0\2\0\1\0\3\0\2\0\1",
                       b"\xff\xff\0\0", b"\0\1\0\1\0"):
        for kind in (64, 65):
            for priority in (0, 1):
                yield kind, struct.pack(">H", priority) + b"\0" + parameters
                yield kind, struct.pack(">H", priority) + NAME + parameters


def odd(numbers):
    """All (type, octets), sorted, each once."""
    by_change = {(number, octets) for number, sample in corpus(numbers) if len(sample) <= LONGEST
                 for octets in changed(sample)}
    return sorted(by_change | set(by_hand()))


# A hash in base 32, since BIND wants such an owner for NSEC3.
OWNER = b"0p9mhaveqvm6t7vbl5lop2u3t2rp3tom"


def update(number, zone, rrtype, octets):
    """An UPDATE that would add the record, if the zone's apex had an address (RFC 2136 §2.4.1)."""
    apex = wire.encode_name(zone)
    head = struct.pack(">HHHHHH", number, UPDATE << 11, 1, 1, 1, 0)
    wanted = apex + struct.pack(">HHIH", wire.AAAA, 255, 0, 0)
    record = wire.encode_name((OWNER, *zone)) + struct.pack(">HHIH", rrtype, 1, 300, len(octets)) + octets
    return head + apex + struct.pack(">HH", wire.SOA, 1) + wanted + record


def opinions(port, zone, listed, window=16):
    """RCODE of each of these (type, octets), asked by UDP, a few at a time."""
    found = {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", port))
        for start in range(0, len(listed), window):
            waiting = dict(enumerate(listed[start:start + window]))
            for _ in range(20):
                for number, one in waiting.items():
                    client.send(update(number, zone, *one))
                while waiting and select.select([client], [], [], 2)[0]:
                    answer = client.recv(65535)
                    number, flags = struct.unpack_from(">HH", answer)
                    if number in waiting:
                        found[waiting.pop(number)] = flags & 15
                if not waiting:
                    break
            assert not waiting, "no answer"
    return found
