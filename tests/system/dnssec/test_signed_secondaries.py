"""Secondary zones that the manager signs ("bump in the wire"): a primary elsewhere has the unsigned zone, which comes by AXFR
and IXFR and is served signed, with serials of its own. The source equals the primary's zone, real tools verify what is
served, and real secondaries follow."""

import os
import random
import shutil
import signal
import time

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.update
import dns.zone
import pytest

import servers
from test_served_signed import APEX, DERIVED, ZONE, check, key_file, secondary, sets_of, zone_of

FULL = os.environ.get("PANDO_FULL")
KINDS = ["bind", "knot", "nsd"]
TEXT = """@ 600 SOA ns1 admin {serial} 1 1 86400 60
@ 300 NS ns1
ns1 300 A 192.0.2.1
www 300 A 192.0.2.2
a.b.ent 300 TXT below
*.wild 300 MX 10 www
cut 300 NS ns.cut
ns.cut 300 A 192.0.2.53
dn 300 DNAME elsewhere.test.
{more}"""


def text_of(serial, *more):
    return TEXT.format(serial=serial, more="".join(f"{line}\n" for line in more))


class Primary:
    """A peer with the unsigned zone. change() adds and deletes records there, by UPDATE or in its file."""

    def __init__(self, kind, folder, peers, more=(), serial=7):
        if servers.peer_program(kind) is None:
            pytest.skip(f"{kind} is not installed")
        self.kind, self.edits, self.lines, self.number = kind, 0, list(more), serial
        folder.mkdir()
        self.path = folder / "primary.zone"
        self.path.write_text(text_of(serial, *more))
        if kind == "bind":
            self.server = servers.Bind(folder / "bind", {ZONE: (
                f'type primary; file "{self.path}"; ixfr-from-differences yes; allow-transfer {{ any; }};'
                ' allow-update { any; }; check-integrity no;')}, options="max-ixfr-ratio unlimited;")
        elif kind == "nsd":
            self.server = servers.Nsd(folder / "nsd", {ZONE: self.path}, zone_options=(
                "  provide-xfr: 127.0.0.1 NOKEY\n  store-ixfr: yes\n  create-ixfr: yes\n  ixfr-number: 50\n"))
        else:
            (folder / "knot/db").mkdir(parents=True)
            self.server = servers.Knot(
                folder / "knot", {ZONE: self.path},
                text="acl:\n  - id: all\n    address: 127.0.0.1\n    action: [transfer, update]\n",
                zone_options={ZONE: "    acl: all\n    zonefile-load: difference\n    journal-content: changes\n"
                                    "    semantic-checks: off\n"})
        peers(self.server, ZONE)

    @property
    def port(self):
        return self.server.port

    def serial(self):
        return self.server.serial(ZONE)

    def change(self, *steps):
        if self.kind == "nsd":
            for verb, *words in steps:
                name = words[0]
                self.lines = [line for line in self.lines if verb == "add" or line.split()[0] != name]
                if verb == "add":
                    self.lines.append(" ".join(map(str, words)))
            return self.replace()
        update = dns.update.UpdateMessage(ZONE)
        for verb, *words in steps:
            getattr(update, verb)(*words)
        assert dns.query.tcp(update, "127.0.0.1", port=self.port, timeout=30).rcode() == dns.rcode.NOERROR
        return None

    def replace(self, *lines, serial=None, text=None):
        """Has the file read anew."""
        self.number = serial or self.number + 1
        self.path.write_text(text or text_of(self.number, *self.lines, *lines))
        self.edits += 1
        later = time.time() + 2 * self.edits  # BIND looks at whole seconds
        os.utime(self.path, (later, later))

        def has_read():
            self.server.process.send_signal(signal.SIGHUP)  # NSD misses one while it reads
            deadline = time.monotonic() + 2
            while self.serial() != self.number and time.monotonic() < deadline:
                time.sleep(0.05)
            return self.serial() == self.number

        servers.wait_until("the primary has read its file", has_read, 60)


def options_of(**more):
    return {"name": ZONE, "primaries": ["upstream"], "dnssec": "default", "allow-transfer": [{"address": "127.0.0.0/8"}],
            **more}


def follow(pando, primary, zone=None, **options):
    port = primary if isinstance(primary, int) else primary.port
    return pando([zone or options_of()], workers=1,
                 remotes=[{"name": "upstream", "address": [f"127.0.0.1@{port}"]}], **options).start(ZONE)


def status(server):
    return server.control("zone", "status", ZONE)


def has_followed(server, primary):
    """The server has the primary's present version, and its own serial is not behind. Returns the serials."""
    wanted = primary.serial()
    server.control("zone", "refresh", ZONE)
    servers.wait_until(f"the server has serial {wanted} of the primary",
                       lambda: status(server)["primary_serial"] == wanted, 60)
    row = status(server)
    assert row["serial"] >= wanted
    return row["primary_serial"], row["serial"]


def equals(server, primary):
    """The source is the primary's zone, and what is served is valid, and `zone sign` of the source."""
    source = sets_of(check(server), derived=False)
    assert source == sets_of(zone_of(primary.server), derived=False)


def counters(server):
    return server.control("status")["counters"]


def random_steps(pick, step, kind):
    names = ["a", "b", "c", "cut", "www", "x.cut", "a.b.ent", "*.wild", "new", "sub.new"]
    if kind == "nsd":
        # Where a name has two types, the differences that NSD 4.6.1 makes add records which are there. They lead to AXFR.
        names = [f"n{number}.ent{number % 3}" for number in range(12)]
    name = pick.choice(names)
    types = ["A"] if kind == "nsd" else ["A", "TXT"] if name.startswith("*") else ["A", "TXT", "NS"]  # BIND refuses *. NS
    rdtype = pick.choice(types)
    data = {"A": f"192.0.2.{step % 250}", "TXT": f"t{step}", "NS": f"ns1.{ZONE}."}[rdtype]
    return ("add", name, 300, rdtype, data) if pick.random() < 0.7 else ("delete", name)


@pytest.mark.parametrize("kind", KINDS)
def test_an_unsigned_zone_is_served_signed_and_follows_by_ixfr(pando, peers, tmp_path, kind):
    primary = Primary(kind, tmp_path / "up", peers, [f"h{number} 300 A 192.0.2.3" for number in range(40)])
    server = follow(pando, primary)
    assert has_followed(server, primary) == (7, 8)
    equals(server, primary)
    for step in (("add", "new", 60, "A", "192.0.2.9"), ("add", "sub", 60, "NS", f"ns1.{ZONE}."), ("delete", "h3"), ("delete", "new")):
        primary.change(step)
        has_followed(server, primary)
        equals(server, primary)
    seen = counters(server)
    assert seen["transfers_in_ixfr"] == 4 and seen["transfers_in_fallbacks"] == 0, seen
    assert server.log().count("zone_signed") <= 1


@pytest.mark.parametrize("kind, downstream", [("bind", "knot"), ("knot", "bind"), ("nsd", "bind")])
def test_many_differences_reach_valid_secondaries(pando, peers, tmp_path, kind, downstream):
    """The primary's serial moves with each change, and so do those of ours and of our own secondary."""
    primary = Primary(kind, tmp_path / "up", peers, [f"h{number} 300 A 192.0.2.3" for number in range(400)])
    server = follow(pando, primary)
    copy = peers(secondary(downstream, server, tmp_path / "down"), ZONE)
    pick = random.Random(11)
    steps, looks = (5_000, 50) if FULL else (300, 3)
    if kind == "nsd":  # each change is a file that NSD reads anew
        steps = 500 if FULL else 45
    for step in range(steps):
        primary.change(random_steps(pick, step, kind))
        if step % 5 == 0 or kind == "nsd":
            has_followed(server, primary)
        if (step + 1) % (steps // looks) == 0:
            has_followed(server, primary)
            servers.wait_until("the copy has followed", lambda: copy.serial(ZONE) == server.serial(ZONE), 60)
            assert set(zone_of(copy).iterate_rdatas()) == set(zone_of(server).iterate_rdatas())
            equals(server, primary)
    seen = counters(server)
    assert seen["transfers_in_ixfr"] >= 30 and seen["transfers_in_fallbacks"] == 0, (
        seen["transfers_in"], seen["transfers_in_ixfr"], seen["transfers_in_fallbacks"])
    assert "kind=ixfr" in server.log(), "our own secondary gets differences"


def restart(server, how):
    if how == "process":
        server.kill()
    elif how == "dump":
        server.control("store", "dump", str(server.folder / "saved.dump"))
        server.lose_memory()
        shutil.move(server.folder / "saved.dump", server.folder / "journal" / "store.dump")
    else:
        if how == "image":
            server.stop()
        server.lose_memory()
    server.start(ZONE)


@pytest.mark.parametrize("how", ["process", "host", "image", "dump"])
def test_a_restart_goes_on_from_the_serial_of_the_primary(pando, peers, tmp_path, how):
    primary = Primary("bind", tmp_path / "up", peers)
    extra = "  image: zones.image" if how == "image" else ""
    server = follow(pando, primary, store_extra=extra)
    key = key_file(server).read_text()
    for number in range(3):
        primary.change(("add", f"r{number}", 60, "A", "192.0.2.9"))
        before = has_followed(server, primary)
        servers.wait_until("the copy is written", lambda: "zone_copied" in server.log())
        restart(server, how)
        after = status(server)
        assert after["primary_serial"] == before[0], "known again"
        assert after["serial"] > before[1] if how == "host" else after["serial"] == before[1], (before, after)
        primary.change(("add", f"s{number}", 60, "A", "192.0.2.9"))
        has_followed(server, primary)
        equals(server, primary)
        seen = counters(server)
        assert (seen["transfers_in"], seen["transfers_in_ixfr"], seen["transfers_in_fallbacks"]) == (1, 1, 0), seen
    assert key_file(server).read_text() == key


def crashes(server, point, cause):
    """The manager dies at `point`, after `cause` has happened, and is started again."""
    server.crash_at, server.crash_if = point, server.folder / "crash"
    server.kill()
    server.start(ZONE)
    server.crash_if.touch()
    cause()
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    server.crash_if.unlink()
    server.crash_at = server.crash_if = None


@pytest.mark.parametrize("how", ["process", "host", "image"])
@pytest.mark.parametrize("point", ["change-worked-out", "change-adopted", "commit-staged", "commit-journalled",
                                   "commit-before-publish", "commit-published"])
def test_a_difference_is_taken_once_whenever_the_manager_dies(pando, peers, tmp_path, point, how):
    """Of 300 signatures that are made in a builder thread. Neither is the zone sent whole afterwards, nor is a serial lost."""
    primary = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, primary, store_extra="  image: zones.image" if how == "image" else "")
    primary.change(("add", "first", 60, "A", "192.0.2.9"))
    has_followed(server, primary)
    servers.wait_until("the copy is written", lambda: "zone_copied" in server.log())
    if how == "image":
        server.control("store", "checkpoint")
    before = server.serial(ZONE)

    def change():
        primary.change(*(("add", f"h{number}", 60, "A", "192.0.2.9") for number in range(150)))
        server.control("zone", "refresh", ZONE, check=False)

    crashes(server, point, change)
    if how != "process":
        server.lose_memory()
    server.start(ZONE)
    has_followed(server, primary)
    equals(server, primary)
    assert server.serial(ZONE) > before
    primary.change(("delete", "h7"))
    has_followed(server, primary)
    equals(server, primary)
    seen = counters(server)
    assert seen["transfers_in"] == seen["transfers_in_ixfr"] <= 2 and seen["transfers_in_fallbacks"] == 0, seen


@pytest.mark.parametrize("how", ["process", "host"])
@pytest.mark.parametrize("point", ["zone-signed", "zone-replaced", "commit-journalled", "zone-copy-written"])
def test_nothing_is_lost_by_a_kill_during_the_first_transfer(pando, peers, tmp_path, point, how):
    primary = Primary("bind", tmp_path / "up", peers)
    server = pando([options_of()], workers=1, remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}])
    server.crash_at = point
    server.start_until_killed()
    if how == "host":
        server.lose_memory()
    server.crash_at = None
    server.start(ZONE)
    first = has_followed(server, primary)
    equals(server, primary)
    primary.change(("add", "after", 60, "A", "192.0.2.9"))
    second = has_followed(server, primary)
    assert second[0] > first[0] and second[1] > first[1]
    equals(server, primary)


def test_a_snapshot_of_the_journal_has_the_serial_of_the_primary(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, primary, store_extra="  journal-limit: 1MiB")
    for step in range(12):
        primary.change(*(("add" if step % 2 == 0 else "delete", f"h{number}", *([60, "TXT", "x" * 200] if step % 2 == 0 else []))
                         for number in range(300)))
        has_followed(server, primary)
        if list((server.folder / "journal").glob("*.snapshot")):
            break
    servers.wait_until("the journal was shortened", lambda: list((server.folder / "journal").glob("*.snapshot")))
    primary.change(("add", "after", 60, "A", "192.0.2.9"))
    before = has_followed(server, primary)
    server.lose_memory()
    shutil.rmtree(server.folder / "journal" / "secondary")  # the copy: the journal alone is left
    server.start(ZONE)
    assert status(server)["primary_serial"] == before[0] and server.serial(ZONE) > before[1]
    equals(server, primary)
    primary.change(("add", "later", 60, "A", "192.0.2.9"))
    has_followed(server, primary)
    assert counters(server)["transfers_in"] == counters(server)["transfers_in_ixfr"] == 1


def test_records_of_a_signer_are_left_out_with_a_warning(pando, peers, tmp_path):
    primary = Primary("nsd", tmp_path / "up", peers, ["more 60 A 192.0.2.9"])
    server = follow(pando, primary)
    before = sets_of(check(server))
    primary.replace("www 300 RRSIG A 13 3 300 20300101000000 20200101000000 12345 signed.test. AAAA", "new 60 A 192.0.2.9",
                    "@ 60 CDS 1 13 2 " + "01" * 32, "@ 60 ZONEMD 7 1 1 " + "00" * 48)
    has_followed(server, primary)
    zone = check(server)
    assert zone.get_node(f"new.{ZONE}.") and not any(
        rdataset.rdtype in DERIVED or rdataset.rdtype in (dns.rdatatype.CDS, dns.rdatatype.ZONEMD)
        for _, rdataset in zone.iterate_rdatasets())
    lines = [line for line in server.log().splitlines() if "transfer_signatures_left_out" in line]
    assert len(lines) == 1 and "left_out=3" in lines[0], lines
    primary.replace()
    has_followed(server, primary)
    assert sets_of(check(server)) == before
    seen = counters(server)
    assert seen["transfers_in_ixfr"] == 2 and seen["transfers_in_fallbacks"] == 0, seen


def test_differences_that_do_not_fit_lead_to_the_whole_zone(pando, peers, tmp_path):
    """The primary is put in place of another one, which has other data under the same serial."""
    first = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, first)
    signed = zone_of(server)
    serial = server.serial(ZONE)
    first.server.stop()
    second = Primary("bind", tmp_path / "other", peers, ["more 60 TXT more"])
    second.change(("delete", "more"), ("add", "x", 60, "A", "192.0.2.9"))
    server.remotes[0]["address"] = [f"127.0.0.1@{second.port}"]
    server.write_config()
    server.control("reload")
    has_followed(server, second)
    assert counters(server)["transfers_in_fallbacks"] == 1
    equals(server, second)
    # The whole zone was compared, so signatures that still fit stay, and secondaries get a difference.
    kept = set(signed.get_rdataset(dns.name.from_text(f"ns1.{ZONE}"), "RRSIG", "A"))
    assert kept == set(zone_of(server).get_rdataset(dns.name.from_text(f"ns1.{ZONE}"), "RRSIG", "A"))
    messages = list(dns.query.xfr("127.0.0.1", ZONE, "IXFR", serial=serial, port=server.port, relativize=False, lifetime=60))
    assert sum(len(rrset) for message in messages for rrset in message.answer) < 30


def test_an_older_zone_that_is_ordered_moves_our_serial_ahead(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers, serial=1000)
    server = follow(pando, primary)
    before = server.serial(ZONE)
    primary.server.stop()
    primary.path.with_name("primary.zone.jnl").unlink(missing_ok=True)
    primary.path.write_text(text_of(500, "old 60 A 192.0.2.9"))
    primary.server.start(ZONE)
    server.control("zone", "refresh", ZONE)
    servers.wait_until("the problem is told", lambda: "behind ours (1000)" in status(server)["problem"])
    server.control("zone", "retransfer", ZONE)
    servers.wait_until("it is taken", lambda: status(server)["primary_serial"] == 500)
    assert server.serial(ZONE) > before
    equals(server, primary)


def test_a_policy_comes_to_a_secondary_zone_and_leaves_it(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers)
    policy = "dnssec-policies: [{name: quick, propagation: 1s, parent-ds-ttl: 1s}]"
    server = follow(pando, primary, options_of(dnssec="off"), extra=policy)
    assert (server.serial(ZONE), status(server)["primary_serial"]) == (7, 0)
    server.zones[0]["dnssec"] = "quick"
    server.write_config()
    server.control("reload")
    servers.wait_until("the zone is signed", lambda: status(server)["ds"])
    assert (status(server)["serial"], status(server)["primary_serial"]) == (8, 7)
    primary.change(("add", "a1", 60, "A", "192.0.2.9"))
    has_followed(server, primary)
    equals(server, primary)
    assert counters(server)["transfers_in_fallbacks"] == 0

    # Without the policy, nothing unsigned takes the place of what resolvers may know as signed.
    server.zones[0]["dnssec"] = "off"
    server.write_config()
    server.control("reload")
    primary.change(("add", "a2", 60, "A", "192.0.2.9"))
    server.control("zone", "refresh", ZONE)
    servers.wait_until("the problem is told", lambda: "has no policy any more" in status(server).get("problem", ""))
    assert zone_of(server).get_rdataset(APEX, "DNSKEY")
    server.zones[0]["dnssec"] = "quick"
    server.write_config()
    server.control("reload")
    has_followed(server, primary)
    equals(server, primary)

    server.control("dnssec", "unsign", ZONE)
    server.control("dnssec", "ds-gone", ZONE)
    servers.wait_until("the zone is unsigned", lambda: not zone_of(server).get_rdataset(APEX, "DNSKEY"), 60)
    for number in range(3):
        primary.change(("add", f"u{number}", 60, "A", "192.0.2.9"))
        has_followed_unsigned(server, primary)
    server.zones[0]["dnssec"] = "off"
    server.write_config()
    server.control("reload")
    primary.change(("add", "u9", 60, "A", "192.0.2.9"))
    has_followed_unsigned(server, primary)
    # The primary's serial gets ahead of ours, and from then on the zone has that one.
    ours = server.serial(ZONE)
    primary.change(("replace", "@", 600, "SOA", f"ns1.{ZONE}. admin.{ZONE}. {ours + 50} 1 1 86400 60"))
    has_followed_unsigned(server, primary)
    assert server.serial(ZONE) == primary.serial() == ours + 50 and status(server)["primary_serial"] == 0
    assert sets_of(zone_of(server)) == sets_of(zone_of(primary.server))


def has_followed_unsigned(server, primary):
    wanted = primary.serial()
    before = server.serial(ZONE)
    server.control("zone", "refresh", ZONE)
    servers.wait_until("the server has followed",
                       lambda: sets_of(zone_of(server)) == sets_of(zone_of(primary.server)), 60)
    row = status(server)
    assert wanted in (row["primary_serial"], row["serial"])
    assert row["serial"] > before


def test_a_digest_of_what_comes_is_verified(pando, peers, tmp_path):
    """The primary's ZONEMD record covers its own zone: it is checked, and is no part of what is served."""
    primary = Primary("nsd", tmp_path / "up", peers)
    zone = dns.zone.from_text(text_of(20), ZONE, relativize=False)
    digest = zone.compute_digest(dns.zone.DigestHashAlgorithm.SHA384)
    good = text_of(20) + f"@ 600 ZONEMD {digest.to_text()}\n"
    server = follow(pando, primary, options_of(verify="refuse"))
    primary.replace(serial=20, text=good)
    has_followed(server, primary)
    primary.replace(serial=21, text=good.replace(" 20 1 1", " 21 1 1"))
    server.control("zone", "refresh", ZONE)
    servers.wait_until("the version is refused", lambda: "ZONEMD" in status(server).get("problem", ""))
    assert status(server)["primary_serial"] == 20
    primary.replace(serial=22, text=text_of(22, "fine 60 A 192.0.2.9"))
    has_followed(server, primary)
    equals(server, primary)


def test_updates_are_forwarded_to_the_primary(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, primary, options_of(**{"forward-updates": True, "allow-update": [{"address": "127.0.0.0/8"}]}))
    update = dns.update.UpdateMessage(ZONE)
    update.add("forwarded", 60, "A", "192.0.2.9")
    assert dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=30).rcode() == dns.rcode.NOERROR
    has_followed(server, primary)
    assert check(server).get_node(f"forwarded.{ZONE}.")


def test_a_notify_names_the_serial_of_the_primary(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, primary)

    def notify(serial):
        message = dns.message.make_query(ZONE, "SOA")
        message.set_opcode(dns.opcode.NOTIFY)
        message.flags |= dns.flags.AA
        message.answer.append(dns.rrset.from_text(f"{ZONE}.", 0, "IN", "SOA", f"ns1.{ZONE}. admin.{ZONE}. {serial} 1 1 86400 60"))
        assert dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR

    primary.change(("add", "new", 60, "A", "192.0.2.9"))
    assert primary.serial() == server.serial(ZONE) == 8, "our serial alone would not show that there is news"
    notify(8)
    servers.wait_until("the server has followed", lambda: status(server)["primary_serial"] == 8, 20)
    equals(server, primary)


def test_a_signed_secondary_becomes_primary_and_secondary_again(pando, peers, tmp_path):
    primary = Primary("bind", tmp_path / "up", peers)
    server = follow(pando, primary)
    primary.change(("add", "a1", 60, "A", "192.0.2.9"))
    has_followed(server, primary)
    serial = server.serial(ZONE)
    export = tmp_path / "own"
    server.control("zone", "export", ZONE, "--to", str(export))
    as_secondary = dict(server.zones[0])
    server.zones[0] = {"name": ZONE, "file": str(export), "dnssec": "default", "allow-update": [{"address": "127.0.0.0/8"}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}
    server.write_config()
    server.control("reload")
    update = dns.update.UpdateMessage(ZONE)
    update.add("own", 60, "A", "192.0.2.9")
    servers.wait_until("it takes updates", lambda: dns.query.tcp(
        update, "127.0.0.1", port=server.port, timeout=30).rcode() == dns.rcode.NOERROR)
    assert check(server).get_node(f"own.{ZONE}.") and server.serial(ZONE) > serial
    assert status(server)["primary_serial"] == 0
    serial = server.serial(ZONE)
    server.zones[0] = as_secondary
    server.write_config()
    server.control("reload")
    has_followed(server, primary)
    equals(server, primary)
    assert server.serial(ZONE) > serial


def test_renewed_signatures_move_our_serial_alone(pando, peers, tmp_path):
    """Signatures of a minute: the zone is renewed all the time, beside differences and whole zones of the primary."""
    primary = Primary("bind", tmp_path / "up", peers, [f"h{number} 300 A 192.0.2.3" for number in range(300)])
    server = follow(pando, primary, options_of(dnssec="short"),
                    extra="dnssec-policies: [{name: short, validity: 60s, refresh: 40s}]")
    copy = peers(secondary("knot", server, tmp_path / "down"), ZONE)
    before = has_followed(server, primary)
    for number in range(4):
        servers.wait_until("signatures are renewed", lambda: server.serial(ZONE) > before[1], 60)
        assert status(server)["primary_serial"] == before[0]
        primary.change(("add", f"r{number}", 60, "A", "192.0.2.9"))
        if number % 2 == 1:
            server.control("zone", "retransfer", ZONE)
        after = has_followed(server, primary)
        assert after[1] > before[1]
        before = after
        servers.wait_until("the copy is equal, although both move",
                           lambda: set(zone_of(copy).iterate_rdatas()) == set(zone_of(server).iterate_rdatas()), 60)
        assert sets_of(zone_of(server), derived=False) == sets_of(zone_of(primary.server), derived=False)
        assert sets_of(zone_of(copy), derived=False) == sets_of(zone_of(primary.server), derived=False)
