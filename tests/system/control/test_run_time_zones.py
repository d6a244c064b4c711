"""Zones that are added, removed and configured while the server runs, and kept over restarts."""

import json
import re
import socket
import statistics
import subprocess
import sys
import threading
import time

import dns.query
import dns.rcode
import dns.update
import dns.xfr
import pytest

import servers
from test_records import TEXT, ctl, refused

sys.path.insert(0, str(servers.SOURCE / "contrib"))
from pando_control import Control, ControlError  # noqa: E402

BASE = "base.test"
TEMPLATES = "templates:\n  - {name: customers, allow-transfer: [{address: 127.0.0.1}]}\n"
SMALL = "@ 300 SOA ns1.base.test. admin.base.test. 1 2 3 4 5\n@ 300 NS ns1.base.test.\n"


class Panel:
    """A server whose zones come and go, and what a hosting panel does with it."""

    def __init__(self, pando, tmp_path, **options):
        self.file = tmp_path / "a.zone"
        self.file.write_text(TEXT)
        (tmp_path / "small.zone").write_text(SMALL)
        self.small = str(tmp_path / "small.zone")
        self.server = pando(
            [{"name": BASE, "file": str(self.file), "allow-update": [{"address": "127.0.0.1"}]}],
            remotes=[{"name": "upstream", "address": ["127.0.0.1@9"]}], **options)
        self.server.config.write_text(self.server.config.read_text() + TEMPLATES)
        self.list = self.server.folder / "journal/added-zones.list"
        self.mark = self.server.folder / "journal/added-zones.mark"

    def start(self, zone=BASE):
        self.server.start(zone)
        return self

    def restart(self, zone=BASE):
        self.server.kill()
        return self.start(zone)

    def do(self, *words):
        """A command that has to succeed; what it prints."""
        code, out, err = ctl(self.server, "zone", *words)
        assert code == 0, f"{words}: {out}{err}"
        return out

    def add(self, name, *words):
        return self.do("add", name, "--template", "customers", "--file", str(self.file), *words)

    def add_array(self, text, timeout=300):
        return subprocess.run(
            [str(servers.build_folder() / "pandoctl"), "--config", str(self.server.config), "zone", "add", "-"],
            input=text, capture_output=True, text=True, timeout=timeout)

    def transfers(self, zone):
        """Whether a transfer is allowed, and has all records."""
        try:
            return len(self.server.records(zone)) == 7
        except (dns.xfr.TransferError, dns.query.TransferError):
            return False

    def serves(self, zone):
        return self.server.ask(zone, "SOA").rcode() == dns.rcode.NOERROR

    def zones(self):
        return self.server.control("status")["zones"]

    def update(self, zone, name, address="192.0.2.99"):
        change = dns.update.Update(zone)
        change.replace(name, 60, "A", address)
        return dns.query.udp(change, "127.0.0.1", port=self.server.port, timeout=30).rcode()

    def kill_all(self):
        """The host restarts: store and processes are gone."""
        self.server.lose_memory()


@pytest.fixture
def panel(pando, tmp_path):
    return Panel(pando, tmp_path).start()


def test_a_list_says_that_a_zone_was_added(panel):
    panel.add("new.test")
    rows = {row["name"]: row for row in panel.server.control("zone", "list")}
    for name, added in (("new.test.", True), (f"{BASE}.", False)):
        status = panel.server.control("zone", "status", name)
        assert rows[name]["added"] is status["added"] is added
        for member in ("serial", "records", "names", "history", "catalog", "catalog_role", "frozen"):
            assert rows[name][member] == status[member], member


def test_a_zone_is_added_served_kept_over_a_kill_and_removed(panel):
    assert panel.add("new.test") == "1 zone added\n"
    assert panel.server.serial("new.test") == 10, "its file was read before the answer"
    assert panel.transfers("new.test"), "the template allows transfers"
    assert [panel.server.control("zone", "status", zone)["added"] for zone in ("new.test", BASE)] == [True, False]
    assert f"new.test. {panel.file} customers\n" in panel.list.read_text()
    panel.restart("new.test")
    panel.server.control("reload")
    assert panel.serves("new.test") and panel.serves(BASE)
    assert panel.server.control("config", "check")["zones"] == 2
    assert panel.do("remove", "new.test") == "1 zone removed\n"
    assert not panel.serves("new.test")
    panel.restart()
    assert not panel.serves("new.test") and panel.zones() == 1
    panel.server.control("store", "check")


def test_added_zones_outlive_the_host(panel):
    panel.add("new.test")
    panel.add("other.test")
    panel.do("remove", "other.test")
    panel.kill_all()
    panel.start("new.test")
    assert not panel.serves("other.test") and panel.zones() == 2


def test_settings_of_an_added_zone_change_at_once(panel):
    panel.do("add", "new.test", "--file", str(panel.file))
    assert not panel.transfers("new.test")
    panel.do("configure", "new.test", "allow-transfer", '[{"address": "127.0.0.1"}]')
    assert panel.transfers("new.test")
    panel.do("configure", "new.test", "allow-transfer")
    assert not panel.transfers("new.test")
    panel.do("configure", "new.test", "template", "customers")
    assert panel.transfers("new.test")
    panel.do("configure", "new.test", "allow-update", '[{"address": "127.0.0.1"}]')
    assert panel.update("new.test", "more") == dns.rcode.NOERROR
    panel.restart("new.test")
    assert panel.update("new.test", "yet-more") == dns.rcode.NOERROR


def test_an_added_secondary_is_transferred_and_changes_its_primary(panel, pando, tmp_path):
    (tmp_path / "sent.zone").write_text(TEXT)
    primaries = [pando([{"name": "sent.test", "file": str(tmp_path / "sent.zone"),
                         "allow-transfer": [{"address": "127.0.0.1"}]}]).start("sent.test") for _ in range(2)]
    remotes = "".join(f"  - {{name: p{number}, address: [127.0.0.1@{primary.port}]}}\n"
                      for number, primary in enumerate(primaries))
    panel.server.config.write_text(panel.server.config.read_text().replace("remotes:\n", "remotes:\n" + remotes))
    panel.server.control("reload")
    panel.do("add", "sent.test", "--primary", "p0")
    servers.wait_until("it was transferred", lambda: panel.serves("sent.test"))
    assert '"primaries":["p0"]' in panel.list.read_text()
    panel.do("configure", "sent.test", "primaries", '["p1"]')
    primaries[0].stop()
    assert panel.server.control("zone", "status", "sent.test")["primaries"] == [f"127.0.0.1@{primaries[1].port}"]
    assert panel.serves("sent.test"), "its data stay"
    panel.restart("sent.test")
    panel.do("remove", "sent.test")
    assert not panel.serves("sent.test")
    panel.do("add", "sent.test", "--primary", "p1")
    servers.wait_until("it was transferred again", lambda: panel.serves("sent.test"))


def test_updates_of_a_removed_zone_wait_for_its_return_or_a_purge(panel):
    added = ("new.test", "--file", str(panel.file), 'allow-update=[{"address":"127.0.0.1"}]')
    panel.do("add", *added)
    assert panel.update("new.test", "kept") == dns.rcode.NOERROR
    assert "updates, which are kept" in panel.do("remove", "new.test")
    panel.restart()
    servers.wait_until("the journal was read", lambda: "new.test" in ctl(panel.server, "zone", "list")[1])
    panel.do("add", *added)
    assert panel.server.ask("kept.new.test").answer, "the zone came back with its updates"
    panel.do("remove", "new.test")
    panel.do("purge", "new.test")
    panel.do("add", *added)
    assert panel.serves("new.test") and not panel.server.ask("kept.new.test").answer


def test_a_journal_that_was_read_for_other_zones_hides_no_change(panel):
    """The journal is not read again for each new zone."""
    added = ("new.test", "--file", str(panel.file), 'allow-update=[{"address":"127.0.0.1"}]')
    panel.add("first.test")
    panel.do("add", *added)
    assert panel.update("new.test", "kept") == dns.rcode.NOERROR
    panel.do("remove", "new.test")
    panel.add("second.test")
    panel.do("add", *added)
    assert panel.server.ask("kept.new.test").answer, "the zone came back with its updates"
    panel.do("remove", "new.test")
    panel.add("third.test")
    panel.do("purge", "new.test")
    panel.do("add", *added)
    assert panel.serves("new.test") and not panel.server.ask("kept.new.test").answer


def test_zones_are_added_one_by_one_with_requests_in_flight(panel):
    zones = [f"z{number}.test" for number in range(200)]
    zones[77] = zones[10]
    with Control(panel.server.folder / "run") as control:
        results = list(control.add_each({"name": zone, "file": panel.small} for zone in zones))
        assert [at for at, result in enumerate(results) if isinstance(result, ControlError)] == [77]
        assert results[77].code == "exists" and results[78]["zones_added"] == 1
        assert control.status()["zones"] == 200, "the next reply is that of the next request"
    assert all(panel.serves(zone) for zone in zones)
    panel.restart()
    servers.wait_until("all zones are loaded", lambda: panel.server.control("status")["zones_loaded"] == 200)


def test_a_transaction_goes_with_its_zone(panel):
    """Another customer's zone of the same name gets nothing of it."""
    panel.add("new.test")
    panel.do("begin", "new.test", BASE)
    panel.do("set", "new.test", "before", "A", "192.0.2.99")
    panel.do("remove", "new.test")
    panel.add("new.test")
    code, _, err = ctl(panel.server, "zone", "commit", "new.test")
    assert code == 1 and "no open transaction" in err
    panel.do("begin", "new.test")
    assert "before" not in panel.do("diff", "new.test")
    panel.do("abort", "new.test", BASE)


def test_a_zone_whose_file_is_missing_stays_added(panel, tmp_path):
    code, out, err = ctl(panel.server, "zone", "add", "later.test", "--file", str(tmp_path / "later.zone"))
    assert code == 1 and out == "1 zone added\n" and "later.test." in err and "later.zone" in err
    assert panel.server.ask("later.test", "SOA").rcode() == dns.rcode.SERVFAIL
    assert panel.zones() == 2
    (tmp_path / "later.zone").write_text(TEXT)
    panel.server.control("reload")
    assert panel.serves("later.test")
    panel.do("remove", "later.test")


def test_wrong_words_are_refused_and_leave_nothing(panel):
    file = str(panel.file)
    panel.do("add", "new.test", "--file", file)
    before = panel.list.read_text()
    for reason, words in [("the configuration has zone base.test.", ("add", BASE, "--file", file)),
                          ("was added before", ("add", "NEW.test", "--file", file)),
                          ("no template is named 'absent'", ("add", "x.test", "--template", "absent", "--file", file)),
                          ("neither 'file' nor 'primaries'", ("add", "x.test")),
                          ("absent", ("add", "x.test", "--primary", "absent")),
                          ("zone x.test.: ", ("add", "x.test", "--file", file, "colour=blue")),
                          ("KEY=VALUE", ("add", "x.test", "--file", file, "colour")),
                          ("blanks", ("add", "x.test", "--file", "a b")),
                          ("x..test", ("add", "x..test", "--file", file)),
                          ("is the configuration's", ("remove", BASE)),
                          ("no zone absent.test.", ("remove", "new.test", "absent.test")),
                          ("is the configuration's", ("configure", BASE, "notify")),
                          ("keeps its name", ("configure", "new.test", "name", "x")),
                          ("no template is named", ("configure", "new.test", "template", "absent"))]:
        refused(panel.server, reason, *words)
    for text in ("[]", "{", '{"name": "x.test"}', '[{"file": "x"}]', '[["x"]]', "[" * 10_000 + "]" * 10_000,
                 json.dumps([{"name": "x.test", "file": "x" * 2_000_000}]),
                 json.dumps([{"name": "x.test", "file": file}, {"name": "y.test"}])):
        done = panel.add_array(text)
        assert done.returncode == 1 and done.stderr.startswith("pandoctl: "), f"{text[:99]}: {done.stderr}"
    assert panel.list.read_text() == before
    assert panel.zones() == 2
    assert ctl(panel.server, "zone", "add")[0] == 2, "usage"


def test_a_zone_that_the_configuration_gets_is_the_configurations(panel):
    panel.add("new.test")
    panel.server.config.write_text(panel.server.config.read_text().replace(
        "zones:\n", f'zones:\n  - {{"name": "new.test", "file": "{panel.file}"}}\n'))
    told = panel.server.control("reload")
    assert any("new.test" in warning and "configuration's zone is served" in warning for warning in told["warnings"])
    assert panel.zones() == 2 and not panel.transfers("new.test")
    refused(panel.server, "the configuration has zone", "configure", "new.test", "notify")
    panel.do("remove", "new.test")
    assert panel.serves("new.test"), "the configuration's zone stays"
    assert panel.server.control("reload")["warnings"] == []


def test_a_list_that_is_missing_keeps_the_zones_that_are_served(panel):
    panel.add("new.test")
    kept = panel.list.read_bytes()
    panel.list.unlink()
    code, _, err = ctl(panel.server, "reload")
    assert code == 1 and "added-zones.list is missing" in err
    assert panel.serves("new.test")
    assert "is missing" in panel.server.control("status")["problem"]
    assert "is missing" in panel.server.log()
    refused(panel.server, "is missing", "add", "more.test", "--file", str(panel.file))
    # The next manager knows it as well.
    panel.restart("new.test")
    servers.wait_until("it was missed", lambda: panel.server.control("status")["zone_lists"] == "failed")
    assert "is missing" in panel.server.control("status")["problem"]
    assert panel.serves("new.test") and panel.serves(BASE)
    panel.list.write_bytes(kept)
    panel.server.control("reload")
    assert panel.server.control("status")["problem"] == ""
    panel.add("more.test")
    assert panel.zones() == 3
    # Whoever wants them gone says so.
    panel.list.write_text("commit\n")
    panel.server.control("reload")
    assert panel.zones() == 1


def test_a_folder_that_is_missing_keeps_the_zones_that_are_served(panel):
    """As with a disk that is not mounted."""
    panel.add("new.test")
    folder = panel.server.folder / "journal"
    folder.rename(panel.server.folder / "away")
    assert ctl(panel.server, "reload")[0] == 1
    assert panel.serves("new.test")
    assert "is missing" in panel.server.control("status")["problem"]
    refused(panel.server, "is missing", "add", "more.test", "--file", str(panel.file))
    (panel.server.folder / "away").rename(folder)
    panel.server.control("reload")
    panel.restart("new.test")
    assert panel.zones() == 2


def test_a_list_that_is_damaged_keeps_the_zones_that_are_served(panel):
    panel.add("new.test")
    panel.add("other.test")
    kept = panel.list.read_text()
    panel.list.write_text(kept.replace("new.test.", "old.test."))
    code, _, err = ctl(panel.server, "reload")
    assert code == 1 and "checksum" in err
    assert panel.serves("new.test") and "checksum" in panel.server.control("status")["problem"]
    panel.list.write_text(re.sub("commit .*", "commit", kept.replace("new.test.", "old.test.")))
    panel.server.control("reload")
    assert panel.serves("old.test") and not panel.serves("new.test")


@pytest.mark.parametrize("point", ["added-zones-written", "added-zones-synced", "added-zones-rewritten",
                                   "added-zones-kept"])
def test_a_kill_leaves_a_change_whole_or_not_at_all(pando, tmp_path, point):
    panel = Panel(pando, tmp_path)
    if point != "added-zones-rewritten":  # that comes with the first zone
        panel.start()
        panel.add("acknowledged.test")
        panel.server.stop()
    panel.server.crash_at = point
    panel.start()
    zones = [f"z{number}.test" for number in range(50)]
    done = panel.add_array(json.dumps([{"name": zone, "file": panel.small} for zone in zones]))
    assert done.returncode == 3, f"the manager has died: {done.stdout}{done.stderr}"
    panel.server.process.wait(30)
    panel.server.crash_at = None
    panel.start()
    servers.wait_until("all zones are loaded", lambda: (
        lambda status: status["zones_loaded"] == status["zones"])(panel.server.control("status")))
    there = [zone for zone in zones if panel.serves(zone)]
    assert there in ([], zones)
    if point != "added-zones-rewritten":
        assert panel.serves("acknowledged.test")
    if point in ("added-zones-synced", "added-zones-kept"):
        assert there == zones, "the list was durable"
    rest = [zone for zone in zones if zone not in there]
    if rest:
        assert panel.add_array(json.dumps([{"name": zone, "file": panel.small} for zone in rest])).returncode == 0
    panel.do("remove", *zones)
    panel.server.control("store", "check")


def test_kills_at_any_time_lose_no_acknowledged_zone(panel):
    expected, unsure = set(), set()
    for life in range(6):
        with Control(panel.server.folder / "run") as control:
            killer = threading.Timer(0.05 + 0.15 * life, panel.server.process.kill)
            killer.start()
            number = 0
            try:
                while True:
                    zones = {f"{part}.z{number}.l{life}.test" for part in ("a", "b", "c")}
                    unsure = zones
                    control.add_zones({"name": zone, "file": panel.small} for zone in zones)
                    expected |= zones
                    if number % 4 == 3:
                        unsure = {f"a.z{number}.l{life}.test"}
                        expected -= unsure
                        control.remove_zones(*unsure)
                        unsure = set()
                    number += 1
            except OSError:
                killer.join()
        panel.server.process.wait(30)
        panel.start()
        servers.wait_until("all zones are loaded", lambda: (
            lambda status: status["zones_loaded"] == status["zones"])(panel.server.control("status")))
        there = {row["name"].rstrip(".") for row in panel.server.control("zone", "list")} - {BASE}
        assert there - unsure == expected
        assert there & unsure in (set(), unsure), "a change is whole or absent"
        expected = there
    panel.server.control("store", "check")


def test_kills_lose_no_acknowledged_zone_of_requests_in_flight(panel):
    expected = set()
    for life in range(4):
        zones = [f"z{number}.l{life}.test" for number in range(20_000)]
        with Control(panel.server.folder / "run") as control:
            killer = threading.Timer(0.1 + 0.2 * life, panel.server.process.kill)
            killer.start()
            try:
                for zone, result in zip(zones, control.add_each({"name": zone, "file": panel.small} for zone in zones)):
                    assert result["zones_added"] == 1
                    expected.add(zone)
            except OSError:
                killer.join()
        panel.server.process.wait(30)
        panel.start()
        servers.wait_until("all zones are loaded", lambda: (
            lambda status: status["zones_loaded"] == status["zones"])(panel.server.control("status")))
        there = {row["name"].rstrip(".") for row in panel.server.control("zone", "list")} - {BASE}
        assert expected <= there
        unsure = there - expected
        assert unsure == set(zones[len(expected & set(zones)):][:len(unsure)]), "they were added in order"
        expected = there
    panel.server.control("store", "check")


def test_several_clients_and_reloads_at_once(panel):
    failed = []

    def run(client):
        for number in range(15):
            zone = f"z{number}.c{client}.test"
            code, _, err = ctl(panel.server, "zone", "add", zone, "--file", panel.small)
            if code == 0 and number % 3 == 0:
                code, _, err = ctl(panel.server, "zone", "remove", zone)
            if code != 0:
                failed.append(err)

    def fail():
        for number in range(15):
            refused(panel.server, "neither", "add", f"bad{number}.test")

    threads = [threading.Thread(target=run, args=(client,)) for client in range(3)] + [threading.Thread(target=fail)]
    for thread in threads:
        thread.start()
    for _ in range(5):
        panel.server.control("reload")
    for thread in threads:
        thread.join()
    assert failed == []
    assert panel.zones() == 1 + 3 * 10
    panel.restart("z1.c0.test")
    servers.wait_until("all zones are loaded", lambda: panel.server.control("status")["zones_loaded"] == 31)
    panel.server.control("store", "check")


def test_two_clients_on_one_zone_get_one_success(panel):
    """Each zone is added by one of them, whoever comes first, and removed by one."""
    outcomes = []
    folder = panel.server.folder / "run"

    def run(client):
        with Control(folder) as control:
            for verb in ("add", "remove") * 20:
                barrier.wait()
                try:
                    if verb == "add":
                        control.add_zones([{"name": "same.test", "file": panel.small,
                                            "notify-delay": f"{client + 1}s"}])
                    else:
                        control.remove_zones("same.test")
                    outcomes.append((verb, ""))
                except ControlError as error:
                    outcomes.append((verb, str(error)))
                barrier.wait()

    barrier = threading.Barrier(2)
    threads = [threading.Thread(target=run, args=(client,)) for client in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 80
    for verb, reason in (("add", "was added before"), ("remove", "no zone same.test.")):
        told = sorted(text for one, text in outcomes if one == verb)
        assert told[:20] == [""] * 20 and all(reason in text for text in told[20:]), told
    assert panel.zones() == 1
    panel.server.control("store", "check")


@pytest.mark.release
def test_a_full_store_takes_all_zones_of_a_change_or_none(pando, tmp_path):
    panel = Panel(pando, tmp_path, size_limit="4MiB").start()
    panel.do("add", "first.test", "--file", panel.small)

    def fill(part):
        return panel.add_array(json.dumps([{"name": f"z{number}.part{part}.test", "primaries": ["upstream"]}
                                           for number in range(10_000)]))

    added = 0
    done = fill(added)
    while done.returncode == 0 and added < 20:
        added += 1
        done = fill(added)
    assert done.returncode == 1 and "size limit" in done.stderr and done.stdout == "", done
    before = panel.list.read_text()
    assert f".part{added - 1}.test." in before and panel.zones() == 2 + 10_000 * added
    assert f"z77.part{added}.test." not in ctl(panel.server, "zone", "list")[1]
    refused(panel.server, f"no zone z77.part{added}.test.", "remove", f"z77.part{added}.test")
    panel.restart()
    assert panel.zones() == 2 + 10_000 * added and panel.serves("first.test")
    panel.do("remove", "first.test")
    panel.server.control("store", "check")


def test_clients_that_die_leave_whole_changes(panel):
    path = str(panel.server.folder / "run/control.sock")
    request = json.dumps({"verb": "zone-add", "args": {"zones": [
        {"name": "cut.test", "file": panel.small}]}}).encode()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        client.send(b"+" + request[:40])
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        client.send(b"." + request.replace(b"cut.test", b"whole.test"))
    servers.wait_until("the second one was read", lambda: panel.serves("whole.test"))
    assert not panel.serves("cut.test")
    panel.do("remove", "whole.test")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        for _ in range(9):  # more than a request may have
            try:
                client.send(b"+" + b"x" * 130_000)
            except OSError:
                break
        try:
            answer = client.recv(1 << 17)
        except ConnectionResetError:
            answer = b""
        assert answer == b"", "the connection is closed"
    assert panel.zones() == 1


@pytest.mark.release
def test_ten_thousand_zones_are_added_while_updates_go_on(panel):
    stop, times = threading.Event(), []

    def update():
        for number in range(1_000_000):
            if stop.is_set():
                return
            begun = time.monotonic()
            assert panel.update(BASE, "busy", f"10.0.{number // 250 % 250}.{number % 250}") == dns.rcode.NOERROR
            times.append(time.monotonic() - begun)
            time.sleep(0.002)

    thread = threading.Thread(target=update)
    thread.start()
    begun = time.monotonic()
    done = panel.add_array(json.dumps([{"name": f"z{number}.many.test", "file": panel.small, "template": "customers"}
                                       for number in range(10_000)]))
    seconds = time.monotonic() - begun
    stop.set()
    thread.join()
    assert done.returncode == 0 and done.stdout == "10000 zones added\n", done.stderr
    assert panel.serves("z9999.many.test") and panel.zones() == 10_001
    quantile = statistics.quantiles(times, n=100)[98] if len(times) > 100 else max(times)
    print(f"{10_000 / seconds:.0f} zones/s, p99 of {len(times)} updates {quantile * 1000:.1f} ms")
    # One by one: the time of each does not grow with the number of zones.
    with Control(panel.server.folder / "run") as control:
        begun = time.monotonic()
        for number in range(100):
            control.add_zones([{"name": f"single{number}.test", "file": panel.small}])
        print(f"{100 / (time.monotonic() - begun):.0f} zones/s, one by one")
    panel.restart("z77.many.test")
    servers.wait_until("all zones", lambda: panel.server.control("status")["zones_loaded"] == 10_101, 120)
    assert panel.do("remove", *[f"z{number}.many.test" for number in range(2000)]) == "2000 zones removed\n"
    assert not panel.serves("z1999.many.test") and panel.serves("z2000.many.test")
