"""Dumps: what a server has, written as a stream that no layout goes into, is what another one starts on."""

import os
import pathlib
import re
import shutil
import signal
import subprocess

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "dump.test"
ANYBODY = [{"address": "127.0.0.0/8"}]
FILLING = [f"host{number}" for number in range(40)]  # a transfer of differences is not to be the longer one


def zone_text(serial, names):
    lines = [f"@ 300 SOA ns1 admin {serial} 3600 600 86400 300", "@ 300 NS ns1", "ns1 300 A 192.0.2.1"]
    return "\n".join(lines + [f"{name} 300 A 192.0.2.2" for name in [*names, *FILLING]]) + "\n"


def update(server, name, zone=ZONE):
    message = dns.update.UpdateMessage(zone)
    message.add(name, 300, "A", "192.0.2.9")
    answer = dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10)
    assert answer.rcode() == dns.rcode.NOERROR, answer.to_text()


def differences(server, serial, zone=ZONE):
    """The owners in an IXFR from that serial; None when it is a whole zone."""
    messages = list(dns.query.xfr("127.0.0.1", zone, rdtype="IXFR", serial=serial, port=server.port,
                                  relativize=False, lifetime=30))
    rrsets = [rrset for message in messages for rrset in message.answer]
    if len(rrsets) < 2 or rrsets[1].rdtype != dns.rdatatype.SOA:
        return None
    return {str(rrset.name).split(".")[0] for rrset in rrsets if rrset.rdtype == dns.rdatatype.A}


def lose_memory(server):
    server.lose_memory()
    os.truncate(server.log_path, 0)


def pandoctl(server, *words):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), *words],
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)


class Setting:
    """A primary with updates behind it, and its dump."""

    def __init__(self, pando, tmp_path):
        self.pando = pando
        self.file = tmp_path / "dump.zone"
        self.file.write_text(zone_text(1, ["a", "b"]))
        self.first = self.make().start(ZONE)
        self.old = self.first.serial(ZONE)
        update(self.first, "one")
        update(self.first, "two")
        self.dump = tmp_path / "store.dump"

    def make(self, **options):
        server = self.pando([{"name": ZONE, "file": str(self.file), "allow-update": ANYBODY,
                              "allow-transfer": ANYBODY}], workers=1, **options)
        (server.folder / server.journal).mkdir(parents=True, exist_ok=True)
        return server

    def take(self):
        return self.first.control("store", "dump", str(self.dump))

    def place(self, server):
        return server.folder / server.journal / "store.dump"


@pytest.fixture
def setting(pando, tmp_path):
    return Setting(pando, tmp_path)


def test_another_server_starts_on_it_and_gives_the_same(setting):
    written = setting.take()
    assert written["zones"] == 1 and written["records"] == 47 and written["changesets"] == 2
    assert written["bytes"] == setting.dump.stat().st_size
    assert setting.dump.stat().st_mode & 0o777 == 0o600
    assert not list(setting.dump.parent.glob("*.partial"))
    second = setting.make()
    assert second.control("store", "load", str(setting.dump)) == {"zones": 1, "records": 47, "changesets": 2,
                                                                          "snapshots": 0}
    second.start(ZONE)
    assert "dump_loaded" in second.log() and "zone_loaded" not in second.log()
    assert not setting.place(second).exists()
    assert second.records(ZONE) == setting.first.records(ZONE)
    assert differences(second, setting.old) == {"one", "two"}
    second.control("store", "check")


def test_updates_go_on_there_and_the_file_is_still_told_from_them(setting):
    setting.take()
    second = setting.make()
    second.control("store", "load", str(setting.dump))
    second.start(ZONE)
    update(second, "three")
    assert differences(second, setting.old) == {"one", "two", "three"}
    # The host loses its memory: its own journal knows what came by update before the dump.
    lose_memory(second)
    second.start(ZONE)
    assert all(second.ask(f"{name}.{ZONE}").answer for name in ("a", "b", "one", "two", "three"))
    setting.file.write_text(zone_text(50, ["a", "edited"]))
    second.control("reload")
    servers.wait_until("the edit is served", lambda: second.ask(f"edited.{ZONE}").answer)
    assert not second.ask(f"b.{ZONE}").answer
    assert all(second.ask(f"{name}.{ZONE}").answer for name in ("one", "two", "three"))


def test_its_own_server_goes_on_from_it_and_the_journal(setting):
    setting.take()
    update(setting.first, "behind")
    serial = setting.first.serial(ZONE)
    lose_memory(setting.first)
    setting.first.control("store", "load", str(setting.dump))
    setting.first.start(ZONE)
    assert re.search(r"image_replayed records=1 zones_unloaded=0", setting.first.log())
    assert setting.first.serial(ZONE) == serial
    assert differences(setting.first, setting.old) == {"one", "two", "behind"}


@pytest.mark.parametrize("point", ["dump-zones-loaded", "dump-taken-over", "dump-noted", "store-create-install",
                                   "store-create-installed"])
def test_a_start_that_is_cut_short_begins_again(setting, point):
    setting.take()
    second = setting.make()
    second.control("store", "load", str(setting.dump))
    second.crash_at = point
    with pytest.raises(AssertionError, match="ended with -9"):
        second.start(ZONE)
    second.crash_at = None
    second.start(ZONE)
    assert second.records(ZONE) == setting.first.records(ZONE)
    assert differences(second, setting.old) == {"one", "two"}
    assert not setting.place(second).exists()
    lose_memory(second)
    second.start(ZONE)
    assert second.ask(f"two.{ZONE}").answer


IMAGE = "  image: zones.image\n  checkpoint: {interval: 1h, journal: 32GiB}\n"


def begin_another_journal(server):
    shutil.rmtree(server.folder / server.journal)
    (server.folder / server.journal).mkdir()


def test_an_image_that_cannot_give_way_ends_the_start(setting):
    """Nothing was changed, so the dump is used when the way is free; behind an empty store it would never be."""
    setting.take()
    second = setting.make(store_extra=IMAGE)
    second.start(ZONE)
    update(second, "own")
    second.control("store", "checkpoint")
    lose_memory(second)
    begin_another_journal(second)
    image, refused = second.folder / "zones.image", second.folder / "zones.image.quarantined"
    shutil.copy(image, refused)
    kept = image.read_bytes()
    second.control("store", "load", str(setting.dump))
    for _ in range(2):
        os.truncate(second.log_path, 0)
        with pytest.raises(AssertionError, match="ended with 1"):
            second.start(ZONE)
        assert re.search(r"start_failed reason=.*zones.image: cannot be removed or quarantined.*zones.image.quarantined already", second.log())
        assert setting.place(second).exists() and image.read_bytes() == kept
        assert not list(pathlib.Path(second.store).glob("zones.store*"))
    refused.unlink()
    second.start(ZONE)
    assert second.records(ZONE) == setting.first.records(ZONE)
    assert not setting.place(second).exists() and refused.read_bytes() == kept


@pytest.fixture
def small_disk(setting):
    """Makes the server's journal a disk that has room for the dump and no more; gives what makes it larger."""
    made = []

    def make(server):
        journal = server.folder / server.journal
        pages = -(-setting.dump.stat().st_size // 4096)
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * 4096},mode=0755", "tmpfs", str(journal)],
                                 capture_output=True)
        if mounted.returncode != 0:
            pytest.skip("needs to mount a small disk")
        made.append((server, journal))
        return lambda: subprocess.run(["mount", "-o", "remount,size=64m", str(journal)], check=True)

    yield make
    for server, journal in made:
        server.stop()
        subprocess.run(["umount", "--lazy", str(journal)], check=True)


def test_a_dump_that_was_taken_over_and_cannot_be_noted_ends_the_start(setting, small_disk):
    """The image has given way to it by then. An empty store in its place would be taken for what it was made of."""
    setting.take()
    second = setting.make(store_extra=IMAGE)
    enlarge = small_disk(second)
    second.control("store", "load", str(setting.dump))
    for _ in range(2):
        if second.log_path.exists():
            os.truncate(second.log_path, 0)
        with pytest.raises(AssertionError, match="ended with 1"):
            second.start(ZONE)
        assert re.search(r"start_failed reason=.*No space left on device", second.log()), second.log()
        assert setting.place(second).exists() and not list(pathlib.Path(second.store).glob("zones.store*"))
    enlarge()
    second.start(ZONE)
    assert second.records(ZONE) == setting.first.records(ZONE)
    assert not setting.place(second).exists()


@pytest.mark.parametrize("journal", ["kept", "lost"])
def test_an_image_that_the_dump_has_all_of_is_not_quarantined(setting, journal):
    server = setting.make(store_extra=IMAGE).start(ZONE)
    update(server, "one")
    server.control("store", "checkpoint")
    update(server, "behind")
    server.control("store", "dump", str(setting.dump))
    records = server.records(ZONE)
    lose_memory(server)
    if journal == "lost":
        begin_another_journal(server)
    server.control("store", "load", str(setting.dump))
    server.start(ZONE)
    assert server.records(ZONE) == records and "dump_loaded" in server.log()
    assert "image_quarantined" not in server.log() and not (server.folder / "zones.image.quarantined").exists()
    server.control("store", "checkpoint")
    lose_memory(server)
    server.start(ZONE)
    assert "image_restored" in server.log() and server.records(ZONE) == records


@pytest.mark.parametrize("point", ["dump-taken-over", "store-create-installed", "image-chunks-written"])
def test_an_image_from_before_a_dump_that_was_taken_over_is_not_believed(setting, point):
    """It is of the very beginning of a journal that has no records: nothing would seem to be missing behind it."""
    second = setting.make(store_extra=IMAGE)
    second.start(ZONE)
    second.control("store", "checkpoint")
    lose_memory(second)
    setting.take()
    second.control("store", "load", str(setting.dump))
    second.crash_at = point
    second.start_until_killed(ZONE)  # the first checkpoint may come before it serves, or behind that
    second.crash_at = None
    assert not (second.folder / "zones.image").exists()
    if point == "dump-taken-over":  # the dump is there still
        second.start(ZONE)
        assert second.records(ZONE) == setting.first.records(ZONE)
        return
    lose_memory(second)
    second.start(ZONE)
    assert "image_restored" not in second.log()
    assert all(second.ask(f"{name}.{ZONE}").answer for name in ("a", "b", "one", "two"))


@pytest.mark.parametrize("point", ["dump-written", "dump-synced"])
def test_a_manager_that_dies_while_it_writes_leaves_the_old_dump(setting, point):
    setting.take()
    before = setting.dump.read_bytes()
    setting.first.kill()
    setting.first.crash_at = point
    setting.first.start(ZONE)
    update(setting.first, "three")
    assert pandoctl(setting.first, "store", "dump", str(setting.dump)).returncode != 0
    setting.first.process.wait(30)
    assert setting.dump.read_bytes() == before


@servers.needs_root("mounts")
def test_a_full_disk_is_an_error_and_leaves_the_old_dump(setting, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)], check=True)
    try:
        setting.dump = folder / "store.dump"
        setting.take()
        before = setting.dump.read_bytes()
        update(setting.first, "three")
        with pytest.raises(OSError, match="No space left"), (folder / "filler").open("wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 4096)
        told = pandoctl(setting.first, "store", "dump", str(setting.dump))
        assert told.returncode == 1 and "No space left" in told.stderr
        assert setting.dump.read_bytes() == before and sorted(os.listdir(folder)) == ["filler", "store.dump"]
        assert setting.first.ask(f"three.{ZONE}").answer
        (folder / "filler").unlink()
        assert setting.take()["records"] == 48
        assert setting.dump.read_bytes() != before
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_what_would_not_be_started_on_is_refused(setting, tmp_path):
    setting.take()
    running = pandoctl(setting.first, "store", "load", str(setting.dump))
    assert running.returncode == 1 and "a manager runs" in running.stderr
    setting.first.kill()
    for pid in setting.first.left_over():
        os.kill(pid, signal.SIGKILL)
    live = pandoctl(setting.first, "store", "load", str(setting.dump))
    assert live.returncode == 1 and "zones.store is there" in live.stderr
    second = setting.make()
    whole = setting.dump.read_bytes()
    damaged = tmp_path / "damaged.dump"
    damaged.write_bytes(whole[:400] + bytes([whole[400] ^ 1]) + whole[401:])
    for bad, why in ((damaged, r"damaged.dump: byte \d+: the record has a wrong checksum"),
                     (setting.file, r"dump.zone: byte 0: not a dump"), (tmp_path / "none", "none: ")):
        told = pandoctl(second, "store", "load", str(bad))
        assert told.returncode == 1 and re.search(why, told.stderr), told.stderr
        assert told.stderr.count("\n") == 1
        assert not list((second.folder / second.journal).glob("store.dump*"))
    # One of another journal, where there are records.
    second.start(ZONE)
    update(second, "own")
    lose_memory(second)
    told = pandoctl(second, "store", "load", str(setting.dump))
    assert told.returncode == 1 and "of another journal" in told.stderr


def test_a_dump_replaces_nothing_else(setting, tmp_path):
    (tmp_path / "precious").write_text("precious")
    for target in (tmp_path / "precious", setting.place(setting.first)):
        assert pandoctl(setting.first, "store", "dump", str(target)).returncode == 1
    assert (tmp_path / "precious").read_text() == "precious"


def test_a_secondary_keeps_its_timers(setting, tmp_path):
    zones = [{"name": ZONE, "primaries": ["first"], "allow-transfer": ANYBODY}]
    remotes = [{"name": "first", "address": [f"127.0.0.1@{setting.first.port}"]}]
    second = setting.pando(zones, workers=1, remotes=remotes).start(ZONE)
    before = second.control("zone", "status", ZONE)
    second.control("store", "dump", str(setting.dump))
    setting.first.stop()
    third = setting.pando(zones, workers=1, remotes=remotes)
    (third.folder / third.journal).mkdir(parents=True)
    third.control("store", "load", str(setting.dump))
    third.start(ZONE)
    after = third.control("zone", "status", ZONE)
    assert after["serial"] == before["serial"] and after["expires_at"] == before["expires_at"] > 0
