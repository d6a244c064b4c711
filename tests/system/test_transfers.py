"""Zones coming in from real primaries and going out to real secondaries."""

import shutil
import subprocess

import dns.message
import dns.tsigkeyring
import dns.update
import pytest

import servers
from streams import Stream, framed

KEY = {"name": "transfer-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})
BIND_KEY = f'key "{KEY["name"]}" {{ algorithm {KEY["algorithm"]}; secret "{KEY["secret"]}"; }};'

ZONE = """$ORIGIN example.
$TTL 300
@ SOA ns admin 1 3600 5 1209600 300
@ NS ns
ns A 192.0.2.1
www A 192.0.2.10
*.wild TXT "any name"
alias CNAME www
"""


@pytest.fixture
def zone_file(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    return path


def nsupdate(port, lines, key=KEY):
    text = f"server 127.0.0.1 {port}\nkey {key['algorithm']}:{key['name']} {key['secret']}\n" + lines
    done = subprocess.run(["nsupdate"], input=text, text=True, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr


def bind_primary(tmp_path, zone_file, secondary_port):
    return servers.Bind(
        tmp_path / "bind",
        {"example": f'type primary; file "{zone_file}"; allow-update {{ key {KEY["name"]}; }}; '
                    f'allow-transfer {{ key {KEY["name"]}; }}; notify explicit; notify-delay 0; '
                    f'also-notify {{ 127.0.0.1 port {secondary_port} key {KEY["name"]}; }};'},
        keys=BIND_KEY, options="startup-notify-rate 1000; notify-rate 1000;")


def secondary_zone():
    return {"name": "example", "primaries": ["upstream"], "allow-transfer": [{"address": "127.0.0.0/8"}]}


def test_a_thousand_changes_arrive_from_bind_by_notify_and_ixfr(tmp_path, zone_file, pando, peers):
    port = servers.free_port()
    bind = bind_primary(tmp_path, zone_file, port)
    peers(bind, "example")
    secondary = pando([secondary_zone()], port=port, keys=[KEY],
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{bind.port}"], "key": KEY["name"]}])
    secondary.start("example")
    for batch in range(20):
        lines = "zone example\n"
        for i in range(50):
            number = batch * 50 + i
            lines += f"update add host{number}.example 60 A 192.0.2.{number % 250}\n"
            if number % 3 == 0 and number > 10:
                lines += f"update delete host{number - 10}.example A\n"
            lines += "send\n"
        nsupdate(bind.port, lines)
    servers.wait_until("the secondary has the primary's serial",
                       lambda: secondary.serial("example") == bind.serial("example"), 60)
    assert secondary.records("example") == bind.records("example", KEYRING)
    counters = secondary.control("status")["counters"]
    assert counters["transfers_in_ixfr"] >= 1, counters
    assert counters["transfers_in_fallbacks"] == 0, counters


def test_wrong_key_brings_no_zone_and_says_why(tmp_path, zone_file, pando, peers):
    bind = bind_primary(tmp_path, zone_file, servers.free_port())
    peers(bind, "example")
    wrong = dict(KEY, secret="d3Jvbmc=")
    secondary = pando([secondary_zone()], keys=[wrong],
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{bind.port}"], "key": KEY["name"]}])
    secondary.start()
    servers.wait_until("the reason is told", lambda: secondary.control("zone", "status", "example").get("problem"))
    assert secondary.ask("www.example").rcode() == 2, "a zone without data is SERVFAIL"


@pytest.mark.parametrize("peer", ["nsd", "knot"])
def test_whole_zone_from_a_file_serving_primary(tmp_path, zone_file, pando, peers, peer):
    if peer == "nsd":
        primary = servers.Nsd(tmp_path / "nsd", {"example": zone_file},
                              zone_options="  provide-xfr: 127.0.0.1 NOKEY\n")
    else:
        primary = servers.Knot(tmp_path / "knot", {"example": zone_file},
                               text="acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n",
                               zone_options={"example": "    acl: all\n"})
    peers(primary, "example")
    secondary = pando([secondary_zone()],
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}])
    secondary.start("example")
    assert secondary.records("example") == primary.records("example")


def test_second_primary_is_asked_when_the_first_is_away(tmp_path, zone_file, pando, peers):
    primary = servers.Nsd(tmp_path / "nsd", {"example": zone_file},
                          zone_options="  provide-xfr: 127.0.0.1 NOKEY\n")
    peers(primary, "example")
    secondary = pando([secondary_zone()],
                      remotes=[{"name": "upstream",
                                "address": [f"127.0.0.1@{servers.free_port()}", f"127.0.0.1@{primary.port}"]}])
    secondary.start("example")


def test_secondary_serves_at_once_after_a_restart_without_its_primary(tmp_path, zone_file, pando, peers):
    primary = servers.Nsd(tmp_path / "nsd", {"example": zone_file},
                          zone_options="  provide-xfr: 127.0.0.1 NOKEY\n")
    peers(primary, "example")
    secondary = pando([secondary_zone()],
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}])
    secondary.start("example")
    before = secondary.records("example")
    secondary.stop()
    primary.stop()
    secondary.start("example")
    assert secondary.records("example") == before


def test_bind_as_secondary_follows_updates(tmp_path, zone_file, pando, peers):
    update = {"name": "example", "file": str(zone_file), "allow-update": [{"key": KEY["name"]}],
              "allow-transfer": [{"key": KEY["name"]}]}
    primary = pando([update], keys=[KEY])
    primary.start("example")
    bind = servers.Bind(tmp_path / "bind",
                        {"example": f'type secondary; file "{tmp_path}/copy"; '
                                    f'primaries {{ 127.0.0.1 port {primary.port} key {KEY["name"]}; }}; '
                                    'masterfile-format text; max-refresh-time 1; min-refresh-time 1;'},
                        keys=BIND_KEY)
    peers(bind, "example")
    nsupdate(primary.port, "zone example\nupdate add new.example 60 TXT \"from pando\"\nsend\n")
    servers.wait_until("bind has the new record", lambda: bind.ask("new.example", "TXT").answer, 60)


def test_transfer_needs_permission(tmp_path, zone_file, pando):
    primary = pando([{"name": "example", "file": str(zone_file), "allow-transfer": [{"key": KEY["name"]}]}],
                    keys=[KEY])
    primary.start("example")
    assert primary.ask("example", "AXFR", tcp=True).rcode() == 5
    assert len(primary.records("example", KEYRING)) == 6


def test_a_copy_on_disk_and_the_journal_bring_a_zone_back_without_its_primary(tmp_path, zone_file, pando, peers):
    port = servers.free_port()
    bind = bind_primary(tmp_path, zone_file, port)
    peers(bind, "example")
    copy = tmp_path / "copies" / "example.zone"
    secondary = pando([dict(secondary_zone(), file=str(copy))], port=port, keys=[KEY],
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{bind.port}"], "key": KEY["name"]}])
    secondary.start("example")
    servers.wait_until("the copy is there", copy.exists)
    checked = subprocess.run(["named-checkzone", "example", str(copy)], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    first_serial = secondary.serial("example")
    nsupdate(bind.port, "zone example\nupdate add late.example 60 A 192.0.2.99\nupdate delete www.example\nsend\n")
    servers.wait_until("the change has come", lambda: secondary.serial("example") != first_serial)
    records = secondary.records("example")
    assert records == bind.records("example", KEYRING)
    bind.stop()
    secondary.stop()
    shutil.rmtree(secondary.store)  # as a restart of the host does
    secondary.start("example")
    assert secondary.records("example") == records
    assert secondary.ask("late.example").rcode() == 0


def test_aborted_transfers_give_their_places_at_the_signer_back(tmp_path, zone_file, pando):
    """The manager signs for keys that may update; it keeps the signing state of at most 128 streams per worker."""
    text = " ".join(["x" * 200] * 100)
    zone_file.write_text(zone_file.read_text() + "".join(f"big{n} TXT {text}\n" for n in range(300)))
    primary = pando([{"name": "example", "file": str(zone_file), "allow-update": [{"key": KEY["name"]}],
                      "allow-transfer": [{"key": KEY["name"]}]}], keys=[KEY], workers=1)
    primary.start("example")
    for _ in range(130):
        request = dns.message.make_query("example", "AXFR")
        request.use_tsig(KEYRING, KEY["name"])
        with Stream(primary.port, 60, receive_buffer=4096) as client:
            client.send(framed(request.to_wire()))
            assert client.receive() is not None, "a transfer that begins"
    assert len(primary.records("example", KEYRING)) == 306
