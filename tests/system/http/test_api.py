"""The PowerDNS API of pando-http: the requests that octodns-powerdns and lego begin with."""

import json
import threading
import time

import dns.rcode

from test_http import ADMIN, READ, add, beside  # noqa: F401: a fixture

BASE = "/api/v1/servers/localhost"


def read(program, path, **headers):
    status, fields, text = program.get(path, **headers)
    assert fields["Content-Type"] == "application/json" or status != 200, fields
    return status, json.loads(text)


def test_zones_are_read_as_from_powerdns(beside):
    server, program = beside(zones=("example.test", "0/26.2.0.192.in-addr.arpa"))
    assert read(program, "/api") == (200, [{"version": 1, "url": "/api/v1"}])
    assert read(program, "/api/v1") == (200, [{"server_url": "/api/v1/servers{/server}", "api_features": []}])
    status, [found] = read(program, "/api/v1/servers")
    assert status == 200 and found["id"] == "localhost" and found["daemon_type"] == "authoritative"
    assert read(program, BASE)[1] == found
    status, zones = read(program, BASE + "/zones")
    assert status == 200 and {zone["id"] for zone in zones} == {"example.test.", "0=2F26.2.0.192.in-addr.arpa."}
    assert add(server, "new") == dns.rcode.NOERROR
    status, zone = read(program, BASE + "/zones/example.test.")
    assert status == 200 and zone["serial"] == 8 and zone["kind"] == "Master"
    rrsets = {(rrset["name"], rrset["type"]): rrset for rrset in zone["rrsets"]}
    assert rrsets["new.example.test.", "A"] == {
        "name": "new.example.test.", "type": "A", "ttl": 60, "comments": [],
        "records": [{"content": "192.0.2.7", "disabled": False}]}
    assert len(rrsets) == 5
    for other in zones:
        assert read(program, f"{BASE}/zones/{other['id']}?rrsets=false")[1]["name"] == other["name"]
    status, fields, text = program.get(BASE + "/zones/example.test./export")
    assert status == 200 and fields["Content-Type"].startswith("text/plain") and len(text.splitlines()) == 5
    assert "new.example.test.\t60\tIN\tA\t192.0.2.7\n" in text
    assert [zone["name"] for zone in read(program, BASE + "/zones?zone=example.test")[1]] == ["example.test."]
    statistics = {item["name"]: item["value"] for item in read(program, BASE + "/statistics")[1]}
    assert [item["name"] for item in read(program, BASE + "/statistics?statistic=uptime")[1]] == ["uptime"]
    assert read(program, BASE + "/statistics?statistic=other") == (422, {"error": "Unknown statistic name"})
    assert int(statistics["udp-queries"]) > 0 and {"name": "SOA", "value": "1"}.keys() == \
        statistics["response-by-qtype"][0].keys()


def test_what_is_not_there_is_told(beside):
    _, program = beside()
    for path, expected in ((BASE + "/zones/missing.test.", 404), (BASE + "/zones/a..b", 422), (BASE + "/zones/=ZZ", 422),
                           (BASE + "/nothing", 404), ("/api/v1/servers/other", 404), ("/api/v1/", 404),
                           (BASE + "/zones/example.test./other", 404), (BASE + "/zones/%3Cscript%3E.test", 404)):
        status, answer = read(program, path)
        assert status == expected and list(answer) == ["error"], path
    assert read(program, BASE + "/zones?zone=missing.test")[1] == []
    for method in ("POST", "PATCH", "PUT", "DELETE"):
        assert program.get(BASE + "/zones/example.test.", method=method)[0] == 403


def test_the_key_comes_first(beside):
    _, program = beside(section=f"keys: [{{name: a, secret: {READ}}}, {{name: b, secret: {ADMIN}, role: admin}}]")
    for path in ("/api", BASE, BASE + "/zones/missing.test."):
        assert program.get(path)[0] == 401 and program.get(path, X_API_Key="wrong")[0] == 401
    assert read(program, BASE, X_API_Key=READ)[0] == 200


def test_a_zone_is_of_one_version_while_updates_come(beside):
    """Another zone changes all the time, this one now and then: serial and records always fit."""
    server, program = beside(zones=("example.test", "other.test"))
    ends = threading.Event()

    def write(zone, pause):
        count = 0
        while not ends.wait(pause):
            assert add(server, f"n{count:05}", zone) == dns.rcode.NOERROR
            count += 1

    writers = [threading.Thread(target=write, args=words) for words in (("other.test", 0), ("example.test", 0.02))]
    for writer in writers:
        writer.start()
    try:
        seen = set()
        end = time.monotonic() + 60
        while len(seen) <= 10 and time.monotonic() < end:
            time.sleep(0.02)
            status, zone = read(program, BASE + "/zones/example.test.")
            assert status == 200, zone
            assert len(zone["rrsets"]) - 4 == zone["serial"] - 7
            [soa] = [rrset for rrset in zone["rrsets"] if rrset["type"] == "SOA"]
            assert soa["records"][0]["content"].split()[2] == str(zone["serial"])
            seen.add(zone["serial"])
        assert len(seen) > 10
    finally:
        ends.set()
        for writer in writers:
            writer.join()
