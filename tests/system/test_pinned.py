"""Memory that readers of old versions hold back has a bound: limits.pinned-bytes."""

import contextlib
import os
import pathlib
import select
import signal
import socket
import struct
import time

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "example"
NAMES = 6000  # three megabytes
LIMIT = 1 << 20
CHUNK = 64 * 1024
MOST = 2 * LIMIT + LIMIT // 2  # beyond twice the limit a worker has a tenth of a second, and an update is under way


@pytest.fixture
def server(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text("$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n" +
                    "".join(f"long MX {number} mail.of.{number}.example.net.\n" for number in range(40)) +
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


def connect_to_one_that_runs(server):
    """A connection to a worker that runs: the kernel spreads them over both, and one that is stopped says nothing."""
    query = dns.message.make_query(ZONE, "SOA")

    def first_to_answer():
        with contextlib.ExitStack() as others:
            clients = [others.enter_context(socket.create_connection(("127.0.0.1", server.port))) for _ in range(8)]
            for client in clients:
                dns.query.send_tcp(client, query)
            for client in select.select(clients, [], [], 5)[0]:
                dns.query.receive_tcp(client)
                client.setblocking(False)  # as dns.query.tcp wants it
                return client.dup()
    return servers.wait_until("a worker answers", first_to_answer)


def each_update(server):
    """Replaces all names, some with each update; comes back after each."""
    with connect_to_one_that_runs(server) as connection:
        for first in range(0, NAMES, 200):
            message = dns.update.UpdateMessage(ZONE)
            for number in range(first, first + 200):
                message.replace(f"host{number}", 300, "TXT", "new")
            answer = dns.query.tcp(message, "127.0.0.1", timeout=60, sock=connection)
            assert answer.rcode() == dns.rcode.NOERROR
            yield


def hold_too_much(server):
    """Replaces names until more than the limit is held back."""
    for _ in each_update(server):
        if "memory_pinned" in log(server):
            return
    raise AssertionError("never too much is held back")


def hold_until_ended(server, slot, pid):
    """Replaces names until the worker is ended for what it holds, and waits for its successor."""
    for _ in each_update(server):
        assert waiting(server) <= MOST
        if "worker_holds_memory" in log(server):
            return servers.wait_until("it is replaced", lambda: is_replaced(server, slot, pid))
    raise AssertionError("the worker holds all names")


def is_replaced(server, slot, pid):
    row = server.workers()[slot]
    return row["pid"] not in (0, pid) and row["state"] == "serving"


def is_stopped(pid):
    return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def pinned_version(server, slot):
    """The version that the worker's batch holds; 0: none is under way. As the manager sees it, by the worker's page
    (SlotPage in shm/slots.h)."""
    with open(server.folder / "run" / "slots" / f"{slot}.slot", "rb") as page:
        magic, number, epoch = struct.unpack("<8s8xI44xQ", page.read(72))
    assert magic == b"PPDSLOT1" and number == slot
    return epoch


def stop_in_a_batch(server, slot, pid):
    """Stops the worker where it holds a version without a lease: in the middle of answers. Each time it goes on it
    finds many requests for names that take long to compress, and is stopped again a little later than the time before,
    until it is met there."""
    query = dns.message.make_query(f"long.{ZONE}", "MX", use_edns=0, payload=4096).to_wire()
    with contextlib.ExitStack() as open_sockets:
        clients = [open_sockets.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in range(32)]
        for client in clients:
            client.connect(("127.0.0.1", server.port))
        for tries in range(10_000):
            for client in clients * 8:
                client.send(query)
            os.kill(pid, signal.SIGCONT)
            time.sleep(tries % 20 * 1e-4)
            os.kill(pid, signal.SIGSTOP)
            while not is_stopped(pid):
                time.sleep(1e-4)
            if pinned_version(server, slot) != 0:
                return
    raise AssertionError("the worker was never met in a batch")


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
            hold_until_ended(server, slot, pid)
        finally:
            if os.path.exists(f"/proc/{pid}"):
                os.kill(pid, signal.SIGCONT)
    servers.wait_until("nothing is held back", lambda: waiting(server) <= LIMIT and not holders(server))
    for _ in range(20):
        assert server.ask(f"rest1.{ZONE}", "TXT", tcp=True).answer, "both workers answer"


def test_a_worker_that_is_stopped_in_a_batch_is_ended(server):
    slot, pid = next((slot, row["pid"]) for slot, row in server.workers().items())
    try:
        stop_in_a_batch(server, slot, pid)
        assert not holders(server)
        hold_until_ended(server, slot, pid)
    finally:
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGCONT)
    servers.wait_until("nothing is held back", lambda: waiting(server) <= LIMIT)
    for _ in range(20):
        assert server.ask(f"rest1.{ZONE}", "TXT", tcp=True).answer, "both workers answer"
