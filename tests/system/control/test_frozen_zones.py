"""Zones that are frozen, and files of single zones that are read again."""

import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.update
import pytest

import servers

from test_orders import TEXT, ZONE, address, primary, secondary  # noqa: F401  fixtures
from test_records import ctl, refused, update

OTHER = "beside.test"


def add(server, name, zone=ZONE):
    change = dns.update.Update(zone)
    change.add(name, 60, "A", "192.0.2.77")
    return dns.query.udp(change, "127.0.0.1", port=server.port, timeout=30).rcode()


def test_a_frozen_zone_is_edited_in_its_file_and_thawed(primary):
    assert add(primary, "before") == dns.rcode.NOERROR
    assert ctl(primary, "zone", "freeze", ZONE) == (0, "", "")
    assert ctl(primary, "zone", "freeze", ZONE) == (0, "", ""), "twice is once"
    assert add(primary, "while") == dns.rcode.REFUSED
    refused(primary, "is frozen", "begin", ZONE)
    refused(primary, "is frozen", "rollback", ZONE, "10")
    assert primary.control("zone", "status", ZONE)["frozen"]
    assert "ok, frozen" in ctl(primary, "zone", "status", ZONE)[1]
    # The operator's own files are read, and updates of before stay.
    primary.control("zone", "export", ZONE)
    primary.file.write_text(primary.file.read_text() + "edited.ordered.test. 60 A 192.0.2.3\n")
    assert ctl(primary, "zone", "reload", ZONE) == (0, "1 zone file read again, 1 changed\n", "")
    assert primary.ask(f"edited.{ZONE}").answer and primary.ask(f"before.{ZONE}").answer
    assert add(primary, "while") == dns.rcode.REFUSED
    assert ctl(primary, "zone", "thaw", ZONE) == (0, "", "")
    assert not primary.control("zone", "status", ZONE)["frozen"]
    assert add(primary, "after") == dns.rcode.NOERROR
    refused(primary, "is not frozen", "thaw", ZONE)
    refused(primary, "no zone absent.test.", "freeze", "absent.test")


def test_a_transaction_that_was_open_waits_for_the_thaw(primary):
    assert ctl(primary, "zone", "begin", ZONE)[0] == 0
    assert ctl(primary, "zone", "set", ZONE, "mail", "A", "192.0.2.5")[0] == 0
    ctl(primary, "zone", "freeze", ZONE)
    refused(primary, "is frozen", "commit", ZONE)
    assert not primary.ask(f"mail.{ZONE}").answer
    ctl(primary, "zone", "thaw", ZONE)
    assert ctl(primary, "zone", "commit", ZONE)[0] == 0
    assert primary.ask(f"mail.{ZONE}").answer


def test_zones_stay_frozen_over_a_kill(primary):
    ctl(primary, "zone", "freeze", ZONE)
    primary.kill()
    primary.start(ZONE)
    assert add(primary, "while") == dns.rcode.REFUSED
    assert primary.control("zone", "status", ZONE)["frozen"]
    assert ctl(primary, "zone", "thaw", ZONE)[0] == 0
    primary.kill()
    primary.start(ZONE)
    assert add(primary, "after") == dns.rcode.NOERROR


def test_a_list_of_frozen_zones_that_cannot_be_read_is_told(primary):
    primary.kill()
    (primary.folder / "journal/frozen-zones.list").write_text("a..b\n")
    primary.start(ZONE)
    assert "frozen_zones_not_read" in primary.log()
    assert add(primary, "after") == dns.rcode.NOERROR


def test_a_frozen_secondary_takes_no_transfer_until_it_is_thawed(primary, secondary):
    assert ctl(secondary, "zone", "freeze", ZONE) == (0, "", "")
    update(primary, "while", "192.0.2.8", ZONE)
    assert primary.serial(ZONE) == 11
    refused(secondary, "is frozen", "refresh", ZONE)
    refused(secondary, "is frozen", "retransfer", ZONE)
    notify = dns.message.make_query(ZONE, "SOA")
    notify.set_opcode(dns.opcode.NOTIFY)
    answer = dns.query.udp(notify, "127.0.0.1", port=secondary.port, timeout=30)
    assert answer.rcode() == dns.rcode.NOERROR
    secondary.control("reload")
    secondary.kill()
    secondary.start(ZONE)
    status = secondary.control("zone", "status", ZONE)
    assert status["frozen"] and status["serial"] == 10 and status["refresh_at"] == 0
    assert not secondary.ask(f"while.{ZONE}").answer
    assert ctl(secondary, "zone", "thaw", ZONE) == (0, "", "")
    servers.wait_until("it asked its primary", lambda: secondary.serial(ZONE) == 11)
    assert secondary.ask(f"while.{ZONE}").answer
    # The next NOTIFY finds it as before.
    update(primary, "later", "192.0.2.9", ZONE)
    assert ctl(secondary, "zone", "refresh", ZONE)[0] == 0
    servers.wait_until("it follows", lambda: secondary.serial(ZONE) == primary.serial(ZONE))


@pytest.fixture
def two(pando, tmp_path):
    zones = []
    for zone in (ZONE, OTHER):
        (tmp_path / zone).write_text(TEXT.format(serial=10, address="192.0.2.10"))
        zones.append({"name": zone, "file": str(tmp_path / zone), "allow-update": [{"address": "127.0.0.1"}]})
    made = pando(zones + [{"name": "copy.test", "primaries": ["upstream"]}],
                 remotes=[{"name": "upstream", "address": ["127.0.0.1@9"]}])
    made.files = [tmp_path / ZONE, tmp_path / OTHER]
    return made.start(ZONE)


def test_only_the_named_files_are_read_again(two):
    servers.wait_until("both are there", lambda: two.ask(OTHER, "SOA").rcode() == dns.rcode.NOERROR)
    for file in two.files:
        file.write_text(TEXT.format(serial=11, address="192.0.2.11"))
    assert ctl(two, "zone", "reload", ZONE) == (0, "1 zone file read again, 1 changed\n", "")
    assert two.serial(ZONE) == 11 and two.serial(OTHER) == 10
    assert ctl(two, "zone", "reload", ZONE, OTHER) == (0, "2 zone files read again, 1 changed\n", "")
    assert two.serial(OTHER) == 11
    assert add(two, "dynamic") == dns.rcode.NOERROR
    two.files[0].write_text(TEXT.format(serial=20, address="192.0.2.20"))
    assert two.control("zone", "reload", ZONE)["zones_changed"] == 1
    assert two.ask(f"dynamic.{ZONE}").answer and address(two) == "192.0.2.20", "edits are merged with updates"


def test_a_file_with_a_mistake_leaves_the_zone_and_tells(two):
    two.files[0].write_text("@ SOA what\n")
    code, out, err = ctl(two, "zone", "reload", ZONE)
    assert code == 1 and out == "1 zone file read again, 0 changed\n" and f"{ZONE}.: " in err
    assert two.serial(ZONE) == 10 and two.control("zone", "status", ZONE)["problem"]
    two.files[0].unlink()
    assert ctl(two, "zone", "reload", ZONE)[0] == 1
    assert two.serial(ZONE) == 10
    two.files[0].write_text(TEXT.format(serial=12, address="192.0.2.12"))
    assert ctl(two, "zone", "reload", ZONE)[0] == 0
    assert two.serial(ZONE) == 12 and not two.control("zone", "status", ZONE)["problem"]


def test_wrong_words_are_refused_and_no_file_is_read(two):
    two.files[0].write_text(TEXT.format(serial=11, address="192.0.2.11"))
    refused(two, "no zone absent.test.", "reload", ZONE, "absent.test")
    refused(two, "is a secondary zone", "reload", ZONE, "copy.test")
    refused(two, "x..test", "reload", "x..test")
    assert ctl(two, "zone", "reload")[0] == 2
    assert two.serial(ZONE) == 10
