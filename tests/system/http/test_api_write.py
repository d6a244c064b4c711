"""The writing part of the PowerDNS API: a PATCH is one durable version of the zone, or an error that changes nothing."""

import contextlib
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import tempfile
import threading
import time

import pytest

import servers
from test_http import READ, ZONE, Http, beside, ordinary_user  # noqa: F401: a fixture

ZONES = "/api/v1/servers/localhost/zones"
WRITE, TENANT = "write-secret-of-a-test", "tenant-secret-of-a-test"
KEYS = (f"keys: [{{name: reader, secret: {READ}}}, {{name: writer, secret: {WRITE}, role: write}}, "
        f"{{name: tenant, secret: {TENANT}, role: write, zones: [own.test, '*.own.test']}}]")


class Client:
    """A client of the API with a key; a connection for each request, since one that waits for a minute is closed."""

    def __init__(self, program, key=WRITE):
        self.port, self.key = program.port, key

    def __call__(self, method, path, content=None):
        """(status, JSON or text)"""
        if content is not None and not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body=content, headers={"X-API-Key": self.key})
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        self.fields = response.headers
        kind = response.headers.get("Content-Type", "")
        return response.status, json.loads(text) if kind == "application/json" else text

    def patch(self, *rrsets, zone="example.test."):
        return self("PATCH", f"{ZONES}/{zone}", {"rrsets": list(rrsets)})

    def rrset(self, name, rdtype, zone="example.test."):
        status, found = self("GET", f"{ZONES}/{zone}?rrset_name={name}&rrset_type={rdtype}")
        assert status == 200, found
        return [(rrset["ttl"], [record["content"] for record in rrset["records"]]) for rrset in found["rrsets"]]

    def serial(self, zone="example.test."):
        return self("GET", f"{ZONES}/{zone}?rrsets=false")[1]["serial"]


def replace(name, rdtype, *contents, ttl=60, **members):
    return {"name": name, "type": rdtype, "ttl": ttl, "changetype": "REPLACE",
            "records": [{"content": content, "disabled": False} for content in contents], **members}


def patch_until_killed(client, rrsets):
    with contextlib.suppress(OSError, http.client.HTTPException):
        client.patch(*rrsets, zone="own.test.")


def test_a_patch_is_one_version_that_outlives_a_kill(beside):
    server, program = beside(section=KEYS)
    client = Client(program)
    status, text = client.patch(
        replace("a.example.test.", "A", "192.0.2.7", "192.0.2.8", ttl=120),
        replace("www.example.test.", "CNAME", "a.example.test."),
        {"name": "www.example.test.", "type": "A", "changetype": "DELETE"},
        replace("t.example.test.", "TXT", '"v=DKIM1\\; k=rsa"', '"one" "two"'),
        {"name": "absent.example.test.", "type": "MX", "changetype": "DELETE"})
    assert (status, text) == (204, "")
    assert "Content-Length" not in client.fields and "Content-Type" not in client.fields
    assert (client.fields["X-PDNS-Old-Serial"], client.fields["X-PDNS-New-Serial"]) == ("7", "8")
    for _ in range(2):
        assert client.serial() == 8
        assert client.rrset("a.example.test.", "A") == [(120, ["192.0.2.7", "192.0.2.8"])]
        assert client.rrset("www.example.test.", "A") == []
        assert sorted(client.rrset("t.example.test.", "TXT")[0][1]) == ['"one" "two"', '"v=DKIM1; k=rsa"']
        answer = server.ask("www.example.test")
        assert {str(rrset.name) for rrset in answer.answer} == {"www.example.test.", "a.example.test."}
        server.kill()
        server.start("example.test")
    [changeset] = server.control("zone", "history", "example.test")["changesets"]  # secondaries get it as one
    assert changeset["by"].startswith("API key ") and changeset["client"] in ("127.0.0.1", "::1")


def test_changes_of_single_records_keep_the_others(beside):
    _, program = beside(section=KEYS)
    client = Client(program)
    one = lambda kind, content: {"name": "m.example.test.", "type": "A", "ttl": 60, "changetype": kind,
                                 "records": [{"content": content}]}
    assert client.patch(one("EXTEND", "192.0.2.1"), one("EXTEND", "192.0.2.2"))[0] == 204
    assert client.patch(one("EXTEND", "192.0.2.3"), one("PRUNE", "192.0.2.1"), one("PRUNE", "192.0.2.9"))[0] == 204
    assert client.rrset("m.example.test.", "A") == [(60, ["192.0.2.2", "192.0.2.3"])]
    serial = client.serial()
    assert client.patch(one("EXTEND", "192.0.2.3"), one("PRUNE", "192.0.2.9"))[0] == 204
    assert client.serial() == serial, "nothing changed"
    assert client.patch(replace("m.example.test.", "A"))[0] == 204, "an empty list deletes"
    assert client.rrset("m.example.test.", "A") == [] and client.serial() == serial + 1
    assert client.patch()[0] == 204 and client.serial() == serial + 1


def test_the_server_counts_serials(beside):
    _, program = beside(section=KEYS)
    client = Client(program)
    soa = lambda serial, refresh=1: replace("example.test.", "SOA", f"ns.example.test. a.example.test. {serial} {refresh} 2 3 4")
    assert client.patch(soa(3))[0] == 204 and client.serial() == 8, "an old serial is raised"
    assert client.patch(soa(8, 5))[0] == 204 and client.serial() == 9, "the present one is raised"
    assert client.patch(soa(2026010101))[0] == 204 and client.serial() == 2026010101, "a later one is taken"
    assert client.patch(replace("a.example.test.", "A", "192.0.2.1"))[0] == 204 and client.serial() == 2026010102
    status, answer = client.patch({"name": "example.test.", "type": "SOA", "changetype": "DELETE"})
    assert status == 422 and "SOA" in answer["error"]


def test_an_error_changes_nothing(beside):
    server, program = beside(section=KEYS)
    client = Client(program)
    good = replace("good.example.test.", "A", "192.0.2.1")
    bad = [
        (replace("a.example.test", "A", "192.0.2.1"), "not canonical"),
        (replace("a.example.com.", "A", "192.0.2.1"), "out of zone"),
        (replace("a.example.test.", "A", "192.0.2.256"), "Record a.example.test./A '192.0.2.256'"),
        (replace("a.example.test.", "LUA", 'A "x"'), "unknown type"),
        (replace("a.example.test.", "A", "192.0.2.1", ttl=-1), "ttl"),
        (replace("a.example.test.", "A", "192.0.2.1", ttl=None), "ttl"),
        (replace("a.example.test.", "A", "192.0.2.1", comments=[{"content": "x", "account": "y"}]), "comments"),
        (replace("a.example.test.", "CNAME", "b"), "final dot"),
        (replace("x" * 64 + ".example.test.", "A", "192.0.2.1"), "label"),
        (replace("a.example.test.", "SOA", "a. b. 1 2 3 4 5"), "apex"),
        (replace("www.example.test.", "CNAME", "a.example.test."), "CNAME"),
        (replace("a.example.test.", "RRSIG", "A 8 2 1 20300101000000 20200101000000 1 example.test. AAAA"), "signer"),
        ({"name": "example.test.", "type": "NS", "changetype": "DELETE"}, "NS"),
        ({"name": "a.example.test.", "type": "A", "changetype": "UPSERT"}, "Changetype 'UPSERT'"),
        ("text", "changetype"),
    ]
    for rrset, reason in bad:
        status, answer = client.patch(good, rrset)
        assert status == 422 and list(answer) == ["error"] and reason in answer["error"], (rrset, answer)
    for content, expected in ((b"", 400), (b"{", 400), (b"\xff\xfe", 400), (b"[" * 60_000, 400), (b"[]", 422), (b"{}", 422),
                              (b'{"rrsets": {}}', 422), (b'{"rrsets": [[]]}', 422)):
        status, answer = client("PATCH", f"{ZONES}/example.test.", content)
        assert status == expected and list(answer) == ["error"], content[:20]
    many = {"rrsets": [replace("a.example.test.", "A", *["192.0.2.1"] * 20_001)]}
    assert client("PATCH", f"{ZONES}/example.test.", many)[0] == 413
    assert client.serial() == 7 and client.rrset("good.example.test.", "A") == []
    assert client.patch(good)[0] == 204, "no transaction was left open"
    assert server.ask("good.example.test").answer


def test_paths_and_methods_without_a_meaning_are_told(beside):
    _, program = beside(zones=("example.test", "0/26.2.0.192.in-addr.arpa"), section=KEYS)
    client = Client(program)
    zone = "0=2F26.2.0.192.in-addr.arpa."
    assert client.patch(replace("1.0/26.2.0.192.in-addr.arpa.", "PTR", "a\\.b.example.test."), zone=zone)[0] == 204
    assert client.rrset("1.0/26.2.0.192.in-addr.arpa.", "PTR", zone=zone) == [(60, ["a\\.b.example.test."])]
    record = replace("a.example.test.", "A", "192.0.2.1")
    for path, expected in (("missing.test.", 404), ("a..b", 422), ("=ZZ", 422), ("%00", 404), ("example.test./other", 404)):
        status, answer = client("PATCH", f"{ZONES}/{path}", {"rrsets": []})
        assert status == expected and list(answer) == ["error"], path
    for method, path, allowed in (
            ("DELETE", ZONES, "GET, HEAD, POST"), ("POST", f"{ZONES}/example.test.", "GET, HEAD, PATCH, PUT, DELETE"),
            ("POST", f"{ZONES}/example.test./notify", "PUT"),
            ("PATCH", f"{ZONES}/example.test./export", "GET, HEAD"),
            ("PUT", f"{ZONES}/example.test./metadata/ALLOW-AXFR-FROM", "GET, HEAD"),
            ("POST", "/api/v1/servers/localhost/tsigkeys", "GET, HEAD")):
        status, answer = client(method, path, {"rrsets": [record]})
        assert (status, client.fields["Allow"]) == (405, allowed) and list(answer) == ["error"], (method, path)


def test_notify_and_transfers_are_started(beside):
    _, program = beside(section=KEYS)
    client = Client(program)
    assert client("PUT", f"{ZONES}/example.test./notify") == (200, {"result": "Notification queued"})
    assert client("PUT", f"{ZONES}/missing.test./notify")[0] == 404
    status, answer = client("PUT", f"{ZONES}/example.test./axfr-retrieve")
    assert status == 422 and "primar" in answer["error"]
    assert client("PUT", "/api/v1/servers/localhost/cache/flush?domain=example.test.") == (
        200, {"count": 0, "result": "Flushed cache."})


def test_members_without_a_meaning_are_empty(beside):
    _, program = beside(section=KEYS)
    client = Client(program, READ)
    base = f"{ZONES}/example.test."
    assert client("GET", f"{base}/metadata") == (200, []) and client("GET", f"{base}/cryptokeys") == (200, [])
    assert client("GET", f"{base}/metadata/ALLOW-AXFR-FROM") == (
        200, {"kind": "ALLOW-AXFR-FROM", "metadata": [], "type": "Metadata"})
    assert client("GET", f"{ZONES}/missing.test./metadata")[0] == 404
    assert client("GET", f"{base}/cryptokeys/1")[0] == 404
    assert client("GET", "/api/v1/servers/localhost/tsigkeys")[0] == 200
    status, found = client("GET", "/api/v1/servers/localhost/search-data?q=www*&max=5")
    assert status == 200 and [(one["name"], one["content"], one["zone_id"]) for one in found] == [
        ("www.example.test.", "192.0.2.2", "example.test.")]
    assert client("GET", "/api/v1/servers/localhost/search-data?q=")[0] == 422


def test_tsig_keys_are_named_without_their_secrets(beside):
    server, program = beside(section=KEYS)
    text = server.config.read_text()
    server.config.write_text(text + "keys: [{name: Update.Key, algorithm: hmac-sha256, secret: c2VjcmV0LW9mLWEtdGVzdA==}]\n")
    server.control("reload")
    client = Client(program, READ)
    key = {"id": "Update.Key.", "name": "Update.Key", "algorithm": "hmac-sha256", "key": "", "type": "TSIGKey"}
    assert client("GET", "/api/v1/servers/localhost/tsigkeys") == (200, [key])
    assert client("GET", "/api/v1/servers/localhost/tsigkeys/update.key.") == (200, key)
    assert client("GET", "/api/v1/servers/localhost/tsigkeys/other.")[0] == 404


def test_only_a_key_with_a_role_writes_and_only_its_zones(beside):
    _, program = beside(zones=("example.test", "own.test", "sub.own.test"), section=KEYS)
    record = lambda zone: replace(f"a.{zone}", "A", "192.0.2.1")
    for key, expected in ((READ, 403), ("wrong", 401), (TENANT, 404), (WRITE, 204)):
        client = Client(program, key)
        assert client.patch(record("example.test."))[0] == expected, key
        assert client("PUT", f"{ZONES}/example.test./notify")[0] == (200 if expected == 204 else expected)
    tenant = Client(program, TENANT)
    assert tenant.patch(record("own.test."), zone="own.test.")[0] == 204
    assert tenant.patch(record("sub.own.test."), zone="sub.own.test")[0] == 204
    assert tenant("GET", f"{ZONES}/missing.test.") == tenant("GET", f"{ZONES}/example.test."), "not even whether it is there"
    assert {zone["id"] for zone in tenant("GET", ZONES)[1]} == {"own.test.", "sub.own.test."}
    assert tenant("GET", f"{ZONES}?zone=example.test.") == (200, [])
    found = tenant("GET", "/api/v1/servers/localhost/search-data?q=*")[1]
    assert found and not any("example" in one["name"] for one in found)
    for path in ("/metrics", "/api/v1/servers/localhost/statistics", "/api/v1/servers/localhost/tsigkeys"):
        assert tenant("GET", path)[0] == 403


def test_without_keys_nobody_writes(beside):
    _, program = beside()
    client = Client(program, "")
    assert client.patch(replace("a.example.test.", "A", "192.0.2.1"))[0] == 403
    assert client("GET", ZONES)[0] == 200


def test_an_operators_transaction_is_not_touched(beside):
    server, program = beside(section=KEYS)
    client = Client(program)
    server.control("zone", "begin", "example.test")
    status, answer = client.patch(replace("a.example.test.", "A", "192.0.2.1"))
    assert status == 409 and "open transaction" in answer["error"]
    server.control("zone", "set", "example.test", "op", "60", "A", "192.0.2.9")
    server.control("zone", "commit", "example.test")
    assert client.patch(replace("a.example.test.", "A", "192.0.2.1"))[0] == 204
    assert client.rrset("op.example.test.", "A") and client.rrset("a.example.test.", "A")


def test_many_clients_lose_nothing(beside):
    """Changes are made one after the other, so that no client meets the transaction of another."""
    _, program = beside(section=KEYS)
    results = []

    def work(number):
        client = Client(program)
        for i in range(8):
            while (status := client.patch(replace(f"n{number}-{i}.example.test.", "A", "192.0.2.1"))[0]) == 429:
                time.sleep(0.2)
            results.append(status)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    client = Client(program)
    assert results == [204] * 64 and client.serial() == 7 + 64
    assert len(client("GET", f"{ZONES}/example.test.")[1]["rrsets"]) == 4 + 64


@pytest.mark.release
def test_a_large_patch_and_one_of_100_megabytes(beside):
    server, program = beside(section=KEYS)
    client = Client(program)
    many = [replace(f"n{i}.example.test.", "A", f"10.0.{i // 256}.{i % 256}") for i in range(2000)]
    assert client.patch(*many)[0] == 204
    assert client.serial() == 8 and server.ask("n1999.example.test").answer
    for key, length, expected in ((WRITE, 100 << 20, 413), (WRITE, (4 << 20) + 1, 413), (READ, 70_000, 413)):
        with socket.create_connection(("127.0.0.1", program.port), timeout=20) as raw:
            raw.sendall(f"PATCH {ZONES}/example.test. HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\n"
                        f"Content-Length: {length}\r\n\r\n".encode())
            assert raw.recv(4096).startswith(f"HTTP/1.1 {expected} ".encode())


def test_without_a_manager_changes_fail_and_reading_goes_on(beside):
    server, program = beside(section=KEYS)
    client = Client(program)
    server.kill()
    status, answer = client.patch(replace("a.example.test.", "A", "192.0.2.1"))
    assert status == 503 and answer["error"]
    assert client("GET", f"{ZONES}/example.test.")[0] == 200


def test_a_secondary_is_transferred_and_not_changed(pando, tmp_path, beside):
    zone = {"name": "sec.test", "file": str(tmp_path / "zone"), "allow-transfer": [{"address": "127.0.0.0/8"}]}
    server, program = beside(section=KEYS)
    primary = servers.Pando(tmp_path / "primary", [zone])
    try:
        primary.start("sec.test")
        server.remotes = [{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]
        server.zones.append({"name": "sec.test", "primaries": ["up"]})
        section = server.config.read_text().splitlines()[-1]
        server.write_config()
        server.config.write_text(server.config.read_text() + section + "\n")
        server.control("reload")
        client = Client(program)
        servers.wait_until("the zone is there", lambda: client("GET", f"{ZONES}/sec.test.")[0] == 200)
        assert client("PUT", f"{ZONES}/sec.test./axfr-retrieve") == (
            200, {"result": "Added retrieval request for 'sec.test.'"})
        status, zone = client("GET", f"{ZONES}/sec.test.?rrsets=false")
        assert status == 200 and zone["kind"] == "Slave"
        status, answer = client.patch(replace("a.sec.test.", "A", "192.0.2.1"), zone="sec.test.")
        assert status == 422 and "primary" in answer["error"]
    finally:
        primary.clean()


@pytest.mark.skipif(os.getuid() != 0 or not ordinary_user("nobody"), reason="needs root and an ordinary user")
def test_its_user_edits_what_its_keys_may_and_nothing_else():
    """A hijacked pando-http meets the manager's own check: the zones of the keys that write, and no other command."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-http-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "zone").write_text(ZONE)
    server = servers.Pando(folder, [{"name": name, "file": str(folder / "zone")} for name in ("own.test", "example.test")])
    program = Http(server, servers.free_port())
    server.config.write_text(server.config.read_text() + (
        f"http: {{listen: [127.0.0.1@{program.port}], user: nobody, keys: [{{name: reader, secret: {READ}}}, "
        f"{{name: tenant, secret: {TENANT}, role: write, zones: [own.test]}}]}}\n"))
    user = ordinary_user("nobody")

    def control(*words):  # as pando-http connects: with the control group, here root's
        return subprocess.run([servers.build_folder() / "pandoctl", "--run-directory", folder / "run", *words],
                              user=user.pw_uid, group=user.pw_gid, extra_groups=[0], capture_output=True, text=True)

    try:
        server.start("own.test")
        program.start()
        client = Client(program, TENANT)
        assert client.patch(replace("a.own.test.", "A", "192.0.2.1"), zone="own.test.")[0] == 204
        assert server.ask("a.own.test").answer
        many = replace("many.own.test.", "A", *[f"10.0.0.{i}" for i in range(101)])
        status, answer = client.patch(many, zone="own.test.")
        assert status == 507 and "100" in answer["error"], answer
        for words in (("zone", "begin", "example.test"), ("zone", "notify", "example.test"),
                      ("zone", "begin", "own.test", "example.test")):
            refused = control(*words)
            assert refused.returncode != 0 and "no key of http.keys may change" in refused.stdout + refused.stderr, words
        for words in (("stop",), ("reload",), ("zone", "export", "own.test"), ("zone", "rollback", "own.test", "7")):
            refused = control(*words)
            assert refused.returncode != 0 and "may only read" in refused.stdout + refused.stderr, words
        # A transaction ends with its connection, so that no crash of pando-http locks a zone.
        assert control("zone", "begin", "own.test").returncode == 0
        servers.wait_until("the transaction is gone",
                           lambda: client.patch(replace("b.own.test.", "A", "192.0.2.1"), zone="own.test.")[0] == 204)
        # A kill in the middle of a change leaves all of it or nothing, and no transaction.
        many = [replace(f"n{i}.own.test.", "A", f"10.0.{i // 256}.{i % 256}") for i in range(2000)]
        for pause in (0.1, 0.3, 0.6, 1.0):
            serial = client.serial("own.test.")
            victim = threading.Thread(target=patch_until_killed, args=(Client(program, TENANT), many))
            victim.start()
            time.sleep(pause)
            program.kill()
            victim.join()
            program.start()
            client = Client(program, TENANT)
            assert client.patch(replace("a.own.test.", "TXT", f'"{pause}"'), zone="own.test.")[0] == 204
            found = sum(rrset["name"].startswith("n") and rrset["type"] == "A"
                        for rrset in client("GET", f"{ZONES}/own.test.")[1]["rrsets"]) - 1  # ns
            assert (found, client.serial("own.test.")) in ((0, serial + 1), (2000, serial + 2)), pause
            if found:
                break
        # Without a key that writes, a reload takes the right away.
        server.config.write_text(server.config.read_text().replace("role: write", "role: read"))
        server.control("reload")
        status, answer = client.patch(replace("c.own.test.", "A", "192.0.2.1"), zone="own.test.")
        assert status == 403 and "role does not allow" in answer["error"]
    finally:
        program.stop()
        server.clean()
        shutil.rmtree(folder)
