"""Small updates without end must not make the store grow: plain, beside a transfer that pins an old
version, and with the manager killed half-way.

PANDO_FULL=1 sends a million updates in each case; otherwise 12,000."""

import os
import socket
import subprocess
import threading
import time

import dns.message
import pytest

import servers

KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
COUNT = 1_000_000 if os.environ.get("PANDO_FULL") else 12_000
LOAD = servers.build_folder() / "bench" / "bench_update_load"
CHUNK = 64 * 1024
# What one slow reader may hold: chunks emptied while it reads. At full speed updates write this much.
PINNED_LIMIT = 1 << 30

pytestmark = [pytest.mark.release,
              pytest.mark.skipif(not LOAD.exists(), reason="needs the load generator of bench/")]


def used(server):
    """Octets of all chunks that hold live blocks or wait for readers."""
    return server.control("status")["store"]["chunks_in_use"] * CHUNK


class Watch(threading.Thread):
    """Samples the store's size until told to stop."""

    def __init__(self, server):
        super().__init__()
        self.server, self.peak, self.ended = server, 0, threading.Event()

    def run(self):
        while not self.ended.wait(0.2):
            try:
                self.peak = max(self.peak, used(self.server))
            except (AssertionError, subprocess.TimeoutExpired):
                pass  # the manager is being replaced

    def finish(self):
        self.ended.set()
        self.join()
        return self.peak


def send_updates(server, count):
    done = subprocess.run([str(LOAD), str(server.port), "example", KEY["name"], KEY["secret"], str(count), "64", "10000"],
                          capture_output=True, text=True, timeout=3000)
    return done


@pytest.fixture
def server(tmp_path, pando):
    head = "$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n"
    (tmp_path / "example.zone").write_text(
        "$ORIGIN example.\n" + head + "".join(f"n{i} 60 A 192.0.2.1\n" for i in range(10_000)))
    (tmp_path / "large.zone").write_text(
        "$ORIGIN large.\n" + head + "".join(f"n{i} 60 TXT \"{'x' * 200}\"\n" for i in range(60_000)))
    return lambda with_large: pando(
        [{"name": "example", "file": str(tmp_path / "example.zone"), "allow-update": [{"key": KEY["name"]}]}] +
        ([{"name": "large", "file": str(tmp_path / "large.zone"), "allow-transfer": [{"address": "127.0.0.0/8"}]}]
         if with_large else []),
        keys=[KEY], limits="{history: 0}")  # which would grow up to its limit


def settled(server, before):
    """The size after upkeep, which has to come back to about what it was before."""
    servers.wait_until("upkeep is done", lambda: used(server) <= before * 1.5, 60)
    return used(server)


def report(name, before, peak, after, output=""):
    print(f"\n{name}: {COUNT} updates; store before {before // 1024} KiB, peak {peak // 1024} KiB, "
          f"after {after // 1024} KiB; {output.strip()}")


def test_plain(server):
    pando = server(False)
    pando.start("example")
    before = used(pando)
    watch = Watch(pando)
    watch.start()
    done = send_updates(pando, COUNT)
    peak = watch.finish()
    after = settled(pando, before)
    report("plain", before, peak, after, done.stdout)
    assert done.returncode == 0, done.stdout


def test_with_a_transfer_that_pins_an_old_version(server):
    pando = server(True)
    pando.start("large")
    servers.wait_until("both zones serve", lambda: pando.serves("example"))
    before = used(pando)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.connect(("127.0.0.1", pando.port))
        query = dns.message.make_query("large", "AXFR").to_wire()
        slow.sendall(len(query).to_bytes(2, "big") + query)
        servers.wait_until("the transfer has its lease",
                           lambda: any(row.get("leases") for row in pando.workers().values()))
        watch = Watch(pando)
        watch.start()
        sender = threading.Thread(target=lambda: results.append(send_updates(pando, COUNT)))
        results = []
        sender.start()
        end = time.monotonic() + 10
        while time.monotonic() < end:  # a reader that takes a little, again and again
            time.sleep(0.5)
            slow.recv(1024)
    sender.join()
    peak = watch.finish()
    servers.wait_until("the lease is given up",
                       lambda: not any(row.get("leases") for row in pando.workers().values()), 60)
    after = settled(pando, before)
    report("with a lease of 10 s", before, peak, after, results[0].stdout)
    assert results[0].returncode == 0, results[0].stdout
    assert peak <= before + PINNED_LIMIT


def test_with_the_manager_killed_half_way(server):
    pando = server(False)
    pando.start("example")
    before = used(pando)
    watch = Watch(pando)
    watch.start()
    first = send_updates(pando, COUNT // 2)
    pando.kill()
    pando.start("example")
    servers.wait_until("the new manager has its workers", lambda: [row["state"] for row in pando.workers().values()] == ["serving"] * 2)
    second = send_updates(pando, COUNT // 2)
    peak = watch.finish()
    after = settled(pando, before)
    report("manager killed half-way", before, peak, after, second.stdout)
    assert first.returncode == 0 and second.returncode == 0, first.stdout + second.stdout
