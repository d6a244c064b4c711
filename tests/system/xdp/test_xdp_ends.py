"""What ends, begins or changes beside queries by AF_XDP: no query is lost but those in a killed worker's hands."""

import os
import pathlib
import shutil
import signal
import socket
import tempfile

import dns.message
import pytest

import servers
from hosts import Load, SERVER, Wire, XdpPando, ZONE, ask, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

CLIENTS = 4
QUERY = dns.message.make_query(f"www.{ZONE}", "A").to_wire()


@pytest.fixture
def load():
    started = []

    def start(server, **options):
        started.append(Load(server.wire, clients=CLIENTS, **options))
        started[-1].wait_for(100)
        return started[-1]

    yield start
    for one in started:
        one.stop()


def goes_by_xdp(server):
    """Some question out of a few: what is under way may still be answered by a socket."""
    before = server.counter("xdp_received")
    assert ask(server.wire.client, QUERY, SERVER[4]) is not None
    return server.counter("xdp_received") > before


def await_xdp(server):
    server.await_queues()
    servers.wait_until("queries go by AF_XDP again", lambda: goes_by_xdp(server))


def finish(load, most_lost=0):
    load.wait_for(100)
    load.stop()
    assert not load.wrong and load.lost <= most_lost, (load.asked, load.lost, load.wrong)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_worker_loses_what_it_had_in_hand(make, load, workers):
    server = make(workers=workers).start(ZONE)
    running = load(server)
    for _ in range(3):
        before = server.workers()[0]
        os.kill(before["pid"], signal.SIGKILL)
        servers.wait_until("another worker is in the slot", lambda before=before: server.workers()[0]["pid"] not in (
            0, before["pid"]) and server.workers()[0]["state"] == "serving")
        await_xdp(server)
    finish(running, most_lost=3 * CLIENTS)


def test_queries_are_answered_while_there_is_no_worker(make):
    server = make().start(ZONE)
    pid = server.workers()[0]["pid"]
    os.kill(server.process.pid, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    servers.wait_until("the worker has ended", lambda: not is_alive(pid))
    with server.wire.client.inside():
        client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.sendto(QUERY, (SERVER[4], 53))  # waits in the kernel's socket, whose worker is yet to come
    os.kill(server.process.pid, signal.SIGCONT)
    client.settimeout(30)
    assert client.recv(4096)[:2] == QUERY[:2]
    client.close()
    await_xdp(server)


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("workers", [1, 2])
def test_a_killed_manager_is_followed_without_a_gap(make, load, workers):
    server = make(workers=workers).start(ZONE)
    running = load(server)
    workers_before = {row["pid"] for row in server.workers().values()}
    for _ in range(2):
        server.kill_manager()
        running.wait_for(200)  # workers answer alone
        server.start(ZONE)
        await_xdp(server)
        assert {row["pid"] for row in server.workers().values()} == workers_before
    assert server.log_path.read_text().count("replaced=true") == 2
    finish(running)


def test_the_program_goes_with_manager_and_workers(make):
    server = make().start(ZONE)
    assert "xdp" in server.wire.server.ip("link", "show", "eth0")
    server.kill_manager()
    assert "xdp" in server.wire.server.ip("link", "show", "eth0")
    for pid in server.left_over():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("the program has gone", lambda: "xdp" not in server.wire.server.ip("link", "show", "eth0"))
    server.start(ZONE)
    assert goes_by_xdp(server)
    server.stop()
    assert "xdp" not in server.wire.server.ip("link", "show", "eth0")


def test_workers_come_and_go(make, load):
    server = make(queues=2, workers=1)
    server.wire.use_queues(2)
    server.start(ZONE)
    running = load(server)
    for count in (3, 2, 1):
        server.workers_wanted = count
        server.write_config()
        server.control("reload")
        servers.wait_until(f"{count} workers", lambda count=count: len(server.workers()) == count)
        expected = {0: 0, 1: 1 if count > 1 else 0}
        servers.wait_until("their queues are theirs", lambda expected=expected: {
            row["queue"]: row["slot"] for row in server.control("status")["xdp"][0]["served"]} == expected)
    finish(running)


def test_a_reload_changes_interfaces_and_addresses(make):
    server = make().start(ZONE)
    assert goes_by_xdp(server)
    server.server["listen"] = ["0.0.0.0@53"]
    server.write_config()
    server.control("reload")
    assert goes_by_xdp(server)
    assert ask(server.wire.client, QUERY, SERVER[6], timeout=0.5) is None
    server.xdp, interfaces = [], server.xdp
    server.write_config()
    server.control("reload")
    servers.wait_until("no interface is left", lambda: not server.control("status")["xdp"])
    assert not goes_by_xdp(server)
    assert "xdp" not in server.wire.server.ip("link", "show", "eth0")
    server.xdp = interfaces
    server.write_config()
    server.control("reload")
    await_xdp(server)
    server.xdp = [{"interface": "eth0", "mode": "generic"}]
    server.write_config()
    server.control("reload")
    servers.wait_until("the other mode", lambda: server.control("status")["xdp"][0]["mode"] == "generic")
    await_xdp(server)


@pytest.mark.parametrize("build", ["this", "next"])
def test_an_upgrade_loses_no_query(make, load, build):
    server = make(workers=2).start(ZONE)
    running = load(server)
    programs = servers.build_folder()
    server.upgrade(programs if build == "this" else programs / "next")
    await_xdp(server)
    finish(running)


def test_without_rights_sockets_answer(make):
    dropped = "-net_admin,-net_raw,-bpf,-sys_admin"
    server = make(prefix=["setpriv", f"--bounding-set={dropped}", f"--inh-caps={dropped}"])
    server.start(ZONE, attached=False)
    row = server.control("status")["xdp"][0]
    assert row["mode"] == "" and "CAP_NET_ADMIN" in row["problem"]
    assert ask(server.wire.client, QUERY, SERVER[4]) is not None
    text = server.log_path.read_text()
    assert text.count("xdp_failed") == 1 and "CAP_BPF" in text


def test_an_interface_may_come_later(make):
    server = make([{"interface": "late0"}])
    server.start(ZONE, attached=False)
    assert "no interface late0" in server.control("status")["xdp"][0]["problem"]
    assert "this host has no interface 'late0'" in server.log_path.read_text()
    server.wire.server.ip("link", "add", "late0", "type", "veth", "peer", "name", "late1")
    server.wire.server.ip("link", "set", "late0", "up")
    server.await_queues("late0")
    server.wire.server.ip("link", "delete", "late0")
    servers.wait_until("its absence is told", lambda: server.control("status")["xdp"][0]["problem"])
    assert ask(server.wire.client, QUERY, SERVER[4]) is not None


def test_an_address_may_come_later(make):
    server = make().start(ZONE)
    server.wire.server.ip("address", "add", "192.0.2.9/24", "dev", "eth0")

    def answered_by_xdp():
        before = server.counter("xdp_received")
        return ask(server.wire.client, QUERY, "192.0.2.9") and server.counter("xdp_received") > before
    servers.wait_until("queries to it go by AF_XDP", answered_by_xdp)


def test_the_program_of_another_stays(make):
    first = make().start(ZONE)
    second = make()
    second.host = first.wire.server  # its own is closed by the fixture
    second.server["listen"] = ["127.0.0.1@5300"]
    second.write_config()
    second.start(ZONE, attached=False)
    servers.wait_until("the problem is told",
                       lambda: "another XDP program" in second.control("status")["xdp"][0]["problem"])
    assert goes_by_xdp(first)


class TwoUsers(XdpPando):
    def environment(self):
        # A sanitizer looks for leaks by tracing its own process, which a change of user forbids.
        return {**super().environment(), "ASAN_OPTIONS": "detect_leaks=0"}


def capabilities(pid):
    with open(f"/proc/{pid}/status") as file:
        return {line.split(":")[0]: int(line.split()[1], 16) for line in file if line.startswith("Cap")}


def test_workers_have_no_rights_and_the_manager_few():
    """Started as root, with two users, as a package does it."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-xdp-", dir="/tmp"))
    folder.chmod(0o755)
    wire = Wire()
    server = TwoUsers(folder / "server", wire, [{"interface": "eth0"}], server={
        "user": "daemon", "worker-user": "nobody"})
    try:
        server.config.chmod(0o644)
        server.start(ZONE)
        assert goes_by_xdp(server)
        net_bind, net_admin, net_raw, bpf = (1 << number for number in (10, 12, 13, 39))
        kept = capabilities(server.process.pid)
        assert kept["CapEff"] == kept["CapPrm"] == net_bind | net_admin | net_raw | bpf
        for row in server.workers().values():
            assert not any(capabilities(row["pid"]).values())
        server.kill_manager()
        assert ask(wire.client, QUERY, SERVER[4]) is not None
        server.start(ZONE)
        await_xdp(server)
    finally:
        server.clean()
        wire.close()
        shutil.rmtree(folder)
    assert not server.faults_of_sanitizers()
