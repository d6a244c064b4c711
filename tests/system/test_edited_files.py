"""Zone files edited beside dynamic updates: neither the operator's edits nor acknowledged updates are lost."""

import os
import shutil
import signal

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "edit.test"
ZONE_FILE = """$TTL 300
@ 60 SOA ns1 admin {serial} 3600 600 86400 300
@ 60 NS ns1
ns1 60 A 192.0.2.1
"""


class Zone:
    """A served zone with its file, and what an operator and clients do to them."""

    def __init__(self, make, folder, **options):
        self.path = folder / "edit.zone"
        self.clock = 10**18
        self.serial = 1
        self.server = make([{"name": ZONE, "file": str(self.path), "allow-update": [{"address": "127.0.0.0/8"}],
                             "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1, **options)

    def write(self, *records, serial=None):
        """Writes the file: its apex and `records`, with a new modification time."""
        self.serial = serial or self.serial
        self.path.write_text(ZONE_FILE.format(serial=self.serial) + "\n".join(records) + "\n")
        self.touch()

    def touch(self):
        self.clock += 10**9
        os.utime(self.path, ns=(self.clock, self.clock))

    def update(self, add=(), delete=()):
        """An acknowledged update; records are "name ttl type rdata"."""
        message = dns.update.UpdateMessage(ZONE)
        for record in delete:
            name, _, rdtype, rdata = record.split(" ", 3)
            message.delete(name, rdtype, rdata)
        for record in add:
            name, ttl, rdtype, rdata = record.split(" ", 3)
            message.add(name, int(ttl), rdtype, rdata)
        answer = dns.query.udp(message, "127.0.0.1", port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR

    def served(self):
        """What is served beside the apex, as "name ttl type rdata"."""
        found = set()
        for line in self.server.records(ZONE):
            owner, ttl, rdtype, rdata = line.split(" ", 3)
            name = owner.removesuffix(f"{ZONE}.").rstrip(".")
            if name and name != "ns1":
                found.add(f"{name} {ttl} {dns.rdatatype.to_text(int(rdtype))} {rdata}")
        return found

    def live_serial(self):
        return self.server.serial(ZONE)

    def reload(self):
        return self.server.control("reload")

    def restart(self):
        self.server.kill()
        self.server.start(ZONE)
        self.settle()

    def restart_host(self):
        """Memory is gone, the disk is not."""
        self.server.kill()
        for pid in self.server.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("workers are gone", lambda: not self.server.left_over())
        shutil.rmtree(self.server.store)
        self.server.start(ZONE)

    def settle(self):
        """A started manager reads files in the background; a reload waits for that."""
        self.reload()


@pytest.fixture
def zone(pando, tmp_path):
    made = Zone(pando, tmp_path)
    made.write("www 60 A 192.0.2.10", "old 60 A 192.0.2.11")
    made.server.start(ZONE)
    return made


def test_a_touched_file_changes_nothing_after_a_reload_or_a_restart(zone):
    zone.update(add=["dyn 60 A 192.0.2.20"], delete=["old 60 A 192.0.2.11"])
    serial = zone.live_serial()
    for again in (zone.reload, zone.restart, zone.reload, zone.restart):
        zone.touch()
        again()
        assert zone.served() == {"www 60 A 192.0.2.10", "dyn 60 A 192.0.2.20"}
        assert zone.live_serial() == serial


@pytest.mark.parametrize("serial", [None, 100])
def test_an_edit_goes_beside_updates(zone, serial):
    zone.update(add=["dyn 60 A 192.0.2.20"], delete=["old 60 A 192.0.2.11"])
    before = zone.live_serial()
    zone.write("www 60 A 192.0.2.12", "old 60 A 192.0.2.11", "new 60 A 192.0.2.13", serial=serial)
    assert zone.reload()["zones_changed"] == 1
    assert zone.served() == {"www 60 A 192.0.2.12", "dyn 60 A 192.0.2.20", "new 60 A 192.0.2.13"}
    assert zone.live_serial() == (serial or before + 1)
    zone.restart()
    assert zone.served() == {"www 60 A 192.0.2.12", "dyn 60 A 192.0.2.20", "new 60 A 192.0.2.13"}
