"""Why an answer of ours may differ from a peer's: each rule is one reason, with its name, the peers
that it is about, and a test that is as narrow as the reason. docs/explanation/conformance.md has the RFC texts.

A rule sees the whole answers (over TCP): what is cut off over UDP is the business of sizes.py."""

import functools

import proofs
import wire

RULES = []
DENIAL = (wire.NSEC, wire.NSEC3)


def rule(name, *peers):
    def enter(test):
        RULES.append((name, peers or ("bind", "nsd", "knot"), test))
        return test
    return enter


def records(section):
    return frozenset(section)


def without_denial(section):
    return frozenset(
        record for record in section if record.type not in DENIAL
        and not (record.type == wire.RRSIG and proofs.read_signature(record.rdata).covered in DENIAL))


def without_ttl(section):
    return frozenset((record.owner, record.type, record.rdata) for record in section)


def links(message, name):
    """The names that aliases lead through, beginning with QNAME."""
    targets = {record.owner: wire.decode_name(record.rdata)
               for record in message.answer if record.type == wire.CNAME}
    chain = [name]
    while chain[-1] in targets and targets[chain[-1]] not in chain:
        chain.append(targets[chain[-1]])
    return chain, chain[-1] in targets


class Case:
    """A question, our answer to it and a peer's. `suite` gives zone_of() and verdict()."""

    def __init__(self, suite, zone, question, dnssec, peer, ours, theirs):
        self.suite, self.zone, self.peer, self.dnssec = suite, zone, peer, dnssec
        self.name, self.type = wire.lower(question[0]), question[1]
        self.ours, self.theirs = ours, theirs

    @functools.cached_property
    def parts(self):
        """Where they differ."""
        ours, theirs = self.ours, self.theirs
        parts = {part for part in ("rcode", "aa", "tc") if getattr(ours, part) != getattr(theirs, part)}
        parts |= {part for part in ("answer", "authority")
                  if records(getattr(ours, part)) != records(getattr(theirs, part))}
        if required_glue(ours) != required_glue(theirs):
            parts.add("glue")
        return parts

    def verdict(self, message):
        """A Verdict, or the reason why there is none; None when there is nothing to prove."""
        if self.zone.variant == "u" or not self.dnssec:
            return None
        return self.suite.verdict(self.zone, message, (self.name, self.type))

    @functools.cached_property
    def our_verdict(self):
        return self.verdict(self.ours)

    @functools.cached_property
    def their_verdict(self):
        return self.verdict(self.theirs)

    @functools.cached_property
    def only_denial_differs(self):
        return self.parts == {"authority"} and (
            without_denial(self.ours.authority) == without_denial(self.theirs.authority))

    @property
    def theirs_is_part_of_ours(self):
        return (records(self.theirs.answer) <= records(self.ours.answer)
                and without_denial(self.theirs.authority) <= without_denial(self.ours.authority))

    @property
    def ours_is_part_of_theirs(self):
        return (records(self.ours.answer) <= records(self.theirs.answer)
                and without_denial(self.ours.authority) <= without_denial(self.theirs.authority))


def required_glue(message):
    """Addresses of name servers below the cut of a referral (RFC 9471 §3.1)."""
    cuts = {record.owner for record in message.authority if record.type == wire.NS}
    if message.aa and not message.answer or len(cuts) != 1:
        return frozenset()
    cut = next(iter(cuts))
    return frozenset(record for record in message.additional if wire.is_at_or_below(record.owner, cut)
                     and record.type in (wire.A, wire.AAAA))


# Chains of aliases


@rule("loop of aliases: SERVFAIL", "bind")
def loop(case):
    return case.theirs.rcode == wire.SERVFAIL and links(case.ours, case.name)[1]


@rule("long chain of aliases: SERVFAIL", "bind")
def bind_limit(case):
    return case.theirs.rcode == wire.SERVFAIL and len(links(case.ours, case.name)[0]) > 11


@rule("long chain of aliases: the peer stops sooner", "knot", "nsd")
def peer_stops_sooner(case):
    theirs = len(links(case.theirs, case.name)[0])
    return (5 < theirs < len(links(case.ours, case.name)[0]) and case.theirs.rcode == wire.NOERROR
            and case.theirs_is_part_of_ours and not case.theirs.authority)


@rule("long chain of aliases: we stop sooner", "nsd")
def we_stop_sooner(case):
    return (len(links(case.ours, case.name)[0]) == proofs.MAX_LINKS + 1 and not case.ours.authority
            and records(case.ours.answer) <= records(case.theirs.answer))


@rule("DNAME to a name below itself: the peer stops at once", "nsd")
def dname_below_itself(case):
    return case.theirs_is_part_of_ours and not case.theirs.authority and any(
        record.type == wire.DNAME and proofs.is_below(wire.decode_name(record.rdata), record.owner)
        for record in case.theirs.answer)


@rule("alias into another zone of ours: the peer follows", "nsd")
def follows_into_other_zone(case):
    target = links(case.ours, case.name)[0][-1]
    return (case.suite.zone_of(target) not in (None, case.zone.labels)
            and records(case.ours.answer) <= records(case.theirs.answer))


@rule("alias into a child zone of ours: the peer gives no referral", "bind")
def no_referral_to_child(case):
    target = links(case.ours, case.name)[0][-1]
    child = case.suite.zone_of(target)
    return (case.parts <= {"authority", "glue"} and not case.theirs.authority
            and child is not None and proofs.is_below(child, case.zone.labels))


@rule("YXDOMAIN: the peer goes on with the DNAME's target", "knot")
def goes_on_after_yxdomain(case):
    return (case.ours.rcode == case.theirs.rcode == wire.YXDOMAIN and not case.ours.authority
            and case.ours_is_part_of_theirs)


@rule("ANY below a DNAME: the peer does not follow", "bind")
def any_below_dname(case):
    return (case.type == wire.ANY and case.theirs_is_part_of_ours and not case.theirs.authority
            and any(record.type == wire.DNAME and proofs.is_below(case.name, record.owner)
                    for record in case.theirs.answer))


# Types that are asked for by few


@rule("ANY: another RRset, or all")
def any_choice(case):
    different = {r.owner for r in records(case.ours.answer) ^ records(case.theirs.answer)}
    return (case.type == wire.ANY and case.parts <= {"answer", "authority"} and len(different) == 1
            and without_denial(case.ours.authority) == without_denial(case.theirs.authority))


@rule("RRSIG: signatures of another RRset, or all")
def rrsig_choice(case):
    return (case.type == wire.RRSIG and case.parts <= {"answer", "authority"}
            and any(record.type == wire.RRSIG for record in case.ours.answer)
            and any(record.type == wire.RRSIG for record in case.theirs.answer))


@rule("NSEC at an alias: NODATA instead of following", "bind", "knot")
def nsec_at_alias(case):
    chain, _ = links(case.theirs, case.name)
    return (case.type == wire.NSEC and case.theirs.rcode == wire.NOERROR
            and records(case.theirs.answer) < records(case.ours.answer)
            and any(r.owner == chain[-1] and r.type == wire.CNAME for r in case.ours.answer))


@rule("NSEC3 at an alias: NODATA instead of following", "nsd")
def nsec3_at_alias(case):
    chain, _ = links(case.theirs, case.name)
    return (case.type == wire.NSEC3 and case.theirs.rcode == wire.NOERROR
            and records(case.theirs.answer) < records(case.ours.answer)
            and any(r.owner == chain[-1] and r.type == wire.CNAME for r in case.ours.answer))


@rule("RRSIG at an alias without signatures: the peer follows", "nsd")
def rrsig_at_alias(case):
    chain, _ = links(case.ours, case.name)
    return (case.type == wire.RRSIG and case.zone.variant == "u"
            and records(case.ours.answer) < records(case.theirs.answer)
            and any(r.owner == chain[-1] and r.type == wire.CNAME for r in case.theirs.answer))


@rule("NSEC at a cut: answered by the parent", "bind")
def nsec_at_cut(case):
    return (case.type == wire.NSEC and not case.ours.aa and case.theirs.aa
            and any(r.owner == case.name and r.type == wire.NSEC for r in case.theirs.answer))


@rule("DS of a zone whose parent we lack: the peer refers")
def ds_without_parent(case):
    return (case.type == wire.DS and case.suite.zone_of(case.name) == case.name
            and case.ours.aa and not case.theirs.aa and case.theirs.rcode == wire.NOERROR
            and any(record.type == wire.NS and proofs.is_below(case.name, record.owner)
                    for record in case.theirs.authority))


# Zones that few load


@rule("an RRset with several TTLs: the peer chooses another", "nsd", "knot", "bind")
def mixed_ttl(case):
    return case.zone.stem == "mt" and case.parts <= {"answer", "authority", "glue"} and all(
        without_ttl(getattr(case.ours, part)) == without_ttl(getattr(case.theirs, part))
        for part in ("answer", "authority"))


@rule("NS at a wildcard: the peer refers", "knot")
def wildcard_ns(case):
    return case.zone.stem == "wn" and not case.theirs.aa and case.theirs.rcode == wire.NOERROR


@rule("below a DNAME at a wildcard: the peer expands it", "knot")
def dname_at_wildcard(case):
    dnames = {record.owner for record in case.ours.answer if record.type == wire.DNAME}
    expanded = any(record.type == wire.DNAME and record.owner not in dnames
                   for record in case.theirs.answer)
    return (any(owner[0] == b"*" and proofs.is_below(case.name, owner) for owner in dnames)
            and (expanded or not case.theirs.aa))


# Proofs


@rule("NXDOMAIN by NSEC3: the peer's lacks AA and SOA", "knot")
def bare_name_error(case):
    return (case.zone.variant in "hop" and case.dnssec and case.theirs.rcode == case.ours.rcode == 3
            and not case.theirs.aa and not case.theirs.authority)


@rule("a signature's TTL in the zone is not its RRset's: sent as it is", "bind", "nsd", "knot")
def ttl_of_signatures(case):
    different = records(case.ours.answer) ^ records(case.theirs.answer)
    return (case.zone.stem == "ms" and case.parts == {"answer"}
            and all(record.type == wire.RRSIG for record in different)
            and without_ttl(case.ours.answer) == without_ttl(case.theirs.answer))


# What the records of a peer fail to prove: peer, variants, part of the reason, and what it is about.
TOO_LITTLE = (
    ("bind", "n", "no NSEC speaks of the wildcard", "wildcard that is an empty non-terminal"),
    ("knot", "n", "no NSEC speaks of the wildcard", "wildcard that is an empty non-terminal"),
    ("knot", "n", "no NSEC covers", "NSEC order of rare octets, or QNAMEs with asterisks"),
    ("knot", "n", "another closest encloser", "NSEC order of rare octets, or QNAMEs with asterisks"),
    ("knot", "n", "no denial records", "QTYPE=NSEC at a wildcard, or QNAMEs with asterisks"),
    ("knot", "hop", "no denial records", "QNAME that begins with an asterisk label"),
    ("knot", "hop", "no NSEC3 covers the next closer name", "QNAME that begins with an asterisk label"),
    ("knot", "hop", "no NSEC3 matches a closest encloser", "QNAME that begins with an asterisk label"),
    ("nsd", "n", "no NSEC covers", "target of a DNAME"),
    ("nsd", "op", "no NSEC3 matches a closest encloser", "opt-out hides the encloser"),
    ("nsd", "op", "no NSEC3 covers the next closer name", "opt-out hides the encloser"),
    ("nsd", "op", "no NSEC3 covers the wildcard", "opt-out hides the encloser"),
)


@rule("ours is proven, the peer's is not")
def proves_too_little(case):
    """Gives what it is about."""
    if not (case.only_denial_differs and isinstance(case.our_verdict, proofs.Verdict)
            and isinstance(case.their_verdict, str)):
        return None
    for peer, variants, reason, about in TOO_LITTLE:
        if peer == case.peer and case.zone.variant in variants and reason in case.their_verdict:
            return about
    return None


@rule("what no record of the zone could prove: other records")
def unprovable(case):
    return case.only_denial_differs and case.our_verdict == proofs.Verdict.UNPROVABLE


@rule("both are proven, by other records")
def proven_otherwise(case):
    return case.only_denial_differs and all(
        isinstance(verdict, proofs.Verdict) for verdict in (case.our_verdict, case.their_verdict))


def explain(case):
    """The name of the first rule that holds, or None."""
    for name, peers, test in RULES:
        if case.peer in peers and (found := test(case)):
            return f"{name}: {found}" if isinstance(found, str) else name
    return None
