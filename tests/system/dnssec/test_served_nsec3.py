"""Zones that the manager signs with NSEC3: each change leaves the zone that `pandoctl zone sign --nsec3` makes of the source,
and a zone that is served gets another way of denial in one version."""

import pathlib
import random
import shutil
import threading
import time

import dns.dnssec
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import pytest

import servers
import test_served_signed as served
from test_served_signed import APEX, TEXT, ZONE, check, send, sets_of, zone_of

WORDS = {"off": [], "on": ["--nsec3"], "opt-out": ["--nsec3", "--opt-out"]}
DS = "1 8 2 " + "01" * 32


def configure(server, nsec3):
    server.write_config()
    with open(server.config, "a", encoding="utf-8") as config:
        config.write(f"dnssec-policies: [{{name: default, nsec3: {nsec3}}}]\n")


def switch(server, nsec3):
    serial = server.serial(ZONE)
    configure(server, nsec3)
    server.control("reload")
    servers.wait_until("the zone is signed anew", lambda: server.serial(ZONE) != serial)
    assert server.serial(ZONE) == serial + 1, "in one version"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zone").write_text(TEXT)
    return tmp_path


@pytest.fixture
def options(folder):
    return {"name": ZONE, "file": str(folder / "zone"), "dnssec": "default", "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


@pytest.fixture
def start(pando, options):
    def started(nsec3):
        server = pando([options], workers=1)
        configure(server, nsec3)
        return server.start(ZONE)
    return started


def owner_of(name):
    return f"{dns.dnssec.nsec3_hash(f'{name}.{ZONE}', '', 0, 1).lower()}"


@pytest.mark.parametrize("nsec3", ["on", "opt-out"])
def test_changes_of_each_kind_leave_a_valid_zone(start, nsec3):
    server = start(nsec3)
    check(server, *WORDS[nsec3])
    for steps in ([("add", "new", 60, "A", "192.0.2.9"), ("delete", "www")],
                  [("add", "sub", 60, "NS", "ns.sub"), ("add", "ns.sub", 60, "A", "192.0.2.10")],
                  [("add", "sub", 60, "DS", DS), ("add", "x.y.tld", 60, "NS", "ns.sub")],
                  [("add", "x.y.tld", 60, "DS", DS), ("delete", "sub", "DS")],
                  [("delete", "sub"), ("delete", "cut", "NS"), ("delete", "x.y.tld", "DS")],
                  [("add", "b.ent", 60, "DNAME", "other.test.")],
                  [("delete", "b.ent"), ("delete", "*.wild"), ("add", "*", 60, "TXT", "x")],
                  [("add", "@", 900, "MX", "10 www"), ("add", "ns1", 30, "A", "192.0.2.99")],
                  [("replace", "@", 600, "SOA", f"ns1.{ZONE}. other.{ZONE}. 4000 3600 600 86400 60")]):
        before = server.serial(ZONE)
        send(server, *steps)
        assert server.serial(ZONE) != before
        check(server, *WORDS[nsec3])
    server.control("zone", "rollback", ZONE, "8")
    check(server, *WORDS[nsec3])


def test_names_of_the_chain_are_names_like_others_to_updates(start):
    server = start("on")
    owner = owner_of("www")
    for prerequisite, rcode in ((("present", owner, "NSEC3"), dns.rcode.NOERROR), (("absent", owner), dns.rcode.YXDOMAIN),
                                (("present", owner_of("none")), dns.rcode.NXDOMAIN)):
        update = dns.update.UpdateMessage(ZONE)
        getattr(update, prerequisite[0])(*prerequisite[1:])
        update.add("yes", 60, "A", "192.0.2.1")
        assert dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == rcode
    before = zone_of(server)
    send(server, ("delete", owner))
    send(server, ("delete", owner, "NSEC3"), ("delete", "@", "NSEC3PARAM"))
    assert set(before.iterate_rdatas()) == set(zone_of(server).iterate_rdatas())
    send(server, ("add", owner, 60, "A", "192.0.2.77"))
    check(server, *WORDS["on"])
    assert server.ask(f"{owner}.{ZONE}", "A").answer
    send(server, ("delete", owner))
    check(server, *WORDS["on"])
    assert server.ask(f"{owner}.{ZONE}", "A").rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize("how", ["process", "host"])
def test_nothing_is_lost_by_a_restart(start, how):
    server = start("opt-out")
    for number in range(3):
        send(server, ("add", f"r{number}", 60, "A", "192.0.2.9"), ("delete", "a.b.ent"))
        before = zone_of(server)
        if how == "process":
            server.kill()
        else:
            server.lose_memory()
        server.start(ZONE)
        zone = check(server, *WORDS["opt-out"])
        assert zone.get_node(f"r{number}.{ZONE}.") and not zone.get_node(f"a.b.ent.{ZONE}.")
        assert sets_of(zone_of(server)) == sets_of(before)


def test_edited_files_are_merged_with_updates(start, options):
    server = start("on")
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"), ("delete", "dn"))
    serial = server.serial(ZONE)
    # A file with somebody's records of denial: they are left out.
    pathlib.Path(options["file"]).write_text(
        TEXT.replace(" 7 3600", " 8 3600") + f"more 60 TXT m\n@ 60 NSEC3PARAM 1 0 7 AB\n{owner_of('www')} 60 NSEC3 1 0 7 AB "
        f"{owner_of('more')} A\n")
    server.control("zone", "reload", ZONE)
    zone = check(server, *WORDS["on"])
    assert zone.get_node(f"dynamic.{ZONE}.") and zone.get_node(f"more.{ZONE}.") and not zone.get_node(f"dn.{ZONE}.")
    assert server.serial(ZONE) == serial + 1, "by a changeset"
    server.control("zone", "reload", ZONE)
    assert server.serial(ZONE) == serial + 1
    server.control("zone", "export", ZONE)
    assert "NSEC3" not in pathlib.Path(options["file"]).read_text()


def test_a_served_zone_goes_from_nsec_to_nsec3_and_back(start):
    server = start("off")
    server.control("zone", "snapshot", ZONE, "nsec")
    source = sets_of(check(server))
    for number, nsec3 in enumerate(["on", "opt-out", "off", "opt-out", "on", "off"]):
        switch(server, nsec3)
        check(server, *WORDS[nsec3])
        send(server, ("add", f"after{number}.new", 60, "A", "192.0.2.9"))
        zone = check(server, *WORDS[nsec3])
        assert zone.get_node(f"after{number}.new.{ZONE}.")
        if nsec3 == "opt-out":
            server.control("zone", "rollback", ZONE, "nsec")
            assert sets_of(check(server, *WORDS[nsec3])) == source
    # The policy changes while the manager is not there.
    for how in (server.kill, server.lose_memory):
        how()
        nsec3 = "on" if how == server.kill else "off"
        configure(server, nsec3)
        server.start(ZONE)
        servers.wait_until("it is signed anew", lambda: bool(
            zone_of(server).get_rdataset(APEX, "NSEC3PARAM")) == (nsec3 == "on"))
        assert check(server, *WORDS[nsec3]).get_node(f"after5.new.{ZONE}.")


@pytest.mark.parametrize("peer", ["bind", "knot"])
def test_secondaries_follow_by_ixfr_and_stay_valid(start, peers, folder, peer):
    with open(folder / "zone", "a", encoding="utf-8") as zone:
        zone.writelines(f"h{number} 300 A 192.0.2.3\n" for number in range(400))
    server = start("opt-out")
    copy = peers(served.secondary(peer, server, folder / peer), ZONE)
    pick = random.Random(7)
    labels = ["a", "b", "c", "cut", "www", "x.cut", "a.b.ent", "*.wild", "new", "sub.new"]
    for step in range(60):
        name = pick.choice(labels)
        kind = pick.choice(["A", "TXT"] if name.startswith("*") else ["A", "TXT", "NS", "DS"])
        data = {"A": f"192.0.2.{step}", "TXT": f"t{step}", "NS": "ns1", "DS": DS}[kind]
        if step == 40:
            assert "kind=ixfr" in server.log()
            switch(server, "off")
        send(server, ("add", name, 60, kind, data) if pick.random() < 0.7 else ("delete", name))
        if step % 20 == 19:
            servers.wait_until("the copy has followed", lambda: copy.serial(ZONE) == server.serial(ZONE))
            assert set(zone_of(copy).iterate_rdatas()) == set(zone_of(server).iterate_rdatas())
            check(server, *WORDS["opt-out" if step < 40 else "off"])


def test_a_validating_resolver_sees_nothing_bogus(start, peers, folder):
    if not shutil.which("unbound"):
        pytest.skip("unbound is not installed")
    server = start("off")
    key = zone_of(server).get_rdataset(APEX, "DNSKEY")[0]
    resolver = peers(served.Unbound(folder / "unbound", server, f"{ZONE}. DNSKEY {key.to_text()}"), ZONE)
    names = ["www", "new", "a", "none.a", "a.b.ent", "ent", "x.wild", "ns1", "zz", "*", "b.ent"]
    stop, faults, asked = threading.Event(), [], []

    def ask_on():
        mine = random.Random(12)
        while not stop.is_set():
            query = dns.message.make_query(f"{mine.choice(names)}.{ZONE}", mine.choice(["A", "TXT", "DS"]), want_dnssec=True)
            try:
                answer = dns.query.udp(query, "127.0.0.1", port=resolver.port, timeout=30)
            except Exception as error:  # a fault of the test itself, too
                faults.append(error)
                return
            asked.append(answer.rcode())
            if answer.rcode() not in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN):
                faults.append((answer.to_text(), resolver.log()[-3000:]))
                return

    asking = threading.Thread(target=ask_on)
    asking.start()
    pick = random.Random(11)
    try:
        for step in range(120):
            if step % 20 == 10:
                switch(server, ["on", "opt-out", "off"][step // 20 % 3])
            name, kind = pick.choice(["new", "a", "none.a", "www", "ent", "*"]), pick.choice(["A", "TXT"])
            data = {"A": f"192.0.2.{step}", "TXT": f"t{step}"}[kind]
            send(server, ("add", name, 1, kind, data) if pick.random() < 0.6 else ("delete", name))
        time.sleep(1.1)
    finally:
        stop.set()
        asking.join()
    assert not faults, faults[0]
    assert len(asked) > 100 and set(asked) == {dns.rcode.NOERROR, dns.rcode.NXDOMAIN}


def test_a_kill_while_the_zone_gets_another_chain_loses_nothing(pando, options):
    server = pando([options], workers=1)
    configure(server, "off")
    server.crash_at = "served-zone-signed:1"
    server.start(ZONE)
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"))
    key = served.key_file(server).read_text()
    configure(server, "opt-out")
    server.control("reload", check=False)
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    server.crash_at = None
    server.start(ZONE)
    servers.wait_until("the zone has the other chain", lambda: zone_of(server).get_rdataset(APEX, "NSEC3PARAM"))
    assert check(server, *WORDS["opt-out"]).get_node(f"dynamic.{ZONE}.")
    assert served.key_file(server).read_text() == key


def test_a_zone_with_a_name_too_long_for_nsec3_has_nsec(pando, folder):
    apex = ".".join(["a" * 63] * 3 + ["b" * 29]) + "."
    (folder / "long").write_text("@ 600 SOA ns.test. admin.test. 7 3600 600 86400 60\n@ 300 NS ns.test.\n")
    server = pando([{"name": apex, "file": str(folder / "long"), "dnssec": "default"}], workers=1)
    configure(server, "on")
    server.start(apex)
    answer = server.ask(apex, "A", want_dnssec=True)
    assert [rrset.rdtype for rrset in answer.authority if rrset.rdtype in (dns.rdatatype.NSEC, dns.rdatatype.NSEC3)] == [
        dns.rdatatype.NSEC]


def is_taken(server, name):
    update = dns.update.UpdateMessage(ZONE)
    update.add(name, 60, "A", "192.0.2.9")
    answer = dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=60).rcode()
    assert answer in (dns.rcode.NOERROR, dns.rcode.SERVFAIL)
    return answer == dns.rcode.NOERROR


def test_a_policy_that_changes_while_the_zone_is_signed_is_followed(start, folder):
    with open(folder / "zone", "a", encoding="utf-8") as zone:
        zone.writelines(f"h{number} 300 A 192.0.2.3\n" for number in range(20_000))
    server = start("off")
    for nsec3 in ("on", "off", "opt-out"):
        configure(server, nsec3)
        server.control("reload")
        # It waits for the signing; where that takes longer than workers wait for a reply, it is sent again.
        servers.wait_until("the update is taken", lambda name=f"while-{nsec3}": is_taken(server, name), 120)

    def has_opt_out():
        answer = server.ask(f"none.{ZONE}", "A", want_dnssec=True)
        return any(record.flags & 1 for rrset in answer.authority if rrset.rdtype == dns.rdatatype.NSEC3 for record in rrset)
    servers.wait_until("the last policy is followed", has_opt_out, 120)
    zone = check(server, *WORDS["opt-out"])
    assert all(zone.get_node(f"while-{nsec3}.{ZONE}.") for nsec3 in WORDS)
    assert "zone_not_signed" not in server.log()
