"""The manager as its operator sees it: start, reload, edited files, control, stop."""

import os
import signal
import socket
import subprocess

import dns.rcode
import dns.update
import dns.query
import pytest

import servers

ZONE_FILE = """$TTL 300
@ SOA ns1 admin {serial} 3600 600 86400 300
@ NS ns1
ns1 A 192.0.2.1
www A {address}
"""
OPEN = {"allow-update": [{"address": "127.0.0.0/8"}], "allow-transfer": [{"address": "127.0.0.0/8"}]}


def zone_file(folder, name, serial=1, address="192.0.2.10", more=""):
    path = folder / f"{name}.zone"
    path.write_text(ZONE_FILE.format(serial=serial, address=address) + more)
    os.utime(path, ns=(0, zone_file.clock))
    zone_file.clock += 10**9
    return {"name": name, "file": str(path), **OPEN}


zone_file.clock = 10**18


def address(server, name):
    answer = server.ask(name)
    return sorted(str(rdata) for rrset in answer.answer for rdata in rrset) if answer else None


def add(server, zone, name, text):
    update = dns.update.UpdateMessage(zone)
    update.add(name, 60, "A", text)
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == 0


def reload(server):
    return server.control("reload")


def test_a_bad_zone_does_not_stop_the_others(pando, tmp_path):
    good = zone_file(tmp_path, "good.test")
    bad = zone_file(tmp_path, "bad.test", more="broken A 300.0.0.1\n")
    server = pando([bad, good]).start("good.test")
    assert address(server, "www.good.test") == ["192.0.2.10"]
    assert server.ask("www.bad.test").rcode() == dns.rcode.SERVFAIL
    assert server.ask("www.other.test").rcode() == dns.rcode.REFUSED
    status = server.control("zone", "status", "bad.test")
    assert status["state"] == "not-loaded" and "bad.test.zone:6" in status["problem"]


def test_a_repaired_zone_is_served_after_a_reload(pando, tmp_path):
    zone = zone_file(tmp_path, "late.test", more="broken A 300.0.0.1\n")
    server = pando([zone, zone_file(tmp_path, "good.test")]).start("good.test")
    zone_file(tmp_path, "late.test")
    reload(server)
    assert address(server, "www.late.test") == ["192.0.2.10"]
    assert server.control("zone", "status", "late.test")["state"] == "ok"


def test_an_edited_file_is_merged_and_a_broken_edit_changes_nothing(pando, tmp_path):
    zone = zone_file(tmp_path, "edit.test")
    server = pando([zone]).start("edit.test")
    zone_file(tmp_path, "edit.test", serial=5, address="192.0.2.20")
    assert reload(server)["zones_changed"] == 1
    assert address(server, "www.edit.test") == ["192.0.2.20"] and server.serial("edit.test") == 5
    zone_file(tmp_path, "edit.test", serial=6, address="192.0.2")
    reload(server)
    assert address(server, "www.edit.test") == ["192.0.2.20"] and server.serial("edit.test") == 5


def test_updates_after_a_merged_edit_survive_the_next_reload(pando, tmp_path):
    zone = zone_file(tmp_path, "both.test")
    server = pando([zone]).start("both.test")
    zone_file(tmp_path, "both.test", address="192.0.2.20")
    reload(server)
    add(server, "both.test", "dyn", "192.0.2.99")
    assert reload(server)["zones_changed"] == 0
    assert address(server, "dyn.both.test") == ["192.0.2.99"]
    assert address(server, "www.both.test") == ["192.0.2.20"]


def test_zones_come_and_go_by_sighup(pando, tmp_path):
    one, two = zone_file(tmp_path, "one.test"), zone_file(tmp_path, "two.test")
    server = pando([one]).start("one.test")
    assert server.ask("www.two.test").rcode() == dns.rcode.REFUSED
    server.zones = [two]
    server.write_config()
    server.process.send_signal(signal.SIGHUP)
    servers.wait_until("two.test is served", lambda: address(server, "www.two.test"))
    servers.wait_until("one.test is gone",
                       lambda: server.ask("www.one.test").rcode() == dns.rcode.REFUSED)


def test_a_sighup_during_a_reload_brings_one_more_reload(pando, tmp_path):
    one, two = zone_file(tmp_path, "one.test"), zone_file(tmp_path, "two.test")
    held = tmp_path / "held"
    server = pando([one])
    server.pause_at = ("configuration-read", held)
    server.start("one.test")
    held.touch()
    server.process.send_signal(signal.SIGHUP)
    servers.wait_until("a reload is under way", lambda: "reload_started" in server.log())
    server.zones = [one, two]
    server.write_config()
    for _ in range(3):
        server.process.send_signal(signal.SIGHUP)
        servers.wait_until("it is remembered", lambda: "reload_put_off" in server.log())
        assert server.control("status")["zones"] == 1  # so that no two of them are one
    refused = subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert refused.returncode == 1 and "a reload or the end of the process is under way" in refused.stderr
    held.unlink()
    servers.wait_until("both reloads are done", lambda: server.log().count("reload_finished") >= 2)
    assert address(server, "www.two.test") == ["192.0.2.10"]
    reload(server)
    assert server.log().count("reload_started") == 3 and server.log().count("reload_put_off") == 1


def with_rules(file, number, *addresses):
    """2,000 zones, each with a rule that no other zone has."""
    return [{"name": f"z{i}.test", "file": file, "allow-query": [
        {"address": f"10.{number}.{i // 256}.{i % 256}"}, *({"address": address} for address in addresses)]}
            for i in range(2000)]


def test_updates_are_answered_while_a_reload_changes_the_rules_of_all_zones(pando, tmp_path):
    """The file of a new zone holds the reload, so that its end cannot come before the answers."""
    hold, updated = tmp_path / "hold", zone_file(tmp_path, "one.test")
    small = zone_file(tmp_path, "small.test")["file"]
    large = zone_file(tmp_path, "large.test", more="".join(f"h{i} TXT {'x' * 60}\n" for i in range(10_000)))
    server = pando([updated, *with_rules(small, 1)], workers=1)
    server.pause_at = ("zone-file", hold)
    server.start("one.test")

    def rcodes():
        return {server.ask(f"www.z{i}.test").rcode() for i in (0, 999, 1999)}

    servers.wait_until("all are loaded", lambda: server.control("status")["zones_loaded"] == 2001)
    assert rcodes() == {dns.rcode.REFUSED}
    hold.touch()
    server.zones = [updated, large, *with_rules(small, 2, "127.0.0.1")]
    server.write_config()
    reload = subprocess.Popen(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)
    servers.wait_until("all have the new rules", lambda: rcodes() == {dns.rcode.NOERROR})
    add(server, "one.test", "during", "192.0.2.77")
    assert reload.poll() is None and "reload_finished" not in server.log()
    # Another reload comes meanwhile, with other rules again.
    server.zones = [updated, large, *with_rules(small, 3)]
    server.write_config()
    server.process.send_signal(signal.SIGHUP)
    servers.wait_until("it is remembered", lambda: "reload_put_off" in server.log())
    add(server, "one.test", "later", "192.0.2.78")
    assert reload.poll() is None and "reload_finished" not in server.log()
    hold.unlink()
    told = reload.communicate(timeout=120)[0]
    assert reload.returncode == 0, told
    servers.wait_until("both reloads are done", lambda: server.log().count("reload_finished") == 2)
    assert rcodes() == {dns.rcode.REFUSED}
    assert address(server, "during.one.test") == ["192.0.2.77"]
    assert address(server, "later.one.test") == ["192.0.2.78"]


def test_a_broken_configuration_is_refused_and_the_old_one_stays(pando, tmp_path):
    server = pando([zone_file(tmp_path, "one.test")]).start("one.test")
    server.config.write_text("server: {udp-payload: 1}\n")
    done = subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode != 0
    server.write_config()
    assert address(server, "www.one.test") == ["192.0.2.10"]
    assert reload(server)["zones_changed"] == 0


def test_a_reload_tells_which_files_could_not_be_loaded(pando, tmp_path):
    server = pando([zone_file(tmp_path, "one.test")]).start("one.test")
    path = tmp_path / "one.test.zone"
    path.write_text(path.read_text() + "bad A 1.2.3\n")
    done = subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 1
    line = len(path.read_text().splitlines())
    assert f"error: one.test.: {path}:{line}: " in done.stdout
    assert address(server, "www.one.test") == ["192.0.2.10"]


def test_zone_status_shows_zones_whose_edit_is_not_served(pando, tmp_path):
    def status():
        done = subprocess.run(
            [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "status"],
            capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout

    folder = tmp_path / (200 * "d")  # so that the reason is longer than what a list has of it
    folder.mkdir()
    server = pando([zone_file(folder, "one.test"), zone_file(tmp_path, "two.test"),
                    {"name": "copy.test", "primaries": ["nobody"]}],
                   remotes=[{"name": "nobody", "address": ["127.0.0.1@1"]}]).start("one.test")
    zone_file(folder, "one.test", more="bad A 1.2.3\n")
    reload(server)
    servers.wait_until("the primary is asked in vain", lambda: "127.0.0.1@1" in status()[1])
    code, text = status()
    assert code == 1 and text.splitlines()[-1] == "1 of 3 zones ok, 2 with problems"
    [row] = [line.split() for line in text.splitlines() if " one.test." in line]
    assert row[3] == "ok" and row[5].startswith(str(tmp_path)) and row[5].endswith("d...")
    assert address(server, "www.one.test") == ["192.0.2.10"]
    rows = {row["name"]: row["problem"] for row in server.control("zone", "list")}
    whole = server.control("zone", "status", "one.test")["problem"]
    assert rows["two.test."] == "" and whole.startswith(rows["one.test."].removesuffix("..."))
    assert "one.test.zone:6:" in whole
    zone_file(folder, "one.test", address="192.0.2.30")
    reload(server)
    assert status()[1].splitlines()[-1] == "2 of 3 zones ok, 1 with problems"


def test_settings_change_with_a_reload(pando, tmp_path):
    zone = zone_file(tmp_path, "one.test")
    server = pando([zone]).start("one.test")
    zone["allow-query"] = [{"address": "192.0.2.0/24"}]
    server.write_config()
    assert reload(server)["zones_changed"] == 1
    assert server.ask("www.one.test").rcode() == dns.rcode.REFUSED


def test_a_restarted_manager_takes_over_store_and_workers(pando, tmp_path):
    server = pando([zone_file(tmp_path, "one.test")]).start("one.test")
    add(server, "one.test", "dyn", "192.0.2.99")
    before = {slot: row["pid"] for slot, row in server.workers().items()}
    server.kill()
    assert address(server, "dyn.one.test") == ["192.0.2.99"]
    server.start("one.test")
    servers.wait_until("workers are adopted",
                       lambda: [row["state"] for row in server.workers().values()] ==
                       ["serving"] * len(before))
    assert {slot: row["pid"] for slot, row in server.workers().items()} == before
    add(server, "one.test", "more", "192.0.2.98")
    assert address(server, "more.one.test") == ["192.0.2.98"]


def test_a_file_edited_while_the_manager_was_away_is_merged(pando, tmp_path):
    zone = zone_file(tmp_path, "one.test")
    server = pando([zone]).start("one.test")
    server.kill()
    zone_file(tmp_path, "one.test", serial=9, address="192.0.2.20")
    server.start("one.test")
    servers.wait_until("the edit is served",
                       lambda: address(server, "www.one.test") == ["192.0.2.20"])


def test_a_second_manager_refuses_to_start(pando, tmp_path):
    server = pando([zone_file(tmp_path, "one.test")]).start("one.test")
    second = subprocess.run(server.command(), capture_output=True, text=True, timeout=60,
                            cwd=server.folder, stdin=subprocess.DEVNULL)
    assert second.returncode != 0 and "start_failed" in second.stderr
    assert address(server, "www.one.test") == ["192.0.2.10"]
    assert server.control("status")["pid"] == server.process.pid


def test_stop_by_control_ends_workers_and_manager(pando, tmp_path):
    server = pando([zone_file(tmp_path, "one.test")]).start("one.test")
    server.control("stop")
    assert server.process.wait(30) == 0
    servers.wait_until("workers are gone", lambda: not server.left_over())


def test_the_service_manager_is_told(pando, tmp_path):
    path = str(tmp_path / "notify.sock")
    told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    told.bind(path)
    told.settimeout(30)
    server = pando([zone_file(tmp_path, "one.test")])
    environment = server.environment
    server.environment = lambda: {**environment(), "NOTIFY_SOCKET": path}
    def lines():
        """Of the next message that is not about descriptors (tests/system/restarts)."""
        while (found := told.recv(4096).decode().split("\n"))[0] in ("FDSTORE=1", "FDSTOREREMOVE=1"):
            pass
        return found
    server.start("one.test")
    assert "READY=1" in lines()
    server.process.send_signal(signal.SIGHUP)
    assert "RELOADING=1" in lines()
    assert "READY=1" in lines()
    server.stop()
    assert "STOPPING=1" in lines()


def test_zones_are_listed_in_pages(pando, tmp_path):
    zones = [zone_file(tmp_path, f"z{number:02}.test") for number in range(12)]
    server = pando(zones).start("z11.test")
    listed = server.control("zone", "list")
    assert [row["name"] for row in listed] == [f"z{number:02}.test." for number in range(12)]
    assert {row["state"] for row in listed} == {"ok"}


@pytest.mark.parametrize("count", [1, 3])
def test_the_number_of_workers_follows_a_reload(pando, tmp_path, count):
    server = pando([zone_file(tmp_path, "one.test")], workers=2).start("one.test")
    server.workers_wanted = count
    server.write_config()
    reload(server)
    servers.wait_until(f"{count} workers", lambda: [
        row["state"] for row in server.workers().values()] == ["serving"] * count)
    assert address(server, "www.one.test") == ["192.0.2.10"]
