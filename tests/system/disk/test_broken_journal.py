"""A journal that cannot be read or written: the manager serves what is proven, and heals when the disk does."""

import os
import shutil
import signal
import subprocess

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "broken.test"
ZONE_FILE = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"
RULES = [{"address": "127.0.0.0/8"}]


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "broken.zone").write_text(ZONE_FILE)
    return pando([{"name": ZONE, "file": str(tmp_path / "broken.zone"), "allow-update": RULES,
                   "allow-transfer": RULES}], workers=1)


def update(server, name):
    message = dns.update.UpdateMessage(ZONE)
    message.add(name, 60, "A", "192.0.2.7")
    return dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10)


def accepts(server, name):
    return update(server, name).rcode() == dns.rcode.NOERROR


def has(server, name):
    return bool(server.ask(f"{name}.{ZONE}").answer)


def problem(server):
    return server.control("status")["problem"]


def lose_memory(server):
    for pid in server.left_over():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("workers are gone", lambda: not server.left_over())
    shutil.rmtree(server.store)


def test_a_read_only_journal_is_served_and_not_written(server):
    journal = server.folder / "journal"
    journal.mkdir(parents=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", str(journal)]).returncode != 0:
        pytest.skip("needs to mount a disk")
    try:
        server.start(ZONE)
        assert accepts(server, "before")
        for lose in (False, True):
            server.kill()
            if lose:
                lose_memory(server)
            subprocess.run(["mount", "-o", "remount,ro", str(journal)], check=True)
            server.start(ZONE)
            assert has(server, "before")
            refused = update(server, "refused")
            assert refused.rcode() == dns.rcode.SERVFAIL
            assert "Read-only file system" in problem(server)
            subprocess.run(["mount", "-o", "remount,rw", str(journal)], check=True)
            servers.wait_until("it goes on", lambda: accepts(server, f"after-{lose}"), 30)
            servers.wait_until("it says so", lambda: problem(server) == "")
            assert has(server, "before") and not has(server, "refused")
    finally:
        server.stop()
        subprocess.run(["umount", "--lazy", str(journal)], check=True)


def test_a_segment_that_cannot_be_read_keeps_no_live_store_from_serving(server):
    server.start(ZONE)
    assert accepts(server, "before")
    server.kill()
    [segment] = (server.folder / "journal").glob("*.journal")
    aside = server.folder / "aside"
    segment.rename(aside)
    segment.mkdir()  # reading it fails, as on a bad sector
    server.start(ZONE)
    assert has(server, "before")
    assert update(server, "refused").rcode() == dns.rcode.SERVFAIL
    assert segment.name in problem(server)
    segment.rmdir()
    aside.rename(segment)
    servers.wait_until("it goes on", lambda: accepts(server, "after"), 30)
    server.kill()
    lose_memory(server)
    server.start(ZONE)
    assert has(server, "before") and has(server, "after") and not has(server, "refused")


@pytest.mark.parametrize("text", ("", "0123"))
def test_a_damaged_identity_is_known_from_the_live_store(server, text):
    server.start(ZONE)
    assert accepts(server, "before")
    server.kill()
    identity = server.folder / "journal" / "identity"
    whole = identity.read_text()
    identity.write_text(text)
    server.start(ZONE)
    assert has(server, "before")
    assert accepts(server, "after")
    assert identity.read_text() == whole
    assert "journal_identity_lost" in server.log()
