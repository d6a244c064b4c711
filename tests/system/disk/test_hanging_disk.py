"""A journal's disk that does not answer for a while: queries are answered, updates are given up on, nothing is lost.
A journal with damage or gaps: what any copy still has is served, and no serial is used again for other data."""

import concurrent.futures
import os
import shutil
import signal

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

FILE = """$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
"""


@pytest.fixture
def server(pando, tmp_path, monkeypatch):
    """Its journal's sync waits while `held` exists."""
    held = tmp_path / "held"
    monkeypatch.setenv("PANDO_PAUSE_AT", "journal-sync")
    monkeypatch.setenv("PANDO_PAUSE_WHILE", str(held))
    path = tmp_path / "example.zone"
    path.write_text(FILE)
    server = pando([{"name": "example", "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}]}], workers=2)
    server.held = held
    yield server.start("example")
    held.unlink(missing_ok=True)


def add(server, name, tcp=False, timeout=60):
    update = dns.update.UpdateMessage("example")
    update.add(name, 60, "A", "192.0.2.7")
    ask = dns.query.tcp if tcp else dns.query.udp
    return ask(update, "127.0.0.1", port=server.port, timeout=timeout).rcode()


def is_served(server, name):
    return bool(server.ask(f"{name}.example").answer)


@pytest.mark.parametrize("ends", ["the disk answers again", "the manager is killed"])
def test_a_disk_that_hangs(server, ends):
    acknowledged = ["before0", "before1"]
    for name in acknowledged:
        assert add(server, name) == dns.rcode.NOERROR
    server.held.touch()
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        hanging = [pool.submit(add, server, f"hanging{i}", i % 2 == 1) for i in range(6)]
        while not all(future.done() for future in hanging):
            assert all(is_served(server, name) for name in acknowledged + ["ns"])
            assert not any(is_served(server, f"hanging{i}") for i in range(6)), "before it is durable"
        assert {future.result() for future in hanging} == {dns.rcode.SERVFAIL}
    if ends == "the manager is killed":
        server.kill()
    server.held.unlink()
    if ends == "the manager is killed":
        server.start("example")
    servers.wait_until("updates are done again", lambda: add(server, "after") == dns.rcode.NOERROR)
    acknowledged.append("after")
    assert all(is_served(server, name) for name in acknowledged)
    server.kill()
    server.start("example")
    assert all(is_served(server, name) for name in acknowledged)


def test_control_and_supervision_go_on(server):
    """Updates one by one, as a disk that was always quick sees them; then the disk hangs, and all workers die."""
    for number in range(12):
        assert add(server, f"before{number}") == dns.rcode.NOERROR
    server.held.touch()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        hanging = pool.submit(add, server, "hanging", timeout=5)
        old = {row["pid"] for row in server.workers().values()}
        for pid in old:
            os.kill(pid, signal.SIGKILL)

        def replaced():
            rows = server.workers().values()  # by way of the manager's commit thread
            return all(row["state"] == "serving" and row["pid"] not in old for row in rows)

        servers.wait_until("the workers are replaced", replaced)
        assert is_served(server, "before11")
        assert server.control("status")["pid"] == server.process.pid
        assert not is_served(server, "hanging"), "before it is durable"
        assert server.held.exists()
        server.held.unlink()
        hanging.exception()  # its answer may have gone with a killed worker
    servers.wait_until("updates are done again", lambda: add(server, "after") == dns.rcode.NOERROR)


NAMES = [f"name{number}" for number in range(8)]


# No checkpoint comes behind the first one, so what the tests damage is in no image.
IMAGE = "  image: zones.image\n  checkpoint: {interval: 24h, journal: 1GiB}"


@pytest.fixture(params=["", IMAGE], ids=["without image", "with image"])
def faulty(pando, tmp_path, request):
    path = tmp_path / "example.zone"
    path.write_text(FILE)
    zones = [{"name": "example", "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}]}]
    server = pando(zones, workers=1, store_extra=request.param)
    server.start("example")
    if request.param:
        servers.wait_until("the first image", lambda: server.control("status")["image"]["checkpoints"] == 1)
    for name in NAMES:
        assert add(server, name) == dns.rcode.NOERROR
    server.kill()
    return server


def served(server):
    return [name for name in NAMES if server.ask(f"{name}.example").answer]


def damage(server, name):
    """Breaks the record of the journal that has the name."""
    for path in (server.folder / server.journal).glob("*.journal"):
        octets = bytearray(path.read_bytes())
        at = octets.find(bytes([len(name)]) + name.encode())
        if at >= 0:
            octets[at + 1] ^= 1
            path.write_bytes(octets)
            return
    raise AssertionError(f"{name} is in no segment")


def lose_memory(server):
    """As a host restart does."""
    for pid in server.left_over():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("the workers have gone", lambda: not server.left_over())
    shutil.rmtree(server.store)


def healed(server):
    status = server.control("status")
    return not status["problem"] and status["journal"]["snapshots"] > 0


@pytest.mark.parametrize("fault", ["damage", "backup"])
def test_a_gap_is_closed_while_the_live_store_has_everything(faulty, fault, tmp_path):
    server = faulty
    if fault == "damage":
        damage(server, NAMES[2])
    else:
        shutil.copytree(server.folder / server.journal, tmp_path / "backup")
        server.start("example")
        assert add(server, "later") == dns.rcode.NOERROR
        server.kill()
        shutil.rmtree(server.folder / server.journal)
        shutil.copytree(tmp_path / "backup", server.folder / server.journal)
    before = server.serial("example")  # of the workers, which go on
    server.start("example")
    assert served(server) == NAMES
    servers.wait_until("a snapshot has all zones", lambda: healed(server))
    servers.wait_until("updates are taken again", lambda: add(server, "behind") == dns.rcode.NOERROR)
    assert "lacks records" in server.log() or "lost" in server.log() or "ends at position" in server.log()
    server.kill()
    lose_memory(server)
    server.start("example")
    assert served(server) == NAMES
    assert server.ask("behind.example").answer
    assert server.serial("example") > before
    assert not server.control("status")["problem"]


def test_damage_costs_one_update_and_no_serial_is_used_again(faulty):
    server = faulty
    before = server.serial("example")
    damage(server, NAMES[2])
    lose_memory(server)
    server.start("example")
    assert served(server) == [name for name in NAMES if name != NAMES[2]]
    assert before < server.serial("example") < before + 10
    servers.wait_until("a snapshot has all zones", lambda: healed(server))
    serial = server.serial("example")
    server.kill()
    lose_memory(server)
    server.start("example")
    assert server.serial("example") == serial
    assert served(server) == [name for name in NAMES if name != NAMES[2]]
