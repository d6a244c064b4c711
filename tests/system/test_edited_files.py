"""Zone files edited beside dynamic updates: neither the operator's edits nor acknowledged updates are lost."""

import os
import re
import threading

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "edit.test"
ZONE_FILE = """$TTL 300
@ 60 SOA ns1 admin {serial} 3600 600 86400 300
@ 60 NS ns1
ns1 60 A 192.0.2.1
"""


class Zone:
    """A served zone with its file, and what an operator and clients do to them."""

    def __init__(self, make, folder, **options):
        self.path = folder / "edit.zone"
        self.clock = 10**18
        self.serial = 1
        self.server = make([{"name": ZONE, "file": str(self.path), "allow-update": [{"address": "127.0.0.0/8"}],
                             "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1, **options)

    def write(self, *records, serial=None):
        """Writes the file: its apex and `records`, with a new modification time."""
        self.serial = serial or self.serial
        self.path.write_text(ZONE_FILE.format(serial=self.serial) + "\n".join(records) + "\n")
        self.touch()

    def touch(self):
        self.clock += 10**9
        os.utime(self.path, ns=(self.clock, self.clock))

    def update(self, add=(), delete=()):
        """An acknowledged update; records are "name ttl type rdata"."""
        message = dns.update.UpdateMessage(ZONE)
        for record in delete:
            name, _, rdtype, rdata = record.split(" ", 3)
            message.delete(name, rdtype, rdata)
        for record in add:
            name, ttl, rdtype, rdata = record.split(" ", 3)
            message.add(name, int(ttl), rdtype, rdata)
        answer = dns.query.udp(message, "127.0.0.1", port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR

    def served(self):
        """What is served beside the apex, as "name ttl type rdata"."""
        found = set()
        for line in self.server.records(ZONE):
            owner, ttl, rdtype, rdata = line.split(" ", 3)
            name = owner.removesuffix(f"{ZONE}.").rstrip(".")
            if name and name != "ns1":
                found.add(f"{name} {ttl} {dns.rdatatype.to_text(int(rdtype))} {rdata}")
        return found

    def live_serial(self):
        return self.server.serial(ZONE)

    def reload(self):
        return self.server.control("reload")

    def restart(self):
        self.server.kill()
        self.server.start(ZONE)
        self.settle()

    def restart_host(self, zone=ZONE):
        """Memory is gone, the disk is not."""
        self.lose_memory()
        self.server.start(zone)

    def lose_memory(self):
        self.server.lose_memory()

    def compact(self):
        """Brings the journal past its limit, and waits for the snapshot; what that took is taken back."""
        before = set(self.snapshots())
        filler = [f"filler{i} 60 TXT {' '.join(['x' * 250] * 3)}" for i in range(60)]
        for _ in range(200):
            self.update(add=filler)
            self.update(delete=filler)
            if set(self.snapshots()) - before:
                break
        servers.wait_until("the journal is compacted", lambda: set(self.snapshots()) - before)

    def times_gone(self):
        """How often the journal says that a zone has left (docs/formats/journal.md, kind 7)."""
        octets = b"".join(path.read_bytes() for path in (self.server.folder / "journal").glob("*.journal"))
        return sum(octets[found.start() + 24] == 7 for found in re.finditer(b"PJRC", octets))

    def snapshots(self):
        return [path.name for path in (self.server.folder / "journal").glob("*.snapshot")]

    def settle(self):
        """A started manager reads files in the background; a reload waits for that."""
        self.reload()


@pytest.fixture
def zone(pando, tmp_path):
    made = Zone(pando, tmp_path)
    made.write("www 60 A 192.0.2.10", "old 60 A 192.0.2.11")
    made.server.start(ZONE)
    return made


def test_a_touched_file_changes_nothing_after_a_reload_or_a_restart(zone):
    zone.update(add=["dyn 60 A 192.0.2.20"], delete=["old 60 A 192.0.2.11"])
    serial = zone.live_serial()
    for again in (zone.reload, zone.restart, zone.reload, zone.restart):
        zone.touch()
        again()
        assert zone.served() == {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20"}
        assert zone.live_serial() == serial


def test_an_edit_that_keeps_size_and_time_is_noticed(zone):
    """As `cp -p` or rsync --times leave it."""
    zone.update(add=["dyn 60 A 192.0.2.20"])
    zone.write("www 60 A 192.0.2.19", "old 60 A 192.0.2.11")
    zone.clock -= 2 * 10**9
    zone.touch()
    assert zone.reload()["zones_changed"] == 1
    assert zone.served() == {"www 60 A 192.0.2.19", "old 60 A 192.0.2.11", "dyn 60 A 192.0.2.20"}
    zone.write("www 60 A 192.0.2.18", "old 60 A 192.0.2.11")
    zone.clock -= 2 * 10**9
    zone.touch()
    zone.restart()
    assert zone.served() == {"www 60 A 192.0.2.18", "old 60 A 192.0.2.11", "dyn 60 A 192.0.2.20"}


def test_an_edit_of_an_included_file_alone_is_noticed(zone):
    included = zone.path.with_name("included")

    def include(host):
        """Always of the same size and time."""
        included.write_text(f"inner 60 A 192.0.2.{host}\n")
        os.utime(included, ns=(10**18, 10**18))
    include(30)
    zone.write("$INCLUDE included")
    zone.reload()
    assert zone.served() == {"inner 60 A 192.0.2.30"}
    for host, again in (31, zone.reload), (32, zone.restart), (33, zone.reload), (34, zone.restart_host):
        include(host)
        again()
        assert zone.served() == {f"inner 60 A 192.0.2.{host}"}
    serial = zone.live_serial()
    for again in (zone.reload, zone.restart):
        again()
        assert zone.live_serial() == serial
    included.unlink()
    assert zone.reload()["zones_failed"] == 1
    assert zone.served() == {"inner 60 A 192.0.2.34"}


@pytest.mark.parametrize("serial", [None, 100])
def test_an_edit_goes_beside_updates(zone, serial):
    zone.update(add=["dyn 60 A 192.0.2.20"], delete=["old 60 A 192.0.2.11"])
    before = zone.live_serial()
    zone.write("www 60 A 192.0.2.12", "old 60 A 192.0.2.11", "new 60 A 192.0.2.13", serial=serial)
    assert zone.reload()["zones_changed"] == 1
    assert zone.served() == {"www 60 A 192.0.2.12", "dyn 60 A 192.0.2.20", "new 60 A 192.0.2.13"}
    assert zone.live_serial() == (serial or before + 1)
    zone.restart()
    assert zone.served() == {"www 60 A 192.0.2.12", "dyn 60 A 192.0.2.20", "new 60 A 192.0.2.13"}


# The host restarts: the live store is gone, the zone file and the journal are there. ------------------------------------

SERVED = {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20"}


@pytest.fixture
def updated(pando, tmp_path):
    """Serves a zone to which an update added "dyn" and from which one removed "old"."""
    made = Zone(pando, tmp_path, store_extra="  journal-limit: 1MiB")
    made.write("www 60 A 192.0.2.10", "old 60 A 192.0.2.11", serial=10)
    made.server.start(ZONE)
    made.update(add=["dyn 60 A 192.0.2.20"], delete=["old 60 A 192.0.2.11"])
    return made


def leave(zone):
    pass


def edit_with_a_higher_serial(zone):
    zone.write("www 60 A 192.0.2.12", "old 60 A 192.0.2.11", "new 60 A 192.0.2.13", serial=5000)


def edit_with_the_same_serial(zone):
    zone.write("www 60 A 192.0.2.12", "old 60 A 192.0.2.11", "new 60 A 192.0.2.13")


def put_back_an_old_file(zone):
    zone.write("www 60 A 192.0.2.9", "old 60 A 192.0.2.11", "before 60 A 192.0.2.14", serial=3)


EDITED = {"www 60 A 192.0.2.12", "dyn 60 A 192.0.2.20", "new 60 A 192.0.2.13"}
OLDER = {"www 60 A 192.0.2.9", "dyn 60 A 192.0.2.20", "before 60 A 192.0.2.14"}


@pytest.mark.parametrize("compacted", [False, True], ids=["whole journal", "compacted"])
@pytest.mark.parametrize("change, records, serial", [
    (leave, SERVED, lambda last: last),
    (Zone.touch, SERVED, lambda last: last),
    (edit_with_a_higher_serial, EDITED, lambda last: 5001),
    (edit_with_the_same_serial, EDITED, lambda last: last + 1),
    (put_back_an_old_file, OLDER, lambda last: last + 1),
], ids=["unchanged", "touched", "higher serial", "same serial", "old file"])
def test_updates_outlive_the_host_whatever_became_of_the_file(updated, change, records, serial, compacted):
    if compacted:
        updated.compact()
    last = updated.live_serial()
    change(updated)
    updated.restart_host()
    assert updated.served() == records
    assert updated.live_serial() == serial(last)
    # And it goes on: what came of it is known to the next reload, restart, and restart of the host.
    for again in (updated.reload, updated.restart, updated.restart_host):
        again()
        assert updated.served() == records
        assert updated.live_serial() == serial(last)
    updated.update(add=["more 60 A 192.0.2.30"], delete=["www 60 A " + next(
        record for record in records if record.startswith("www ")).split()[-1]])
    updated.touch()
    updated.restart_host()
    assert updated.served() == {record for record in records if not record.startswith("www ")} | {"more 60 A 192.0.2.30"}


@pytest.mark.parametrize("crash_at", ["commit-journalled", "commit-before-publish", "commit-published"])
def test_a_kill_while_an_edited_zone_comes_back_changes_nothing(updated, crash_at):
    """The zone is put and the journal told how it stands beside its file: both, or neither."""
    last = updated.live_serial()
    edit_with_the_same_serial(updated)
    updated.lose_memory()
    server = updated.server
    crashed = False
    for count in range(1, 6):  # the store's first versions hold settings
        server.crash_at = f"{crash_at}:{count}"
        try:
            server.start(ZONE)
        except AssertionError:
            crashed = True
            server.process.wait()
            continue
        server.kill()
    assert crashed
    server.crash_at = None
    server.start(ZONE)
    updated.settle()
    for again in (updated.settle, updated.restart_host):
        again()
        assert updated.served() == EDITED
        assert updated.live_serial() == last + 1


def break_the_file(zone):
    zone.write("www 60 A 192.0.2.256")


def contradict_an_update(zone):
    zone.write("www 60 A 192.0.2.12", "dyn 60 CNAME www")


def test_a_contradicting_edit_is_an_error_that_names_the_records(updated):
    updated.update(add=["dyn2 60 A 192.0.2.31"])
    updated.write("www 60 A 192.0.2.12", "dyn 60 CNAME www", "dyn2 60 CNAME www")
    problem, = updated.reload()["problems"]
    assert "contradicts records that came by update" in problem
    assert f"dyn.{ZONE}" in problem and f"dyn2.{ZONE}" in problem
    assert updated.served() == SERVED | {"dyn2 60 A 192.0.2.31"}


@pytest.mark.parametrize("spoil", [break_the_file, contradict_an_update])
def test_a_zone_is_served_as_it_was_when_its_file_cannot_be_used(updated, spoil):
    """What a reload would refuse must not take the zone down when the host restarts."""
    updated.compact()
    last = updated.live_serial()
    spoil(updated)
    updated.restart_host()
    assert updated.served() == SERVED
    assert updated.live_serial() == last
    assert updated.reload()["zones_failed"] == 1
    updated.update(add=["more 60 A 192.0.2.30"])
    edit_with_the_same_serial(updated)
    updated.reload()
    assert updated.served() == EDITED | {"more 60 A 192.0.2.30"}


def test_an_edit_is_merged_after_a_compaction(updated):
    updated.compact()
    last = updated.live_serial()
    edit_with_the_same_serial(updated)
    updated.reload()
    assert updated.served() == EDITED
    assert updated.live_serial() == last + 1


def take_away(zone, by):
    """The zone leaves the configuration, by a reload or a restart of the host; gives what brings it back."""
    server, zones = zone.server, zone.server.zones
    times = zone.times_gone()
    server.zones = []
    server.write_config()
    by()
    servers.wait_until("the journal knows", lambda: zone.times_gone() == times + 1)

    def come_back():
        server.zones = zones
        server.write_config()
        return server.control("reload")

    return come_back


LEAVE_BY = {"reload": lambda zone: zone.reload(), "host": lambda zone: zone.restart_host(None)}


@pytest.mark.parametrize("by", LEAVE_BY)
def test_a_zone_that_was_away_comes_back_with_its_updates_and_serial(updated, by):
    """A glob over a folder that was not mounted, say."""
    served, serial = updated.served(), updated.live_serial()
    assert served == {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20"}
    come_back = take_away(updated, lambda: LEAVE_BY[by](updated))
    [row] = updated.server.control("zone", "list")
    assert (row["name"], row["state"], row["serial"]) == (f"{ZONE}.", "removed", serial)
    assert row["updates_kept"] == "2"
    assert f"zone_removed zone={ZONE}. serial={serial} updates_kept=2" in updated.server.log()
    updated.restart_host(None)
    come_back()
    assert (updated.served(), updated.live_serial()) == (served, serial)
    servers.wait_until("it is told", lambda: f"zone_returned zone={ZONE}. updates_kept=2" in updated.server.log())
    updated.restart_host()
    assert (updated.served(), updated.live_serial()) == (served, serial)
    updated.update(add=["more 60 A 192.0.2.21"])
    assert updated.live_serial() == serial + 1


def test_a_zone_that_was_away_is_merged_with_its_edited_file(updated):
    serial = updated.live_serial()
    come_back = take_away(updated, updated.reload)
    updated.write("www 60 A 192.0.2.99", "old 60 A 192.0.2.11")
    come_back()
    assert updated.served() == {"www 60 A 192.0.2.99", "dyn 60 A 192.0.2.20"}
    assert updated.live_serial() == serial + 1


@pytest.mark.parametrize("by", LEAVE_BY)
def test_a_purged_zone_comes_back_without_updates(updated, by):
    with pytest.raises(AssertionError, match="only a removed zone can be purged"):
        updated.server.control("zone", "purge", ZONE)
    come_back = take_away(updated, lambda: LEAVE_BY[by](updated))
    updated.server.control("zone", "purge", ZONE)
    assert updated.server.control("zone", "list") == []
    updated.restart_host(None)
    assert updated.server.control("zone", "list") == []
    updated.write("www 60 A 192.0.2.10", serial=10)
    come_back()
    assert updated.served() == {"www 60 A 192.0.2.10"}
    updated.restart_host()
    assert updated.served() == {"www 60 A 192.0.2.10"}
    assert updated.live_serial() == 10


def test_an_edit_that_updates_overrule_is_told(zone):
    zone.update(delete=["www 60 A 192.0.2.10", "old 60 A 192.0.2.11"], add=["www 60 A 192.0.2.12"])
    zone.write("www 60 A 192.0.2.10", "old 90 A 192.0.2.11", "new 60 A 192.0.2.13", serial=5)
    zone.reload()
    assert zone.served() == {"www 60 A 192.0.2.12", "new 60 A 192.0.2.13"}
    told = [line for line in zone.server.log_path.read_text().splitlines() if "not served as the file has them" in line]
    assert len(told) == 1
    assert " 1 records " in told[0] and f"old.{ZONE}. A" in told[0]


@pytest.mark.release
def test_files_are_merged_while_updates_come(zone):
    """What came by update is read from the journal, which grows meanwhile: that must not look like damage."""
    ending, written = threading.Event(), []

    def update(client):
        done = 0
        while not ending.is_set():
            zone.update(add=[f"u{client}-{done} 60 A 192.0.2.{client}"])
            written.append(f"u{client}-{done} 60 A 192.0.2.{client}")
            done += 1

    clients = [threading.Thread(target=update, args=(client,)) for client in range(1, 7)]
    for client in clients:
        client.start()
    edits = []
    try:
        for number in range(40):
            edits.append(f"edit{number} 60 A 192.0.2.9")
            zone.write(*edits, serial=zone.live_serial() + 10_000)
            zone.reload()
    finally:
        ending.set()
        for client in clients:
            client.join()
    servers.wait_until("the last edit is served", lambda: edits[-1] in zone.served(), 30)
    assert set(written) | set(edits) <= zone.served()
    log = zone.server.log_path.read_text()
    assert "records lost" not in log and "not merged" not in log
