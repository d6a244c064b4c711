"""Updates that a secondary passes on to its primary (RFC 2136 §6)."""

import subprocess

import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import dns.update
import pytest

import servers
from test_transfers import BIND_KEY, KEY, KEYRING, zone_file  # noqa: F401 (a fixture)

LOCAL = [{"address": "127.0.0.0/8"}]


def bind_primary(zone_file, folder, secondary, allow):  # noqa: F811
    return servers.Bind(
        folder, {"example": f'type primary; file "{zone_file}"; allow-update {{ {allow}; }}; '
                            'allow-transfer { any; }; notify explicit; notify-delay 0; '
                            f'also-notify {{ 127.0.0.1 port {secondary}; }};'},
        keys=BIND_KEY, options="startup-notify-rate 1000; notify-rate 1000;")


@pytest.fixture(params=["bind", "pando"])
def make_primary(request, tmp_path, zone_file, pando, peers):  # noqa: F811
    """Starts a primary that tells the secondary, and lets who signs (or comes from here) update."""

    def make(secondary, by_key=True):
        if request.param == "bind":
            allow = f'key {KEY["name"]}' if by_key else "127.0.0.1"
            return peers(bind_primary(zone_file, tmp_path / "bind", secondary, allow), "example")
        rule = {"key": KEY["name"]} if by_key else LOCAL[0]
        zone = {"name": "example", "file": str(zone_file), "allow-update": [rule], "allow-transfer": LOCAL,
                "notify": ["peer"]}
        return pando([zone], keys=[KEY],
                     remotes=[{"name": "peer", "address": [f"127.0.0.1@{secondary}"]}]).start("example")

    return make


def make_secondary(pando, port, primaries, **options):
    zone = {"name": "example", "primaries": ["up"], "forward-updates": True, **options}
    return pando([zone], port=port, workers=1,  # without the key
                 remotes=[{"name": "up", "address": [f"127.0.0.1@{number}" for number in primaries]}])


def send(server, update, tcp=False):
    return (dns.query.tcp if tcp else dns.query.udp)(update, "127.0.0.1", port=server.port, timeout=30)


def new_update(record="new", keyring=KEYRING):
    update = dns.update.Update("example", keyring=keyring)
    update.add(record, 60, "TXT", "by way of the secondary")
    return update


def counters(server):
    return server.control("status")["counters"]


def test_key_that_only_client_and_primary_know(pando, make_primary):
    port = servers.free_port()
    primary = make_primary(port)
    secondary = make_secondary(pando, port, [primary.port]).start("example")
    for i, tcp in enumerate((False, True)):
        answer = send(secondary, new_update(f"new{i}"), tcp)  # dnspython verifies its signature
        assert answer.rcode() == dns.rcode.NOERROR and answer.had_tsig
    text = (f"server 127.0.0.1 {secondary.port}\nkey {KEY['algorithm']}:{KEY['name']} {KEY['secret']}\n"
            "zone example\nupdate add tool.example 60 A 192.0.2.77\nsend\n")
    done = subprocess.run(["nsupdate"], input=text, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr
    for name in ("new0", "new1", "tool"):
        assert primary.ask(f"{name}.example", "ANY", tcp=True).answer
        servers.wait_until(f"the secondary has {name}", lambda: secondary.ask(f"{name}.example", "ANY", tcp=True).answer)
    assert counters(secondary)["updates_forwarded"] == 3


def test_answers_of_the_primary_come_back_as_they_are(pando, make_primary):
    port = servers.free_port()
    primary = make_primary(port)
    secondary = make_secondary(pando, port, [primary.port]).start("example")
    update = new_update()
    update.absent("www")
    answer = send(secondary, update)
    assert answer.rcode() == dns.rcode.YXDOMAIN and answer.had_tsig
    wrong = dns.tsigkeyring.from_text({KEY["name"]: "d3JvbmcgYnV0IGxvbmcgZW5vdWdoIHRvIGJlIGEga2V5"})
    with pytest.raises(dns.tsig.PeerBadSignature):
        send(secondary, new_update(keyring=wrong))
    assert not primary.ask("new.example", "TXT").answer


def test_unsigned_ones_need_a_rule_here(pando, make_primary):
    port = servers.free_port()
    primary = make_primary(port, by_key=False)  # which would take them from this address
    secondary = make_secondary(pando, port, [primary.port]).start("example")
    assert send(secondary, new_update(keyring=None)).rcode() == dns.rcode.REFUSED
    assert counters(secondary)["updates_forwarded"] == 0
    assert not primary.ask("new.example", "TXT").answer
    secondary.zones[0]["allow-update"] = LOCAL
    secondary.write_config()
    secondary.control("reload")
    assert send(secondary, new_update(keyring=None)).rcode() == dns.rcode.NOERROR
    assert primary.ask("new.example", "TXT").answer


def test_rules_here_hold_for_signed_ones_too(zone_file, pando):  # noqa: F811
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": [{"key": KEY["name"]}],
                      "allow-transfer": LOCAL}], keys=[KEY]).start("example")
    secondary = make_secondary(pando, None, [primary.port], **{"allow-update": [{"address": "192.0.2.0/24"}]})
    secondary.start("example")
    # Who signs it is not known here, so it cannot be refused for what its signer may not do.
    with pytest.raises(dns.tsig.PeerBadKey):
        send(secondary, new_update())
    assert counters(secondary)["updates_forwarded"] == 0


def test_without_the_key_word_nothing_is_passed_on(zone_file, pando):  # noqa: F811
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": LOCAL, "allow-transfer": LOCAL}])
    primary.start("example")
    secondary = make_secondary(pando, None, [primary.port], **{"forward-updates": False, "allow-update": LOCAL})
    secondary.start("example")
    assert send(secondary, new_update(keyring=None)).rcode() == dns.rcode.REFUSED
    assert not primary.ask("new.example", "TXT").answer


def forwarded(server, what="forwarded_updates"):
    return sum(row["counters"][what] for row in server.workers().values())


def test_what_is_not_passed_on_does_not_reach_the_manager(zone_file, pando):  # noqa: F811
    """Anybody can send these, and as many as they like."""
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": LOCAL, "allow-transfer": LOCAL}])
    primary.start("example")
    secondary = make_secondary(pando, None, [primary.port], **{"forward-updates": False, "allow-update": LOCAL})
    secondary.start("example")
    other = dns.tsigkeyring.from_text({"nobodys": KEY["secret"]})
    for _ in range(20):
        for tcp in (False, True):
            assert send(secondary, new_update(keyring=None), tcp).rcode() == dns.rcode.REFUSED
        with pytest.raises(dns.tsig.PeerBadKey):
            send(secondary, new_update(keyring=other))
    assert forwarded(secondary) == 0
    assert "update_refused" not in secondary.log() and "request_not_verified" not in secondary.log()
    secondary.zones[0]["forward-updates"] = True
    secondary.write_config()
    secondary.control("reload")
    assert send(secondary, new_update(keyring=None)).rcode() == dns.rcode.NOERROR
    assert forwarded(secondary) == 1
    assert primary.ask("new.example", "TXT").answer
    secondary.zones[0].update({"allow-update": [{"address": "192.0.2.0/24"}]})
    secondary.write_config()
    secondary.control("reload")
    assert send(secondary, new_update(keyring=None)).rcode() == dns.rcode.REFUSED
    assert forwarded(secondary) == 1


def test_a_refusal_is_signed_with_a_key_that_is_known_here(tmp_path, zone_file, pando):  # noqa: F811
    """Also by a worker, which has keys that may not change anything, and the manager has the others."""
    primary = pando([{"name": "example", "file": str(zone_file), "allow-transfer": LOCAL}]).start("example")
    keys = [KEY, {**KEY, "name": "reader"}]
    zone = {"name": "example", "primaries": ["up"], "allow-transfer": [{"key": "reader"}]}
    path = tmp_path / "own.zone"
    path.write_text("@ 60 SOA ns admin 1 3600 600 86400 60\n@ 60 NS ns\nns 60 A 192.0.2.1\n")
    own = {"name": "own.test", "file": str(path), "allow-update": [{"key": KEY["name"]}]}  # the manager alone has it
    secondary = pando([zone, own], keys=keys, remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}])
    secondary.start("example")
    for key in keys:
        answer = send(secondary, new_update(keyring=dns.tsigkeyring.from_text({key["name"]: KEY["secret"]})))
        assert answer.rcode() == dns.rcode.REFUSED and answer.had_tsig, key
    assert forwarded(secondary) == 0


def test_the_next_primary_is_tried_and_without_any_it_is_servfail(zone_file, pando):  # noqa: F811
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": [{"key": KEY["name"]}],
                      "allow-transfer": LOCAL}], keys=[KEY]).start("example")
    secondary = make_secondary(pando, None, [servers.free_port(), primary.port]).start("example")
    assert send(secondary, new_update()).rcode() == dns.rcode.NOERROR
    primary.stop()
    answer = send(secondary, new_update("late"))
    assert answer.rcode() == dns.rcode.SERVFAIL and not answer.had_tsig
    assert counters(secondary)["updates_not_forwarded"] == 1


def test_an_update_goes_up_a_chain(zone_file, pando):  # noqa: F811
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": [{"key": KEY["name"]}],
                      "allow-transfer": LOCAL}], keys=[KEY]).start("example")
    first = pando([{"name": "example", "primaries": ["up"], "forward-updates": True, "allow-transfer": LOCAL}],
                  remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]).start("example")
    second = make_secondary(pando, None, [first.port]).start("example")
    assert send(second, new_update()).rcode() == dns.rcode.NOERROR
    assert primary.ask("new.example", "TXT").answer
