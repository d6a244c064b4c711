"""Signed zones are judged by `zone check`: real signers' zones are right, and each kind of fault is found."""

import datetime
import json
import subprocess
import time

import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import pytest

import servers
from signed_zones import LDNS, NEEDS_SIGNERS, ZONE, bind_signed, changed, drop, ldns_signed, name, replace, run

pytestmark = NEEDS_SIGNERS


def check(path, *options):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), "--json", "zone", "check", *options, "one.test",
                           str(path)], capture_output=True, text=True, timeout=120)


def faults(path, *options):
    """The faults without the file's name; the exit code agrees with them."""
    done = check(path, *options)
    result = json.loads(done.stdout)
    assert done.returncode == (1 if result["errors"] else 0) and result["ok"] == (not result["errors"])
    return [line.removeprefix(f"{path}: ") for line in result["errors"]]


@pytest.mark.parametrize("algorithm", LDNS)
@pytest.mark.parametrize("denial", [(), ("-n", "-s", "A1B2", "-t", "3"), ("-n", "-p")], ids=["nsec", "nsec3", "opt-out"])
def test_what_ldns_signs_is_right(tmp_path, algorithm, denial):
    path = ldns_signed(tmp_path, algorithm, denial)
    assert faults(path) == []
    result = json.loads(check(path).stdout)
    assert result["signed"] and result["signatures_end"] > time.time() + 20 * 86400


@pytest.mark.parametrize("denial", [(), ("-3", "A1B2", "-H", "0"), ("-3", "-", "-H", "0", "-A")],
                         ids=["nsec", "nsec3", "opt-out"])
def test_what_bind_signs_is_right(tmp_path, denial):
    assert faults(bind_signed(tmp_path, denial)) == []


def test_an_unsigned_zone_has_nothing_to_judge(tmp_path):
    (tmp_path / "plain").write_text(ZONE)
    result = json.loads(check(tmp_path / "plain").stdout)
    assert result["ok"] and not result["signed"] and result["signatures_end"] == 0


@pytest.fixture(scope="module")
def nsec(tmp_path_factory):
    return ldns_signed(tmp_path_factory.mktemp("nsec"))


@pytest.fixture(scope="module")
def nsec3(tmp_path_factory):
    return ldns_signed(tmp_path_factory.mktemp("nsec3"), options=("-n", "-s", "A1B2"))


def test_a_changed_record_under_its_old_signature(nsec, nsec3):
    for path in (nsec, nsec3):
        bad = changed(path, lambda zone: replace(zone, "mail", "A", "192.0.2.99"))
        (fault,) = faults(bad)
        assert fault.startswith("mail.one.test. A: RRSIG by key ") and fault.endswith(" does not verify")
        assert faults(bad, "--verify", "off") == []
        warned = json.loads(check(bad, "--verify", "warn").stdout)
        assert warned["ok"] and any(fault in line for line in warned["warnings"])


def test_signatures_of_2020_and_of_2090(tmp_path):
    old = ldns_signed(tmp_path / "old", dates=("-i", "20200101000000", "-e", "20200201000000"))
    lines = faults(old)
    assert len(lines) == 21 and "expired at 2020-02-01T00:00:00Z" in lines[0], lines[:2]
    assert "more faults" in lines[-1]
    later = datetime.datetime.now() + datetime.timedelta(days=400)
    early = ldns_signed(tmp_path / "early", dates=("-i", later.strftime("%Y%m%d%H%M%S"), "-e", "20600201000000"))
    assert f"begins at {later:%Y-%m-%dT%H:%M:%S}Z" in faults(early)[0]


def test_a_name_without_nsec_and_one_without_nsec3(nsec, nsec3):
    def drop_nsec(zone):
        drop(zone, "mail", "NSEC")
        drop(zone, "mail", "RRSIG", "NSEC")
    assert "mail.one.test. has no NSEC" in faults(changed(nsec, drop_nsec))

    def drop_nsec3(zone):
        hashes = sorted(owner for owner, node in zone.items() if node.get_rdataset(dns.rdataclass.IN, dns.rdatatype.NSEC3))
        zone.delete_node(hashes[3])
    lines = faults(changed(nsec3, drop_nsec3))
    assert any(" has no NSEC3 (" in line for line in lines) and any(" NSEC3 points to " in line for line in lines)


def test_a_name_that_the_chain_does_not_know(nsec, nsec3):
    def add(zone):
        rdataset = dns.rdataset.from_text("IN", "NS", 300, "ns1.one.test.")
        zone.find_node(name("new.delegation"), create=True).replace_rdataset(rdataset)
    assert "new.delegation.one.test. has no NSEC" in faults(changed(nsec, add))
    lines = faults(changed(nsec3, add))
    assert any(line.startswith("new.delegation.one.test. has no NSEC3") for line in lines)
    assert any(line.startswith("delegation.one.test. has no NSEC3") for line in lines), "an empty non-terminal"


def test_a_name_that_only_the_chain_knows(nsec, nsec3):
    def drop_cut(zone):
        drop(zone, "insecure", "NS")
        zone.delete_node(name("ns.insecure"))
    assert "insecure.one.test. NSEC has no place at a name without authoritative data" in faults(
        changed(nsec, drop_cut))
    assert any(" NSEC3 is of no name of the zone" in line for line in faults(changed(nsec3, drop_cut)))


def test_types_that_the_chain_does_not_list(nsec, nsec3):
    def add(zone):
        zone[name("insecure")].replace_rdataset(
            dns.rdataset.from_text("IN", "DS", 300, "12345 8 2 " + "01" * 32))
    assert "insecure.one.test. NSEC lists other types than there are" in faults(changed(nsec, add))
    assert any(line.startswith("the NSEC3 of insecure.one.test. (") for line in faults(changed(nsec3, add)))


def test_missing_signatures_and_missing_keys(nsec):
    lines = faults(changed(nsec, lambda zone: drop(zone, "web", "RRSIG", "A")))
    assert lines == ["web.one.test. A has no RRSIG"] or lines == ["Web.one.test. A has no RRSIG"]

    def drop_keys(zone):
        drop(zone, "@", "DNSKEY")
        drop(zone, "@", "RRSIG", "DNSKEY")
    assert faults(changed(nsec, drop_keys)) == ["one.test. is signed and has no DNSKEY"]


def test_glue_and_data_below_a_cut_need_no_signature(nsec, nsec3):
    def add(zone):
        rdataset = dns.rdataset.from_text("IN", "AAAA", 300, "2001:db8::9")
        zone.find_node(name("ns.insecure"), create=True).replace_rdataset(rdataset)
    assert faults(changed(nsec, add)) == [] and faults(changed(nsec3, add)) == []


# Digests (RFC 8976) --------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [("-z", "1:1"), ("-z", "1:2"), ("-z", "1:1", "-z", "1:2", "-n", "-s", "A1B2"),
                                     ("-z", "1:1", "-n", "-p"), ("-z", "1:2", "-Z", "unsigned")])
def test_a_digest_by_ldns_agrees_and_a_changed_record_does_not(tmp_path, options):
    if "unsigned" in options:
        (tmp_path / "plain").write_text(ZONE)
        run("ldns-signzone", "-o", "one.test", "-f", "signed", *options[:-1], "plain", folder=tmp_path)
        path = tmp_path / "signed"
    else:
        path = ldns_signed(tmp_path, options=options)
    assert "ZONEMD" in path.read_text()
    assert faults(path) == []
    wrong = "one.test. ZONEMD is not the digest of the zone's data"
    assert faults(changed(path, lambda zone: replace(zone, "ns.insecure", "A", "192.0.2.99"))) == [wrong], "glue counts"
    assert wrong in faults(changed(path, lambda zone: replace(zone, "mail", "A", "192.0.2.99")))
    assert wrong in faults(changed(path, lambda zone: zone.delete_node(name("ns.secure"))))


def test_a_digest_of_another_serial_is_wrong(tmp_path):
    path = ldns_signed(tmp_path, options=("-z", "1:1"))
    bad = changed(path, lambda zone: replace(zone, "@", "SOA", "ns1.one.test. admin.one.test. 8 3600 600 86400 60"))
    assert "one.test. ZONEMD is of serial 7" in faults(bad)
