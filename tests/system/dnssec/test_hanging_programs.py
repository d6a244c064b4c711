"""What becomes of a zone while its `verify-command` hangs, and what such programs hold up."""

import os
import threading

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_verify_command import SLOW_JUDGE, Hanging, command_lines, programs, running, script, text

PLACES_OF_FILES = 16
MUCH = 300_000  # bytes of a file that is not read beside small ones


def add(server, zone, name):
    update = dns.update.UpdateMessage(zone)
    update.add(name, 60, "A", "192.0.2.50")
    return dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode()


def becomes(server, zone, serial):
    servers.wait_until(f"{zone} is {serial}", lambda: server.serial(zone) == serial, 60)


@pytest.fixture
def world(pando, tmp_path):
    """A zone whose version 2 is being judged."""
    made = Hanging(pando, tmp_path)
    made.server.start("plain.test")
    made.served("hang0.test", 1)
    made.hang()
    return made


# What happens to the zone -------------------------------------------------------------------------


def test_a_zone_that_becomes_a_secondary_has_its_primarys_data(pando, tmp_path, world):
    path = tmp_path / "primary"
    path.write_text(text(7, 7))
    primary = pando([{"name": "hang0.test", "file": str(path), "allow-transfer": ["127.0.0.1"]}]).start("hang0.test")
    server = world.server
    server.remotes = [{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]
    server.zones[0] = {"name": "hang0.test", "primaries": ["up"]}
    server.write_config()
    assert server.control("reload")["zones_being_judged"] == 0
    servers.wait_until("its program has ended", lambda: not running(world.judge))
    becomes(server, "hang0.test", 7)
    world.hold.unlink()
    server.control("reload")
    assert (server.serial("hang0.test"), world.status()["kind"]) == (7, "secondary")


def test_a_zone_that_is_frozen_gets_the_file_with_its_verdict(world):
    """As with `reload`: the operator's own files are read."""
    server = world.server
    server.control("zone", "freeze", "hang0.test")
    assert add(server, "hang0.test", "new") == dns.rcode.REFUSED
    assert (server.serial("hang0.test"), world.status()["judged_by"]) == (1, world.judge)
    world.hold.unlink()
    becomes(server, "hang0.test", 2)
    assert world.status()["frozen"] and add(server, "hang0.test", "new") == dns.rcode.REFUSED
    server.control("zone", "thaw", "hang0.test")
    assert add(server, "hang0.test", "new") == dns.rcode.NOERROR


def test_an_export_waits_for_the_verdict(tmp_path, world):
    """The file has an edit that is not served; an export would overwrite it."""
    server = world.server
    path = tmp_path / "hang0.test"
    edited = path.read_text()
    assert add(server, "hang0.test", "new") == dns.rcode.NOERROR
    served = server.serial("hang0.test")
    with pytest.raises(AssertionError, match="reload"):
        server.control("zone", "export", "hang0.test")
    assert path.read_text() == edited
    other = server.control("zone", "export", "hang0.test", "--to", str(tmp_path / "other"))
    assert other["serial"] == served and "192.0.2.50" in (tmp_path / "other").read_text()
    world.hold.unlink()
    servers.wait_until("the edit is merged", lambda: world.status()["judged_by"] == "")
    assert server.control("zone", "export", "hang0.test")["serial"] == server.serial("hang0.test") >= served
    assert "192.0.2.50" in path.read_text()
    assert server.control("reload")["zones_being_judged"] == 0


def test_a_large_file_with_others_goes_on_being_judged(pando, tmp_path):
    hold = tmp_path / "hold"
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    (tmp_path / "included").write_text((";" * 99 + "\n") * (MUCH // 100) + "more A 192.0.2.3\n")
    path = tmp_path / "zone"

    def write(serial):
        path.write_text(text(serial) + f"$INCLUDE {tmp_path / 'included'}\n")

    write(1)
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge], "verify-time": "1h"}])
    server.start("one.test")
    hold.touch()
    assert server.control("reload")["zones_being_judged"] == 0, "it is served"
    write(2)
    assert server.control("reload")["zones_being_judged"] == 1

    def judges():
        return {pid for pid, words in command_lines().items() if judge in words and "--verifier" in words}

    servers.wait_until("its program runs", judges)
    first = judges()
    assert server.control("reload")["zones_being_judged"] == 1
    assert judges() == first
    (tmp_path / "included").write_text((";" * 99 + "\n") * (MUCH // 100) + "more A 192.0.2.4\n")
    assert server.control("reload")["zones_being_judged"] == 1
    servers.wait_until("another one runs", lambda: judges() and not judges() & first)
    hold.unlink()
    becomes(server, "one.test", 2)
    assert server.ask("more.one.test").answer[0][0].address == "192.0.2.4"


# What is held up ----------------------------------------------------------------------------------


def test_more_programs_hang_than_have_places(pando, tmp_path):
    world = Hanging(pando, tmp_path, hanging=PLACES_OF_FILES + 3)
    (tmp_path / "up").write_text(text(1))
    primary = pando([{"name": "up.test", "file": str(tmp_path / "up"), "allow-transfer": ["127.0.0.1"]}])
    primary.start("up.test")
    server = world.server
    server.remotes = [{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]
    server.zones.append({"name": "up.test", "primaries": ["up"], "verify-command": [world.judge]})
    server.write_config()
    server.start("plain.test")
    for name in [*world.names, "one.test", "up.test"]:
        becomes(server, name, 1)
    world.hang()
    servers.wait_until("all places are taken", lambda: len(programs(world)) == PLACES_OF_FILES, 120)
    for name in ("plain.test", "one.test"):
        world.write(name, 2)
    assert server.control("reload")["zones_being_judged"] == len(world.names) + 1
    becomes(server, "plain.test", 2)
    row = world.status("one.test")
    assert (row["serial"], row["judged_by"], row["judged_since"]) == (1, world.judge, 0), "it waits for a place"
    assert len(programs(world)) == PLACES_OF_FILES
    (tmp_path / "up").write_text(text(2))
    primary.control("reload")
    server.control("zone", "refresh", "up.test")
    becomes(server, "up.test", 2)  # transfers have places of their own
    world.write("one.test", 1)
    assert server.control("reload")["zones_being_judged"] == len(world.names), "it was put back"
    assert world.status("one.test")["judged_by"] == ""
    judged = [zone for zone in world.names if world.status(zone)["judged_since"]]
    assert len(judged) == PLACES_OF_FILES
    server.zones = [zone for zone in server.zones if zone["name"] not in judged]
    server.write_config()
    server.control("reload")
    left = [name for name in world.names if name not in judged]
    servers.wait_until("the others have their places", lambda: len(programs(world)) == len(left), 60)
    world.hold.unlink()
    for name in left:
        becomes(server, name, 2)


@pytest.mark.parametrize("how", ["other program", "no program", "secondary"])
def test_a_reload_during_a_start_waits_for_no_program_that_it_takes_away(pando, tmp_path, how):
    """The start's last jobs, which have the former configuration, begin only after the reload has."""
    hold = tmp_path / "hold"
    hold.touch()
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    small, large = tmp_path / "small", tmp_path / "large"
    small.write_text(text(7))
    large.write_text(text(1) + (";" * 99 + "\n") * (MUCH // 100))
    threads = len(os.sched_getaffinity(0))
    first = [f"large{number}.test" for number in range(threads)]
    last = {"name": "last.test", "file": str(small), "verify-command": [judge], "verify-time": "1h"}
    zones = [*({"name": name, "file": str(large)} for name in first),
             *({"name": f"small{number}.test", "file": str(small)} for number in range(1024 * (threads + 1))), last]
    server = pando(zones, remotes=[{"name": "up", "address": ["127.0.0.1@9"]}])
    pause = tmp_path / "pause"
    pause.touch()
    server.pause_at = ("zone-file", pause)
    start = threading.Thread(target=lambda: server.start(first[0]), daemon=True)
    start.start()

    def status(name):
        return server.control("zone", "status", name, check=False) or {}

    servers.wait_until("all threads are held", lambda: all(status(name).get("load_phase") for name in first), 60)
    if how == "other program":
        last["verify-command"] = ["/bin/true"]
    elif how == "no program":
        last.pop("verify-command")
    else:
        last.pop("file")
        last.pop("verify-command")
        last.update(primaries=["up"])
    zones.append({"name": "new.test", "file": str(small)})
    server.write_config()
    result = {}
    reload = threading.Thread(target=lambda: result.update(server.control("reload")), daemon=True)
    reload.start()
    servers.wait_until("the reload has its zones", lambda: status("new.test").get("name"), 60)
    assert status("last.test")["judged_by"] == ""
    pause.unlink()
    reload.join(100)
    assert result.get("zones_being_judged") == 0
    start.join()
    row = status("last.test")
    assert row["judged_by"] == "" and not running(judge)
    assert row["kind" if how == "secondary" else "serial"] == ("secondary" if how == "secondary" else 7)
