"""Anybody can send NOTIFYs in a primary's name: a flood of them must not become a flood of questions to the primary."""

import socket
import time

import dns.flags
import dns.message
import dns.opcode
import pytest

import servers
from test_odd_primaries import APEX, OddPrimary, has_serial, notify, soa, zone, wire

REFRESH = 36000  # nobody asks by the timers


@pytest.fixture
def secondary(pando):
    primary = OddPrimary()

    def answer(query, rdtype):
        opening = soa(primary.serial, refresh=REFRESH)
        return [wire(query, [opening] if rdtype == "SOA" else [opening, *zone(primary.serial)[1:-1], opening])]

    primary.answer = answer
    server = pando([{"name": "example", "primaries": ["odd"]}],
                   remotes=[{"name": "odd", "address": [f"127.0.0.1@{primary.port}"]}]).start("example")
    yield server, primary
    primary.close()


def flood(server, seconds, rate):
    """Returns how many NOTIFYs were sent."""
    message = dns.message.make_query(APEX, "SOA")
    message.set_opcode(dns.opcode.NOTIFY)
    message.flags = message.flags & ~dns.flags.RD | dns.flags.AA
    octets = bytearray(message.to_wire())
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as attacker:
        attacker.connect(("127.0.0.1", server.port))
        attacker.setblocking(False)
        began = time.monotonic()
        while time.monotonic() - began < seconds:
            octets[0:2] = sent.to_bytes(2, "big")
            attacker.send(octets)
            sent += 1
            try:
                while attacker.recv(512):
                    pass
            except BlockingIOError:
                pass
            time.sleep(max(0.0, began + sent / rate - time.monotonic()))
    return sent


def test_a_flood_of_notifies_leads_to_few_questions_and_an_honest_one_is_not_lost(secondary):
    server, primary = secondary
    before, began = len(primary.asked), time.monotonic()
    sent = flood(server, seconds=3, rate=400)
    primary.serial = 2
    notify(server)  # while the zone's pace is used up
    has_serial(server, 2)
    seconds = time.monotonic() - began
    asked = len(primary.asked) - before
    print(f"{sent} NOTIFYs in {seconds:.1f} s: {asked} questions")
    assert sent > 200
    assert asked <= 5 + 5 * (seconds + 1) + 2  # the last one asks for the SOA and for the zone


def test_after_a_flood_there_is_no_line_of_questions(secondary):
    server, primary = secondary
    flood(server, seconds=1, rate=400)
    notify(server)
    quiet, last = time.monotonic(), -1

    def still():
        nonlocal quiet, last
        if len(primary.asked) != last:
            quiet, last = time.monotonic(), len(primary.asked)
        return time.monotonic() - quiet > 2

    servers.wait_until("questions end", still, 60)
    primary.serial = 2
    notify(server, soa(2, refresh=REFRESH))
    has_serial(server, 2)
