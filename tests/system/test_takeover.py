"""A build of another layout takes over from one that runs: no query is lost, nor an acknowledged update."""

import socket

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


class Takeover:
    def __init__(self, pando, tmp_path, **options):
        self.file = tmp_path / "takeover.zone"
        lines = ["@ 300 SOA ns1 admin 1 3600 600 86400 300", "@ 300 NS ns1", "ns1 300 A 192.0.2.1"]
        self.file.write_text("\n".join(lines + [f"host{n} 300 A 192.0.2.2" for n in range(NAMES)]) + "\n")
        self.server = pando([{"name": ZONE, "file": str(self.file), "allow-update": ANYBODY,
                              "allow-transfer": ANYBODY}], **options)
        self.build = Programs.this
        self.words = []
        self.server.command = lambda: [str(self.build / "pando-manager"), "--config", str(self.server.config),
                                       *self.words]
        self.server.start(ZONE)
        self.load = servers.Dnsperf(self.server.port, [f"host{n}.{ZONE} A" for n in range(NAMES)], rate=1000)

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
