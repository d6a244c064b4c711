"""What the differential suite asks: every owner name and empty non-terminal with every common type,
and names derived from them: above, below, beside, covered by wildcards, occluded."""

import wire

OWN_TYPES = (wire.A, wire.AAAA, wire.NS, wire.SOA, wire.MX, wire.TXT, wire.CNAME, wire.DNAME, wire.DS,
             wire.DNSKEY, wire.NSEC, wire.NSEC3, wire.NSEC3PARAM, wire.RRSIG, wire.ANY, wire.SRV, 64, 65280)
DERIVED_TYPES = (wire.A, wire.TXT, wire.NS, wire.CNAME, wire.DNAME, wire.DS, wire.NSEC, wire.ANY)


def owners(text, apex):
    """Owner names of a zone's text (one record a line, $ORIGIN and $TTL), with their case, and the
    types that each has."""
    found = {}
    for line in text.splitlines():
        words = line.split()
        if not words or line[0] in ";$":
            continue
        name = wire.read_text_name(words[0], apex)
        types = [word for word in words[1:4] if not word.isdigit() and word != "IN"]
        found.setdefault(name, set()).add(types[0])
    return found


def with_ancestors(names, apex):
    """The names and all names between them and the apex."""
    every = set()
    for name in names:
        while len(name) > len(apex):
            every.add(name)
            name = name[1:]
    every.add(apex)
    return every


def before(label):
    """A label that sorts before this one with little in between."""
    if label[-1] == 0:
        return label[:-1]
    return label[:-1] + bytes((label[-1] - 1,)) + b"\xff"


def derived(name, apex):
    """Names around one name. Those of illegal length are dropped by the caller."""
    below = [(b"nx",), (b"*",), (b"\0",), (b"\xff" * 3,), (b"x", b"y"), (b"a", b"*"), (b"*", b"nx")]
    names = [labels + name for labels in below]
    if len(name) > len(apex):
        first, parent = name[0], name[1:]
        names += [(first + b"\0",) + parent, (first + b"!",) + parent, (first.upper(),) + parent]
        if before(first):
            names.append((before(first),) + parent)
        if first == b"*":
            names += [(b"made", b"up") + parent, (b"*up",) + parent]
    return names


def is_legal(name):
    return wire.wire_length(name) <= 255 and all(1 <= len(label) <= 63 for label in name)


def is_one_of_many(name):
    """Names that are only there to be many: few of them are asked about."""
    label = name[0] if name else b""
    if label[:3] == b"ins" and label[3:].isdigit():
        return len(label) == 6 and int(label[3:]) % 150 != 0
    return label == b"1" and len(name) % 40 != 0


def below_dname(owner):
    """Names that a DNAME may make too long (RFC 6672 §2.2)."""
    long = b"l" * 63
    return [labels + owner for labels in ((long,), (b"a", long), (long, long), (long[:40], long[:40]))]


def of_zone(text, apex):
    """Questions (name, type) about one zone, in a fixed order."""
    types = owners(text, apex)
    own = {name for name in with_ancestors(types, apex) if not is_one_of_many(name)}
    asked = dict.fromkeys((name, rrtype) for name in sorted(own) for rrtype in OWN_TYPES)
    around = {name for owner in own for name in derived(owner, apex) if is_legal(name)}
    around |= {name for owner in own if "DNAME" in types.get(owner, ())
               for name in below_dname(owner) if is_legal(name)}
    around -= own
    asked.update(dict.fromkeys((name, rrtype) for name in sorted(around) for rrtype in DERIVED_TYPES))
    return list(asked)
