"""A live store is served before the zone lists are read: what waits for them, and what does not. The manager's
thread that reads them is held at a pause point, so nothing here depends on how long anything takes."""

import concurrent.futures
import glob
import json
import os
import shutil
import signal
import subprocess

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rrset
import dns.tsigkeyring
import dns.update
import pytest

import servers
from test_transfers import KEY

COUNT = 3000
LAST = f"z{COUNT - 1}.test"
ZONE_FILE = """$TTL 300
@ SOA ns1 admin 1 36000 6000 864000 300
@ NS ns1
ns1 A 192.0.2.1
"""


class Listed:
    """A server whose zones are in a list, with one file for all of them, but for those that are updated."""

    def __init__(self, make, folder, **options):
        self.folder = folder
        self.hold = folder / "hold"
        self.list = folder / "zones.list"
        self.plain = folder / "plain.zone"
        self.plain.write_text(ZONE_FILE)
        self.updated = folder / "updated.zone"
        self.updated.write_text(ZONE_FILE)
        self.server = make([], workers=1, keys=[KEY],
                           remotes=[{"name": "up", "address": ["127.0.0.1@1"]}], **options)
        with open(self.server.config, "a") as config:
            config.write(
                "templates:\n"
                f"  - {json.dumps({'name': 'updated', 'allow-update': [{'key': KEY['name']}, {'address': '127.0.0.1'}]})}\n"
                f"  - {json.dumps({'name': 'copy', 'primaries': ['up']})}\n"
                f"zone-lists: ['{self.list}']\n")
        environment = self.server.environment
        self.server.environment = lambda: {**environment(), "PANDO_PAUSE_AT": "zone-lists",
                                           "PANDO_PAUSE_WHILE": str(self.hold)}
        self.write([f"z{number}.test {self.plain}" for number in range(COUNT)])

    def write(self, lines):
        self.list.write_text("\n".join([f"updated.test {self.updated} updated", *lines]) + "\n")
        self.lines = lines

    def status(self):
        return self.server.control("status")

    def loaded(self):
        servers.wait_until("all zones are loaded", lambda: (
            lambda status: status["zone_lists"] == "read" and status["zones_loaded"] == status["zones"] > 0)(
                self.status()), 120)

    def start(self, zone="updated.test"):
        """From nothing, or again, with the lists read at once."""
        self.hold.unlink(missing_ok=True)
        self.server.start(zone)
        self.loaded()

    def start_held(self, zone=LAST):
        """The manager and its workers are there, the lists are not read."""
        self.hold.touch()
        self.server.start(zone)
        assert self.status()["zone_lists"] == "reading"
        self.forwarded_before = self.all_forwarded()

    def all_forwarded(self):
        return sum(row["counters"][name] for row in self.server.workers().values()
                   for name in ("forwarded_updates", "forwarded_notifies"))

    def forwarded(self, count=1):
        """Until workers have sent so many requests on to the manager."""
        servers.wait_until("they wait", lambda: self.all_forwarded() - self.forwarded_before >= count)

    def read(self):
        self.hold.unlink()
        servers.wait_until("the lists are read", lambda: self.status()["zone_lists"] != "reading")

    def kill_all(self):
        """Manager and workers, so that those that answer next have read the store anew."""
        if self.server.process.poll() is None:
            self.server.kill()
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("the workers have gone", lambda: not self.server.left_over())

    def update(self, name, keyed=True, zone="updated.test", timeout=60):
        update = dns.update.UpdateMessage(zone)
        if keyed:
            update.use_tsig(dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]}), algorithm=KEY["algorithm"])
        update.add(name, 60, "TXT", "there")
        return dns.query.tcp(update, "127.0.0.1", port=self.server.port, timeout=timeout).rcode()

    def has(self, name, zone="updated.test"):
        return bool(self.server.ask(f"{name}.{zone}", "TXT").answer)

    def rcode(self, zone):
        return self.server.ask(zone, "SOA").rcode()

    def command(self, *words):
        """pandoctl, not waited for."""
        return subprocess.Popen(
            [str(servers.build_folder() / "pandoctl"), "--config", str(self.server.config), "--json", *words],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)


@pytest.fixture
def listed(pando, tmp_path):
    made = Listed(pando, tmp_path)
    yield made
    made.hold.unlink(missing_ok=True)


def test_the_zones_of_the_store_are_served_before_the_lists_are_read(listed):
    listed.start()
    listed.kill_all()
    listed.start_held()
    for zone in ("updated.test", "z0.test", LAST):
        assert listed.rcode(zone) == dns.rcode.NOERROR
    listed.read()
    listed.loaded()
    assert listed.rcode(LAST) == dns.rcode.NOERROR
    assert listed.update("after") == dns.rcode.NOERROR


def test_what_was_added_and_removed_meanwhile_is_applied_after_the_start(listed):
    listed.start()
    listed.kill_all()
    listed.write(listed.lines[1:] + [f"new.test {listed.plain}"])
    listed.updated.write_text(ZONE_FILE.replace("admin 1", "admin 2"))
    listed.start_held()
    assert listed.rcode("z0.test") == dns.rcode.NOERROR, "nobody knows yet that it has left"
    assert listed.rcode("new.test") == dns.rcode.REFUSED
    listed.read()
    listed.loaded()
    servers.wait_until("the zones are those of the list", lambda: (
        listed.rcode("z0.test"), listed.rcode("new.test")) == (dns.rcode.REFUSED, dns.rcode.NOERROR))
    servers.wait_until("the edited file is merged", lambda: listed.server.serial("updated.test") == 2)
    assert listed.status()["zones"] == COUNT + 1


def test_updates_wait_for_the_lists_and_are_answered(listed):
    listed.start()
    listed.kill_all()
    listed.start_held()
    with concurrent.futures.ThreadPoolExecutor(9) as pool:
        updates = [pool.submit(listed.update, f"u{number}", number % 2 == 0) for number in range(8)]
        strange = pool.submit(listed.update, "x", False, "z7.test")
        assert strange.result() == dns.rcode.REFUSED, "the worker knows the rules of the store's zones"
        listed.forwarded(8)
        assert [update.result() for update in updates if update.done()] == []
        assert not listed.has("u0")
        listed.read()
        assert [update.result() for update in updates] == [dns.rcode.NOERROR] * 8
    assert all(listed.has(f"u{number}") for number in range(8))
    # And they were journalled as ever.
    listed.kill_all()
    shutil.rmtree(listed.server.store)
    listed.start()
    assert all(listed.has(f"u{number}") for number in range(8))


def test_a_key_that_may_update_does_not_leave_the_manager_and_signs_meanwhile(listed):
    listed.start()
    listed.kill_all()
    listed.start_held()
    query = dns.message.make_query("updated.test", "SOA")
    query.use_tsig(dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]}), algorithm=KEY["algorithm"])
    answer = dns.query.udp(query, "127.0.0.1", port=listed.server.port, timeout=10)
    assert answer.rcode() == dns.rcode.NOERROR and answer.had_tsig
    assert listed.status()["counters"]["signed_queries"] == 1
    assert listed.status()["zone_lists"] == "reading"


def test_commands_that_need_the_zones_wait_and_others_do_not(listed):
    listed.start()
    listed.kill_all()
    listed.write(listed.lines[1:])
    listed.start_held()
    waiting = [listed.command(*words) for words in (
        ("zone", "list"), ("zone", "status", LAST), ("zone", "snapshot", "updated.test", "before"), ("reload",))]
    assert listed.server.control("worker", "list")["workers"]
    servers.wait_until("the first reload has come", lambda: "reload_started" in listed.server.log())
    second = listed.command("reload")
    assert "reload" in second.communicate(timeout=60)[1] and second.returncode == 1
    assert [command.poll() for command in waiting] == [None] * 4
    listed.read()
    outputs = [command.communicate(timeout=120)[0] for command in waiting]
    assert [command.returncode for command in waiting] == [0] * 4, outputs
    assert json.loads(outputs[1])["state"] == "ok"
    assert json.loads(outputs[3])["zones_added"] == 0, "the start had brought the store in line before"
    listed.loaded()
    assert listed.status()["zones"] == COUNT


@pytest.mark.parametrize("by", ["command", "signal"])
def test_a_broken_list_leaves_the_zones_served_until_a_reload_can_read_it(listed, by):
    listed.start()
    assert listed.update("before") == dns.rcode.NOERROR
    listed.kill_all()
    good = listed.list.read_text()
    listed.list.write_text(good + "one.test\n")
    listed.start_held()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        update = pool.submit(listed.update, "meanwhile")
        listed.forwarded()
        listed.read()
        assert update.result() == dns.rcode.SERVFAIL
    status = listed.status()
    place = f"{listed.list}:{COUNT + 2}: a line is NAME FILE [TEMPLATE]"
    assert status["zone_lists"] == "failed" and status["problem"] == place
    assert "zone_lists_not_read" in listed.server.log() and place in listed.server.log()
    assert listed.server.process.poll() is None
    assert listed.rcode(LAST) == dns.rcode.NOERROR and listed.has("before")
    assert listed.update("later") == dns.rcode.SERVFAIL
    assert listed.server.control("zone", "status", LAST)["state"] == "ok"
    refused = listed.command("zone", "snapshot", "updated.test", "now")
    assert place in refused.communicate(timeout=60)[1]
    again = listed.command("reload")
    assert place in again.communicate(timeout=60)[1] and again.returncode == 1
    assert listed.status()["zones"] == COUNT + 1, "none is removed"
    servers.wait_until("they are counted", lambda: listed.status()["zones_loaded"] == COUNT + 1)
    listed.list.write_text(good + f"one.test {listed.plain}\n")
    if by == "command":
        assert listed.server.control("reload")["zones_added"] == 1
    else:
        os.kill(listed.server.process.pid, signal.SIGHUP)
    listed.loaded()
    assert listed.status()["problem"] == ""
    assert listed.update("at-last") == dns.rcode.NOERROR
    servers.wait_until("the new zone is served", lambda: listed.rcode("one.test") == dns.rcode.NOERROR)
    servers.wait_until("it can be exported", lambda: export(listed).returncode == 0)


def export(listed):
    return subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(listed.server.config), "zone", "export", "updated.test"],
        capture_output=True, stdin=subprocess.DEVNULL, timeout=60)


def test_a_list_that_is_missing_or_broken_fails_a_start_without_a_store(listed):
    listed.hold.unlink(missing_ok=True)
    good = listed.list.read_text()
    for text, reason in ((good + "one.test\n", f"{listed.list}:{COUNT + 2}: a line is NAME FILE [TEMPLATE]"),
                         (None, f"there is no file {listed.list}")):
        listed.list.unlink() if text is None else listed.list.write_text(text)
        done = subprocess.run(listed.server.command(), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                              timeout=60, cwd=listed.server.folder)
        assert done.returncode == 78 and reason in done.stderr
        assert not listed.server.store.exists(), "nothing was begun"


def test_a_list_that_cannot_be_opened_fails_any_start(listed):
    listed.start()
    listed.kill_all()
    listed.list.unlink()
    done = subprocess.run(listed.server.command(), capture_output=True, text=True, stdin=subprocess.DEVNULL,
                          timeout=60, cwd=listed.server.folder)
    assert done.returncode == 78 and f"there is no file {listed.list}" in done.stderr


def test_a_manager_that_is_killed_while_it_reads_begins_anew(listed):
    listed.start()
    for _ in range(2):
        listed.kill_all()
        listed.write(listed.lines[1:])
        listed.start_held()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            update = pool.submit(listed.update, "lost")
            listed.forwarded()
            listed.server.kill()
            assert update.result() == dns.rcode.SERVFAIL, "its worker says so"
        assert listed.rcode(LAST) == dns.rcode.NOERROR
    listed.start(LAST)
    assert listed.status()["zones"] == COUNT - 1
    assert not listed.has("lost") and listed.update("kept") == dns.rcode.NOERROR


def test_a_manager_that_is_stopped_while_it_reads_answers_who_waits(listed):
    listed.start()
    listed.kill_all()
    listed.start_held()
    command = listed.command("zone", "list")
    servers.wait_until("it has asked", lambda: any(os.readlink(fd).startswith("socket:") for fd in
                                                   glob.glob(f"/proc/{command.pid}/fd/*") if os.path.islink(fd)))
    reload = listed.command("reload")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        update = pool.submit(listed.update, "late")
        listed.forwarded()
        servers.wait_until("the reload waits", lambda: "reload_started" in listed.server.log())
        listed.server.process.terminate()
        assert update.result() == dns.rcode.SERVFAIL
    assert command.wait(60) == 1 and reload.wait(60) == 1
    listed.hold.unlink()
    listed.server.process.wait(60)
    listed.start()
    assert not listed.has("late")


@pytest.mark.parametrize("turn", [1, 3])
def test_a_new_store_is_not_served_before_it_has_the_whole_list(listed, turn):
    """Killed in the middle of the first list of zones, the manager reads the lists first once more."""
    listed.server.crash_at = f"commit-published:{turn}"
    with pytest.raises(AssertionError, match="ended with -9"):
        listed.start()
    listed.server.crash_at = None
    listed.hold.touch()  # would hold a thread that reads them later
    listed.server.start(LAST)
    listed.loaded()
    assert listed.status()["zones"] == COUNT + 1
    listed.kill_all()
    listed.start_held()
    assert listed.rcode(LAST) == dns.rcode.NOERROR


def test_a_store_that_cannot_be_attached_to_waits_for_the_lists(listed):
    listed.start()
    listed.kill_all()
    path = listed.server.store / "zones.store"
    with open(path, "r+b") as store:
        store.write(b"\0" * 64)
    listed.hold.touch()
    listed.server.start(LAST)
    listed.loaded()
    assert "store_replaced" in listed.server.log_path.read_text()


def test_a_store_that_cannot_be_attached_to_is_not_replaced_for_a_list_that_is_wrong(listed):
    listed.start()
    listed.kill_all()
    path = listed.server.store / "zones.store"
    with open(path, "r+b") as store:
        store.write(b"\0" * 64)
    before = path.read_bytes()
    listed.list.write_text("one two three four\n")
    for _ in range(2):
        ended = subprocess.run(listed.server.command(), env=listed.server.environment(), cwd=listed.server.folder,
                               stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        assert ended.returncode == 78, ended.stdout + ended.stderr
        assert path.read_bytes() == before
    listed.write([f"z{number}.test {listed.plain}" for number in range(COUNT)])
    listed.start()
    listed.loaded()


def test_a_notify_that_comes_meanwhile_is_heeded(listed):
    """Its zone's timers say that there is no hurry."""
    from test_odd_primaries import OddPrimary, wire
    primary = OddPrimary()

    def answer(query, rdtype):
        opening = dns.rrset.from_text("copy.test.", 300, "IN", "SOA", f"ns.test. admin.test. {primary.serial} 360000 36000 3600000 300")
        if rdtype == "SOA":
            return [wire(query, [opening])]
        return [wire(query, [opening, dns.rrset.from_text("copy.test.", 300, "IN", "NS", "ns.test."), opening])]

    primary.serial, primary.answer = 1, answer
    try:
        config = listed.server.config.read_text().replace("127.0.0.1@1\"", f"127.0.0.1@{primary.port}\"")
        listed.server.config.write_text(config)
        listed.write(listed.lines + ["copy.test -  copy"])
        listed.start("copy.test")
        servers.wait_until("it has come", lambda: listed.server.serial("copy.test") == 1)
        servers.wait_until("its copy is noted", lambda: "zone_copied" in (listed.server.folder / "log").read_text())
        listed.kill_all()
        primary.serial = 2
        asked = len(primary.asked)
        listed.start_held("copy.test")
        notify = dns.message.make_query("copy.test", "SOA")
        notify.set_opcode(dns.opcode.NOTIFY)
        notify.flags = (notify.flags | dns.flags.AA) & ~dns.flags.RD
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            answered = pool.submit(dns.query.udp, notify, "127.0.0.1", port=listed.server.port, timeout=60)
            listed.forwarded()
            assert len(primary.asked) == asked
            listed.read()
            assert answered.result().rcode() == dns.rcode.NOERROR
        servers.wait_until("the primary was asked", lambda: listed.server.serial("copy.test") == 2)
    finally:
        primary.close()
