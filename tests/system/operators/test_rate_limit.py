"""Response rate limiting as clients see it."""

import socket
import time

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
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


def exchange(server, queries):
    """Sends all queries over UDP at once, within one second of the clock's. Numbers of full and truncated responses."""
    while time.time() % 1 > 0.3:
        time.sleep(0.01)
    full = truncated = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", server.port))
        for query in queries:
            client.send(query)
        client.settimeout(1)
        while True:
            try:
                response = client.recv(4096)
            except OSError:
                return full, truncated
            if response[2] & 2:
                truncated += 1
            else:
                full += 1


def refused_update(number):
    update = dns.update.UpdateMessage(CLOSED)
    update.add(f"x{number}", 60, "A", "192.0.2.1")
    return update.to_wire()


def notify(zone):
    query = dns.message.make_query(zone, "SOA")
    query.set_opcode(dns.opcode.NOTIFY)
    return query.to_wire()


def query_of_opcode(opcode):
    query = dns.message.make_query(CLOSED, "A")
    query.set_opcode(opcode)
    return query.to_wire()


def two_questions():
    query = dns.message.make_query(ZONE, "A")
    query.question.append(query.question[0])
    return query.to_wire()


def badly_signed(number):
    query = dns.message.make_query(f"n{number}.{ZONE}", "A")
    query.use_tsig(dns.tsigkeyring.from_text({"nobody.": "c2VjcmV0"}))
    return query.to_wire()


CLOSED = "closed.test"
OTHERS = {
    "REFUSED by a zone's rules": lambda number: dns.message.make_query(f"n{number}.{CLOSED}", "A").to_wire(),
    "REFUSED for lack of a zone": lambda number: dns.message.make_query(f"n{number}.elsewhere.test", "A").to_wire(),
    "refused UPDATE": refused_update,
    "NOTIFY of a primary zone": lambda number: notify(ZONE),
    "refused NOTIFY": lambda number: notify(f"n{number}.test"),
    "FORMERR": lambda number: two_questions(),
    "NOTIMP": lambda number: query_of_opcode(dns.opcode.STATUS),
    "AXFR over UDP": lambda number: dns.message.make_query(ZONE, "AXFR").to_wire(),
    "refused IXFR": lambda number: dns.message.make_query(f"n{number}.test", "IXFR").to_wire(),
    "BADKEY": badly_signed,
    "CHAOS": lambda number: dns.message.make_query("id.server", "TXT", "CH").to_wire(),
    "refused CHAOS": lambda number: dns.message.make_query(f"n{number}.bind", "TXT", "CH").to_wire(),
}


@pytest.fixture
def strict(pando, tmp_path):
    (tmp_path / "limited.zone").write_text(ZONE_FILE)
    zones = [{"name": ZONE, "file": str(tmp_path / "limited.zone")},
             {"name": CLOSED, "file": str(tmp_path / "limited.zone"), "allow-query": [{"address": "192.0.2.1"}]}]
    instance = pando(zones, workers=1, extra="  identity: me\n  rate-limit: {responses: 10, slip: 0}")
    instance.start(ZONE)
    return instance


@pytest.mark.parametrize("kind", OTHERS)
def test_a_flood_of_errors_and_of_other_responses_is_limited_as_answers_are(strict, kind):
    full, truncated = exchange(strict, [OTHERS[kind](number) for number in range(60)])
    assert 10 <= full <= 20, "two seconds of the clock may be concerned"
    assert truncated == 0
    assert next(iter(strict.workers().values()))["counters"]["rate_limited"] >= 40


def test_errors_of_all_kinds_are_one_account(strict):
    kinds = [OTHERS[kind] for kind in OTHERS if kind != "CHAOS"]
    full, _ = exchange(strict, [make(number) for number in range(10) for make in kinds])
    assert full <= 20


def test_replies_of_the_manager_are_limited(pando, tmp_path):
    """Updates that a rule by address lets through to the manager, which refuses them for what they change."""
    (tmp_path / "limited.zone").write_text(ZONE_FILE)
    rules = [{"address": "127.0.0.0/8"}]
    server = pando([{"name": ZONE, "file": str(tmp_path / "limited.zone"), "allow-update": rules}], workers=1,
                   extra="  rate-limit: {responses: 10, slip: 0}")
    server.start(ZONE)
    outside = dns.update.UpdateMessage(ZONE)
    outside.add("elsewhere.test.", 60, "A", "192.0.2.1")  # NOTZONE
    full, _ = exchange(server, [outside.to_wire()] * 60)
    assert 1 <= full <= 20
