#!/usr/bin/env python3
"""Writes the seeds of the fuzz targets message, tsig, update and transfer with dnspython.

    /usr/bin/python3 tests/fuzz/make_message_seeds.py tests/fuzz/corpus
"""
import os
import sys

sys.path = [p for p in sys.path if p not in ("", os.getcwd())]  # the tree has a folder dns/ too

import dns.edns
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rrset
import dns.tsig
import dns.tsigkeyring
import dns.update

RECORDS = [
    ("example.", "SOA", ["ns.example. admin.example. 7 3600 600 86400 300"]),
    ("example.", "NS", ["ns.example.", "ns2.Example.", "ns.other."]),
    ("example.", "MX", ["10 mail.example.", "20 mail.other."]),
    ("www.example.", "CNAME", ["web.example."]),
    ("web.example.", "A", ["192.0.2.1", "192.0.2.2"]),
    ("web.example.", "AAAA", ["2001:db8::1"]),
    ("web.example.", "TXT", ['"v=spf1 -all"', '"" "two" "strings"']),
    ("_sip._udp.example.", "SRV", ["1 2 5060 web.example."]),
    ("sub.example.", "DNAME", ["other.example."]),
    ("1.2.0.192.in-addr.arpa.", "PTR", ["web.example."]),
    ("example.", "RRSIG", ["SOA 8 1 3600 20300101000000 20200101000000 1 example. AQIDBA=="]),
    ("example.", "DNSKEY", ["257 3 8 AQIDBAUGBwg="]),
    ("sub.example.", "DS", ["1 8 2 " + "ab" * 32]),
    ("example.", "NSEC", ["web.example. A NS SOA MX RRSIG NSEC DNSKEY TYPE65534"]),
    ("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example.", "NSEC3",
     ["1 1 12 aabbccdd 2t7b4g4vsa5smi47k61mv5bv1a22bojr MX DNSKEY NS SOA NSEC3PARAM RRSIG"]),
    ("example.", "NSEC3PARAM", ["1 0 12 aabbccdd"]),
    ("example.", "CAA", ['0 issue "ca.example"']),
    ("example.", "NAPTR", ['100 10 "u" "sip+E2U" "!^.*$!sip:info@example.!" .']),
    ("example.", "SVCB", ['1 web.example. alpn="h2,h3" port=853 ipv4hint=192.0.2.1']),
    ("example.", "LOC", ["51 30 12.748 N 0 7 39.611 W 0.00m 0.00m 0.00m 0.00m"]),
    ("example.", "HINFO", ['"PC" "Linux"']),
    ("example.", "RP", ["admin.example. txt.example."]),
    ("example.", "APL", ["1:192.168.32.0/21 !1:192.168.38.0/28"]),
    ("example.", "TYPE65280", [r"\# 4 01020304"]),
]


def rrset(owner, rrtype, rdatas):
    return dns.rrset.from_text_list(owner, 300, "IN", rrtype, rdatas)


def response(records, question=("www.example.", "A")):
    message = dns.message.make_response(dns.message.make_query(*question, id=1))
    message.flags |= dns.flags.AA
    for i, record in enumerate(records):
        (message.answer, message.authority, message.additional)[i % 3].append(rrset(*record))
    return message


def key_ring(algorithm):
    return dns.tsig.Key(f"{algorithm}.key.", b"0123456789abcdef0123456789abcdef",
                        "hmac-md5.sig-alg.reg.int." if algorithm == "hmac-md5" else algorithm)


def signed(message, algorithm):
    message.use_tsig(key_ring(algorithm), fudge=65535)
    return message


def message_seeds():
    yield "query", dns.message.make_query("www.example.", "A", id=1)
    options = [dns.edns.GenericOption(10, bytes(range(8))), dns.edns.GenericOption(3, b"")]
    yield "edns", dns.message.make_query("www.example.", "DNSKEY", want_dnssec=True,
                                         payload=1232, options=options, id=1)
    notify = dns.message.make_query("example.", "SOA", id=2)
    notify.set_opcode(dns.opcode.NOTIFY)
    yield "notify", notify
    yield "nsid", response([]), [dns.edns.GenericOption(3, b"ns1"), dns.edns.GenericOption(15, b"\0\x12x")]
    yield "all", response(RECORDS)
    for i in range(0, len(RECORDS), 4):
        yield f"some-{i}", response(RECORDS[i:i + 4])
    update = dns.update.UpdateMessage("example.")
    update.id = 3
    update.present("www")
    update.absent("new", "A")
    update.replace("new", 300, "A", "192.0.2.9")
    update.delete("old")
    yield "update", update


def tsig_seeds():
    for algorithm in ("hmac-md5", "hmac-sha256"):
        yield f"query-{algorithm}", signed(dns.message.make_query("example.", "SOA", id=1), algorithm)
    yield "unknown-algorithm", signed(dns.message.make_query("a.", "A", id=1), "hmac-sha512")
    yield "answer", signed(response(RECORDS[:3]), "hmac-sha256")
    yield "unsigned", response(RECORDS[:2])
    update = dns.update.UpdateMessage("example.")
    update.id = 3
    update.add("new", 300, "A", "192.0.2.9")
    yield "update", signed(update, "hmac-sha256")


def update_seeds():
    def update():
        message = dns.update.UpdateMessage("example.")
        message.id = 3
        return message

    conditions = update()
    conditions.present("web")
    conditions.present("web", "A", "192.0.2.80")
    conditions.present("www", "CNAME")
    conditions.absent("new")
    conditions.absent("web", "TXT")
    conditions.add("new", 300, "TXT", '"x"')
    yield "conditions", conditions
    removals = update()
    removals.delete("web", "A", "192.0.2.80")
    removals.delete("text", "TXT")
    removals.delete("a.b.c")
    removals.delete("@", "NS", "ns2.example.")
    yield "removals", removals
    additions = update()
    for owner, rrtype, rdatas in RECORDS:
        if rrtype not in ("SOA", "RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY"):
            additions.add(f"x.{owner}" if owner.endswith("example.") else "arpa", 300, rrtype, *rdatas)
    yield "additions", additions
    soa = update()
    soa.replace("@", 300, "SOA", "ns1 admin 4000 3600 600 86400 60")
    soa.add("web", 300, "CNAME", "other")
    soa.add("www", 300, "CNAME", "other")
    soa.delete("@")
    yield "soa", soa


def transfer_seeds():
    """Mode, then messages behind their lengths: tests/fuzz/transfer.cpp."""
    def soa(serial):
        return ("example.", "SOA", [f"ns1.example. admin.example. {serial} 3600 600 86400 60"])

    def stream(mode, *messages):
        out = bytes([mode])
        for records in messages:
            message = dns.message.make_response(dns.message.make_query("example.", "IXFR" if mode & 1 else "AXFR", id=1))
            # One rrset a record: the order counts, and SOA records must not be merged.
            message.answer = [rrset(*record) for record in records]
            wire = message.to_wire()
            out += len(wire).to_bytes(2, "big") + wire
        return out

    zone = [("example.", "NS", ["ns1.example."]), ("ns1.example.", "A", ["192.0.2.1"]),
            ("web.example.", "A", ["192.0.2.80"])]
    yield "axfr", stream(2, [soa(9), *zone, *RECORDS[2:12], soa(9)])
    yield "axfr-in-parts", stream(2, [soa(9), zone[0]], zone[1:], [soa(9)])
    yield "ixfr", stream(3, [soa(9), soa(7), ("web.example.", "A", ["192.0.2.80"]), soa(8),
                             ("new.example.", "A", ["192.0.2.9"]), soa(8), soa(9), ("x.example.", "TXT", ['"y"']), soa(9)])
    yield "ixfr-in-parts", stream(3, [soa(8), soa(7)], [("web.example.", "A", ["192.0.2.80"])], [soa(8)], [soa(8)])
    yield "ixfr-whole", stream(3, [soa(9), *zone, soa(9)])
    yield "ixfr-current", stream(3, [soa(7)])


def main():
    dns.tsig.time = type("Clock", (), {"time": staticmethod(lambda: 1_700_000_000)})
    dns.message.time = type("Clock", (), {"time": staticmethod(lambda: 1_700_000_000)})
    for target, seeds in (("message", message_seeds()), ("tsig", tsig_seeds()), ("update", update_seeds()),
                          ("transfer", transfer_seeds())):
        folder = os.path.join(sys.argv[1], target)
        os.makedirs(folder, exist_ok=True)
        for name, message, *options in seeds:
            if options:
                message.use_edns(0, 0, 1232, options=options[0])
            with open(os.path.join(folder, name), "wb") as file:
                file.write(message if isinstance(message, bytes) else message.to_wire())


if __name__ == "__main__":
    main()
