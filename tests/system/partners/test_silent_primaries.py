"""Primaries that are silent or slow must not keep the zones of others from their transfers, and cost little."""

import contextlib
import socket
import threading
import time

import pytest

import servers
from test_odd_primaries import APEX, OddPrimary, has_serial, notify, records, wire

SILENT = "127.0.0.9"


def opening(apex, serial):
    """A SOA record by which nobody refreshes."""
    return records(apex, "SOA", f"ns.{APEX} admin.{APEX} {serial} 36000 36000 360000 300")


def honest(primary):
    """Answers for any zone at the primary's serial."""
    def answer(query, rdtype):
        apex = query.question[0].name.to_text()
        soa = opening(apex, primary.serial)
        return [wire(query, [soa] if rdtype == "SOA" else [soa, records(apex, "NS", f"ns.{APEX}"), soa])]

    primary.answer = answer
    return primary


@contextlib.contextmanager
def silent_listener(port=0):
    """Takes connections, which wait in its queue, and never answers."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((SILENT, port))
        listener.listen(1000)
        yield listener.getsockname()[1]


@pytest.fixture
def live():
    primary = honest(OddPrimary())
    yield primary
    primary.close()


def with_zones(server, zones):
    """`zones`: (name, remote) pairs, in a zone list."""
    path = server.folder / "silent.list"
    path.write_text("".join(f"{name} - of-{remote}\n" for name, remote in zones))
    templates = ", ".join(f"{{name: of-{remote}, primaries: [{remote}]}}" for remote in sorted({one for _, one in zones}))
    with open(server.config, "a") as config:
        config.write(f"templates: [{templates}]\nzone-lists: ['{path}']\n")
    return server


def whole_log(server):
    return server.log_path.read_text(errors="replace")


def remote(name, port, address="127.0.0.1"):
    return {"name": name, "address": [f"{address}@{port}"]}


@pytest.mark.parametrize("count", [1, 12, 100])
def test_a_live_zone_comes_beside_silent_primaries(pando, live, count):
    """Once more than a minute passed, since each silent attempt held a place for ten seconds."""
    with contextlib.ExitStack() as stack:
        ports = [stack.enter_context(silent_listener()) for _ in range(count)]
        server = pando([{"name": "example", "primaries": ["live"]}],
                       remotes=[remote("live", live.port), *(remote(f"silent{i}", port, SILENT) for i, port in enumerate(ports))])
        with_zones(server, [(f"z{number}.test", f"silent{number % count}") for number in range(1200)])
        began = time.monotonic()
        server.start()
        servers.wait_until("the live zone is served after the start", lambda: server.serves("example"), 30)
        after_start = time.monotonic() - began
        times = []
        for serial in (2, 3, 4):
            live.serial = serial
            began = time.monotonic()
            notify(server)
            has_serial(server, serial)
            times.append(time.monotonic() - began)
        print(f"{count} silent primaries: {after_start:.2f} s after the start, then {times}")
        failed = server.control("status")["counters"]["transfers_in_failed"]
        assert failed < 1200, "none has been given up for another"


def test_zones_of_a_silent_primary_wait_without_attempts_and_come_when_it_is_back(pando):
    count = 3000
    with silent_listener() as port:
        server = with_zones(pando([], remotes=[remote("odd", port, SILENT)], limits="{refresh: [1s, 4weeks]}"),
                            [(f"z{number}.test", "odd") for number in range(count)])
        server.start()
        servers.wait_until("the primary is known to be silent", lambda: "primary_silent " in whole_log(server), 60)
        last = f"z{count - 1}.test"
        servers.wait_until("a zone that never asked tells why it waits",
                           lambda: f"{SILENT}@{port}: " in server.control("zone", "status", last).get("problem", ""))
        servers.wait_until("attempts go on", lambda: server.control("status")["counters"]["transfers_in_failed"] >= 2, 60)
        assert whole_log(server).count("primary_silent ") == 1
        assert whole_log(server).count("zone_refresh_failed ") == 1
    # The port is closed now: connections are refused.
    primary = honest(OddPrimary(port, address=SILENT))
    began = time.monotonic()
    try:
        servers.wait_until("its return is noticed", lambda: server.control("status")["counters"]["transfers_in"], 60)
        print(f"noticed after {time.monotonic() - began:.2f} s")
        servers.wait_until("all zones have come", lambda: server.control("status")["counters"]["transfers_in"] == count, 120)
        assert f"primary_answers primary={SILENT}@{port}" in whole_log(server)
        assert not server.control("zone", "status", last).get("problem")
    finally:
        primary.close()


def test_a_notify_of_another_primary_ends_the_wait_for_a_silent_one(pando, live):
    with silent_listener() as port:
        remotes = [{"name": "both", "address": [f"{SILENT}@{port}", f"127.0.0.1@{live.port}"]}]
        server = pando([{"name": "example", "primaries": ["both"]}], remotes=remotes).start()
        # Until then the silent one may be about to answer.
        servers.wait_until("the news come", lambda: notify(server) or server.serves("example"), 60)
        assert "zone_refresh_failed" not in whole_log(server), "the silent one has still time to answer"
        live.serial = 2
        notify(server)
        has_serial(server, 2)


def test_a_zone_goes_on_to_its_next_primary_while_the_first_is_away(pando, live):
    """Nobody waits ten seconds for each of these zones."""
    count = 200
    with silent_listener() as port:
        remotes = [{"name": "both", "address": [f"{SILENT}@{port}", f"127.0.0.1@{live.port}"]}]
        server = with_zones(pando([], remotes=remotes), [(f"z{number}.test", "both") for number in range(count)])
        server.start()
        # A few zones ask the silent one, for ten seconds each.
        servers.wait_until("nearly all zones have come", lambda: server.control("status")["counters"]["transfers_in"] > count - 20, 60)


def trickle(pause, stop):
    """Sends a whole zone, record by record with pauses, and never ends it."""
    def answer(query, rdtype):
        apex = query.question[0].name.to_text()
        yield wire(query, [opening(apex, 1)])
        number = 0
        while not stop.wait(pause):
            number += 1
            yield wire(query, [records(f"h{number}.{apex}", "A", "192.0.2.1")])

    return answer


def test_trickling_primaries_hold_no_places_of_others(pando, live):
    stop = threading.Event()
    with contextlib.ExitStack() as stack:
        stack.callback(stop.set)
        slow = [stack.enter_context(contextlib.closing(OddPrimary())) for _ in range(3)]
        for primary in slow:
            primary.answer = trickle(0.2, stop)
        server = pando([{"name": "example", "primaries": ["live"]}], limits="{transfers-in: 2}",
                       remotes=[remote("live", live.port), *(remote(f"slow{i}", one.port) for i, one in enumerate(slow))])
        with_zones(server, [(f"z{number}.test", f"slow{number % 3}") for number in range(30)])
        server.start()
        servers.wait_until("trickles run", lambda: all(one.connections > 0 for one in slow), 60)
        for serial in (2, 3):
            live.serial = serial
            notify(server)
            has_serial(server, serial)
        assert all(one.connections > 0 for one in slow), "they run still"

