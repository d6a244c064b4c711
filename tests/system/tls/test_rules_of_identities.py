"""Rules with `tls`: whom they match, over TLS and else."""

import json
import socket
import subprocess

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import dns.rrset
import dns.tsigkeyring
import dns.update
import pytest

import servers
import tls_clients
from streams import Stream, framed
from test_protocol import proxied
from tls_certificates import self_signed

KEY = {"name": "ours", "algorithm": "hmac-sha256", "secret": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})
ZONE = "$ORIGIN z.test.\n$TTL 60\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.80\n"


@pytest.fixture(scope="module")
def pairs(authority, tmp_path_factory):
    """What clients show: two certificates of an authority, and one that signed itself."""
    return {"second": authority.sign("second", "second.test"), "third": authority.sign("third", "third.test"),
            "pinned": self_signed(tmp_path_factory.mktemp("pinned"), "pinned"),
            "expired": authority.sign("expired", "second.test", "20200101000000Z", "20200201000000Z")}


def remotes(authority, pairs):
    ca = str(authority.pair.certificate)
    return [{"name": "second", "address": ["127.0.0.1"], "tls": {"hostname": "second.test", "ca": ca}},
            {"name": "pinned", "address": ["127.0.0.1"], "tls": {"pins": [pairs["pinned"].pin()]}},
            {"name": "both", "address": ["127.0.0.1"],
             "tls": {"hostname": "third.test", "ca": ca, "pins": [pairs["third"].pin()]}},
            {"name": "never", "address": ["127.0.0.1"],
             "tls": {"hostname": "third.test", "ca": ca, "pins": [pairs["pinned"].pin()]}},
            {"name": "primary", "address": ["127.0.0.9@9"]}]


def zone(tmp_path, name, **rules):
    path = tmp_path / f"{name}.zone"
    path.write_text(ZONE)
    return {"name": name, "file": str(path), **rules}


def ask(port, message, transport, head=b""):
    """The RCODE of the answer to a message over UDP, TCP, or a context of TLS."""
    if transport == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(20)
            udp.sendto(head + message, ("127.0.0.1", port))
            return udp.recv(65535)[3] & 15
    if transport == "tcp":
        with Stream(port) as tcp:
            tcp.send(head + framed(message))
            return tcp.receive()[3] & 15
    with tls_clients.TlsStream(port, transport, before=head) as tls:
        tls.send(framed(message))
        return tls.receive()[3] & 15


def requests(name, keyring=None):
    """One of each kind: a query, AXFR, IXFR, UPDATE and NOTIFY."""
    made = {"query": dns.message.make_query(f"www.{name}", "A"),
            "axfr": dns.message.make_query(name, "AXFR")}
    made["ixfr"] = dns.message.make_query(name, "IXFR")
    made["ixfr"].authority = [dns.rrset.from_text(f"{name}.", 0, "IN", "SOA", ". . 7 0 0 0 0")]
    made["update"] = dns.update.Update(name)
    made["update"].add("new", 60, "A", "192.0.2.9")
    made["notify"] = dns.message.make_query(f"s{name}", "SOA", flags=dns.flags.AA)
    made["notify"].set_opcode(dns.opcode.NOTIFY)
    for message in made.values():
        if keyring:
            message.use_tsig(keyring)
    return {kind: message.to_wire() for kind, message in made.items()}


RULES = ("allow-query", "allow-transfer", "allow-update")


@pytest.mark.parametrize("rule", [{"tls": "any"}, {"tls": "second"}, {"tls": "any", "key": "ours"},
                                  {"tls": "pinned", "address": "127.0.0.0/8"}])
def test_no_request_over_udp_or_plain_tcp_matches(tmp_path, pando, authority, pairs, rule):
    served = zone(tmp_path, "z.test", **{key: [rule] for key in RULES})
    secondary = {"name": "sz.test", "primaries": ["primary"], "allow-notify": [rule]}
    server = pando([served, secondary], keys=[KEY], remotes=remotes(authority, pairs), workers=1,
                   extra="  proxy-protocol-from: [127.0.0.0/8]")
    server.start()
    servers.wait_until("the zone is there", lambda: server.control("status")["zones_loaded"] == 1)
    for keyring in (None, KEYRING):
        for kind, message in requests("z.test", keyring).items():
            for transport in ("udp", "tcp"):
                for head in (b"", proxied("127.0.0.1", protocol=2 if transport == "udp" else 1)):
                    if kind == "axfr" and transport == "udp":
                        continue  # RFC 5936 §4.2: not over UDP
                    answer = ask(server.port, message, transport, head)
                    assert answer == dns.rcode.REFUSED, (kind, transport, keyring is not None, bool(head))
    assert server.control("zone", "status", "z.test")["serial"] == 1


def test_a_rule_that_denies_tls_leaves_others_alone(tmp_path, pando, authority, pairs):
    rules = [{"tls": "any", "deny": True}, {"address": "127.0.0.0/8"}]
    server = pando([zone(tmp_path, "z.test", **{key: rules for key in RULES})], remotes=remotes(authority, pairs))
    server.start("z.test")
    made = requests("z.test")
    for kind, transport in (("query", "udp"), ("axfr", "tcp"), ("update", "tcp")):
        assert ask(server.port, made[kind], transport) == dns.rcode.NOERROR, kind


def test_a_reload_that_takes_an_identity_away_is_refused_while_rules_name_it(tmp_path, pando, authority, pairs):
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})],
                   remotes=remotes(authority, pairs))
    server.start("z.test")
    server.remotes[0].pop("tls")
    server.write_config()
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "remote 'second' has no 'tls'" in done.stderr, done.stderr
    assert ask(server.port, requests("z.test")["axfr"], "tcp") == dns.rcode.REFUSED


def test_status_tells_what_certificates_have_to_prove(tmp_path, pando, authority, pairs):
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})],
                   remotes=remotes(authority, pairs))
    server.start("z.test")
    status = server.control("tls", "status")
    rows = {row["remote"]: row for row in status["remotes"]}
    assert not status["served"] and sorted(rows) == ["both", "never", "pinned", "second"]
    assert rows["second"]["hostname"] == "second.test" and not rows["second"]["problem"]
    assert rows["pinned"]["pins"] == [pairs["pinned"].pin()] and rows["pinned"]["authenticated"]
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "tls", "roll"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "server.listen-tls names no address" in done.stderr


def test_authorities_are_read_again_when_their_file_changes(tmp_path, pando, authority, pairs):
    ca = tmp_path / "ca.pem"
    ca.write_text("nothing\n")
    made = remotes(authority, pairs)
    made[0]["tls"]["ca"] = str(ca)
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})], remotes=made)
    server.start("z.test")

    def problem():
        done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "--json",
                               "tls", "status"], capture_output=True, text=True, timeout=120)
        rows = json.loads(done.stdout)["remotes"]
        assert done.returncode == (1 if rows[0]["problem"] else 0)
        return rows[0]["problem"]
    assert problem() == f"{ca}: there is no certificate in it (PEM)"
    assert f"tls_authorities_refused error=\"{ca}: there is no certificate" in server.log()
    ca.write_text(authority.pair.certificate.read_text())
    servers.wait_until("the file was read again", lambda: not problem(), 60)


def shows(pairs, name=None):
    return tls_clients.context(pair=pairs[name] if name else None)


@pytest.mark.parametrize("rule, proven", [
    ({"tls": "any"}, {None, "second", "third", "pinned", "expired"}),
    ({"tls": "second"}, {"second"}),
    ({"tls": "pinned"}, {"pinned"}),
    ({"tls": "both"}, {"third"}),
    ({"tls": "never"}, set()),
    ({"tls": "second", "address": "127.0.0.0/8"}, {"second"}),
    ({"tls": "second", "address": "192.0.2.0/24"}, set())])
def test_a_rule_matches_whoever_proves_the_identity(tmp_path, secure, authority, pairs, rule, proven):
    server = secure(rules={key: [rule] for key in RULES} | {"allow-query": [{"address": "127.0.0.0/8"}]},
                    remotes=remotes(authority, pairs))
    made = requests("tls.test")
    for name in (None, *pairs):
        wanted = dns.rcode.NOERROR if name in proven else dns.rcode.REFUSED
        for kind in ("axfr", "ixfr", "update"):
            assert ask(server.tls_port, made[kind], shows(pairs, name)) == wanted, (name, kind)


def test_address_key_and_identity_of_one_rule_hold_together(secure, authority, pairs):
    rules = [{"tls": "second", "key": "ours"}, {"tls": "pinned", "address": "192.0.2.0/24"}]
    server = secure(rules={"allow-transfer": rules, "allow-update": rules}, keys=[KEY],
                    remotes=remotes(authority, pairs))
    for name in (None, *pairs):
        for keyring in (None, KEYRING):
            wanted = dns.rcode.NOERROR if name == "second" and keyring else dns.rcode.REFUSED
            made = requests("tls.test", keyring)
            for kind in ("axfr", "update"):
                assert ask(server.tls_port, made[kind], shows(pairs, name)) == wanted, (name, kind, bool(keyring))
    for keyring in (None, KEYRING):
        assert ask(server.port, requests("tls.test", keyring)["axfr"], "tcp") == dns.rcode.REFUSED


def test_the_history_names_the_identity(secure, authority, pairs):
    server = secure(rules={"allow-update": [{"tls": "second"}]}, keys=[KEY], remotes=remotes(authority, pairs))
    for keyring, by in ((None, "tls second"), (KEYRING, "key ours., tls second")):
        update = dns.update.Update("tls.test", keyring=keyring)
        update.replace("new", 60, "TXT", by)
        assert ask(server.tls_port, update.to_wire(), shows(pairs, "second")) == dns.rcode.NOERROR
        assert by in [changeset["by"] for changeset in server.control("zone", "history", "tls.test")["changesets"]]


def test_notify_is_taken_from_an_identity(secure, authority, pairs, tmp_path):
    server = secure(remotes=remotes(authority, pairs), start=False)
    server.zones.append({"name": "stls.test", "primaries": ["primary"], "allow-notify": [{"tls": "second"}]})
    server.write_config()
    server.start("tls.test")
    servers.wait_until("TLS is served", lambda: tls_clients.ask(server.tls_port, "www.tls.test"))
    message = requests("tls.test")["notify"]
    for name in (None, *pairs):
        wanted = dns.rcode.NOERROR if name == "second" else dns.rcode.REFUSED
        assert ask(server.tls_port, message, shows(pairs, name)) == wanted, name


def test_an_identity_that_leaves_the_configuration_loses_its_connection(secure, authority, pairs):
    server = secure(rules={"allow-transfer": [{"tls": "second"}, {"tls": "pinned"}]},
                    remotes=remotes(authority, pairs), text=ZONE.replace("$ORIGIN z.test.\n", ""))
    with tls_clients.TlsStream(server.tls_port, shows(pairs, "second")) as second, \
            tls_clients.TlsStream(server.tls_port, shows(pairs)) as stranger:
        assert second.ask("tls.test", "AXFR").rcode() == dns.rcode.NOERROR
        servers.wait_until("the log names it", lambda: " transport=tls identity=second kind=axfr" in server.log())
        assert stranger.ask("www.tls.test").rcode() == dns.rcode.NOERROR
        server.zones[0]["allow-transfer"] = [{"tls": "pinned"}]
        server.write_config()
        server.control("reload")
        second.socket.settimeout(60)
        try:
            assert second.read(1) == b""
        except OSError:
            pass  # a reset is an end as well
        assert stranger.ask("www.tls.test").rcode() == dns.rcode.NOERROR
    assert ask(server.tls_port, requests("tls.test")["axfr"], shows(pairs, "second")) == dns.rcode.REFUSED
