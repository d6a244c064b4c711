"""Zone files: every type through text, store, transfer and text again as BIND and Knot read and write it; files
that BIND refuses are refused; no file, whatever it includes, ends the server or its other zones."""

import functools
import os
import re
import socket
import struct
import subprocess

import dns.query
import pytest

import servers
import wire

SAMPLES = servers.SOURCE / "tests/data/rdata/samples.txt"
APEX = (b"example",)
HEAD = "$TTL 300\n@ SOA ns admin 2026 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"

# BIND's checks that are not about reading: host names, addresses of targets, and so on.
READING_ONLY = "-i none -k ignore -m ignore -M ignore -n ignore -r ignore -S ignore -W ignore".split()

# Below an apex no server takes another SOA. (Each zone here has one.)
ONLY_AT_AN_APEX = {"SOA"}
# What 9.18 cannot read by name, or does not want to, it gets in the form of RFC 3597.
NOT_FOR_BIND = {
    "MD": "refused as obsolete, in this form too", "MF": "refused as obsolete, in this form too",
}
GENERIC_FOR_BIND = {
    "UNSPEC": "text form of its own", "CLA": "newer", "IPN": "newer",
    "HTTPS 1 . alpn=h2 ohttp": "newer key", "HTTPS 1 . tls-supported-groups=29,23": "newer key",
    "SVCB 1 . docpath=a,b": "newer key", "SVCB 1 . docpath": "newer key",
}


class Sample:
    """A record of the corpus: at an owner of its own, in text and on the wire."""

    def __init__(self, number, text, octets):
        self.owner = f"r{number}"
        self.text, self.octets = text, octets
        self.type = text.split()[0]

    def line(self):
        return f"{self.owner} 300 {self.text}\n"

    def generic_line(self, number):
        return f"{self.owner} 300 TYPE{number} \\# {len(self.octets)} {self.octets.hex()}\n"


@functools.cache
def samples():
    """The samples that may stand below an apex."""
    found, text = [], None
    for line in SAMPLES.read_text().splitlines():
        if line and line[0] not in "; ":
            text = line
        elif line.startswith("  #") and text.split()[0] not in ONLY_AT_AN_APEX:
            found.append(Sample(len(found), text, bytes.fromhex(line[3:])))
    return found


def zone_text(listed, generic=(), numbers=None):
    """The zone file of these samples; those with their type or text in `generic` in the form of RFC 3597."""
    def line(one):
        is_generic = one.type in generic or one.text in generic
        return one.generic_line(numbers[one.owner]) if is_generic else one.line()
    return HEAD + "".join(map(line, listed))


def transfer(server, zone="example"):
    """The records of an AXFR: Record → how often, without the SOA at the end."""
    query = wire.make_query(tuple(zone.encode().split(b".")), 252)
    records = []
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client, client.makefile("rb") as stream:
        client.sendall(struct.pack(">H", len(query)) + query)
        while sum(record.type == wire.SOA for record in records) < 2:
            message = wire.parse(stream.read(*struct.unpack(">H", stream.read(2))))
            assert message.rcode == 0, message
            records += message.answer
    return sorted(records[:-1])


def compiled(folder, path, *options):
    """What named-compilezone makes of a file: the records in its raw form, which no text reader of ours is part of."""
    raw = folder / "raw"
    done = subprocess.run(["named-compilezone", *READING_ONLY, *options, "-F", "raw", "-o", str(raw), "example", str(path)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return read_raw(raw.read_bytes())


def read_raw(raw):
    """BIND's raw form: 24 octets, then RRsets of (length 4, class 2, type 2, covers 2, TTL 4, count 4, owner, RDATAs),
    the latter behind lengths of 2."""
    records, at = [], 24
    while at < len(raw):
        _, _, rrtype, _, ttl, count = struct.unpack_from(">IHHHII", raw, at)
        at += 18
        owner = None
        for _ in range(count + 1):
            length = struct.unpack_from(">H", raw, at)[0]
            octets = raw[at + 2:at + 2 + length]
            at += 2 + length
            if owner is None:
                owner = wire.decode_name(octets)
                continue
            layout = wire.LAYOUTS.get(rrtype)
            canonical = wire.canonical_rdata(octets, 0, length, layout) if layout and length else octets
            records.append(wire.Record(owner, rrtype, ttl, canonical))
    return sorted(records)


def differences(ours, theirs):
    return {"ours only": [r for r in ours if r not in theirs][:10], "theirs only": [r for r in theirs if r not in ours][:10]}


NOTHING = {"ours only": [], "theirs only": []}
OPEN = {"allow-transfer": [{"address": "127.0.0.0/8"}]}


@pytest.fixture
def corpus(pando, tmp_path):
    """A primary with all samples; gives it and, by owner, the number of the type."""
    path = tmp_path / "corpus"
    path.write_text(zone_text(samples()))
    server = pando([{"name": "example", "file": str(path), **OPEN}]).start("example")
    numbers = {record.owner[0].decode(): record.type for record in transfer(server)}
    return server, numbers


def test_each_type_is_served_as_bind_reads_it(corpus, tmp_path):
    server, numbers = corpus
    path = tmp_path / "for-bind"
    path.write_text(zone_text([one for one in samples() if one.type not in NOT_FOR_BIND], GENERIC_FOR_BIND, numbers))
    ours = [record for record in transfer(server) if not is_one_of(record, NOT_FOR_BIND)]
    assert len(ours) == len(samples()) - len(NOT_FOR_BIND) + 3  # SOA, NS and its address
    assert differences(ours, compiled(tmp_path, path)) == NOTHING


def is_one_of(record, types):
    """The record is that of a sample of one of these types."""
    return any(one.type in types and (one.owner.encode(), *APEX) == record.owner for one in samples())


def test_the_samples_of_refused_types_are_served_too(corpus):
    server, _ = corpus
    served = {record.owner[0].decode(): record for record in transfer(server)}
    left_out = [one for one in samples() if one.type in NOT_FOR_BIND]
    assert len(left_out) == len(NOT_FOR_BIND)
    for one in left_out:
        assert served[one.owner].rdata == one.octets


# Types and forms of text that Knot 3.2 does not know; it gets them in the form of RFC 3597.
GENERIC_FOR_KNOT = {
    *"A6 AMTRELAY ATMA AVC BRID CLA DLV DOA DSYNC EID GID GPOS HHIT HIP IPN ISDN KEYDATA MB MD MF MG MR NIMLOC".split(),
    *"NINFO NSAP NSAP-PTR NULL NXT PX RESINFO RKEY SIG SINK TA TALINK UID UINFO UNSPEC WALLET WKS X25".split(),
    "KEY ZONE|SIG1 DNSSEC RSASHA1 AQPSKmynfzW4kyBv015MUG2DeIQ3",  # flags and protocol by name
    "KEY NOKEY 3 5",
    "NSEC3PARAM SHA-1 0 0 -",  # numbers by name
    "DS 60485 RSASHA256 SHA-256 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B83 83F6A1E4469DA50A",
    "NSEC \\000.example.com. NS SOA CAA TA TYPE65534",  # TA in a bitmap
    "HTTPS 1 . key5 key6667=",  # a known key by number
    "HTTPS 1 . dohpath=/dns-query{?dns}",  # newer keys
    "HTTPS 1 . alpn=h2 ohttp", "HTTPS 1 . tls-supported-groups=29,23", "SVCB 1 . docpath=a,b", "SVCB 1 . docpath",
}


def test_each_type_is_served_as_knot_reads_it(corpus, tmp_path, peers):
    server, numbers = corpus
    known = {one.type for one in samples()} | {one.text for one in samples()}
    assert known >= GENERIC_FOR_KNOT
    path = tmp_path / "for-knot"
    path.write_text(zone_text(samples(), GENERIC_FOR_KNOT, numbers))
    knot = peers(servers.Knot(
        tmp_path / "knot", {"example": str(path)},
        text="acl:\n  - id: anyone\n    action: transfer\n    address: 127.0.0.1\n",
        zone_options={"example": "    acl: anyone\n"}), "example")
    assert differences(without_ttl_of_signatures(transfer(server)),
                       without_ttl_of_signatures(transfer(knot))) == NOTHING


def without_ttl_of_signatures(records):
    """Knot gives one that stands alone the TTL that was signed."""
    return [record._replace(ttl=0) if record.type == wire.RRSIG else record for record in records]


@pytest.fixture
def copy(corpus, pando, tmp_path):
    """The file that a secondary writes of the corpus."""
    server, _ = corpus
    path = tmp_path / "copy"
    secondary = pando([{"name": "example", "primaries": ["primary"], "file": str(path), **OPEN}],
                      remotes=[{"name": "primary", "address": [f"127.0.0.1@{server.port}"]}])
    secondary.start("example")
    servers.wait_until("the copy is there", path.exists)
    return path


def record_lines(text):
    """Type and RDATA in text, by owner without the apex."""
    found = {}
    for line in text.splitlines():
        if line and line[0] not in ";$":
            owner, _, _, rrtype, *rdata = line.split(None, 4)
            found[owner.removesuffix(".example.")] = (rrtype, rdata[0] if rdata else "")
    return found


def text_by_bind(path):
    done = subprocess.run(["named-compilezone", *READING_ONLY, "-s", "full", "-o", "-", "example", str(path)],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return record_lines(done.stdout)


def test_bind_reads_what_we_write(corpus, copy, tmp_path):
    server, numbers = corpus
    lines = copy.read_text().splitlines(keepends=True)
    unreadable = {one.owner for one in samples() if one.type in NOT_FOR_BIND or one.type in GENERIC_FOR_BIND
                  or one.text in GENERIC_FOR_BIND}
    kept = [line for line in lines if line.split()[0] not in unreadable]
    assert len(kept) == len(lines) - len(unreadable)
    path = tmp_path / "for-bind"
    path.write_text("".join(kept))
    ours = [record for record in transfer(server) if record.owner[0].decode() not in unreadable]
    assert differences(ours, compiled(tmp_path, path)) == NOTHING


# Where BIND 9.18 writes RDATA otherwise, beyond white space in long fields.
WRITTEN_OTHERWISE = {
    "NXT big.example. A MX SIG NXT TYPE127": "a type without a name as a bare number",
    "RRSIG TYPE65000 ECDSAP256SHA256 0 86400 4102444800 0 65535 . AQID BAUG": "the year 1963 for 2100",
    "HTTPS 1 . dohpath=/dns-query{?dns}": "key7: newer",
    "KEYDATA \\# 2 0102": "with a comment",
}


def test_we_write_rdata_as_bind_does(corpus, copy, tmp_path):
    _, numbers = corpus
    kept = [one for one in samples() if one.type not in NOT_FOR_BIND]
    path = tmp_path / "for-bind"
    path.write_text(zone_text(kept, GENERIC_FOR_BIND, numbers))
    ours, theirs = record_lines(copy.read_text()), text_by_bind(path)
    otherwise = {one.text for one in kept
                 if not {one.type, one.text} & GENERIC_FOR_BIND.keys()
                 and [word.replace(" ", "") for word in ours[one.owner]]
                 != [word.replace(" ", "") for word in theirs[one.owner]]}
    assert otherwise == WRITTEN_OTHERWISE.keys()


# Files that are refused
# ------------------------------------------------------------------------------------


LONG_LABEL = "a" * 64
LONG_NAME = ".".join(["a" * 63] * 4)

# What goes wrong in the line behind HEAD.
BAD_LINES = [
    # words and lines
    "x TXT \"abc", "x TXT ( a", "x TXT a )", "x A ( 192.0.2.1 ) )", "x TXT a\\", "x TXT a\0b", "\1\2\3\4",
    # names
    f"{LONG_LABEL} A 192.0.2.1", f"{LONG_NAME} A 192.0.2.1", "a..b A 192.0.2.1", "a\\256 A 192.0.2.1", "x NS a..b",
    # heads
    "x NOSUCH 1", "x CH TXT a", "x HS TXT a", "x NONE TXT a", "x ANY A 192.0.2.1", "x CLASS5 A 192.0.2.1",
    "x IN IN A 192.0.2.1", "x 1 2 A 192.0.2.1", "x 1y A 192.0.2.1", "x 4294967296 A 192.0.2.1", "x -1 A 192.0.2.1",
    "x \"1\" A 192.0.2.1", "x \"A\" 192.0.2.1", "x",
    # types that are not for zones
    "x TYPE0 \\# 0", "x ANY a", "x TYPE255 \\# 0", "x OPT \\# 0", "x TYPE250 \\# 0", "x AXFR", "x TYPE128 \\# 0",
    "x TYPE65536 \\# 0", "x NXNAME",
    # RFC 3597
    "x TYPE1 \\# 4 C00002", "x A \\# 3 C00002", "x TYPE65280 \\# 1 C", "x TYPE65280 \\# 1 C0C0", "x TYPE65280 abc",
    # directives
    "$TTL", "$TTL soon", "$TTL 1 2", "$ORIGIN", "$ORIGIN a b", "$ORIGIN a..b", "$NOSUCH 1",
    "$INCLUDE", "$INCLUDE nowhere", "$INCLUDE fine a..b", "$INCLUDE fine x y",
    "$GENERATE 1-9", "$GENERATE 9-1 h$ A 192.0.2.$", "$GENERATE 1-2/0 h$ A 192.0.2.$",
    "$GENERATE 1-2 h${0,3,q} A 192.0.2.$", "$GENERATE 254-257 h$ A 192.0.2.$",
    # RDATA
    "x A", "x A 192.0.2.1 192.0.2.2", "x A 2001:db8::1", "x A 192.0.2", "x A 192.0.2.010", "x A 0xC0000201",
    "x A \"192.0.2.1\"", "x AAAA fe80::1%lo", f"x TXT {'a' * 256}", f"x TXT {('a' * 255 + ' ') * 257}",
    "x MX mail", "x MX 65536 mail", "x SRV 1 2 mail", "x NAPTR 1 1 u sip", "x LOC 91 N 1 E 0m", "x URI 10 1",
    "x CAA 0 is-sue \"x\"", "x CAA 256 issue \"x\"", "x TLSA 3 1 1 abc", "x SMIMEA 3", "x SSHFP 4 2", "x OPENPGPKEY",
    "x CERT NOSUCH 1 8 AQ==", "x APL 1:192.0.2.0/33", "x HIP 2 20 !!", "x IPSECKEY 10 1 2 :: AQ==", "x CSYNC 1",
    "x EUI48 00-00-5e-00-53", "x L32 10 10.1.2", "x NID 10 1:2:3", "x ZONEMD 1 1 1 ab", "x DS 1 8 2 abc", "x DS 1 8 2 ab",
    "x DNSKEY 256 3 8 @@@", "x NSEC y NOSUCH", "x NSEC3 1 0 0 - !!",
    "x RRSIG A 8 2 300 20261301000000 20260101000000 1 example. AQ==",
    # RFC 9460 §2.2, §8
    "x SVCB 1 . port=1 port=2", "x SVCB 1 . mandatory=port", "x SVCB 1 . mandatory=mandatory", "x HTTPS 1 . ipv4hint=::1",
    "x HTTPS 1 . ipv6hint=192.0.2.1", "x HTTPS 1 . alpn=\"\"", "x HTTPS 1 . no-default-alpn", "x SVCB 1 . key65536=a",
    "x SVCB 1 . port=65536", "x SVCB 1 . no-default-alpn=x alpn=h2", "x SVCB 65536 .", "x SVCB 1",
    # what cannot stand at its name
    "x SOA ns admin 1 2 3 4 5", "@ CNAME x", "ns CNAME x", "@ SOA ns admin 2 3600 600 86400 300",
    "x CNAME y\nx CNAME z", "x CNAME y\nx A 192.0.2.1", "x A 192.0.2.1\nx CNAME y", "x DNAME y\nx DNAME z",
    "x CNAME y\nx DNAME z",
]

# What is wrong with a file as a whole, and the line that is blamed, if any can be.
BAD_FILES = {
    "nothing": ("", None),
    "only a comment": ("; x\n", None),
    "no SOA": ("$TTL 1\n@ NS ns\nns A 192.0.2.1\n", None),
    "no NS": ("$TTL 1\n@ SOA ns admin 1 2 3 4 5\n", None),
    "no owner": (" A 192.0.2.1\n" + HEAD, 1),
    "no TTL": ("@ NS ns\n@ SOA ns admin 1 2 3 4 5\n", 1),
    "serial above 32 bits": (HEAD.replace("2026", "4294967296"), 2),
    "negative serial": (HEAD.replace("2026", "-1"), 2),
    "short SOA": (HEAD.replace(" 300\n@ NS", "\n@ NS"), 2),
    "SOA of another name": ("$TTL 1\ntest. SOA ns admin 1 2 3 4 5\n", 2),
}

# Refused by us alone.
STRICTER = {
    "x.test. A 192.0.2.1": "outside the zone: BIND leaves it out, with a warning; what was written is to be served",
}
# Refused by BIND alone.
LAXER = {
    "* NS ns": "undefined in RFC 4592 §4.2, which forbids nothing; NSD serves it too",
    "x MD y": "obsolete, yet a transfer may bring one, and the copy of a secondary must read back",
    "x MF y": "the same",
    "@ NS ns2": "a name server without address: pandoctl warns; it is no reason to serve nothing",
    "@ NS c\nc CNAME ns": "a name server that is an alias (RFC 2181 §10.3): the same",
    "@ DNAME other.": "hides the address of a name server: the same",
    f"@ DS 1 8 2 {'AB' * 32}": "RFC 4035 §2.4 has only a SHOULD NOT: nobody asks for it here",
    "x NSEC3 1 0 0 - 2vptu5timamqttgl4luu9kg21e0aor3s": "its owner is no hash: it denies nothing",
}


def is_refused_by_bind(path):
    done = subprocess.run(["named-checkzone", "example", str(path)], cwd=path.parent, capture_output=True, timeout=120)
    return done.returncode != 0


def refusals(path):
    """What pandoctl says against a file, line by line."""
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "zone", "check", "example", str(path)],
                          capture_output=True, text=True, errors="replace", timeout=120)
    assert done.returncode in (0, 1), done.stderr
    said = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert bool(said) == (done.returncode == 1)
    return said


@pytest.fixture
def written(tmp_path):
    """Writes a zone file; another that may be included lies beside it."""
    (tmp_path / "fine").write_text("s A 192.0.2.1\n")

    def write(text):
        path = tmp_path / "zone"
        path.write_text(text)
        return path

    return write


def test_a_good_file_is_refused_by_nobody(written):
    path = written(HEAD + "x A 192.0.2.9\n$INCLUDE fine\n")
    assert not is_refused_by_bind(path) and refusals(path) == []


@pytest.mark.parametrize("line", BAD_LINES, ids=lambda line: line[:40].encode("unicode_escape").decode())
def test_a_line_that_bind_refuses_is_refused_with_its_number(written, line):
    path = written(HEAD + line + "\n")
    assert is_refused_by_bind(path)
    number = 5 + line.count("\n")
    assert refusals(path)[0].startswith(f"{path}:{number}: ")


@pytest.mark.parametrize("what", BAD_FILES)
def test_a_file_that_bind_refuses_is_refused(written, what):
    text, number = BAD_FILES[what]
    path = written(text)
    assert is_refused_by_bind(path)
    assert refusals(path)[0].startswith(f"{path}:{number}: " if number else f"{path}: ")


@pytest.mark.parametrize("line", STRICTER)
def test_where_we_are_stricter(written, line):
    path = written(HEAD + line + "\n")
    assert not is_refused_by_bind(path)
    assert refusals(path)[0].startswith(f"{path}:5: ")


@pytest.mark.parametrize("line", LAXER)
def test_where_we_are_laxer(written, line):
    path = written(HEAD + line + "\n")
    assert is_refused_by_bind(path)
    assert refusals(path) == []


# $INCLUDE of what must not be read
# --------------------------------------------------------------------------------------


def no_file(folder):
    return folder / "nowhere"


def directory(folder):
    return folder


def fifo(folder):
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


def fifo_with_a_writer(folder):
    """Somebody holds it open, writes a record and never ends."""
    os.mkfifo(folder / "fifo")
    end = os.open(folder / "fifo", os.O_RDWR)
    os.write(end, b"s A 192.0.2.1\n")
    return folder / "fifo"


def device(_):
    return "/dev/zero"


def terminal(_):
    return "/dev/tty"


def unix_socket(folder):
    with socket.socket(socket.AF_UNIX) as one:
        one.bind(str(folder / "socket"))
    return folder / "socket"


def itself(folder):
    return folder / "bad"


def link_to_itself(folder):
    (folder / "link").symlink_to(folder / "bad")
    return folder / "link"


def link_to_nothing(folder):
    (folder / "link").symlink_to(folder / "link")
    return folder / "link"


def loop(folder):
    """Two files that include each other."""
    (folder / "a").write_text("$INCLUDE b\n")
    (folder / "b").write_text("$INCLUDE a\n")
    return folder / "a"


def long_chain(folder):
    """Each file includes the next one."""
    for number in range(2000):
        (folder / f"c{number}").write_text(f"$INCLUDE c{number + 1}\n")
    (folder / "c2000").write_text("s A 192.0.2.1\n")
    return folder / "c0"


def tree(folder):
    """Each of 20 files includes the next one twice."""
    for number in range(20):
        (folder / f"t{number}").write_text(f"$INCLUDE t{number + 1}\n$INCLUDE t{number + 1}\n")
    (folder / "t20").write_text("s A 192.0.2.1\n")
    return folder / "t0"


def process(_):
    """Grows while it is read: a file of the kernel's."""
    return "/proc/self/maps"


def name_with_nul(_):
    return "a\\000b"


HOSTILE = [no_file, directory, fifo, fifo_with_a_writer, device, terminal, unix_socket, itself, link_to_itself, link_to_nothing,
           loop, long_chain, tree, process, name_with_nul]


@pytest.mark.parametrize("prepare", HOSTILE, ids=lambda function: function.__name__)
def test_a_hostile_include_is_refused_while_the_others_are_served(pando, tmp_path, prepare):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(HEAD)
    bad.write_text(HEAD + f'$INCLUDE "{prepare(tmp_path)}"\n')
    assert ":" in refusals(bad)[0]
    zones = [{"name": "bad.test", "file": str(bad)}, {"name": "good.test", "file": str(good)}]
    server = pando(zones).start("good.test")
    status = servers.wait_until("the bad zone was tried", lambda: with_problem(server, "bad.test"))
    assert re.search(r"^/.*:[0-9]+: ", status["problem"])
    assert server.ask("bad.test", "SOA").rcode() == 2
    good.write_text(HEAD.replace("2026", "2027"))  # both are read again
    server.control("reload")
    servers.wait_until("the good zone was reloaded", lambda: server.serial("good.test") == 2027)
    bad.write_text(HEAD)
    server.control("reload")
    servers.wait_until("the mended zone is served", lambda: server.serial("bad.test") == 2026)


def with_problem(server, zone):
    status = server.control("zone", "status", zone)
    return status if status["state"] == "not-loaded" and status.get("problem") else None


def test_a_transfer_spells_the_apex_as_its_file_does(pando, tmp_path):
    path = tmp_path / "zone"
    path.write_text("$TTL 300\nSpelt.TEST. SOA ns admin 1 3600 600 86400 300\nspelt.test. NS ns.Spelt.TEST.\n"
                    "ns.spelt.test. A 192.0.2.1\n")
    server = pando([{"name": "spelt.test", "file": str(path),
                     "allow-transfer": [{"address": "127.0.0.0/8"}]}]).start("spelt.test")
    transfer = dns.query.xfr("127.0.0.1", "spelt.test", port=server.port, relativize=False, lifetime=60)
    owners = [str(rrset.name) for message in transfer for rrset in message.answer]
    assert owners == ["Spelt.TEST.", "Spelt.TEST.", "ns.Spelt.TEST.", "Spelt.TEST."]
