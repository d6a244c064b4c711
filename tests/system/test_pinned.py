"""Memory that readers of old versions hold back has a bound: limits.pinned-bytes."""

import contextlib
import itertools
import os
import signal
import socket

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "example"
NAMES = 4000  # two megabytes
LIMIT = 1 << 20
CHUNK = 64 * 1024
MOST = 2 * LIMIT + LIMIT // 2  # beyond twice the limit a worker has a tenth of a second, and an update is under way


@pytest.fixture
def server(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text("$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n" +
                    "".join(f"host{number} TXT {'x' * 250} {'y' * 250}\n" for number in range(NAMES)) +
                    "".join(f"rest{number} TXT {'x' * 250} {'y' * 250}\n" for number in range(30000)))
    local = [{"address": "127.0.0.0/8"}]
    server = pando([{"name": ZONE, "file": str(path), "allow-transfer": local, "allow-update": local}],
                   limits="{pinned-bytes: 1MiB, history: 0, tcp-idle: 1h}")
    return server.start(ZONE)


def waiting(server):
    return server.control("status")["store"]["chunks_waiting"] * CHUNK


def log(server):
    return (server.folder / "log").read_text()


def holders(server):
    return [slot for slot, row in server.workers().items() if row.get("leases")]


def begin_transfer(client, server):
    query = dns.message.make_query(ZONE, "AXFR").to_wire()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.settimeout(60)
    client.connect(("127.0.0.1", server.port))
    client.sendall(len(query).to_bytes(2, "big") + query)
    servers.wait_until("the transfer has its lease", lambda: holders(server))


def send(server, message):
    """Until a worker takes it that runs."""
    for _ in range(30):
        try:
            assert dns.query.tcp(message, "127.0.0.1", port=server.port, timeout=2).rcode() == dns.rcode.NOERROR
            return
        except dns.exception.Timeout:
            continue
    raise AssertionError("no worker takes an update")


def replace_names(server, first, turn):
    message = dns.update.UpdateMessage(ZONE)
    for number in range(first, first + 100):
        message.replace(f"host{number}", 300, "TXT", f'"{turn}" "{"z" * 250}" "{"z" * 200}"')
    send(server, message)


def hold_too_much(server):
    """Replaces names until more than the limit is held back."""
    turns = itertools.count(1)

    def more():
        turn = next(turns)
        for first in range(0, NAMES, 100):
            replace_names(server, first, turn)
        return "memory_pinned" in log(server)
    servers.wait_until("too much is held back", more, 120)


def write_until(server, done):
    """Replaces names until then; the most octets that were held back after any of these updates."""
    steps, most = itertools.count(), 0

    def more():
        nonlocal most
        step = next(steps)
        replace_names(server, step * 100 % NAMES, step)
        most = max(most, waiting(server))
        return done()
    servers.wait_until("it is done", more, 300)
    return most


def is_replaced(server, slot, pid):
    row = server.workers()[slot]
    return row["pid"] not in (0, pid) and row["state"] == "serving"


def stop_in_a_batch(server, pid):
    """Stops the worker where it holds a version without a lease: in the middle of answers."""
    query = dns.message.make_query(f"rest1.{ZONE}", "TXT").to_wire()
    with contextlib.ExitStack() as open_sockets:
        clients = [open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(16)]
        for client in clients:
            client.connect(("127.0.0.1", server.port))
        for _ in range(15):
            for _ in range(40):
                for client in clients:
                    client.send(query)
            os.kill(pid, signal.SIGSTOP)
            replace_names(server, 0, "probe")
            replace_names(server, 0, "again")
            if waiting(server) > 0:
                return
            os.kill(pid, signal.SIGCONT)
    pytest.skip("the worker was never stopped in a batch: it is faster than the queries")


def test_a_transfer_that_holds_too_much_is_ended(server):
    with socket.socket() as client:
        begin_transfer(client, server)
        hold_too_much(server)
        received = 0
        while data := client.recv(65536):  # it ends before the zone does
            received += len(data)
        assert received < 10 << 20
    servers.wait_until("nothing is held back", lambda: waiting(server) <= LIMIT and not holders(server))
    assert "worker_holds_memory" not in log(server), "the worker let go when it was asked"
    assert server.ask(f"rest1.{ZONE}", "TXT", tcp=True).answer


def test_a_worker_that_does_not_let_go_is_ended(server):
    with socket.socket() as client:
        begin_transfer(client, server)
        slot, = holders(server)
        pid = server.workers()[slot]["pid"]
        os.kill(pid, signal.SIGSTOP)
        try:
            assert write_until(server, lambda: is_replaced(server, slot, pid)) <= MOST
        finally:
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGCONT)
    assert "worker_holds_memory" in log(server)
    servers.wait_until("nothing is held back", lambda: waiting(server) <= LIMIT and not holders(server))
    for _ in range(20):
        assert server.ask(f"rest1.{ZONE}", "TXT", tcp=True).answer, "both workers answer"


def test_a_worker_that_is_stopped_in_a_batch_is_ended(server):
    slot, pid = next((slot, row["pid"]) for slot, row in server.workers().items())
    stop_in_a_batch(server, pid)
    try:
        assert not holders(server)
        assert write_until(server, lambda: is_replaced(server, slot, pid)) <= MOST
    finally:
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGCONT)
    assert "worker_holds_memory" in log(server)
    servers.wait_until("nothing is held back", lambda: waiting(server) <= LIMIT)
    for _ in range(20):
        assert server.ask(f"rest1.{ZONE}", "TXT", tcp=True).answer, "both workers answer"
