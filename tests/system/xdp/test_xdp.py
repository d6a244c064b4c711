"""Queries that AF_XDP sockets answer: the same answers as over sockets, and nothing else."""

import socket
import struct
import time

import dns.edns
import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers
from frames import Port, ipv4
from hosts import CLIENT, SERVER, VLAN, ZONE, ask, missing

pytestmark = pytest.mark.skipif(missing() is not None, reason=str(missing()))

KEYRING = dns.tsigkeyring.from_text({"editor": "c2VjcmV0IG9mIHRoZSBlZGl0b3I="})


@pytest.fixture(params=["native", "generic"])
def server(make, request):
    return make([{"interface": "eth0", "mode": request.param}]).start(ZONE)


def queries():
    """Questions by name."""
    make = dns.message.make_query
    cookie = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"12345678")
    return {
        "positive": make(f"www.{ZONE}", "A"),
        "IPv6": make(f"www.{ZONE}", "AAAA", use_edns=0),
        "alias": make(f"alias.{ZONE}", "A", use_edns=0),
        "wildcard": make(f"a.wild.{ZONE}", "TXT"),
        "referral": make(f"x.sub.{ZONE}", "A"),
        "negative": make(f"nothing.{ZONE}", "A", want_dnssec=True),
        "no data": make(f"www.{ZONE}", "MX"),
        "truncated": make(f"large.{ZONE}", "TXT"),
        "large": make(f"large.{ZONE}", "TXT", use_edns=0, payload=4096),
        "refused": make("elsewhere.test", "A"),
        "chaos": make("version.bind", "TXT", "CH"),
        "bad version": make(f"www.{ZONE}", "A", use_edns=1),
        "no question": dns.message.Message(),
        "IXFR": make(ZONE, "IXFR"),
        "malformed": make(f"www.{ZONE}", "A", use_edns=0, options=[cookie]),
    }


def by_xdp(server, work):
    """Does `work`; returns its result, and the numbers of requests and answers that went by AF_XDP meanwhile."""
    before = server.counter("xdp_received"), server.counter("xdp_sent")
    result = work()
    return result, server.counter("xdp_received") - before[0], server.counter("xdp_sent") - before[1]


def essence(octets):
    """What two answers to one question have in common: records of an RRset come in any order, and cookies differ."""
    message = dns.message.from_wire(octets)
    sections = [sorted(rrset.to_text().splitlines()) for section in message.sections for rrset in section]
    options = [option.to_text() for option in message.options if option.otype != dns.edns.OptionType.COOKIE]
    return message.id, message.flags, message.edns, message.payload, message.rcode(), sections, options, len(octets)


@pytest.mark.parametrize("way", [4, 6])
def test_the_same_answers_as_over_sockets(server, way):
    for name, query in queries().items():
        octets = query.to_wire()
        answer, received, sent = by_xdp(server, lambda octets=octets: ask(server.wire.client, octets, SERVER[way]))
        own = ask(server.wire.server, octets, {4: "127.0.0.1", 6: "::1"}[way])
        assert answer is not None and own is not None, name
        assert essence(answer) == essence(own), name
        assert (received, sent) == (1, 1), name
    assert server.counter("truncated") >= 2


def test_a_tagged_frame_gets_a_tagged_answer(make):
    server = make()
    if not server.wire.add_vlan():
        pytest.skip("this kernel has no VLANs (8021q)")
    server.start(ZONE)
    octets = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    # Where the tag is no part of the frame, the kernel has it, and answers.
    answer, received, _ = by_xdp(server, lambda: ask(server.wire.client, octets, SERVER["vlan"]))
    assert answer and received == 0
    server.wire.write_tags()
    answer, received, _ = by_xdp(server, lambda: ask(server.wire.client, octets, SERVER["vlan"]))
    assert answer and received == 1


@pytest.mark.parametrize("way", [4, 6])
def test_checksums_in_frames_are_verified(server, way):
    octets = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    server.wire.write_tags()  # else they have the pseudo-header's sum alone
    answer, received, sent = by_xdp(server, lambda: ask(server.wire.client, octets, SERVER[way]))
    assert answer and (received, sent) == (1, 1)


def test_all_else_passes_to_sockets(server):
    client = server.wire.client
    plain = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    long = dns.message.make_query(f"www.{ZONE}", "A", use_edns=0, options=[
        dns.edns.GenericOption(65001, bytes(1600))]).to_wire(max_size=4096)
    notify = dns.message.make_query(ZONE, "SOA")
    notify.set_opcode(dns.opcode.NOTIFY)
    answers = {
        "notify": lambda: ask(client, notify.to_wire(), SERVER[4]),
        "fragments": lambda: ask(client, long, SERVER[4]),
        "options": lambda: ask(client, plain, SERVER[4], options=[
            (socket.IPPROTO_IP, socket.IP_OPTIONS, b"\1\1\1\1")]),
        "hop-by-hop": lambda: ask(client, plain, SERVER[6], options=[
            (socket.IPPROTO_IPV6, socket.IPV6_DSTOPTS, b"\0\0\1\4\0\0\0\0")]),
    }
    for name, work in answers.items():
        answer, received, _ = by_xdp(server, work)
        assert answer is not None and received == 0, name
    with client.inside():
        assert dns.query.tcp(dns.message.make_query(f"www.{ZONE}", "A"), SERVER[4], timeout=5).answer
    assert ask(client, plain, SERVER[4], port=5353, timeout=0.2) is None
    assert server.counter("xdp_dropped") == 0


def test_updates_and_signed_queries_are_answered(server):
    update = dns.update.UpdateMessage(ZONE, keyring=KEYRING)
    update.add("new", 60, "A", "192.0.2.99")
    with server.wire.client.inside():
        assert dns.query.udp(update, SERVER[4], timeout=10).rcode() == dns.rcode.NOERROR
    query = dns.message.make_query(f"new.{ZONE}", "A")
    query.use_tsig(KEYRING)

    def signed(to):
        with server.wire.client.inside():
            return dns.query.udp(query, to, timeout=10)
    for to in (SERVER[4], SERVER[6]):
        # The key is the manager's: the request comes by AF_XDP, and the answer leaves by a socket.
        answer, received, sent = by_xdp(server, lambda to=to: signed(to))
        assert answer.answer and answer.had_tsig and (received, sent) == (1, 0)


def test_a_load_balancers_header_is_read(make):
    server = make(server={"proxy-protocol-from": [CLIENT[4]]}).start(ZONE)
    header = (b"\r\n\r\n\0\r\nQUIT\n\x21\x12" + struct.pack("!H", 12) + socket.inet_aton("203.0.113.9") +
              socket.inet_aton(SERVER[4]) + struct.pack("!HH", 4000, 53))
    query = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    answer, received, _ = by_xdp(server, lambda: ask(server.wire.client, header + query, SERVER[4]))
    assert answer[:2] == query[:2] and received == 0
    answer, received, _ = by_xdp(server, lambda: ask(server.wire.client, query, SERVER[4]))
    assert answer[:2] == query[:2] and received == 1


def test_bad_frames_are_dropped(server):
    server.wire.write_tags()
    port = Port(server.wire)
    query = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    bad = {
        "header's checksum": ipv4(query, wrong_sum=True),
        "datagram's length": ipv4(query, length=8 + len(query) + 9),
        "multicast sender": ipv4(query, source="224.0.0.1"),
        "loopback sender": ipv4(query, source="127.0.0.1"),
        "own sender": ipv4(query, source=SERVER[4]),
        "port 0": ipv4(query, client_port=0),
        "contents": ipv4(query)[:-4] + b"\1\2\3\4",
    }
    for name, packet in bad.items():
        before = server.counter("xdp_dropped"), server.counter("xdp_sent")
        port.send(packet)
        servers.wait_until(f"{name}: dropped", lambda before=before: server.counter("xdp_dropped") == before[0] + 1, 5)
        assert server.counter("xdp_sent") == before[1], name
    received = server.counter("xdp_received")
    passed = {
        "another host's frame": lambda: port.send(ipv4(query), destination=b"\2\0\0\0\0\1"),
        "another VLAN": lambda: port.send(ipv4(query), tag=struct.pack("!HH", 0x8100, VLAN + 1)),
        "another address": lambda: port.send(ipv4(query, destination="192.0.2.77")),
        "a response": lambda: port.send(ipv4(query[:2] + b"\x84" + query[3:])),
        "a fragment": lambda: port.send(ipv4(query, flags=0x2000)),
        "another protocol": lambda: port.send(ipv4(query, protocol=99)),
        "too short": lambda: port.send(ipv4(query[:11])),
    }
    for send in passed.values():
        send()
    port.send(ipv4(query))
    servers.wait_until("the last is answered", lambda: server.counter("xdp_received") == received + 1, 5)
    port.close()


def test_an_answer_is_no_longer_than_the_mtu(make):
    server = make(mtu=1000).start(ZONE)
    query = dns.message.make_query(f"large.{ZONE}", "TXT", use_edns=0, payload=4096)
    answer, received, _ = by_xdp(server, lambda: ask(server.wire.client, query.to_wire(), SERVER[4]))
    assert received == 1 and len(answer) <= 972
    assert dns.message.from_wire(answer).flags & dns.flags.TC


def test_rate_limits_and_cookies(make):
    limit, questions = 20, 600
    server = make(server={"rate-limit": {"responses": limit, "slip": 2}}).start(ZONE)
    began = time.time()
    query = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    full = truncated = 0
    with server.wire.client.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((SERVER[4], 53))
        for _ in range(questions):
            client.send(query)
        client.settimeout(1)
        try:
            while True:
                if client.recv(4096)[2] & 2:
                    truncated += 1
                else:
                    full += 1
        except TimeoutError:
            pass
    seconds = int(time.time()) - int(began) + 2
    assert limit <= full <= limit * seconds and truncated > 0
    assert server.counter("xdp_received") == questions
    # A client that has proven its address is not limited.
    cookie = dns.edns.GenericOption(dns.edns.OptionType.COOKIE, b"clientid")
    first = ask(server.wire.client, dns.message.make_query(".", "A", use_edns=0, options=[cookie]).to_wire(), SERVER[4])
    options = [option for option in dns.message.from_wire(first).options
               if option.otype == dns.edns.OptionType.COOKIE]
    proven = dns.message.make_query(f"www.{ZONE}", "A", use_edns=0, options=options).to_wire()
    for _ in range(3 * limit):
        answer = ask(server.wire.client, proven, SERVER[4])
        assert answer and not answer[2] & 2


def test_the_query_log_has_lines_of_both_paths(make, tmp_path):
    server = make(server={"query-log": {"file": str(tmp_path / "queries")}}).start(ZONE)
    query = dns.message.make_query(f"www.{ZONE}", "A").to_wire()
    for to in (SERVER[4], SERVER[6]):
        _, received, _ = by_xdp(server, lambda to=to: ask(server.wire.client, query, to))
        assert received == 1
    lines = tmp_path / "queries"
    servers.wait_until("two lines", lambda: lines.exists() and len(lines.read_text().splitlines()) == 2)
    for line, (client, local) in zip(lines.read_text().splitlines(),
                                     [(CLIENT[4], SERVER[4]), (CLIENT[6], SERVER[6])], strict=True):
        assert client in line and local in line


def test_each_worker_has_queues(make):
    server = make(queues=3, workers=2)
    server.wire.use_queues(3)
    server.start(ZONE)
    row = server.await_queues()
    assert row["problem"] == "" and row["mode"] == "native"
    assert {served["queue"]: served["slot"] for served in row["served"]} == {
        queue: queue % 2 for queue in range(row["queues"])}
