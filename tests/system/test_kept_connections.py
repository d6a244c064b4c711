"""Connections to primaries outlast a transfer: the next one goes over them, and whatever becomes of them meanwhile
is nobody's failure. And a NOTIFY that tells a serial is followed by the IXFR itself."""

import time

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import dns.tsigkeyring
import pytest

import servers
from test_odd_primaries import APEX, OddPrimary, has_serial, lazily, notify, records, secondary, slow_soa, wire, zone  # noqa: F401

KEY = {"name": "transfer-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})


def address(serial):
    return records(f"www.{APEX}", "A", f"192.0.2.{serial}")


def difference(query, serial):
    """The answer section of an IXFR, from what the secondary has."""
    known = query.authority[0][0].serial
    if known == serial:
        return [slow_soa(serial)]
    return [slow_soa(serial), slow_soa(known), address(known), slow_soa(serial), address(serial), slow_soa(serial)]


def incremental(primary):
    """SOA, AXFR and IXFR as they should be, with SOA records that ask for no refresh."""
    whole = lazily(primary)
    primary.answer = lambda query, rdtype: (
        [wire(query, difference(query, primary.serial))] if rdtype == "IXFR" else whole(query, rdtype))


def refuses(primary, types, how):
    """Types of queries that are not answered as they should be."""
    usual = primary.answer
    primary.answer = lambda query, rdtype: how(query) if rdtype in types else usual(query, rdtype)


def signed(primary):
    """The same, each message signed as its query was."""
    def answer(query, rdtype):
        response = dns.message.make_response(query)
        response.flags |= dns.flags.AA
        opening = slow_soa(primary.serial)
        response.answer = {"SOA": lambda: [opening], "IXFR": lambda: difference(query, primary.serial),
                           "AXFR": lambda: [opening, *zone(primary.serial)[1:-1], opening]}[rdtype]()
        return [response.to_wire()]
    primary.keyring = KEYRING
    primary.answer = answer


def prepared(primaries):
    for primary in primaries:
        incremental(primary)


def step(server, primary, hint=True):
    """The next version, told with or without its serial."""
    primary.serial += 1
    notify(server, slow_soa(primary.serial) if hint else None)
    has_serial(server, primary.serial)


def counters(server):
    """Of transfers: by IXFR, failed, fallbacks."""
    values = server.control("status")["counters"]
    return tuple(values[f"transfers_in_{name}"] for name in ("ixfr", "failed", "fallbacks"))


STEPS = 20  # connections are kept for seconds: on the slowest machine most of so many find one


@pytest.mark.parametrize("hint", [True, False])
def test_transfers_share_a_connection(secondary, hint):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    for _ in range(STEPS):
        step(server, primary, hint)
    assert primary.accepted < STEPS / 2
    assert counters(server) == (STEPS, 0, 0)
    assert primary.asked == ["AXFR"] + (["IXFR"] if hint else ["SOA", "IXFR"]) * STEPS
    assert primary.most_connections == 1
    server.stop()
    servers.wait_until("nothing is left open", lambda: primary.connections == 0)


def test_signed_transfers_share_a_connection(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=lambda primaries: signed(primaries[0]), keys=[KEY], key=KEY["name"])
    for number in range(STEPS):
        step(server, primary, hint=number % 2 == 0)
    assert primary.accepted < STEPS / 2
    assert counters(server) == (STEPS, 0, 0)


def test_a_connection_closed_between_transfers_is_replaced(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    for _ in range(5):
        primary.sever()
        step(server, primary)
    assert counters(server) == (5, 0, 0)
    assert primary.accepted >= 6 and primary.asked == ["AXFR"] + ["IXFR"] * 5


@pytest.mark.parametrize("queries, hint", [(1, True), (3, False)])
def test_a_connection_closed_instead_of_an_answer_is_replaced(secondary, queries, hint):  # noqa: F811
    """As servers do that bound the queries of a connection, also between the SOA and the IXFR of one visit."""
    server, (primary,) = secondary(prepare=prepared)
    primary.queries_per_connection = queries
    for _ in range(8):
        step(server, primary, hint)
    assert counters(server) == (8, 0, 0)
    assert "AXFR" not in primary.asked[1:]


def test_a_primary_that_restarts_is_asked_over_a_new_connection(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    step(server, primary)
    primary.close()
    successor = OddPrimary(primary.port)
    try:
        incremental(successor)
        successor.serial = primary.serial
        step(server, successor)
        assert counters(server) == (2, 0, 0) and successor.asked == ["IXFR"]
    finally:
        successor.close()


@pytest.mark.parametrize("garbage", [b"\0", b"\0\3abc", bytes(300)], ids=["an octet", "a message", "more"])
@pytest.mark.parametrize("when", ["at once", "later"])
def test_octets_behind_a_transfer_are_not_taken_for_the_next_answer(secondary, garbage, when):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    usual = primary.answer

    def answer(query, rdtype):
        yield from usual(query, rdtype)
        if when == "at once":
            yield garbage  # and its length before it
        else:
            time.sleep(0.1)
            primary.here.connection.sendall(garbage)

    primary.answer = answer
    for _ in range(4):
        step(server, primary)
        if when == "later":
            time.sleep(0.3)  # mostly it is found before the next query; else behind it
    assert counters(server) == (4, 0, 0)
    assert primary.accepted >= 4  # the first one was used twice


def test_a_late_message_before_the_answer_is_nobodys_failure(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    usual = primary.answer

    def answer(query, rdtype):
        if hasattr(primary.here, "answered"):
            late = dns.message.make_response(query)
            late.id ^= 1
            yield late.to_wire()
        primary.here.answered = True
        yield from usual(query, rdtype)

    primary.answer = answer
    for _ in range(5):
        step(server, primary)
    assert counters(server) == (5, 0, 0)


def test_connections_to_primaries_that_are_gone_are_closed(pando):
    primaries = [OddPrimary(), OddPrimary()]
    stays, goes = primaries

    def answer(query, rdtype):
        apex = query.question[0].name.to_text()
        opening = dns.rrset.from_text(apex, 300, "IN", "SOA", "ns.test. admin.test. 1 36000 36000 360000 300")
        return [wire(query, [opening] if rdtype == "SOA" else
                     [opening, dns.rrset.from_text(apex, 300, "IN", "NS", "ns.test."), opening])]

    stays.answer = goes.answer = answer
    try:
        server = pando([{"name": name, "primaries": [name]} for name in ("stays", "goes")],
                       remotes=[{"name": name, "address": [f"127.0.0.1@{one.port}"]}
                                for name, one in zip(("stays", "goes"), primaries)])
        server.start("stays")
        # In this order, so that the other one would be closed first if it was for having nothing to do.
        for name, one in zip(("stays", "goes"), primaries):
            asked = len(one.asked)
            notify(server, apex=name)
            servers.wait_until("it was asked", lambda: len(one.asked) > asked)
        del server.zones[1:]
        server.write_config()
        server.control("reload")
        servers.wait_until("it is closed", lambda: goes.connections == 0)
        assert stays.connections == 1
    finally:
        for one in primaries:
            one.close()


@pytest.mark.parametrize("rcode", ["NOTIMP", "SERVFAIL", "FORMERR"])
def test_an_ixfr_that_is_not_answered_is_followed_by_all_that_it_left_out(secondary, rcode):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    refuses(primary, {"IXFR"}, lambda query: [wire(query, [], dns.rcode.from_text(rcode))])
    step(server, primary)
    assert counters(server) == (0, 1, 1)
    straight = ["IXFR", "IXFR"] if rcode == "FORMERR" else ["IXFR"]  # without EDNS, too
    assert primary.asked[1:] == [*straight, "SOA", "IXFR", "SOA", "AXFR"]


def test_a_primary_that_closes_at_once_is_not_asked_for_the_whole_zone(secondary):  # noqa: F811
    """It may have too many connections, and says nothing about the IXFR."""
    server, (primary,) = secondary(prepare=prepared)
    usual = primary.answer
    refuses(primary, {"SOA", "IXFR", "AXFR"}, lambda query: None)
    primary.serial = 2
    notify(server, slow_soa(2))
    servers.wait_until("it is told", lambda: counters(server)[1] == 1, 60)
    primary.answer = usual
    notify(server, slow_soa(2))
    has_serial(server, 2)
    assert counters(server) == (1, 1, 0) and "AXFR" not in primary.asked[1:]


@pytest.mark.parametrize("authoritative", [True, False])
def test_a_notify_that_tells_too_much_brings_nothing(secondary, authoritative):  # noqa: F811
    """The primary has what we have; without authority it cannot say so, and is asked as ever."""
    server, (primary,) = secondary(prepare=prepared)
    refuses(primary, {"IXFR"}, lambda query: [wire(query, [slow_soa(1)], authoritative=authoritative)])
    notify(server, slow_soa(7))
    servers.wait_until("it was asked", lambda: primary.asked[1:] == ["IXFR"] + ([] if authoritative else ["SOA"]), 60)
    time.sleep(1)
    assert primary.asked.count("IXFR") == 1, "once for each NOTIFY"
    assert counters(server) == (0, 0, 0) and server.serial("example") == 1


def test_notifies_during_a_transfer_bring_what_is_newer_and_nothing_else(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=prepared)
    usual = primary.answer

    def answer(query, rdtype):
        if rdtype == "IXFR" and primary.serial < 4:
            for serial in (2, 3, 3, 2):  # 3 is what this one brings, told again
                notify(server, slow_soa(serial))
            messages = usual(query, rdtype)
            primary.serial += 1
            notify(server, slow_soa(primary.serial))
            return messages
        if rdtype == "IXFR":
            notify(server, slow_soa(4))
        return usual(query, rdtype)

    primary.answer = answer
    primary.serial = 3
    notify(server, slow_soa(3))
    has_serial(server, 4)
    notify(server, slow_soa(4))
    time.sleep(1)
    assert primary.asked == ["AXFR", "IXFR", "IXFR"]
    assert counters(server) == (2, 0, 0)


def test_the_primary_that_told_is_asked_and_the_others_as_ever(secondary):  # noqa: F811
    """Both have the same address: the first of them counts as the one that spoke."""
    server, (first, second) = secondary(2, prepare=prepared)
    second.serial = 2
    notify(server, slow_soa(2))
    has_serial(server, 2)
    assert first.asked[-1] == "IXFR" and second.asked[-2:] == ["SOA", "IXFR"]
    assert counters(server) == (1, 0, 0)
