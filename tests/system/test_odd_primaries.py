"""Secondary zones whose primaries break, lag or lie: what comes in is checked, another way is found."""

import contextlib
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import time

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsigkeyring
import dns.update
import pytest

import servers
from test_full import small_disk  # noqa: F401 (a fixture)

APEX = "example."


def records(owner, rdtype, *rdata):
    return dns.rrset.from_text(owner, 300, "IN", rdtype, *rdata)


def soa(serial, refresh=1, expire=1000):
    return records(APEX, "SOA", f"ns.{APEX} admin.{APEX} {serial} {refresh} 1 {expire} 300")


def zone(serial, *more):
    """The answer section of an AXFR."""
    return [soa(serial), records(APEX, "NS", f"ns.{APEX}"), records(f"ns.{APEX}", "A", "192.0.2.1"),
            records(f"www.{APEX}", "A", f"192.0.2.{serial}"), *more, soa(serial)]


def wire(query, rrsets, rcode=dns.rcode.NOERROR, authoritative=True, expire=None):
    """A response with these records in this order, doubles and all; with an EXPIRE option if there is a value."""
    response = dns.message.make_response(query)
    response.use_edns(-1)
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
    opt = b"" if expire is None else struct.pack("!BHHIHHHI", 0, 41, 1232, 0, 8, 9, 4, expire)
    return octets[:6] + struct.pack("!HHH", count, 0, 1 if opt else 0) + octets[12:] + body + opt


class OddPrimary:
    """Answers over TCP by a function of the query type that gives wire messages; None closes the connection."""

    def __init__(self, port=0, keyring=None, address="127.0.0.1"):
        self.asked = []
        self.serial = 1
        self.keyring = keyring
        self.connections = 0
        self.most_connections = 0
        self.accepted = 0
        self.queries_per_connection = None  # the next one closes it, without an answer
        self.sockets = set()
        self.here = threading.local()  # of the thread that answers: its connection
        counting = threading.Lock()
        self.answer = lambda query, rdtype: self.honest(query, rdtype)
        primary = self

        class Connection(socketserver.StreamRequestHandler):
            def setup(self):
                super().setup()
                primary.here.connection = self.connection
                with counting:
                    primary.accepted += 1
                    primary.connections += 1
                    primary.most_connections = max(primary.most_connections, primary.connections)
                    primary.sockets.add(self.connection)

            def finish(self):
                with counting:
                    primary.connections -= 1
                    primary.sockets.discard(self.connection)
                super().finish()

            def handle(self):
                queries = 0
                with contextlib.suppress(OSError):  # the secondary has had enough
                    while prefix := self.rfile.read(2):
                        query = dns.message.from_wire(self.rfile.read(*struct.unpack("!H", prefix)), keyring=primary.keyring)
                        rdtype = dns.rdatatype.to_text(query.question[0].rdtype)
                        primary.asked.append(rdtype)
                        queries += 1
                        if queries - 1 == primary.queries_per_connection:
                            return
                        messages = primary.answer(query, rdtype)
                        if messages is None:
                            return
                        for message in messages:
                            self.wfile.write(struct.pack("!H", len(message)) + message)

        class Server(socketserver.ThreadingTCPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server((address, port), Connection)
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def honest(self, query, rdtype):
        """SOA and AXFR as they should be; IXFR is not implemented."""
        if rdtype == "SOA":
            return [wire(query, [soa(self.serial)])]
        if rdtype == "AXFR":
            return [wire(query, zone(self.serial))]
        return [wire(query, [], dns.rcode.NOTIMP)]

    def sever(self, last=b""):
        """Ends the connections there are, after some octets that nobody asked for."""
        for connection in list(self.sockets):
            with contextlib.suppress(OSError):
                connection.sendall(last)
                connection.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.sever()


@pytest.fixture
def secondary(pando):
    """Gives secondary(count) → (server, primaries): serving serial 1 and looking every second."""
    opened = []

    def start(count=1, wait=True, limits="", prepare=lambda primaries: None, key=None, **options):
        primaries = [OddPrimary() for _ in range(count)]
        opened.extend(primaries)
        prepare(primaries)
        server = pando(
            [{"name": "example", "primaries": ["odd"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
            remotes=[{"name": "odd", "address": [f"127.0.0.1@{one.port}" for one in primaries]} | ({"key": key} if key else {})],
            limits="{refresh: [1s, 4weeks]" + limits + "}", **options)
        server.start("example" if wait else None)
        return server, primaries

    yield start
    for primary in opened:
        primary.close()


def problem(server):
    return server.control("zone", "status", "example").get("problem", "")


def notify(server, hint=None, apex=APEX):
    """`hint`: the SOA that the primary has."""
    message = dns.message.make_query(apex, "SOA")
    message.set_opcode(dns.opcode.NOTIFY)
    message.flags = message.flags & ~dns.flags.RD | dns.flags.AA
    if hint is not None:
        message.answer.append(hint)
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


@pytest.mark.parametrize("serial, what", [
    (5, "behind"), pytest.param(10 + 2**31, "not ahead of", id="distance 2^31")])
def test_a_serial_that_goes_back_is_a_problem_and_renews_nothing(secondary, serial, what):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(primaries[0], "serial", 10))
    primary.serial = serial
    servers.wait_until("it is told", lambda: f"has serial {serial}, {what} ours (10): `zone retransfer` takes it" in problem(server), 60)
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


def test_an_expired_zone_takes_what_it_had_when_its_primary_tells(secondary):
    """The primary comes back with the same serial, long before it is asked again by the timers."""
    server, (primary,) = secondary(prepare=lambda primaries: setattr(
        primaries[0], "answer", lazily(primaries[0], expire=3)))
    primary.answer = lambda query, rdtype: None
    servers.wait_until("it has expired", lambda: server.ask("www.example").rcode() == dns.rcode.SERVFAIL, 60)
    servers.wait_until("it was tried in vain", lambda: problem(server), 60)
    primary.answer = lazily(primary)
    notify(server, slow_soa(1))
    servers.wait_until("it is served", lambda: server.ask("www.example").rcode() == dns.rcode.NOERROR, 60)
    assert server.serial("example") == 1


def test_a_notify_of_what_is_there_brings_no_visit(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(primaries[0], "answer", lazily(primaries[0])))
    asked = len(primary.asked)
    notify(server, slow_soa(1))
    time.sleep(2)
    assert len(primary.asked) == asked


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


def lazily(primary, expire=None, slow=None):
    """Answers with the serial that the primary has, in SOA records that ask for no refresh."""
    def answer(query, rdtype):
        opening = slow_soa(primary.serial)
        if rdtype == "SOA":
            return [wire(query, [opening], expire=expire)]
        if slow and rdtype in slow:
            return slow[rdtype](query, opening)
        return [wire(query, [opening, *zone(primary.serial)[1:-1], opening], expire=expire)]
    return answer


def without_end(query, first, pause=0.0):
    """A stream of records of the zone, as long as anybody takes it."""
    yield wire(query, first)
    number = 0
    while True:
        time.sleep(pause)
        number += 1
        yield wire(query, [records(f"n{number}.{APEX}", "A", *(f"10.{number % 250}.0.{i}" for i in range(250)))])


def test_an_ixfr_without_an_end_is_given_up_for_an_axfr(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(primaries[0], "answer", lazily(primaries[0])))
    primary.answer = lazily(primary, slow={"IXFR": lambda query, opening: without_end(query, [opening, slow_soa(1)])})
    primary.serial = 2
    notify(server)
    has_serial(server, 2)
    assert "changesets of more than 100000 records" in server.log()
    assert server.control("status")["counters"]["transfers_in_fallbacks"] == 1


def test_an_ixfr_beyond_the_limits_is_given_up_for_an_axfr(secondary):
    server, (primary,) = secondary(limits=", rrset-records: 20")
    many = records(f"many.{APEX}", "A", *(f"10.0.0.{i}" for i in range(1, 31)))

    def answer(query, rdtype):
        if rdtype != "IXFR":
            return primary.honest(query, rdtype)
        return [wire(query, [soa(2), soa(1), soa(2), many, soa(2)])]

    primary.answer = answer
    primary.serial = 2
    has_serial(server, 2)
    assert server.control("status")["counters"]["transfers_in_fallbacks"] == 1
    assert server.ask("many.example").rcode() == dns.rcode.NXDOMAIN


@pytest.mark.parametrize("limit, value", [("transfer-time", "2s"), ("transfer-size", "1MiB")])
def test_a_transfer_beyond_its_limits_is_given_up(secondary, limit, value):
    pause = 0.5 if limit == "transfer-time" else 0  # each message is in time, so silence is not the reason
    server, (primary,) = secondary(
        limits=f", {limit}: {value}", wait=False, prepare=lambda primaries: setattr(primaries[0], "answer", lazily(
            primaries[0], slow={"AXFR": lambda query, opening: without_end(query, [opening], pause)})))
    servers.wait_until("it is told", lambda: f"limits.{limit}" in problem(server), 60)
    primary.answer = lazily(primary)
    notify(server)
    has_serial(server, 1)


def test_no_more_visits_to_a_primary_at_once_than_configured(pando, tmp_path):
    """Each zone has its turn, however many wait for the same primary."""
    count = 300
    zone_list = tmp_path / "zones.list"
    zone_list.write_text("".join(f"z{number}.test - secondary\n" for number in range(count)))
    primary = OddPrimary()

    def answer(query, rdtype):
        apex = query.question[0].name.to_text()
        opening = dns.rrset.from_text(apex, 300, "IN", "SOA", "ns.test. admin.test. 1 36000 36000 360000 300")
        return [wire(query, [opening, dns.rrset.from_text(apex, 300, "IN", "NS", "ns.test."), opening])]

    primary.answer = answer
    try:
        server = pando([], remotes=[{"name": "odd", "address": [f"127.0.0.1@{primary.port}"]}],
                       limits="{transfers-in-per-primary: 3}")
        with open(server.config, "a") as config:
            config.write(f"templates: [{{name: secondary, primaries: [odd]}}]\nzone-lists: ['{zone_list}']\n")
        server.start()
        servers.wait_until("all zones have come", lambda: server.control("status")["counters"]["transfers_in"] == count, 120)
        # A connection that the secondary has left is counted until its thread has noticed.
        assert primary.most_connections <= 3 + 3 and len(primary.asked) == count
    finally:
        primary.close()


def test_no_more_transfers_at_once_than_configured_whoever_sends_them(pando, tmp_path):
    zone_list = tmp_path / "zones.list"
    zone_list.write_text("".join(f"z{number}.test - from{number % 3}\n" for number in range(150)))
    counting, answering, most = threading.Lock(), 0, 0

    def answer(query, rdtype):
        nonlocal answering, most
        with counting:
            answering += 1
            most = max(most, answering)
        time.sleep(0.02)
        apex = query.question[0].name.to_text()
        opening = dns.rrset.from_text(apex, 300, "IN", "SOA", "ns.test. admin.test. 1 36000 36000 360000 300")
        with counting:
            answering -= 1
        return [wire(query, [opening, dns.rrset.from_text(apex, 300, "IN", "NS", "ns.test."), opening])]

    with contextlib.ExitStack() as stack:
        primaries = [stack.enter_context(contextlib.closing(OddPrimary())) for _ in range(3)]
        for primary in primaries:
            primary.answer = answer
        server = pando([], remotes=[{"name": f"odd{i}", "address": [f"127.0.0.1@{primary.port}"]}
                                    for i, primary in enumerate(primaries)], limits="{transfers-in: 4}")
        with open(server.config, "a") as config:
            templates = ", ".join(f"{{name: from{i}, primaries: [odd{i}]}}" for i in range(3))
            config.write(f"templates: [{templates}]\nzone-lists: ['{zone_list}']\n")
        server.start()
        servers.wait_until("all zones have come", lambda: server.control("status")["counters"]["transfers_in"] == 150, 120)
        assert 2 <= most <= 4


def test_a_notify_from_elsewhere_is_taken_if_its_key_may(pando):
    """`allow-notify` by key: the primary's own address may always."""
    names = ("notify-key", "other-key")
    keys = [{"name": name, "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSBub3RpZnkgdGVzdHM="} for name in names]
    primary = OddPrimary()
    primary.answer = lambda query, rdtype: [wire(query, slow_whole(primary.serial) if rdtype == "AXFR" else [slow_soa(primary.serial)])]

    def told_by(key):
        message = dns.message.make_query(APEX, "SOA")
        message.set_opcode(dns.opcode.NOTIFY)
        message.flags = message.flags & ~dns.flags.RD | dns.flags.AA
        if key:
            message.use_tsig(dns.tsigkeyring.from_text({one["name"]: one["secret"] for one in keys}), key)
        return dns.query.udp(message, "127.0.0.1", port=server.port, timeout=10, source="127.0.0.9").rcode()

    def slow_whole(serial):
        return [slow_soa(serial), *zone(serial)[1:-1], slow_soa(serial)]

    try:
        server = pando([{"name": "example", "primaries": ["odd"], "allow-notify": [{"key": "notify-key"}]}], keys=keys,
                       remotes=[{"name": "odd", "address": [f"127.0.0.1@{primary.port}"]}]).start("example")
        primary.serial = 2
        assert told_by(None) == told_by("other-key") == dns.rcode.REFUSED
        assert server.serial("example") == 1
        assert told_by("notify-key") == dns.rcode.NOERROR
        has_serial(server, 2)
    finally:
        primary.close()


def expires_in(server):
    return server.control("zone", "status", "example")["expires_at"] - time.time()


def test_a_primary_that_is_a_secondary_says_when_the_zone_expires(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: setattr(
        primaries[0], "answer", lazily(primaries[0], expire=5000)))
    assert 4000 < expires_in(server) <= 5000, "the SOA says 360000"
    primary.answer = lazily(primary, expire=7000)
    asked = len(primary.asked)
    notify(server)
    servers.wait_until("it was asked", lambda: len(primary.asked) > asked)
    servers.wait_until("the time is longer", lambda: expires_in(server) > 6000)
    primary.answer = lazily(primary, expire=3000)
    last_ok = server.control("zone", "status", "example")["last_ok"]
    time.sleep(1.1)  # `last_ok` has seconds
    notify(server)
    servers.wait_until("it was asked", lambda: server.control("zone", "status", "example")["last_ok"] > last_ok)
    assert expires_in(server) > 6000, "what another one said before is still so (RFC 7314 §4)"
    primary.serial = 2
    notify(server)
    has_serial(server, 2)
    servers.wait_until("a new version brings its own time", lambda: expires_in(server) <= 3000)


def test_a_primary_that_knows_no_edns_is_asked_without(secondary):
    def answer(query, rdtype):
        if query.edns >= 0:
            return [wire(query, [], dns.rcode.FORMERR)]
        return [wire(query, [slow_soa(primaries[0].serial)])] if rdtype == "SOA" else whole(query)

    def whole(query):
        opening = slow_soa(primaries[0].serial)
        return [wire(query, [opening, *zone(primaries[0].serial)[1:-1], opening])]

    primaries = []
    server, _ = secondary(prepare=lambda made: (primaries.extend(made), setattr(made[0], "answer", answer)))
    primaries[0].serial = 2
    notify(server)
    has_serial(server, 2)
    assert server.control("status")["counters"]["transfers_in_fallbacks"] == 0


def test_a_crash_between_a_whole_zone_and_its_note_leaves_the_zone(secondary):
    """A whole zone that is nearly ours is applied as a difference, and the journal is told in a group of its own."""
    server, (primary,) = secondary()
    server.stop()
    server.crash_at = "zone-replaced"
    server.start("example")
    primary.serial = 2
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    assert server.process.returncode == -signal.SIGKILL
    assert address(server) == "192.0.2.2", "workers have it"
    server.crash_at = None
    server.start("example")
    assert server.serial("example") == 2 and address(server) == "192.0.2.2"
    primary.close()
    server.stop()
    shutil.rmtree(server.store)
    server.start("example")
    assert address(server) == f"192.0.2.{server.serial('example')}", "one version or the other, whole"


HOSTS = 700  # whose replacement is more than the commit thread changes by itself


def hosts(serial):
    return [records(f"h{i}.{APEX}", "A", f"198.51.100.{serial}") for i in range(HOSTS)]


def with_hosts(primary):
    """SOA, AXFR and IXFR of a zone in which each version changes every host."""
    def answer(query, rdtype):
        serial = primary.serial
        if rdtype == "SOA":
            return [wire(query, [soa(serial)])]
        if rdtype == "AXFR":
            return [wire(query, zone(serial, *hosts(serial)))]
        known = query.authority[0][0].serial
        if known == serial:
            return [wire(query, [soa(serial)])]
        www = [records(f"www.{APEX}", "A", f"192.0.2.{version}") for version in (known, serial)]
        return [wire(query, [soa(serial), soa(known), www[0], *hosts(known)]),
                wire(query, [soa(serial), www[1], *hosts(serial), soa(serial)])]

    primary.answer = answer


def host_addresses(server):
    return sorted(line.rsplit(" ", 1)[1] for line in server.records("example") if line.startswith("h"))


def test_a_large_ixfr_is_worked_out_beside_the_commit_thread(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: with_hosts(primaries[0]))
    primary.serial = 2
    has_serial(server, 2)
    assert host_addresses(server) == ["198.51.100.2"] * HOSTS and address(server) == "192.0.2.2"
    counters = server.control("status")["counters"]
    assert (counters["transfers_in_ixfr"], counters["large_changes"]) == (1, 1)
    assert server.control("store", "check")["faults_found"] == 0


@contextlib.contextmanager
def failing_journal(disk, how):
    """The journal's disk has no room, or its folder is mounted read-only over itself."""
    journal = str(disk / "journal")
    if how == "full":
        with pytest.raises(OSError, match="No space"):
            (disk / "filler").write_bytes(bytes(8 << 20))
    else:
        subprocess.run(["mount", "--bind", journal, journal], check=True)
        subprocess.run(["mount", "-o", "remount,bind,ro", journal], check=True)
    try:
        yield
    finally:
        if how == "full":
            (disk / "filler").unlink()
        else:
            subprocess.run(["umount", "--lazy", journal], check=True)


@pytest.mark.parametrize("how, reason", [("full", "No space left"), ("read-only", "Read-only file system")])
def test_an_ixfr_that_cannot_be_journalled_is_no_reason_for_an_axfr(secondary, small_disk, how, reason):  # noqa: F811
    """It would come in beside the journal, and be lost with the host."""
    journal = small_disk / "journal"
    server, (primary,) = secondary(prepare=lambda primaries: with_hosts(primaries[0]), journal=str(journal))
    servers.wait_until("the copy is there", (journal / "secondary/example.zone").exists)
    del primary.asked[:]
    with failing_journal(small_disk, how):
        primary.serial = 2
        servers.wait_until("it is told", lambda: reason in problem(server), 60)
        servers.wait_until("it was tried again", lambda: primary.asked.count("IXFR") >= 2, 60)
        assert server.serial("example") == 1
    has_serial(server, 2)
    counters = server.control("status")["counters"]
    assert (counters["transfers_in_ixfr"], counters["transfers_in_fallbacks"]) == (1, 0)
    assert "AXFR" not in primary.asked
    assert host_addresses(server) == ["198.51.100.2"] * HOSTS


@pytest.mark.parametrize("point", ["change-worked-out", "change-adopted", "commit-journalled"])
def test_a_crash_in_a_large_ixfr_leaves_the_version_before_and_loses_nothing(secondary, point):
    server, (primary,) = secondary(prepare=lambda primaries: with_hosts(primaries[0]))
    server.stop()
    server.crash_at = point
    server.start("example")
    primary.serial = 2
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    assert server.process.returncode == -signal.SIGKILL
    assert address(server) == "192.0.2.1" and host_addresses(server) == ["198.51.100.1"] * HOSTS
    server.crash_at = None
    server.start("example")
    has_serial(server, 2)
    assert address(server) == "192.0.2.2" and host_addresses(server) == ["198.51.100.2"] * HOSTS
    assert server.control("store", "check")["faults_found"] == 0
    primary.close()
    server.stop()
    shutil.rmtree(server.store)
    server.start("example")
    serial = server.serial("example")
    assert host_addresses(server) == [f"198.51.100.{serial}"] * HOSTS, "one version or the other, whole"


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
    asked, resume = threading.Event(), threading.Event()

    def answer(query, rdtype):
        if rdtype == "AXFR":
            asked.set()
            resume.wait(60)
        return primary.honest(query, rdtype)

    primary.answer = answer
    primary.serial = 200
    assert asked.wait(60)
    make_primary(server, tmp_path)
    assert address(server) == "203.0.113.1"
    update = dns.update.UpdateMessage("example")
    update.add("new", 60, "A", "192.0.2.77")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR
    resume.set()
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


def test_a_primary_that_was_set_back_is_told_until_the_serials_agree(secondary):
    server, (primary,) = secondary(prepare=lambda primaries: set_honest_and_slow(primaries[0], 5))
    assert server.serial("example") == 5 and not problem(server)
    primary.serial = 4
    notify(server, slow_soa(4))
    wanted = f"primary 127.0.0.1@{primary.port} has serial 4, behind ours (5): `zone retransfer` takes it"
    servers.wait_until("zone status tells", lambda: problem(server) == wanted)
    server.control("zone", "refresh", "example")
    notify(server, slow_soa(4))
    servers.wait_until("the primary is asked again", lambda: primary.asked.count("SOA") >= 2)
    assert server.log().count("primary_behind ") == 1
    assert server.serial("example") == 5 and problem(server) == wanted
    primary.serial = 5
    notify(server, slow_soa(5))
    servers.wait_until("the problem is gone", lambda: not problem(server))
    primary.serial = 4
    notify(server, slow_soa(4))
    servers.wait_until("zone status tells again", lambda: problem(server) == wanted)
    server.control("zone", "retransfer", "example")
    has_serial(server, 4)
    servers.wait_until("the problem is gone", lambda: not problem(server))


def set_honest_and_slow(primary, serial):
    """A primary whose zone is not refreshed by the timers."""
    def answer(query, rdtype):
        whole = [slow_soa(primary.serial), *zone(primary.serial)[1:-1], slow_soa(primary.serial)]
        return [wire(query, whole[:1] if rdtype == "SOA" else whole)]

    primary.serial, primary.answer = serial, answer
