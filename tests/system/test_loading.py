"""Each zone is served as soon as it is ready, whatever the others take. The thread that builds a large file's zone is
held at a pause point, so nothing here depends on how long anything takes."""

import os
import pty
import subprocess

import dns.rcode
import pytest

import servers

SMALL = "$TTL 300\n@ SOA ns1 admin {serial} 36000 6000 864000 300\n@ NS ns1\nns1 A 192.0.2.1\n"
# More than what is looked at together with others.
LARGE = SMALL + "".join(f"host{number} TXT \"{'x' * 40}\"\n" for number in range(10_000))


class Held:
    """A server with a primary zone, large.test, whose load is held, and a server that it is a secondary of."""

    def __init__(self, make, folder):
        self.hold = folder / "hold"
        self.hold.touch()
        (folder / "small.zone").write_text(SMALL.format(serial=1))
        (folder / "sent.zone").write_text(SMALL.format(serial=7))
        (folder / "large.zone").write_text(LARGE.format(serial=5))
        self.up = make([{"name": name, "file": str(folder / "sent.zone"),
                         "allow-transfer": [{"address": "127.0.0.1"}]} for name in
                        ("first.test", "second.test", "large.test")], workers=1)
        self.up.start("first.test")
        self.files = folder
        self.server = make([self.primary("large.test", "large.zone"), self.primary("small.test"),
                            self.secondary("first.test")],
                           workers=1, remotes=[{"name": "up", "address": [f"127.0.0.1@{self.up.port}"]}])
        self.server.pause_at = ("zone-file", self.hold)

    def primary(self, name, file="small.zone"):
        return {"name": name, "file": str(self.files / file)}

    def secondary(self, name):
        return {"name": name, "primaries": ["up"], "allow-transfer": [{"address": "127.0.0.1"}]}

    def serves(self, name, serial):
        servers.wait_until(f"{name} is served", lambda: self.server.serial(name) == serial)

    def is_held(self):
        return self.server.ask("large.test", "SOA").rcode() == dns.rcode.SERVFAIL

    def reload(self, zones):
        """Not waited for: it ends when all zones have been looked at."""
        self.server.zones = zones
        self.server.write_config()
        return subprocess.Popen(
            [str(servers.build_folder() / "pandoctl"), "--config", str(self.server.config), "reload"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)

    def let_go(self, reload):
        assert reload.poll() is None, "it waits for the large file"
        self.hold.unlink()
        told = reload.communicate(timeout=120)[0]
        assert reload.returncode == 0, told


@pytest.fixture
def held(pando, tmp_path):
    made = Held(pando, tmp_path)
    yield made
    made.hold.unlink(missing_ok=True)


def test_zones_do_not_wait_for_a_large_file(held):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one thread has the large file")
    held.server.start("small.test")
    held.serves("first.test", 7)
    assert held.is_held()
    reload = held.reload([*held.server.zones, held.primary("added.test"), held.secondary("second.test")])
    held.serves("added.test", 1)
    held.serves("second.test", 7)
    assert held.is_held()
    held.let_go(reload)
    assert held.server.serial("large.test") == 5


def test_secondary_zones_do_not_wait_where_all_threads_have_large_files(held):
    command = held.server.command()
    held.server.command = lambda: ["taskset", "-c", str(min(os.sched_getaffinity(0))), *command]
    held.server.start("first.test")
    held.serves("first.test", 7)
    assert held.is_held()
    reload = held.reload([*held.server.zones, held.secondary("second.test")])
    held.serves("second.test", 7)
    assert held.is_held()
    held.let_go(reload)
    assert held.server.serial("large.test") == 5


def test_a_zone_made_secondary_while_its_file_is_loaded_becomes_what_its_primary_has(held):
    held.server.start("small.test")
    held.serves("first.test", 7)
    reload = held.reload([held.secondary("large.test"), held.primary("small.test"), held.secondary("first.test")])
    servers.wait_until("the configuration is in use",
                       lambda: held.server.control("zone", "status", "large.test")["kind"] == "secondary")
    assert held.is_held()
    held.let_go(reload)
    held.serves("large.test", 7)
    assert held.server.records("large.test") == held.up.records("large.test")


SHUFFLED = SMALL.format(serial=1) + "".join(
    f"host{number * 7919 % 10_000} TXT \"{'x' * 40}\"\n" for number in range(10_000))


@pytest.mark.parametrize("place, phase, total", [
    ("zone-include", "reading", 0), ("zone-sort", "sorting", 10_003), ("zone-build", "building", 10_003)])
def test_a_long_load_tells_its_phase_in_status_and_log(pando, tmp_path, place, phase, total):
    hold = tmp_path / "hold"
    hold.touch()
    (tmp_path / "more").write_text("included A 192.0.2.2\n")
    (tmp_path / "large.zone").write_text(SHUFFLED + ("$INCLUDE more\n" if place == "zone-include" else ""))
    server = pando([{"name": "large.test", "file": str(tmp_path / "large.zone")}], workers=1)
    server.pause_at = (place, hold)
    server.start()
    row = servers.wait_until("it is there", lambda: (
        lambda row: row if row["load_phase"] == phase else None)(server.control("zone", "status", "large.test")))
    assert row["load_total"] == total
    # What has been read so far is known; nothing of the other phases has been done where they are held.
    assert row["load_done"] == ((tmp_path / "large.zone").stat().st_size if phase == "reading" else 0)
    share = "" if phase == "reading" else "percent=0 "
    line = f"zone_loading zone=large.test. phase={phase} {share}done={row['load_done']}"
    servers.wait_until(line, lambda: line in server.log(), 60)
    hold.unlink()
    servers.wait_until("it is served", lambda: server.serial("large.test") == 1)
    row = server.control("zone", "status", "large.test")
    assert (row["load_phase"], row["load_done"], row["load_total"]) == ("", 0, 0)


def on_a_terminal(command, environment):
    """The process, and a function that gives what it has written so far to the terminal that its stderr is."""
    terminal, its_end = pty.openpty()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=its_end, text=True,
                               env={**os.environ, **environment})
    os.close(its_end)
    os.set_blocking(terminal, False)
    seen = bytearray()

    def written():
        try:
            while octets := os.read(terminal, 65536):
                seen.extend(octets)
        except (BlockingIOError, OSError):  # nothing yet, or nobody has the other end any more
            pass
        return seen.decode()

    return process, written


@pytest.mark.parametrize("place, shown", [
    ("zone-include", "reading, "), ("zone-sort", "  0% sorting"), ("zone-build", "  0% building")])
def test_the_bar_of_a_check_goes_through_the_phases(tmp_path, place, shown):
    hold = tmp_path / "hold"
    hold.touch()
    (tmp_path / "more").write_text("included A 192.0.2.2\n")
    file = tmp_path / "large.zone"
    file.write_text(SHUFFLED + ("$INCLUDE more\n" if place == "zone-include" else ""))
    process, written = on_a_terminal(
        [str(servers.build_folder() / "pandoctl"), "zone", "check", "large.test", str(file)],
        {"PANDO_PAUSE_AT": place, "PANDO_PAUSE_WHILE": str(hold)})
    servers.wait_until(shown, lambda: shown in written())
    assert "100%" not in written().rsplit("\r", 1)[-1]
    hold.unlink()
    out = process.communicate(timeout=120)[0]
    assert process.returncode == 0 and "ok, serial 1" in out
    assert written().endswith(" \r"), "it is gone at the end"
