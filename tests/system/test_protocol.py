"""Duties of a server that have nothing to do with its zones: EDNS and its options, errors, headers of load
balancers, over UDP and TCP."""

import contextlib
import ipaddress
import os
import signal
import socket
import struct

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rdatatype
import dns.update
import pytest

import servers
from streams import Stream, framed

ZONE = """$TTL 300
@ SOA ns admin 2026 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
big TXT ( "{0}" "{0}" "{0}" "{0}" "{0}" "{0}" "{0}" "{0}" )
child NS ns.elsewhere.test.
""".format("0123456789" * 20)

NSID, EXPIRE, COOKIE, KEEPALIVE, EDE, ZONEVERSION = 3, 9, 10, 11, 15, 19
FIRST, SECOND = "000102030405060708090a0b0c0d0e0f", "f0e0d0c0b0a090807060504030201000"


@pytest.fixture
def zone_file(tmp_path):
    path = tmp_path / "zone"
    path.write_text(ZONE)
    return path


@pytest.fixture
def serve(pando, zone_file):
    """Starts a server of protocol.test; `extra`: lines of its server section; `rules`: keys of its zone."""
    def start(extra="", rules=None, **options):
        zone = {"name": "protocol.test", "file": str(zone_file), **(rules or {})}
        server = pando([zone], extra=extra, **options).start()
        servers.wait_until("the zone is loaded",
                           lambda: exchange(server, query("protocol.test")).rcode() != dns.rcode.SERVFAIL)
        return server
    return start


def udp(server, message, timeout=10):
    """The response to these octets; None when there is none in time."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(timeout)
        client.sendto(message, ("127.0.0.1", server.port))
        try:
            return client.recv(65536)
        except TimeoutError:
            return None


def tcp(server, message):
    with Stream(server.port) as connection:
        connection.send(framed(message))
        return connection.receive()


BOTH = pytest.mark.parametrize("ask", [udp, tcp], ids=["udp", "tcp"])


def option(code, data=b""):
    return dns.edns.GenericOption(code, data)


def query(name="ns.protocol.test", rdtype="A", options=(), **more):
    return dns.message.make_query(name, rdtype, use_edns=0, options=list(options), **more)


def octets_of(found):
    return found.to_wire() or b""


def options_of(response):
    """Options by code; each may stand there once."""
    codes = [int(found.otype) for found in response.options]
    assert len(codes) == len(set(codes)), codes
    return {int(found.otype): octets_of(found) for found in response.options}


def exchange(server, message, ask=udp):
    return dns.message.from_wire(ask(server, message.to_wire()))


def header(octets):
    ident, flags, *counts = struct.unpack(">6H", octets[:12])
    return ident, flags, counts


OPT = bytes([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0])
QUESTION = dns.message.make_query("ns.protocol.test", "A").to_wire()[12:]


def raw(flags=0, counts=(1, 0, 0, 0), body=QUESTION):
    return struct.pack(">6H", 0x4D59, flags, *counts) + body


# Messages (RFC 8906 §8, RFC 9619)
# ---------------------------------------------------------------------------------------


def test_each_opcode_and_flag_gets_an_answer(serve):
    server = serve()
    for ask in (udp, tcp):
        for opcode in range(16):
            if opcode in (0, 4, 5):
                continue
            _, flags, _ = header(ask(server, raw(flags=opcode << 11)))
            assert (flags >> 15, flags >> 11 & 15, flags & 15) == (1, opcode, dns.rcode.NOTIMP), opcode
        for bit in range(4, 11):  # CD, AD, Z, RA, RD, TC, AA
            _, flags, counts = header(ask(server, raw(flags=1 << bit)))
            assert (flags & 15, counts[1]) == (0, 1), bit
            # RD and CD are copied (RFC 1035 §4.1.1, RFC 4035 §3.1.6), the others are ours to set.
            copied = 1 << bit if bit in (4, 8) else 0
            assert flags == 0x8000 | 0x0400 | copied, f"{bit}: {flags:04x}"


@BOTH
def test_notify_and_update_without_a_zone_of_ours_are_notauth(serve, ask):
    server = serve()
    question = b"\x09elsewhere\x04test\x00" + struct.pack(">HH", 6, 1)
    for opcode in (4, 5):
        _, flags, _ = header(ask(server, raw(flags=opcode << 11, body=question)))
        assert flags & 15 == dns.rcode.NOTAUTH


@BOTH
def test_any_number_of_questions_but_one_is_a_format_error(serve, ask):
    server = serve()
    for count in (0, 2, 3):
        for opt in (b"", OPT):
            octets = raw(counts=(count, 0, 0, 1 if opt else 0), body=QUESTION * count + opt)
            ident, flags, counts = header(ask(server, octets))
            assert (ident, flags & 15, counts[1]) == (0x4D59, dns.rcode.FORMERR, 0)


@BOTH
def test_an_opt_twice_or_elsewhere_is_a_format_error(serve, ask):
    server = serve()
    named = b"\x01x" + OPT  # its owner is not the root
    for counts, body in (((1, 0, 0, 2), OPT * 2), ((1, 1, 0, 0), OPT), ((1, 0, 1, 0), OPT), ((1, 0, 0, 1), named),
                         ((1, 0, 0, 1), OPT[:-1] + b"\x03\x00\x0a\x00")):  # an option's header cut short
        _, flags, _ = header(ask(server, raw(counts=counts, body=QUESTION + body)))
        assert flags & 15 == dns.rcode.FORMERR, counts


@BOTH
def test_edns_of_another_version_is_badvers_whatever_its_options_are(serve, ask):
    server = serve()
    for version in (1, 100, 255):
        for rest in (b"", b"\xff\xff\xff"):
            opt = bytes([0, 0, 41, 4, 208, 0, version, 0x80, 0]) + struct.pack(">H", len(rest)) + rest
            response = dns.message.from_wire(ask(server, raw(counts=(1, 0, 0, 1), body=QUESTION + opt)))
            assert (response.rcode(), response.edns, response.answer) == (dns.rcode.BADVERS, 0, [])


@BOTH
def test_unknown_options_and_flags_of_edns_are_ignored(serve, ask):
    server = serve()
    strange = [option(code, b"\x00" * 7) for code in (1, 2, 4, 5, 6, 7, 8, 13, 14, 16, 17, 18, 100, 65535)]
    message = query(options=strange, ednsflags=0x7FFF)
    response = exchange(server, message, ask)
    assert (response.rcode(), len(response.answer)) == (0, 1)
    assert (response.options, response.ednsflags & 0x7FFF) == ((), 0)


def test_without_edns_none_is_answered(serve):
    server = serve()
    plain = dns.message.make_query("ns.protocol.test", "A")
    assert exchange(server, plain).edns == -1
    assert exchange(server, query()).edns == 0


# Sizes (RFC 9715, RFC 6891 §6.2.5)
# --------------------------------------------------------------------------------------


def test_a_udp_response_is_never_larger_than_configured(serve, pando):
    server = serve()
    for offered in (512, 1232, 4096, 65535):
        octets = udp(server, query("big.protocol.test", "TXT", payload=offered).to_wire())
        response = dns.message.from_wire(octets)
        assert len(octets) <= 1232 and response.flags & dns.flags.TC and response.payload == 1232
    whole = exchange(server, query("big.protocol.test", "TXT"), tcp)
    assert len(whole.answer) == 1 and not whole.flags & dns.flags.TC
    large = serve(extra="  udp-payload: 4096")
    octets = udp(large, query("big.protocol.test", "TXT", payload=4096).to_wire())
    assert len(octets) > 1600 and not dns.message.from_wire(octets).flags & dns.flags.TC


# Options
# -----------------------------------------------------------------------------------------------


def siphash(key, data):
    """SipHash-2-4 of 64 bits (Aumasson and Bernstein 2012)."""
    mask = (1 << 64) - 1
    k0, k1 = struct.unpack("<QQ", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotate(value, bits):
        return (value << bits | value >> (64 - bits)) & mask

    def rounds(count):
        for _ in range(count):
            v[0], v[2] = (v[0] + v[1]) & mask, (v[2] + v[3]) & mask
            v[1], v[3] = rotate(v[1], 13) ^ v[0], rotate(v[3], 16) ^ v[2]
            v[0] = rotate(v[0], 32)
            v[2], v[0] = (v[2] + v[1]) & mask, (v[0] + v[3]) & mask
            v[1], v[3] = rotate(v[1], 17) ^ v[2], rotate(v[3], 21) ^ v[0]
            v[2] = rotate(v[2], 32)

    padded = data + bytes(-(len(data) + 1) % 8) + bytes([len(data) & 0xFF])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return struct.pack("<Q", v[0] ^ v[1] ^ v[2] ^ v[3])


def is_of(cookie, secret, client="127.0.0.1"):
    """RFC 9018 §4.4."""
    address = ipaddress.ip_address(client).packed
    return cookie[16:] == siphash(bytes.fromhex(secret), cookie[:16] + address)


def test_the_hash_of_cookies_is_that_of_the_rfc():
    """RFC 9018 §A.1."""
    cookie = bytes.fromhex("2464c4abcf10c957010000005cf79f111f8130c3eee29480")
    assert is_of(cookie, "e5e973e5a6b2a43f48e7dc849e37bfcf", "198.51.100.100")


def cookie_of(server, cookie, ask=udp):
    return options_of(exchange(server, query(options=[option(COOKIE, cookie)]), ask))[COOKIE]


def secrets(*list_of_them):
    return f"  cookies: {{secrets: [{', '.join(list_of_them)}]}}"


def set_secrets(server, *list_of_them):
    server.extra = secrets(*list_of_them)
    server.write_config()
    server.control("reload")


def test_servers_with_one_secret_know_each_others_cookies(serve):
    one, other = serve(extra=secrets(FIRST)), serve(extra=secrets(FIRST))
    stranger = serve(extra=secrets(SECOND))
    client = bytes(range(1, 9))
    cookie = cookie_of(one, client)
    assert cookie[:8] == client and is_of(cookie, FIRST)
    # One that is known and young comes back as it is (RFC 9018 §4.3), another is replaced.
    assert cookie_of(other, cookie) == cookie
    assert cookie_of(other, cookie, tcp) == cookie
    assert is_of(cookie_of(stranger, cookie), SECOND)


def test_a_secret_rolls_over_without_a_client_losing_its_cookie(serve):
    """RFC 9018 §5: both secrets, then the new one signs, then the old one goes."""
    server = serve(extra=secrets(FIRST))
    old = cookie_of(server, bytes(8))
    assert is_of(old, FIRST)

    def all_make(secret, cookie=bytes(8)):  # each worker hears of it in its own time
        return all(is_of(cookie_of(server, cookie), secret) for _ in range(20))
    set_secrets(server, FIRST, SECOND)
    servers.wait_until("the old secret signs still", lambda: all_make(FIRST))
    set_secrets(server, SECOND, FIRST)
    servers.wait_until("the new secret signs", lambda: all_make(SECOND))
    new = cookie_of(server, old)  # known, and renewed
    assert is_of(new, SECOND)
    set_secrets(server, SECOND)
    servers.wait_until("the new secret is alone", lambda: all_make(SECOND, old))
    assert cookie_of(server, new) == new


def test_a_restarted_server_with_secrets_knows_its_cookies(serve):
    server = serve(extra=secrets(FIRST))
    cookie = cookie_of(server, bytes(8))
    server.stop()
    server.start("protocol.test")
    assert cookie_of(server, cookie) == cookie


@BOTH
def test_a_malformed_cookie_is_a_format_error_and_a_cookie_can_be_all_that_is_asked_for(serve, ask):
    server = serve()
    for length in (0, 1, 7, 9, 15, 41):
        response = exchange(server, query(options=[option(COOKIE, bytes(length))]), ask)
        assert response.rcode() == dns.rcode.FORMERR and not options_of(response), length
    message = dns.message.Message()
    message.use_edns(0, options=[option(COOKIE, bytes(8))])
    message.flags = 0
    response = exchange(server, message, ask)
    assert response.rcode() == 0 and len(options_of(response)[COOKIE]) == 24 and not response.question


CHAOS = ("id.server", "hostname.bind", "version.bind", "version.server")


@BOTH
def test_who_and_which_version_is_told_only_when_configured(serve, ask):
    silent, telling = serve(), serve(extra="  identity: ns1.example\n  version: no number")
    for name in CHAOS:
        message = dns.message.make_query(name, "TXT", "CH", use_edns=0, options=[option(NSID)])
        refused = exchange(silent, message, ask)
        assert refused.rcode() == dns.rcode.REFUSED and NSID not in options_of(refused)
        told = exchange(telling, message, ask)
        text = b"no number" if name.startswith("version") else b"ns1.example"
        assert told.answer[0][0].strings == (text,) and told.flags & dns.flags.AA
        assert options_of(told)[NSID] == b"ns1.example"
    assert NSID not in options_of(exchange(telling, query(), ask))


def test_the_zones_version_follows_its_serial(serve):
    server = serve(rules={"allow-update": [{"address": "127.0.0.0/8"}]})
    asked = [option(ZONEVERSION)]

    def version(name):
        return options_of(exchange(server, query(name, options=asked))).get(ZONEVERSION)

    for name in ("ns.protocol.test", "nowhere.protocol.test", "protocol.test", "www.child.protocol.test"):
        assert version(name) == bytes([2, 0]) + struct.pack(">I", 2026), name
    assert version("elsewhere.test") is None
    assert ZONEVERSION not in options_of(exchange(server, query()))
    update = dns.update.UpdateMessage("protocol.test")
    update.add("new", 60, "A", "192.0.2.7")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == 0
    assert version("new.protocol.test") == bytes([2, 0]) + struct.pack(">I", 2027)


@BOTH
def test_expire_and_keepalive_are_told_where_they_mean_something(serve, ask):
    server = serve(limits="{tcp-idle: 7s}")
    message = query("protocol.test", "SOA", options=[option(EXPIRE), option(KEEPALIVE)])
    options = options_of(exchange(server, message, ask))
    assert options[EXPIRE] == struct.pack(">I", 86400)
    # RFC 7828 §3.2.1: not over UDP. 70 times 100 ms.
    assert options.get(KEEPALIVE) == (struct.pack(">H", 70) if ask is tcp else None)


def test_refusals_say_why(serve):
    server = serve(rules={"allow-query": [{"address": "192.0.2.0/24"}]})
    for name, code in (("ns.protocol.test", 18), ("elsewhere.test", 20)):
        response = exchange(server, query(name))
        assert response.rcode() == dns.rcode.REFUSED
        assert options_of(response)[EDE] == struct.pack(">H", code)


# TCP (RFC 7766, RFC 9210)
# ---------------------------------------------------------------------------------------


def test_many_queries_may_wait_on_one_connection(serve):
    server = serve()
    asked = [query(id=number) for number in range(1, 201)]
    with Stream(server.port) as connection:
        connection.send(b"".join(framed(message.to_wire()) for message in asked))
        answered = {header(connection.receive())[0] for _ in asked}
    assert answered == {message.id for message in asked}


def test_a_silent_connection_is_closed_after_its_time(serve):
    server = serve(limits="{tcp-idle: 1s}")
    with Stream(server.port) as connection:
        connection.send(framed(query().to_wire()))
        assert connection.receive()
        assert connection.receive() is None  # the server's end, not the client's timeout


# PROXY protocol, version 2
# --------------------------------------------------------------------------------------

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
LISTED = "  proxy-protocol-from: [127.0.0.0/8]"
CLIENT, CLIENT6 = "203.0.113.7", "2001:db8:5::7"
RULES = {"allow-query": [{"address": "203.0.113.0/24"}, {"address": "2001:db8:5::/48"}]}


def proxied(client=CLIENT, protocol=2, tail=b""):
    address = ipaddress.ip_address(client)
    server = ipaddress.ip_address("198.51.100.1" if address.version == 4 else "2001:db8:6::1")
    block = address.packed + server.packed + struct.pack(">HH", 4711, 53) + tail
    family = (1 if address.version == 4 else 2) << 4 | protocol
    return SIGNATURE + bytes([0x21, family]) + struct.pack(">H", len(block)) + block


LOCAL = SIGNATURE + bytes([0x20, 0, 0, 0])


def ask_with(server, ask, head, message):
    """The response to a message behind `head`."""
    if ask is udp:
        return udp(server, head + message)
    with Stream(server.port) as connection:
        connection.send(head + framed(message))
        return connection.receive()


def rcode_of(octets):
    return header(octets)[1] & 15


@BOTH
def test_rules_are_about_the_client_whom_a_load_balancer_names(serve, ask):
    server = serve(extra=LISTED, rules=RULES)
    message = query().to_wire()
    assert rcode_of(ask_with(server, ask, b"", message)) == dns.rcode.REFUSED
    assert rcode_of(ask_with(server, ask, LOCAL, message)) == dns.rcode.REFUSED
    assert rcode_of(ask_with(server, ask, proxied("198.51.100.9"), message)) == dns.rcode.REFUSED
    for client in (CLIENT, CLIENT6):
        for tail in (b"", b"\x04\x00\x03abc" + b"\xea\x00\x40" + bytes(64)):
            response = dns.message.from_wire(ask_with(server, ask, proxied(client, tail=tail), message))
            assert response.answer[0][0].address == "192.0.2.1"


@BOTH
def test_a_load_balancer_may_speak_for_itself(serve, ask):
    server = serve(extra=LISTED)
    for head in (b"", LOCAL, SIGNATURE + b"\x21\0\0\0"):
        assert rcode_of(ask_with(server, ask, head, query().to_wire())) == 0


@BOTH
def test_a_header_from_others_is_not_believed(serve, ask):
    server = serve(extra="  proxy-protocol-from: [192.0.2.0/24]", rules=RULES)
    message = query().to_wire()
    if ask is udp:  # a message of opcode 1, with 10 additional records that are not there
        assert rcode_of(ask_with(server, ask, proxied(), message)) == dns.rcode.NOTIMP
        return
    with Stream(server.port) as connection:  # the length of a message of 3338 octets, with 2641 questions
        connection.send((proxied() + framed(message)).ljust(2 + 3338, b"\0"))
        assert rcode_of(connection.receive()) == dns.rcode.FORMERR


def test_a_reload_changes_who_is_believed(serve):
    server = serve(rules=RULES)
    message = query().to_wire()

    def rcode():
        return rcode_of(udp(server, proxied() + message))

    assert rcode() == dns.rcode.NOTIMP
    server.extra = LISTED
    server.write_config()
    server.control("reload")
    servers.wait_until("the header is believed", lambda: rcode() == 0)
    with Stream(server.port) as connection:
        connection.send(proxied() + framed(message))
        assert rcode_of(connection.receive()) == 0


def test_what_is_no_header_is_dropped_and_closed(serve):
    server = serve(extra=LISTED)
    message = query().to_wire()
    for wrong in (SIGNATURE + b"\x11\x11\0\x0c" + bytes(12), SIGNATURE + b"\x2f\x11\0\x0c" + bytes(12),
                  SIGNATURE + b"\x21\x11\0\x03" + bytes(3), SIGNATURE + b"\x21\x31\0\x0c" + bytes(12)):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(10)
            client.connect(("127.0.0.1", server.port))
            client.send(wrong + message)
            client.send(query(id=77).to_wire())  # the same worker's next datagram
            assert header(client.recv(4096))[0] == 77
        with Stream(server.port) as connection:
            connection.send(wrong + framed(message))
            assert connection.receive() is None


def test_a_header_over_tcp_may_come_in_pieces_and_before_many_queries(serve):
    server = serve(extra=LISTED, rules=RULES)
    stream = proxied(tail=bytes(3)) + b"".join(framed(query(id=number).to_wire()) for number in range(1, 6))
    with Stream(server.port) as connection:
        for octet in range(len(stream)):
            connection.send(stream[octet:octet + 1])
        for number in range(1, 6):
            ident, flags, _ = header(connection.receive())
            assert (ident, flags & 15) == (number, 0)


@BOTH
def test_updates_and_cookies_are_the_clients_too(serve, ask):
    server = serve(extra=LISTED + "\n" + secrets(FIRST), rules={"allow-update": [{"address": CLIENT}]})
    update = dns.update.UpdateMessage("protocol.test")
    update.add("new", 60, "A", "192.0.2.7")
    assert rcode_of(ask_with(server, ask, b"", update.to_wire())) == dns.rcode.REFUSED
    assert rcode_of(ask_with(server, ask, proxied(), update.to_wire())) == 0
    assert server.ask("new.protocol.test").answer
    message = query(options=[option(COOKIE, bytes(8))]).to_wire()
    for client in (CLIENT, CLIENT6):
        response = dns.message.from_wire(ask_with(server, ask, proxied(client), message))
        assert is_of(options_of(response)[COOKIE], FIRST, client)


def test_transfers_are_allowed_to_the_client(serve):
    server = serve(extra=LISTED, rules={"allow-transfer": [{"address": CLIENT}]})
    message = dns.message.make_query("protocol.test", "AXFR").to_wire()
    assert rcode_of(ask_with(server, tcp, b"", message)) == dns.rcode.REFUSED
    response = dns.message.from_wire(ask_with(server, tcp, proxied(protocol=1), message))
    assert response.rcode() == 0 and response.answer[0].rdtype == dns.rdatatype.SOA


def mixed_requests(count):
    """Requests of all kinds for the zone big.test, good and malformed ones in turn."""
    def one(i):
        update = dns.update.UpdateMessage("big.test")
        update.add(f"u{i}", 60, "A", "192.0.2.55")
        notify = dns.message.make_query("big.test", "SOA")
        notify.set_opcode(dns.opcode.NOTIFY)
        absent = dns.message.make_query(f"none{i}.big.test", "A").to_wire()
        return [
            dns.message.make_query(f"h{7 * i}.big.test", "A").to_wire(),
            dns.message.make_query(f"x.d{7 * i}.big.test", "A", use_edns=0).to_wire(),
            proxied()[:-3],  # the header is cut: dropped
            proxied() + absent,
            LOCAL + dns.message.make_query(f"h{i}.big.test", "TXT").to_wire(),
            update.to_wire(),
            absent,
            notify.to_wire(),
            b"abc",
            dns.message.make_query("big.test", "IXFR").to_wire()[:-1],
        ][i % 10]
    return [one(i) for i in range(count)]


def test_requests_that_come_together_get_the_answers_that_they_get_alone(pando, tmp_path):
    # The store is so large that lookups of a batch take turns. The worker stands still while the requests come.
    zone = tmp_path / "big.zone"
    zone.write_text("$TTL 300\n@ SOA ns admin 2026 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n" + "".join(
        f"h{i} A 10.0.{i >> 8}.{i & 255}\nd{i} NS ns.d{i}\nns.d{i} A 192.0.2.9\n" for i in range(20_000)))
    server = pando([{"name": "big.test", "file": str(zone), "allow-update": ["127.0.0.0/8", "203.0.113.0/24"]}],
                   extra="  proxy-protocol-from: [127.0.0.0/8]", workers=1).start("big.test")
    requests = mixed_requests(60)
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) for _ in requests]

        def answer(client, wanted):
            client.settimeout(20 if wanted else 0.2)
            try:
                return client.recv(65535)
            except TimeoutError:
                return None

        def alone(client, request, wanted):
            client.sendto(request, ("127.0.0.1", server.port))
            return answer(client, wanted)

        is_answered = [i % 10 not in (2, 8) for i in range(len(requests))]
        for _ in range(2):  # updates change nothing the second time
            expected = [alone(*each) for each in zip(sockets, requests, is_answered)]
        assert [each is not None for each in expected] == is_answered
        (worker,) = server.left_over()
        for _ in range(4):
            os.kill(worker, signal.SIGSTOP)
            try:
                for client, request in zip(sockets, requests):
                    client.sendto(request, ("127.0.0.1", server.port))
            finally:
                os.kill(worker, signal.SIGCONT)
            assert [answer(*each) for each in zip(sockets, is_answered)] == expected
