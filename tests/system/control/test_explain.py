"""`pandoctl explain`: the reasons for an answer, and that the answer is the one that clients get."""

import dns.flags
import dns.message
import dns.query
import dns.rcode
import pytest

from test_records import ctl

ZONE = "explained.test"

TEXT = """$TTL 300
@ SOA ns1 admin 10 3600 600 864000 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.10
alias CNAME www
*.wild A 192.0.2.20
sub NS ns.sub
ns.sub A 192.0.2.40
"""


@pytest.fixture
def server(pando, tmp_path):
    file = tmp_path / "zone"
    file.write_text(TEXT)
    return pando([{"name": ZONE, "file": str(file), "allow-query": [
        {"address": "192.0.2.7", "deny": True}, {"address": "127.0.0.0/8"}, {"address": "192.0.2.0/24"}]}]).start(ZONE)


def sections(message):
    return [sorted(f"{rrset.name} {rrset.ttl} {dns.rdatatype.to_text(rrset.rdtype)} {rdata.to_text(origin=None)}"
                   for rrset in section for rdata in rrset)
            for section in (message.answer, message.authority, message.additional)]


@pytest.mark.parametrize("name, kind", [
    ("www", "A"), ("alias", "A"), ("no", "A"), ("x.wild", "A"), ("www", "TXT"), ("host.sub", "AAAA"), ("sub", "DS"),
    ("@", "NS"), ("www", "ANY")])
def test_it_gives_the_answer_that_clients_get(server, name, kind):
    name = f"{name}.{ZONE}." if name != "@" else f"{ZONE}."
    told = server.control("explain", name, kind, "--from", "127.0.0.1")
    query = dns.message.make_query(name, kind)
    given = dns.query.udp(query, "127.0.0.1", port=server.port, timeout=20)
    assert told["rcode"] == dns.rcode.to_text(given.rcode())
    assert told["authoritative"] == bool(given.flags & dns.flags.AA)
    rows = [sorted(f"{row['owner']} {row['ttl']} {row['type']} {row['rdata']}" for row in told[section])
            for section in ("answer", "authority", "additional")]
    assert rows == sections(given)
    assert told["zone"] == f"{ZONE}." and told["serial"] == 10 and len(told["steps"]) >= 3


def test_words_for_people(server):
    code, out, err = ctl(server, "explain", f"alias.{ZONE}", "--from", "192.0.2.7")
    assert code == 0, err
    assert out.splitlines()[0] == f"alias.{ZONE}. A"
    assert "Rule 1 of allow-query (deny 192.0.2.7/32) is the first that matches" in out
    assert out.splitlines()[-1] == "REFUSED"
    code, out, err = ctl(server, "explain", f"alias.{ZONE}", "A", "--from", "127.0.0.1")
    assert f"alias.{ZONE}. is an alias; www.{ZONE}. is looked up next." in out
    assert f"  www.{ZONE}. 300 IN A 192.0.2.10" in out.splitlines()


def test_the_rate_limit_is_told(server):
    assert "rate-limit" not in ctl(server, "explain", f"www.{ZONE}", "--from", "127.0.0.1")[1]
    server.extra = "  rate-limit: {responses: 5, exempt: [192.0.2.0/24]}"
    server.write_config()
    server.control("reload")
    limited = ctl(server, "explain", f"www.{ZONE}", "--from", "127.0.0.1")[1]
    assert "server.rate-limit lets 5 such responses a second go to one network" in limited
    assert "server.rate-limit exempts 192.0.2.9." in ctl(server, "explain", f"www.{ZONE}", "--from", "192.0.2.9")[1]


@pytest.mark.parametrize("words", [
    ("no such name..",), (ZONE, "NOTYPE"), (ZONE, "A", "--from", "300.0.0.1"), (ZONE, "AXFR"), (ZONE, "A", "--key", ".."),
    (ZONE, "A", "--key", "no.such.key")])
def test_bad_words_are_refused_with_a_reason(server, words):
    code, out, err = ctl(server, "explain", *words)
    assert code == 1 and out == "" and err.startswith("pandoctl: ") and len(err.splitlines()) == 1


def test_a_key_that_is_not_configured_and_a_misspelt_type_are_named(server):
    assert "no key panel. is configured" in ctl(server, "explain", f"www.{ZONE}", "A", "--key", "panel")[2]
    assert "did you mean 'AAAA'?" in ctl(server, "explain", f"www.{ZONE}", "aaaaa")[2]
