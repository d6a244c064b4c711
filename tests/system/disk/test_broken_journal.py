"""A journal that cannot be read or written: the manager serves what is proven, and heals when the disk does."""

import os
import re
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


def end_workers(server):
    for pid in server.left_over():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("workers are gone", lambda: not server.left_over())


def lose_memory(server):
    end_workers(server)
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


SECTOR = 1 << 20  # offset in each segment, far behind a few records
BAD_SECTOR = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

/* As the kernel reads a page with a bad sector: the bytes before it, then an error. A worker may not ask for names of
   files. */
static ssize_t read_before(int fd, void *bytes, size_t length, off_t at, const char *name) {
  ssize_t (*const next)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, name);
  if (strcmp(program_invocation_short_name, "pando-manager") != 0) return next(fd, bytes, length, at);
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = 0;
  const char *const end = strstr(path, ".journal");
  if (end && !end[8] && at < SECTOR + 4096 && at + (off_t)length > SECTOR) {
    if (at >= SECTOR) return errno = EIO, -1;
    length = SECTOR - at;
  }
  return next(fd, bytes, length, at);
}
ssize_t pread(int fd, void *bytes, size_t length, off_t at) { return read_before(fd, bytes, length, at, "pread"); }
ssize_t pread64(int fd, void *bytes, size_t length, off_t at) { return read_before(fd, bytes, length, at, "pread64"); }
"""


@pytest.mark.release  # no library may come before that of a sanitizer
def test_an_unreadable_sector_of_the_reserve_leaves_all_zones_served(server, tmp_path, monkeypatch):
    (tmp_path / "sector.c").write_text(BAD_SECTOR)
    subprocess.run(["cc", "-shared", "-fPIC", f"-DSECTOR={SECTOR}", "-o", tmp_path / "sector.so", tmp_path / "sector.c",
                    "-ldl"], check=True)
    server.start(ZONE)
    assert accepts(server, "first")
    server.kill()
    lose_memory(server)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "sector.so"))
    for names in (["first"], ["first", "second"]):
        server.start(ZONE)
        assert all(has(server, name) for name in names)
        assert problem(server) == ""
        assert accepts(server, "second")
        assert "cannot be read; they lie behind the last record" in server.log()
        server.kill()
        lose_memory(server)


@pytest.mark.parametrize("text", (None, "", "0123456789abcdef" * 2), ids=("missing", "empty", "old form"))
@pytest.mark.parametrize("live", (True, False), ids=("live store", "neither store nor image"))
def test_an_identity_that_is_lost_is_known_from_the_journals_files(server, live, text):
    server.start(ZONE)
    assert accepts(server, "before")
    server.kill()
    if not live:
        lose_memory(server)
    identity = server.folder / "journal" / "identity"
    whole = identity.read_text()
    identity.unlink()
    if text is not None:
        identity.write_text(text)
    server.start(ZONE)
    assert has(server, "before")
    assert accepts(server, "after")
    assert identity.read_text() == whole
    assert problem(server) == ""
    assert "journal_identity_lost" in server.log()


@pytest.mark.parametrize("point", ("whole-file-written", "whole-file-renamed", "whole-file-named"))
@pytest.mark.parametrize("live", (True, False), ids=("live store", "neither store nor image"))
def test_a_start_that_is_killed_while_it_writes_a_lost_identity_is_followed_by_one_that_knows_it(server, live, point):
    server.start(ZONE)
    assert accepts(server, "before")
    server.kill()
    if not live:
        lose_memory(server)
    identity = server.folder / "journal" / "identity"
    whole = identity.read_text()
    for text in (None, ""):
        identity.unlink()
        if text is not None:
            identity.write_text(text)
        server.crash_at = point
        with pytest.raises(AssertionError, match="ended with -9"):
            server.start(ZONE)
        now = identity.read_text() if identity.exists() else None
        assert now == (text if point == "whole-file-written" else whole)
        server.crash_at = None
        server.start(ZONE)
        assert has(server, "before") and problem(server) == ""
        assert identity.read_text() == whole
        assert accepts(server, f"after-{text is None}")
        server.kill()
        if not live:
            lose_memory(server)


def test_a_damaged_identity_gives_the_journal_to_no_other_journals_store(server):
    server.start(ZONE)
    assert accepts(server, "own")
    server.kill()
    lose_memory(server)
    server.journal = "other"
    server.write_config()
    server.start(ZONE)
    assert accepts(server, "foreign")
    server.kill()
    end_workers(server)
    server.journal = "journal"
    server.write_config()
    identity = server.folder / "journal" / "identity"
    whole = identity.read_text()
    identity.write_text("")
    with pytest.raises(AssertionError, match="belongs to the journal in another folder"):
        server.start(ZONE)
    assert identity.read_text() == whole
    shutil.rmtree(server.store)
    server.start(ZONE)
    assert has(server, "own") and not has(server, "foreign")


def test_damage_of_the_very_last_group_gives_its_serial_to_no_other_data(server):
    server.start(ZONE)
    assert accepts(server, "first") and accepts(server, "last")
    served = server.serial(ZONE)
    server.kill()
    lose_memory(server)
    [segment] = (server.folder / "journal").glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[data.rindex(b"\x04last") + 1] ^= 1
    segment.write_bytes(data)
    server.start(ZONE)
    assert has(server, "first") and not has(server, "last")
    raised = server.serial(ZONE)
    assert raised > served
    assert segment.name in server.control("status")["damage_found"][0]["text"]
    server.kill()
    lose_memory(server)
    server.start(ZONE)
    assert has(server, "first") and not has(server, "last")
    assert server.serial(ZONE) >= raised  # the same data, or another doubt
    servers.wait_until("the journal is healed", lambda: problem(server) == "")
    assert accepts(server, "next")
    after = server.serial(ZONE)
    server.kill()
    lose_memory(server)
    server.start(ZONE)
    assert server.serial(ZONE) == after
    assert has(server, "next")


def test_status_tells_of_damage_after_it_was_mended(server):
    """A live store has all of it, so nobody would know of the bad sector otherwise."""
    server.start(ZONE)
    assert accepts(server, "first") and accepts(server, "last")
    server.kill()
    [segment] = (server.folder / "journal").glob("*.journal")
    data = bytearray(segment.read_bytes())
    data[data.rindex(b"\x05first") + 1] ^= 1
    segment.write_bytes(data)
    server.start(ZONE)
    found = servers.wait_until("it was found", lambda: server.control("status")["damage_found"])
    assert segment.name in found[0]["text"] and found[0]["found_at"] > 1_700_000_000
    servers.wait_until("it was mended", lambda: problem(server) == "" and accepts(server, "next"))
    assert server.control("status")["damage_found"] == found, "and not forgotten"
    told = subprocess.run([servers.build_folder() / "pandoctl", "--config", server.config, "status"],
                          capture_output=True, text=True, timeout=60)
    assert re.search(rf"^damage found: +\S+Z: .*{segment.name}", told.stdout, re.M), told.stdout
    server.kill()
    lose_memory(server)
    server.start(ZONE)
    assert all(has(server, name) for name in ("first", "last", "next"))
    assert server.control("status")["damage_found"] == []


def test_problem_names_the_zone_that_keeps_a_gap_open(pando, tmp_path, monkeypatch):
    monkeypatch.setenv("PANDO_DIVIDE_PAUSES", "10")  # three failed readings make a gap
    (tmp_path / "good.zone").write_text(ZONE_FILE)
    (tmp_path / "wrong.zone").write_text("@ SOA\n")
    server = pando([{"name": ZONE, "file": str(tmp_path / "good.zone"), "allow-update": RULES},
                    {"name": "wrong.test", "file": str(tmp_path / "wrong.zone")}], workers=1)
    server.start(ZONE)
    assert accepts(server, "before")
    server.kill()
    [segment] = (server.folder / "journal").glob("*.journal")
    aside = server.folder / "aside"
    segment.rename(aside)
    segment.mkdir()
    server.start(ZONE)
    servers.wait_until("the zone is named", lambda: "wrong.test" in problem(server), 90)
    assert segment.name in problem(server)
    segment.rmdir()
    aside.rename(segment)
    servers.wait_until("it goes on", lambda: accepts(server, "after"), 30)
    assert problem(server) == ""
