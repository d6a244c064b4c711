"""Secondary zones whose primaries break, lag or lie: what comes in is checked, another way is found."""

import shutil
import signal
import socketserver
import struct
import threading
import time

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.update
import pytest

import servers

APEX = "example."


def records(owner, rdtype, *rdata):
    return dns.rrset.from_text(owner, 300, "IN", rdtype, *rdata)


def soa(serial, refresh=1, expire=1000):
    return records(APEX, "SOA", f"ns.{APEX} admin.{APEX} {serial} {refresh} 1 {expire} 300")


def zone(serial, *more):
    """The answer section of an AXFR."""
    return [soa(serial), records(APEX, "NS", f"ns.{APEX}"), records(f"ns.{APEX}", "A", "192.0.2.1"),
            records(f"www.{APEX}", "A", f"192.0.2.{serial}"), *more, soa(serial)]


def wire(query, rrsets, rcode=dns.rcode.NOERROR, authoritative=True):
    """A response with these records in this order, doubles and all."""
    response = dns.message.make_response(query)
    response.set_rcode(rcode)
    if authoritative:
        response.flags |= dns.flags.AA
    octets = response.to_wire()
    body, count = b"", 0
    for rrset in rrsets:
        for rdata in rrset:
            encoded = rdata.to_wire()
            body += rrset.name.to_wire() + struct.pack("!HHIH", rrset.rdtype, rrset.rdclass, rrset.ttl, len(encoded))
            body += encoded
            count += 1
    return octets[:6] + struct.pack("!H", count) + octets[8:] + body


class OddPrimary:
    """Answers over TCP by a function of the query type that gives wire messages; None closes the connection."""

    def __init__(self):
        self.asked = []
        self.serial = 1
        self.answer = lambda query, rdtype: self.honest(query, rdtype)
        primary = self

        class Connection(socketserver.StreamRequestHandler):
            def handle(self):
                while prefix := self.rfile.read(2):
                    query = dns.message.from_wire(self.rfile.read(*struct.unpack("!H", prefix)))
                    rdtype = dns.rdatatype.to_text(query.question[0].rdtype)
                    primary.asked.append(rdtype)
                    messages = primary.answer(query, rdtype)
                    if messages is None:
                        return
                    for message in messages:
                        self.wfile.write(struct.pack("!H", len(message)) + message)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", 0), Connection)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def honest(self, query, rdtype):
        """SOA and AXFR as they should be; IXFR is not implemented."""
        if rdtype == "SOA":
            return [wire(query, [soa(self.serial)])]
        if rdtype == "AXFR":
            return [wire(query, zone(self.serial))]
        return [wire(query, [], dns.rcode.NOTIMP)]

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def secondary(pando):
    """Gives secondary(count) → (server, primaries): serving serial 1 and looking every second."""
    opened = []

    def start(count=1, wait=True, limits="", prepare=lambda primaries: None):
        primaries = [OddPrimary() for _ in range(count)]
        opened.extend(primaries)
        prepare(primaries)
        server = pando(
            [{"name": "example", "primaries": ["odd"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
            remotes=[{"name": "odd", "address": [f"127.0.0.1@{one.port}" for one in primaries]}],
            limits="{refresh: [1s, 4weeks]" + limits + "}")
        server.start("example" if wait else None)
        return server, primaries

    yield start
    for primary in opened:
        primary.close()


def problem(server):
    return server.control("zone", "status", "example").get("problem", "")


def notify(server):
    message = dns.message.make_query(APEX, "SOA")
    message.set_opcode(dns.opcode.NOTIFY)
    message.flags = message.flags & ~dns.flags.RD | dns.flags.AA
    assert dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR


def has_serial(server, serial):
    servers.wait_until(f"serial {serial} has come", lambda: server.serial("example") == serial, 60)


@pytest.mark.parametrize("how", ["close", "one newer SOA", "garbage", "wrong start", "REFUSED", "FORMERR"])
def test_an_ixfr_that_fails_in_any_way_is_followed_by_an_axfr(secondary, how):
    server, (primary,) = secondary()

    def answer(query, rdtype):
        if rdtype != "IXFR":
            return primary.honest(query, rdtype)
        if how == "close":
            return None
        if how == "one newer SOA":  # and then silence
            return [wire(query, [soa(primary.serial)])]
        if how == "garbage":
            return [b"\0\1\2"]
        if how == "wrong start":
            return [wire(query, [soa(primary.serial), soa(77), soa(primary.serial), soa(primary.serial)])]
        return [wire(query, [], dns.rcode.from_text(how))]

    primary.answer = answer
    primary.serial = 2
    has_serial(server, 2)
    assert server.control("status")["counters"]["transfers_in_fallbacks"] == 1


def test_a_stale_primary_does_not_hide_a_newer_one(secondary):
    server, (stale, newer) = secondary(2)
    newer.serial = 9
    has_serial(server, 9)
    servers.wait_until("the stale one is named", lambda: "behind" in server.log(), 60)


def test_a_dead_primary_does_not_hide_a_living_one(secondary):
    server, (dead, living) = secondary(2)
    dead.close()
    living.serial = 9
    has_serial(server, 9)


def test_a_serial_that_goes_back_is_a_problem_and_renews_nothing(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(primaries[0], "serial", 10))
    primary.serial = 5
    servers.wait_until("it is told", lambda: "serial 5 is behind ours, 10" in problem(server), 60)
    expires = server.control("zone", "status", "example")["expires_at"]
    asked = len(primary.asked)
    servers.wait_until("it was asked again", lambda: len(primary.asked) >= asked + 2, 60)
    status = server.control("zone", "status", "example")
    assert status["serial"] == 10 and status["expires_at"] == expires


def test_an_answer_without_authority_renews_nothing(secondary):
    server, (primary,) = secondary()
    primary.answer = lambda query, rdtype: [wire(query, [soa(1)], authoritative=False)]
    servers.wait_until("it is told", lambda: "not an authority" in problem(server), 60)
    expires = server.control("zone", "status", "example")["expires_at"]
    asked = len(primary.asked)
    servers.wait_until("it was asked again", lambda: len(primary.asked) >= asked + 2, 60)
    assert server.control("zone", "status", "example")["expires_at"] == expires


def test_a_transfer_that_brings_less_than_was_promised_is_refused(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(primaries[0], "serial", 5))

    def answer(query, rdtype):
        if rdtype == "SOA":
            return [wire(query, [soa(9)])]
        return [wire(query, zone(2))] if rdtype == "AXFR" else primary.honest(query, rdtype)

    primary.answer = answer
    servers.wait_until("it is told", lambda: "not ahead of ours" in problem(server), 60)
    assert server.serial("example") == 5


def test_an_expired_zone_takes_what_its_primary_has_then(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(
        primaries[0], "answer", lambda query, rdtype: [wire(query, [soa(10, expire=3), *zone(10)[1:-1], soa(10, expire=3)])
                                                       if rdtype == "AXFR" else wire(query, [soa(10, expire=3)])]))
    primary.answer = lambda query, rdtype: None
    servers.wait_until("it has expired", lambda: server.ask("www.example").rcode() == dns.rcode.SERVFAIL, 60)
    primary.serial = 4
    primary.answer = primary.honest
    has_serial(server, 4)
    assert server.ask("www.example").rcode() == dns.rcode.NOERROR


@pytest.mark.parametrize("what, limit", [("records", "limits.rrset-records"), ("types", "limits.name-types")])
def test_names_beyond_the_limits_do_not_come_in_by_axfr(secondary, what, limit):
    many = [records(f"many.{APEX}", "A", *(f"10.0.0.{i}" for i in range(1, 31)))] if what == "records" else [
        records(f"many.{APEX}", f"TYPE{65300 + i}", r"\# 0") for i in range(30)]
    server, (primary,) = secondary(
        limits=", rrset-records: 20, name-types: 20", wait=False,
        prepare=lambda primaries: setattr(primaries[0], "answer", lambda query, rdtype: [wire(query, zone(1, *many))]))
    servers.wait_until("it is told", lambda: limit in problem(server), 60)
    assert server.ask("www.example").rcode() == dns.rcode.SERVFAIL
    primary.answer = primary.honest
    notify(server)  # a zone without data is tried once a minute only
    has_serial(server, 1)


ZONE_FILE = """$TTL 300
@ SOA ns admin 100 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
www A 203.0.113.1
"""


def make_primary(server, tmp_path):
    """As an operator does when a zone's primary is lost."""
    path = tmp_path / "promoted.zone"
    path.write_text(ZONE_FILE)
    server.zones = [{"name": "example", "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}],
                     "allow-transfer": [{"address": "127.0.0.0/8"}]}]
    server.write_config()
    server.control("reload")


def address(server):
    answer = server.ask("www.example")
    return answer.answer[0][0].address if answer and answer.answer else dns.rcode.to_text(answer.rcode())


def test_a_secondary_made_primary_does_not_expire(secondary, tmp_path):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(
        primaries[0], "answer", lambda query, rdtype: [wire(query, [soa(10, expire=3), *zone(10)[1:-1], soa(10, expire=3)])
                                                       if rdtype == "AXFR" else wire(query, [soa(10, expire=3)])]))
    primary.answer = lambda query, rdtype: None
    make_primary(server, tmp_path)
    assert address(server) == "203.0.113.1"
    assert server.control("zone", "status", "example")["expires_at"] == 0
    time.sleep(5)  # past what the SOA of the secondary said
    assert address(server) == "203.0.113.1"


def test_a_transfer_under_way_does_not_replace_a_zone_made_primary(secondary, tmp_path):
    server, (primary,) = secondary()
    asked, go_on = threading.Event(), threading.Event()

    def answer(query, rdtype):
        if rdtype == "AXFR":
            asked.set()
            go_on.wait(60)
        return primary.honest(query, rdtype)

    primary.answer = answer
    primary.serial = 200
    assert asked.wait(60)
    make_primary(server, tmp_path)
    assert address(server) == "203.0.113.1"
    update = dns.update.UpdateMessage("example")
    update.add("new", 60, "A", "192.0.2.77")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR
    go_on.set()
    servers.wait_until("the transfer has ended", lambda: "transfer_dropped" in server.log(), 60)
    assert address(server) == "203.0.113.1" and server.serial("example") == 101
    assert server.ask("new.example").answer


def test_a_notify_during_a_failing_visit_brings_another_visit(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(
        primaries[0], "answer", lambda query, rdtype: [wire(query, [slow_soa(1), *zone(1)[1:-1], slow_soa(1)])]))
    asked, fail = threading.Event(), threading.Event()

    def answer(query, rdtype):
        asked.set()
        fail.wait(60)
        primary.answer = primary.honest
        return None

    primary.answer = answer
    primary.serial = 3
    notify(server)
    assert asked.wait(60)
    notify(server)
    fail.set()
    has_serial(server, 3)


def slow_soa(serial):
    """Nobody looks again by the timers."""
    return records(APEX, "SOA", f"ns.{APEX} admin.{APEX} {serial} 36000 36000 360000 300")


def test_a_zone_without_a_file_outlives_the_host_and_goes_with_its_configuration(secondary):
    server, (primary,) = secondary()
    copy = server.folder / "journal/secondary/example.zone"
    servers.wait_until("the copy is there", copy.exists)
    primary.close()
    server.stop()
    shutil.rmtree(server.store)
    server.start("example")
    assert address(server) == "192.0.2.1"
    status = server.control("zone", "status", "example")
    assert status["state"] == "ok" and status["expires_at"] > time.time()
    server.zones = []
    server.write_config()
    server.control("reload")
    servers.wait_until("the copy has gone", lambda: not copy.exists())


def test_a_crash_while_a_copy_is_written_leaves_the_old_one_whole(secondary):
    server, (primary,) = secondary()
    copy = server.folder / "journal/secondary/example.zone"
    servers.wait_until("the copy is there", copy.exists)
    before = copy.read_text()
    server.stop()
    server.crash_at = "zone-copy-written"
    server.start("example")
    primary.serial = 2
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    assert server.process.returncode == -signal.SIGKILL
    assert copy.read_text() == before
    server.crash_at = None
    server.start("example")
    assert server.serial("example") == 2, "the store has what the copy has not"
    primary.serial = 3
    servers.wait_until("the next copy is there", lambda: copy.exists() and "serial 3" in copy.read_text(), 60)
