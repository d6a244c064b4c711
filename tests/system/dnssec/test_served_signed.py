"""Zones that the manager signs (`zones[].dnssec`): what is served is valid after each change, from whatever source it comes,
and equals `pandoctl zone sign` of the zone's source. Real tools verify it, and real secondaries follow by IXFR."""

import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

import dns.dnssec
import dns.flags
import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import dns.zone
import pytest
from cryptography.hazmat.primitives import serialization

import servers
from signed_zones import run

needs_bind = pytest.mark.skipif(not shutil.which("dnssec-signzone"), reason="needs bind9-utils")

ZONE = "signed.test"
APEX = dns.name.from_text(ZONE)
DERIVED = {dns.rdatatype.RRSIG, dns.rdatatype.NSEC, dns.rdatatype.NSEC3, dns.rdatatype.NSEC3PARAM, dns.rdatatype.DNSKEY}
TEXT = """@ 600 SOA ns1 admin 7 3600 600 86400 60
@ 300 NS ns1
ns1 300 A 192.0.2.1
www 300 A 192.0.2.2
a.b.ent 300 TXT below
*.wild 300 MX 10 www
cut 300 NS ns.cut
ns.cut 300 A 192.0.2.53
secure 300 NS ns.elsewhere.test.
secure 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123
dn 300 DNAME elsewhere.test.
"""
VERIFIERS = {"dnssec-verify": ["dnssec-verify", "-q", "-x", "-o", ZONE, "FILE"],
             "ldns-verify-zone": ["ldns-verify-zone", "FILE"]}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zone").write_text(TEXT)
    return tmp_path


@pytest.fixture
def options(folder):
    return {"name": ZONE, "file": str(folder / "zone"), "dnssec": "default", "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


@pytest.fixture
def server(pando, options):
    return pando([options], workers=1).start(ZONE)


def send(server, *steps, rcode=dns.rcode.NOERROR, zone=ZONE):
    update = dns.update.UpdateMessage(zone)
    update.use_edns(0)
    for verb, *words in steps:
        getattr(update, verb)(*words)
    answer = dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=30)
    assert answer.rcode() == rcode, (steps, answer.to_text())
    return answer


def zone_of(server, zone=ZONE):
    return dns.zone.from_xfr(dns.query.xfr("127.0.0.1", zone, port=server.port, relativize=False, lifetime=60),
                             relativize=False)


def sets_of(zone, derived=True):
    """Sets as text, of signatures all but octets and times, of the SOA all but the serial."""
    found = {}
    for name, rdataset in zone.iterate_rdatasets():
        if not derived and rdataset.rdtype in DERIVED:
            continue
        covers = dns.rdatatype.to_text(rdataset.covers)
        rdatas = sorted(rdata.to_text().lower() for rdata in rdataset)
        if rdataset.rdtype == dns.rdatatype.RRSIG:
            rdatas = sorted(f"{rdata.algorithm} {rdata.labels} {rdata.original_ttl} {rdata.key_tag}" for rdata in rdataset)
        if rdataset.rdtype == dns.rdatatype.SOA:
            rdatas = [rdata.replace(serial=0).to_text() for rdata in rdataset]
        found[name.to_text().lower(), dns.rdatatype.to_text(rdataset.rdtype), covers] = (rdataset.ttl, rdatas)
    return found


def pandoctl(*words, code=0):
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), *map(str, words)], capture_output=True, text=True,
                          timeout=300, stdin=subprocess.DEVNULL)
    assert done.returncode == code, (words, done.stdout[-2000:], done.stderr[-2000:])
    return done.stdout


def key_folder(server, zone=ZONE):
    return server.folder / "journal" / "dnssec" / zone


def key_file(server):
    found = list(key_folder(server).glob("*.pem"))
    assert len(found) == 1
    return found[0]


def check(server, *options):
    """The served zone is valid, for real tools and ours, and is `zone sign` of its source. Returns its source."""
    served = zone_of(server)
    path = server.folder / "served"
    path.write_text("".join(f"{name} {ttl} IN {dns.rdatatype.to_text(rdata.rdtype)} {rdata.to_text()}\n"
                            for name, ttl, rdata in served.iterate_rdatas()))
    tools = [tool for tool in VERIFIERS if shutil.which(tool)]
    for tool in tools:
        words = [str(path) if word == "FILE" else word for word in VERIFIERS[tool]]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    assert tools or servers.peer_program("named") is None
    source, signed = server.folder / "source", server.folder / "signed"
    for old in (source, signed):
        old.unlink(missing_ok=True)
    server.control("zone", "export", ZONE, "--to", str(source))
    exported = dns.zone.from_file(str(source), ZONE, relativize=False)
    assert not any(rdataset.rdtype in DERIVED for _, rdataset in exported.iterate_rdatasets())
    pandoctl("zone", "sign", source, "--key", key_file(server), "--origin", ZONE, "--out", signed, *options)
    assert sets_of(served) == sets_of(dns.zone.from_file(str(signed), ZONE, relativize=False))
    return exported


def looks(server, name, rdtype="A"):
    """The answer with signatures, validated with the zone's own key."""
    query = dns.message.make_query(f"{name}.{ZONE}", rdtype, want_dnssec=True)
    answer = dns.query.udp(query, "127.0.0.1", port=server.port, timeout=15)
    keys = {APEX: zone_of(server).get_rdataset(APEX, "DNSKEY")}
    for rrset in answer.answer:
        if rrset.rdtype != dns.rdatatype.RRSIG:
            rrsigs = answer.find_rrset(answer.answer, rrset.name, rrset.rdclass, dns.rdatatype.RRSIG, rrset.rdtype)
            dns.dnssec.validate(rrset, rrsigs, keys)
    return answer


def test_a_zone_is_signed_when_it_is_loaded(server):
    check(server)
    assert server.serial(ZONE) == 8
    assert key_file(server).stat().st_mode & 0o777 == 0o600
    assert (server.folder / "journal/signed-zones.list").read_text().endswith("signed.test.\n")
    assert looks(server, "www").answer
    row = server.control("zone", "status", ZONE)
    key = zone_of(server).get_rdataset(APEX, "DNSKEY")[0]
    assert row["dnssec"] == "default" and row["ds"] == [dns.dnssec.make_ds(APEX, key, "SHA256").to_text().upper()]


def test_noerror_means_signed_and_visible(server):
    for number in range(20):
        send(server, ("add", f"n{number}", 60, "A", "192.0.2.7"))
        answer = looks(server, f"n{number}")
        assert len(answer.answer) == 2, answer.to_text()
    check(server)


def test_changes_of_each_kind_leave_a_valid_zone(server):
    for steps in ([("add", "new", 60, "A", "192.0.2.9"), ("delete", "www")],
                  [("add", "sub", 60, "NS", "ns.sub"), ("add", "ns.sub", 60, "A", "192.0.2.10")],
                  [("add", "sub", 60, "DS", "1 8 2 " + "01" * 32)],
                  [("delete", "sub"), ("delete", "cut", "NS")],
                  [("add", "b.ent", 60, "DNAME", "other.test.")],
                  [("delete", "b.ent"), ("delete", "*.wild"), ("add", "*", 60, "TXT", "x")],
                  [("add", "@", 900, "MX", "10 www"), ("add", "ns1", 30, "A", "192.0.2.99")],
                  [("replace", "@", 600, "SOA", f"ns1.{ZONE}. other.{ZONE}. 4000 3600 600 86400 60")]):
        before = server.serial(ZONE)
        send(server, *steps)
        assert server.serial(ZONE) != before
        check(server)


@pytest.mark.parametrize("record", [
    ("www", "RRSIG", "A 13 3 300 20300101000000 20200101000000 12345 signed.test. AAAA"),
    ("www", "NSEC", "x A"), ("@", "DNSKEY", "257 3 13 AAAA"), ("@", "CDS", "1 13 2 " + "01" * 32),
    ("@", "NSEC3PARAM", "1 0 0 -"), ("0p9mhaveqvm6t7vbl5lop2u3t2rp3tom", "NSEC3", "1 0 0 - 2t7b4g4vsa5smi47k61mv5bv1a22bojr A"),
    ("@", "ZONEMD", "7 1 1 " + "00" * 48)])
def test_records_of_a_signer_are_refused(server, record):
    owner, rdtype, data = record
    before = zone_of(server)
    answer = send(server, ("add", owner, 60, rdtype, data), rcode=dns.rcode.REFUSED)
    assert any("signs the zone" in option.text for option in answer.options)
    send(server, ("delete", owner, rdtype))
    send(server, ("delete", owner, rdtype, data))
    assert set(before.iterate_rdatas()) == set(zone_of(server).iterate_rdatas())
    check(server)


def test_deleting_a_name_leaves_no_record_of_the_signer(server):
    send(server, ("delete", "www"), ("delete", "@"))
    zone = check(server)
    assert zone.get_node(f"www.{ZONE}.") is None and zone_of(server).get_node(f"www.{ZONE}.") is None


def test_prerequisites_see_signatures(server):
    update = dns.update.UpdateMessage(ZONE)
    update.present("www", "NSEC")
    update.add("yes", 60, "A", "192.0.2.1")
    assert dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR


def test_transactions_rollback_and_snapshots(server):
    server.control("zone", "begin", ZONE)
    server.control("zone", "set", ZONE, "t1", "60", "A", "192.0.2.9")
    server.control("zone", "set", ZONE, "t2", "60", "TXT", "x")
    server.control("zone", "unset", ZONE, "www")
    server.control("zone", "commit", ZONE)
    check(server)
    server.control("zone", "begin", ZONE)
    server.control("zone", "set", ZONE, "www", "60", "NSEC", "x", "A")
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "commit", ZONE],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "signs the zone" in done.stdout + done.stderr
    server.control("zone", "abort", ZONE)
    source = sets_of(check(server))
    serial = server.serial(ZONE)
    server.control("zone", "snapshot", ZONE, "before")
    send(server, ("delete", "t1"), ("add", "cut2", 60, "NS", "ns1"), ("add", "x.cut2", 60, "A", "192.0.2.3"))
    server.control("zone", "rollback", ZONE, str(serial))
    assert sets_of(check(server)) == source
    send(server, ("delete", "t2"))
    server.control("zone", "rollback", ZONE, "before")
    assert sets_of(check(server)) == source


def reload(server, text, code=None):
    path = pathlib.Path(server.zones[0]["file"])
    path.write_text(text)
    return server.control("zone", "reload", ZONE)


def test_edited_files_are_merged_with_updates(server):
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"), ("delete", "dn"))
    serial = server.serial(ZONE)
    reload(server, TEXT.replace(" 7 3600", " 8 3600").replace("www 300 A 192.0.2.2", "www 300 A 192.0.2.22\nmore 60 TXT m"))
    zone = check(server)
    assert zone.get_node(f"dynamic.{ZONE}.") and zone.get_node(f"more.{ZONE}.") and not zone.get_node(f"dn.{ZONE}.")
    assert server.serial(ZONE) == serial + 1, "by a changeset"
    unchanged = server.serial(ZONE)
    server.control("zone", "reload", ZONE)
    assert server.serial(ZONE) == unchanged
    # A file with somebody's signatures: they are left out.
    reload(server, TEXT + "www 300 RRSIG A 13 3 300 20300101000000 20200101000000 12345 signed.test. AAAA\n@ 60 NSEC ns1 A\n")
    assert check(server).get_node(f"dynamic.{ZONE}.")


def test_a_large_edit_is_merged_beside_steady_updates(pando, options, folder):
    """Its signatures take longer than the pause between two updates, which wait when the zone moved away under it."""
    text = TEXT + "".join(f"h{number} 300 A 192.0.2.3\n" for number in range(4000))
    (folder / "zone").write_text(text)
    server = pando([options], workers=1).start(ZONE)
    send(server, ("add", "first", 60, "A", "192.0.2.9"))
    stop, sent, faults = threading.Event(), [], []

    def update():
        while not stop.is_set() and not faults:
            try:
                send(server, ("add", f"u{len(sent)}", 60, "A", "192.0.2.9"))
                sent.append(len(sent))
            except Exception as error:  # a fault of the test itself, too
                faults.append(error)

    updating = threading.Thread(target=update)
    updating.start()
    try:
        (folder / "zone").write_text(text.replace(" 7 3600", " 8 3600").replace("192.0.2.3", "192.0.2.4"))
        server.control("reload")
        servers.wait_until("the edit is served", lambda: server.ask(f"h3999.{ZONE}").answer[0][0].address == "192.0.2.4", 120)
    finally:
        stop.set()
        updating.join()
    assert not faults and len(sent) > 5, faults
    names = {name.to_text() for name, _ in zone_of(server).iterate_rdatasets()}
    assert all(f"u{number}.{ZONE}." in names for number in sent)


def test_an_export_is_the_source_and_the_zone_agrees_with_it(server):
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"))
    server.control("zone", "export", ZONE)
    text = pathlib.Path(server.zones[0]["file"]).read_text()
    assert "dynamic" in text and "RRSIG" not in text and "NSEC" not in text and "DNSKEY" not in text
    serial = server.serial(ZONE)
    server.control("zone", "reload", ZONE)
    assert server.serial(ZONE) == serial
    server.lose_memory()
    server.start(ZONE)
    assert check(server).get_node(f"dynamic.{ZONE}.")


@pytest.mark.parametrize("how", ["process", "host"])
def test_nothing_is_lost_by_a_restart(server, how):
    source = sets_of(check(server))
    key = key_file(server).read_text()
    for number in range(5):
        send(server, ("add", f"r{number}", 60, "A", "192.0.2.9"), ("delete", "a.b.ent"))
        before = server.serial(ZONE)
        if how == "process":
            server.kill()
        else:
            server.lose_memory()
        server.start(ZONE)
        zone = check(server)
        assert zone.get_node(f"r{number}.{ZONE}.") and not zone.get_node(f"a.b.ent.{ZONE}.")
        after = server.serial(ZONE)
        assert after == before if how == "process" else after > before, "other signatures have another serial"
        assert key_file(server).read_text() == key
    assert set(source) <= set(sets_of(zone)) | {key for key in source if "a.b.ent" in key[0]}


def test_a_zone_that_is_served_gets_a_policy(pando, options):
    server = pando([{**options, "dnssec": "off"}], workers=1).start(ZONE)
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"))
    serial = server.serial(ZONE)
    assert not (server.folder / "journal/dnssec").exists()
    server.zones = [options]
    server.write_config()
    server.control("reload")
    servers.wait_until("the zone is signed", lambda: server.serial(ZONE) == serial + 1)
    assert server.serial(ZONE) == serial + 1
    assert check(server).get_node(f"dynamic.{ZONE}.")
    send(server, ("add", "later", 60, "A", "192.0.2.9"))
    check(server)
    server.lose_memory()
    server.start(ZONE)
    zone = check(server)
    assert zone.get_node(f"dynamic.{ZONE}.") and zone.get_node(f"later.{ZONE}.")


def test_a_signed_zone_keeps_its_policy(server, options):
    server.zones = [{**options, "dnssec": "off"}]
    server.write_config()
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "would be served unsigned" in done.stderr, done
    check(server)
    send(server, ("add", "still", 60, "A", "192.0.2.9"))
    server.stop()
    process = subprocess.run(server.command(), capture_output=True, text=True, timeout=60)
    assert process.returncode == 78 and "would be served unsigned" in process.stdout + process.stderr
    server.zones = [options]
    server.write_config()
    server.start(ZONE)
    check(server)


def broken_by(server, how):
    path = key_file(server)
    text = path.read_text()
    if how == "missing":
        path.unlink()
    elif how == "truncated":
        path.write_text(text[:len(text) // 2])
    elif how == "readable by all":
        path.chmod(0o644)
    elif how == "another zone's":
        path.write_text(text.replace("signed.test.", "other.test."))
    else:
        shutil.rmtree(path.parent)
    def mend():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o600)
    return mend


@pytest.mark.parametrize("host", [False, True])
@pytest.mark.parametrize("how", ["missing", "truncated", "readable by all", "another zone's", "no folder"])
def test_unusable_keys_make_no_new_ones(server, how, host):
    key = key_file(server).read_text()
    server.kill() if not host else server.lose_memory()
    mend = broken_by(server, how)
    server.start(None if host else ZONE)
    servers.wait_until("it is said", lambda: "keys cannot be used" in server.control("zone", "status", ZONE).get("problem", ""))
    if not host:
        assert looks(server, "www").answer, "it is served as it was"
        send(server, ("add", "new", 60, "A", "192.0.2.9"), rcode=dns.rcode.SERVFAIL)
    mend()
    servers.wait_until("it heals", lambda: server.serves(ZONE) and not server.control(
        "zone", "status", ZONE).get("problem"), 40)
    send(server, ("add", "new", 60, "A", "192.0.2.9"))
    check(server)
    assert key_file(server).read_text() == key
    assert "BEGIN" not in server.log() and key.split("\n")[-3] not in server.log()


def with_policy(server, validity):
    server.write_config()
    with open(server.config, "a", encoding="utf-8") as config:
        config.write(f"dnssec-policies: [{{name: short, validity: {validity}}}]\n")


def ends(server):
    """Seconds from now to the end of each signature."""
    return [rdata.expiration - time.time() for _, _, rdata in zone_of(server).iterate_rdatas()
            if rdata.rdtype == dns.rdatatype.RRSIG]


def test_old_signatures_are_renewed(pando, options):
    server = pando([{**options, "dnssec": "short"}], workers=1)
    with_policy(server, "1h")
    server.start(ZONE)
    before = zone_of(server)
    assert max(ends(server)) <= 3600 and min(ends(server)) > 1200, "the ends are spread over four sevenths"
    serial = server.serial(ZONE)
    with_policy(server, "14d")
    server.control("reload")
    servers.wait_until("all are renewed", lambda: min(ends(server)) > 6 * 86400)
    assert server.serial(ZONE) == serial + 1
    assert sets_of(zone_of(server)) == sets_of(before)
    check(server)
    assert "signatures_renewed" in server.log()


def signed_by_others(folder):
    """The zone as BIND signs it, with one key; returns the stem of its files."""
    stem = run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", "-f", "KSK", ZONE, folder=folder)
    plain = folder / "plain"
    plain.write_text(TEXT + (folder / f"{stem}.key").read_text())
    run("dnssec-signzone", "-z", "-o", ZONE, "-f", folder / "zone", plain, stem, folder=folder)
    return folder / stem


@needs_bind
def test_a_zone_signed_by_others_gets_no_new_key(pando, options, folder):
    stem = signed_by_others(folder)
    server = pando([options], workers=1).start()
    servers.wait_until("it is refused", lambda: "'pandoctl dnssec import'" in server.control(
        "zone", "status", ZONE).get("problem", ""))
    assert not server.ask(ZONE, "DNSKEY").answer
    # With its key it is served as signed by that key.
    key_folder(server).mkdir(mode=0o700, parents=True, exist_ok=True)
    for suffix in (".key", ".private"):
        shutil.copy(f"{stem}{suffix}", key_folder(server))
    server.kill()
    server.start(ZONE)
    public = (pathlib.Path(f"{stem}.key").read_text().split("DNSKEY ")[1]).split("\n")[0].replace(" ", "")
    assert [key.to_text().replace(" ", "") for key in zone_of(server).get_rdataset(APEX, "DNSKEY")] == [public]
    send(server, ("add", "new", 60, "A", "192.0.2.9"))
    assert looks(server, "new").answer
    assert not list(key_folder(server).glob("*.pem"))


@needs_bind
def test_a_zone_signed_by_others_takes_no_unsigned_update(pando, options, folder):
    signed_by_others(folder)
    server = pando([{**options, "dnssec": "off"}], workers=1).start(ZONE)
    server.zones = [options]
    server.write_config()
    server.control("reload")
    servers.wait_until("it is said", lambda: "signed by keys that are not there" in server.control(
        "zone", "status", ZONE).get("problem", ""))
    send(server, ("add", "new", 60, "A", "192.0.2.9"), rcode=dns.rcode.SERVFAIL)
    assert "RRSIG" in str(server.ask(f"www.{ZONE}", "A", want_dnssec=True).answer), "it is served as it was"
    assert not server.ask(f"new.{ZONE}").answer


def test_clients_of_some_types_delete_names(pando, options):
    server = pando([{**options, "allow-update": [{"address": "127.0.0.0/8", "types": ["A", "TXT"]}]}], workers=1).start(ZONE)
    send(server, ("add", "n", 60, "A", "192.0.2.9"))
    send(server, ("delete", "n"))
    assert not check(server).get_node(f"n.{ZONE}.")


def test_many_zones_without_keys_hold_up_no_others(pando, options, folder):
    (folder / "other").write_text(TEXT)
    lost = [{"name": f"lost{number}.test", "file": str(folder / "other"), "dnssec": "default"} for number in range(1100)]
    server = pando([options, *lost], workers=1)
    (server.folder / "journal").mkdir(exist_ok=True)
    (server.folder / "journal/signed-zones.list").write_text("".join(f"{zone['name']}.\n" for zone in lost))
    server.start(ZONE)
    send(server, ("add", "new", 60, "A", "192.0.2.9"))
    assert looks(server, "new").answer
    def said():
        return (server.folder / "log").read_text().count("zone_keys_unusable")
    servers.wait_until("all are said", lambda: said() >= 1100, 60)
    time.sleep(12)  # they were tried again by then
    assert said() == 1100


def test_a_zone_of_a_list_keeps_its_policy_over_a_restart(pando, options, folder):
    (folder / "zones.list").write_text(f"{ZONE} {folder}/zone signed\n")
    def configure(policy):
        server.write_config()
        with open(server.config, "a", encoding="utf-8") as config:
            config.write(f"templates: [{{name: signed, dnssec: {policy}, allow-transfer: [{{address: 127.0.0.0/8}}]}}]\n"
                         f"zone-lists: [{folder}/zones.list]\n")
    server = pando([], workers=1)
    configure("default")
    server.start(ZONE)
    check(server)
    server.kill()
    configure("off")
    server.start()
    servers.wait_until("it is said", lambda: "would be served unsigned" in server.log())
    assert "RRSIG" in str(server.ask(f"www.{ZONE}", "A", want_dnssec=True).answer)


def private_octets(path):
    """The number that is the key, and the texts that have it."""
    key = serialization.load_pem_private_key(path.read_bytes()[path.read_bytes().index(b"-----BEGIN"):], None)
    number = key.private_numbers().private_value.to_bytes(32, "big")
    text = [line for line in path.read_text().split("\n") if len(line) == 64 and " " not in line]
    assert text
    return [number, number[::-1], *(line.encode() for line in text[1:])]


def memory_of(pid):
    """What a process may write, without a sanitizer's own."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            words = line.split()
            start, end = (int(address, 16) for address in words[0].split("-"))
            if "w" not in words[1] or end - start > 1 << 28:
                continue
            try:
                memory.seek(start)
                yield memory.read(end - start)
            except OSError:
                continue


@pytest.mark.both
def test_a_private_key_is_in_its_file_alone(pando, options, folder):
    server = pando([options], workers=1, store_extra=f"  image: {folder}/image").start(ZONE)
    for number in range(5):
        send(server, ("add", f"n{number}", 60, "A", "192.0.2.9"))
    server.control("store", "dump", str(folder / "dump"))
    wanted = private_octets(key_file(server))
    server.control("store", "checkpoint")
    searched = 0
    for root in (server.folder, server.store, folder):
        for path in root.rglob("*"):
            if path.is_file() and not path.is_socket() and path.suffix != ".pem":
                octets = path.read_bytes()
                searched += len(octets)
                assert not any(text in octets for text in wanted), path
    assert searched > 100_000
    if os.getuid() == 0:
        for row in server.workers().values():
            for octets in memory_of(row["pid"]):
                assert not any(text in octets for text in wanted)
    # Without --with-keys, a backup has the list of signed zones and no key.
    pandoctl("--config", server.config, "backup", folder / "saved")
    pandoctl("--config", server.config, "backup", folder / "saved-keys", "--with-keys")
    for saved, has in ((folder / "saved", False), (folder / "saved-keys", True)):
        files = [path for path in saved.rglob("*") if path.is_file()]
        assert any(path.name == "signed-zones.list" for path in files)
        assert any(wanted[0] in path.read_bytes() or wanted[-1] in path.read_bytes() for path in files) == has



def secondary(peer, server, folder):
    """A real secondary of the zone, which follows NOTIFY and asks for IXFR."""
    if servers.peer_program(peer) is None:
        pytest.skip(f"{peer} is not installed")
    folder.mkdir()
    if peer == "bind":
        return servers.Bind(folder, {ZONE: f'type secondary; file "{folder}/copy"; primaries {{ 127.0.0.1 port {server.port}; }}; '
                                           'min-refresh-time 1; max-refresh-time 1; allow-transfer { any; };'})
    if peer == "nsd":
        return servers.Nsd(folder, {ZONE: folder / "copy"}, zone_options=f"  request-xfr: 127.0.0.1@{server.port} NOKEY\n"
                           "  allow-notify: 127.0.0.1 NOKEY\n  provide-xfr: 127.0.0.1 NOKEY\n"
                           "  min-refresh-time: 1\n  max-refresh-time: 1\n")
    return servers.Knot(
        folder, {ZONE: folder / "copy"},
        text=f"remote:\n  - id: up\n    address: 127.0.0.1@{server.port}\nacl:\n  - id: all\n    address: 127.0.0.0/8\n"
             "    action: [transfer, notify]\n",
        zone_options={ZONE: "    master: up\n    acl: all\n    refresh-min-interval: 2\n    refresh-max-interval: 2\n"})


@pytest.mark.parametrize("peer", ["bind", "knot", "nsd"])
def test_secondaries_follow_by_ixfr_and_stay_valid(pando, options, peers, folder, peer):
    with open(folder / "zone", "a") as zone:
        zone.writelines(f"h{number} 300 A 192.0.2.3\n" for number in range(400))
    server = pando([options], workers=1).start(ZONE)
    copy = peers(secondary(peer, server, folder / peer), ZONE)
    pick = random.Random(7)
    labels = ["a", "b", "c", "cut", "www", "x.cut", "a.b.ent", "*.wild", "new", "sub.new"]
    kinds = ["A", "TXT", "NS"]
    steps, looks = (10_000, 100) if os.environ.get("PANDO_FULL") else (60, 3)
    for step in range(steps):
        name, kind = pick.choice(labels), pick.choice(kinds)
        data = {"A": f"192.0.2.{step % 250}", "TXT": f"t{step}", "NS": "ns1"}[kind]
        send(server, ("add", name, 60, kind, data) if pick.random() < 0.7 else ("delete", name))
        if (step + 1) % (steps // looks) == 0:
            servers.wait_until("the copy has followed", lambda: copy.serial(ZONE) == server.serial(ZONE))
            assert set(zone_of(copy).iterate_rdatas()) == set(zone_of(server).iterate_rdatas())
            check(server)
    assert "kind=ixfr" in server.log()


class Unbound(servers.Server):
    """A validating resolver that knows the zone's key, keeps answers for a second, and asks the server alone."""

    name = "unbound"

    def __init__(self, folder, server, anchor, zones=(ZONE,)):
        super().__init__(folder)
        stubs = "".join(f"stub-zone:\n  name: {zone}\n  stub-addr: 127.0.0.1@{server.port}\n" for zone in zones)
        (self.folder / "unbound.conf").write_text(f"""
server:
  interface: 127.0.0.1
  port: {self.port}
  do-daemonize: no
  username: ""
  chroot: ""
  directory: "{self.folder}"
  pidfile: ""
  use-syslog: no
  val-log-level: 2
  do-not-query-localhost: no
  access-control: 127.0.0.0/8 allow
  cache-max-ttl: 1
  cache-max-negative-ttl: 1
  local-zone: "test." nodefault
  module-config: "validator iterator"
  trust-anchor: "{anchor}"
{stubs}remote-control:
  control-enable: no
""")

    def command(self):
        return ["unbound", "-d", "-p", "-c", str(self.folder / "unbound.conf")]


def test_a_validating_resolver_sees_nothing_bogus(server, peers, folder):
    if not shutil.which("unbound"):
        pytest.skip("unbound is not installed")
    key = zone_of(server).get_rdataset(APEX, "DNSKEY")[0]
    resolver = peers(Unbound(folder / "unbound", server, f"{ZONE}. DNSKEY {key.to_text()}"), ZONE)
    pick = random.Random(11)
    # Names below delegations and DNAME lead away from the server.
    names = ["www", "new", "a", "none.a", "a.b.ent", "ent", "x.wild", "ns1", "zz", "*"]
    asked = []

    def ask(name, kind):
        query = dns.message.make_query(f"{name}.{ZONE}", kind, want_dnssec=True)
        answer = dns.query.udp(query, "127.0.0.1", port=resolver.port, timeout=30)
        asked.append((name, kind, answer.rcode()))
        assert answer.rcode() in (dns.rcode.NOERROR, dns.rcode.NXDOMAIN), (answer.to_text(), resolver.log()[-3000:])
        return answer

    stop = threading.Event()
    faults = []

    def ask_on():
        mine = random.Random(12)
        while not stop.is_set():
            try:
                ask(mine.choice(names), mine.choice(["A", "TXT", "DS"]))
            except Exception as error:  # a fault of the test itself, too
                faults.append(error)
                return

    asking = threading.Thread(target=ask_on)
    asking.start()
    try:
        for step in range(150):
            name, kind = pick.choice(["new", "a", "none.a", "www", "ent", "*"]), pick.choice(["A", "TXT"])
            data = {"A": f"192.0.2.{step}", "TXT": f"t{step}"}[kind]
            send(server, ("add", name, 1, kind, data) if pick.random() < 0.6 else ("delete", name))
            if step % 50 == 49:
                server.kill()
                server.start(ZONE)
    finally:
        stop.set()
        asking.join()
    assert not faults, faults[0]
    assert len(asked) > 100
    time.sleep(1.1)
    assert ask("ns1", "A").flags & dns.flags.AD


@pytest.mark.parametrize("place", ["key-written", "key-made", "zone-signed"])
def test_a_kill_while_a_zone_is_signed_first_loses_no_key(pando, options, place):
    server = pando([options], workers=1)
    server.crash_at = f"{place}:1"
    server.start_until_killed(ZONE)
    made = [path.read_text() for path in key_folder(server).glob("*.pem")]
    assert bool(made) == (place != "key-written")
    server.crash_at = None
    server.start(ZONE)
    check(server)
    assert not made or [key_file(server).read_text()] == made


def test_a_kill_while_a_served_zone_is_signed_loses_no_update(pando, options):
    server = pando([{**options, "dnssec": "off"}], workers=1)
    server.crash_at = "served-zone-signed:1"
    server.start(ZONE)
    send(server, ("add", "dynamic", 60, "A", "192.0.2.9"))
    server.zones = [options]
    server.write_config()
    server.control("reload", check=False)
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    key = key_file(server).read_text()
    server.crash_at = None
    server.start(ZONE)
    servers.wait_until("the zone is signed", lambda: server.ask(ZONE, "DNSKEY").answer)
    assert check(server).get_node(f"dynamic.{ZONE}.")
    assert key_file(server).read_text() == key
