"""A restarted host serves from the mapped image while it is copied to memory. The copy is held back here, so that
what is asked, changed and killed meanwhile does not depend on time."""

import os
import pathlib
import re
import signal
import subprocess

import dns.message
import dns.query
import dns.rcode
import pytest

import servers
from test_image import ZONE, Host, damage_chunk, zone_text


class HeldHost(Host):
    """A host whose starts from an image copy nothing before `let_go`. Which a small image is not otherwise:
    it would be copied before it is served."""

    def __init__(self, pando, tmp_path, **options):
        super().__init__(pando, tmp_path, **options)
        self.holding = tmp_path / "holding"
        self.hold()

    def hold(self):
        self.holding.touch()
        self.server.pause_at = ("image-copy", self.holding)

    def let_go(self):
        self.holding.unlink()

    def bytes_to_copy(self):
        return self.server.control("status")["image"]["bytes_to_copy"]

    def is_whole(self):
        return self.bytes_to_copy() == 0 and not self.mapping_processes()

    def mapping_processes(self):
        """Processes that have the image mapped."""
        pids = [self.server.process.pid, *self.server.left_over()]
        return [pid for pid in pids if f"{self.image}." in pathlib.Path(f"/proc/{pid}/maps").read_text()]

    def workers_alone(self):
        """The manager is killed, its workers go on."""
        self.server.kill()

    def ends(self, seconds=60):
        return self.server.process.wait(seconds)


@pytest.fixture
def host(pando, tmp_path):
    held = HeldHost(pando, tmp_path)
    held.start()
    yield held
    held.holding.unlink(missing_ok=True)  # or the process would not end


def test_answers_come_from_the_image_before_it_is_copied(host):
    host.update("before")
    host.checkpoint()
    host.update("behind")
    serial = host.server.serial(ZONE)
    records = host.server.records(ZONE)
    host.lose_memory()
    host.start()
    assert host.bytes_to_copy() > 0 and not host.logged("image_copied")
    assert sorted(host.mapping_processes()) == sorted([host.server.process.pid, *host.server.left_over()])
    assert host.logged("image_replayed records=1 zones_unloaded=0"), "the journal is newer than the image"
    assert host.server.serial(ZONE) == serial and host.server.records(ZONE) == records
    host.update("meanwhile")
    assert all(host.has(name) for name in ("a", "before", "behind", "meanwhile"))
    host.server.control("store", "check")
    host.let_go()
    servers.wait_until("the image is copied", host.is_whole)
    assert host.logged("image_copied")
    host.update("after")
    assert all(host.has(name) for name in ("a", "before", "behind", "meanwhile", "after"))
    host.server.control("store", "check")
    host.checkpoint()
    assert not host.logged("image_left"), "nobody had it any more"
    host.lose_memory()
    host.start()
    assert all(host.has(name) for name in ("a", "before", "behind", "meanwhile", "after"))


def test_secondaries_get_differences_and_zones_meanwhile(host):
    first = host.server.serial(ZONE)
    host.update("one")
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.update("two")
    messages = list(dns.query.xfr("127.0.0.1", ZONE, rdtype="IXFR", serial=first, port=host.server.port,
                                  relativize=False, lifetime=30))
    texts = [rrset.to_text() for message in messages for rrset in message.answer]
    assert any("one." in text for text in texts) and any("two." in text for text in texts)
    assert host.bytes_to_copy() > 0


def test_a_zone_that_was_replaced_behind_the_image_is_not_served_from_it(host):
    host.checkpoint()
    host.file.write_text(zone_text(7, [f"n{i}" for i in range(3000)]))
    host.server.control("reload")
    host.update("later")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    host.start()
    assert host.has("later") and host.has("n2999") and not host.has("b")
    assert host.server.serial(ZONE) == serial and host.bytes_to_copy() > 0


def test_updates_survive_a_kill_before_the_image_is_copied(host):
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.update("acknowledged")
    host.workers_alone()
    assert host.has("acknowledged"), "workers answer alone"
    os.truncate(host.server.log_path, 0)
    host.start()
    assert host.logged("store_replaced.*not all of the image") and host.logged("image_replayed records=1")
    assert host.has("acknowledged") and host.bytes_to_copy() == 0, "this time it is copied and compared first"
    host.update("again")
    host.checkpoint()
    host.update("behind")
    host.lose_memory()  # the host this time
    host.start()
    assert host.has("acknowledged") and host.has("again") and host.has("behind") and host.bytes_to_copy() > 0
    host.let_go()
    servers.wait_until("the image is copied", host.is_whole)
    host.workers_alone()
    os.truncate(host.server.log_path, 0)
    host.start()
    assert not host.logged("image_restored"), "the store is there"
    assert host.has("acknowledged") and host.has("again")
    host.server.control("store", "check")


@pytest.mark.parametrize("point", ["borrowed-chunk-copied", "image-copied", "borrowed-mapped", "borrowed-settled"])
def test_a_manager_may_die_while_it_copies(host, point):
    host.update("before")
    host.checkpoint()
    host.update("behind")
    host.lose_memory()
    host.server.crash_at = point
    host.start()
    host.update("meanwhile")
    host.let_go()
    assert host.ends() == -signal.SIGKILL
    host.server.crash_at = None
    assert host.has("meanwhile"), "workers answer alone"
    os.truncate(host.server.log_path, 0)
    host.start()
    assert bool(host.logged("image_restored")) == (point != "borrowed-settled")
    servers.wait_until("it is whole", host.is_whole)
    assert all(host.has(name) for name in ("a", "before", "behind", "meanwhile"))
    host.server.control("store", "check")


class SmallHost(HeldHost):
    """Its memory has room for the zone once and a half times."""

    OCTETS = 12 << 20

    def __init__(self, pando, tmp_path):
        super().__init__(pando, tmp_path)
        self.server.store = tmp_path / "memory"
        self.server.store.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=19m,mode=0755", "tmpfs", str(self.server.store)], check=True)
        self.server.write_config()
        texts = " ".join(['"' + "x" * 250 + '"'] * 4)
        self.file.write_text(zone_text(1, ["a"]) + "".join(f"n{n} TXT {n} {texts}\n" for n in range(self.OCTETS >> 10)))

    def lose_memory(self):
        self.server.kill()
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("workers are gone", lambda: not self.server.left_over())
        for path in self.server.store.iterdir():
            path.unlink()
        os.truncate(self.server.log_path, 0)

    def memory(self):
        status = os.statvfs(self.server.store)
        return (status.f_blocks - status.f_bfree) * status.f_frsize

    def end(self):
        self.holding.unlink(missing_ok=True)
        self.server.clean()
        subprocess.run(["umount", "--lazy", str(self.server.store)], check=True)


@pytest.fixture
def small_host(pando, tmp_path):
    made = SmallHost(pando, tmp_path)
    yield made
    made.end()


@servers.needs_root("mounts")
def test_memory_is_short_when_a_manager_died_that_had_copied(small_host):
    """What was copied to the store of the one that died is of no use any more, and the workers that it has left do not
    read it: the next store gets that memory."""
    host = small_host
    host.start()
    host.update("before")
    host.checkpoint()
    host.lose_memory()
    host.server.crash_at = "image-copied"
    host.start()
    host.update("meanwhile")
    host.let_go()
    assert host.ends() == -signal.SIGKILL
    host.server.crash_at = None
    copied = host.memory()
    assert copied > host.OCTETS, "a second copy does not fit beside it"
    assert host.has("meanwhile") and host.has("a"), "workers answer alone"
    os.truncate(host.server.log_path, 0)
    host.start()
    assert host.logged("image_restored") and not host.logged("image_not_used")
    servers.wait_until("it is whole", host.is_whole)
    assert all(host.has(name) for name in ("a", "before", "meanwhile"))
    assert host.server.ask(f"n7.{ZONE}", "TXT", tcp=True).answer
    servers.wait_until("the old store's memory is free", lambda: host.memory() < copied + (copied >> 2))
    host.server.control("store", "check")


def test_a_stop_before_the_image_is_copied_loses_nothing(host):
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.update("meanwhile")
    host.server.process.terminate()
    servers.wait_until("it stops", lambda: host.logged("manager_stopping"))
    host.let_go()
    assert host.ends() == 0
    host.start()
    assert host.has("meanwhile")


@pytest.mark.parametrize("point", [None, "image-damaged"])
def test_damage_that_is_found_while_copying_ends_in_a_new_store(host, point):
    host.update("before")
    host.checkpoint()
    host.update("behind")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    told = damage_chunk(host)
    host.server.crash_at = point
    host.start()
    host.update("meanwhile")
    host.let_go()
    assert host.ends() == (-signal.SIGKILL if point else 1), "so that it is started again"
    assert not host.image.exists()
    if point is None:
        assert any(told in line for line in host.logged("image_damaged")), host.server.log()
        assert not (host.server.store / "zones.store").exists()
    host.server.crash_at = None
    os.truncate(host.server.log_path, 0)
    host.start()
    assert not host.logged("image_restored")
    # Adopted workers answer from the store that they have until the new one has the zone.
    servers.wait_until("workers have left the image", lambda: host.logged("manager_ready") and not host.mapping_processes())
    assert all(host.has(name) for name in ("a", "before", "behind", "meanwhile"))
    assert host.server.serial(ZONE) > serial
    host.checkpoint()
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.has("meanwhile")


def test_nothing_that_stays_is_written_before_checksums_were_compared(host, tmp_path):
    host.checkpoint()
    host.lose_memory()
    host.start()
    words = [("store", "copy", str(tmp_path / "seed.image")), ("store", "dump", str(tmp_path / "dump")),
             ("zone", "export", ZONE, "--to", str(tmp_path / "export.zone"))]
    for command in words:
        with pytest.raises(AssertionError, match="still being copied"):
            host.server.control(*command)
    for command in (("zone", "snapshot", ZONE, "label"), ("zone", "snapshot", ZONE, "label", "--delete")):
        with pytest.raises(AssertionError, match="still being copied"):
            host.server.control(*command)
    written = host.server.control("status")["image"]["written_at"]
    host.let_go()
    servers.wait_until("the image is copied", host.is_whole)
    for command in words:
        host.server.control(*command)
    host.checkpoint()
    assert host.server.control("status")["image"]["written_at"] >= written
    assert re.search(r"\ba\b", (tmp_path / "export.zone").read_text())


def test_a_worker_that_comes_meanwhile_has_the_image_too(host):
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.server.control("worker", "add")
    servers.wait_until("it serves", lambda: host.server.workers().get(1, {}).get("state") == "serving")
    assert host.server.workers()[1]["pid"] in host.mapping_processes()
    for number in range(64):  # other ports: both get some
        query = dns.message.make_query(f"a.{ZONE}", "A")
        assert dns.query.udp(query, "127.0.0.1", port=host.server.port, timeout=5).rcode() == dns.rcode.NOERROR
    host.let_go()
    servers.wait_until("the image is copied", host.is_whole)


def test_an_image_that_a_worker_still_has_is_not_written_over(host):
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.update("meanwhile")
    worker, = host.server.left_over()
    os.kill(worker, signal.SIGSTOP)
    file = host.chunk_file()
    host.let_go()
    servers.wait_until("the image is copied", lambda: host.bytes_to_copy() == 0)
    servers.wait_until("the manager has let go", lambda: host.mapping_processes() == [worker])
    host.checkpoint()
    assert host.logged("image_left.*mapped by a worker") and host.chunk_file() != file
    os.kill(worker, signal.SIGCONT)
    servers.wait_until("it has let go", host.is_whole)
    assert host.has("a") and host.has("meanwhile")
    host.update("after")
    file = host.chunk_file()
    host.checkpoint()
    assert host.chunk_file() == file
    host.lose_memory()
    host.start()
    assert host.has("meanwhile") and host.has("after")


def test_an_image_is_checked_before_it_is_served_where_that_is_wanted(pando, tmp_path):
    host = HeldHost(pando, tmp_path)
    host.server.store_extra += "  verify: always\n"
    host.server.write_config()
    host.start()
    host.checkpoint()
    host.lose_memory()
    damage_chunk(host)
    host.start()
    assert host.logged("image_not_used") and not host.logged("image_restored") and host.has("a")


def test_a_small_image_is_copied_first(pando, tmp_path):
    host = Host(pando, tmp_path).start()
    host.checkpoint()
    host.lose_memory()
    host.start()
    assert host.logged("image_restored.*bytes_to_copy=0") and not host.logged("image_copied")


def test_a_zone_made_primary_before_the_image_is_copied_keeps_its_file(pando, tmp_path):
    """The copy of a secondary that could not be written is to be written when the image is copied. By then the zone is
    a primary, and the file is what its operator has, finished or not."""
    sent = tmp_path / "sent.zone"
    sent.write_text(zone_text(1, ["a"]))
    upstream = pando([{"name": "sent.test", "file": str(sent), "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                     workers=1)
    upstream.start("sent.test")
    own = tmp_path / "copies" / "sent.zone"
    own.parent.touch()  # no folder
    host = HeldHost(pando, tmp_path / "host", zones=[{"name": "sent.test", "primaries": ["up"], "file": str(own)}],
                    remotes=[{"name": "up", "address": [f"127.0.0.1@{upstream.port}"]}])
    host.start()
    servers.wait_until("it cannot be copied", lambda: host.logged("zone_not_copied zone=sent.test"))
    host.checkpoint()
    host.lose_memory()
    host.start()
    host.server.control("reload")  # ends when all zones have been looked at
    own.parent.unlink()
    own.parent.mkdir()
    own.write_text("@ 300 SOA ns1 admin 2 3600 600\n")
    host.server.zones[1] = {"name": "sent.test", "file": str(own)}
    host.server.write_config()
    assert host.server.control("reload")["zones_failed"] == 1
    assert host.server.serial("sent.test") == 1 and host.bytes_to_copy() > 0
    host.let_go()
    servers.wait_until("the image is copied", host.is_whole)
    host.server.stop()  # what was begun is finished
    assert own.read_text() == "@ 300 SOA ns1 admin 2 3600 600\n" and list(own.parent.iterdir()) == [own]
    assert not host.logged("zone_copied zone=sent.test")
