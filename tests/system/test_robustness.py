"""What broke other servers in 2025 and 2026, done to this one. Where each case is tested:

| case | test |
|---|---|
| an oversize record loops AXFR or IXFR out | below; unit `transfer_out_test` |
| an IXFR query with a huge SOA | below |
| a SOA with short RDATA in a NOTIFY | below; unit `update_service_test` |
| deletion of records that are not there, by IXFR and UPDATE | below; unit `update_request_test` |
| records of another class in a transfer | below; unit `transfer_parser_test` |
| a very long chain of aliases | `tests/scenario/answers/plain.scn`, `differential` |
| an NSEC3 owner that is no base32hex, or of 255 octets | below |
| a NOTIFY whose serial is ahead of the zone: endless transfers | below |
| a failed transfer is tried again in a loop | below |
| a long name of a catalog's member | no catalogs yet |
| a key is removed while a transfer uses it | below; unit `transfer_signer_test` |
| a TCP session holds a reload back | below |
| an UPDATE of class ANY deletes the DNSKEY RRset | below; unit `update_request_test` |
| an UPDATE goes round the limit of types | below; unit `update_request_test` |
| SIG records in an UPDATE | below; unit `update_request_test` |
| NOTIFY and UPDATE in another class | below; unit `update_service_test`, `update_request_test` |
| a wrong NSEC proof for an empty non-terminal after IXFR | `differential/test_changes.py` |
| lengths in PROXY headers | `test_protocol.py`; unit `proxy_header_test` |
| records of a transfer wait without a bound | below; unit `transfer_parser_test` |
"""

import pathlib
import socket
import struct
import time

import dns.message
import dns.name
import dns.opcode
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers
from test_odd_primaries import (APEX, OddPrimary, has_serial, notify, problem, records,  # noqa: F401
                                secondary, soa, wire, zone)

HEAD = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"
LOCAL = [{"address": "127.0.0.0/8"}]
OPEN = {"allow-transfer": LOCAL, "allow-update": LOCAL}
KEY = {"name": "one.key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})


@pytest.fixture
def serve(pando, tmp_path):
    """Starts a server of hard.test with this behind the apex; `rules` are those of its zone."""
    def start(more="", rules=None, **options):
        path = tmp_path / "zone"
        path.write_text(HEAD + more)
        return pando([{"name": "hard.test", "file": str(path), **(rules or OPEN)}], **options).start("hard.test")
    return start


def exchange(server, octets, tcp=False):
    """The response to these octets; None when the connection ends without one."""
    kind = socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM
    with socket.socket(socket.AF_INET, kind) as client:
        client.settimeout(60)
        client.connect(("127.0.0.1", server.port))
        if not tcp:
            client.send(octets)
            return client.recv(65535)
        client.sendall(struct.pack(">H", len(octets)) + octets)
        with client.makefile("rb") as stream:
            prefix = stream.read(2)
            return stream.read(*struct.unpack(">H", prefix)) if prefix else None


def rcode(octets):
    return octets[3] & 15


def same_workers(server, before):
    return {slot: row["pid"] for slot, row in server.workers().items()} == before


def pids(server):
    return {slot: row["pid"] for slot, row in server.workers().items()}


def name(text):
    return dns.name.from_text(text).to_wire()


def record(owner, rrtype, rrclass, ttl, rdata):
    return name(owner) + struct.pack(">HHIH", rrtype, rrclass, ttl, len(rdata)) + rdata


def message(opcode, question, *sections, ident=0x4D59):
    """A request: the question as (name, type, class), then lists of records."""
    octets = name(question[0]) + struct.pack(">HH", *question[1:])
    counts = [len(section) for section in sections] + [0] * (3 - len(sections))
    return struct.pack(">6H", ident, opcode << 11, 1, *counts) + octets + b"".join(b"".join(part) for part in sections)


SOA, DNSKEY, SIG, TXT, A, ANY = 6, 48, 24, 16, 1, 255
IN, CH, NONE = 1, 3, 254
QUERY, NOTIFY, UPDATE = 0, 4, 5

# Transfers out
# ------------------------------------------------------------------------------------


LARGEST_RECORD = 65535 - 1024  # beside header, question, EDNS and a signature


def unknown(octets):
    return f"TYPE65280 \\# {octets} {'5a' * octets}"


def test_a_record_that_fills_a_message_goes_out(serve):
    room = LARGEST_RECORD - (len(name("big.hard.test")) + 10)
    server = serve(f"big {unknown(room)}\n")
    found = [line for line in server.records("hard.test") if line.startswith("big.")]
    assert len(found) == 1 and found[0].split(None, 5)[5].count("5a") == room


def test_a_record_that_fits_no_message_keeps_its_file_out(serve, tmp_path):
    server = serve("a A 192.0.2.7\n")
    room = LARGEST_RECORD - (len(name("big.hard.test")) + 10)
    zone_file = tmp_path / "zone"
    lines = zone_file.read_text().count("\n")
    zone_file.write_text(zone_file.read_text() + f"big {unknown(room + 1)}\n")
    assert server.control("reload")["zones_failed"]
    reason = server.control("zone", "status", "hard.test")["problem"]
    assert reason.startswith(f"{zone_file}:{lines + 1}:") and f"record of {LARGEST_RECORD + 1} octets" in reason
    assert server.ask("a.hard.test").answer and len(server.records("hard.test")) == 4


def test_a_record_that_fits_no_message_is_refused_in_an_update(serve):
    server = serve()
    rdata = bytes(LARGEST_RECORD - (len(name("big.hard.test")) + 10) + 1)
    for size, code in ((len(rdata), 5), (len(rdata) - 1, 0)):
        response = exchange(server, message(UPDATE, ("hard.test", SOA, IN), [], [record("big.hard.test", 65280, IN, 60, rdata[:size])]),
                            tcp=True)
        assert rcode(response) == code, size


def test_ixfr_queries_with_odd_soas_are_answered(serve):
    server = serve()
    before = pids(server)
    long_name = name(".".join(["a" * 63] * 3 + ["b" * 61]))
    question = ("hard.test", 251, IN)
    for rdata in (long_name * 2 + bytes(20), bytes(60000), long_name * 200, b"", b"\0\0" + bytes(19), b"\xc0\x0c" * 2 + bytes(20)):
        for owner in ("hard.test", "other.test", "."):
            response = exchange(server, message(QUERY, question, [], [record(owner, SOA, IN, 0, rdata)]), tcp=True)
            assert response is not None and response[:2] == b"MY"
    many = [record("hard.test", SOA, IN, 0, long_name * 2 + bytes(20))] * 100
    assert exchange(server, message(QUERY, question, [], many), tcp=True) is not None
    assert server.ask("ns.hard.test").answer and same_workers(server, before)


def test_a_key_removed_during_a_transfer_ends_it_or_not_and_nothing_else(serve):
    large = "".join(f"r{number} TXT {'x' * 250} {'y' * 250}\n" for number in range(20000))
    server = serve(large, rules={"allow-transfer": [{"key": KEY["name"]}], "allow-update": LOCAL}, keys=[KEY])
    before = pids(server)
    request = dns.message.make_query("hard.test", "AXFR")
    request.use_tsig(KEYRING)
    octets = request.to_wire()
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.settimeout(60)
        client.connect(("127.0.0.1", server.port))
        client.sendall(struct.pack(">H", len(octets)) + octets)
        with client.makefile("rb") as stream:
            first = stream.read(*struct.unpack(">H", stream.read(2)))
            assert rcode(first) == 0
            server.keys, server.zones[0]["allow-transfer"] = (), LOCAL
            server.write_config()
            server.control("reload")
            while len(prefix := stream.read(2)) == 2:
                assert rcode(stream.read(*struct.unpack(">H", prefix))) in (0, dns.rcode.NOTAUTH)
    assert rcode(exchange(server, octets, tcp=True)) == dns.rcode.NOTAUTH
    assert len(server.records("hard.test")) == 20003 and same_workers(server, before)


def test_open_sessions_hold_no_reload_back(serve, tmp_path):
    server = serve("".join(f"r{number} TXT {'x' * 250}\n" for number in range(20000)), limits="{tcp-idle: 1h}")
    with socket.create_connection(("127.0.0.1", server.port)) as silent, \
            socket.socket(socket.AF_INET, socket.SOCK_STREAM) as unread:
        silent.sendall(b"\xff")
        unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        unread.connect(("127.0.0.1", server.port))
        request = dns.message.make_query("hard.test", "AXFR").to_wire()
        unread.sendall(struct.pack(">H", len(request)) + request)
        assert unread.recv(1)
        (tmp_path / "zone").write_text(HEAD.replace("admin 1", "admin 2"))
        server.control("reload")
        servers.wait_until("the new zone is served", lambda: server.serial("hard.test") == 2)
        server.extra = "  identity: reloaded"
        server.write_config()
        server.control("reload")
        servers.wait_until("the new settings hold", lambda: told_identity(server) == b"reloaded")


def told_identity(server):
    response = dns.query.udp(dns.message.make_query("id.server", "TXT", "CH"), "127.0.0.1", port=server.port, timeout=10)
    return response.answer[0][0].strings[0] if response.answer else None


# Transfers in
# -------------------------------------------------------------------------------------


def test_an_ixfr_that_removes_what_is_not_there_is_followed_by_an_axfr(secondary):  # noqa: F811
    server, (primary,) = secondary()

    def answer(query, rdtype):
        if rdtype != "IXFR":
            return primary.honest(query, rdtype)
        return [wire(query, [soa(2), soa(1), records(f"nobody.{APEX}", "A", "192.0.2.9"), soa(2), soa(2)])]

    primary.answer, primary.serial = answer, 2
    has_serial(server, 2)
    assert server.ask("www.example").answer[0][0].address == "192.0.2.2"
    assert primary.asked.index("IXFR") < len(primary.asked) - 1 - primary.asked[::-1].index("AXFR")


def test_records_of_another_class_do_not_come_in(secondary):  # noqa: F811
    def answer(query, rdtype):
        if rdtype != "AXFR":
            return primary.honest(query, rdtype)
        whole = wire(query, zone(primary.serial, records(f"alien.{APEX}", "TXT", "x")))
        alien = name(f"alien.{APEX}") + struct.pack(">HH", TXT, IN)
        assert whole.count(alien) == 1
        return [whole.replace(alien, alien[:-2] + struct.pack(">H", CH))]

    server, (primary,) = secondary()
    primary.answer, primary.serial = answer, 2
    servers.wait_until("it was tried", lambda: server.serial("example") == 2 or problem(server), 60)
    assert not server.ask("alien.example", "TXT").answer
    assert server.ask("www.example").answer
    primary.answer, primary.serial = primary.honest, 3
    has_serial(server, 3)


def slow(serial, *more):
    """As zone(), asked for by NOTIFY only."""
    lazy = records(APEX, "SOA", f"ns.{APEX} admin.{APEX} {serial} 1000 1000 100000 300")
    return [lazy, *zone(serial, *more)[1:-1], lazy]


def lazily(primary):
    """Answers with the serial that it has, refreshed by NOTIFY only."""
    def answer(query, rdtype):
        whole = slow(primary.serial)
        return [wire(query, whole if rdtype == "AXFR" else whole[:1])]
    return answer


@pytest.fixture
def lazy_secondary(secondary):  # noqa: F811
    server, (primary,) = secondary(prepare=lambda made: setattr(made[0], "answer", lazily(made[0])))
    return server, primary


def notify_with(server, serial):
    body = name(f"ns.{APEX}") + name(f"admin.{APEX}") + struct.pack(">5I", serial, 1, 1, 1, 1)
    octets = message(NOTIFY, (APEX, SOA, IN), [record(APEX, SOA, IN, 0, body)])
    assert rcode(exchange(server, octets)) == 0


def test_a_notify_that_is_ahead_of_the_primary_brings_one_visit(lazy_secondary):
    server, primary = lazy_secondary
    asked = len(primary.asked)
    notify_with(server, 1000)
    servers.wait_until("the primary was asked", lambda: len(primary.asked) > asked)
    time.sleep(3)
    assert primary.asked[asked:] in (["SOA"], ["IXFR"]), "one visit, no transfer"
    primary.serial = 2
    notify_with(server, 2)
    has_serial(server, 2)


def quiet(primary):
    """Whether nobody has asked it for two seconds."""
    asked = len(primary.asked)
    time.sleep(2)
    return len(primary.asked) == asked


def test_a_flood_of_notifies_does_not_hold_the_next_one_back(lazy_secondary):
    """Anybody can send them in the primary's name. Each that asks for nothing new costs no place in the pace."""
    server, primary = lazy_secondary
    octets, flood, answered = message(NOTIFY, (APEX, SOA, IN), []), 40_000, 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", server.port))
        client.settimeout(1)
        while answered < flood:
            for _ in range(50):
                client.send(octets)
            try:
                for _ in range(50):
                    client.recv(512)
                    answered += 1
            except TimeoutError:
                pass
    servers.wait_until("the secondary is quiet", lambda: quiet(primary))
    assert len(primary.asked) < flood / 10, "many brought one visit"
    primary.serial = 2
    notify(server)
    has_serial(server, 2)


def test_a_failing_transfer_waits_for_its_retry_time(lazy_secondary):
    server, primary = lazy_secondary
    primary.serial = 2

    def answer(query, rdtype):
        return [wire(query, slow(2)[:1])] if rdtype == "SOA" else [wire(query, [], dns.rcode.SERVFAIL)]

    primary.answer = answer
    asked = len(primary.asked)
    notify(server)
    servers.wait_until("it has failed", lambda: problem(server), 60)
    time.sleep(5)
    assert len(primary.asked) - asked <= 4, "SOA and IXFR, SOA and AXFR"
    assert server.ask("www.example").answer
    primary.answer = lazily(primary)
    notify(server)
    has_serial(server, 2)


@pytest.mark.parametrize("limit", ["zone-records: 5000", "rrset-records: 100"])
def test_a_transfer_without_an_end_is_given_up(pando, limit):
    """The primary sends as long as anybody takes it."""
    primary = OddPrimary()

    def endless(query):
        yield wire(query, slow(1)[:-1])
        sent = 0
        while True:
            sent += 500
            addresses = [f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}" for number in range(sent, sent + 500)]
            yield wire(query, [records(f"many.{APEX}", "A", *addresses)])

    primary.answer = lambda query, rdtype: endless(query) if rdtype == "AXFR" else [wire(query, slow(1)[:1])]
    try:
        limits = f"{{{limit}, refresh: [1s, 4weeks]}}" if limit.startswith("zone") else \
            f"{{{limit}, zone-records: 200000, refresh: [1s, 4weeks]}}"
        server = pando([{"name": "example", "primaries": ["odd"]}],
                       remotes=[{"name": "odd", "address": [f"127.0.0.1@{primary.port}"]}], limits=limits).start()
        status = pathlib.Path(f"/proc/{server.process.pid}/status")
        servers.wait_until("it was given up", lambda: "limits." in problem(server), 120)
        assert "VmRSS" in status.read_text() and server.ask("www.example").rcode() == dns.rcode.SERVFAIL
    finally:
        primary.close()


# Zones
# --------------------------------------------------------------------------------------------


def test_nsec3_records_whose_owners_are_no_hashes_do_no_harm(pando, tmp_path):
    text = (servers.SOURCE / "config/zones/signed3.example.zone").read_text()
    rest = "1 0 0 A1B2C3D4 2vptu5timamqttgl4luu9kg21e0aor3s A RRSIG"
    longest = ".".join(["a" * 63] * 3 + ["b" * (255 - 1 - 3 * 64 - len("signed3.example.") - 2)])
    owners = ["nohash", "0", "w" * 32, "zz" * 16, "0" * 31, "0" * 33, "0" * 63, "*", "a.b", "\\000" * 20, longest]
    plain, odd = tmp_path / "plain", tmp_path / "odd"
    plain.write_text(text)
    odd.write_text(text + "".join(f"{owner}.signed3.example. 300 IN NSEC3 {rest}\n" for owner in owners))
    server, reference = (pando([{"name": "signed3.example", "file": str(path), **OPEN}]).start("signed3.example")
                         for path in (odd, plain))
    before = pids(server)
    for owner in ["nowhere", "a.b", "mail", "www", *owners]:
        for rdtype in ("A", "NSEC3", "TYPE65280"):
            answers = [one.ask(f"{owner}.signed3.example", rdtype, want_dnssec=True, tcp=True) for one in (server, reference)]
            assert answers[0] is not None and answers[0].rcode() == answers[1].rcode(), owner
            texts = [sorted(map(str, one.answer + one.authority)) for one in answers]
            assert texts[0] == texts[1], owner
    assert len(server.records("signed3.example")) == len(reference.records("signed3.example")) + len(owners)
    assert same_workers(server, before)


# UPDATE and NOTIFY
# --------------------------------------------------------------------------------


def test_requests_of_other_classes_change_nothing(serve):
    server = serve()
    addition = record("new.hard.test", A, IN, 60, bytes([192, 0, 2, 9]))
    for tcp in (False, True):
        for rrclass in (0, 2, CH, 4, NONE, ANY, 65535):
            for opcode in (NOTIFY, UPDATE):
                octets = message(opcode, ("hard.test", SOA, rrclass), [], [addition])
                assert rcode(exchange(server, octets, tcp)) in (dns.rcode.NOTAUTH, dns.rcode.FORMERR)
        for rrclass in (0, 2, CH, 4, 65535):
            for section in (1, 2):
                lists = [[], []]
                lists[section - 1] = [record("ns.hard.test", A, rrclass, 0, bytes([192, 0, 2, 1]))]
                octets = message(UPDATE, ("hard.test", SOA, IN), *lists)
                assert rcode(exchange(server, octets, tcp)) == dns.rcode.FORMERR
    assert server.serial("hard.test") == 1


def test_a_notify_with_a_short_soa_is_a_format_error(lazy_secondary):
    server, primary = lazy_secondary
    asked = len(primary.asked)
    for rdata in (b"", b"\0", b"\0\0", b"\0\0" + bytes(19), b"\0\0" + bytes(21), b"\xc0"):
        octets = message(NOTIFY, (APEX, SOA, IN), [record(APEX, SOA, IN, 0, rdata)])
        assert rcode(exchange(server, octets)) == dns.rcode.FORMERR, rdata
    assert len(primary.asked) == asked


def test_deleting_what_is_not_there_is_no_change(serve):
    server = serve()
    deletions = [record("nobody.hard.test", A, NONE, 0, bytes(4)), record("nobody.hard.test", A, ANY, 0, b""),
                 record("nobody.hard.test", ANY, ANY, 0, b""), record("ns.hard.test", A, NONE, 0, bytes(4)),
                 record("ns.hard.test", TXT, ANY, 0, b"")]
    assert rcode(exchange(server, message(UPDATE, ("hard.test", SOA, IN), [], deletions * 20))) == 0
    assert server.serial("hard.test") == 1 and server.ask("ns.hard.test").answer


def test_an_update_cannot_take_a_signed_zone_apart(pando):
    path = servers.SOURCE / "config/zones/signed.example.zone"
    server = pando([{"name": "signed.example", "file": str(path), **OPEN}]).start("signed.example")
    before, all_records = pids(server), server.records("signed.example")
    zone_section = ("signed.example", SOA, IN)
    for rrtype in (DNSKEY, ANY, 46, 47, SOA, 2):
        answer = exchange(server, message(UPDATE, zone_section, [], [record("signed.example", rrtype, ANY, 0, b"")]))
        assert rcode(answer) in (0, dns.rcode.REFUSED)
    update = dns.update.UpdateMessage("signed.example")
    update.add("new", 60, "A", "192.0.2.1")
    update.use_edns(0)
    response = dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10)
    (told,) = response.options
    assert response.rcode() == dns.rcode.REFUSED and told.code == 21
    assert told.text == "zone is signed and the update is not consistent: the update brings no SOA with a later serial"
    assert told.text in server.log()
    assert server.records("signed.example") == all_records and same_workers(server, before)


def test_keys_and_signatures_in_updates_of_an_unsigned_zone(serve):
    """SIG(0) is not understood and SIG is plain data of an old kind: either way the server goes on."""
    server = serve()
    before = pids(server)
    sig = struct.pack(">HBBIIIH", 0, 8, 0, 0, 2**32 - 1, 0, 1) + name("hard.test") + bytes(64)
    covering = struct.pack(">HBBIIIH", A, 8, 2, 60, 2**32 - 1, 0, 1) + name("hard.test") + bytes(64)
    a = record("a.hard.test", A, IN, 60, bytes(4))
    answers = [exchange(server, message(UPDATE, ("hard.test", SOA, IN), *lists, ident=number)) for number, lists in enumerate([
        ([], [record("x.hard.test", SIG, IN, 60, sig)]), ([], [record("x.hard.test", SIG, IN, 60, covering)]),
        ([], [record("x.hard.test", SIG, ANY, 0, b"")]), ([], [record("x.hard.test", SIG, NONE, 0, covering)]),
        ([], [record("x.hard.test", SIG, IN, 60, b"")]), ([], [a], [record(".", SIG, ANY, 0, sig)]),
        ([], [record("hard.test", DNSKEY, IN, 60, b"\1\1\3\10abcd")]), ([], [record("hard.test", DNSKEY, ANY, 0, b"")]),
    ])]
    assert [answer[:2] for answer in answers] == [struct.pack(">H", number) for number in range(len(answers))]
    assert rcode(answers[4]) == dns.rcode.FORMERR, "no RDATA is no SIG"
    assert server.ask("ns.hard.test").answer and same_workers(server, before)


def test_the_limit_of_types_holds_in_one_update_and_in_many(serve):
    server = serve(limits="{name-types: 5}")

    def add(first, count, deletions=()):
        additions = [record("x.hard.test", 65300 + number, IN, 60, b"x") for number in range(first, first + count)]
        return rcode(exchange(server, message(UPDATE, ("hard.test", SOA, IN), [], [*deletions, *additions]), tcp=True))

    def types():
        return sum(bool(server.ask("x.hard.test", f"TYPE{65300 + number}").answer) for number in range(20))

    assert add(0, 6) == dns.rcode.REFUSED and types() == 0
    assert [add(number, 1) for number in range(6)] == [0] * 5 + [dns.rcode.REFUSED]
    assert types() == 5
    gone = record("x.hard.test", 65300, ANY, 0, b"")
    assert add(10, 2, [gone]) == dns.rcode.REFUSED and types() == 5
    assert add(10, 1, [gone]) == 0 and types() == 5
