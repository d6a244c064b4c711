"""Odd RDATA of each type, in wire form: whatever BIND refuses in a message is refused here, too.

One such record in a zone keeps the whole zone from each secondary that BIND runs. The differences that are left are
decisions; docs/explanation/conformance.md has their reasons.
"""

import collections
import re

import dns.flags
import dns.message
import pytest

import odd_rdata
import servers
import wire
from test_odd_primaries import OddPrimary, has_serial, problem, soa, zone

TYPES = servers.SOURCE / "dns/types.cpp"
TEXT = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"
ZONE = (b"z", b"test")
# Records that BIND 9.18 takes and we do not: the type, and the number of ways in which its RDATA is so.
STRICTER = {
    "CLA": "unknown to 9.18", "IPN": "unknown to 9.18", "HTTPS": "newer keys", "SVCB": "newer keys",
    "SSHFP": "no fingerprint at all", "UNSPEC": "no data at all",
    "DNSKEY": "private algorithm without its OID", "CDNSKEY": "private algorithm without its OID",
    "KEY": "private algorithm without its OID", "RKEY": "private algorithm without its OID",
    "RRSIG": "private algorithm without its name", "SIG": "private algorithm without its name",
    "IPSECKEY": "compressed names, which RFC 3597 §4 forbids",
}
# Types without a place in a zone, or beside all others at a name.
NOT_IN_ZONES = {"OPT", "SOA"}
# Types whose names may come compressed.
EXPANDED = {*wire.LAYOUTS, 30}
# Records that BIND takes in a message and not in a zone.
NOT_FOR_BIND = {"MD", "MF"}


def numbers():
    rows = TYPES.read_text().partition("kTypes[]")[2].partition("};")[0]
    return {name: int(number) for name, number in re.findall(r'\{"([A-Z0-9-]+)",\s+(\d+)\}', rows)}


@pytest.fixture(scope="module")
def records():
    found = odd_rdata.odd(numbers())
    assert len(found) > 40_000
    return found


@pytest.fixture(scope="module")
def opinions(records, tmp_path_factory):
    """Whether BIND takes each record, and whether we do."""
    folder = tmp_path_factory.mktemp("odd")
    (folder / "zone").write_text(TEXT)
    bind = servers.Bind(folder / "bind", {"z.test": f'type primary; file "{folder}/zone"; allow-update {{ any; }};'})
    ours = servers.Pando(folder / "pando", [{"name": "z.test", "file": str(folder / "zone"),
                                             "allow-update": [{"address": "127.0.0.0/8"}]}])
    try:
        return [odd_rdata.opinions(server.start("z.test").port, ZONE, records) for server in (bind, ours)]
    finally:
        bind.stop()
        ours.clean()


def test_whatever_bind_refuses_is_refused(records, opinions):
    theirs, ours = opinions
    names = {number: name for name, number in numbers().items()}
    looser = collections.defaultdict(list)
    stricter = collections.defaultdict(list)
    for one in records:
        bind_takes, we_take = (opinion[one] not in (odd_rdata.FORMERR, odd_rdata.SERVFAIL) for opinion in (theirs, ours))
        name = names.get(one[0], f"TYPE{one[0]}")
        if we_take and not bind_takes:
            looser[name].append(one[1].hex())
        if bind_takes and not we_take:
            stricter[name].append(one[1].hex())
    assert not looser, {name: found[:5] for name, found in looser.items()}
    assert set(stricter) == set(STRICTER), {name: found[:5] for name, found in stricter.items() if name not in STRICTER}


def test_bind_transfers_each_odd_record_that_we_serve(records, opinions, tmp_path, pando, peers):
    """All in one zone: a single one that BIND refuses would keep the zone from it."""
    _, ours = opinions
    names = {number: name for name, number in numbers().items()}
    lines = []
    for rrtype, octets in records:
        name = names.get(rrtype, "")
        if ours[rrtype, octets] in (odd_rdata.FORMERR, odd_rdata.SERVFAIL) or name in NOT_IN_ZONES | NOT_FOR_BIND:
            continue
        if rrtype in EXPANDED and max(octets, default=0) >= 0xC0:
            continue  # may be a pointer into the message
        owner = f"{len(lines):032}" if name == "NSEC3" else f"o{len(lines)}"
        lines.append(f"{owner} TYPE{rrtype} \\# {len(octets)} {octets.hex()}\n")
    assert len(lines) > 20_000
    path = tmp_path / "zone"
    path.write_text(TEXT + "".join(lines))
    server = pando([{"name": "z.test", "file": str(path), "allow-transfer": [{"address": "127.0.0.0/8"}]}])
    server.start("z.test")
    bind = peers(servers.Bind(tmp_path / "bind", {
        "z.test": f"type secondary; file \"copy\"; primaries {{ 127.0.0.1 port {server.port}; }};"}))
    servers.wait_until("BIND has the zone", lambda: bind.serial("z.test") == 1, 120)
    assert f"({len(lines) + 4} records" in bind.log() or f", {len(lines) + 4} records" in bind.log(), bind.log()


SSHFP = {44: [b"\1\1\xab\xcd", b"\4\2\xab\xcd"]}


@pytest.mark.parametrize("octets", SSHFP[44])
def test_an_update_with_such_a_record_is_a_format_error(octets, tmp_path, pando):
    path = tmp_path / "zone"
    path.write_text(TEXT)
    server = pando([{"name": "z.test", "file": str(path), "allow-update": [{"address": "127.0.0.0/8"}]}]).start("z.test")
    assert odd_rdata.opinions(server.port, ZONE, [(44, octets)]) == {(44, octets): odd_rdata.FORMERR}


def test_a_transfer_with_such_a_record_changes_nothing(pando):
    """The version before is served, the reason is told, and the next version heals it."""
    primary = OddPrimary()
    bad = [False]

    def answer(query, rdtype):
        if rdtype != "AXFR" or not bad[0]:
            return primary.honest(query, rdtype)
        response = dns.message.make_response(query)
        response.use_edns(-1)
        response.flags |= dns.flags.AA
        octets = response.to_wire()
        body, count = b"", 0
        for rrset in zone(primary.serial):
            for rdata in rrset:
                body += record(rrset.name.to_wire(), rrset.rdtype, rdata.to_wire())
                count += 1
                if rdata.rdtype == 2:
                    body += record(rrset.name.to_wire(), 44, SSHFP[44][1])
                    count += 1
        return [octets[:6] + bytes((count >> 8, count & 255, 0, 0, 0, 0)) + octets[12:] + body]

    primary.answer = answer
    server = pando([{"name": "example", "primaries": ["odd"]}],
                   remotes=[{"name": "odd", "address": [f"127.0.0.1@{primary.port}"]}], limits="{refresh: [1s, 4weeks]}")
    try:
        server.start("example")
        has_serial(server, 1)
        bad[0] = True
        primary.serial = 2
        servers.wait_until("the reason is told", lambda: "fingerprint" in problem(server))
        assert server.serial("example") == 1
        bad[0] = False
        has_serial(server, 2)
    finally:
        primary.close()


def record(owner, rrtype, octets):
    return owner + rrtype.to_bytes(2, "big") + b"\0\1\0\0\1\x2c" + len(octets).to_bytes(2, "big") + octets


def test_a_zone_that_has_such_a_record_already_is_served_after_a_restart(tmp_path, pando):
    """An earlier version took it. The store in memory is changed while no manager runs, so that it has such a record."""
    path = tmp_path / "zone"
    path.write_text(TEXT + "host SSHFP 4 9 c0ffee11c0ffee22c0ffee33\n")
    server = pando([{"name": "z.test", "file": str(path), "allow-transfer": [{"address": "127.0.0.0/8"}]}]).start("z.test")
    server.kill()
    store = server.store / "zones.store"
    octets = store.read_bytes()
    before, after = (bytes.fromhex(f"04{kind}c0ffee11c0ffee22c0ffee33") for kind in ("09", "02"))
    assert octets.count(before) == 1
    with open(store, "r+b") as file:
        file.seek(octets.index(before))
        file.write(after)
    server.start("z.test")
    assert server.ask("host.z.test", "SSHFP").answer[0][0].to_text() == "4 2 c0ffee11c0ffee22c0ffee33"
    assert server.control("store", "check")["faults"] == []
    dump = tmp_path / "dump"
    server.control("store", "dump", str(dump))
    server.lose_memory()
    server.control("store", "load", str(dump))
    server.start("z.test")
    assert server.ask("host.z.test", "SSHFP").answer[0][0].to_text() == "4 2 c0ffee11c0ffee22c0ffee33", "of the dump"
    assert server.control("store", "check")["faults"] == []
