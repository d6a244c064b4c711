"""A build of another layout takes over from one that runs: no query is lost, nor an acknowledged update."""

import os
import signal
import socket
import subprocess
import threading
import time

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_dump import ANYBODY, differences

ZONE = "takeover.test"
NAMES = 50


class Programs:
    """The two builds: their stores have different layouts."""
    this = servers.build_folder()
    next = servers.build_folder() / "next"


class Units:
    """Starts workers as a service manager does with `Restart=always`: whichever ends is started again at once, from
    the programs that are installed by then."""

    def __init__(self, server, slots):
        self.server = server
        self.build = Programs.this
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.keep, args=(slot,)) for slot in range(slots)]
        for thread in self.threads:
            thread.start()

    def keep(self, slot):
        with (self.server.folder / f"worker{slot}.log").open("ab") as log:
            while not self.stopping.is_set():
                process = subprocess.Popen(
                    [str(self.build / "pando-worker"), "--slot", str(slot), "--run-directory",
                     str(self.server.folder / "run")], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
                while process.poll() is None and not self.stopping.is_set():
                    time.sleep(0.005)
                if process.poll() is None:
                    process.kill()
                process.wait()
                self.stopping.wait(0.01)  # there may be no manager yet

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()


class Takeover:
    def __init__(self, pando, tmp_path, units=0, **options):
        self.file = tmp_path / "takeover.zone"
        lines = ["@ 300 SOA ns1 admin 1 3600 600 86400 300", "@ 300 NS ns1", "ns1 300 A 192.0.2.1"]
        self.file.write_text("\n".join(lines + [f"host{n} 300 A 192.0.2.2" for n in range(NAMES)]) + "\n")
        self.server = pando([{"name": ZONE, "file": str(self.file), "allow-update": ANYBODY,
                              "allow-transfer": ANYBODY}], **options)
        self.build = Programs.this
        self.words = []
        self.server.command = lambda: [str(self.build / "pando-manager"), "--config", str(self.server.config),
                                       *self.words]
        self.units = Units(self.server, units) if units else None
        try:
            self.server.start(ZONE)
        except AssertionError:
            self.end_units()
            raise
        self.load = servers.Dnsperf(self.server.port, [f"host{n}.{ZONE} A" for n in range(NAMES)], rate=1000)

    def end_units(self):
        if self.units:
            self.units.end()

    def update(self, name):
        message = dns.update.UpdateMessage(ZONE)
        message.add(name, 300, "A", "192.0.2.9")
        answer = dns.query.tcp(message, "127.0.0.1", port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR, answer.to_text()

    def has(self, *names):
        return all(self.server.ask(f"{name}.{ZONE}").answer for name in names)

    def await_successors(self, old):
        """The workers of the new build serve, and the others have gone."""
        def done():
            rows = self.server.workers().values()
            return (len(rows) == len(old) and all(row["state"] == "serving" for row in rows) and
                    not old & set(self.server.left_over()))
        servers.wait_until("workers of the new build serve alone", done, seconds=60)
        assert set(self.server.left_over()) == {row["pid"] for row in self.server.workers().values()}

    def run(self, build, *words):
        """Starts a manager of that build while the other one, or its workers, go on."""
        before = self.server.process
        self.build, self.words = build, list(words)
        if self.units:
            self.units.build = build
        self.server.start(ZONE)
        return before

    def end(self):
        result = self.load.stop()
        assert result.lost == 0, result.text
        assert result.completed == result.sent - result.interrupted and result.completed > 0
        assert set(result.rcodes) == {"NOERROR"}, result.text


@pytest.fixture
def takeover(pando, tmp_path, request):
    made = Takeover(pando, tmp_path, workers=getattr(request, "param", 2))
    yield made
    made.load.end()


@pytest.mark.parametrize("takeover", [1, 3], indirect=True)
def test_a_build_of_another_layout_takes_over(takeover):
    server = takeover.server
    first = server.serial(ZONE)
    takeover.update("before")
    old = set(server.left_over())
    manager = takeover.run(Programs.next, "--take-over")
    assert manager.wait(30) == 0
    takeover.await_successors(old)
    takeover.end()
    log = server.log_path.read_text()
    assert "store_replaced" in log and "dump_loaded" in log
    takeover.update("behind")
    assert takeover.has("before", "behind", "host1")
    assert differences(server, first, ZONE) == {"before", "behind"}
    server.control("store", "check")
    assert not (server.folder / server.journal / "store.dump").exists()


def test_snapshots_come_along(takeover):
    server = takeover.server
    server.control("zone", "snapshot", ZONE, "old-file")
    takeover.file.write_text(takeover.file.read_text().replace("admin 1 ", "admin 90 ") +
                             "".join(f"other{n} 300 A 192.0.2.3\n" for n in range(1000)))
    assert server.control("reload")["zones_changed"] == 1, "the file takes the zone's place"
    server.control("zone", "snapshot", ZONE, "before")
    takeover.update("one")
    server.control("zone", "snapshot", ZONE, "one")
    takeover.update("two")

    def told():
        return [(row["label"], row["serial"], row["records"], row["taken"], row["lost"])
                for row in server.control("zone", "snapshots")["snapshots"]]
    rows = told()
    assert len(rows) == 3 and not any(row[-1] for row in rows)
    for build in (Programs.next, Programs.this):
        old = set(server.left_over())
        takeover.run(build, "--take-over").wait(30)
        takeover.await_successors(old)
        assert told() == rows
    assert takeover.has("one", "two")
    server.control("zone", "rollback", ZONE, "one")
    assert takeover.has("one") and not takeover.has("two")
    server.control("zone", "rollback", ZONE, "before")
    assert not takeover.has("one") and takeover.has("other1")
    server.control("zone", "rollback", ZONE, "old-file")
    assert not takeover.has("other1") and takeover.has("host1")
    server.control("store", "check")
    takeover.end()


def test_and_back(takeover):
    server = takeover.server
    first = server.serial(ZONE)
    for turn, build in enumerate((Programs.next, Programs.this, Programs.next)):
        takeover.update(f"turn{turn}")
        old = set(server.left_over())
        takeover.run(build, "--take-over").wait(30)
        takeover.await_successors(old)
    takeover.end()
    assert differences(server, first, ZONE) == {"turn0", "turn1", "turn2"}


def test_the_old_manager_has_left_before(takeover):
    server = takeover.server
    takeover.update("before")
    old = set(server.left_over())
    server.control("hand-over")
    assert server.process.wait(30) == 0
    assert set(server.left_over()) == old and takeover.has("before")
    takeover.run(Programs.next)
    takeover.await_successors(old)
    takeover.end()
    assert takeover.has("before")


def test_who_was_answered_is_not_answered_again(takeover):
    """The manager sends UDP responses to updates by itself and tells the worker later. A worker that is left answers
    SERVFAIL to what it takes for unanswered."""
    clients = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(10)]
    for number, client in enumerate(clients):
        client.settimeout(10)
        client.connect(("127.0.0.1", takeover.server.port))
        message = dns.update.UpdateMessage(ZONE)
        message.add(f"client{number}", 300, "A", "192.0.2.9")
        client.send(message.to_wire())
        assert dns.message.from_wire(client.recv(4096)).rcode() == dns.rcode.NOERROR
    takeover.server.control("hand-over")
    assert takeover.server.process.wait(30) == 0
    takeover.run(Programs.this)
    takeover.update("behind")
    for client in clients:
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(4096)
        client.close()


def test_the_same_build_goes_on_with_the_workers(takeover):
    server = takeover.server
    old = set(server.left_over())
    takeover.run(Programs.this, "--take-over").wait(30)
    assert {row["pid"] for row in server.workers().values()} == old == set(server.left_over())
    takeover.end()
    assert not (server.folder / server.journal / "store.dump").exists()
    takeover.update("behind")


def test_the_old_manager_was_killed(takeover):
    """There is no dump: the zone comes from its file and the journal, and the old workers answer meanwhile."""
    server = takeover.server
    takeover.update("before")
    old = set(server.left_over())
    server.kill()
    takeover.run(Programs.next)
    takeover.await_successors(old)
    takeover.end()
    assert takeover.has("before", "host1")
    takeover.update("behind")


@pytest.mark.parametrize("point", ["dump-zones-loaded", "store-create-install", "store-create-installed"])
def test_the_new_manager_dies_on_the_way(takeover, point):
    server = takeover.server
    takeover.update("before")
    old = set(server.left_over())
    server.crash_at = point
    with pytest.raises(AssertionError, match="ended with -9"):
        takeover.run(Programs.next, "--take-over")
    server.crash_at = None
    takeover.run(Programs.next, "--take-over")
    takeover.await_successors(old)
    takeover.end()
    assert takeover.has("before")
    takeover.update("behind")


def test_nobody_to_take_over_from_is_no_error(pando, tmp_path):
    made = Takeover(pando, tmp_path, workers=1)
    made.load.end()
    made.server.stop()
    made.run(Programs.this, "--take-over")
    assert "nothing_to_take_over" in made.server.log()


# Workers that somebody else starts (`workers: external`): one process to a slot at a time, so the old one leaves before
# its successor comes, and what is asked in between waits in the slot's queue.

@pytest.fixture
def external(pando, tmp_path):
    made = Takeover(pando, tmp_path, units=2, workers="external")
    yield made
    made.load.end()
    made.end_units()


def test_units_come_back_with_the_other_build(external):
    server = external.server
    first = server.serial(ZONE)
    external.update("before")
    for turn, build in enumerate((Programs.next, Programs.this)):
        old = set(server.left_over())
        assert len(old) == 2
        assert external.run(build, "--take-over").wait(30) == 0
        external.await_successors(old)
        external.update(f"turn{turn}")
    external.end()
    assert "dump_loaded" in server.log_path.read_text()
    assert external.has("before", "turn0", "turn1", "host1")
    assert differences(server, first, ZONE) == {"before", "turn0", "turn1"}
    server.control("store", "check")


def test_units_of_the_same_build_go_on(external):
    server = external.server
    old = set(server.left_over())
    assert external.run(Programs.this, "--take-over").wait(30) == 0
    assert {row["pid"] for row in server.workers().values()} == old == set(server.left_over())
    external.end()
    external.update("behind")


def test_the_manager_of_units_was_killed(external):
    """There is no dump. The old workers answer until all zones have been looked at."""
    server = external.server
    external.update("before")
    old = set(server.left_over())
    server.kill()
    external.run(Programs.next)
    external.await_successors(old)
    external.end()
    assert external.has("before", "host1")
    external.update("behind")


def test_the_manager_of_units_has_left_before(external):
    server = external.server
    external.update("before")
    server.control("hand-over")
    assert server.process.wait(30) == 0
    old = set(server.left_over())
    assert len(old) == 2 and external.has("before")
    external.run(Programs.next)
    external.await_successors(old)
    external.end()
    assert external.has("before")


def test_workers_that_were_started_before_their_manager_are_its_own(external):
    """All were killed, and the units of the workers were the quicker ones. No page names them then, as those of another
    build are not named."""
    server = external.server
    external.load.end()
    for _ in range(3):
        old = set(server.left_over())
        server.process.kill()
        for pid in old:
            os.kill(pid, signal.SIGKILL)
        server.process.wait()
        servers.wait_until("two that wait for a manager", lambda: len(set(server.left_over()) - old) == 2)
        began = set(server.left_over()) - old
        external.run(Programs.this)
        servers.wait_until("both serve", lambda: [row["state"] for row in server.workers().values()] == ["serving"] * 2)
        assert {row["pid"] for row in server.workers().values()} == began == set(server.left_over())
    log = server.log()
    assert "worker_silent" not in log and "followed by another build's" not in log
    external.update("behind")
