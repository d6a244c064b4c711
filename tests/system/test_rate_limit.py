"""Response rate limiting as clients see it."""

import socket
import time

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest

ZONE = "limited.test"
ZONE_FILE = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\nwww A 192.0.2.80\n"
LIMIT = 20
QUESTIONS = 2000


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "limited.zone").write_text(ZONE_FILE)
    instance = pando([{"name": ZONE, "file": str(tmp_path / "limited.zone")}], workers=1,
                     extra=f"  rate-limit: {{responses: {LIMIT}, slip: 2}}")
    instance.start(ZONE)
    return instance


def flood(server, name):
    """Asks QUESTIONS times: full answers, truncated ones, and the seconds of the clock it can have touched."""
    query = dns.message.make_query(name, "A")
    began = time.time()
    full = truncated = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", server.port))
        for number in range(QUESTIONS):
            query.id = number
            client.send(query.to_wire())
            client.settimeout(0)
            full, truncated = count(client, full, truncated)
        client.settimeout(1)
        full, truncated = count(client, full, truncated)
    return full, truncated, int(time.time()) - int(began) + 2


def count(client, full, truncated):
    while True:
        try:
            response = dns.message.from_wire(client.recv(4096))
        except OSError:
            return full, truncated
        if response.flags & dns.flags.TC:
            assert not response.answer
            truncated += 1
        else:
            full += 1


def test_a_flood_gets_few_answers_and_its_victim_can_use_tcp(server):
    full, truncated, seconds = flood(server, f"www.{ZONE}")
    assert LIMIT <= full <= LIMIT * seconds
    assert truncated > 0
    dropped = QUESTIONS - full - truncated
    assert dropped > 0
    query = dns.message.make_query(f"www.{ZONE}", "A")
    assert dns.query.tcp(query, "127.0.0.1", port=server.port, timeout=10).answer
    counters = next(iter(server.workers().values()))["counters"]
    assert counters["rate_slipped"] >= truncated
    assert counters["rate_limited"] > counters["rate_slipped"]


def test_names_that_do_not_exist_share_one_account(server):
    query = dns.message.make_query(f"a.{ZONE}", "A")
    full, _, seconds = flood(server, f"b.{ZONE}")
    assert full <= LIMIT * seconds
    assert dns.query.tcp(query, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NXDOMAIN


def test_exemption_and_limit_change_while_it_runs(server):
    server.extra = f"  rate-limit: {{responses: {LIMIT}, slip: 2, exempt: [127.0.0.0/8]}}"
    server.write_config()
    server.control("reload")
    full, truncated, _ = flood(server, f"www.{ZONE}")
    assert truncated == 0
    assert full > QUESTIONS // 2
