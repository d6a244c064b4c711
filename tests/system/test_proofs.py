"""The proof checker itself: it accepts what proves, and nothing that lacks a record or has an altered
one. The zones are signed here, by a few lines that know nothing of the checker."""

import base64
import struct

import pytest

import proofs
import wire

ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")

KEY = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
PUBLIC = KEY.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)
DNSKEY = struct.pack("!HBB", 257, 3, proofs.ED25519) + PUBLIC
APEX = (b"ex",)
ANCHORS = {APEX: (DNSKEY,)}
NOW = 1735689600


def name(text):
    return wire.lower(wire.read_text_name(text, APEX))


def name_rdata(text):
    return wire.encode_name(name(text))


def bitmap(types):
    windows = {}
    for rrtype in types:
        octets = windows.setdefault(rrtype >> 8, bytearray(32))
        octets[(rrtype & 255) >> 3] |= 0x80 >> (rrtype & 7)
    return b"".join(bytes((window, len(octets.rstrip(b"\0")))) + bytes(octets.rstrip(b"\0"))
                    for window, octets in sorted(windows.items()))


def sign(owner, rrtype, ttl, rdatas, signed_owner=None, key=KEY, signer=APEX):
    """The RRSIG record of an RRset that stands at `signed_owner` in the zone."""
    signed = signed_owner or owner
    labels = len(signed) - (signed[0] == b"*")
    head = struct.pack("!HBBIIIH", rrtype, proofs.ED25519, labels, ttl, NOW + 1000, NOW - 1000,
                       proofs.key_tag(DNSKEY)) + wire.encode_name(signer)
    each = wire.encode_name(signed) + struct.pack("!HHI", rrtype, 1, ttl)
    data = head + b"".join(each + struct.pack("!H", len(rdata)) + rdata for rdata in sorted(rdatas))
    return wire.Record(owner, wire.RRSIG, ttl, head + key.sign(data))


SOA = name_rdata("ns") + name_rdata("host") + struct.pack("!5I", 1, 1, 1, 1, 300)
DATA = {
    ("@", wire.SOA): [SOA],
    ("@", wire.NS): [name_rdata("ns")],
    ("@", wire.DNSKEY): [DNSKEY],
    ("ns", wire.A): [bytes(4)],
    ("a", wire.A): [bytes(4), b"\1\2\3\4"],
    ("a.b.ent", wire.A): [bytes(4)],
    ("c", wire.CNAME): [name_rdata("a")],
    ("cnx", wire.CNAME): [name_rdata("nx")],
    ("d", wire.DNAME): [name_rdata("t")],
    ("dl", wire.DNAME): [b"\x3f" + b"l" * 63 + b"\x3f" + b"l" * 63 + b"\x3f" + b"l" * 63 + b"\0"],
    ("a.t", wire.A): [bytes(4)],
    ("*.w", wire.A): [bytes(4)],
    ("x.*.e", wire.A): [bytes(4)],
    ("sub", wire.NS): [name_rdata("ns.sub")],
    ("sec", wire.NS): [name_rdata("ns.sec")],
    ("sec", wire.DS): [b"\0\1\x0f\2" + bytes(32)],
    (r"\000.z", wire.A): [bytes(4)],
}


class Signed:
    """The zone of DATA, signed with NSEC, NSEC3, or NSEC3 with opt-out."""

    def __init__(self, kind):
        self.kind = kind
        self.sets = {(name(owner), rrtype): rdatas for (owner, rrtype), rdatas in DATA.items()}
        types = {}
        for owner, rrtype in self.sets:
            types.setdefault(owner, set()).add(rrtype)
        (self.add_nsec if kind == "nsec" else self.add_nsec3)(types)

    def is_unsigned(self, owner, rrtype):
        return rrtype == wire.NS and owner != APEX

    def add_nsec(self, types):
        owners = sorted(types, key=proofs.canonical)
        for owner, following in zip(owners, owners[1:] + owners[:1]):
            self.sets[owner, wire.NSEC] = [
                wire.encode_name(following) + bitmap(types[owner] | {wire.RRSIG, wire.NSEC})]

    def add_nsec3(self, types):
        opt_out = self.kind == "opt-out"
        every = {}
        for owner in types:
            if opt_out and types[owner] == {wire.NS}:
                continue
            for i in range(len(owner) - len(APEX) + 1):
                every.setdefault(owner[i:], set())
            signed = types[owner] != {wire.NS}
            every[owner] |= types[owner] | ({wire.RRSIG} if signed else set())
        hashes = sorted((proofs.nsec3_hash(owner, 1, b"s"), owner) for owner in every)
        for (digest, owner), (following, _) in zip(hashes, hashes[1:] + hashes[:1]):
            label = base64.b32hexencode(digest).lower()
            head = struct.pack("!BBHB", 1, opt_out, 1, 1) + b"s" + b"\x14"
            self.sets[(label, *APEX), wire.NSEC3] = [head + following + bitmap(every[owner])]

    def rrset(self, owner, rrtype, at=None):
        """Records of an RRset with its signature; `at`: as synthesized there."""
        owner = name(owner) if isinstance(owner, str) else owner
        at = name(at) if at else owner
        rdatas = self.sets[owner, rrtype]
        records = [wire.Record(at, rrtype, 300, rdata) for rdata in rdatas]
        if self.is_unsigned(owner, rrtype):
            return records
        return records + [sign(at, rrtype, 300, rdatas, owner)]

    def denial(self, *texts):
        """The NSEC or NSEC3 records that match or cover these names, each once."""
        found = {}
        for text in texts:
            owner = self.nsec_for(name(text)) if self.kind == "nsec" else self.nsec3_for(name(text))
            found[owner] = self.rrset(owner, wire.NSEC if self.kind == "nsec" else wire.NSEC3)
        return [record for records in found.values() for record in records]

    def nsec_for(self, wanted):
        owners = [owner for owner, rrtype in self.sets if rrtype == wire.NSEC
                  and proofs.canonical(owner) <= proofs.canonical(wanted)]
        return max(owners, key=proofs.canonical)

    def nsec3_for(self, wanted):
        label = base64.b32hexencode(proofs.nsec3_hash(wanted, 1, b"s")).lower()
        owners = sorted(owner for owner, rrtype in self.sets if rrtype == wire.NSEC3)
        return max((owner for owner in owners if owner[0] <= label), default=owners[-1])


def response(answer=(), authority=(), rcode=wire.NOERROR, aa=True):
    return wire.Message(0, rcode, aa, False, None, tuple(answer), tuple(authority), (), True)


NSEC, NSEC3, OPT_OUT = Signed("nsec"), Signed("nsec3"), Signed("opt-out")
SECURE, INSECURE = proofs.Verdict.SECURE, proofs.Verdict.OPT_OUT


def soa(zone):
    return zone.rrset("@", wire.SOA)


def synthesized(at, target):
    return wire.Record(name(at), wire.CNAME, 300, name_rdata(target))


def name_error(zone, wanted, *denied):
    return response(authority=soa(zone) + zone.denial(*denied), rcode=wire.NXDOMAIN), wanted


# title → (response, QNAME), QTYPE, verdict. Each record in it is needed.
PROVEN = {
    "data": ((response(NSEC.rrset("a", wire.A)), "a"), wire.A, SECURE),
    "alias": ((response(NSEC.rrset("c", wire.CNAME) + NSEC.rrset("a", wire.A)), "c"), wire.A, SECURE),
    "alias to nothing": (
        (response(NSEC.rrset("cnx", wire.CNAME), soa(NSEC) + NSEC.denial("nx", "*"), wire.NXDOMAIN),
         "cnx"), wire.A, SECURE),
    "DNAME": ((response(NSEC.rrset("d", wire.DNAME) + [synthesized("a.d", "a.t")]
                        + NSEC.rrset("a.t", wire.A)), "a.d"), wire.A, SECURE),
    "DNAME to nothing": (
        (response(NSEC.rrset("d", wire.DNAME) + [synthesized("nx.d", "nx.t")],
                  soa(NSEC) + NSEC.denial("nx.t", "*.t"), wire.NXDOMAIN), "nx.d"), wire.A, SECURE),
    "DNAME too long": ((response(NSEC.rrset("dl", wire.DNAME), rcode=wire.YXDOMAIN),
                        "k" * 63 + ".dl"), wire.A, SECURE),
    "wildcard": ((response(NSEC.rrset("*.w", wire.A, "q.r.w"), NSEC.denial("q.r.w")), "q.r.w"),
                 wire.A, SECURE),
    "name error": (name_error(NSEC, "nx", "nx", "*"), wire.A, SECURE),
    "name error below an octet 0": (name_error(NSEC, r"q.\000.z", r"q.\000.z"), wire.A, SECURE),
    "no data": ((response((), soa(NSEC) + NSEC.denial("a")), "a"), wire.TXT, SECURE),
    "no data at an empty non-terminal": ((response((), soa(NSEC) + NSEC.denial("ent")), "ent"),
                                         wire.A, SECURE),
    "no data at a wildcard": ((response((), soa(NSEC) + NSEC.denial("*.w", "q.w")), "q.w"),
                              wire.TXT, SECURE),
    "no data at a wildcard that is an empty non-terminal": (
        (response((), soa(NSEC) + NSEC.denial("*.e", "zz.e")), "zz.e"), wire.A, SECURE),
    "no DS": ((response((), soa(NSEC) + NSEC.denial("sub")), "sub"), wire.DS, SECURE),
    "referral": ((response((), NSEC.rrset("sec", wire.NS) + NSEC.rrset("sec", wire.DS), aa=False),
                  "x.sec"), wire.A, SECURE),
    "insecure referral": ((response((), NSEC.rrset("sub", wire.NS) + NSEC.denial("sub"), aa=False),
                           "x.sub"), wire.A, SECURE),
    "NSEC3 name error": (name_error(NSEC3, "q.nx", "@", "nx", "*"), wire.A, SECURE),
    "NSEC3 no data": ((response((), soa(NSEC3) + NSEC3.denial("a")), "a"), wire.TXT, SECURE),
    "NSEC3 no data at an empty non-terminal": ((response((), soa(NSEC3) + NSEC3.denial("ent")), "ent"),
                                               wire.A, SECURE),
    "NSEC3 wildcard": ((response(NSEC3.rrset("*.w", wire.A, "q.r.w"), NSEC3.denial("r.w")), "q.r.w"),
                       wire.A, SECURE),
    "NSEC3 no data at a wildcard": (
        (response((), soa(NSEC3) + NSEC3.denial("w", "q.w", "*.w")), "q.w"), wire.TXT, SECURE),
    "NSEC3 no DS": ((response((), soa(NSEC3) + NSEC3.denial("sub")), "sub"), wire.DS, SECURE),
    "NSEC3 insecure referral": (
        (response((), NSEC3.rrset("sub", wire.NS) + NSEC3.denial("sub"), aa=False), "x.sub"),
        wire.A, SECURE),
    "opt-out referral": (
        (response((), OPT_OUT.rrset("sub", wire.NS) + OPT_OUT.denial("@", "sub"), aa=False), "x.sub"),
        wire.A, INSECURE),
    "opt-out no DS": ((response((), soa(OPT_OUT) + OPT_OUT.denial("@", "sub")), "sub"),
                      wire.DS, INSECURE),
    "opt-out name error": (name_error(OPT_OUT, "q.nx", "@", "nx", "*"), wire.A, INSECURE),
}


def prove(message, qname, rrtype):
    return proofs.prove(message, (name(qname), rrtype), ANCHORS, now=NOW)


def titles():
    return sorted(PROVEN)


def without(message, section, number):
    records = getattr(message, section)
    return message._replace(**{section: records[:number] + records[number + 1:]})


def each_record(message):
    for section in ("answer", "authority"):
        for number, record in enumerate(getattr(message, section)):
            yield section, number, record


@pytest.mark.parametrize("title", titles())
def test_what_proves_is_accepted(title):
    (message, qname), rrtype, verdict = PROVEN[title]
    assert prove(message, qname, rrtype) == verdict


@pytest.mark.parametrize("title", titles())
def test_a_record_taken_away_is_missed(title):
    (message, qname), rrtype, _ = PROVEN[title]
    for section, number, record in each_record(message):
        with pytest.raises(proofs.Unproven):
            prove(without(message, section, number), qname, rrtype)
            pytest.fail(f"not missed: {record}")


@pytest.mark.parametrize("title", titles())
def test_an_altered_octet_is_noticed(title):
    (message, qname), rrtype, _ = PROVEN[title]
    for section, number, record in each_record(message):
        if record.type == wire.NS:
            continue  # not signed at a cut
        for at in (0, len(record.rdata) // 2, len(record.rdata) - 1):
            rdata = bytearray(record.rdata)
            rdata[at] ^= 1
            records = list(getattr(message, section))
            records[number] = record._replace(rdata=bytes(rdata))
            with pytest.raises((proofs.Unproven, IndexError, wire.BadMessage)):
                prove(message._replace(**{section: tuple(records)}), qname, rrtype)
                pytest.fail(f"not noticed: octet {at} of {record}")


@pytest.mark.parametrize("title", titles())
def test_another_rcode_is_noticed(title):
    (message, qname), rrtype, verdict = PROVEN[title]
    if message.rcode == wire.NXDOMAIN and verdict == INSECURE:
        return  # what an opt-out span covers may exist: NODATA could be as true
    other = wire.NOERROR if message.rcode else wire.NXDOMAIN
    with pytest.raises(proofs.Unproven):
        prove(message._replace(rcode=other), qname, rrtype)


@pytest.mark.parametrize("title", titles())
def test_another_question_is_not_answered(title):
    (message, _), rrtype, _ = PROVEN[title]
    with pytest.raises(proofs.Unproven):
        prove(message, "something.else", rrtype)


def unproven(message, qname, rrtype):
    with pytest.raises(proofs.Unproven) as caught:
        prove(message, qname, rrtype)
    return str(caught.value)


def test_a_type_in_the_bitmap_is_not_denied():
    assert "bitmap" in unproven(response((), soa(NSEC) + NSEC.denial("a")), "a", wire.A)
    assert "bitmap" in unproven(response((), soa(NSEC3) + NSEC3.denial("a")), "a", wire.A)


def test_an_alias_is_not_denied():
    assert "CNAME" in unproven(response((), soa(NSEC) + NSEC.denial("c")), "c", wire.TXT)


def test_an_empty_non_terminal_is_no_name_error():
    assert "empty non-terminal" in unproven(*name_error(NSEC, "ent", "ent", "*"), wire.A)
    assert "exists" in unproven(*name_error(NSEC3, "ent", "ent", "@", "*"), wire.A)


def test_a_name_error_beside_a_wildcard_is_not_believed():
    unproven(*name_error(NSEC, "q.w", "q.w", "*.w"), wire.A)
    unproven(*name_error(NSEC3, "q.w", "w", "q.w", "*.w"), wire.A)


def test_a_wildcard_that_a_closer_name_blocks_is_not_believed():
    message = response(NSEC.rrset("*.w", wire.A, "a.b.ent"), NSEC.denial("a.b.ent"))
    unproven(message, "a.b.ent", wire.A)


def test_an_nsec_above_a_cut_or_a_dname_denies_nothing_below_it():
    """RFC 6840 §4.1."""
    unproven(*name_error(NSEC, "x.sub", "x.sub", "*.sub"), wire.A)
    unproven(*name_error(NSEC, "x.d", "x.d", "*.d"), wire.A)


def test_the_parents_nsec_denies_only_ds_at_a_cut():
    unproven(response((), soa(NSEC) + NSEC.denial("sub")), "sub", wire.A)
    unproven(response((), soa(NSEC3) + NSEC3.denial("sub")), "sub", wire.A)


def test_a_span_without_opt_out_makes_no_referral_insecure():
    message = response((), NSEC3.rrset("sub", wire.NS) + NSEC3.denial("@", "nx"), aa=False)
    unproven(message, "x.sub", wire.A)


def test_a_secure_cut_is_not_shown_insecure():
    for zone in (NSEC, NSEC3):
        message = response((), zone.rrset("sec", wire.NS) + zone.denial("sec"), aa=False)
        unproven(message, "x.sec", wire.A)


def test_a_referral_has_no_aa():
    message = response((), NSEC.rrset("sec", wire.NS) + NSEC.rrset("sec", wire.DS), aa=True)
    assert "AA" in unproven(message, "x.sec", wire.A)


def test_a_synthesized_cname_must_be_the_dnames():
    answer = NSEC.rrset("d", wire.DNAME) + [synthesized("a.d", "b.t")] + NSEC.rrset("a.t", wire.A)
    assert "DNAME" in unproven(response(answer), "a.d", wire.A)


def test_yxdomain_must_be_true():
    unproven(response(NSEC.rrset("d", wire.DNAME), rcode=wire.YXDOMAIN), "a.d", wire.A)


def test_nsec3_of_two_chains_do_not_mix():
    message, _ = name_error(NSEC3, "q.nx", "@", "nx", "*")
    other = wire.Record((b"0" * 32, *APEX), wire.NSEC3, 300,
                         struct.pack("!BBHB", 1, 0, 9, 0) + b"\x14" + b"\xff" * 20)
    extra = (other, sign(other.owner, wire.NSEC3, 300, [other.rdata]))
    assert "two chains" in unproven(
        message._replace(authority=message.authority + extra), "q.nx", wire.A)


def test_signatures_of_other_keys_or_times_are_bad():
    other = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(32))
    records = NSEC.rrset("a", wire.A)[:-1]
    rdatas = [record.rdata for record in records]
    unproven(response([*records, sign(name("a"), wire.A, 300, rdatas, key=other)]), "a", wire.A)
    with pytest.raises(proofs.Unproven):
        proofs.prove(response(NSEC.rrset("a", wire.A)), (name("a"), wire.A), ANCHORS, now=NOW + 2000)


def test_a_ttl_above_the_signed_one_is_noticed():
    records = [record._replace(ttl=301) for record in NSEC.rrset("a", wire.A)]
    assert "TTL" in unproven(response(records), "a", wire.A)


def test_records_that_are_no_part_of_the_answer_are_noticed():
    message = response(NSEC.rrset("a", wire.A) + NSEC.rrset("ns", wire.A))
    assert "no part" in unproven(message, "a", wire.A)


def test_a_chain_out_of_order_is_noticed():
    message = response(NSEC.rrset("a", wire.A) + NSEC.rrset("c", wire.CNAME))
    assert "order" in unproven(message, "c", wire.A)


def test_a_truncated_message_has_whole_rrsets():
    message = response(NSEC.rrset("a", wire.A))._replace(tc=True)
    assert prove(message, "a", wire.A) == proofs.Verdict.TRUNCATED
    unproven(without(message, "answer", 0), "a", wire.A)
    assert prove(response()._replace(tc=True), "a", wire.A) == proofs.Verdict.TRUNCATED
