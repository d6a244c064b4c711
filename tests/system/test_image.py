"""The image on disk: a restarted host serves what it has, brought up to the last acknowledged update, and
whatever is wrong with it, zone files and journal have everything."""

import contextlib
import os
import re
import shutil
import signal

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "image.test"
IMAGE = "  image: zones.image\n  checkpoint: {interval: 1h, journal: 32GiB}\n"


def zone_text(serial, names):
    lines = [f"@ 300 SOA ns1 admin {serial} 3600 600 86400 300", "@ 300 NS ns1", "ns1 300 A 192.0.2.1"]
    return "\n".join(lines + [f"{name} 300 A 192.0.2.2" for name in names]) + "\n"


class Host:
    """A server with an image, on a host that can lose its memory."""

    def __init__(self, pando, tmp_path, store_extra=IMAGE, zones=(), **options):
        tmp_path.mkdir(exist_ok=True)
        self.file = tmp_path / "image.zone"
        self.file.write_text(zone_text(1, ["a", "b"]))
        self.server = pando([{"name": ZONE, "file": str(self.file),
                              "allow-update": [{"address": "127.0.0.0/8"}],
                              "allow-transfer": [{"address": "127.0.0.0/8"}]}, *zones],
                            workers=1, store_extra=store_extra, **options)
        self.image = self.server.folder / "zones.image"

    def start(self, zone=ZONE):
        self.server.start(zone)
        return self

    def update(self, name, text="192.0.2.9"):
        update = dns.update.UpdateMessage(ZONE)
        update.add(name, 300, "A", text)
        answer = dns.query.udp(update, "127.0.0.1", port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR, answer.to_text()

    def checkpoint(self):
        self.server.control("store", "checkpoint")

    def lose_memory(self, clean=False):
        if clean:
            self.server.stop()
        else:
            self.server.kill()
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("workers are gone", lambda: not self.server.left_over())
        shutil.rmtree(self.server.store)
        os.truncate(self.server.log_path, 0)

    def dies_at(self, point):
        """A start that ends at a crash point."""
        self.server.crash_at = point
        with pytest.raises(AssertionError, match="ended with -9"):
            self.server.start(ZONE)
        self.server.crash_at = None
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)

    def has(self, name):
        return bool(self.server.ask(f"{name}.{ZONE}").answer)

    def logged(self, event):
        return re.findall(rf"{event}.*", self.server.log())

    def chunk_file(self):
        found = [path for path in self.image.parent.glob("zones.image.*") if path.suffix != ".partial"]
        assert len(found) == 1, found
        return found[0]


@pytest.fixture
def host(pando, tmp_path):
    return Host(pando, tmp_path).start()


def test_a_restarted_host_has_the_image_and_what_came_behind_it(host):
    host.update("before")
    host.checkpoint()
    host.update("behind")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.logged("image_replayed records=1 zones_unloaded=0")
    assert not host.logged("zone_loaded")
    assert host.server.serial(ZONE) == serial
    assert all(host.has(name) for name in ("a", "b", "before", "behind"))
    host.server.control("store", "check")


def test_a_server_that_was_stopped_has_everything_in_its_image(host):
    host.update("last")
    host.lose_memory(clean=True)
    host.start()
    assert host.logged("image_replayed records=0 zones_unloaded=0")
    assert host.has("last")


def test_the_next_checkpoints_and_restarts_go_on_from_there(host):
    for turn in range(4):
        host.update(f"r{turn}")
        host.checkpoint()
        host.update(f"s{turn}")
        host.lose_memory(clean=turn % 2 == 1)
        host.start()
        assert host.logged("image_restored")
    assert all(host.has(f"{kind}{turn}") for kind in "rs" for turn in range(4))
    assert host.chunk_file()
    host.server.control("store", "check")


def test_secondaries_get_differences_from_before_the_restart(host):
    first = host.server.serial(ZONE)
    host.update("one")
    host.checkpoint()
    host.update("two")
    host.lose_memory()
    host.start()
    messages = list(dns.query.xfr("127.0.0.1", ZONE, rdtype="IXFR", serial=first, port=host.server.port,
                                  relativize=False, lifetime=30))
    texts = [rrset.to_text() for message in messages for rrset in message.answer]
    assert any("one." in text for text in texts) and any("two." in text for text in texts)
    assert not any(text.startswith("a.image.test") for text in texts), "a whole zone"


def test_a_file_that_was_edited_meanwhile_is_merged(host):
    host.update("dynamic")
    host.checkpoint()
    host.lose_memory()
    host.file.write_text(zone_text(50, ["a", "edited"]))
    host.start()
    servers.wait_until("the edit is served", lambda: host.has("edited") and not host.has("b"))
    assert host.has("dynamic") and host.has("a")


def test_a_zone_that_was_replaced_behind_the_image_is_not_served_from_it(host):
    """No differences lead from what the image has to what was served: the zone is loaded anew, and
    updates that came later are in it."""
    host.checkpoint()
    host.server.control("reload")
    names = [f"n{i}" for i in range(3000)]
    host.file.write_text(zone_text(7, names))  # nearly all of it is new
    host.server.control("reload")
    host.update("later")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    host.start()
    assert host.has("later") and host.has("n2999") and not host.has("b")
    assert host.server.serial(ZONE) == serial


@pytest.mark.parametrize("point", ["restore-filled", "image-replayed"])
def test_a_start_from_the_image_that_is_cut_short_begins_anew(host, point):
    """What the image has of a zone that was replaced behind it is not served by the next start either."""
    host.checkpoint()
    host.file.write_text(zone_text(7, [f"n{i}" for i in range(3000)]))
    host.server.control("reload")
    host.update("later")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    host.dies_at(point)
    host.start()
    assert host.logged("image_restored")
    assert host.has("later") and host.has("n2999") and host.server.serial(ZONE) == serial


def test_an_image_larger_than_the_store_may_be_now_is_served(pando, tmp_path):
    host = Host(pando, tmp_path)
    host.file.write_text(zone_text(1, [f"n{i}" for i in range(60000)]))
    host.start()
    host.lose_memory(clean=True)
    host.server.size_limit = "1MiB"
    host.server.write_config()
    host.start()
    assert host.logged("image_restored") and host.has("n59999")
    # What fits into the chunk that is open may still come.
    rcodes = []
    while dns.rcode.SERVFAIL not in rcodes and len(rcodes) < 200:
        update = dns.update.UpdateMessage(ZONE)
        update.add(f"more{len(rcodes)}", 300, "TXT", " ".join(['"' + "x" * 250 + '"'] * 4))
        rcodes.append(dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode())
    assert rcodes[-1] == dns.rcode.SERVFAIL and host.has("n59999")


def test_a_zone_of_the_image_that_left_the_configuration_is_gone(pando, tmp_path):
    other = tmp_path / "other.zone"
    other.write_text(zone_text(1, ["x"]))
    host = Host(pando, tmp_path, zones=[{"name": "other.test", "file": str(other)}]).start("other.test")
    host.checkpoint()
    host.lose_memory()
    host.server.zones = host.server.zones[:1]
    host.server.write_config()
    host.start()
    assert host.logged("image_restored")
    servers.wait_until("it is refused",
                       lambda: host.server.ask("x.other.test").rcode() == dns.rcode.REFUSED)


def test_a_secondary_keeps_its_timers(pando, tmp_path):
    """Else a zone whose primary is gone would be served for another whole expire time."""
    primary = pando([{"name": "sec.test", "file": str(tmp_path / "sec.zone"),
                      "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1)
    (tmp_path / "sec.zone").write_text(zone_text(3, ["a"]))
    primary.start("sec.test")
    host = Host(pando, tmp_path, zones=[{"name": "sec.test", "primaries": ["primary"]}],
                remotes=[{"name": "primary", "address": [f"127.0.0.1@{primary.port}"]}]).start("sec.test")
    primary.stop()
    host.checkpoint()
    before = host.server.control("zone", "status", "sec.test")
    assert before["expires_at"] > 0
    host.lose_memory()
    host.start("sec.test")
    assert host.logged("image_restored")
    after = host.server.control("zone", "status", "sec.test")
    assert after["expires_at"] == before["expires_at"] and after["last_ok"] == before["last_ok"]


def test_the_journal_is_shortened_behind_an_image(pando, tmp_path):
    host = Host(pando, tmp_path, store_extra=IMAGE + "  journal-limit: 1MiB").start()
    count = 0
    while host.server.control("status")["journal"]["snapshots"] == 0:
        update = dns.update.UpdateMessage(ZONE)
        for part in range(20):
            update.add(f"t{count}-{part}", 300, "TXT", " ".join(['"' + "x" * 250 + '"'] * 4))
        assert dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode() == 0
        count += 1
        assert count < 2000
    host.update("behind")
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.logged("image_replayed.*zones_unloaded=0")
    assert host.has("behind") and host.server.ask(f"t{count - 1}-19.{ZONE}", "TXT", tcp=True).answer


def damage_index(host):
    octets = bytearray(host.image.read_bytes())
    octets[len(octets) // 2] ^= 1
    host.image.write_bytes(octets)
    return "wrong checksum"


def damage_chunk(host):
    with open(host.chunk_file(), "r+b") as file:
        file.seek(65536 + 100)
        octet = file.read(1)[0]
        file.seek(65536 + 100)
        file.write(bytes([octet ^ 1]))
    return "chunk 0 of the image, at byte 65536 of its file, is damaged"


def cut_index(host):
    os.truncate(host.image, 50)
    return "not an image"


def cut_chunks(host):
    os.truncate(host.chunk_file(), 65536 + 10)
    return "is damaged"


def lose_chunks(host):
    host.chunk_file().unlink()
    return "no such file"


@pytest.mark.parametrize("harm", [damage_index, damage_chunk, cut_index, cut_chunks, lose_chunks])
def test_a_damaged_image_is_told_and_left_out(host, harm):
    host.update("before")
    host.checkpoint()
    host.update("behind")
    serial = host.server.serial(ZONE)
    host.lose_memory()
    told = harm(host)
    host.start()
    assert any(told in line for line in host.logged("image_not_used")), host.server.log()
    assert not host.logged("image_restored")
    assert all(host.has(name) for name in ("a", "before", "behind")) and host.server.serial(ZONE) == serial
    # And the next image is sound.
    host.checkpoint()
    status = host.server.control("status")
    assert status["image_not_used"] == "" and told in status["damage_found"][0]["text"], "mended, and not forgotten"
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.has("behind")
    assert host.server.control("status")["damage_found"] == []


@pytest.mark.parametrize("harm", [damage_index, cut_chunks, lose_chunks])
def test_a_damaged_image_beside_a_live_store_is_replaced_without_a_change(host, harm):
    host.update("before")
    host.server.stop()
    old, told = host.chunk_file(), harm(host)
    host.start()
    servers.wait_until("another image", lambda: host.server.control("status")["image"]["checkpoints"] == 1)
    found = host.logged("image_not_used")
    assert len(found) == 1 and told in found[0] and str(host.image) in found[0], host.server.log()
    assert host.chunk_file() != old
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.has("before")


def test_a_sound_image_beside_a_live_store_is_gone_on_with(host):
    host.update("before")
    host.server.stop()
    chunks = host.chunk_file()
    host.start()
    host.checkpoint()  # waits until it is known what there is to do
    host.server.stop()
    assert host.chunk_file() == chunks and not host.logged("image_not_used")


def test_an_image_of_another_journal_is_left_out(host, tmp_path):
    host.update("before")
    host.checkpoint()
    host.lose_memory()
    shutil.rmtree(host.server.folder / "journal")
    host.start()
    assert any("another journal" in line for line in host.logged("image_not_used"))
    assert host.has("a") and not host.has("before")


def test_the_image_is_written_by_what_was_journalled(pando, tmp_path):
    host = Host(pando, tmp_path,
                store_extra="  image: zones.image\n  checkpoint: {interval: 24h, journal: 1MiB}").start()
    servers.wait_until("the first one", lambda: host.server.control("status")["image"]["checkpoints"] == 1)
    for number in range(60):
        update = dns.update.UpdateMessage(ZONE)
        for part in range(20):
            update.add(f"t{number}-{part}", 300, "TXT", " ".join(['"' + "x" * 250 + '"'] * 4))
        assert dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode() == 0
    status = servers.wait_until("a second one", lambda: (
        lambda found: found if found["image"]["checkpoints"] >= 2 else None)(host.server.control("status")))
    assert status["image"]["position"] > 0 and status["image"]["bytes_written"] > 1 << 20


def test_without_an_image_there_is_no_checkpoint(pando, tmp_path):
    host = Host(pando, tmp_path, store_extra="").start()
    with pytest.raises(AssertionError, match="store.image is not configured"):
        host.checkpoint()
    assert host.server.control("status").get("image", {}) == {}


def test_a_copy_seeds_another_server(host, pando, tmp_path):
    host.update("dynamic")
    host.server.control("store", "copy", str(tmp_path / "seed.image"))
    host.update("after")
    other = Host(pando, tmp_path / "other", store_extra=f"  image: {tmp_path}/seed.image\n")
    shutil.copy2(host.file, other.file)  # with its time: else it would be taken for an edited one
    other.start()
    assert other.logged("image_restored") and other.has("dynamic") and not other.has("after")
    # It is this server's now: what it acknowledges from here on lives as long as the image.
    other.update("own")
    other.lose_memory()
    other.start()
    assert other.logged("image_restored") and other.has("dynamic") and other.has("own")


@pytest.mark.parametrize("restarted", [False, True])
def test_a_seeded_server_misses_no_records(host, pando, tmp_path, restarted):
    """Those of the first server's journal never were in this one's."""
    plain = tmp_path / "plain.zone"
    plain.write_text(zone_text(1, ["a", "b"]))
    zones = [{"name": "plain.test", "file": str(plain)}]
    seed = Host(pando, tmp_path / "first", store_extra="", zones=zones).start()
    seed.update("dynamic")
    seed.server.control("store", "copy", str(tmp_path / "seed.image"))
    other = Host(pando, tmp_path / "other", store_extra=f"  image: {tmp_path}/seed.image\n", zones=zones)
    shutil.copy2(seed.file, other.file)
    other.start()
    if restarted:
        other.server.kill()
        other.server.start(ZONE)
    other.update("own")
    plain.write_text(zone_text(1, ["a", "b", "edited"]))
    result = other.server.control("reload")
    assert (result["zones_changed"], result["zones_failed"]) == (1, 0)
    assert other.server.ask("edited.plain.test").answer
    # What came by update before the copy is not told from what the file said: nothing is lost by an edit.
    other.file.write_text(zone_text(50, ["a", "edited"]))
    problem, = other.server.control("reload")["problems"]
    assert "no longer tells" in problem and other.has("dynamic") and other.has("own")
    other.server.kill()
    other.server.start(ZONE)
    assert other.has("dynamic") and other.has("own")
    assert not other.logged("are missing") and not other.logged("journal_not_begun")


def test_a_copy_is_not_put_under_a_journal_with_records(host, pando, tmp_path):
    host.update("dynamic")
    host.server.control("store", "copy", str(tmp_path / "seed.image"))
    other = Host(pando, tmp_path / "other", store_extra="").start()
    other.update("own")
    other.lose_memory()
    other.server.store_extra = f"  image: {tmp_path}/seed.image\n"
    other.server.write_config()
    other.start()
    assert other.logged("image_not_used") and other.has("own") and not other.has("dynamic")


def index_and_chunks(host, name="zones.image"):
    """An image's index, and the file of chunks that it names."""
    index = host.image.with_name(name)
    number = int.from_bytes(index.read_bytes()[40:48], "big")
    return index, host.image.with_name(f"zones.image.{number:016x}")


def contents(paths):
    return [path.read_bytes() for path in paths]


def test_a_copy_beside_a_journal_with_records_is_kept(host):
    host.update("good")
    host.server.control("store", "copy", str(host.server.folder / "backup.image"))
    host.update("later")
    host.lose_memory()
    for path in host.image.parent.glob("zones.image*"):
        path.unlink()
    for path in host.image.parent.glob("backup.image*"):
        path.rename(path.with_name(path.name.replace("backup", "zones")))
    backup = contents(index_and_chunks(host))
    host.start()
    host.checkpoint()
    assert host.logged("image_quarantined path=.*zones.image.quarantined") and host.has("later")
    # There is an image again, so this is nothing to complain of any more.
    status = host.server.control("status")
    assert status["image_not_used"] == "" and "and the journal has records of its own" in status["image_quarantined"]
    assert contents(index_and_chunks(host, "zones.image.quarantined")) == backup
    # It stays kept, and what the server writes by itself is used.
    host.lose_memory()
    host.start()
    host.checkpoint()
    assert host.logged("image_restored") and host.has("later")
    assert "by an earlier start" in host.server.control("status")["image_quarantined"]
    index, chunks = index_and_chunks(host, "zones.image.quarantined")
    assert contents([index, chunks]) == backup
    # Who removes it is rid of it, and of its chunks with the next start.
    index.unlink()
    host.server.kill()
    host.server.start(ZONE)
    host.checkpoint()
    assert host.server.control("status")["image_quarantined"] == ""
    assert host.chunk_file() != chunks


@contextlib.contextmanager
def unreadable(path):
    """Reading it fails, as on a bad sector."""
    aside = path.with_name(f"aside-{path.name}")
    path.rename(aside)
    path.mkdir()
    yield
    path.rmdir()
    aside.rename(path)


def test_an_image_and_a_journal_that_cannot_be_read_for_a_while_lose_nothing(host, monkeypatch):
    """The image is put aside, and zones wait for the journal. The way back of docs/howto/back-up-and-restore.md to that
    image loses nothing either, as the journal has all that came since."""
    monkeypatch.setenv("PANDO_DIVIDE_PAUSES", "10")
    host.update("covered")
    host.checkpoint()
    host.update("behind")
    serial = host.server.serial(ZONE)
    index, chunks = index_and_chunks(host)
    host.lose_memory()
    [segment] = (host.server.folder / "journal").glob("*.journal")
    with unreadable(chunks):
        with unreadable(segment):
            host.server.start()
            assert host.logged("image_quarantined")
            assert host.server.ask(f"covered.{ZONE}").rcode() == dns.rcode.SERVFAIL
        servers.wait_until("the zone is served", lambda: host.has("behind"))
        assert all(host.has(name) for name in ("a", "b", "covered")) and host.server.serial(ZONE) == serial
        servers.wait_until("updates are taken", lambda: not host.server.control("status")["problem"])
        host.update("later")
        host.lose_memory(clean=True)
    for path in host.image.parent.glob("zones.image*"):
        if path not in (chunks, index.with_name("zones.image.quarantined")):
            path.unlink()
    index.with_name("zones.image.quarantined").rename(index)
    host.start()
    assert host.logged("image_restored")
    assert all(host.has(name) for name in ("a", "b", "covered", "behind", "later"))
    assert host.server.serial(ZONE) == serial + 1


def test_a_second_image_that_is_refused_is_not_written_over(host, tmp_path):
    for journal in ("first", "second"):
        host.checkpoint()
        host.lose_memory()
        shutil.move(host.server.folder / "journal", tmp_path / journal)
        kept = contents(index_and_chunks(host))
        host.start()
    assert host.logged("image_not_written .*there is .*zones.image.quarantined already")
    with pytest.raises(AssertionError, match="no image is written: .*belongs to another journal"):
        host.checkpoint()
    assert contents(index_and_chunks(host)) == kept
    host.server.kill()
    host.server.start(ZONE)
    host.server.stop()
    assert contents(index_and_chunks(host)) == kept


def outgrow(host):
    """Has the host lose its memory, and begin with less of it than its image and the journal behind that take. Returns
    what that image is."""
    texts = " ".join(['"' + "x" * 250 + '"'] * 4)
    for number in range(100):
        update = dns.update.UpdateMessage(ZONE)
        for part in range(20):
            update.replace(f"t{part}", 300, "TXT", f'"{number}" ' + texts)
        assert dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode() == 0
        if number == 50:
            host.server.control("zone", "snapshot", ZONE, "good")
    host.checkpoint()
    for verb, words in (("add", (300, "TXT", texts)), ("delete", ())):  # more than the lower limit leaves an image's journal
        for name in range(64):
            update = dns.update.UpdateMessage(ZONE)
            for part in range(50):
                getattr(update, verb)(f"n{name}-{part}", *words)
            assert dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode() == 0
    host.update("behind")
    kept = contents(index_and_chunks(host))
    host.lose_memory()
    host.server.size_limit = "2MiB"
    host.server.write_config()
    host.start()
    return kept


def expect_all_back(host, index, chunks):
    """Room again, and the image where it was: all is back, and what came behind it, too."""
    host.update("small")
    host.lose_memory()
    index.rename(host.image)
    host.server.size_limit = "64MiB"
    host.server.write_config()
    host.start()
    assert host.logged("image_restored") and host.chunk_file() == chunks
    assert host.has("behind") and host.has("small")
    assert [row["lost"] for row in host.server.control("zone", "snapshots")["snapshots"]] == [""]


@pytest.mark.release
def test_an_image_for_which_there_is_no_room_is_kept_with_its_snapshots(pando, tmp_path):
    host = Host(pando, tmp_path, size_limit="64MiB").start()
    kept = outgrow(host)
    assert host.logged("image_quarantined .*size limit") and len(host.logged("zone_snapshots_lost")) == 1
    assert host.has("behind") and host.server.control("zone", "snapshots")["snapshots"] == []
    host.checkpoint()
    index, chunks = index_and_chunks(host, "zones.image.quarantined")
    assert contents([index, chunks]) == kept
    expect_all_back(host, index, chunks)


@pytest.mark.release
def test_a_second_one_for_which_there_is_no_room_outlives_restarts_of_the_process(pando, tmp_path):
    """It stays where it is, and is not taken for an image of the store that was made instead of it."""
    host = Host(pando, tmp_path, size_limit="64MiB").start()
    host.lose_memory(clean=True)
    host.image.rename(host.image.with_name("zones.image.quarantined"))
    host.start()
    kept = outgrow(host)
    for restarts in range(3):
        assert host.logged("image_not_written .*there is .*zones.image.quarantined already"), restarts
        status = host.server.control("status")
        assert str(host.image) + ": " in status["image_not_used"] and "by an earlier start" in status["image_quarantined"]
        with pytest.raises(AssertionError, match="no image is written: "):
            host.checkpoint()
        host.update(f"more{restarts}")
        assert contents(index_and_chunks(host)) == kept
        host.server.kill()
        os.truncate(host.server.log_path, 0)
        if restarts == 2:
            host.image.with_name("zones.image.quarantined").unlink()
        host.server.start(ZONE)
    # There is room for it now, and then for one of the store that serves.
    assert host.logged("image_quarantined .*of another store than the live one")
    host.checkpoint()
    index, chunks = index_and_chunks(host, "zones.image.quarantined")
    assert contents([index, chunks]) == kept
    assert host.has("behind") and host.has("more1")
    expect_all_back(host, index, chunks)
    assert host.has("more1")


@pytest.mark.release
def test_a_long_journal_is_replayed_in_little_room(pando, tmp_path):
    host = Host(pando, tmp_path, size_limit="4MiB", limits="{history: 0}").start()
    host.checkpoint()
    texts = " ".join(['"' + "x" * 250 + '"'] * 4)
    for number in range(600):
        update = dns.update.UpdateMessage(ZONE)
        for part in range(10):
            update.replace(f"t{(number * 7 + part * 131) % 1000}", 300, "TXT", f'"{number}" ' + texts)
        assert dns.query.tcp(update, "127.0.0.1", port=host.server.port, timeout=10).rcode() == 0
    host.lose_memory()
    host.start()
    assert host.logged("image_replayed.*zones_unloaded=0") and not host.logged("image_not_used")
    assert '"599"' in host.server.ask(f"t{599 * 7 % 1000}.{ZONE}", "TXT", tcp=True).answer[0].to_text()
    host.server.control("store", "check")
    host.checkpoint()
    host.lose_memory()
    host.start()
    assert host.logged("image_restored") and host.server.ask(f"t0.{ZONE}", "TXT", tcp=True).answer


def test_a_copy_has_to_go_somewhere_else(host):
    (host.server.folder / "alias").symlink_to(".")
    for path, reason in (("zones.image", "the server's own"), ("alias/zones.image", "the server's own"),
                         (f"{host.server.store}/zones.store", "the server's own"),
                         ("journal/identity", "in the folder of the journal"),
                         ("pando.yaml", "there is something else than an image")):
        with pytest.raises(AssertionError, match=reason):
            host.server.control("store", "copy", str(host.server.folder / path))


def differences(host, serial):
    """The owners in an IXFR from that serial; None when it is a whole zone."""
    messages = list(dns.query.xfr("127.0.0.1", ZONE, rdtype="IXFR", serial=serial, port=host.server.port,
                                  relativize=False, lifetime=30))
    rrsets = [rrset for message in messages for rrset in message.answer]
    if len(rrsets) < 2 or rrsets[1].rdtype != dns.rdatatype.SOA:
        return None
    return {str(rrset.name).split(".")[0] for rrset in rrsets if rrset.rdtype == dns.rdatatype.A}


def test_a_store_that_was_in_low_space_once_keeps_histories_and_snapshots_over_a_restart(pando, tmp_path):
    """Of what is empty nobody knows then whether the image needs it, so that all chunks seem to be in use."""
    large = tmp_path / "large.zone"
    head = "@ 300 SOA ns1 admin {} 3600 600 86400 300\n@ 300 NS ns1.image.test.\n"
    text = " ".join('"' + "x" * 250 + '"' for _ in range(16))
    large.write_text(head.format(1) + "".join(f"n{i} 300 TXT {text}\n" for i in range(15_400)))
    host = Host(pando, tmp_path, zones=[{"name": "large.test", "file": str(large)}], size_limit="64MiB")
    host.file.write_text(zone_text(1, [f"host{number}" for number in range(40)]))  # more than the differences
    host.start()
    servers.wait_until("the large zone is served", lambda: host.server.serial("large.test") == 1, 150)

    def in_use():
        return host.server.control("status")["store"]["chunks_in_use"]

    assert in_use() > 1024 * 15 // 16
    large.write_text(head.format(2))
    host.server.control("reload")
    host.checkpoint()
    servers.wait_until("its room is free", lambda: in_use() < 100)
    serial = host.server.serial(ZONE)
    host.server.control("zone", "snapshot", ZONE, "here")
    for name in ("one", "two"):
        host.update(name)
    host.checkpoint()
    host.update("behind")
    host.server.kill()
    host.server.start(ZONE)
    servers.wait_until("there is another image", lambda: in_use() < 100)
    assert differences(host, serial) == {"one", "two", "behind"}
    assert [row["lost"] for row in host.server.control("zone", "snapshots")["snapshots"]] == [""]
