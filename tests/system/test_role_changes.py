"""Secondary zones that become primary, and the other way round: what a primary sent is no local update."""

import os

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

LOCAL = [{"address": "127.0.0.0/8"}]
APEX = """$ORIGIN example.
$TTL 300
@ SOA ns admin {serial} 36000 36000 1209600 300
@ NS ns
ns A 192.0.2.1
"""
SENT = ["www A 192.0.2.10", "gone A 192.0.2.11"]  # by AXFR; later "gone" goes and "late" comes
LATER = {"www A 192.0.2.10", "late A 192.0.2.99"}


def update(port, zone="example", add=(), delete=()):
    message = dns.update.UpdateMessage(zone)
    for record in delete:
        message.delete(*record.split(" ", 2))
    for record in add:
        name, rdtype, rdata = record.split(" ", 2)
        message.add(name, 300, rdtype, rdata)
    assert dns.query.tcp(message, "127.0.0.1", port=port, timeout=10).rcode() == dns.rcode.NOERROR


class Zone:
    """The zone "example" on a Pando that may be a secondary of BIND or a primary."""

    def __init__(self, make, peers, folder):
        self.folder, self.clock = folder, 10**18
        self.port = servers.free_port()
        source = folder / "source.zone"
        source.write_text(APEX.format(serial=10) + "\n".join(SENT) + "\n")
        self.bind = servers.Bind(folder / "bind", {"example": f'type primary; file "{source}"; notify explicit; notify-delay 0; '
                                                   f'also-notify {{ 127.0.0.1 port {self.port}; }}; '
                                                   'allow-transfer { any; }; allow-update { any; }; max-ixfr-ratio unlimited;'},
                                 options="startup-notify-rate 1000; notify-rate 1000;")
        peers(self.bind, "example")
        self.filler = folder / "filler.zone"
        self.filler.write_text(APEX.replace("example", "filler").format(serial=1))
        self.copy = folder / "copies" / "example.zone"
        self.own = folder / "own.zone"
        self.server = make([], port=self.port, workers=1, store_extra="  journal-limit: 1MiB",
                           remotes=[{"name": "upstream", "address": [f"127.0.0.1@{self.bind.port}"]}])

    def configure(self, **options):
        self.server.zones = [dict(options, name="example", **{"allow-transfer": LOCAL}),
                             {"name": "filler", "file": str(self.filler), "allow-update": LOCAL}]
        self.server.write_config()

    def secondary(self, **options):
        self.configure(primaries=["upstream"], **options)

    def primary(self, path):
        self.configure(file=str(path), **{"allow-update": LOCAL})

    def write(self, *records, serial):
        self.own.write_text(APEX.format(serial=serial) + "\n".join(records) + "\n")
        self.clock += 10**9
        os.utime(self.own, ns=(self.clock, self.clock))

    def follow(self):
        """The zone comes by AXFR and moves on by IXFR; then its primary is lost."""
        self.server.start("example")
        servers.wait_until("the copy is there", lambda: "zone_copied" in self.server.log())
        update(self.bind.port, add=["late A 192.0.2.99"], delete=["gone A 192.0.2.11"])
        servers.wait_until("the IXFR has come", lambda: self.served() == LATER)
        servers.wait_until("the log says so", lambda: "by=ixfr" in self.server.log())

    def served(self):
        """What is served beside the apex, as "name type rdata"."""
        found = set()
        for line in self.server.records("example"):
            owner, _, rdtype, rdata = line.split(" ", 3)
            name = owner.removesuffix("example.").rstrip(".")
            if name and name != "ns":
                found.add(f"{name} {dns.rdatatype.to_text(int(rdtype))} {rdata}")
        return found

    def serial(self):
        return self.server.serial("example")

    def compact(self):
        def snapshots():
            return {path.name for path in (self.server.folder / "journal").glob("*.snapshot")}
        before = snapshots()
        records = [f"f{i} TXT {' '.join(['x' * 250] * 3)}" for i in range(60)]
        for _ in range(200):
            update(self.server.port, "filler", add=records)
            update(self.server.port, "filler", delete=records)
            if snapshots() - before:
                break
        servers.wait_until("the journal is compacted", lambda: snapshots() - before)

    def reload(self):
        return self.server.control("reload")

    def restart(self):
        self.server.kill()
        self.server.start("example")
        self.reload()  # which comes behind what a start does

    def restart_host(self):
        self.server.lose_memory()
        self.server.start("example")

    def expect(self, records):
        """They are served, and nothing changes any more."""
        assert self.served() == records
        serial = self.serial()
        for again in (self.reload, self.restart, self.restart_host, self.reload):
            again()
            assert (self.served(), self.serial()) == (records, serial), again.__name__


@pytest.fixture
def zone(pando, peers, tmp_path):
    return Zone(pando, peers, tmp_path)


CHANGES = pytest.mark.parametrize("change", [Zone.reload, Zone.restart, Zone.restart_host],
                                  ids=["reload", "process", "host"])
COMPACTED = pytest.mark.parametrize("compacted", [False, True], ids=["whole journal", "compacted"])


@CHANGES
@COMPACTED
@pytest.mark.parametrize("serial", [5, 11, 100], ids=["behind", "same serial", "ahead"])
def test_the_file_of_a_zone_made_primary_has_the_word_over_what_its_primary_sent(zone, change, compacted, serial):
    zone.secondary(file=str(zone.copy))
    zone.follow()
    if compacted:
        zone.compact()
    last = zone.serial()
    zone.bind.stop()
    zone.write("www A 203.0.113.1", "gone A 192.0.2.11", serial=serial)
    zone.primary(zone.own)
    change(zone)
    assert zone.served() == {"www A 203.0.113.1", "gone A 192.0.2.11"}
    assert zone.serial() == max(serial, last + 1), "secondaries see the change"
    # Updates are the zone's own from here on.
    update(zone.port, add=["dyn A 192.0.2.20"], delete=["gone A 192.0.2.11"])
    zone.expect({"www A 203.0.113.1", "dyn A 192.0.2.20"})
    zone.compact()
    zone.write("www A 203.0.113.2", "gone A 192.0.2.11", serial=serial)
    zone.restart_host()
    zone.expect({"www A 203.0.113.2", "dyn A 192.0.2.20"})


@CHANGES
@COMPACTED
def test_a_zone_made_primary_with_its_own_copy_goes_on_as_it_is(zone, change, compacted):
    zone.secondary(file=str(zone.copy))
    zone.follow()
    if compacted:
        zone.compact()
    last = zone.serial()
    zone.bind.stop()
    zone.primary(zone.copy)
    change(zone)
    assert (zone.served(), zone.serial()) == (LATER, last)
    update(zone.port, add=["dyn A 192.0.2.20"], delete=["www A 192.0.2.10"])
    zone.expect({"late A 192.0.2.99", "dyn A 192.0.2.20"})
    # The copy is a file like others now: an edit goes beside all that is there.
    with open(zone.copy, "a") as file:
        file.write("edited A 192.0.2.30\n")
    zone.reload()
    zone.expect({"late A 192.0.2.99", "dyn A 192.0.2.20", "edited A 192.0.2.30"})


@CHANGES
def test_updates_before_the_file_is_right_stay(zone, change):
    """A zone made primary takes updates although its file cannot be used yet."""
    zone.secondary(file=str(zone.copy))
    zone.follow()
    zone.bind.stop()
    zone.write("www A 192.0.2.256", serial=100)
    zone.primary(zone.own)
    assert zone.reload()["zones_failed"] == 1
    assert zone.served() == LATER
    update(zone.port, add=["dyn A 192.0.2.20"])
    zone.write("www A 203.0.113.1", serial=100)
    change(zone)
    zone.expect({"www A 203.0.113.1", "dyn A 192.0.2.20"})


@CHANGES
def test_updates_of_a_former_primary_do_not_come_back(zone, change):
    """A primary with updates becomes secondary, takes a whole zone and differences, and is primary again."""
    zone.write("mine A 192.0.2.40", serial=1)
    zone.primary(zone.own)
    zone.server.start("example")
    update(zone.port, add=["dyn A 192.0.2.20"])
    zone.secondary(file=str(zone.copy))
    zone.reload()
    servers.wait_until("the whole zone has come", lambda: zone.served() == set(SENT))
    update(zone.bind.port, add=["late A 192.0.2.99"], delete=["gone A 192.0.2.11"])
    servers.wait_until("the IXFR has come", lambda: zone.served() == LATER)
    zone.bind.stop()
    zone.primary(zone.own)
    change(zone)
    zone.expect({"mine A 192.0.2.40"})


@CHANGES
def test_a_primary_that_was_a_secondary_without_news_has_its_updates(zone, change):
    zone.bind.stop()
    zone.write("mine A 192.0.2.40", serial=1)
    zone.primary(zone.own)
    zone.server.start("example")
    update(zone.port, add=["dyn A 192.0.2.20"])
    zone.secondary()
    zone.reload()
    zone.primary(zone.own)
    change(zone)
    zone.expect({"mine A 192.0.2.40", "dyn A 192.0.2.20"})
