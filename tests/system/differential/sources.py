"""Zones of the differential suite: the files in zones/, and two that are better made than written."""

import pathlib
import re

import dns.rdatatype

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE.parents[1] / "data/rdata/samples.txt"

HEAD = """$TTL 3600
@ SOA ns host 1 3600 900 604800 300
@ NS ns
ns A 192.0.2.200
"""

# Types whose place in a zone is special, most of which the other zones have, or that BIND refuses.
SPECIAL = {"MD", "MF", "SOA", "NS", "CNAME", "DNAME", "DS", "RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY", "OPT",
           "NXT", "SIG", "KEY", "TSIG", "TKEY", "NULL", "CDS", "CDNSKEY", "ZONEMD"}
# Types that dnspython does not know by name.
NUMBERS = {"RESINFO": 261, "WALLET": 262, "CLA": 263, "IPN": 264, "DSYNC": 66, "HHIT": 67, "BRID": 68,
           "RKEY": 57, "TALINK": 58, "DOA": 259, "EID": 31, "NIMLOC": 32, "ATMA": 34, "SINK": 40,
           "UINFO": 100, "UID": 101, "GID": 102, "KEYDATA": 65533}


def type_number(text):
    try:
        return int(dns.rdatatype.from_text(text))
    except dns.rdatatype.UnknownRdatatype:
        return NUMBERS[text]


def all_types():
    """A name for each type, with the RDATA of the codec's samples in the form of RFC 3597."""
    sets, rrtype = {}, None
    for line in SAMPLES.read_text().splitlines():
        if line.startswith("  # "):
            sets.setdefault(rrtype, []).append(line.split()[1] if len(line.split()) > 1 else "")
        elif line and line[0] not in "; ":
            rrtype = line.split()[0]
    lines = [HEAD, "; every type, one a name, and three that nobody knows\n"]
    for rrtype, octets in sets.items():
        if rrtype in SPECIAL or re.match(r"TYPE\d+$", rrtype):
            continue
        for rdata in dict.fromkeys(octets):
            if len(rdata) < 800:
                lines.append(f"t-{rrtype.lower()} TYPE{type_number(rrtype)} \\# {len(rdata) // 2} {rdata}\n")
    for number in (1234, 65280, 65534):
        lines.append(f"t-{number} TYPE{number} \\# 4 0a0b0c0d\nt-{number} TYPE{number} \\# 0\n")
    lines.append("together A 192.0.2.201\ntogether TYPE65280 \\# 1 00\n*.wild TYPE65280 \\# 2 0102\n")
    return "".join(lines)


def much_opt_out():
    """Few names with NSEC3 under opt-out, many without: closest enclosers that cannot be proven."""
    lines = [HEAD]
    lines += [f"ins{i:03} NS ns.elsewhere.\n" for i in range(600)]
    lines.append("""; empty non-terminals that lead to insecure delegations only
ins.ent NS ns.elsewhere.
ins.a.b.c NS ns.elsewhere.
ins2.b.c NS ns.elsewhere.
ins.*.wild NS ns.elsewhere.
ins.w.wild2 NS ns.elsewhere.
*.wild2 TXT "wild beside what cannot be proven"
ins.under NS ns.elsewhere.
x.host.under A 192.0.2.202
ins.x.mixed NS ns.elsewhere.
sec.y.mixed NS ns.elsewhere.
sec.y.mixed DS 1 15 2 1111111111111111111111111111111111111111111111111111111111111111
sec NS ns.elsewhere.
sec DS 1 15 2 1111111111111111111111111111111111111111111111111111111111111111
toins CNAME www.ins000
toent CNAME ent
tonx CNAME nx.ent
*.wc CNAME nx.ent
*.wci CNAME b.c
d DNAME c
d2 DNAME ins001
""")
    return "".join(lines)


def write_all(folder):
    """Source files of all zones; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "ty.zone").write_text(all_types())
    (folder / "oo.zone").write_text(much_opt_out())
    return sorted([*(HERE / "zones").glob("*.zone"), *folder.glob("*.zone")], key=lambda path: path.name)
