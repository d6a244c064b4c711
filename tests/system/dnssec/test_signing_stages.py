"""The way of a zone to be signed here, and back: what is asked of its parent, what is waited for, how keys come, and how
signatures stay young. A validating resolver asks all the while."""

import json
import pathlib
import random
import shutil
import subprocess
import threading
import time

import dns.dnssec
import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.zone
import pytest

import servers
from signed_zones import run
from test_served_signed import APEX, TEXT, ZONE, Unbound, key_file, key_folder, send, sets_of, zone_of

needs_bind = pytest.mark.skipif(not shutil.which("dnssec-signzone"), reason="needs bind9-utils")

CHILD = f"child.{ZONE}"
QUICK = "{name: quick, validity: 1h, propagation: 1s, parent-ds-ttl: 1s}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zone").write_text(TEXT.replace(" 600 ", " 1 ").replace(" 300 ", " 1 "))
    (tmp_path / "child").write_text("@ 1 SOA ns1 admin 7 3600 600 86400 1\n@ 1 NS ns1\nns1 1 A 192.0.2.1\nwww 1 A 192.0.2.2\n")
    return tmp_path


@pytest.fixture
def options(folder):
    return {"name": ZONE, "file": str(folder / "zone"), "dnssec": "quick", "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


def configure(server, policies=QUICK):
    server.write_config()
    with open(server.config, "a", encoding="utf-8") as config:
        config.write(f"dnssec-policies: [{policies}]\n")


@pytest.fixture
def signing(pando):
    """Makes a server that starts with a policy."""
    def make(zones, policies=QUICK, **more):
        server = pando(zones, workers=1, **more)
        configure(server, policies)
        return server
    return make


def dnssec(server, verb, *words, zone=ZONE, code=0):
    """The output of a command for people, or with --json for programs; of a refused one, its error."""
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "dnssec", verb, zone,
                           *map(str, words)], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (verb, words, done.stdout, done.stderr)
    return done.stdout + done.stderr


def reload(server, code=0):
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (done.stdout, done.stderr)


def status(server, zone=ZONE):
    return server.control("dnssec", "status", zone, check=False) or {}


def wait_for(server, stage, zone=ZONE):
    servers.wait_until(f"{zone} is {stage}", lambda: status(server, zone).get("stage") == stage, 60)


def apex_sets(server, zone=ZONE):
    return {kind: sorted(rdata.to_text() for answer in server.ask(zone, kind, tcp=True).answer for rdata in answer
                         if answer.rdtype == dns.rdatatype.from_text(kind))
            for kind in ("DNSKEY", "CDS", "CDNSKEY")}


def test_a_zone_goes_signed_and_back_step_by_step(signing, options):
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    seen = status(server)
    sets = apex_sets(server)
    assert seen["policy"] == "quick" and seen["cds"] == "keys" and [key["role"] for key in seen["keys"]] == ["CSK"]
    assert [cds.lower() for cds in sets["CDS"]] == [ds.lower() for ds in seen["ds"]] and sets["CDNSKEY"] == sets["DNSKEY"]
    assert dnssec(server, "ds").lower() == f"{ZONE}. in ds {seen['ds'][0].lower()}\n"
    served = zone_of(server)
    dns.dnssec.validate(served.get_rdataset(APEX, "CDS") and dns.rrset.from_rdata_list(APEX, 1, served.get_rdataset(APEX, "CDS")),
                        dns.rrset.from_rdata_list(APEX, 1, served.get_rdataset(APEX, "RRSIG", "CDS")),
                        {APEX: served.get_rdataset(APEX, "DNSKEY")})
    dnssec(server, "ds-gone", code=1)
    dnssec(server, "ds-seen")
    assert status(server)["stage"] == "secure"
    reload(server)

    dnssec(server, "unsign")
    servers.wait_until("the parent is asked to remove its DS", lambda: apex_sets(server)["CDS"] == ["0 0 0 00"])
    assert apex_sets(server)["CDNSKEY"] == ["0 3 0 AA=="]
    time.sleep(3)
    assert status(server)["stage"] == "no-ds-wanted", "nobody has seen the DS go"
    send(server, ("add", "new", 1, "A", "192.0.2.9"))
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    served = zone_of(server)
    assert not [name for name, rdataset in served.iterate_rdatasets() if rdataset.rdtype in
                (dns.rdatatype.RRSIG, dns.rdatatype.NSEC, dns.rdatatype.DNSKEY, dns.rdatatype.CDS, dns.rdatatype.CDNSKEY)]
    assert served.get_node(f"new.{ZONE}.") and "zone_unsigned" in server.log()
    send(server, ("add", "later", 1, "A", "192.0.2.10"))
    assert not server.ask(f"later.{ZONE}", "RRSIG").answer


@pytest.mark.parametrize("how", ["process", "host", "files"])
def test_an_unsigned_zone_stays_so_over_a_restart_and_is_signed_again(signing, options, how):
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    key = key_file(server).read_text()
    send(server, ("add", "before", 1, "A", "192.0.2.9"))
    dnssec(server, "unsign")
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    send(server, ("add", "after", 1, "A", "192.0.2.10"))
    serial = server.serial(ZONE)
    server.kill()
    if how != "process":
        server.lose_memory()
    if how == "files":
        (server.folder / "store.image").unlink(missing_ok=True)
    server.start(ZONE)
    wait_for(server, "unsigned")
    assert server.ask(f"before.{ZONE}").answer and server.ask(f"after.{ZONE}").answer
    assert not server.ask(ZONE, "DNSKEY").answer and server.serial(ZONE) == serial
    # The configuration may let the zone go now, and take it again.
    for policy in ("off", "quick"):
        server.zones = [{**options, "dnssec": policy}]
        configure(server)
        server.control("reload")
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    assert key_file(server).read_text() == key and server.ask(f"after.{ZONE}").answer


def test_unsigning_can_be_cancelled_at_each_stage(signing, options):
    server = signing([options], "{name: quick, validity: 1h, propagation: 1s, parent-ds-ttl: 10s}").start(ZONE)
    wait_for(server, "ds-wanted")
    dnssec(server, "unsign", "--cancel", code=1)
    dnssec(server, "ds-seen")
    for words, stage in (([], "secure"), (["ds-gone"], "ds-wanted")):
        dnssec(server, "unsign")
        for word in words:
            dnssec(server, word)
        dnssec(server, "unsign", "--cancel")
        assert status(server)["stage"] == stage
        servers.wait_until("the parent is asked for DS", lambda: apex_sets(server)["CDS"] not in ([], ["0 0 0 00"]))
    dnssec(server, "unsign")
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    dnssec(server, "unsign", "--cancel")
    wait_for(server, "ds-wanted")
    assert server.ask(ZONE, "DNSKEY").answer


def test_a_policy_leaves_after_unsigning_alone(signing, options):
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    server.zones = [{**options, "dnssec": "off"}]
    configure(server)
    reload(server, code=1)
    dnssec(server, "unsign")
    reload(server, code=1)
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    server.control("reload")
    dnssec(server, "status", code=1)
    assert server.ask(f"www.{ZONE}").answer


class Asker:
    """Asks a validating resolver all the time; an answer that is not what it is to be ends it."""

    def __init__(self, resolver, names):
        self.resolver, self.names = resolver, names
        self.faults, self.secure, self.insecure = [], 0, 0
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        pick = random.Random(4)
        while not self.stop.is_set():
            query = dns.message.make_query(pick.choice(self.names), pick.choice(["A", "TXT", "SOA"]), want_dnssec=True)
            try:
                answer = dns.query.udp(query, "127.0.0.1", port=self.resolver.port, timeout=30)
                assert answer.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN), answer.to_text()
            except Exception as error:  # a fault of the test itself, too
                self.faults.append(error)
                return
            if answer.flags & dns.flags.AD:
                self.secure += 1
            else:
                self.insecure += 1
            time.sleep(0.01)

    def end(self):
        self.stop.set()
        self.thread.join()
        assert not self.faults, (self.faults[0], self.resolver.log()[-3000:])


def test_a_resolver_sees_nothing_bogus_on_the_way_and_back(signing, options, folder, peers):
    if not shutil.which("unbound"):
        pytest.skip("unbound is not installed")
    child = {**options, "name": CHILD, "file": str(folder / "child"), "dnssec": "off"}
    server = signing([options, child]).start(ZONE)
    send(server, ("add", "child", 1, "NS", f"ns1.{CHILD}."), ("add", "ns1.child", 1, "A", "192.0.2.1"))
    wait_for(server, "ds-wanted")
    anchor = f"{ZONE}. DS {status(server)['ds'][0]}"
    resolver = peers(Unbound(folder / "unbound", server, anchor, [ZONE, CHILD]), ZONE)
    asker = Asker(resolver, [f"www.{CHILD}", f"none.{CHILD}", CHILD])
    try:
        servers.wait_until("answers have come", lambda: asker.insecure > 20 or asker.faults)
        assert asker.secure == 0
        server.zones = [options, {**child, "dnssec": "quick"}]
        configure(server)
        server.control("reload")
        wait_for(server, "ds-wanted", CHILD)
        ds = status(server, CHILD)["ds"][0]
        send(server, ("add", "child", 1, "DS", ds))
        dnssec(server, "ds-seen", zone=CHILD)
        before = asker.secure
        servers.wait_until("the child is secure", lambda: asker.secure > before + 50 or asker.faults)
        server.kill()
        server.start(CHILD)
        dnssec(server, "unsign", zone=CHILD)
        time.sleep(2)
        send(server, ("delete", "child", "DS"))
        dnssec(server, "ds-gone", zone=CHILD)
        wait_for(server, "unsigned", CHILD)
        before = asker.insecure
        servers.wait_until("the child is insecure", lambda: asker.insecure > before + 50 or asker.faults)
    finally:
        asker.end()


def bind_keys(folder):
    """The stems of a KSK and a ZSK of BIND."""
    return [folder / run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", *kind, ZONE, folder=folder) for kind in (["-f", "KSK"], [])]


@needs_bind
def test_keys_of_bind_come_into_service(signing, options, folder):
    """The zone as BIND signs it, then with its keys: parent and validators need not know."""
    ksk, zsk = bind_keys(folder)
    plain = folder / "plain"
    plain.write_text((folder / "zone").read_text() + "".join(pathlib.Path(f"{stem}.key").read_text() for stem in (ksk, zsk)))
    run("dnssec-signzone", "-S", "-K", folder, "-o", ZONE, "-f", folder / "zone.signed", plain, folder=folder)
    signed = dns.zone.from_file(str(folder / "zone.signed"), ZONE, relativize=False)
    served = {**options, "file": str(folder / "zone.signed"), "dnssec": "off"}
    server = signing([served]).start(ZONE)
    assert "is not in the folder" in dnssec(server, "check", code=1)
    assert dnssec(server, "import", f"{ksk}.private", f"{zsk}.private").count("taken") == 2
    assert "is there" in dnssec(server, "import", f"{ksk}.private", code=1)
    found = json.loads(dnssec(server, "check", "--json"))
    assert sorted(key["role"] for key in found["keys"]) == ["KSK", "ZSK"] and not found["problems"] and not found["makes_key"]
    server.zones = [{**served, "dnssec": "quick"}]
    configure(server)
    server.control("reload")
    wait_for(server, "ds-wanted")
    assert sorted(key["role"] for key in status(server)["keys"]) == ["KSK", "ZSK"]
    now = zone_of(server)
    assert now.get_rdataset(APEX, "DNSKEY") == signed.get_rdataset(APEX, "DNSKEY")
    assert len(status(server)["ds"]) == 1
    send(server, ("add", "new", 1, "A", "192.0.2.9"))
    path = server.folder / "served"
    path.write_text("".join(f"{name} {ttl} IN {dns.rdatatype.to_text(rdata.rdtype)} {rdata.to_text()}\n"
                            for name, ttl, rdata in zone_of(server).iterate_rdatas()))
    run("dnssec-verify", "-q", "-o", ZONE, path, folder=folder)
    assert "signed by its keys already" in dnssec(server, "import", f"{ksk}.private", code=1)


def test_check_tells_beforehand_what_a_policy_would_do(signing, options, folder):
    (folder / "zone").write_text(TEXT + "@ 600 ZONEMD 7 1 1 " + "00" * 48 + "\nlong 2000000 TXT x\n")
    server = signing([{**options, "dnssec": "off"}]).start(ZONE)
    found = json.loads(dnssec(server, "check", "--json"))
    assert found["makes_key"] and found["left_out"] == 1 and found["policy"] == "default" and found["serial"] == 7
    assert "longest TTL" in found["notes"][0] and not key_folder(server).exists()
    dnssec(server, "check", "--policy", "none", code=1)
    server.zones = [options]
    configure(server)
    server.control("reload")
    servers.wait_until("the zone is signed", lambda: server.ask(ZONE, "DNSKEY").answer)
    made = [rdata for _, _, rdata in zone_of(server).iterate_rdatas() if rdata.rdtype == dns.rdatatype.RRSIG]
    assert found["signatures"] == len(made)


def test_a_new_ttl_of_negative_answers_reaches_all_names(signing, options):
    server = signing([{**options, "dnssec": "quick"}]).start(ZONE)
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    old = zone_of(server).get_rdataset(APEX, "SOA")[0]
    send(server, ("replace", APEX, 900, "SOA", old.replace(serial=old.serial + 10, minimum=800).to_text()))

    def ttls(kind):
        return {rdataset.ttl for _, rdataset in zone_of(server).iterate_rdatasets(dns.rdatatype.from_text(kind))}

    servers.wait_until("all NSEC records have it", lambda: ttls("NSEC") == {800})
    assert ttls("DNSKEY") == {900} == ttls("CDS")


def test_signatures_stay_young_beside_all_else(signing, options):
    """At validity 60 s and refresh 20 s everybody sees 20 s at each moment, over updates and restarts."""
    server = signing([options], "{name: quick, validity: 60s, refresh: 20s, propagation: 1s}").start(ZONE)
    wait_for(server, "ds-wanted")
    begin, looks, step, serials = time.monotonic(), 0, 0, set()
    last = excused_until = begin
    while time.monotonic() < begin + 70:
        now = time.time()
        zone = zone_of(server)
        left = min(rdata.expiration - now for _, _, rdata in zone.iterate_rdatas() if rdata.rdtype == dns.rdatatype.RRSIG)
        # A fifth of the 20 s is for the renewal: a machine that stood still for most of it is excused for a moment.
        if time.monotonic() - last > 2.5:
            excused_until = time.monotonic() + 10
        last = time.monotonic()
        assert left >= 20 or last < excused_until, (left, server.log()[-3000:])
        serials.add(zone.get_rdataset(APEX, "SOA")[0].serial)
        looks, step = looks + 1, step + 1
        if step % 5 == 0:
            send(server, ("add", f"n{step}", 1, "A", "192.0.2.9"))
        if step % 40 == 20:
            server.kill()
            server.start(ZONE)
        time.sleep(0.5)
    assert looks > 20 and len(serials) > 5
    assert status(server)["signatures_end"] > time.time() + 20


@pytest.mark.parametrize("damage", ["garbled", "unreadable"])
def test_facts_that_cannot_be_read_are_a_problem_and_no_new_beginning(signing, options, damage):
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    facts = key_folder(server) / "facts"
    servers.wait_until("facts are written", lambda: "cds" in facts.read_text())
    text = facts.read_text()
    server.kill()
    facts.write_text("signed yes\n") if damage == "garbled" else (facts.unlink(), facts.mkdir())
    server.start(ZONE)
    servers.wait_until("the problem is told", lambda: "facts" in status(server).get("problem", ""))
    assert status(server)["stage"] == "keys-missing"
    send(server, ("add", "new", 1, "A", "192.0.2.9"), rcode=dns.rcode.SERVFAIL)
    assert zone_of(server).get_rdataset(APEX, "DNSKEY")
    if damage == "unreadable":
        facts.rmdir()
    facts.write_text(text)
    wait_for(server, "ds-wanted")
    send(server, ("add", "new", 1, "A", "192.0.2.9"))


def test_a_kill_when_facts_are_written_makes_no_wait_shorter(signing, options):
    server = signing([options])
    server.crash_at = "facts-written:1"
    server.start_until_killed(ZONE)
    server.crash_at = None
    server.start(ZONE)
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    served = sets_of(zone_of(server))
    assert (f"{ZONE}.", "CDS", "TYPE0") in served or any(key[1] == "CDS" for key in served)


def test_a_new_key_file_signs_nothing_in_a_zone_that_is_signed(signing, options):
    """Resolvers that know the zone's DNSKEY records would take its signatures for bogus."""
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    served = zone_of(server)
    run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", ZONE, folder=key_folder(server))
    server.kill()
    server.start(ZONE)
    servers.wait_until("the problem is told", lambda: "is not in the zone's DNSKEY records" in status(server)["problem"])
    assert zone_of(server).get_rdataset(APEX, "DNSKEY") == served.get_rdataset(APEX, "DNSKEY")
    send(server, ("add", "new", 1, "A", "192.0.2.9"), rcode=dns.rcode.SERVFAIL)
    for path in key_folder(server).glob("K*"):
        path.unlink()
    server.kill()
    server.start(ZONE)
    wait_for(server, "ds-wanted")
    send(server, ("add", "new", 1, "A", "192.0.2.9"))


def derived_in(server):
    return {rdataset.rdtype for _, rdataset in zone_of(server).iterate_rdatasets()} & {
        dns.rdatatype.from_text(kind) for kind in ("RRSIG", "NSEC", "DNSKEY", "CDS", "CDNSKEY")}


def test_a_rollback_of_an_unsigned_zone_brings_no_signatures_back(signing, options):
    server = signing([options]).start(ZONE)
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    send(server, ("add", "old", 1, "A", "192.0.2.9"))
    server.control("zone", "snapshot", ZONE, "signed")
    send(server, ("delete", "old"))
    dnssec(server, "unsign")
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    server.control("zone", "rollback", ZONE, "signed")
    assert server.ask(f"old.{ZONE}").answer and not derived_in(server)


@pytest.mark.parametrize("how", ["reload", "host"])
def test_records_of_a_signer_in_the_file_of_an_unsigned_zone_are_left_out(signing, options, folder, how):
    server = signing([options]).start(ZONE)
    wait_for(server, "ds-wanted")
    dnssec(server, "unsign")
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    text = (folder / "zone").read_text().replace(" 7 3600", " 100 3600")
    (folder / "zone").write_text(text + "www 1 NSEC @ A RRSIG NSEC\n@ 1 CDS 0 0 0 00\n@ 1 DNSKEY 257 3 13 "
                                 "mdsswUyr3DPW132mOi8V9xESWE8jTo0dxCjjnopKl+GqJxpVXckHAeF+KkxLbxILfDLUT0rAK9iUzy1L53eKGQ==\n")
    if how == "reload":
        server.control("reload")
    else:
        server.kill()
        server.lose_memory()
        server.start(ZONE)
    servers.wait_until("the file is served", lambda: server.serial(ZONE) >= 100)
    assert not derived_in(server) and status(server)["stage"] == "unsigned"


def test_a_zone_that_comes_back_begins_its_waits_anew(signing, options, folder):
    """Here or elsewhere it may have been served unsigned meanwhile."""
    other = {"name": "other.test", "file": str(folder / "child")}
    policy = "{name: quick, validity: 1h, propagation: 15s, parent-ds-ttl: 1s}"
    server = signing([options, other], policy).start(ZONE)
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"], 60)
    for zones in ([other], [options, other]):
        server.zones = zones
        configure(server, policy)
        server.control("reload")
    servers.wait_until("the zone is served", lambda: server.ask(ZONE, "DNSKEY").answer)
    assert status(server)["stage"] in ("signing", "spreading") and not apex_sets(server)["CDS"]
    wait_for(server, "ds-wanted")


def test_a_kill_between_facts_and_list_lets_the_policy_go(signing, options):
    server = signing([options])
    server.crash_at = "facts-written:5"  # signed, cds, unsign, ds-gone, unsigned
    server.start(ZONE)
    servers.wait_until("facts are written", lambda: "cds" in (key_folder(server) / "facts").read_text())
    dnssec(server, "unsign")
    # A fact that two looks have found is written twice, and then this one is the fifth.
    server.control("dnssec", "ds-gone", ZONE, check=False)
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    server.crash_at = None
    server.start(ZONE)
    wait_for(server, "unsigned")
    server.zones = [{**options, "dnssec": "off"}]
    configure(server)
    reload(server)


def test_cancels_at_any_moment_end_in_a_signed_zone(signing, options):
    server = signing([options], "{name: quick, validity: 1h, propagation: 0s, parent-ds-ttl: 0s, cds: false}").start(ZONE)
    wait_for(server, "ds-wanted")
    pick = random.Random(5)
    for _ in range(12):
        dnssec(server, "unsign")
        dnssec(server, "ds-gone")
        time.sleep(pick.random() * 0.6)
        dnssec(server, "unsign", "--cancel")
        wait_for(server, "ds-wanted")
        servers.wait_until("it is signed", lambda: server.ask(ZONE, "DNSKEY").answer)
    send(server, ("add", "new", 1, "A", "192.0.2.9"))
    assert "RRSIG" in str(server.ask(f"new.{ZONE}", want_dnssec=True).answer)
    server.kill()
    server.lose_memory()
    server.start(ZONE)
    servers.wait_until("it is signed", lambda: server.ask(ZONE, "DNSKEY").answer)
    assert "RRSIG" in str(server.ask(f"new.{ZONE}", want_dnssec=True).answer)
