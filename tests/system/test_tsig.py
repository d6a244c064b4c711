"""Signatures that do not verify, of another time and cut ones, and what the answers to them are signed with."""

import base64
import hashlib
import hmac
import socket
import struct
import time

import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.rdtypes.ANY.TSIG
import dns.update
import dns.wire
import pytest

SECRET = "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"
# A key that updates ask for stays in the manager, the others are the workers' as well.
IN_MANAGER = {"name": "update-key", "algorithm": "hmac-sha256", "secret": SECRET}
IN_WORKERS = {"name": "query-key", "algorithm": "hmac-sha256", "secret": SECRET}
ZONE = """$TTL 300
@ SOA ns admin 1 3600 600 1209600 300
@ NS ns
ns A 192.0.2.1
"""


@pytest.fixture
def server(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    return pando([{"name": "example", "file": str(path), "allow-update": [{"key": IN_MANAGER["name"]}]}],
                 keys=[IN_MANAGER, IN_WORKERS]).start("example")


def update():
    message = dns.update.Update("example")
    message.add("x", 60, "A", "192.0.2.1")
    return message


def query():
    message = dns.message.make_query("ns.example", "A")
    message.flags &= ~dns.flags.RD
    return message


def notify():
    message = dns.message.make_query("example", "SOA")
    message.flags = dns.flags.AA
    message.set_opcode(dns.opcode.NOTIFY)
    return message


REQUESTS = [(update, IN_MANAGER), (notify, IN_MANAGER), (query, IN_MANAGER), (query, IN_WORKERS)]


def variables(key_name, tsig):
    """RFC 8945 §4.3.3."""
    return (dns.name.from_text(key_name).to_wire() + struct.pack("!HI", 255, 0) + tsig.algorithm.to_wire()
            + struct.pack("!HIHHH", tsig.time_signed >> 32, tsig.time_signed & 0xFFFFFFFF, tsig.fudge, tsig.error,
                          len(tsig.other)) + tsig.other)


def signed(message, key, octets=32, secret=SECRET, age=0):
    """The message with a TSIG whose MAC is cut to `octets`, of `age` seconds ago; and that MAC."""
    wire = message.to_wire()
    now = int(time.time()) - age
    algorithm = dns.name.from_text(key["algorithm"])
    shown = dns.rdtypes.ANY.TSIG.TSIG(255, dns.rdatatype.TSIG, algorithm, now, 300, b"", message.id, 0, b"")
    mac = hmac.new(base64.b64decode(secret), wire + variables(key["name"], shown), hashlib.sha256).digest()[:octets]
    rdata = shown.replace(mac=mac).to_wire()
    record = dns.name.from_text(key["name"]).to_wire() + struct.pack("!HHIH", 250, 255, 0, len(rdata)) + rdata
    return wire[:10] + struct.pack("!H", struct.unpack("!H", wire[10:12])[0] + 1) + wire[12:] + record, mac


def exchange(server, wire):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.sendto(wire, ("127.0.0.1", server.port))
        return client.recv(65535)


def tsig_of(answer):
    """The RDATA of the answer's TSIG, and where the record begins; None, None without one."""
    parser = dns.wire.Parser(answer)
    _, _, *counts = parser.get_struct("!HHHHHH")
    for _ in range(counts[0]):
        parser.get_name()
        parser.get_struct("!HH")
    for _ in range(sum(counts[1:])):
        start = parser.current
        parser.get_name()
        rdtype, rdclass, _, size = parser.get_struct("!HHIH")
        with parser.restrict_to(size):
            rdata = dns.rdata.from_wire_parser(rdclass, rdtype, parser)
        if rdtype == dns.rdatatype.TSIG:
            return rdata, start
    return None, None


def rcode_of(answer):
    return answer[3] & 0x0F


def verifies(answer, key, request_mac):
    """RFC 8945 §4.3: the answer's signature covers the request's MAC as it was sent."""
    tsig, start = tsig_of(answer)
    body = (struct.pack("!H", tsig.original_id) + answer[2:10]
            + struct.pack("!H", struct.unpack("!H", answer[10:12])[0] - 1) + answer[12:start])
    covered = struct.pack("!H", len(request_mac)) + request_mac + body + variables(key["name"], tsig)
    return hmac.new(base64.b64decode(SECRET), covered, hashlib.sha256).digest() == tsig.mac


def unchanged(server):
    return server.serial("example") == 1 and not server.ask("x.example").answer


@pytest.mark.parametrize("make, key", REQUESTS)
def test_wrong_signatures_are_told_apart(server, make, key):
    """RFC 8945 §5.3.2: who does not have the key gets an answer without a signature."""
    for wire, error in ((signed(make(), {**key, "name": "no-such-key"})[0], dns.rcode.BADKEY),
                        (signed(make(), {**key, "algorithm": "hmac-sha1"})[0], dns.rcode.BADKEY),
                        (signed(make(), key, secret="d3Jvbmc=")[0], dns.rcode.BADSIG)):
        answer = exchange(server, wire)
        tsig, _ = tsig_of(answer)
        assert (rcode_of(answer), tsig.error, tsig.mac) == (dns.rcode.NOTAUTH, error, b"")
    assert unchanged(server)


@pytest.mark.parametrize("make, key", REQUESTS)
def test_a_cut_signature_is_refused_and_the_answer_signed(server, make, key):
    """RFC 8945 §5.2.4; below half of the hash it is a format error (§5.2.2.1)."""
    for octets in (16, 31):
        wire, mac = signed(make(), key, octets)
        answer = exchange(server, wire)
        tsig, _ = tsig_of(answer)
        assert (rcode_of(answer), tsig.error, len(tsig.mac)) == (dns.rcode.NOTAUTH, dns.rcode.BADTRUNC, 32)
        assert verifies(answer, key, mac)
    answer = exchange(server, signed(make(), key, 15)[0])
    assert rcode_of(answer) == dns.rcode.FORMERR and tsig_of(answer) == (None, None)
    assert unchanged(server)


@pytest.mark.parametrize("make, key", REQUESTS)
def test_a_signature_of_another_time_is_refused_and_the_answer_signed(server, make, key):
    """RFC 8945 §5.2.3: with the client's time, and the server's beside it. The time comes before a cut (§5.2)."""
    for age, octets in ((1000, 32), (-1000, 32), (1000, 16)):
        before = int(time.time())
        wire, mac = signed(make(), key, octets, age=age)
        answer = exchange(server, wire)
        tsig, _ = tsig_of(answer)
        assert (rcode_of(answer), tsig.error) == (dns.rcode.NOTAUTH, dns.rcode.BADTIME)
        assert verifies(answer, key, mac)
        assert tsig.time_signed == tsig_of(wire)[0].time_signed
        assert before <= int.from_bytes(tsig.other, "big") <= time.time()
    assert unchanged(server)


def test_a_whole_signature_is_taken(server):
    wire, mac = signed(update(), IN_MANAGER)
    answer = exchange(server, wire)
    assert rcode_of(answer) == dns.rcode.NOERROR and verifies(answer, IN_MANAGER, mac)
    assert server.ask("x.example").answer and server.serial("example") == 2
