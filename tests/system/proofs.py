"""Decides, from the records of one response alone, whether they prove what it says.

The trust anchors are the zones' keys; nothing else is known of the zones. RFC 4035 §5.3 and §5.4,
RFC 5155 §8, RFC 6840 §4. An answer that is not proven raises Unproven with the reason."""

import base64
import enum
import functools
import hashlib
import struct
from typing import NamedTuple

import wire

try:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
except ImportError:  # then only the structure of signatures is looked at
    Ed25519PublicKey = None

ED25519 = 15
MAX_LINKS = 17  # aliases after which a server may stop (docs/explanation/conformance.md)


class Unproven(Exception):
    """What the records fail to show."""


class Verdict(enum.Enum):
    SECURE = "secure"
    OPT_OUT = "insecure, in an opt-out span"  # RFC 5155 §9.2: shown, but not without doubt
    CHILD_DS = "the child denies its own DS"  # RFC 4035 §3.1.4.1: a server without the parent
    TRUNCATED = "truncated"
    UNPROVABLE = "true, and no record of the zone could prove it"


class Signature(NamedTuple):
    covered: int
    algorithm: int
    labels: int
    original_ttl: int
    expiration: int
    inception: int
    key_tag: int
    signer: tuple
    octets: bytes
    head: bytes  # RDATA up to and including the signer's name


class Proven(NamedTuple):
    """An RRset with a good signature."""
    zone: tuple
    encloser: tuple  # not None: expanded from the wildcard below it


class Nsec(NamedTuple):
    owner: tuple
    next: tuple
    types: frozenset


class Nsec3(NamedTuple):
    owner: bytes
    next: bytes
    opt_out: bool
    types: frozenset


@functools.lru_cache(1 << 16)
def read_signature(rdata):
    signer, end = wire.read_name(rdata, 18)
    return Signature(*struct.unpack_from("!HBBIIIH", rdata), signer, rdata[end:], rdata[:end])


@functools.lru_cache(1 << 16)
def read_types(bitmap):
    types, at = set(), 0
    while at < len(bitmap):
        window, length = bitmap[at], bitmap[at + 1]
        for i, octet in enumerate(bitmap[at + 2:at + 2 + length]):
            types.update(window << 8 | i << 3 | bit for bit in range(8) if octet & 0x80 >> bit)
        at += 2 + length
    return frozenset(types)


@functools.lru_cache(1 << 16)
def read_nsec(owner, rdata):
    following, end = wire.read_name(rdata, 0)
    return Nsec(owner, following, read_types(rdata[end:]))


@functools.lru_cache(1 << 16)
def read_nsec3(owner, rdata):
    """(parameters, Nsec3), or None when a validator ignores the record (RFC 5155 §8.1, §8.2)."""
    algorithm, flags, iterations, salt_length = struct.unpack_from("!BBHB", rdata)
    at = 5 + salt_length
    salt, length = rdata[5:at], rdata[at]
    following, bitmap = rdata[at + 1:at + 1 + length], rdata[at + 1 + length:]
    if algorithm != 1 or flags > 1 or len(owner) == 0 or len(owner[0]) != 32:
        return None
    own = base64.b32hexdecode(owner[0].upper())
    return (iterations, salt), Nsec3(own, following, bool(flags & 1), read_types(bitmap))


@functools.lru_cache(1 << 18)
def nsec3_hash(name, iterations, salt):
    digest = hashlib.sha1(wire.encode_name(name) + salt).digest()
    for _ in range(iterations):
        digest = hashlib.sha1(digest + salt).digest()
    return digest


@functools.lru_cache(1 << 18)
def signature_is_good(key, octets, data):
    if Ed25519PublicKey is None:
        return len(octets) == 64
    try:
        Ed25519PublicKey.from_public_bytes(key[4:]).verify(octets, data)
        return True
    except InvalidSignature:
        return False


def key_tag(key):
    """RFC 4034 appendix B."""
    total = sum(octet << 8 if i % 2 == 0 else octet for i, octet in enumerate(key))
    return total + (total >> 16) & 0xFFFF


def canonical(name):
    return tuple(reversed(name))


def common(one, other):
    """The longest name that both are at or below."""
    count = 0
    while count < min(len(one), len(other)) and one[-1 - count] == other[-1 - count]:
        count += 1
    return one[len(one) - count:]


def is_below(name, ancestor):
    return len(name) > len(ancestor) and wire.is_at_or_below(name, ancestor)


def is_delegation(types):
    """The parent's side of a cut: what stands below is not the zone's."""
    return wire.NS in types and wire.SOA not in types


def wildcard(encloser):
    return (b"*", *encloser)


def check_absent(types, rrtype):
    """A bitmap at the name itself must deny the type (RFC 4035 §5.4, RFC 5155 §8.5, RFC 6840 §4.3)."""
    if rrtype in types or (wire.CNAME in types and rrtype != wire.ANY):
        raise Unproven(f"the bitmap has type {rrtype} or CNAME")
    if rrtype == wire.DS and wire.SOA in types:
        raise Unproven("the child's own record denies DS")
    if rrtype != wire.DS and is_delegation(types):
        raise Unproven("the parent's record denies a type other than DS")


class NsecChain:
    """Denial by the NSEC records of a response."""

    def __init__(self, records):
        self.records = records

    def matching(self, name):
        return next((nsec for nsec in self.records if nsec.owner == name), None)

    def covering(self, name):
        """The span that the name falls into, from an owner that may speak of it."""
        key = canonical(name)
        for nsec in self.records:
            last = canonical(nsec.next) <= canonical(nsec.owner)
            if canonical(nsec.owner) < key and (last or key < canonical(nsec.next)):
                # RFC 6840 §4.1: not from above a cut or a DNAME.
                above = is_below(name, nsec.owner)
                if not (above and (is_delegation(nsec.types) or wire.DNAME in nsec.types)):
                    return nsec
        return None

    def absence(self, name):
        """The closest encloser of a name that is shown not to exist."""
        nsec = self.covering(name)
        if nsec is None:
            raise Unproven(f"no NSEC covers {wire.name_text(name)}")
        if is_below(nsec.next, name):
            raise Unproven(f"{wire.name_text(name)} is an empty non-terminal")
        return max(common(name, nsec.owner), common(name, nsec.next), key=len)

    def no_closer_match(self, name, encloser):
        if self.absence(name) != encloser:
            raise Unproven("the NSEC shows another closest encloser than the signature")
        return Verdict.SECURE

    def name_error(self, name):
        self.absence(wildcard(self.absence(name)))
        return Verdict.SECURE

    def is_shown_empty(self, name):
        nsec = self.covering(name)
        return nsec is not None and is_below(nsec.next, name)

    def no_data(self, name, rrtype):
        nsec = self.matching(name)
        if nsec is not None:
            check_absent(nsec.types, rrtype)
        elif not self.is_shown_empty(name):
            self.wildcard_no_data(name, rrtype)
        return Verdict.SECURE

    def wildcard_no_data(self, name, rrtype):
        source = wildcard(self.absence(name))
        nsec = self.matching(source)
        if nsec is not None:
            check_absent(nsec.types, rrtype)
        elif not self.is_shown_empty(source):
            raise Unproven("no NSEC speaks of the wildcard")

    def no_ds(self, cut):
        nsec = self.matching(cut)
        if nsec is None:
            raise Unproven("no NSEC at the cut")
        if not is_delegation(nsec.types) or wire.DS in nsec.types:
            raise Unproven("the NSEC at the cut shows no insecure delegation")
        return Verdict.SECURE


class Nsec3Chain:
    """Denial by the NSEC3 records of a response that have the same parameters."""

    def __init__(self, apex, parameters, records):
        self.apex, self.parameters, self.records = apex, parameters, records

    def matching(self, name):
        digest = nsec3_hash(name, *self.parameters)
        return next((nsec3 for nsec3 in self.records if nsec3.owner == digest), None)

    def covering(self, name):
        digest = nsec3_hash(name, *self.parameters)
        for nsec3 in self.records:
            if nsec3.owner < nsec3.next:
                found = nsec3.owner < digest < nsec3.next
            else:
                found = digest > nsec3.owner or digest < nsec3.next
            if found:
                return nsec3
        return None

    def encloser(self, name):
        """RFC 5155 §8.3: the closest encloser, and the span that its next closer name is in."""
        for labels in range(len(name) - 1, len(self.apex) - 1, -1):
            ancestor = name[len(name) - labels:]
            nsec3 = self.matching(ancestor)
            if nsec3 is None:
                continue
            if is_delegation(nsec3.types) or wire.DNAME in nsec3.types:
                raise Unproven("the closest encloser is a cut or has a DNAME")
            covering = self.covering(name[len(name) - labels - 1:])
            if covering is None:
                raise Unproven("no NSEC3 covers the next closer name")
            return ancestor, covering
        raise Unproven("no NSEC3 matches a closest encloser")

    def no_closer_match(self, name, encloser):
        next_closer = name[len(name) - len(encloser) - 1:]
        covering = self.covering(next_closer)
        if covering is None:
            raise Unproven("no NSEC3 covers the next closer name")
        return Verdict.OPT_OUT if covering.opt_out else Verdict.SECURE

    def name_error(self, name):
        if self.matching(name) is not None:
            raise Unproven("the name exists")
        encloser, covering = self.encloser(name)
        if self.covering(wildcard(encloser)) is None:
            raise Unproven("no NSEC3 covers the wildcard")
        return Verdict.OPT_OUT if covering.opt_out else Verdict.SECURE

    def no_data(self, name, rrtype):
        nsec3 = self.matching(name)
        if nsec3 is not None:
            check_absent(nsec3.types, rrtype)
            return Verdict.SECURE
        encloser, covering = self.encloser(name)
        # §8.6 for DS; §8.5 with erratum 3441 for others: the name may be an empty non-terminal that
        # leads to insecure delegations only, whatever the wildcard beside it says.
        if covering.opt_out:
            return Verdict.OPT_OUT
        source = self.matching(wildcard(encloser))  # §8.7
        if source is None:
            raise Unproven("no NSEC3 matches the name or the wildcard")
        check_absent(source.types, rrtype)
        return Verdict.SECURE

    def no_ds(self, cut):
        nsec3 = self.matching(cut)
        if nsec3 is None:
            return self.no_data(cut, wire.DS)
        if not is_delegation(nsec3.types) or wire.DS in nsec3.types:
            raise Unproven("the NSEC3 at the cut shows no insecure delegation")
        return Verdict.SECURE


class Section:
    """RRsets and signatures of one section."""

    def __init__(self, records):
        self.rrsets, self.signatures, self.place = {}, {}, {}
        for number, record in enumerate(records):
            key = record.owner, record.type
            if record.type == wire.RRSIG:
                signature = read_signature(record.rdata)
                key = record.owner, signature.covered
                self.signatures.setdefault(key, []).append((record.ttl, signature))
            else:
                self.rrsets.setdefault(key, []).append(record)
                self.place.setdefault(key, number)


def signed_data(owner, records, signature):
    """RFC 4034 §3.1.8.1."""
    head = wire.encode_name(owner) + struct.pack(
        "!HHI", records[0].type, 1, signature.original_ttl)
    return signature.head + b"".join(
        head + struct.pack("!H", len(rdata)) + rdata for rdata in sorted({r.rdata for r in records}))


class Prover:
    """One response under examination. `anchors`: apex → DNSKEY RDATAs of that zone."""

    def __init__(self, message, anchors, now=1735689600, max_links=MAX_LINKS):
        self.message, self.anchors, self.now, self.max_links = message, anchors, now, max_links
        self.answer, self.authority = Section(message.answer), Section(message.authority)
        self.used = []  # RRsets of the answer section, in the order of the chain
        self.verdict = Verdict.SECURE

    # Signatures

    def verify(self, section, key):
        """RFC 4035 §5.3: one good signature suffices."""
        owner, records = key[0], section.rrsets[key]
        reason = "no signature"
        for ttl, signature in section.signatures.get(key, ()):
            try:
                return self.verify_one(owner, records, ttl, signature)
            except Unproven as error:
                reason = error
        raise Unproven(f"{wire.name_text(owner)} type {key[1]}: {reason}")

    def verify_one(self, owner, records, ttl, signature):
        keys = self.anchors.get(signature.signer)
        labels = len(owner) - (owner[:1] == (b"*",))
        if keys is None or not wire.is_at_or_below(owner, signature.signer):
            raise Unproven("signed by another zone")
        if signature.labels > labels or signature.labels < len(signature.signer):
            raise Unproven("the signature's label count is wrong")
        if not signature.inception <= self.now <= signature.expiration:
            raise Unproven("the signature's time is not now")
        if any(record.ttl != ttl for record in records) or ttl > signature.original_ttl:
            raise Unproven("the TTL is not the signature's")
        expanded = signature.labels < labels
        encloser = owner[len(owner) - signature.labels:]
        name = wildcard(encloser) if expanded else owner
        data = signed_data(name, records, signature)
        for key in keys:
            if key_tag(key) == signature.key_tag and key[3] == signature.algorithm:
                if signature.algorithm == ED25519 and signature_is_good(key, signature.octets, data):
                    return Proven(signature.signer, encloser if expanded else None)
        raise Unproven("the signature is bad")

    # Denial

    def chains(self, zone):
        """The response's denial records of one zone, as things that can be asked."""
        nsecs, by_parameters = [], {}
        for (owner, rrtype), records in self.authority.rrsets.items():
            if rrtype not in (wire.NSEC, wire.NSEC3):
                continue
            proven = self.verify(self.authority, (owner, rrtype))
            if proven.encloser is not None:
                raise Unproven("a denial record from a wildcard")
            if proven.zone != zone:
                continue
            for record in records:
                if rrtype == wire.NSEC:
                    nsecs.append(read_nsec(owner, record.rdata))
                elif found := read_nsec3(owner, record.rdata):
                    if owner[1:] == zone:
                        by_parameters.setdefault(found[0], []).append(found[1])
        if len(by_parameters) > 1:
            raise Unproven("NSEC3 records of two chains")
        chains = [Nsec3Chain(zone, parameters, found) for parameters, found in by_parameters.items()]
        return chains + ([NsecChain(nsecs)] if nsecs else [])

    def need(self, zone, what, *arguments):
        """Some chain must prove it."""
        reason = "no denial records"
        for chain in self.chains(zone):
            try:
                verdict = getattr(chain, what)(*arguments)
                if verdict != Verdict.SECURE:
                    self.verdict = verdict
                return
            except Unproven as error:
                reason = error
        raise Unproven(f"{what} {wire.name_text(arguments[0])}: {reason}")

    # The walk along the chain of aliases

    def use(self, key):
        """Takes an RRset of the answer section; when it is expanded, nothing closer may exist."""
        self.used.append(key)
        proven = self.verify(self.answer, key)
        if proven.encloser is not None:
            self.need(proven.zone, "no_closer_match", key[0], proven.encloser)
        return proven

    def use_signatures(self, name):
        """QTYPE=RRSIG: signatures alone; only what they say of wildcards can be checked."""
        for (owner, _), found in self.answer.signatures.items():
            for _, signature in found if owner == name else ():
                labels = len(owner) - (owner[:1] == (b"*",))
                if signature.labels < labels:
                    self.need(signature.signer, "no_closer_match", name,
                              name[len(name) - signature.labels:])

    def data_at(self, name, rrtype):
        """True when the answer has what was asked for at the name."""
        if rrtype == wire.RRSIG:
            self.use_signatures(name)
            return any(owner == name for owner, _ in self.answer.signatures)
        keys = [key for key in self.answer.rrsets
                if key[0] == name and (rrtype == wire.ANY or key[1] == rrtype)]
        keys = [key for key in keys if key[1] != wire.CNAME or self.answer.signatures.get(key)]
        for key in keys:
            self.use(key)
        return bool(keys)

    def dname_above(self, name):
        owners = [owner for owner, rrtype in self.answer.rrsets
                  if rrtype == wire.DNAME and is_below(name, owner)]
        return min(owners, key=len, default=None)

    def redirect(self, name, owner):
        """RFC 6672 §5.3.1: the CNAME is what the signed DNAME makes. The target; None: too long."""
        key = owner, wire.DNAME
        if key not in self.used and self.use(key).encloser is not None:
            raise Unproven("a DNAME from a wildcard redirects nothing")
        dname = self.answer.rrsets[key][0]
        target = name[:len(name) - len(owner)] + wire.decode_name(dname.rdata)
        cname = self.answer.rrsets.get((name, wire.CNAME))
        if wire.wire_length(target) > 255:
            if self.message.rcode != wire.YXDOMAIN or cname is not None:
                raise Unproven("YXDOMAIN was due")
            return None
        if cname is None:
            raise Unproven("no CNAME for the DNAME")
        if len(cname) != 1 or cname[0].rdata != wire.encode_name(target):
            raise Unproven("the CNAME is not what the DNAME makes")
        if cname[0].ttl not in (0, dname.ttl):
            raise Unproven("the synthesized CNAME's TTL")
        self.used.append((name, wire.CNAME))
        return target

    def follow(self, name, rrtype, links):
        """One alias: its target, or None when there is none to follow."""
        owner = self.dname_above(name)
        if owner is not None:
            if links >= self.max_links and (name, wire.CNAME) not in self.answer.rrsets:
                return None
            target = self.redirect(name, owner)
            if target is None or rrtype == wire.CNAME:
                raise StopIteration
            return target
        key = name, wire.CNAME
        if key not in self.answer.rrsets:
            return None
        self.use(key)
        return wire.decode_name(self.answer.rrsets[key][0].rdata)

    def prove(self, name, rrtype):
        """The verdict on the answer to a question."""
        if self.message.tc:
            return self.check_what_is_there()
        seen = []
        try:
            while name not in seen and not self.data_at(name, rrtype):
                target = self.follow(name, rrtype, len(seen))
                if target is None:
                    self.check_end(name, rrtype, len(seen))
                    break
                seen.append(name)
                name = target
            else:
                self.expect_rcode(wire.NOERROR)
        except StopIteration:
            pass
        self.check_nothing_left(seen, rrtype)
        return self.verdict

    def check_what_is_there(self):
        """RFC 2181 §9: what a truncated message has is whole."""
        synthesized = {owner for owner, rrtype in self.answer.rrsets if rrtype == wire.CNAME
                       and self.dname_above(owner) is not None}
        for key in self.answer.rrsets:
            if not (key[1] == wire.CNAME and key[0] in synthesized):
                self.verify(self.answer, key)
        for key in self.authority.rrsets:
            if key[1] != wire.NS:
                self.verify(self.authority, key)
        return Verdict.TRUNCATED

    def expect_rcode(self, rcode):
        if self.message.rcode != rcode:
            raise Unproven(f"RCODE {self.message.rcode} instead of {rcode}")

    # How the chain ends

    def check_end(self, name, rrtype, links):
        """No data at the last name: a referral, a denial, or an alias that is not followed."""
        soa = [owner for owner, kind in self.authority.rrsets if kind == wire.SOA]
        cuts = [owner for owner, kind in self.authority.rrsets if kind == wire.NS]
        if soa:
            self.check_denial(name, rrtype, soa[0])
        elif cuts:
            self.check_referral(name, rrtype, cuts[0])
        else:
            self.check_unfollowed(name, links)

    def zone_of(self, name):
        zones = [apex for apex in self.anchors if wire.is_at_or_below(name, apex)]
        return max(zones, key=len, default=None)

    def check_unfollowed(self, name, links):
        self.expect_rcode(wire.NOERROR)
        if not self.used:
            raise Unproven("an empty answer")
        if links >= self.max_links:
            return
        if self.zone_of(name) == self.zone_of(self.used[0][0]):
            raise Unproven(f"nothing is said of {wire.name_text(name)}")

    def check_referral(self, name, rrtype, cut):
        self.expect_rcode(wire.NOERROR)
        zone = self.zone_of(cut[1:])
        if zone is None or not wire.is_at_or_below(name, cut) or (rrtype == wire.DS and name == cut):
            raise Unproven("a referral that leads nowhere")
        if self.message.aa != bool(self.message.answer):
            raise Unproven("AA of a referral")
        if (cut, wire.DS) in self.authority.rrsets:
            proven = self.verify(self.authority, (cut, wire.DS))
            if proven.zone != zone or proven.encloser is not None:
                raise Unproven("DS is not the parent's")
        else:
            self.need(zone, "no_ds", cut)

    def check_denial(self, name, rrtype, apex):
        proven = self.verify(self.authority, (apex, wire.SOA))
        if proven.zone != apex or not wire.is_at_or_below(name, apex):
            raise Unproven("the SOA of another zone")
        if not self.message.aa:
            raise Unproven("a denial without AA")
        if self.message.rcode == wire.NXDOMAIN:
            self.need(apex, "name_error", name)
        else:
            self.expect_rcode(wire.NOERROR)
            if rrtype == wire.DS and name == apex:
                self.check_child_denies_ds(apex)
            else:
                self.need(apex, "no_data", name, rrtype)

    def check_child_denies_ds(self, apex):
        """RFC 4035 §3.1.4.1: NODATA from the child, by the bitmap of its apex."""
        for chain in self.chains(apex):
            found = chain.matching(apex)
            if found is not None and wire.DS not in found.types and wire.SOA in found.types:
                self.verdict = Verdict.CHILD_DS
                return
        raise Unproven("no denial of DS at the apex")

    def check_nothing_left(self, seen, rrtype):
        """Each RRset of the answer belongs to the chain, and stands in its order."""
        places = [self.answer.place[key] for key in self.used]
        if places != sorted(places):
            raise Unproven("the answer is out of order")
        left = [key for key in self.answer.rrsets if key not in self.used]
        if left:
            raise Unproven(f"{wire.name_text(left[0][0])} type {left[0][1]} is no part of the chain")
        for key in self.answer.signatures:
            if key not in self.answer.rrsets and rrtype != wire.RRSIG:
                raise Unproven("signatures without their RRset")


def prove(message, question, anchors, **options):
    """The verdict on a response, or Unproven."""
    return Prover(message, anchors, **options).prove(*question)
