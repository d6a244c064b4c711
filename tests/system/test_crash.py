"""The manager killed at every crash point: no acknowledged update is lost, whatever the store and the
journal were doing, and neither a restarted process nor a restarted host needs help."""

import concurrent.futures
import os
import re
import shutil
import signal
import threading

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import pytest

import servers

ZONE = "crash.test"
ZONE_FILE = """$TTL 300
@ SOA ns1 admin 1 3600 600 86400 300
@ NS ns1
ns1 A 192.0.2.1
"""
THREADS = 4
UPDATES = 60  # a thread
LARGE_UPDATES = 300  # for TAKES_MORE


def crash_points():
    """Every crash_point("...") of the programs' sources that the manager can reach."""
    found = set()
    for folder in ("manager", "shm", "zone"):
        for path in (servers.SOURCE / folder).rglob("*.[ch]*"):
            found |= set(re.findall(r'crash_point\("([^"]+)"\)', path.read_text()))
    return sorted(found)


ELSEWHERE = {"zone-copy-written", "zone-replaced",  # of secondary zones: test_odd_primaries.py
             "change-worked-out", "change-adopted",  # of large differences: the same
             # of an image that is served before it is copied: test_image_serving.py
             "borrowed-chunk-copied", "borrowed-mapped", "borrowed-settled", "image-copied", "image-damaged",
             "journal-put-aside",  # of a damaged segment: tests/crash/journal.cpp
             "whole-file-written", "whole-file-renamed", "whole-file-named",  # disk/test_broken_journal.py
             "worker-page-made", "worker-started", "worker-recorded",  # test_workers.py
             "export-written", "export-recorded", "export-renamed",  # test_export.py
             "zone-counts-made", "zone-counts-named",  # where zones have metrics: below
             "dump-written", "dump-synced", "dump-zones-loaded", "dump-taken-over", "dump-noted",  # test_dump.py
             "key-written", "key-made", "zone-signed", "served-zone-signed",  # dnssec/test_served_signed.py
             "tls-key-rolled",  # own_keys_test.cpp
             "facts-written",  # dnssec/test_signing_stages.py
             "roll-noted", "key-put-away", "restore-noted",  # dnssec/test_key_rolls.py
             # control/test_run_time_zones.py
             "added-zones-written", "added-zones-synced", "added-zones-rewritten", "added-zones-kept"}
# Reached only on the way back from another crash: test_a_crash_during_replay.
REPLAY = {"replay-staged", "replay-published"}
# Needs tens of thousands of zones: tests/crash/store_kill.cpp has it.
LARGE = {"store-grow-side"}
UPKEEP = {"store-discarded-dismantled"}  # when a zone has gone: a test of its own, below
# Reached with each update. The others are reached once or twice in a life, or as often as checkpoints have something to write.
RECURRING = ("commit-", "journal-before-write", "journal-written", "journal-synced", "store-publish-")
# Where it takes more octets: the journal's limit, or garbage in the store that is worth a walk.
TAKES_MORE = ("journal-snapshot", "journal-segment-dropped", "store-compact", "store-grow", "store-punch", "store-reclaimed")


@pytest.fixture
def crashing(pando, tmp_path):
    (tmp_path / "crash.zone").write_text(ZONE_FILE)
    instance = pando([{"name": ZONE, "file": str(tmp_path / "crash.zone"),
                       "allow-update": [{"address": "127.0.0.0/8"}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                     workers=1, store_extra="  journal-limit: 1MiB\n  image: zones.image\n"
                                            "  checkpoint: {interval: 1s, journal: 1MiB}")
    return Crashing(instance)


# The first comes a second after the start, and a life may be shorter.
NEEDS_CHECKPOINT = ("image-", "restore-")


class Crashing:
    """A manager, and what its clients were told."""

    def __init__(self, server):
        self.server = server
        self.present = {}   # name → text, acknowledged
        self.absent = set()  # deletion acknowledged
        self.unsure = set()  # names of requests without an answer
        self.lives = 0

    def live(self, crash_at=None):
        """One life: start, updates from several clients, until the manager dies or all are done."""
        self.large = crash_at is not None and crash_at.startswith(TAKES_MORE)
        self.lives += 1
        self.server.crash_at = crash_at
        try:
            self.server.start(ZONE)
        except AssertionError:
            if self.dead():
                return
            raise
        ended = threading.Event()
        with concurrent.futures.ThreadPoolExecutor(THREADS + 1) as pool:
            reader = pool.submit(self.read, ended)
            try:
                for client in [pool.submit(self.client, number) for number in range(THREADS)]:
                    client.result()  # with what went wrong in it
            finally:
                ended.set()
            reader.result()
        if crash_at is not None and crash_at.startswith(NEEDS_CHECKPOINT):
            servers.wait_until("a checkpoint", lambda: self.dead() or self.has_checkpoint())

    def has_checkpoint(self):
        try:
            return self.server.control("status")["image"]["checkpoints"] > 0
        except AssertionError:  # it has just died
            return False

    def read(self, ended):
        """Transfers while the manager applies updates and dies: each one is of a whole version."""
        while not ended.wait(0.05):
            try:
                self.served()
            except (dns.exception.DNSException, OSError, EOFError):
                pass  # a worker that is not there yet

    def dead(self):
        code = self.server.process.poll()
        assert code in (None, -signal.SIGKILL), self.server.log()
        return code is not None

    def client(self, number):
        for step in range(LARGE_UPDATES if self.large else UPDATES):
            name = f"r{self.lives}-{number}-{step}"
            text = " ".join([f'"{name}"'] + ['"' + "x" * 250 + '"'] * (4 if self.large else 1))
            update = dns.update.UpdateMessage(ZONE)
            update.add(name, 60, "TXT", text)
            update.add(f"twin-{name}", 60, "TXT", name)
            if not self.send(update, name):
                return
            self.present[name] = text
            if step % 3 == 2:
                old = f"r{self.lives}-{number}-{step - 2}"
                update = dns.update.UpdateMessage(ZONE)
                update.delete(old)
                update.delete(f"twin-{old}")
                if not self.send(update, old):
                    return
                del self.present[old]
                self.absent.add(old)

    def send(self, update, name):
        """True when acknowledged; False when the manager has died."""
        while not self.dead():
            try:
                answer = dns.query.udp(update, "127.0.0.1", port=self.server.port, timeout=1)
            except (dns.exception.Timeout, OSError):
                continue
            if answer.rcode() == dns.rcode.NOERROR:
                return True
            assert answer.rcode() == dns.rcode.SERVFAIL, answer.to_text()
        self.unsure.add(name)
        return False

    def served(self):
        """Names of updates and what they brought. An update comes and goes with both of its names or with neither."""
        served, twins = {}, set()
        for line in self.server.records(ZONE):
            owner, _, rdtype, rdata = line.split(" ", 3)
            name = owner.split(".")[0]
            if int(rdtype) != dns.rdatatype.TXT:
                continue
            if name.startswith("twin-"):
                twins.add(name.removeprefix("twin-"))
            else:
                served[name] = rdata
        assert twins == set(served)
        return served

    def check(self):
        """What was acknowledged is served, and nothing that was deleted."""
        served = self.served()
        sure = {name: text for name, text in self.present.items() if name not in self.unsure}
        assert {name: served.get(name) for name in sure} == sure
        assert not (self.absent - self.unsure) & set(served)

    def restart_host(self):
        """Memory is gone, the disk is not."""
        self.server.kill()
        self.kill_workers()
        shutil.rmtree(self.server.store)

    def kill_workers(self):
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("workers are gone", lambda: not self.server.left_over())


def turns():
    """Each point when it is reached first; what each update reaches also between updates."""
    points = sorted(set(crash_points()) - REPLAY - LARGE - UPKEEP - ELSEWHERE)
    often = [point for point in points if point.startswith(RECURRING)]
    growing = ["store-grow-counts", "store-grow-file", "store-grow-committed"]  # behind those of the first start
    return [(1, point) for point in points] + [(4, point) for point in often] + [(6, point) for point in growing]


@pytest.mark.parametrize("turn, point", turns())
def test_no_acknowledged_update_is_lost(crashing, turn, point):
    crashing.live(f"{point}:{turn}")
    if not crashing.dead():  # a point of attaching, then
        crashing.server.kill()
        crashing.live(f"{point}:{turn}")
    if not crashing.dead():  # or of a host's restart
        crashing.restart_host()
        crashing.live(f"{point}:{turn}")
    assert crashing.dead(), f"{point} is not reached {turn} times"
    crashing.live()
    assert not crashing.dead(), crashing.server.log()
    crashing.check()
    crashing.restart_host()
    crashing.server.crash_at = None
    crashing.server.start(ZONE)
    crashing.check()


@pytest.mark.parametrize("turn", (1, 4))
def test_a_crash_while_a_removed_zone_is_given_back_loses_nothing(crashing, tmp_path, turn):
    server = crashing.server
    large = tmp_path / "large.zone"
    large.write_text(ZONE_FILE + "".join(f"n{number} A 192.0.2.1\n" for number in range(20_000)))
    server.zones = server.zones + [{"name": "large.test", "file": str(large)}]
    server.write_config()
    crashing.live(f"store-discarded-dismantled:{turn}")
    servers.wait_until("it is loaded", lambda: server.serves("large.test"))
    assert not crashing.dead()
    server.zones = server.zones[:-1]
    server.write_config()
    server.control("reload", check=False)
    servers.wait_until("it has died", crashing.dead)
    crashing.live()
    assert not crashing.dead(), server.log()
    crashing.check()
    server.control("store", "check")
    crashing.restart_host()
    server.crash_at = None
    server.start(ZONE)
    crashing.check()


@pytest.mark.parametrize("point", ("zone-counts-made", "zone-counts-named"))
def test_a_crash_while_counters_of_zones_are_made_leaves_a_whole_file_or_none(crashing, point):
    server = crashing.server
    server.extra = "http: {user: root, metrics-zones: 10}"
    server.write_config()
    slots = server.folder / "run" / "slots"
    crashing.live(point)
    assert crashing.dead(), f"{point} is never reached"
    assert [path.name for path in slots.glob("zones.counts*")] == [
        "zones.counts.new" if point == "zone-counts-made" else "zones.counts"]
    crashing.live()
    assert not crashing.dead(), server.log()
    crashing.check()
    assert [path.name for path in slots.glob("zones.counts*")] == ["zones.counts"]
    server.kill()
    server.extra = ""
    server.write_config()
    if point == "zone-counts-made":
        (slots / "zones.counts").rename(slots / "zones.counts.new")  # as if that one had been killed there, too
    crashing.live()
    crashing.check()
    assert not list(slots.glob("zones.counts*"))


@pytest.mark.parametrize("point", sorted(REPLAY))
def test_a_crash_during_replay_loses_nothing(crashing, point):
    crashing.live("commit-journalled:5")
    assert crashing.dead()
    crashing.live(point)
    assert crashing.dead(), f"{point} is never reached"
    crashing.live()
    crashing.check()


def test_workers_answer_while_the_manager_is_dead(crashing):
    crashing.live("commit-published:9")
    assert crashing.dead()
    crashing.check()


def test_an_update_without_a_manager_is_refused_at_once(crashing):
    crashing.live("commit-published:9")
    assert crashing.dead()
    update = dns.update.UpdateMessage(ZONE)
    update.add("late", 60, "A", "192.0.2.1")
    answer = dns.query.udp(update, "127.0.0.1", port=crashing.server.port, timeout=5)
    assert answer.rcode() == dns.rcode.SERVFAIL
