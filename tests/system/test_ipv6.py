"""Transfers and NOTIFY over IPv6 loopback."""

import socket

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns AAAA 2001:db8::1\n"
ABSENT = "2001:db8::53"  # nobody's: RFC 3849


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback")


def listen_on_both(instance):
    text = instance.config.read_text()
    both = f'listen: [127.0.0.1@{instance.port}, "::1@{instance.port}"]'
    instance.config.write_text(text.replace(f"listen: [127.0.0.1@{instance.port}]", both))
    return instance


@pytest.fixture
def pair(tmp_path, pando):
    """A primary that serves ::1 only, and its secondary, not started."""
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    port = servers.free_port()
    primary = listen_on_both(pando(
        [{"name": "example", "file": str(path), "allow-transfer": [{"address": "::1"}], "notify": ["copy"],
          "allow-update": [{"address": "::1"}]}],
        remotes=[{"name": "copy", "address": [f"::1@{port}"]}], extra='  transfer-source: "::1"'))
    secondary = listen_on_both(pando(
        [{"name": "example", "primaries": ["up"]}], port=port,
        remotes=[{"name": "up", "address": [f"::1@{primary.port}"]}], extra='  transfer-source: "::1"'))
    return primary.start("example"), secondary


def test_transfers_and_notifies_come_from_the_ipv6_source(pair):
    primary, secondary = pair
    secondary.start("example")
    update = dns.update.Update("example")
    update.add("new", 60, "AAAA", "2001:db8::2")
    assert dns.query.udp(update, "::1", port=primary.port, timeout=20).rcode() == dns.rcode.NOERROR
    servers.wait_until("the NOTIFY has led to a transfer", lambda: secondary.serial("example") == 2)
    assert secondary.ask("new.example", "AAAA").answer


def test_an_ipv6_source_that_is_not_here_is_not_replaced_by_another(pair):
    primary, secondary = pair
    own = secondary.config.read_text()
    secondary.config.write_text(own.replace('transfer-source: "::1"', f'transfer-source: "{ABSENT}"'))
    secondary.start()
    servers.wait_until("the failure is told", lambda: "refresh_failed" in secondary.log())
    assert secondary.ask("example", "SOA").rcode() == dns.rcode.SERVFAIL
    secondary.config.write_text(own)
    secondary.control("reload")
    servers.wait_until("the zone has come", lambda: secondary.serial("example") == 1, seconds=120)
    assert primary.serial("example") == 1


def test_an_ipv6_source_is_not_for_remotes_of_ipv4(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    primary = pando([{"name": "example", "file": str(path), "allow-transfer": [{"address": "127.0.0.1"}]}])
    primary.start("example")
    secondary = pando([{"name": "example", "primaries": ["up"]}],
                      remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}],
                      extra='  transfer-source: "::1"')
    assert secondary.start("example").serial("example") == 1
