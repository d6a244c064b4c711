"""Queries and transfers over TLS, end to end (RFC 7858, RFC 9103)."""

import json
import os
import shutil
import socket
import ssl
import subprocess

import dns.edns
import dns.flags
import dns.message
import dns.rcode
import pytest

import servers
import tls_clients
from streams import framed
from tls_clients import TlsStream, context

OPEN = {"allow-transfer": [{"address": "127.0.0.0/8"}]}


def run(*words, octets=b""):
    return subprocess.run(words, input=octets, capture_output=True, timeout=60)


def test_a_query_is_answered(secure):
    server = secure()
    with TlsStream(server.tls_port) as stream:
        assert stream.socket.selected_alpn_protocol() == "dot"
        assert stream.socket.version() == "TLSv1.3"
        assert stream.ask("www.tls.test").answer[0][0].address == "192.0.2.10"
        assert len(stream.ask("big.tls.test", "TXT").answer[0][0].strings) == 100, "a second one, of 20 KB"
    assert server.ask("www.tls.test").answer, "UDP goes on"
    counters = next(iter(server.workers().values()))["counters"]
    assert counters["queries_tls"] >= 2 and counters["queries_tcp"] == 0


def test_pipelined_queries_are_answered(secure):
    server = secure()
    with TlsStream(server.tls_port) as stream:
        for number in range(100):
            stream.send(framed(dns.message.make_query("big.tls.test", "TXT", id=number).to_wire()))
        numbers = {dns.message.from_wire(stream.receive()).id for _ in range(100)}
    assert numbers == set(range(100))


def test_a_client_without_alpn_is_served_and_one_with_another_refused(secure):
    """RFC 7858 §3.1 asks for no ALPN; old servers offer none."""
    server = secure()
    assert tls_clients.ask(server.tls_port, "www.tls.test", using=context(alpn=()))
    assert tls_clients.ask(server.tls_port, "www.tls.test", using=context(alpn=("h2", "dot")))
    with pytest.raises(ssl.SSLError, match="(?i)no.application.protocol"):
        TlsStream(server.tls_port, context(alpn=("h2",)))


def test_tls_1_2_is_refused(secure):
    """RFC 9103 §8.1: TLS 1.3 alone."""
    server = secure()
    with pytest.raises(ssl.SSLError, match="(?i)version"):
        TlsStream(server.tls_port, context(most=ssl.TLSVersion.TLSv1_2))


def test_answers_of_half_closed_connections_arrive(secure):
    """The client ends its side of the TCP connection while its answers are under way."""
    server = secure()
    with TlsStream(server.tls_port) as stream:
        for number in range(20):
            stream.send(framed(dns.message.make_query("big.tls.test", "TXT", id=number).to_wire()))
        with socket.socket(fileno=os.dup(stream.socket.fileno())) as plain:
            plain.shutdown(socket.SHUT_WR)
        assert {dns.message.from_wire(stream.receive()).id for _ in range(20)} == set(range(20))


def test_a_zone_is_transferred_in_whole_records(secure):
    """A message of a transfer and its length fill one record: 16,384 octets (RFC 8446 §5.1)."""
    text = ("$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"
            + "".join(f"host{number} A 192.0.2.7\n" for number in range(20_000)))
    server = secure(OPEN, text=text.replace("@ NS", "www A 192.0.2.10\n@ NS"))
    sizes, records = [], 0
    with TlsStream(server.tls_port) as stream:
        stream.send(framed(dns.message.make_query("tls.test", "AXFR").to_wire()))
        soas = 0
        while soas < 2:
            octets = stream.receive()
            sizes.append(len(octets) + 2)
            message = dns.message.from_wire(octets, one_rr_per_rrset=True)
            records += len(message.answer)
            soas += sum(rrset.rdtype == 6 for rrset in message.answer)
    assert records == 20_005
    assert max(sizes) <= 16_384 and min(sizes[:-1]) > 16_000, sizes


def test_rules_about_addresses_hold_for_the_clients_address(secure):
    server = secure({"allow-transfer": [{"address": "127.0.0.9"}]})
    query = framed(dns.message.make_query("tls.test", "AXFR").to_wire())
    for source, rcode in (("127.0.0.9", dns.rcode.NOERROR), ("127.0.0.8", dns.rcode.REFUSED)):
        with TlsStream(server.tls_port, source=source) as stream:
            stream.send(query)
            assert dns.message.from_wire(stream.receive()).rcode() == rcode, source


def test_rules_about_tls_hold_for_tls_alone(secure):
    """NSD's CVE-2026-12490: such a rule never matches plain TCP."""
    server = secure({"allow-transfer": [{"tls": "any"}]})
    assert server.ask("tls.test", "AXFR", tcp=True).rcode() == dns.rcode.REFUSED
    with TlsStream(server.tls_port) as stream:
        stream.send(framed(dns.message.make_query("tls.test", "AXFR").to_wire()))
        assert dns.message.from_wire(stream.receive()).rcode() == dns.rcode.NOERROR


def test_padded_queries_have_padded_answers(secure):
    """RFC 8467 §4.1, and none over TCP (RFC 7830 §6)."""
    server = secure()
    padding = dns.edns.GenericOption(dns.edns.OptionType.PADDING, b"\0" * 20)
    with TlsStream(server.tls_port) as stream:
        for name, rdtype in (("www.tls.test", "A"), ("nothing.tls.test", "A"), ("big.tls.test", "TXT")):
            stream.send(framed(dns.message.make_query(name, rdtype, use_edns=0, options=[padding]).to_wire()))
            octets = stream.receive()
            assert len(octets) % 468 == 0, (name, len(octets))
            assert any(option.otype == dns.edns.OptionType.PADDING for option in dns.message.from_wire(octets).options)
        plain = stream.ask("www.tls.test", use_edns=0)
        assert not plain.options, "of a query without padding"
    tcp = server.ask("www.tls.test", tcp=True, use_edns=0, options=[padding])
    assert not tcp.options


def test_sessions_are_resumed_by_tickets(secure):
    server = secure(workers=2)
    using = context()
    with TlsStream(server.tls_port, using) as first:
        assert first.ask("www.tls.test"), "the ticket comes with the first octets"
        session = first.socket.session
        assert session.has_ticket
    resumed = 0
    for _ in range(10):  # every process of pando-tls has the keys
        with TlsStream(server.tls_port, using, session=session) as again:
            assert again.ask("www.tls.test")
            resumed += again.socket.session_reused
    assert resumed == 10


def test_query_log_and_its_transport(secure, tmp_path):
    log = tmp_path / "queries.log"
    server = secure(extra=f"  query-log: {{file: {log}}}")
    assert tls_clients.ask(server.tls_port, "big.tls.test", "TXT")

    def lines():
        return [json.loads(line) for line in log.read_text().splitlines() if "big.tls.test" in line]

    servers.wait_until("the line is there", lambda: log.exists() and lines())
    assert lines()[-1]["protocol"] == "dot" and lines()[-1]["client"] == "127.0.0.1"
    assert lines()[-1]["server"] == "127.0.0.1"


def test_tools_of_peers(secure):
    server = secure()
    where = ["@127.0.0.1", "-p", str(server.tls_port), "www.tls.test", "A", "+tls"]
    done = run("dig", *where, "+short", "+time=30")
    assert done.stdout.strip() == b"192.0.2.10", done
    if shutil.which("kdig"):
        done = run("kdig", *where, f"+tls-pin={server.pair.pin()}", "+padding=128", "+time=30")
        assert b"192.0.2.10" in done.stdout and b"TLS1.3" in done.stdout, done


def test_a_load_balancer_puts_its_header_before_the_handshake(secure):
    server = secure({"allow-transfer": [{"address": "192.0.2.77"}]}, extra="  proxy-protocol-from: [127.0.0.0/8]")
    header = (b"\r\n\r\n\0\r\nQUIT\n" + b"\x21\x11\x00\x0c" + socket.inet_aton("192.0.2.77")
              + socket.inet_aton("192.0.2.53") + b"\x13\x88\x03\x55")
    query = framed(dns.message.make_query("tls.test", "AXFR").to_wire())
    for before, rcode in ((header, dns.rcode.NOERROR), (b"", dns.rcode.REFUSED)):
        with TlsStream(server.tls_port, before=before) as stream:
            stream.send(query)
            assert dns.message.from_wire(stream.receive()).rcode() == rcode, before
