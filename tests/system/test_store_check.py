"""pandoctl store stats and store check: on a store that serves and changes, on what a killed manager leaves, on copies,
and on damaged ones."""

import json
import os
import random
import shutil
import subprocess
import threading

import dns.query
import dns.update
import pytest

import servers

ZONE = "example"
FIRST_CHUNK = 132 << 20
CHUNK = 64 * 1024
KINDS = {"trie", "zone entries", "owners", "headers", "rdata", "signatures", "shared sets", "history", "settings",
         "replaced zones", "snapshots", "padding"}


@pytest.fixture
def server(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text("$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n" +
                    f"big TXT {' '.join(['x' * 250] * 5)}\n" +
                    "".join(f"host{number} A 192.0.2.{number % 250}\n" for number in range(3000)))
    other = tmp_path / "other.zone"
    other.write_text("$ORIGIN other.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
    local = [{"address": "127.0.0.0/8"}]
    return pando([{"name": ZONE, "file": str(path), "allow-update": local},
                  {"name": "other", "file": str(other)}]).start(ZONE)


def update(server, name, address):
    message = dns.update.UpdateMessage(ZONE)
    message.replace(name, 60, "A", address)
    return dns.query.tcp(message, "127.0.0.1", port=server.port, timeout=20).rcode()


def check_file(path):
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "store", "check", "--file", str(path)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def test_stats_account_for_all_of_the_store(server):
    for number in range(20):
        assert update(server, f"new{number}", "192.0.2.7") == 0
    status = server.control("status")["store"]
    stats = server.control("store", "stats")
    assert stats["zones"] == 2 and stats["faults"] == []
    assert stats["records"] == 3000 + 4 + 20 + 3
    octets = stats["bytes"]
    # What is live beside our blocks is the store's own root block, of some hundred octets at most.
    blocks = sum(octets[kind] for kind in KINDS)
    assert 0 < status["live"] - blocks < 4096
    assert sum(octets.values()) == status["memory"]
    assert octets["history"] > 0 and octets["rdata"] > 3000 * 4 + 1250


def test_stats_of_one_zone(server):
    whole = server.control("store", "stats")["bytes"]
    one = server.control("store", "stats", ZONE)
    two = server.control("store", "stats", "other")
    assert (one["zones"], one["records"], two["records"]) == (1, 3004, 3)
    for kind in ("owners", "headers", "rdata", "zone entries"):
        assert one["bytes"][kind] + two["bytes"][kind] == whole[kind]
    with pytest.raises(AssertionError, match="no zone missing"):
        server.control("store", "stats", "missing")
    text = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "store", "stats"],
                          capture_output=True, text=True, timeout=60, check=True).stdout
    assert "PER RECORD" in text and "rdata" in text and "2 zones" in text


def test_a_store_that_changes_is_sound_at_each_look(server):
    done = threading.Event()
    codes = []

    def change():
        number = 0
        while not done.is_set():
            codes.append(update(server, f"host{number % 500}", f"10.0.{number // 250 % 250}.{number % 250}"))
            number += 1

    thread = threading.Thread(target=change)
    thread.start()
    try:
        versions = set()
        for _ in range(12):
            result = server.control("store", "check")
            assert result["faults_found"] == 0, result["faults"]
            versions.add(result["version"])
    finally:
        done.set()
        thread.join()
    assert len(versions) > 3 and set(codes) == {0}


def test_what_a_killed_manager_leaves_is_sound(server):
    for number in range(30):
        assert update(server, f"host{number}", "10.1.2.3") == 0
    path = server.store / "zones.store"
    code, _, errors = check_file(path)
    assert code == 1 and "a manager has this store" in errors
    server.kill()
    code, text, errors = check_file(path)
    assert (code, errors) == (0, "") and "2 zones" in text and "no faults" in text


def test_a_file_tells_what_its_snapshots_hold(server):
    server.control("zone", "snapshot", ZONE, "first")
    for number in range(20):
        assert update(server, f"host{number}", "10.1.2.3") == 0
    server.control("zone", "snapshot", ZONE, "second")
    told = server.control("store", "stats")["snapshots"]
    assert [(row["label"], row["bytes"] > 1000) for row in told] == [("first", True), ("second", False)]
    server.kill()
    path = server.store / "zones.store"
    code, text, errors = check_file(path)
    assert (code, errors) == (0, "")
    lines = [line.split() for line in text.splitlines()]
    assert ["BYTES", "SNAPSHOT", "ZONE"] in lines
    assert all([str(row["bytes"]), row["label"], row["zone"]] in lines for row in told)
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--json", "store", "check", "--file", str(path)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=True)
    assert json.loads(done.stdout)["snapshots"] == told


def test_damage_is_found_in_a_copy(server, tmp_path):
    server.kill()
    copy = tmp_path / "copy.store"
    subprocess.run(["cp", "--sparse=always", str(server.store / "zones.store"), str(copy)], check=True)
    assert check_file(copy)[0] == 0
    chance = random.Random(5)
    found = 0
    with copy.open("rb") as file:
        octets = os.pread(file.fileno(), 4 * CHUNK, FIRST_CHUNK)
    filled = [at for at in range(0, len(octets) - 8, 8) if octets[at:at + 8] != bytes(8)]
    for _ in range(20):
        at = FIRST_CHUNK + chance.choice(filled)
        with copy.open("r+b") as file:
            before = os.pread(file.fileno(), 8, at)
            os.pwrite(file.fileno(), chance.randbytes(8), at)
            code, _, errors = check_file(copy)
            os.pwrite(file.fileno(), before, at)
        assert code in (0, 1)  # an address is as good as another one
        found += code
        assert code == 0 or errors.startswith(("error: ", "pandoctl: "))
    assert found >= 10
    assert check_file(copy)[0] == 0
    os.truncate(copy, FIRST_CHUNK + 5000)
    code, _, errors = check_file(copy)
    assert code == 1 and "shorter than its header says" in errors
    shutil.copy(server.config, copy)
    code, _, errors = check_file(copy)
    assert code == 1 and "not a zone store" in errors


def test_an_image_is_checked_in_its_files(server, tmp_path):
    """A copy, and the image of a server that runs."""
    for number in range(30):
        assert update(server, f"host{number}", "10.1.2.3") == 0
    server.control("zone", "snapshot", ZONE, "first")
    copy = tmp_path / "backup.image"
    server.control("store", "copy", str(copy))
    told = server.control("store", "check")
    code, text, errors = check_file(copy)
    assert (code, errors) == (0, "") and "2 zones" in text and "no faults" in text and "first" in text
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--json", "store", "check", "--file", str(copy)],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL, check=True)
    found = json.loads(done.stdout)
    assert (found["records"], found["names"], found["faults_found"]) == (told["records"], told["names"], 0)
    assert found["snapshots"] == told["snapshots"]
    server.stop()
    server.store_extra = "  image: zones.image\n"
    server.write_config()
    server.start(ZONE)
    server.control("store", "checkpoint")
    code, text, errors = check_file(server.folder / "zones.image")
    assert (code, errors) == (0, "") and "no faults" in text


def flip(path, at):
    octets = bytearray(path.read_bytes())
    octets[at] ^= 1
    path.write_bytes(octets)


def test_damage_of_an_image_is_one_line_with_the_file_and_the_cause(server, tmp_path):
    for harm in ("index", "chunk", "cut index", "cut chunks", "no chunks"):
        folder = tmp_path / harm.replace(" ", "-")
        folder.mkdir()
        folder.chmod(0o777)
        copy = folder / "backup.image"
        server.control("store", "copy", str(copy))
        chunks, = folder.glob("backup.image.*")
        assert check_file(copy)[0] == 0
        wrong, cause = copy, "wrong checksum"
        if harm == "index":
            flip(copy, 120)
        elif harm == "cut index":
            os.truncate(copy, copy.stat().st_size - 12)
        else:
            wrong = chunks
        if harm == "chunk":
            flip(chunks, CHUNK + 200)
            cause = f"1 of its chunks are damaged, the first one at byte {CHUNK}"
        elif harm == "cut chunks":
            os.truncate(chunks, CHUNK + 200)
            cause = f"cut off at byte {CHUNK + 200}"
        elif harm == "no chunks":
            chunks.unlink()
            cause = "no such file"
        code, text, errors = check_file(copy)
        assert (code, text) == (1, "") and errors.count("\n") == 1, errors
        assert errors.startswith(f"pandoctl: {wrong}: ") and cause in errors, errors
