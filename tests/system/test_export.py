"""Files of dynamic zones that are written by interval and on demand, and what an operator, clients and crashes do beside that."""

import pathlib
import shutil
import signal
import subprocess
import time

import dns.query
import dns.rcode
import dns.update
import dns.zone
import pytest

import servers
from test_edited_files import ZONE, Zone

BEFORE = {"www 60 A 192.0.2.10", "old 60 A 192.0.2.11"}
EXPORTED = {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20", "gone 60 A 192.0.2.21"}  # after the first updates
LATER = {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20", "late 60 A 192.0.2.22"}  # after those behind the export


class Exported(Zone):
    """A zone with updates: of the file's records "old" has gone; "dyn" and "gone" have come."""

    def __init__(self, make, folder, interval=None, **options):
        super().__init__(make, folder, **options)
        if interval:
            self.server.zones[0]["export-interval"] = interval
            self.server.write_config()
        self.write(*sorted(BEFORE))
        self.server.start(ZONE)
        self.settle()

    def first_updates(self):
        self.update(add=["dyn 60 A 192.0.2.20", "gone 60 A 192.0.2.21"], delete=["old 60 A 192.0.2.11"])

    def later_updates(self):
        self.update(add=["late 60 A 192.0.2.22"], delete=["gone 60 A 192.0.2.21"])

    def export(self, *words, check=True):
        return self.server.control("zone", "export", ZONE, *words, check=check)

    def refused(self, *words):
        """What pandoctl says when an export is refused."""
        done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(self.server.config), "zone", "export",
                               *(words or (ZONE,))], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 1 and done.stderr.count("\n") == 1, done
        return done.stderr

    def in_file(self, path=None):
        return records_of(path or self.path)

    def file_serial(self):
        return serial_of(self.path)

    def edit(self, old, new):
        """The operator replaces text in the file as it is."""
        text = self.path.read_text()
        assert old in text
        self.path.write_text(text.replace(old, new))

    def names(self):
        """Files in the zone's folder beside the server's own."""
        return sorted(path.name for path in self.path.parent.iterdir() if path.is_file())

    def wait_for_file(self, records):
        servers.wait_until("the file is written", lambda: self.in_file() == records)

    def expect(self, records, serial=None):
        """They are served whatever is started anew, and the serial stays."""
        serial = serial or self.live_serial()
        for again in (self.reload, self.restart, self.restart_host, self.reload):
            again()
            assert self.served() == records, again.__name__
            assert self.live_serial() == serial, again.__name__


def records_of(path):
    """Records of a zone file beside its apex, as Zone.served() gives them."""
    found = set()
    for name, ttl, rdata in dns.zone.from_file(str(path), ZONE, relativize=True).iterate_rdatas():
        if str(name) not in ("@", "ns1"):
            found.add(f"{name} {ttl} {dns.rdatatype.to_text(rdata.rdtype)} {rdata.to_text()}")
    return found


def serial_of(path):
    return dns.zone.from_file(str(path), ZONE, relativize=False).get_soa().serial


def line_of(path, owner):
    return next(line for line in path.read_text().splitlines(keepends=True) if line.startswith(owner))


@pytest.fixture
def zone(pando, tmp_path):
    return Exported(pando, tmp_path)


@pytest.fixture
def make(pando, tmp_path):
    return lambda **options: Exported(pando, tmp_path, **options)


# On demand. -------------------------------------------------------------------------------------------------------------

def test_an_exported_file_is_the_zone(zone):
    zone.first_updates()
    zone.path.chmod(0o644)
    done = zone.export()
    serial = zone.live_serial()
    assert done == {"zone": f"{ZONE}.", "serial": serial, "records": 6, "file": str(zone.path), "written": True}
    assert zone.in_file() == zone.served() == EXPORTED
    assert zone.file_serial() == serial
    assert zone.path.stat().st_mode & 0o777 == 0o644
    assert zone.names() == ["edit.zone"]
    checked = subprocess.run(["named-checkzone", "-i", "local", ZONE, str(zone.path)], capture_output=True, text=True,
                             timeout=60, stdin=subprocess.DEVNULL)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    transferred = dns.zone.from_xfr(dns.query.xfr("127.0.0.1", ZONE, port=zone.server.port, relativize=False), relativize=False)
    assert dns.zone.from_file(str(zone.path), ZONE, relativize=False) == transferred
    zone.expect(EXPORTED, serial)


def test_a_zone_that_did_not_change_is_not_written_again(zone):
    before = zone.path.read_text()
    assert not zone.export()["written"]
    assert zone.path.read_text() == before
    zone.first_updates()
    assert zone.export()["written"]
    text, status = zone.path.read_text(), zone.path.stat()
    assert not zone.export()["written"]
    zone.restart()
    assert not zone.export()["written"]
    zone.restart_host()
    assert not zone.export()["written"]
    assert (zone.path.read_text(), zone.path.stat().st_ino) == (text, status.st_ino)


def test_updates_after_an_export_are_beside_the_file(zone):
    zone.first_updates()
    zone.export()
    zone.later_updates()
    assert zone.in_file() == EXPORTED
    zone.expect(LATER)
    assert zone.in_file() == EXPORTED
    zone.export()
    assert zone.in_file() == LATER
    zone.expect(LATER)


@pytest.mark.parametrize("again", [Zone.reload, Zone.restart, Zone.restart_host], ids=["reload", "process", "host"])
@pytest.mark.parametrize("compacted", [False, True], ids=["whole journal", "compacted"])
def test_the_operator_has_the_word_over_exported_updates_and_later_ones_over_the_operator(make, again, compacted):
    zone = make(store_extra="  journal-limit: 1MiB")
    zone.first_updates()
    zone.export()
    zone.later_updates()
    if compacted:
        zone.compact()
    # "dyn" came by update before the export: it is the file's now. "late" came after it.
    zone.edit(line_of(zone.path, "dyn"), "new 60 A 192.0.2.30\n")
    again(zone)
    assert zone.served() == {"www 60 A 192.0.2.10", "new 60 A 192.0.2.30", "late 60 A 192.0.2.22"}
    zone.expect(zone.served())


def test_an_edit_that_is_not_merged_is_not_overwritten(zone):
    zone.first_updates()
    zone.write(*sorted(BEFORE), "mine 60 A 192.0.2.40")
    text = zone.path.read_text()
    assert f"{zone.path} was changed since it was loaded" in zone.refused()
    assert zone.path.read_text() == text
    zone.reload()
    assert zone.export()["written"]
    assert zone.in_file() == zone.served() == EXPORTED | {"mine 60 A 192.0.2.40"}
    zone.expect(zone.served())


def test_a_zone_is_written_to_another_file_and_nothing_else_changes(zone, tmp_path):
    zone.first_updates()
    other, text = tmp_path / "elsewhere.zone", zone.path.read_text()
    assert zone.export("--to", str(other))["file"] == str(other)
    assert zone.in_file(other) == EXPORTED
    assert zone.path.read_text() == text
    zone.later_updates()
    zone.export("--to", str(other))
    assert zone.in_file(other) == LATER
    for path in (zone.path, zone.server.config):
        assert "something else than an export of" in zone.refused(ZONE, "--to", str(path))
    assert zone.path.read_text() == text
    zone.expect(LATER)


def test_what_cannot_be_exported_is_said(zone, tmp_path):
    assert "no zone other." in zone.refused("other.")
    assert "no zone other." in zone.refused("other.", "--to", str(tmp_path / "x"))
    zone.first_updates()
    assert "/none/x: open none: No such file" in zone.refused(ZONE, "--to", str(tmp_path / "none" / "x"))
    assert not (tmp_path / "none").exists()


def test_a_file_that_several_zones_share_is_not_written(pando, tmp_path):
    shared = tmp_path / "shared.zone"
    shared.write_text("$TTL 60\n@ SOA ns.example. admin.example. 1 3600 600 86400 300\n@ NS ns.example.\n")
    server = pando([{"name": name, "file": str(shared), "allow-update": [{"address": "127.0.0.0/8"}]} for name in ("a", "b")])
    server.start("a")
    message = dns.update.UpdateMessage("a")
    message.add("www", 60, "A", "192.0.2.1")
    assert dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR
    server.control("reload")
    with pytest.raises(AssertionError, match="is the file of several zones"):
        server.control("zone", "export", "a")


def test_a_linked_file_stays_a_link(zone, tmp_path):
    target = tmp_path / "folder" / "target.zone"
    target.parent.mkdir()
    shutil.move(zone.path, target)
    zone.path.symlink_to(target)
    zone.first_updates()
    zone.export()
    assert zone.path.is_symlink() and zone.in_file(target) == EXPORTED
    zone.expect(EXPORTED)


# By interval. -----------------------------------------------------------------------------------------------------------

def test_an_interval_keeps_the_file_in_step(make):
    zone = make(interval="1s")
    zone.first_updates()
    zone.wait_for_file(EXPORTED)
    zone.later_updates()
    zone.wait_for_file(LATER)
    assert zone.file_serial() == zone.live_serial()
    zone.expect(LATER)


def test_a_restart_remembers_what_is_not_in_the_file(make):
    zone = make(interval="1h")
    zone.first_updates()
    zone.restart()
    zone.server.zones[0]["export-interval"] = "1s"
    zone.server.write_config()
    zone.restart()
    zone.wait_for_file(EXPORTED)
    zone.update(add=["more 60 A 192.0.2.50"])
    zone.restart_host()
    zone.wait_for_file(EXPORTED | {"more 60 A 192.0.2.50"})


def test_an_interval_that_comes_by_reload_sees_earlier_updates(zone):
    zone.first_updates()
    zone.server.zones[0]["export-interval"] = "1s"
    zone.server.write_config()
    zone.reload()
    zone.wait_for_file(EXPORTED)


def test_an_interval_leaves_an_edit_alone_and_says_so_once(make):
    zone = make(interval="1s")
    zone.write(*sorted(BEFORE), "mine 60 A 192.0.2.40")
    zone.first_updates()
    text = zone.path.read_text()
    failed = lambda: zone.server.control("status")["counters"]["exports_failed"]
    servers.wait_until("three tries", lambda: failed() >= 3)
    lines = [line for line in zone.server.log().splitlines() if "zone_not_exported" in line]
    assert len(lines) == 1 and f"zone={ZONE}." in lines[0] and str(zone.path) in lines[0]
    assert "was changed since it was loaded" in zone.server.control("zone", "status", ZONE)["problem"]
    assert zone.path.read_text() == text
    zone.reload()
    zone.wait_for_file(EXPORTED | {"mine 60 A 192.0.2.40"})
    assert zone.server.control("zone", "status", ZONE)["problem"] == ""
    zone.expect(EXPORTED | {"mine 60 A 192.0.2.40"})


def test_a_file_that_cannot_be_written_is_tried_again(make, tmp_path):
    zone = make(interval="1s")
    beside = zone.path.parent / "edit.zone.export"
    beside.mkdir()  # nobody, root neither, can open it for writing
    zone.first_updates()
    servers.wait_until("it fails", lambda: "zone_not_exported" in zone.server.log())
    line = next(line for line in zone.server.log().splitlines() if "zone_not_exported" in line)
    assert str(beside) in line and "Is a directory" in line
    assert zone.in_file() == BEFORE and zone.served() == EXPORTED
    beside.rmdir()
    zone.wait_for_file(EXPORTED)
    zone.expect(EXPORTED)


@servers.needs_root("mounts")
def test_a_full_disk_leaves_file_and_journal_as_they_are(make, tmp_path):
    mount = tmp_path / "small"
    mount.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(mount)], check=True)
    try:
        zone = make(interval="1s")
        full = mount / "edit.zone"
        shutil.copy2(zone.path, full)
        zone.server.zones[0]["file"] = str(full)
        zone.server.write_config()
        zone.path = full
        zone.reload()
        (mount / "filler").write_bytes(b"x" * (64 << 10 >> 1))
        zone.update(add=[f"t{i} 60 TXT {' '.join(['y' * 250] * 3)}" for i in range(50)])
        servers.wait_until("it fails", lambda: "zone_not_exported" in zone.server.log())
        assert "No space left on device" in zone.server.log()
        assert zone.in_file() == BEFORE
        servers.wait_until("nothing is left over", lambda: zone.names() == ["edit.zone", "filler"])
        served = zone.served()
        zone.restart_host()
        assert zone.served() == served
        (mount / "filler").unlink()
        zone.update(delete=[f"t{i} 60 TXT {' '.join(['y' * 250] * 3)}" for i in range(10, 50)])
        zone.wait_for_file(zone.served())
    finally:
        subprocess.run(["umount", "-l", str(mount)], check=True)


def test_a_secondary_zone_is_written_elsewhere_only(pando, tmp_path):
    source = Exported(pando, tmp_path)
    copy = pando([{"name": ZONE, "primaries": ["up"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                 remotes=[{"name": "up", "address": [f"127.0.0.1@{source.server.port}"]}])
    copy.start(ZONE)
    other = tmp_path / "secondary.zone"
    copy.control("zone", "export", ZONE, "--to", str(other))
    assert records_of(other) == BEFORE
    with pytest.raises(AssertionError, match="is secondary"):
        copy.control("zone", "export", ZONE)
    copy.zones[0]["export-interval"] = "10min"
    copy.write_config()
    with pytest.raises(AssertionError, match="needs no 'export-interval'"):
        copy.control("reload")


# Killed half-way. -------------------------------------------------------------------------------------------------------

RECORDED = ["commit-before-publish", "commit-published", "export-recorded", "export-renamed"]  # after the journal record
POINTS = ["export-written", "commit-staged", "commit-journalled", *RECORDED]


def crash_while_exporting(zone, point):
    """Kills the manager in an export that begins behind the first updates."""
    zone.first_updates()
    zone.server.kill()
    zone.server.crash_at = None
    passes = 1
    if point.startswith("commit"):  # the export's is the one behind those of the start
        note_settled_file(zone)
        passes = passes_of_a_start(zone, point) + 1
    zone.server.crash_at = f"{point}:{passes}"
    zone.server.start(ZONE)
    zone.settle()
    zone.export(check=False)
    assert zone.server.process.wait(timeout=60) == -signal.SIGKILL
    zone.server.crash_at = None


def note_settled_file(zone):
    """A file that was loaded within seconds of its change is noted anew later, which is a version of its own."""
    servers.wait_until("the file's change is past", lambda: time.time() - zone.path.stat().st_ctime > 2.5)
    zone.server.start(ZONE)
    zone.reload()
    zone.reload()
    zone.server.kill()


def passes_of_a_start(zone, point):
    """How often a start and a reload of the live store pass a point."""
    for passes in range(1, 20):
        zone.server.crash_at = f"{point}:{passes}"
        try:
            zone.server.start(ZONE)
            zone.reload()
        except AssertionError:
            zone.server.process.wait(timeout=60)
            continue
        zone.server.kill()
        return passes - 1
    raise AssertionError(point)


@pytest.mark.parametrize("host", [False, True], ids=["process", "host"])
@pytest.mark.parametrize("point", POINTS)
def test_a_kill_while_exporting_loses_and_resurrects_nothing(zone, point, host):
    crash_while_exporting(zone, point)
    serial = 2
    if host:
        zone.restart_host()
    else:
        zone.server.start(ZONE)
        zone.settle()
    assert (zone.served(), zone.live_serial()) == (EXPORTED, serial)
    assert zone.in_file() == (EXPORTED if point in RECORDED or point == "commit-journalled" else BEFORE)
    # "gone" came before the export and goes after it: an export that was cut short must not bring it back.
    zone.later_updates()
    zone.expect(LATER)
    zone.export()
    assert zone.in_file() == LATER
    assert zone.names() == ["edit.zone"]
    zone.expect(LATER)


@pytest.mark.parametrize("point", ["export-written", "export-recorded"])
@pytest.mark.parametrize("host", [False, True], ids=["process", "host"])
def test_an_edit_after_a_kill_is_merged_or_kept(zone, point, host):
    crash_while_exporting(zone, point)
    assert zone.in_file() == BEFORE
    zone.path.write_text(zone.path.read_text() + "mine 60 A 192.0.2.40\n")
    mine = zone.path.read_text()
    if host:
        zone.restart_host()
    else:
        zone.server.start(ZONE)
        zone.settle()
    if point == "export-written":
        assert zone.served() == EXPORTED | {"mine 60 A 192.0.2.40"}
    else:
        kept, = zone.path.parent.glob("edit.zone.edited.*")
        assert kept.read_text() == mine and zone.served() == zone.in_file() == EXPORTED
        assert zone.server.log().count("file_edit_kept") == 1
    zone.expect(zone.served())


@pytest.mark.release
def test_updates_during_an_export_are_beside_the_file(pando, tmp_path):
    """The zone moves on while its file is written; then the note says what has come since."""
    zone = Exported(pando, tmp_path)
    many = [f"r{i} 60 A 192.0.2.60" for i in range(400)]
    for start in range(40):
        zone.update(add=[f"b{start}x{i} 60 A 192.0.2.61" for i in range(300)])
    zone.update(add=many)
    zone.first_updates()
    exporting = subprocess.Popen([str(servers.build_folder() / "pandoctl"), "--config", str(zone.server.config), "zone",
                                  "export", ZONE], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    count = 0
    while exporting.poll() is None:
        zone.update(delete=[many[count % len(many)]], add=[f"a{count} 60 A 192.0.2.62"])
        count += 1
    assert exporting.returncode == 0
    zone.expect(zone.served())
    for _ in range(2):
        line = line_of(zone.path, "b0x1 ") if "b0x1 " in zone.path.read_text() else None
        zone.export()
    assert line and zone.in_file() == zone.served()
