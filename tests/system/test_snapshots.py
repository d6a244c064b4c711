"""Versions of a zone that were given a label: listed, gone back to, kept over restarts and replaced zones."""

import re

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_image import IMAGE, ZONE, Host, zone_text


def data(host):
    """The zone's records, without the SOA's serial."""
    return {line for line in host.server.records(ZONE) if line.split(" ")[2] != "6"}


def snapshots(host, *words):
    return {row["label"]: row for row in host.server.control("zone", "snapshots", *words)["snapshots"]}


def held(host):
    return {row["label"]: row["bytes"] for row in host.server.control("store", "stats")["snapshots"]}


@pytest.fixture
def host(pando, tmp_path):
    started = Host(pando, tmp_path, store_extra="")
    started.file.write_text(zone_text(1, [f"h{number}" for number in range(60)]))
    return started.start()


def test_a_snapshot_is_listed_gone_back_to_and_deleted(host):
    told = host.server.control("zone", "snapshot", ZONE, "before-it")
    assert (told["serial"], told["in_image"]) == (1, False)
    before = data(host)
    for number in range(20):
        host.update(f"n{number}")
    row = snapshots(host)["before-it"]
    assert (row["zone"], row["serial"], row["records"], row["lost"]) == (f"{ZONE}.", 1, len(before) + 1, "")
    assert snapshots(host, ZONE) == snapshots(host)
    assert held(host)["before-it"] > 1000
    changed = host.server.serial(ZONE)
    assert host.server.control("zone", "rollback", ZONE, "before-it")["serial"] == changed + 1
    assert data(host) == before
    sent = [rrset for message in dns.query.xfr("127.0.0.1", ZONE, rdtype="IXFR", serial=changed, relativize=False,
                                               port=host.server.port, lifetime=30) for rrset in message.answer]
    assert sum(len(rrset) for rrset in sent) == 4 + 20, "a difference, not the zone"
    host.server.control("zone", "snapshot", ZONE, "before-it", "--delete")
    assert snapshots(host) == {} and held(host) == {}
    host.server.control("store", "check")


def test_what_is_wrong_is_said(host):
    host.server.control("zone", "snapshot", ZONE, "v1")
    for words, reason in [(("snapshot", ZONE, "v1"), "has a snapshot 'v1' already"),
                          (("snapshot", ZONE, "20240101"), "would be a serial"),
                          (("snapshot", ZONE, "a/b"), "a label has letters"),
                          (("snapshot", "other.test", "v1"), "no zone other.test."),
                          (("snapshot", ZONE, "v2", "--delete"), "has no snapshot 'v2'"),
                          (("snapshots", "other.test"), "no zone other.test."),
                          (("rollback", ZONE, "v2"), "has no snapshot 'v2'")]:
        with pytest.raises(AssertionError, match=reason):
            host.server.control("zone", *words)


def test_it_outlives_the_process_a_replaced_file_and_a_file_that_cannot_be_merged(host):
    host.server.control("zone", "snapshot", ZONE, "good")
    before = data(host)
    host.update("x")
    host.server.kill()
    host.server.start(ZONE)
    host.file.write_text(zone_text(50, [f"other{number}" for number in range(300)]))
    host.server.control("reload")
    servers.wait_until("the file is served", lambda: host.has("other7"))
    assert snapshots(host)["good"]["lost"] == ""
    host.server.control("zone", "rollback", ZONE, "good")
    assert data(host) == before
    host.server.control("store", "check")


def test_too_much_change_loses_it_and_says_so(pando, tmp_path):
    host = Host(pando, tmp_path, store_extra="", limits="{history: 2KiB, snapshots: 2KiB}").start()
    host.server.control("zone", "snapshot", ZONE, "old")
    for number in range(40):
        host.update(f"n{number}")
    assert snapshots(host)["old"]["lost"] == "more has changed since than limits.snapshots allows"
    assert len(host.logged("zone_snapshot_lost")) == 1
    with pytest.raises(AssertionError, match="was lost: more has changed since"):
        host.server.control("zone", "rollback", ZONE, "old")
    host.server.control("zone", "snapshot", ZONE, "old")
    assert snapshots(host)["old"]["lost"] == ""


def test_a_restarted_host_has_it_from_the_image(pando, tmp_path):
    host = Host(pando, tmp_path).start()
    before = data(host)
    assert host.server.control("zone", "snapshot", ZONE, "good")["in_image"]
    host.checkpoint()
    host.update("x")
    host.update("y")
    host.lose_memory()
    host.start()
    assert host.has("x") and host.logged("image_replayed")
    host.server.control("zone", "rollback", ZONE, "good")
    assert data(host) == before and not host.has("y")
    host.server.control("store", "check")


def test_a_restarted_host_has_it_also_when_the_journal_lacks_a_record(pando, tmp_path):
    """What is left is applied to the image's zone under a new serial: beside it is what it was."""
    host = Host(pando, tmp_path).start()
    before = data(host)
    host.server.control("zone", "snapshot", ZONE, "good")
    host.checkpoint()
    host.update("x")
    host.update("y")
    host.lose_memory()
    segment = max((host.server.folder / "journal").glob("*.journal"))
    octets = bytearray(segment.read_bytes())
    octets[[match.start() for match in re.finditer(rb"PJRC", octets)][-2] + 30] ^= 0xFF
    segment.write_bytes(octets)
    host.start()
    assert host.logged("image_replayed_with_gaps") and not host.has("x") and host.has("y")
    assert snapshots(host)["good"]["lost"] == ""
    servers.wait_until("the journal is whole again", lambda: host.server.control("status")["problem"] == "")
    host.update("z")
    host.server.control("zone", "rollback", ZONE, "good")
    assert data(host) == before
    host.server.control("store", "check")


def test_without_an_image_a_restarted_host_has_none(host):
    host.server.control("zone", "snapshot", ZONE, "good")
    host.lose_memory()
    host.start()
    assert snapshots(host) == {}


def test_it_goes_with_the_zone(host):
    host.server.control("zone", "snapshot", ZONE, "good")
    zones, host.server.zones = host.server.zones, []
    host.server.write_config()
    host.server.control("reload")
    host.server.zones = zones
    host.server.write_config()
    host.server.control("reload")
    assert snapshots(host, ZONE) == {}
    host.server.control("store", "check")
