"""Signed zones are verified when they are loaded or transferred: with `warn` beside serving, with `refuse` before."""

import dataclasses
import datetime
import shutil
import subprocess
import time
import urllib.request

import dns.rcode
import dns.rdataclass
import dns.rdatatype
import pytest

import servers
from changing_primary import Primary
from signed_zones import NEEDS_SIGNERS, ZONE, changed, drop, ldns_signed, replace, sign_again

pytestmark = NEEDS_SIGNERS

TEXT = ZONE.replace("3600 600", "1 1")  # secondaries ask each second
PAST = ("-i", "20200101000000", "-e", "20200201000000")
DIGEST = ("-z", "1:1")
NSEC3 = ("-n", "-s", "A1B2")


@dataclasses.dataclass
class Fault:
    """A fault in a zone of serial 8; `says` is a part of its line."""

    says: str
    options: tuple = ()
    dates: tuple = ()
    spoil: object = None

    def make(self, folder):
        path = ldns_signed(folder, options=self.options, dates=self.dates, text=TEXT.replace("admin 7", "admin 8"))
        return changed(path, self.spoil) if self.spoil else path


def drop_one_nsec3(zone):
    owners = sorted(owner for owner, node in zone.items() if node.get_rdataset(dns.rdataclass.IN, dns.rdatatype.NSEC3))
    zone.delete_node(owners[3])


def drop_one_nsec(zone):
    drop(zone, "mail", "NSEC")
    drop(zone, "mail", "RRSIG", "NSEC")


FAULTS = {
    "expired": Fault("expired at 2020-02-01T00:00:00Z", dates=PAST),
    "changed": Fault("mail.one.test. A: RRSIG by key", spoil=lambda zone: replace(zone, "mail", "A", "192.0.2.99")),
    "nsec": Fault("NSEC", spoil=drop_one_nsec),
    "nsec3": Fault("NSEC3", options=NSEC3, spoil=drop_one_nsec3),
    "zonemd": Fault("ZONEMD is not the digest of the zone's data", options=DIGEST,
                    spoil=lambda zone: replace(zone, "ns.secure", "A", "192.0.2.99")),
}


def status(server):
    return server.control("zone", "status", "one.test")


def is_known_to_be_wrong(server, says):
    def known():
        zone = status(server)
        return zone["signature_faults"] > 0 and zone["problem"].startswith("not valid: ") and says in zone["problem"]
    servers.wait_until("the fault is known", known, seconds=200)


def is_valid(server, serial):
    """Waits until the zone was verified: its first signature's end is known."""
    def verified():
        zone = status(server)
        return zone["serial"] == serial and zone["signatures_end"] > time.time() and zone["signature_faults"] == 0
    servers.wait_until("the zone is verified", verified, seconds=200)
    assert status(server)["problem"] == ""


# Files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", FAULTS)
def test_a_file_with_faults_is_served_with_a_warning(pando, tmp_path, kind):
    fault = FAULTS[kind]
    path = tmp_path / "zone"
    shutil.copy(fault.make(tmp_path / "bad"), path)
    server = pando([{"name": "one.test", "file": str(path)}]).start("one.test")
    is_known_to_be_wrong(server, fault.says)
    assert server.serial("one.test") == 8 and server.ask("mail.one.test").answer
    assert server.log().count("zone_not_valid zone=one.test. serial=8 faults=") == 1
    assert server.control("status")["counters"]["zones_not_valid"] == 1
    assert status(server)["state"] == "ok"
    shutil.copy(ldns_signed(tmp_path / "good", text=TEXT.replace("admin 7", "admin 9")), path)
    server.control("reload")
    is_valid(server, 9)
    assert server.control("status")["counters"]["zones_not_valid"] == 0


@pytest.mark.parametrize("kind", FAULTS)
def test_a_file_with_faults_is_refused_and_the_last_good_version_stays(pando, tmp_path, kind):
    fault = FAULTS[kind]
    path = tmp_path / "zone"
    shutil.copy(ldns_signed(tmp_path / "good", options=fault.options, text=TEXT), path)
    server = pando([{"name": "one.test", "file": str(path), "verify": "refuse"}]).start("one.test")
    is_valid(server, 7)
    shutil.copy(fault.make(tmp_path / "bad"), path)
    result = server.control("reload")
    assert result["zones_failed"] == 1 and fault.says in result["problems"][0]
    assert str(path) in result["problems"][0]
    assert server.serial("one.test") == 7
    assert server.ask("mail.one.test").answer[0][0].address == "192.0.2.25"
    assert fault.says in status(server)["problem"]
    assert f'zone_not_loaded zone=one.test. reason="{path}: ' in server.log()
    shutil.copy(ldns_signed(tmp_path / "next", text=TEXT.replace("admin 7", "admin 9")), path)
    assert server.control("reload")["zones_failed"] == 0
    is_valid(server, 9)


def test_a_new_zone_with_faults_is_not_served_where_they_are_refused(pando, tmp_path):
    bad = FAULTS["changed"].make(tmp_path / "bad")
    (tmp_path / "plain").write_text(ZONE)
    server = pando([{"name": "one.test", "file": str(bad), "verify": "refuse"},
                    {"name": "two.test", "file": str(tmp_path / "plain"), "verify": "refuse"}]).start("two.test")
    servers.wait_until("it was refused", lambda: status(server)["state"] == "not-loaded")
    assert server.ask("mail.one.test").rcode() == dns.rcode.SERVFAIL
    assert FAULTS["changed"].says in status(server)["problem"]


@pytest.mark.parametrize("lost", [False, True], ids=["live store", "image"])
def test_a_restart_serves_before_it_verifies_and_then_knows_the_faults_again(pando, tmp_path, lost):
    bad = FAULTS["changed"].make(tmp_path / "bad")
    server = pando([{"name": "one.test", "file": str(bad)}], store_extra="  image: zones.image").start("one.test")
    is_known_to_be_wrong(server, FAULTS["changed"].says)
    server.stop()
    if lost:
        shutil.rmtree(server.store)
    before = len(server.log())
    server.start("one.test")
    is_known_to_be_wrong(server, FAULTS["changed"].says)
    log = server.log()[before:]
    assert log.index("manager_ready") < log.index("zone_not_valid")


def test_policies_change_with_a_reload(pando, tmp_path):
    bad = FAULTS["changed"].make(tmp_path / "bad")
    server = pando([{"name": "one.test", "file": str(bad), "verify": "off"}]).start("one.test")
    server.control("reload")
    assert (status(server)["problem"], status(server)["signatures_end"]) == ("", 0)
    server.zones[0]["verify"] = "warn"
    server.write_config()
    server.control("reload")
    is_known_to_be_wrong(server, FAULTS["changed"].says)
    server.zones[0]["verify"] = "off"
    server.write_config()
    server.control("reload")
    servers.wait_until("it is forgotten", lambda: status(server)["problem"] == "")
    assert (status(server)["signature_faults"], status(server)["signatures_end"]) == (0, 0)


# Transfers ---------------------------------------------------------------------------------------


def secondary_of(pando, primary, **options):
    return pando([{"name": "one.test", "primaries": ["up"], **options}],
                 remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.server.port}"]}])


@pytest.mark.parametrize("policy", ["warn", "refuse"])
@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("peer", ["bind", "knot"])
def test_a_primary_that_sends_faults(pando, peers, tmp_path, peer, kind, policy):
    fault = FAULTS[kind]
    primary = Primary(peer, tmp_path, peers, ldns_signed(tmp_path / "good", options=fault.options, text=TEXT))
    server = secondary_of(pando, primary, verify=policy).start("one.test")
    is_valid(server, 7)
    primary.replace(fault.make(tmp_path / "bad"), 8)
    if policy == "warn":
        is_known_to_be_wrong(server, fault.says)
        assert server.serial("one.test") == 8
        assert "zone_not_valid zone=one.test. serial=8" in server.log()
    else:
        servers.wait_until("it is refused", lambda: "refused, as it is not valid" in status(server)["problem"])
        assert fault.says in status(server)["problem"]
        assert server.serial("one.test") == 7
        assert server.ask("mail.one.test").answer[0][0].address == "192.0.2.25"
        failed = server.control("status")["counters"]["transfers_in_failed"]
        time.sleep(3)
        assert server.control("status")["counters"]["transfers_in_failed"] - failed <= 2 * 4, "one round a second"
    primary.replace(ldns_signed(tmp_path / "next", text=TEXT.replace("admin 7", "admin 9")), 9)
    is_valid(server, 9)


def test_a_first_transfer_with_faults_is_refused(pando, peers, tmp_path):
    primary = Primary("knot", tmp_path, peers, FAULTS["changed"].make(tmp_path / "bad"))
    server = secondary_of(pando, primary, verify="refuse").start()
    servers.wait_until("it is refused", lambda: "refused, as it is not valid: mail.one.test. A" in
                       status(server)["problem"])
    assert server.ask("one.test", "SOA").rcode() == dns.rcode.SERVFAIL


@pytest.mark.parametrize("policy", ["warn", "refuse"])
def test_a_small_change_of_a_valid_zone_is_verified_alone(pando, peers, tmp_path, policy):
    """The signer signs one set and the SOA anew, as its keys stay."""
    folder = tmp_path / "good"
    first = ldns_signed(folder, text=TEXT)
    kept = tmp_path / "first"
    shutil.copy(first, kept)
    primary = Primary("bind", tmp_path, peers, kept)
    server = secondary_of(pando, primary, verify=policy)
    server.extra = "  log: {level: debug}"
    server.write_config()
    server.start("one.test")
    is_valid(server, 7)
    primary.replace(sign_again(folder, TEXT.replace("admin 7", "admin 8").replace("192.0.2.25", "192.0.2.26")), 8)
    servers.wait_until("the change has come", lambda: server.serial("one.test") == 8)
    is_valid(server, 8)
    servers.wait_until("it is verified", lambda: "zone_verified zone=one.test. serial=8 whole=false" in server.log())


# Time --------------------------------------------------------------------------------------------


def test_the_end_of_signatures_is_told_three_days_before(pando, tmp_path):
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=2)
    path = ldns_signed(tmp_path, dates=("-e", end.strftime("%Y%m%d%H%M%S")))
    server = pando([{"name": "one.test", "file": str(path)}]).start("one.test")
    servers.wait_until("the warning", lambda: "signatures_end zone=one.test." in server.log())
    assert status(server)["signatures_end"] == int(end.timestamp())
    assert status(server)["problem"] == ""


def test_the_end_of_signatures_is_a_metric(pando, tmp_path):
    path = ldns_signed(tmp_path)
    server = pando([{"name": "one.test", "file": str(path)}])
    port = servers.free_port()
    server.config.write_text(server.config.read_text() +
                             f"http: {{listen: [127.0.0.1@{port}], user: root, metrics-zones: 1}}\n")
    server.start("one.test")
    is_valid(server, 7)
    program = subprocess.Popen([str(servers.build_folder() / "pando-http"), "--config", str(server.config)])
    try:
        def metrics():
            try:
                return urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10).read().decode()
            except OSError:
                return ""
        end = f'pando_zone_signature_expiry_timestamp_seconds{{zone="one.test."}} {status(server)["signatures_end"]}\n'
        servers.wait_until("the metric is there", lambda: end in metrics())
        assert "\npando_zones_not_valid 0\n" in metrics()
    finally:
        program.terminate()
        program.wait(30)


# Parent and child -------------------------------------------------------------------------------


PARENT = """$TTL 300
@ SOA ns1.one.test. admin.one.test. {serial} 3600 600 86400 60
@ NS ns1.one.test.
@ DNSKEY 257 3 13 mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==
one NS ns1.one
ns1.one A 192.0.2.1
{ds}
"""


def test_a_zone_whose_keys_no_ds_of_its_parent_names_has_a_problem(pando, tmp_path):
    signed = ldns_signed(tmp_path / "good")
    key = next(path for path in (tmp_path / "good").glob("K*.key") if " 257 " in path.read_text().replace("\t", " "))
    good = subprocess.run(["ldns-key2ds", "-n", "-2", str(key)], capture_output=True, text=True, check=True).stdout
    bad = good.strip()[:-8] + "00000000"
    unknown = " ".join([*good.split()[:5], "13", "99", good.split()[-1]])
    path = tmp_path / "parent"

    def parent(serial, *ds):
        path.write_text(PARENT.format(serial=serial, ds="\n".join(ds)))

    parent(1)
    server = pando([{"name": "test", "file": str(path), "verify": "off"},
                    {"name": "one.test", "file": str(signed)}]).start("one.test")
    is_valid(server, 7)
    says = "validators refuse it: test., which is served here, too, has DS records for it, and "
    for serial, ds, problem in ((2, [bad], says + "none is of its DNSKEY records"), (3, [bad, good], ""), (4, [unknown], ""),
                                (5, [good], "")):
        parent(serial, *ds)
        assert server.control("reload")["zones_failed"] == 0
        assert status(server)["problem"] == problem, serial
    signed.write_text(TEXT.replace("admin 7", "admin 9"))
    server.control("reload")
    assert status(server)["problem"] == says + "it has no DNSKEY"
