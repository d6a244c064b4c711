"""A zone made again what it was: its secondaries follow by IXFR, and the way back is an update like any other."""

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "back.test"


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "back.zone").write_text(
        "@ 300 SOA ns1 admin 7 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\nwww 300 A 192.0.2.2\n"
        + "".join(f"h{number} 300 A 192.0.2.3\n" for number in range(30)))
    instance = pando([{"name": ZONE, "file": str(tmp_path / "back.zone"),
                       "allow-update": [{"address": "127.0.0.0/8"}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1)
    return instance.start(ZONE)


def change(server, *steps):
    update = dns.update.UpdateMessage(ZONE)
    for verb, *words in steps:
        getattr(update, verb)(*words)
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR


def without_soa(records):
    return {line for line in records if line.split(" ")[2] != "6"}


def test_the_zone_is_what_it_was_and_secondaries_follow(server):
    before = without_soa(server.records(ZONE))
    change(server, ("add", "new", 60, "A", "192.0.2.9"), ("delete", "www"))
    change(server, ("add", "ns1", 300, "A", "192.0.2.77"))
    changed = server.serial(ZONE)
    told = server.control("zone", "rollback", ZONE, "7")
    assert without_soa(server.records(ZONE)) == before
    assert told["serial"] == server.serial(ZONE) == changed + 1
    author = server.control("zone", "history", ZONE)["changesets"][-1]
    assert author["by"].startswith("user ") and author["client"] == "", "who ordered it"
    sent = [rrset.to_text() for message in dns.query.xfr(
        "127.0.0.1", ZONE, rdtype="IXFR", serial=changed, port=server.port, relativize=False, lifetime=30)
        for rrset in message.answer]
    assert any(text.startswith("www.back.test.") for text in sent)
    assert not any(text.startswith("back.test. 300 IN NS") for text in sent), "a whole zone"


def test_it_outlives_the_process_and_the_store(server):
    change(server, ("add", "new", 60, "A", "192.0.2.9"))
    server.control("zone", "rollback", ZONE, "7")
    serial = server.serial(ZONE)
    server.kill()
    server.start(ZONE)
    assert server.serial(ZONE) == serial and not server.ask(f"new.{ZONE}").answer
    server.clean()
    server.start(ZONE)
    assert server.serial(ZONE) == serial and not server.ask(f"new.{ZONE}").answer


@pytest.mark.parametrize("words, reason", [
    ((ZONE, "6"), "does not reach back to serial 6"),
    (("other.test", "7"), "no zone other.test."),
])
def test_what_cannot_be_is_told(server, words, reason):
    change(server, ("add", "new", 60, "A", "192.0.2.9"))
    with pytest.raises(AssertionError, match=reason):
        server.control("zone", "rollback", *words)
    assert server.ask(f"new.{ZONE}").answer


def test_the_serial_that_is_served_changes_nothing(server):
    change(server, ("add", "new", 60, "A", "192.0.2.9"))
    serial = server.serial(ZONE)
    assert server.control("zone", "rollback", ZONE, str(serial))["serial"] == serial
    assert server.serial(ZONE) == serial


def test_what_a_file_may_have_a_rollback_and_an_edit_may_bring(pando, tmp_path):
    """limits.rrset-records is for clients: a zone does not depend on how its file came to be served."""
    head = "@ 300 SOA ns1 admin 7 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
    path = tmp_path / "back.zone"
    path.write_text(head + "".join(f"many 300 A 192.0.2.{number}\n" for number in range(150)))
    server = pando([{"name": ZONE, "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}]}], workers=1)
    server.start(ZONE)
    change(server, ("delete", "many"))
    server.control("zone", "rollback", ZONE, "7")
    assert len(server.ask(f"many.{ZONE}", tcp=True).answer[0]) == 150
    path.write_text(path.read_text() + "".join(f"more 300 A 192.0.2.{number}\n" for number in range(150)))
    server.control("reload")
    assert len(server.ask(f"more.{ZONE}", tcp=True).answer[0]) == 150
    update = dns.update.UpdateMessage(ZONE)
    update.add("more", 300, "A", "198.51.100.1")
    assert dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.REFUSED


def test_a_signed_version_is_not_brought_back(pando, tmp_path):
    """Its SOA would be signed under another serial than it gets."""
    path = tmp_path / "back.zone"
    unsigned = "@ 300 SOA ns1 admin {} 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
    path.write_text(unsigned.format(7) + "@ 300 RRSIG SOA 13 2 300 20370101000000 20250101000000 1 @ AAAA\n")
    server = pando([{"name": ZONE, "file": str(path)}], workers=1)
    server.start(ZONE)
    path.write_text(unsigned.format(8))
    server.control("reload")
    assert server.serial(ZONE) == 8
    with pytest.raises(AssertionError, match="was signed then"):
        server.control("zone", "rollback", ZONE, "7")
    assert server.serial(ZONE) == 8
