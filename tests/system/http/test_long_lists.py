"""Lists of the API on a server with many zones: whole for a key of all zones, short for a key of one."""

import contextlib
import http.client
import json
import pathlib
import threading
import urllib.parse

import pytest

import servers
from test_http import ADMIN, READ, ZONE, Http

BASE = "/api/v1/servers/localhost"
# PowerDNS's clients have no pages: a limit here would be the limit of the server.
ZONES = 120_000
KEYS = (f"[{{name: reader, secret: {READ}}}, "
        f"{{name: tenant, secret: {ADMIN}, role: admin, zones: [z7.test, '*.customer.test']}}]")


@pytest.fixture
def crowded(pando, tmp_path):
    """Makes a server with zones of a list, and pando-http beside it."""
    started = []

    def make(count):
        plain = tmp_path / "plain.zone"
        plain.write_text(ZONE)
        names = [f"z{number}.test" for number in range(count)] + ["a.customer.test"]
        (tmp_path / "zones.list").write_text("".join(f"{name} {plain}\n" for name in names))
        server = pando([], workers=1)
        port = servers.free_port()
        with open(server.config, "a") as config:
            config.write(f"zone-lists: ['{tmp_path}/zones.list']\n"
                         f"http: {{listen: [127.0.0.1@{port}], user: root, keys: {KEYS}}}\n")
        server.start("a.customer.test")
        servers.wait_until("all zones are loaded", lambda: server.control("status")["zones_loaded"] == count + 1, 300)
        program = Http(server, port)
        started.append(program)
        program.start()
        return program

    yield make
    for program in started:
        program.stop()


def ask(program, path, key):
    """(header fields, JSON)"""
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=300)
    connection.request("GET", BASE + path, headers={"X-API-Key": key})
    response = connection.getresponse()
    text = response.read()
    connection.close()
    assert response.status == 200, text
    return response.headers, json.loads(text)


def search(program, key, **words):
    return ask(program, f"/search-data?{urllib.parse.urlencode(words)}", key)[1]


def own_kib(program):
    """Memory of the process alone: pages of the store count for whoever reads them."""
    status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon:")))


@contextlib.contextmanager
def peak_kib(program):
    """Gives a list that has the largest own_kib() while the block ran, once it has ended."""
    peak, ended = [0], threading.Event()

    def watch():
        while not ended.wait(0.01):
            peak[0] = max(peak[0], own_kib(program))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield peak
    finally:
        ended.set()
        watcher.join()


def check_lists(program, count):
    fields, zones = ask(program, "/zones", READ)
    assert fields["Transfer-Encoding"] == "chunked"
    assert {zone["name"] for zone in zones} == {f"z{number}.test." for number in range(count)} | {"a.customer.test."}
    assert len(zones) == count + 1, "none is there twice"
    assert zones[0].keys() >= {"id", "kind", "serial", "masters", "dnssec", "last_check"}
    fields, zones = ask(program, "/zones", ADMIN)
    assert [zone["name"] for zone in zones] == ["a.customer.test.", "z7.test."] and fields["Content-Length"]
    assert [zone["name"] for zone in ask(program, "/zones?zone=z7.test.", ADMIN)[1]] == ["z7.test."]
    assert ask(program, "/zones?zone=z8.test.", ADMIN)[1] == []
    last = f"z{count - 1}.test."
    assert search(program, READ, q=last) == [
        {"object_type": "zone", "zone_id": last, "name": last},
        *({**found, "name": last, "type": found["type"]} for found in search(program, READ, q=last, object_type="record"))]
    assert len(search(program, READ, q="192.0.2.2", max=7)) == 7
    assert len(search(program, READ, q="www.z*", max=10_000)) == min(count, 10_000)
    found = search(program, ADMIN, q="www.*")
    assert {record["name"] for record in found} == {"www.a.customer.test.", "www.z7.test."}


def test_lists_are_whole_and_those_of_a_key_its_own(crowded):
    check_lists(crowded(1500), 1500)


@pytest.mark.release
def test_a_list_of_very_many_zones_takes_no_memory(crowded):
    program = crowded(ZONES)
    ask(program, "/zones?zone=z7.test.", READ)
    before = own_kib(program)
    with peak_kib(program) as peak:
        check_lists(program, ZONES)
    assert 0 < peak[0] - before < 16 << 10, "the whole list has some 50 MB"
