"""Signed zones by the PowerDNS API: what panels read of keys, and how a zone is signed."""

import base64
import subprocess

import dns.dnssec
import dns.name

import servers
from test_api_write import WRITE, ZONES, Client
from test_api_zones import ADMIN, KEYS, PANEL, new_zone
from test_http import beside  # noqa: F401: a fixture

OWN = "a.customers.test."


def wait_for_keys(client, zone):
    def found():
        return client("GET", f"{ZONES}/{zone}/cryptokeys")[1]
    servers.wait_until("the zone has its key", found)
    return found()


def key_files(server, zone):
    return list((server.folder / server.journal / "dnssec" / zone.rstrip(".")).glob("*.pem"))


def test_a_new_zone_is_signed_and_tells_its_key(beside):
    server, program = beside(section=KEYS)
    client = Client(program, PANEL)
    status, made = client("POST", ZONES, new_zone(OWN, dnssec=True))
    assert status == 201 and made["dnssec"] and not made["presigned"], made
    key, = wait_for_keys(client, OWN)
    shown = server.ask(OWN, "DNSKEY", tcp=True).answer[0][0]
    assert (key["type"], key["keytype"], key["active"], key["published"]) == ("Cryptokey", "csk", True, True)
    assert (key["flags"], key["algorithm"], key["bits"]) == (257, "ECDSAP256SHA256", 256)
    assert key["dnskey"].split()[3] == base64.b64encode(shown.key).decode()
    wanted = [dns.dnssec.make_ds(dns.name.from_text(OWN), shown, digest).to_text() for digest in ("SHA256", "SHA384")]
    assert [ds.lower() for ds in key["ds"]] == wanted
    assert client("GET", f"{ZONES}/{OWN}/cryptokeys/{key['id']}") == (200, key)
    assert client("GET", f"{ZONES}/{OWN}/cryptokeys/7")[0] == 404
    zone = client("GET", f"{ZONES}/{OWN}")[1]
    assert zone["dnssec"] and not zone["presigned"]
    secret = "".join(key_files(server, OWN)[0].read_text().split("-----")[2].split())
    for path in ("", "/cryptokeys", f"/cryptokeys/{key['id']}", "/export"):
        text = str(client("GET", f"{ZONES}/{OWN}{path}")[1])
        assert secret[40:80] not in text and "privatekey" not in text.lower()


def test_keys_are_changed_by_the_operator_alone(beside):
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    assert client("POST", ZONES, new_zone(OWN, dnssec=True))[0] == 201
    key, = wait_for_keys(client, OWN)
    before = key_files(server, OWN)[0].read_text()
    for method, path, content in (("POST", "", {"keytype": "ksk", "active": True}), ("DELETE", f"/{key['id']}", None),
                                  ("PUT", f"/{key['id']}", {"active": False})):
        status, answer = client(method, f"{ZONES}/{OWN}/cryptokeys{path}", content)
        assert status == 422 and "'dnssec': true" in answer["error"], answer
    status, answer = client("PUT", f"{ZONES}/{OWN}", {"dnssec": False})
    assert status == 422 and "pandoctl dnssec unsign" in answer["error"], answer
    assert client("PUT", f"{ZONES}/{OWN}", {"dnssec": True})[0] == 204
    assert [path.read_text() for path in key_files(server, OWN)] == [before]


def test_panels_switch_signing_on_by_a_key(beside):
    server, program = beside(section=KEYS)
    client = Client(program, PANEL)
    assert client("POST", ZONES, new_zone(OWN))[0] == 201
    wanted = {"keytype": "csk", "active": True, "published": True, "algorithm": "ecdsa256", "bits": 256}
    assert Client(program, WRITE)("POST", f"{ZONES}/{OWN}/cryptokeys", wanted)[0] == 403
    for other in ({"keytype": "zsk"}, {"active": False}, {"algorithm": "rsasha256"}, {"privatekey": "x"}):
        status, answer = client("POST", f"{ZONES}/{OWN}/cryptokeys", wanted | other)
        assert status == 422 and answer["error"], answer
    assert not key_files(server, OWN) and client("GET", f"{ZONES}/{OWN}")[1]["dnssec"] is False
    status, key = client("POST", f"{ZONES}/{OWN}/cryptokeys", wanted)
    assert status == 201 and key in client("GET", f"{ZONES}/{OWN}/cryptokeys")[1], key
    shown = server.ask(OWN, "DNSKEY", tcp=True).answer[0][0]
    assert key["dnskey"].split()[3] == base64.b64encode(shown.key).decode() and "privatekey" not in key
    assert client("POST", f"{ZONES}/{OWN}/cryptokeys", wanted)[0] == 422, "it has its key"
    status, answer = Client(program, ADMIN)("POST", f"{ZONES}/example.test./cryptokeys", wanted)
    assert status == 422 and "configuration" in answer["error"], answer
    assert len(key_files(server, OWN)) == 1 and not key_files(server, "example.test")


def test_a_zone_that_is_there_is_signed(beside):
    server, program = beside(section=KEYS)
    client = Client(program, PANEL)
    assert client("POST", ZONES, new_zone(OWN))[0] == 201
    assert client("GET", f"{ZONES}/{OWN}")[1]["dnssec"] is False
    assert client("GET", f"{ZONES}/{OWN}/cryptokeys") == (200, [])
    assert client("PUT", f"{ZONES}/{OWN}", {"dnssec": False})[0] == 204, "as it is"
    assert Client(program, WRITE)("PUT", f"{ZONES}/{OWN}", {"dnssec": True})[0] == 403
    assert client("PUT", f"{ZONES}/{OWN}", {"dnssec": True}) == (204, "")
    assert client("GET", f"{ZONES}/{OWN}")[1]["dnssec"], "a panel shows what it has asked for"
    wait_for_keys(client, OWN)
    servers.wait_until("it is signed", lambda: "RRSIG" in str(server.ask(f"ns1.{OWN}", want_dnssec=True).answer))
    server.kill()
    server.start(OWN)
    servers.wait_until("it stays so", lambda: "RRSIG" in str(server.ask(f"ns1.{OWN}", want_dnssec=True).answer))
    status, answer = Client(program, ADMIN)("PUT", f"{ZONES}/example.test.", {"dnssec": True})
    assert status == 422 and "configuration" in answer["error"], answer
    assert not key_files(server, "example.test")


def test_a_zone_that_others_sign_has_no_keys_here(beside, tmp_path):
    server, program = beside(section=KEYS)
    plain = tmp_path / "plain"
    plain.write_text(f"$ORIGIN {OWN}\n@ 60 SOA ns1 admin 1 60 60 60 60\n@ 60 NS ns1\nns1 60 A 192.0.2.1\n")
    pandoctl = str(servers.build_folder() / "pandoctl")
    key = subprocess.run([pandoctl, "dnssec", "key", "make", OWN, "--folder", str(tmp_path)], capture_output=True, text=True,
                         check=True).stdout.strip()
    text = subprocess.run([pandoctl, "zone", "sign", str(plain), "--key", key], capture_output=True, text=True, check=True).stdout
    client = Client(program, PANEL)
    status, made = client("POST", ZONES, {"name": OWN, "kind": "Native", "zone": text})
    assert status == 201 and made["dnssec"] and made["presigned"], made
    assert client("GET", f"{ZONES}/{OWN}/cryptokeys") == (200, [])
    before = server.ask(OWN, "DNSKEY", tcp=True).answer
    for wanted in (True, False):
        assert client("PUT", f"{ZONES}/{OWN}", {"dnssec": wanted})[0] == 204
    assert server.ask(OWN, "DNSKEY", tcp=True).answer == before and not key_files(server, OWN)
    status, answer = client("POST", ZONES, {"name": f"b.{OWN[2:]}", "kind": "Slave", "masters": ["192.0.2.1"], "dnssec": True})
    assert status == 422 and "Slave" in answer["error"], answer
