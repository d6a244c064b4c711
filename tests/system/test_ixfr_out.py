"""Zones going out as differences (RFC 1995), from the history that the store keeps."""

import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.rrset
import dns.tsigkeyring
import dns.update
import dns.versioned
import dns.xfr
import pytest

import servers

KEY = {"name": "transfer-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})
LOCAL = [{"address": "127.0.0.0/8"}]
HEAD = "$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 1 1 1209600 300\n@ NS ns\nns A 192.0.2.1\n"
BODY = "".join(f"h{number} A 192.0.2.{number % 250}\nh{number} TXT \"number {number}\"\n" for number in range(500))


@pytest.fixture
def primary(tmp_path, pando):
    def start(limits="", workers=2, transfer=LOCAL, **options):
        path = tmp_path / "example.zone"
        path.write_text(HEAD + BODY)
        zone = {"name": "example", "file": str(path), "allow-update": LOCAL, "allow-transfer": transfer, **options}
        server = pando([zone], keys=[KEY], limits=limits, workers=workers)
        server.start("example")
        return server
    return start


def change(server, *, add=(), delete=()):
    update = dns.update.UpdateMessage("example")
    for owner, rdtype in delete:
        update.delete(owner, rdtype)
    for owner, ttl, rdtype, text in add:
        update.add(owner, ttl, rdtype, text)
    assert dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=20).rcode() == dns.rcode.NOERROR


def changes(server, count, start=0):
    """Of several kinds: sets that grow, shrink, go, take another TTL, mixed case, a wildcard."""
    for number in range(start, start + count):
        change(server, add=[(f"New{number}", 60 + number % 3, "A", f"192.0.2.{number % 250}"),
                            ("same", 60 + number, "A", "192.0.2.7"), ("*.wild", 60, "TXT", f'"{number}"')],
               delete=[(f"h{number}", "TXT"), (f"new{number - 5}", "A")])


class Copy:
    """What a secondary has, brought up to date by IXFR."""

    def __init__(self, server, **options):
        self.server, self.zone = server, dns.versioned.Zone("example.")
        query, _ = dns.xfr.make_query(self.zone, **options)
        dns.query.inbound_xfr("127.0.0.1", self.zone, query, port=server.port, lifetime=60)

    def follow(self, **options):
        query, _ = dns.xfr.make_query(self.zone, **options)
        assert query.question[0].rdtype == dns.rdatatype.IXFR
        dns.query.inbound_xfr("127.0.0.1", self.zone, query, port=self.server.port, lifetime=60)

    def lines(self):
        return sorted(f"{name.derelativize(self.zone.origin)} {ttl} {rdata}".lower()
                      for name, ttl, rdata in self.zone.iterate_rdatas())


def sent(server):
    """Transfers out of the log: (kind, complete, records)."""
    found = []
    for line in (server.folder / "log").read_text().splitlines():
        if "transfer_out" in line:
            fields = dict(word.split("=", 1) for word in line.split() if "=" in word)
            found.append((fields["kind"], fields["complete"], int(fields["records"])))
    return found


def ixfr(server, serial, tcp, payload=None):
    query = dns.message.make_query("example", "IXFR", use_edns=0 if payload else -1, payload=payload)
    query.authority.append(dns.rrset.from_text("example.", 0, "IN", "SOA", f". . {serial} 0 0 0 0"))
    return (dns.query.tcp if tcp else dns.query.udp)(query, "127.0.0.1", port=server.port, timeout=20, one_rr_per_rrset=True)


@pytest.mark.parametrize("signed", [False, True])
def test_every_old_version_is_led_to_the_present_one(primary, signed):
    server = primary(transfer=[{"key": KEY["name"]}] if signed else LOCAL)
    options = {"keyring": KEYRING} if signed else {}
    copies = []
    for batch in range(6):
        copies.append(Copy(server, **options))
        changes(server, 7, batch * 7)
    wanted = Copy(server, **options)
    for copy in copies:
        copy.follow(**options)
        assert copy.lines() == wanted.lines()
    servers.wait_until("the log has all", lambda: len(sent(server)) == 13)
    kinds = [kind for kind, _, _ in sent(server)]
    assert kinds == ["axfr"] * 7 + ["ixfr"] * 6
    assert all(complete == "true" for _, complete, _ in sent(server))


def test_history_outlives_workers_and_managers(primary):
    server = primary()
    copy = Copy(server)
    changes(server, 5)
    server.kill()
    server.start("example")
    changes(server, 5, 5)
    server.control("worker", "remove")
    copy.follow()
    assert copy.lines() == Copy(server).lines()
    servers.wait_until("the log has it", lambda: [kind for kind, _, _ in sent(server)].count("ixfr") == 1)


def test_an_edited_file_goes_out_as_a_difference(primary, tmp_path):
    server = primary()
    copy = Copy(server)
    path = tmp_path / "example.zone"
    path.write_text(path.read_text().replace("admin 1 ", "admin 2 ").replace("h7 A 192.0.2.7", "h7 A 192.0.2.70") + "added A 192.0.2.99\n")
    server.control("reload")
    servers.wait_until("the edit is served", lambda: server.serial("example") == 2)
    copy.follow()
    assert copy.lines() == Copy(server).lines()
    servers.wait_until("the log has it", lambda: ("ixfr", "true", 7) in sent(server))


def test_whole_zone_when_the_history_is_too_short(primary):
    server = primary(limits="{history: 4KiB}")
    old = Copy(server)
    changes(server, 60)
    recent = Copy(server)
    changes(server, 1, 60)
    old.follow()
    recent.follow()
    assert old.lines() == recent.lines() == Copy(server).lines()
    servers.wait_until("the log has all", lambda: len(sent(server)) == 5)
    assert [kind for kind, _, _ in sent(server)] == ["axfr", "axfr", "axfr", "ixfr", "axfr"]
    status = server.control("zone", "status", "example")
    assert 0 < status["history"] <= 4096
    assert server.control("status")["store"]["history"] == status["history"]


def test_whole_zone_without_history_or_when_the_differences_are_larger(primary):
    server = primary()
    old = Copy(server)
    for turn in range(4):
        change(server, add=[(f"many{number}", 60, "A", "192.0.2.1") for number in range(300)])
        change(server, delete=[(f"many{number}", "A") for number in range(300)])
    old.follow()
    servers.wait_until("the log has all", lambda: len(sent(server)) == 2)
    assert [kind for kind, _, _ in sent(server)] == ["axfr", "axfr"]


def test_over_udp_the_differences_or_the_soa(primary):
    server = primary()
    changes(server, 1)
    answer = ixfr(server, 1, tcp=False).answer
    texts = [rrset.to_text() for rrset in answer]
    assert len(texts) >= 3 and all(" SOA " in texts[place] for place in (0, -1))
    assert [rdata.serial for rdata in answer[0]] == [2]
    changes(server, 40, 1)
    answer = ixfr(server, 1, tcp=False, payload=1232).answer
    assert [rrset.rdtype for rrset in answer] == [dns.rdatatype.SOA] and answer[0][0].serial == 42
    assert [rrset.rdtype for rrset in ixfr(server, 42, tcp=False).answer] == [dns.rdatatype.SOA]
    assert [rrset.rdtype for rrset in ixfr(server, 43, tcp=True).answer] == [dns.rdatatype.SOA], "ahead of ours"


@pytest.mark.parametrize("peer", ["bind", "nsd", "knot"])
def test_peers_follow_by_ixfr(primary, tmp_path, peers, peer):
    server = primary()
    if peer == "bind":
        secondary = servers.Bind(tmp_path / "bind", {"example": (
            f'type secondary; file "{tmp_path}/copy"; primaries {{ 127.0.0.1 port {server.port}; }}; '
            'masterfile-format text; max-refresh-time 1; min-refresh-time 1; allow-transfer { any; };')})
    elif peer == "nsd":
        secondary = servers.Nsd(tmp_path / "nsd", {"example": tmp_path / "copy"}, zone_options=(
            f"  request-xfr: 127.0.0.1@{server.port} NOKEY\n  allow-notify: 127.0.0.1 NOKEY\n"
            "  provide-xfr: 127.0.0.1 NOKEY\n  min-refresh-time: 1\n  max-refresh-time: 1\n"))
    else:
        secondary = servers.Knot(
            tmp_path / "knot", {"example": tmp_path / "copy"},
            text=(f"remote:\n  - id: up\n    address: 127.0.0.1@{server.port}\n"
                  "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n"),
            zone_options={"example": "    master: up\n    acl: all\n    refresh-min-interval: 2\n    refresh-max-interval: 2\n"})
    peers(secondary, "example")
    for turn in range(3):
        changes(server, 20, turn * 20)
        servers.wait_until("the peer has the serial", lambda: secondary.serial("example") == server.serial("example"), 60)
    assert secondary.records("example") == server.records("example")
    kinds = [kind for kind, complete, _ in sent(server) if complete == "true"]
    assert kinds.count("ixfr") >= 2, kinds


def test_pando_follows_pando_by_ixfr(primary, pando):
    server = primary()
    secondary = pando([{"name": "example", "primaries": ["up"], "allow-transfer": LOCAL}],
                      remotes=[{"name": "up", "address": [f"127.0.0.1@{server.port}"]}])
    secondary.start("example")
    copy = Copy(secondary)
    changes(server, 50)
    servers.wait_until("the serial has come", lambda: secondary.serial("example") == server.serial("example"), 60)
    counters = secondary.control("status")["counters"]
    assert counters["transfers_in_ixfr"] >= 1 and counters["transfers_in_fallbacks"] == 0, counters
    copy.follow()
    assert copy.lines() == Copy(secondary).lines() == Copy(server).lines()
    servers.wait_until("it is handed on as it came", lambda: "ixfr" in [kind for kind, _, _ in sent(secondary)])


def test_a_zone_that_comes_whole_is_handed_on_as_a_difference(tmp_path, pando, peers):
    path = tmp_path / "bind.zone"
    path.write_text(HEAD + BODY)
    bind = servers.Bind(tmp_path / "bind", {"example": (
        f'type primary; file "{path}"; allow-update {{ any; }}; allow-transfer {{ any; }};')}, options="provide-ixfr no;")
    peers(bind, "example")
    secondary = pando([{"name": "example", "primaries": ["up"], "allow-transfer": LOCAL}],
                      remotes=[{"name": "up", "address": [f"127.0.0.1@{bind.port}"]}])
    secondary.start("example")
    copy = Copy(secondary)
    changes(bind, 10)
    servers.wait_until("the serial has come", lambda: secondary.serial("example") == bind.serial("example"), 60)
    assert secondary.records("example") == bind.records("example")
    copy.follow()
    assert copy.lines() == Copy(secondary).lines()
    servers.wait_until("the log has all", lambda: len(sent(secondary)) >= 4)
    assert "ixfr" in [kind for kind, _, _ in sent(secondary)]
    counters = secondary.control("status")["counters"]
    assert counters["transfers_in_ixfr"] == 0, counters
    change(bind, add=[(f"much{number}", 60, "A", "192.0.2.1") for number in range(700)])  # more than half
    servers.wait_until("the serial has come", lambda: secondary.serial("example") == bind.serial("example"), 60)
    assert secondary.records("example") == bind.records("example")
    copy.follow()
    assert copy.lines() == Copy(secondary).lines()
    secondary.stop()
    secondary.start("example")
    assert secondary.records("example") == bind.records("example")
