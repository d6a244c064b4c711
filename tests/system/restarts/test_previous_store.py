"""Workers that outlive the manager go on with its store while the next manager's store lacks zones: whatever has become
of the store, they answer from the last good version."""

import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_takeover import Units

ZONE, SLOW = "kept.test", "slow.test"
ANYBODY = [{"address": "127.0.0.0/8"}]
HEAD = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"


class Outlived:
    """A server of two zones. Starts after `lose` load the one, and hold the other one's file half-way."""

    def __init__(self, pando, tmp_path, units=0, **options):
        self.holding = tmp_path / "holding"
        (tmp_path / "part").write_text("part A 192.0.2.7\n")
        (tmp_path / "kept.zone").write_text(HEAD + "host A 192.0.2.2\n")
        (tmp_path / "slow.zone").write_text(HEAD + f"$INCLUDE {tmp_path / 'part'}\n")
        self.server = pando([{"name": name, "file": str(tmp_path / file), "allow-update": ANYBODY}
                             for name, file in ((ZONE, "kept.zone"), (SLOW, "slow.zone"))], **options)
        self.stores = [self.server.store]
        self.units = Units(self.server, units) if units else None
        self.server.start(SLOW)
        for zone in (ZONE, SLOW):
            assert self.update("before", zone) == dns.rcode.NOERROR
        self.old = set(self.server.left_over())

    def end(self):
        self.holding.unlink(missing_ok=True)  # or the process would not end
        if self.units:
            self.units.end()
        for store in self.stores:
            shutil.rmtree(store, ignore_errors=True)

    def file(self):
        return self.server.store / "zones.store"

    def lose(self, how):
        """The manager is killed, and the next one has no use for its store."""
        self.server.kill()
        if how == "removed":
            self.file().unlink()
        elif how == "damaged":
            with open(self.file(), "r+b") as store:
                store.write(b"\0" * 8)
        elif how == "moved":
            self.server.store = pathlib.Path(f"{self.server.store}-moved")
            self.stores.append(self.server.store)
            self.server.write_config()
        self.start(2 if how == "found" else 1)

    def start(self, loaded=1):
        self.holding.touch()
        self.server.pause_at = ("zone-include", self.holding)
        self.server.start(ZONE)
        servers.wait_until("zones are loaded", lambda: self.server.control("status")["zones_loaded"] == loaded)

    def has(self, name, zone=ZONE):
        return bool(self.server.ask(f"{name}.{zone}").answer)

    def has_all(self):
        return all(self.has(name, zone) for name, zone in
                   (("host", ZONE), ("before", ZONE), ("part", SLOW), ("before", SLOW)))

    def message(self, name, zone=ZONE):
        update = dns.update.UpdateMessage(zone)
        update.add(name, 300, "A", "192.0.2.9")
        return update

    def update(self, name, zone=ZONE):
        return dns.query.udp(self.message(name, zone), "127.0.0.1", port=self.server.port, timeout=15).rcode()

    def readers(self):
        """Workers that read the manager's store."""
        inode = os.stat(self.file()).st_ino
        def reads(pid):
            try:
                return any(line.split()[4] == str(inode) for line in
                           pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if "zones.store" in line)
            except OSError:  # it has ended
                return False
        return {pid for pid in self.server.left_over() if reads(pid)}

    def log_has(self, pattern):
        return re.search(pattern, self.server.log_path.read_text())

    def let_go(self):
        self.holding.unlink()
        self.await_switch()
        assert self.has_all()

    def await_switch(self):
        servers.wait_until("all workers read the new store", lambda: self.readers() == set(self.server.left_over()))


@pytest.fixture
def outlived(pando, tmp_path, request):
    made = Outlived(pando, tmp_path, **getattr(request, "param", {"workers": 2}))
    yield made
    made.end()


@pytest.mark.parametrize("how", ["removed", "damaged", "moved"])
def test_workers_answer_from_the_last_store_until_zones_are_loaded(outlived, how):
    outlived.lose(how)
    assert outlived.has_all()
    assert set(outlived.server.left_over()) == outlived.old and not outlived.readers()
    assert outlived.log_has("worker_keeps_store") and not outlived.log_has("previous_store_left")
    outlived.let_go()
    assert outlived.readers() == outlived.old
    assert outlived.log_has("previous_store_left .*all zones are loaded")
    assert outlived.update("behind") == dns.rcode.NOERROR and outlived.has("behind")
    outlived.server.control("store", "check")


def test_a_manager_that_dies_while_it_loads_is_followed_by_one_that_goes_on(outlived):
    outlived.lose("removed")
    outlived.server.kill()
    outlived.start()
    assert outlived.has_all() and not outlived.readers()
    outlived.let_go()
    assert outlived.readers() == outlived.old


@pytest.mark.parametrize("outlived", [{"workers": "external", "units": 2}], indirect=True)
def test_workers_of_a_service_manager_do_so_too(outlived):
    outlived.lose("removed")
    assert outlived.has_all() and not outlived.readers()
    killed = min(outlived.old)
    os.kill(killed, signal.SIGKILL)
    servers.wait_until("its unit starts another one", lambda: len(outlived.server.left_over()) == 2 and
                       killed not in outlived.server.left_over())
    assert all(outlived.has_all() for _ in range(5)), "the other one answers alone"
    outlived.let_go()
    assert all(outlived.has_all() for _ in range(5))


def test_an_update_is_not_answered_by_a_worker_that_reads_the_last_store(outlived):
    """Its client would read the old data behind the answer."""
    outlived.lose("removed")

    def taken():
        return sum(row["counters"]["forwarded_updates"] for row in outlived.server.workers().values())
    before = taken()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", outlived.server.port))
        client.send(outlived.message("meanwhile").to_wire())
        servers.wait_until("a worker has asked the manager", lambda: taken() == before + 1)
        outlived.let_go()
        client.setblocking(False)
        with pytest.raises(BlockingIOError):
            client.recv(4096)
    assert not outlived.has("meanwhile")


def test_a_worker_that_dies_meanwhile_leaves_its_queries_to_the_others(outlived):
    outlived.lose("removed")
    os.kill(min(outlived.old), signal.SIGKILL)
    servers.wait_until("its queue is read", lambda: outlived.log_has("queue_handed_over"))
    assert all(outlived.has_all() for _ in range(10))
    assert set(outlived.server.left_over()) == {max(outlived.old)}, "a new one would have no data"
    outlived.let_go()
    servers.wait_until("there are two again", lambda: len(outlived.readers()) == 2)


@pytest.mark.parametrize("outlived", [{"workers": 1}], indirect=True)
def test_when_the_last_one_has_died_another_serves_what_is_loaded(outlived):
    outlived.lose("removed")
    os.kill(min(outlived.old), signal.SIGKILL)
    servers.wait_until("another one serves", lambda: outlived.readers())
    assert outlived.has("before")
    assert outlived.server.ask(SLOW).rcode() == dns.rcode.SERVFAIL
    outlived.let_go()


@pytest.mark.parametrize("outlived", [{"workers": 1}], indirect=True)
def test_workers_that_are_wanted_beside_the_last_ones_wait(outlived):
    outlived.server.workers_wanted = 3
    outlived.server.write_config()
    outlived.lose("removed")
    assert all(outlived.has_all() for _ in range(10))
    assert set(outlived.server.left_over()) == outlived.old
    outlived.let_go()
    servers.wait_until("there are three", lambda: len(outlived.readers()) == 3)


def test_a_zone_that_never_loads_does_not_hold_the_others_for_ever(outlived, monkeypatch):
    monkeypatch.setenv("PANDO_DIVIDE_PAUSES", "100")
    outlived.lose("removed")
    outlived.await_switch()
    assert outlived.log_has("previous_store_left .*no progress")
    assert outlived.has("before") and outlived.server.ask(SLOW).rcode() == dns.rcode.SERVFAIL
    assert outlived.update("behind") == dns.rcode.NOERROR and outlived.has("behind")
    outlived.let_go()


def test_a_start_that_finds_its_store_keeps_none(outlived):
    outlived.lose("found")
    assert outlived.readers() == outlived.old and outlived.has_all()
    assert not outlived.log_has("previous_store_kept")


@pytest.fixture
def small_memory(pando, tmp_path):
    """A host whose memory has room for the zone, but not for two stores."""
    store = tmp_path / "memory"
    store.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=20m,mode=0755", "tmpfs", str(store)],
                      capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount")
    texts = " ".join(['"' + "x" * 250 + '"'] * 4)
    (tmp_path / "large.zone").write_text(HEAD + "".join(f"n{n} TXT {n} {texts}\n" for n in range(10 << 10)))
    server = pando([{"name": ZONE, "file": str(tmp_path / "large.zone")}])
    server.store = store
    server.write_config()
    yield server
    server.clean()
    subprocess.run(["umount", "--lazy", str(store)], check=True)


def test_workers_leave_the_last_store_when_memory_lacks_for_two(small_memory):
    server = small_memory.start(ZONE)
    old = set(server.left_over())
    server.kill()
    (server.store / "zones.store").unlink()
    server.start()
    servers.wait_until("the zone is loaded", lambda: server.control("status")["zones_loaded"] == 1)
    servers.wait_until("the zone is served", lambda: server.serves(ZONE))
    assert "previous_store_left" in server.log()
    assert set(server.left_over()) == old and server.ask(f"n10239.{ZONE}", "TXT", tcp=True).answer
