"""Updates that change much: worked out beside the commit thread, whole or not at all, in their client's order."""

import concurrent.futures
import shutil
import signal
import socket
import struct
import threading

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import pytest

import servers

NAMES = 300
ADDRESSES = 50  # of a name
APEX = """$TTL 300
@ SOA ns.other. admin 1 3600 600 86400 300
@ NS ns.other.
"""


@pytest.fixture
def server(tmp_path, pando):
    zones = []
    for zone in ("example", "second"):
        path = tmp_path / f"{zone}.zone"
        path.write_text(APEX + ("" if zone == "second" else "".join(
            f"b{i} A 10.0.{i % 250}.{j}\n" for i in range(NAMES) for j in range(ADDRESSES))))
        zones.append({"name": zone, "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}],
                      "allow-transfer": [{"address": "127.0.0.0/8"}]})
    return pando(zones).start("example")


def deletion(names=range(NAMES)):
    update = dns.update.UpdateMessage("example")
    for i in names:
        update.delete(f"b{i}")
    return update


def addition(name, zone="example"):
    update = dns.update.UpdateMessage(zone)
    update.add(name, 60, "A", "192.0.2.1")
    return update


def send(server, update, timeout=60):
    return dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=timeout).rcode()


def owners(server):
    return {line.split(" ")[0].removesuffix(".example.") for line in server.records("example")
            if int(line.split(" ", 3)[2]) == dns.rdatatype.A}


def counters(server):
    return server.control("status")["counters"]


def test_a_large_update_beside_small_ones_is_done_once_and_stays(server):
    stop = threading.Event()

    def add(zone):
        names = []
        while not stop.is_set() or not names:
            names.append(f"{zone}{len(names)}")
            assert send(server, addition(names[-1], zone)) == dns.rcode.NOERROR
        return names

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        try:
            added = [pool.submit(add, zone) for zone in ("example", "second")]
            assert send(server, deletion()) == dns.rcode.NOERROR
        finally:
            stop.set()
        here, there = (names.result() for names in added)
    assert owners(server) == set(here)
    assert server.serial("example") == 1 + 1 + len(here) and server.serial("second") == 1 + len(there)
    assert counters(server)["large_changes"] == 1
    assert server.control("store", "check")["faults_found"] == 0
    server.stop()
    shutil.rmtree(server.store)
    server.start("example")
    assert owners(server) == set(here) and server.serial("example") == 2 + len(here)


def test_what_a_client_sends_behind_a_large_update_is_done_after_it(server):
    """All on one connection, without waiting for answers."""
    before, after = addition("before"), addition("after")
    large = deletion()
    large.present("before")
    after.absent("b0")
    last = dns.update.UpdateMessage("example")
    last.present("after")
    last.delete("before")
    messages = [before, large, after, last]
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(b"".join(struct.pack("!H", len(wire)) + wire
                                for wire in (message.to_wire() for message in messages)))
        rcodes = {}
        with client.makefile("rb") as answers:
            for _ in messages:
                answer = dns.message.from_wire(answers.read(struct.unpack("!H", answers.read(2))[0]))
                rcodes[answer.id] = answer.rcode()
    assert [rcodes[message.id] for message in messages] == [dns.rcode.NOERROR] * 4
    assert owners(server) == {"after"} and counters(server)["large_changes"] == 1


def test_a_large_update_that_may_not_be_done_changes_nothing(server):
    update = deletion()
    update.present("absent")
    assert send(server, update) == dns.rcode.NXDOMAIN
    assert len(owners(server)) == NAMES and server.serial("example") == 1
    assert counters(server)["large_changes"] == 1


@pytest.mark.parametrize("point", ["change-worked-out", "change-adopted", "commit-journalled", "commit-published"])
def test_a_crash_in_a_large_update_leaves_all_of_it_or_nothing(server, point):
    server.stop()
    server.crash_at, server.crash_if = point, server.folder / "crash"  # a start publishes, too
    server.start("example")
    server.crash_if.touch()
    wire = deletion().to_wire()
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
        client.sendall(struct.pack("!H", len(wire)) + wire)
        servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    assert server.process.returncode == -signal.SIGKILL
    done = point.startswith("commit-")
    server.crash_at = server.crash_if = None
    server.start("example")
    assert len(owners(server)) == (0 if done else NAMES) and server.serial("example") == (2 if done else 1)
    assert server.control("store", "check")["faults_found"] == 0
    server.stop()
    shutil.rmtree(server.store)
    server.start("example")
    assert len(owners(server)) == (0 if done else NAMES) and server.serial("example") == (2 if done else 1)
