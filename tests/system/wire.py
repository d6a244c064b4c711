"""DNS messages for the tests: queries made and responses taken apart, without a DNS library.

Names are tuples of lower-case labels, first label first, without the root: ("www", "example") is
(b"www", b"example"), the root is (). Sorting their reversal by label is the canonical order
(RFC 4034 §6.1)."""

import functools
import struct
from typing import NamedTuple

A, NS, CNAME, SOA, MX, TXT, AAAA, SRV, DNAME, OPT, DS, RRSIG, NSEC, DNSKEY = (
    1, 2, 5, 6, 15, 16, 28, 33, 39, 41, 43, 46, 47, 48)
NSEC3, NSEC3PARAM, ANY = 50, 51, 255
NOERROR, SERVFAIL, NXDOMAIN, REFUSED, YXDOMAIN = 0, 2, 3, 5, 6

# RDATA with names that may be compressed in messages, or that are lower case in the canonical form
# (RFC 3597 §4, RFC 4034 §6.2): N is a name, S a character-string, numbers count octets.
LAYOUTS = {
    2: "N", 3: "N", 4: "N", 5: "N", 7: "N", 8: "N", 9: "N", 12: "N", 39: "N", 6: "NN",
    14: "NN", 17: "NN", 15: "2N", 18: "2N", 21: "2N", 36: "2N", 24: "18N", 46: "18N", 26: "2NN",
    30: "N", 33: "6N", 35: "4SSSN",
}


class BadMessage(Exception):
    """The octets are no DNS message."""


class Record(NamedTuple):
    owner: tuple
    type: int
    ttl: int
    rdata: bytes  # without compression, in canonical form


class Message(NamedTuple):
    id: int
    rcode: int  # with the upper bits from OPT
    aa: bool
    tc: bool
    question: tuple  # name, type
    answer: tuple
    authority: tuple
    additional: tuple  # without OPT
    edns: bool


def encode_name(labels):
    return b"".join(bytes((len(label),)) + label for label in labels) + b"\0"


@functools.lru_cache(1 << 16)
def decode_name(wire):
    """An uncompressed name that fills `wire`."""
    labels, end = read_name(wire, 0)
    if end != len(wire):
        raise BadMessage("octets behind a name")
    return labels


def read_name(wire, at):
    """Labels in lower case, and the position behind the name."""
    labels, end, octets = [], None, 0
    while True:
        length = wire[at]
        if length == 0:
            at += 1
            break
        if length >= 0xC0:
            target = (length & 0x3F) << 8 | wire[at + 1]
            end = end or at + 2
            if target >= at:
                raise BadMessage("a pointer that does not point back")
            at = target
            continue
        if length > 63:
            raise BadMessage("label type")
        octets += length + 1
        if octets > 254:
            raise BadMessage("name too long")
        labels.append(wire[at + 1:at + 1 + length].lower())
        at += 1 + length
    return tuple(labels), end or at


def canonical_rdata(wire, at, length, layout):
    """RDATA with its names written out in lower case."""
    out, end = [], at + length
    number = ""
    for what in layout:
        if what.isdigit():
            number += what
            continue
        if number:
            out.append(wire[at:at + int(number)])
            at += int(number)
            number = ""
        if what == "N":
            name, at = read_name(wire, at)
            out.append(encode_name(name))
        else:
            out.append(wire[at:at + 1 + wire[at]])
            at += 1 + wire[at]
    if at > end:
        raise BadMessage("RDATA ends inside a field")
    return b"".join(out) + wire[at:end]


def read_record(wire, at):
    owner, at = read_name(wire, at)
    rrtype, rrclass, ttl, length = struct.unpack_from("!HHIH", wire, at)
    at += 10
    if at + length > len(wire):
        raise BadMessage("RDATA beyond the message")
    layout = LAYOUTS.get(rrtype)
    rdata = canonical_rdata(wire, at, length, layout) if layout and length else wire[at:at + length]
    return Record(owner, rrtype, ttl, rdata), rrclass, at + length


def parse(wire):
    """A response. BadMessage when any octet is not accounted for."""
    try:
        return parse_unchecked(wire)
    except (IndexError, struct.error) as error:
        raise BadMessage("the message ends too early") from error


def parse_unchecked(wire):
    number, flags, questions, *counts = struct.unpack_from("!6H", wire)
    at, question = 12, None
    for _ in range(questions):
        name, at = read_name(wire, at)
        question = (name, struct.unpack_from("!H", wire, at)[0])
        at += 4
    sections, rcode, edns = [], flags & 15, False
    for count in counts:
        records = []
        for _ in range(count):
            record, rrclass, at = read_record(wire, at)
            if record.type == OPT:
                edns, rcode = True, rcode | record.ttl >> 24 << 4
            elif rrclass != 1:
                raise BadMessage(f"class {rrclass}")
            else:
                records.append(record)
        sections.append(tuple(records))
    if at != len(wire):
        raise BadMessage("octets behind the last record")
    return Message(number, rcode, bool(flags & 0x400), bool(flags & 0x200), question, *sections, edns)


def make_query(labels, rrtype, dnssec=False, payload=None):
    """A query with ID 0; with OPT when `dnssec` or a payload size is given. Keeps the name's case."""
    edns = dnssec or payload is not None
    wire = struct.pack("!6H", 0, 0, 1, 0, 0, 1 if edns else 0) + encode_name(labels)
    wire += struct.pack("!HH", rrtype, 1)
    if edns:
        wire += struct.pack("!BHHIH", 0, OPT, payload or 1232, 0x8000 if dnssec else 0, 0)
    return wire


def name_text(labels):
    """Presentation format."""
    def text(octet):
        char = chr(octet)
        if char in '."\\;()@$':
            return "\\" + char
        return char if 33 <= octet <= 126 else f"\\{octet:03}"
    return ".".join("".join(map(text, label)) for label in labels) + "."


def read_text_name(text, origin=()):
    """Labels of presentation format, with their case; relative names get `origin`."""
    if text == "@":
        return tuple(origin)
    if text == ".":
        return ()
    labels, label, at = [], bytearray(), 0
    while at < len(text):
        char = text[at]
        if char == ".":
            labels.append(bytes(label))
            label = bytearray()
        elif char == "\\" and text[at + 1:at + 4].isdigit():
            label.append(int(text[at + 1:at + 4]))
            at += 3
        else:
            at += char == "\\"
            label.append(ord(text[at]))
        at += 1
    if label:
        return (*labels, bytes(label), *origin)
    return tuple(labels)


def lower(labels):
    return tuple(label.lower() for label in labels)


def is_at_or_below(name, ancestor):
    return len(ancestor) == 0 or name[-len(ancestor):] == ancestor


def wire_length(labels):
    return sum(len(label) + 1 for label in labels) + 1
