"""When memory or disk is full: updates are refused with SERVFAIL and a reason, nothing acknowledged is lost."""

import os
import re
import resource
import shutil
import subprocess

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

pytestmark = pytest.mark.release

FILE = """$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
"""
LARGE = ['"' + "x" * 240 + '"'] * 90


@pytest.fixture
def zone(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(FILE)
    return {"name": "example", "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


def send(server, change):
    update = dns.update.UpdateMessage("example")
    change(update)
    return dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=30).rcode()


def add(server, name, texts=LARGE):
    return send(server, lambda update: update.add(name, 60, "TXT", *[
        text if i == 0 else text.replace("x", "y", 1)[:-1] + f'{i}"' for i, text in enumerate(texts)]))


def fill(server):
    """Adds names until no more go in; gives those that were acknowledged."""
    names = []
    for i in range(5000):
        rcode = add(server, f"name{i}")
        if rcode != dns.rcode.NOERROR:
            assert rcode == dns.rcode.SERVFAIL
            return names
        names.append(f"name{i}")
    raise AssertionError("it never got full")


def missing(server, names):
    return [name for name in names if not server.ask(f"{name}.example", "TXT", tcp=True).answer]


def lose_store(server):
    server.kill()
    servers.wait_until("the workers have gone with their store", lambda: not kill_all(server.left_over()))
    shutil.rmtree(server.store)


def kill_all(pids):
    for pid in pids:
        try:
            os.kill(pid, 9)
        except ProcessLookupError:
            pass
    return pids


def test_a_store_at_its_limit_takes_deletes_and_comes_back_after_a_host_restart(pando, zone):
    server = pando([zone], size_limit="8MiB").start("example")
    names = fill(server)
    assert len(names) > 50
    assert "updates_failed" in server.log() and "size limit" in server.log()
    assert server.control("status")["counters"]["updates_failed"] >= 1
    assert missing(server, names) == []
    assert send(server, lambda update: update.delete(names[0])) == dns.rcode.NOERROR
    lose_store(server)
    server.start("example")
    assert missing(server, names[1:]) == []


def fill_empty_and_fill_again(server, zone):
    """One by one and scattered: each delete copies a path of the trie, all together many times the reserve. A client
    that is refused tries again; within a short time compaction has made room."""
    with open(zone["file"], "a") as file:
        file.writelines(f"h{i} A 192.0.2.2\n" for i in range(60_000))
    server.start("example")

    def add_small(i):
        return send(server, lambda update: [update.add(f"n{i}x{k}", 60, "A", "192.0.2.1") for k in range(300)])

    def delete(names):
        servers.wait_until(f"{names[0]} is deleted", lambda: send(
            server, lambda update: [update.delete(name) for name in names]) == dns.rcode.NOERROR)

    added = next(i for i in range(1000) if add_small(i) != dns.rcode.NOERROR)
    for i in range(1000):
        delete([f"h{i * 7919 % 60_000}"])
    assert server.control("status")["counters"]["upkeep_walks"] > 0
    assert server.log().count("store_upkeep_failed") <= 2
    for i in range(0, 60_000, 250):
        delete([f"h{k}" for k in range(i, i + 250)])
    again = next(i for i in range(added, 2000) if add_small(i) != dns.rcode.NOERROR) - added
    assert again > 100
    assert not server.ask("h1.example").answer
    assert server.ask(f"n{added}x7.example").answer


def test_a_store_at_its_limit_takes_deletes_until_it_is_empty_and_is_filled_again(pando, zone):
    fill_empty_and_fill_again(pando([zone], size_limit="4MiB", limits="{history: 0}"), zone)


def test_a_reload_in_a_full_store_takes_what_fits_and_says_what_does_not(pando, zone):
    server = pando([zone], size_limit="4MiB").start("example")
    fill(server)
    # More than there could be room for, however much compaction gains meanwhile.
    new = [{"name": f"new{i}", "file": zone["file"]} for i in range(20_000)]
    server.zones = new + [{**zone, "allow-update": []}]
    server.write_config()
    done = subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    assert re.search(r"\d+ new zones not added \(new\d+\. first\): the store has reached its size limit", done.stderr)
    assert len(re.findall("new zones not added", server.log())) == 1
    # What else the configuration says holds, for workers and manager.
    assert add(server, "later", LARGE[:1]) == dns.rcode.REFUSED
    assert server.ask("example", "SOA").answer
    server.zones = [zone]
    server.write_config()
    servers.wait_until("all new zones have gone", lambda: subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        capture_output=True, timeout=120, stdin=subprocess.DEVNULL).returncode == 0)
    servers.wait_until("updates are taken again", lambda: send(
        server, lambda update: update.delete("name0")) == dns.rcode.NOERROR)


def test_a_limit_lowered_below_what_is_in_use_is_reached_by_deletes(pando, zone):
    server = pando([zone], size_limit="8MiB").start("example")
    names = fill(server)
    server.stop()
    server.size_limit = "4MiB"
    server.write_config()
    server.start("example")
    assert missing(server, names) == []

    def in_use():
        return server.control("status")["store"]["chunks_in_use"] << 16

    assert in_use() > 6 << 20
    assert add(server, "refused") == dns.rcode.SERVFAIL
    kept = names[::3]
    for name in names:
        if name not in kept:
            servers.wait_until(f"{name} is deleted", lambda: send(
                server, lambda update: update.delete(name)) == dns.rcode.NOERROR)
    servers.wait_until("the store is below its limit", lambda: in_use() < 4 << 20)
    servers.wait_until("updates are taken again", lambda: add(server, "later") == dns.rcode.NOERROR)
    assert missing(server, kept + ["later"]) == []


@pytest.fixture
def small_disk(tmp_path):
    folder = tmp_path / "disk"
    folder.mkdir()

    def mount(*options):
        return subprocess.run(["mount", "-t", "tmpfs", *options, "none", str(folder)], capture_output=True).returncode == 0

    if not mount("-o", "size=6m"):
        pytest.skip("needs the right to mount")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def small_machine(pando, zone, small_disk):
    """A server with the default limit on a tmpfs of 6 MiB."""
    server = pando([zone], size_limit="32GiB", limits="{history: 0}")
    server.store = small_disk / "store"
    server.write_config()
    return server


def delete(server, name):
    servers.wait_until(f"{name} is deleted", lambda: send(server, lambda update: update.delete(name)) == dns.rcode.NOERROR)


def test_a_full_machine_is_a_full_store(small_machine):
    server = small_machine.start("example")
    assert "store_limited_by_machine" in server.log()
    store = server.control("status")["store"]
    assert store["effective_limit"] < 6 << 20 < store["limit"]
    names = fill(server)
    assert len(names) > 50
    assert missing(server, names) == []
    for name in names[::2]:
        delete(server, name)
    servers.wait_until("updates are taken again", lambda: add(server, "later") == dns.rcode.NOERROR)
    server.control("reload")
    assert missing(server, names[1::2] + ["later"]) == []


def test_a_full_machine_takes_deletes_until_its_store_is_empty_and_is_filled_again(small_machine, zone):
    fill_empty_and_fill_again(small_machine, zone)


def test_a_full_machine_takes_deletes_after_a_restart(small_machine):
    server = small_machine.start("example")
    names = fill(server)
    server.kill()
    server.start("example")
    assert missing(server, names) == []
    for name in names[::2]:
        delete(server, name)
    servers.wait_until("updates are taken again", lambda: add(server, "later") == dns.rcode.NOERROR)


def test_a_full_machine_that_gets_memory_takes_additions(small_machine, small_disk):
    server = small_machine.start("example")
    names = fill(server)
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    servers.wait_until("updates are taken again", lambda: add(server, "later") == dns.rcode.NOERROR)
    assert missing(server, names + ["later"]) == []
    assert server.control("status")["store"]["effective_limit"] > 16 << 20


def test_a_full_journal_disk_refuses_updates_until_there_is_room(pando, zone, small_disk):
    server = pando([zone], journal=str(small_disk / "journal")).start("example")
    names = fill(server)
    assert len(names) > 50, "a disk smaller than a segment is used as far as it goes"
    assert "updates_failed" in server.log()
    assert missing(server, names) == []
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    assert add(server, "later") == dns.rcode.NOERROR
    lose_store(server)
    server.start("example")
    assert missing(server, names + ["later"]) == []


def test_a_start_that_cannot_make_the_journals_end_durable_promises_nothing_until_it_can(pando, zone, small_disk):
    """A process was killed, so its last records may be in the page cache only, and the disk has no room for a copy of them.
    What was done stays done; but whoever finds it there must not be told so, nor get a copy of it that outlives the host."""
    server = pando([zone], journal=str(small_disk / "journal")).start("example")
    names = fill(server)
    server.kill()
    with open(small_disk / "filler", "wb", buffering=0) as filler, pytest.raises(OSError, match="No space left"):
        while True:
            filler.write(bytes(4096))
    server.start("example")
    assert "could not be made durable again" in server.log()
    assert missing(server, names) == []
    assert add(server, names[-1]) == dns.rcode.SERVFAIL, "it is there, and may be gone again"
    assert add(server, "refused") == dns.rcode.SERVFAIL
    copies = {"dump": server.folder / "dump", "copy": server.folder / "copy"}
    for words in [("store", what, str(path)) for what, path in copies.items()] + [("hand-over",)]:
        with pytest.raises(AssertionError, match="could not be made durable again yet"):
            server.control(*words)
    assert not any(path.exists() for path in copies.values())
    assert "journal_durable_again" not in server.log()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    servers.wait_until("it is tried again without an update", lambda: "journal_durable_again" in server.log())
    assert add(server, names[-1]) == dns.rcode.NOERROR
    for what, path in copies.items():
        server.control("store", what, str(path))
        assert path.exists()


def test_an_edited_zone_comes_back_beside_a_full_journal_disk(pando, zone, small_disk):
    """What the zone is beside its file cannot be noted at once; it is before the next update is."""
    server = pando([zone], journal=str(small_disk / "journal")).start("example")
    names = fill(server)
    with open(zone["file"], "a") as file:
        file.write("edited A 192.0.2.7\n")
    lose_store(server)
    server.start("example")
    assert "zone_not_journaled" in server.log()
    assert missing(server, names) == [] and server.ask("edited.example").answer
    assert add(server, "refused") == dns.rcode.SERVFAIL
    serial = server.serial("example")
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    assert add(server, "later") == dns.rcode.NOERROR
    lose_store(server)
    server.start("example")
    assert missing(server, names + ["later"]) == [] and server.ask("edited.example").answer
    assert not server.ask("refused.example").answer
    assert server.serial("example") == serial + 1


def test_a_file_at_the_limit_of_its_size_refuses_updates_and_ends_nobody(pando, zone):
    server = pando([zone]).start("example")
    assert add(server, "before") == dns.rcode.NOERROR
    unlimited = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (8192, unlimited[1]))
    names = fill(server)
    assert server.process.poll() is None and missing(server, names + ["before"]) == []
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, unlimited)
    servers.wait_until("updates are taken again", lambda: add(server, "later") == dns.rcode.NOERROR)
    lose_store(server)
    server.start("example")
    assert missing(server, names + ["before", "later"]) == []


def test_a_journal_disk_that_is_read_only_refuses_updates_until_it_is_not(pando, zone, small_disk):
    """The first update opens the journal's first file; a disk with a file open for writing cannot be made so, thus
    the folder is mounted read-only over itself."""
    journal = small_disk / "journal"
    server = pando([zone], journal=str(journal)).start("example")
    subprocess.run(["mount", "--bind", str(journal), str(journal)], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(journal)], check=True)
        with pytest.raises(OSError, match="Read-only"):
            (journal / "probe").write_bytes(b"x")
        assert add(server, "refused") == dns.rcode.SERVFAIL
        assert "updates_failed" in server.log() and "Read-only file system" in server.log()
        assert server.ask("ns.example").answer and server.serial("example") == 1
        assert not server.ask("refused.example", "TXT", tcp=True).answer
        subprocess.run(["mount", "-o", "remount,bind,rw", str(journal)], check=True)
        assert add(server, "later") == dns.rcode.NOERROR
        assert server.serial("example") == 2
        lose_store(server)
    finally:
        subprocess.run(["umount", "--lazy", str(journal)], check=True)
    server.start("example")
    assert missing(server, ["later"]) == [] and not server.ask("refused.example", "TXT", tcp=True).answer
