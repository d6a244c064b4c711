"""`pandoctl zone sign` and the keys of other servers: real tools verify the signed zones, and BIND's signer makes the same
names, types, chain and TTLs of the same source."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import dns.name
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import dns.tokenizer
import dns.zone
import dns.zonefile
import pytest

import servers
from signed_zones import ZONE, run

SHARED = pathlib.Path("/work/shared/data")
KEYS = servers.SOURCE / "tests/data/dnssec/keys"
VERIFIERS = {"dnssec-verify": ["dnssec-verify", "-q", "-x", "-o", "ZONE", "FILE"],
             "ldns-verify-zone": ["ldns-verify-zone", "FILE"],
             "kzonecheck": ["kzonecheck", "-d", "on", "-o", "ZONE", "FILE"]}
HEAD = "$TTL 300\n@ 600 SOA ns1 admin 7 3600 600 86400 60\n@ NS ns1\nns1 A 192.0.2.1\n"
DS = "12345 8 2 0123456789012345678901234567890123456789012345678901234567890123"

ODD = {
    "small": HEAD,
    "usual": ZONE,
    "wildcards": HEAD + "* TXT all\n*.a TXT a\nx.*.b TXT below\n*.*.c A 192.0.2.1\n",
    "empty non-terminals": HEAD + "a.b.c.d A 192.0.2.1\nz.b.c.d A 192.0.2.1\nx.y NS ns1\nq.r.s.secure NS ns1\n",
    "delegations": HEAD + f"s NS ns.s\ns DS {DS}\ns TXT hidden\nns.s A 192.0.2.2\nu NS ns.u\nns.u A 192.0.2.3\n"
                          f"ns.u AAAA ::1\nd.u NS ns1\nd.u DS {DS}\nv NS ns.u\n*.u TXT hidden\n",
    "DNAME": HEAD + "d DNAME other.test.\nd A 192.0.2.1\nx.d A 192.0.2.2\ny.x.d NS ns1\ne CNAME d\n",
    "DNAME at the apex": HEAD.replace("ns1 A 192.0.2.1\n", "").replace("NS ns1", "NS ns1.other.") + "@ DNAME other.test.\nx A 192.0.2.1\n",
    "all octets": HEAD + "".join(f"a\\{value:03}b TXT x\n" for value in range(256)) + "".join(
        f"\\{value:03} A 192.0.2.1\n" for value in range(0, 256, 3)),
    "long names": HEAD + ".".join(["x" * 63, "y" * 63, "z" * 63, "w" * 52]) + " A 192.0.2.1\n" + ".".join("a" * 120) + " A 192.0.2.1\n",
    "types": HEAD + "t TYPE65535 \\# 2 0102\nt TYPE65280 \\# 0\nt CAA 0 issue \"ca.test\"\nt TYPE256 \\# 5 0001000161\n"
                    "t TXT a\nu TYPE65535 \\# 0\n",
    "mixed case": HEAD + "Upper A 192.0.2.1\nuPPER A 192.0.2.2\nX.Upper MX 10 MAIL.Upper\nR SRV 1 2 3 Target.Test.\nP PTR Case.Test.\n",
    "TTLs": HEAD.replace("@ 600 SOA", "@ 30 SOA") + "a 0 A 192.0.2.1\nb 86400 TXT x\nc 2592000 TXT y\n",
    "large sets": HEAD + "".join(f"many A 10.0.{number // 250}.{number % 250}\n" for number in range(400)) + "".join(
        f"texts TXT \"{'x' * (number % 200)}{number}\"\n" for number in range(200)),
}


def pandoctl(*words, code=0, folder=None):
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), *map(str, words)], capture_output=True, text=True,
                          timeout=300, cwd=folder, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done


def make_key(folder, *options, zone="one.test"):
    return pathlib.Path(folder, pandoctl("dnssec", "key", "make", zone, *options, folder=folder).stdout.strip())


def sign(folder, text, *options, keys=None):
    (folder / "plain").write_text(text)
    keys = keys or ["--key", make_key(folder)]
    done = pandoctl("zone", "sign", folder / "plain", *keys, "--out", folder / "signed", *options)
    assert re.match(r"one\.test\.: signed, serial \d+, ", done.stdout), done.stdout
    return folder / "signed"


def verify(path, zone="one.test", tools=VERIFIERS):
    """By all tools that are installed, and by ours. Returns how many others there are."""
    assert pandoctl("zone", "check", zone, path).returncode == 0
    found = [tool for tool in tools if shutil.which(tool)]
    for tool in found:
        words = [{"ZONE": zone, "FILE": str(path)}.get(word, word) for word in VERIFIERS[tool]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, (words, done.stdout[-2000:], done.stderr[-2000:])
    return len(found)


def records_of(path, zone="one.test"):
    """{(owner, type, covered): (TTL, data without signatures and keys)} of a zone, in lower case."""
    found = {}
    loaded = dns.zone.from_file(str(path), origin=zone, relativize=False, check_origin=False)
    for owner, rdataset in loaded.iterate_rdatasets():
        key = (owner.to_text().lower(), dns.rdatatype.to_text(rdataset.rdtype), dns.rdatatype.to_text(rdataset.covers))
        if rdataset.rdtype == dns.rdatatype.RRSIG:
            data = sorted((rdata.algorithm, rdata.labels, rdata.original_ttl, rdata.key_tag, rdata.signer.to_text().lower())
                          for rdata in rdataset)
        elif rdataset.rdtype in (dns.rdatatype.NSEC, dns.rdatatype.NSEC3):
            data = sorted(rdata.to_text().lower() for rdata in rdataset)
        else:
            data = sorted(rdata.to_digestable() for rdata in rdataset)
        found[key] = (rdataset.ttl, data)
    return found


def signed_by_bind(folder, text, *options, zone="one.test"):
    """By a KSK and a ZSK of BIND's, whose files then are in `folder`."""
    (folder / "plain").write_text(text)
    keys = [run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", *ksk, zone, folder=folder) for ksk in (["-f", "KSK"], [])]
    run("dnssec-signzone", "-q", "-x", "-S", "-P", *options, "-o", zone, "-f", "by-bind", "-O", "full", "plain", folder=folder)
    return folder / "by-bind", [word for key in keys for word in ("--key", folder / f"{key}.private")]


DENIALS = {"NSEC": ([], []), "NSEC3": (["--nsec3"], ["-3", "-"]), "opt-out": (["--nsec3", "--opt-out"], ["-3", "-", "-A"]),
           "salt": (["--nsec3", "--iterations", "5", "--salt", "aAbB01"], ["-3", "aabb01", "-H", "5"])}


@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize("name", ODD)
def test_tools_verify_what_is_signed(tmp_path, name, denial):
    verify(sign(tmp_path, ODD[name], *DENIALS[denial][0]))


@pytest.mark.skipif(not shutil.which("dnssec-signzone"), reason="needs bind9-utils")
@pytest.mark.parametrize("denial", DENIALS)
@pytest.mark.parametrize("name", ODD)
def test_bind_makes_the_same_of_the_same_source(tmp_path, name, denial):
    options, theirs = DENIALS[denial]
    text = ODD[name]
    if denial != "NSEC":
        text = text.replace("w" * 52, "w" * 50)  # BIND hashes a wildcard below each name, which must fit
    by_bind, keys = signed_by_bind(tmp_path, text, *theirs)
    ours = records_of(sign(tmp_path, text, *options, keys=keys))
    theirs = records_of(by_bind)
    if name == "DNAME at the apex" and denial != "NSEC":
        # BIND signs data that the DNAME hides. Nothing else of the zone names them.
        del theirs["x.one.test.", "RRSIG", "A"]
    assert sorted(ours) == sorted(theirs)
    for key in ours:
        assert ours[key] == theirs[key], key


@pytest.mark.skipif(not shutil.which("dnssec-signzone"), reason="needs bind9-utils")
@pytest.mark.parametrize("path, zone", [(servers.SOURCE / "config/zones/example.com.zone", "example.com"),
                                        (servers.SOURCE / "config/zones/2.0.192.in-addr.arpa.zone", "2.0.192.in-addr.arpa"),
                                        (SHARED / "root-2021-05-19.zone", ".")], ids=lambda value: str(value)[-20:])
@pytest.mark.parametrize("denial", ["NSEC", "opt-out"])
def test_zones_of_the_tree_and_the_root(tmp_path, path, zone, denial):
    if not path.exists():
        pytest.skip(f"{path} is not here")
    text = "".join(line for line in path.read_text().splitlines(keepends=True)
                   if not re.search(r"\s(RRSIG|NSEC|DNSKEY|ZONEMD|TYPE63)\s", line))
    options, theirs = DENIALS[denial]
    by_bind, keys = signed_by_bind(tmp_path, text, *theirs, zone=zone)
    pandoctl("zone", "sign", tmp_path / "plain", *keys, *options, "--out", tmp_path / "signed")
    verify(tmp_path / "signed", zone, tools=["dnssec-verify", "ldns-verify-zone"])
    assert records_of(tmp_path / "signed", zone) == records_of(by_bind, zone)


@pytest.mark.parametrize("options", [("--algorithm", "RSASHA256"), ("--algorithm", "RSASHA256", "--bits", 4096),
                                     ("--algorithm", "ECDSAP384SHA384"), ("--algorithm", "ED25519")], ids=lambda words: " ".join(map(str, words)))
def test_each_algorithm_alone_and_as_ksk_and_zsk(tmp_path, options):
    ksk, zsk = make_key(tmp_path, *options), make_key(tmp_path, *options, "--zsk")
    assert ksk.stat().st_mode & 0o777 == 0o600
    verify(sign(tmp_path, ZONE, keys=["--key", ksk]))
    path = sign(tmp_path, ZONE, "--cds", keys=["--key", ksk, "--key", zsk])
    verify(path)
    tags = {json.loads(pandoctl("--json", "dnssec", "key", "show", key).stdout)["keys"][0]["tag"]: key for key in (ksk, zsk)}
    for (_, rdtype, covered), (_, data) in records_of(path).items():
        if rdtype == "RRSIG":
            assert [tags[tag] for _, _, _, tag, _ in data] == [ksk if covered in ("DNSKEY", "CDS", "CDNSKEY") else zsk], covered


def test_two_algorithms_sign_each_set(tmp_path):
    keys = [make_key(tmp_path), make_key(tmp_path, "--algorithm", "ED25519")]
    path = sign(tmp_path, ZONE, keys=["--key", keys[0], "--key", keys[1]])
    verify(path)
    for (_, rdtype, _), (_, data) in records_of(path).items():
        assert rdtype != "RRSIG" or [row[0] for row in data] == [13, 15]


def test_a_signed_zone_signed_again_is_the_source_signed(tmp_path):
    key = make_key(tmp_path)
    once = records_of(sign(tmp_path, ZONE, "--cds", keys=["--key", key]))
    text = (tmp_path / "signed").read_text()
    (tmp_path / "plain").write_text(text)
    done = pandoctl("zone", "sign", tmp_path / "plain", "--key", key, "--cds", "--out", tmp_path / "again")
    assert len([line for line in done.stderr.splitlines() if line.startswith("warning: ")]) == 1 and "left out" in done.stderr
    assert records_of(tmp_path / "again") == once


def test_times_are_those_that_were_asked_for_or_spread_over_eight_days(tmp_path):
    key = make_key(tmp_path)
    def ends(path):
        return [int(word) for word in re.findall(r"\sRRSIG\s+\S+ \d+ \d+ \d+ (\d{14})", path.read_text())]
    text = HEAD + "".join(f"h{number} A 192.0.2.1\n" for number in range(300))
    fixed = sign(tmp_path, text, "--inception", "20260101000000", "--expiration", "2208988800", keys=["--key", key])
    assert set(ends(fixed)) == {20400101000000}
    assert set(re.findall(r" (\d{14}) \d+ one\.test\.", fixed.read_text())) == {"20260101000000"}
    now = time.time()
    spread = [time.mktime(time.strptime(str(end), "%Y%m%d%H%M%S")) - time.timezone - now for end in ends(sign(tmp_path, text, keys=["--key", key]))]
    assert min(spread) > 6 * 86400 - 3700 and max(spread) < 14 * 86400 + 3700 and max(spread) - min(spread) > 7 * 86400
    for words in (["--iterations", "1"], ["--opt-out"], ["--nsec3", "--iterations", "101"], ["--nsec3", "--salt", "abc"],
                  ["--nsec3", "--salt", "ab" * 256]):
        assert pandoctl("zone", "sign", tmp_path / "plain", "--key", key, *words, code=2).stdout == ""
    for words in (["--expiration", "20200101000000"], ["--expiration", "tomorrow"], ["--inception", "20260231000000"],
                  ["--inception", "20500101000000"],
                  ["--inception", "20260101000000", "--expiration", "4102444800"]):
        assert pandoctl("zone", "sign", tmp_path / "plain", "--key", key, *words, code=2).stdout == ""


def test_serials(tmp_path):
    key = make_key(tmp_path)
    for word, wanted in (("keep", 7), ("increment", 8)):
        assert f" admin.one.test. {wanted} " in sign(tmp_path, ZONE, "--serial", word, keys=["--key", key]).read_text()
    sign(tmp_path, ZONE, "--serial", "unixtime", keys=["--key", key])
    serial = int(re.search(r" admin\.one\.test\. (\d+) ", (tmp_path / "signed").read_text())[1])
    assert abs(serial - time.time()) < 600


def test_standard_output_has_the_zone_and_nothing_else(tmp_path):
    key = make_key(tmp_path)
    (tmp_path / "plain").write_text(ZONE)
    done = pandoctl("zone", "sign", tmp_path / "plain", "--key", key)
    assert done.stderr == "" and done.stdout.startswith("one.test. 300 IN SOA ")
    (tmp_path / "signed").write_text(done.stdout)
    verify(tmp_path / "signed")
    result = json.loads(pandoctl("--json", "zone", "sign", tmp_path / "plain", "--key", key, "--out", tmp_path / "out").stdout)
    assert result["zone"] == "one.test." and result["signatures"] == done.stdout.count(" IN RRSIG ")
    assert result["signatures_end"] > time.time() + 5 * 86400 and result["warnings"] == [] and result["dropped"] == 0
    pandoctl("--json", "zone", "sign", tmp_path / "plain", "--key", key, code=2)


def test_errors_leave_the_file_as_it_was(tmp_path):
    key = make_key(tmp_path)
    (tmp_path / "plain").write_text(HEAD + "bad A 192.0.2.256\n")
    (tmp_path / "out").write_text("before")
    done = pandoctl("zone", "sign", tmp_path / "plain", "--key", key, "--out", tmp_path / "out", code=1)
    assert f"{tmp_path}/plain:5: " in done.stderr
    (tmp_path / "plain").write_text(HEAD + "a CNAME b\na A 192.0.2.1\n")
    done = pandoctl("zone", "sign", tmp_path / "plain", "--key", key, "--out", tmp_path / "out", code=1)
    assert f"{tmp_path}/plain:6: " in done.stderr
    (tmp_path / "plain").write_text(HEAD)
    for words, reason in ((["--origin", "two.test"], "a key of one.test., not of two.test."), (["--key", key], "given twice"),
                          (["--zsk", key], "has the flags 257"), (["--out", tmp_path / "plain"], "source's place"),
                          (["--out", tmp_path / "none/out"], "none")):
        done = pandoctl("zone", "sign", tmp_path / "plain", "--key", key, *words, code=2 if reason == "given twice" else 1)
        assert reason in done.stderr, done.stderr
    key.chmod(0o644)
    assert "chmod 600" in pandoctl("zone", "sign", tmp_path / "plain", "--key", key, code=1).stderr
    assert "no key" in pandoctl("zone", "sign", tmp_path / "plain", "--origin", "one.test", code=2).stderr
    assert (tmp_path / "out").read_text() == "before" and (tmp_path / "plain").read_text() == HEAD
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["plain", "out", key.name])


# Keys of other servers -----------------------------------------------------------------------------


def copied(folder, *names):
    for name in names:
        shutil.copy(KEYS / name, folder)
        if not name.endswith(".key"):
            (folder / name).chmod(0o600)
    return folder / names[0]


@pytest.mark.parametrize("stem", ["Kexample.+008+16161", "Kexample.+013+33270", "Kexample.+014+07666"])
def test_keys_of_bind_and_ldns_are_shown_as_they_know_them(tmp_path, stem):
    copied(tmp_path, f"{stem}.private", f"{stem}.key")
    shown = json.loads(pandoctl("--json", "dnssec", "key", "show", tmp_path / stem).stdout)["keys"][0]
    assert stem.endswith(f"+{shown['tag']:05}") and shown["zone"] == "example."
    if shutil.which("dnssec-dsfromkey"):
        theirs = run("dnssec-dsfromkey", "-2", f"{stem}.key", folder=tmp_path)
        assert shown["ds"].lower() == theirs.lower()
    assert pandoctl("dnssec", "key", "ds", tmp_path / stem).stdout == shown["ds"] + "\n"
    sha384 = pandoctl("dnssec", "key", "ds", tmp_path / stem, "--digest", "SHA-384").stdout.split()
    assert sha384[5] == "4" and len("".join(sha384[6:])) == 96


@pytest.mark.skipif(not shutil.which("keymgr"), reason="needs knot")
@pytest.mark.parametrize("algorithm", ["ecdsap256sha256", "ed25519", "rsasha256"])
def test_keys_that_knot_makes_now_sign(tmp_path, algorithm):
    ids = [run("keymgr", "-D", "kasp", "one.test", "generate", f"algorithm={algorithm}", *ksk, folder=tmp_path).split()[-1]
           for ksk in (["ksk=yes"], [])]
    ksk, zsk = [tmp_path / f"kasp/keys/{name}.pem" for name in ids]
    path = sign(tmp_path, ZONE, "--origin", "one.test", keys=["--ksk", ksk, "--zsk", zsk])
    verify(path)
    theirs = run("keymgr", "-D", "kasp", "one.test", "ds", folder=tmp_path)
    ours = pandoctl("dnssec", "key", "ds", ksk, "--zone", "one.test").stdout.split()
    assert any(line.split()[2:] == [*ours[3:6], ours[6].lower()] or line.split()[2:5] == ours[3:6] and line.split()[5].lower() == ours[6].lower()
               for line in theirs.splitlines()), (theirs, ours)
    assert "name" in pandoctl("dnssec", "key", "ds", ksk, code=1).stderr


def test_a_key_of_powerdns_signs(tmp_path):
    (tmp_path / "exported").write_text("Private-key-format: v1.2\nAlgorithm: 13 (ECDSAP256SHA256)\n"
                                       "PrivateKey: GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=\n")
    (tmp_path / "exported").chmod(0o600)
    verify(sign(tmp_path, ZONE, "--origin", "one.test", keys=["--key", tmp_path / "exported"]))


def test_new_keys_have_tags_of_their_own(tmp_path):
    """Also beside keys of BIND, and with the REVOKE flag (RFC 5011)."""
    tags = []
    for _ in range(40):
        make_key(tmp_path, "--algorithm", "ED25519")
    for key in tmp_path.glob("*.pem"):
        shown = json.loads(pandoctl("--json", "dnssec", "key", "show", key).stdout)["keys"][0]
        tags.append(shown["tag"])
        assert key.name == f"Kone.test.+015+{shown['tag']:05}.pem"
    assert len(set(tags)) == 40 and not any((tag + 128) % 65536 in tags for tag in tags)


def test_no_output_has_a_part_of_a_private_key(tmp_path):
    key = make_key(tmp_path)
    secret = re.search(r"KEY-----\n(.*?)\n-----END", key.read_text(), re.S)[1].replace("\n", "")
    pieces = [secret[at:at + 16] for at in range(0, len(secret) - 16)][:60]  # the public key follows
    broken = tmp_path / "broken.pem"
    broken.write_text(key.read_text().replace("-----END", "!----END"))
    broken.chmod(0o600)
    (tmp_path / "plain").write_text(ZONE)
    texts = [text for done in (
        pandoctl("dnssec", "key", "show", key), pandoctl("--json", "dnssec", "key", "show", key),
        pandoctl("dnssec", "key", "ds", key), pandoctl("dnssec", "key", "show", broken, code=1),
        pandoctl("zone", "sign", tmp_path / "plain", "--key", key), pandoctl("--json", "zone", "sign", tmp_path / "plain", "--key", broken, "--out", tmp_path / "x", code=1),
    ) for text in (done.stdout, done.stderr)]
    assert not [piece for piece in pieces for text in texts if piece in text]


@servers.needs_root("it gives a link to another user")
def test_root_follows_no_link_of_another_user_to_a_key(tmp_path):
    key = make_key(tmp_path)
    tmp_path.chmod(0o755)
    folder = tmp_path / "strangers"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    (folder / "link").symlink_to(key)
    os.chown(folder / "link", 65534, 65534, follow_symlinks=False)
    assert "link" in pandoctl("dnssec", "key", "show", folder / "link", code=1).stderr
