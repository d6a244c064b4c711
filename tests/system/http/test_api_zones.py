"""Zones that come and go by the PowerDNS API: POST to the list of zones, DELETE of a zone."""

import subprocess
import threading

import pytest

import servers
from test_api_write import READ, WRITE, ZONES, Client, replace
from test_http import ZONE, beside  # noqa: F401: a fixture

ADMIN, PANEL = "admin-secret-of-a-test", "panel-secret-of-a-test"
KEYS = (f"keys: [{{name: reader, secret: {READ}}}, {{name: writer, secret: {WRITE}, role: write}}, "
        f"{{name: admin, secret: {ADMIN}, role: admin}}, "
        f"{{name: panel, secret: {PANEL}, role: admin, zones: ['*.customers.test']}}]")


def new_zone(name, *rrsets, **members):
    return {"name": name, "kind": "Native", "nameservers": [f"ns1.{name}"],
            "rrsets": [{"name": f"ns1.{name}", "type": "A", "ttl": 60, "records": [{"content": "192.0.2.1"}]}, *rrsets],
            **members}


def test_a_zone_comes_lives_and_goes(beside):
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    status, made = client("POST", ZONES, new_zone("new.test."))
    assert status == 201, made
    assert (made["id"], made["kind"], made["name"]) == ("new.test.", "Master", "new.test.")
    assert {rrset["type"] for rrset in made["rrsets"]} == {"SOA", "NS", "A"}
    assert server.ask("ns1.new.test").answer[0][0].to_text() == "192.0.2.1"
    assert client.patch(replace("www.new.test.", "A", "192.0.2.2"), zone="new.test.")[0] == 204
    assert client("POST", ZONES, new_zone("new.test."))[0] == 409
    assert client("POST", ZONES, new_zone("example.test."))[0] == 409, "the configuration has it"
    # It is there after a kill, with its change.
    server.kill()
    server.start("new.test")
    assert server.ask("www.new.test").answer[0][0].to_text() == "192.0.2.2"
    servers.wait_until("the manager takes changes", lambda: client("DELETE", f"{ZONES}/new.test.")[0] == 204)
    assert server.ask("new.test", "SOA").rcode() == 5
    assert client("DELETE", f"{ZONES}/new.test.")[0] == 404
    # A zone of that name begins anew.
    assert client("POST", ZONES, new_zone("new.test."))[0] == 201
    assert not server.ask("www.new.test").answer
    assert not [zone for zone in server.control("zone", "list") if zone["state"] == "removed"]


def test_a_zone_with_a_fault_is_not_there(beside):
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    folder = server.folder / server.journal / "zones"
    text = "@ 60 SOA ns1 admin 1 60 60 60 60\n@ 60 NS ns1\n"
    for content, reason in ((new_zone("a.test.", zone="@ SOA broken", rrsets=[]), "a.test.: line 1: "),
                            (new_zone("a.test.", zone=f"{text}; a comment\nns1 60 A x\n", rrsets=[]), "line 4: "),
                            (new_zone("a.test.", zone=f"{text}ns1 60 CNAME a\nns1 60 A 192.0.2.1\n", rrsets=[]), "CNAME"),
                            (new_zone("a.test.", zone="$INCLUDE /etc/passwd\n", rrsets=[]), "$INCLUDE"),
                            (new_zone("a.test.", zone="$GENERATE 1-9 h$ A 192.0.2.1\n", rrsets=[]), "$GENERATE"),
                            (new_zone("a.test.", kind="Slave"), "MUST NOT"),
                            (new_zone(".".join(4 * ["x" * 60]) + "."), "no file"),
                            ({"name": "a.test."}, "kind"), (b"{", "JSON")):
        status, answer = client("POST", ZONES, content)
        assert status in (400, 422) and reason in answer["error"], answer
        assert str(server.folder) not in answer["error"], "where the manager has its files is no client's business"
        assert client("GET", f"{ZONES}/a.test.")[0] == 404
        assert not folder.exists() or not list(folder.iterdir()), content
    assert [zone["name"] for zone in server.control("zone", "list")] == ["example.test."]
    assert client("POST", ZONES, new_zone("a.test."))[0] == 201, "no trace is left"


def test_keys_add_what_they_may(beside):
    server, program = beside(section=KEYS)
    for key in (READ, WRITE):
        client = Client(program, key)
        assert client("POST", ZONES, new_zone("a.customers.test."))[0] == 403
        assert client("DELETE", f"{ZONES}/example.test.")[0] == 403
    panel = Client(program, PANEL)
    assert panel("POST", ZONES, new_zone("other.test."))[0] == 403
    assert panel("DELETE", f"{ZONES}/example.test.")[0] == 404
    assert panel("POST", ZONES, new_zone("a.customers.test."))[0] == 201
    assert panel("DELETE", f"{ZONES}/a.customers.test.")[0] == 204
    status, answer = Client(program, ADMIN)("DELETE", f"{ZONES}/example.test.")
    assert status == 422 and "configuration" in answer["error"]
    assert server.ask("www.example.test").answer


def test_zones_have_the_template_of_the_section(beside):
    server, program = beside(section=KEYS)
    server.config.write_text(server.config.read_text().replace("user: root,", "user: root, template: customers,") + (
        "remotes: [{name: p, address: [127.0.0.1@1]}]\n"
        "templates: [{name: customers, allow-transfer: [127.0.0.0/8]}]\n"))
    program.stop()
    server.control("reload")
    program.start()
    client = Client(program, ADMIN)
    assert client("POST", ZONES, new_zone("a.test."))[0] == 201
    assert any("ns1.a.test" in line for line in server.records("a.test"))
    assert "allow-transfer" in server.control("config", "show", "a.test")["yaml"]
    status, answer = client("POST", ZONES, {"name": "b.test.", "kind": "Slave", "masters": ["127.0.0.2"]})
    assert status == 422 and "no remote" in answer["error"]
    status, made = client("POST", ZONES, {"name": "b.test.", "kind": "Slave", "masters": ["127.0.0.1:1"]})
    assert (status, made["kind"]) == (201, "Slave"), made
    assert server.control("zone", "status", "b.test")["kind"] == "secondary"


def test_many_clients_add_and_remove(beside):
    server, program = beside(section=KEYS)
    failures = []

    def work(number):
        client = Client(program, ADMIN)
        for turn in range(10):
            name = f"z{turn}.c{number}.test."
            if client("POST", ZONES, new_zone(name))[0] != 201:
                failures.append(name)
            if turn % 2 and client("DELETE", f"{ZONES}/{name}")[0] != 204:
                failures.append(name)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    expected = {f"z{turn}.c{number}.test." for number in range(6) for turn in range(0, 10, 2)} | {"example.test."}
    assert {zone["id"] for zone in Client(program, READ)("GET", ZONES)[1]} == expected
    folder = server.folder / server.journal / "zones"
    assert {file.name for file in folder.iterdir()} == {f"{name}zone" for name in expected - {"example.test."}}


def test_a_large_zone_and_one_that_is_too_large(beside):
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    rrset = lambda number: {"name": f"n{number}.big.test.", "type": "A", "ttl": 60, "records": [{"content": "192.0.2.1"}]}
    assert client("POST", ZONES, new_zone("big.test.", *map(rrset, range(9_000))))[0] == 201
    assert server.ask("n8999.big.test").answer
    text = "@ 60 SOA ns1 admin 1 60 60 60 60\n@ 60 NS ns1\n" + "".join(f"n{n} 60 A 192.0.2.1\n" for n in range(60_000))
    status, answer = client("POST", ZONES, {"name": "huge.test.", "kind": "Native", "zone": text})
    assert status == 413 and "PATCH" in answer["error"], answer


def test_pandoctl_sends_a_zones_content(pando, tmp_path):
    """The same without HTTP: the file is the client's."""
    file = tmp_path / "zone"
    file.write_text(ZONE)
    server = pando([{"name": "example.test", "file": str(file)}])
    server.start("example.test")
    content = tmp_path / "content"
    content.write_text(ZONE)
    server.control("zone", "add", "sent.test", "--content", str(content), 'allow-update=[{"address": "127.0.0.1"}]')
    content.unlink()
    assert server.ask("www.sent.test").answer
    server.control("zone", "begin", "sent.test")
    server.control("zone", "set", "sent.test", "new", "60", "A", "192.0.2.9")
    server.control("zone", "commit", "sent.test")
    server.stop()
    server.start("sent.test")
    assert server.ask("new.sent.test").answer
    server.control("zone", "remove", "sent.test")
    content.write_text(ZONE)
    with pytest.raises(AssertionError, match="purge it first"):
        server.control("zone", "add", "sent.test", "--content", str(content))
    server.control("zone", "purge", "sent.test")
    assert not list((server.folder / server.journal / "zones").iterdir())
    server.control("zone", "add", "sent.test", "--content", str(content))
    assert not server.ask("new.sent.test").answer
    content.write_bytes(ZONE.encode() + b"; \xe4\n")
    with pytest.raises(AssertionError, match="not ASCII"):
        server.control("zone", "add", "other.test", "--content", str(content))


@pytest.mark.parametrize("point", ["whole-file-written", "whole-file-renamed", "whole-file-named", "added-zones-kept"])
def test_a_kill_while_a_zone_is_added_leaves_all_of_it_or_nothing(pando, tmp_path, point):
    file = tmp_path / "zone"
    file.write_text(ZONE)
    server = pando([{"name": "example.test", "file": str(file)}])
    armed = tmp_path / "armed"
    server.crash_at, server.crash_if = point, armed
    server.start("example.test")
    armed.touch()
    server.control("zone", "add", "sent.test", "--content", str(file), check=False)
    assert server.process.wait(30) == -9
    armed.unlink()
    server.start("example.test")
    kept = "sent.test." in {zone["name"] for zone in server.control("zone", "list")}
    assert kept == (point == "added-zones-kept")
    if not kept:
        server.control("zone", "add", "sent.test", "--content", str(file))
    servers.wait_until("the zone is served", lambda: server.ask("www.sent.test").answer)


def test_a_full_disk_adds_no_zone(pando, tmp_path):
    """A limit of the size of files stands for the disk."""
    file = tmp_path / "zone"
    file.write_text(ZONE)
    server = pando([{"name": "example.test", "file": str(file)}])
    server.start("example.test")
    large = tmp_path / "large"
    large.write_text(ZONE + "".join(f"n{number} A 192.0.2.1\n" for number in range(20_000)))
    limit = str(100_000)
    subprocess.run(["prlimit", "--pid", str(server.process.pid), f"--fsize={limit}:{limit}"], check=True)
    with pytest.raises(AssertionError, match="sent.test"):
        server.control("zone", "add", "sent.test", "--content", str(large))
    assert [zone["name"] for zone in server.control("zone", "list")] == ["example.test."]
    assert not list((server.folder / server.journal / "zones").iterdir())
    server.control("zone", "add", "sent.test", "--content", str(file))
    assert server.ask("www.sent.test").answer


def test_a_zone_that_is_being_added_is_not_purged(pando, tmp_path):
    """Its file is there before the store has the zone."""
    file, held = tmp_path / "zone", tmp_path / "held"
    file.write_text(ZONE)
    server = pando([{"name": "example.test", "file": str(file)}])
    server.pause_at = "added-zones-kept", held
    server.start("example.test")
    held.touch()
    adding = threading.Thread(target=server.control, args=("zone", "add", "sent.test", "--content", str(file)))
    adding.start()
    created = server.folder / server.journal / "zones/sent.test.zone"
    servers.wait_until("the zone has its file", created.exists)
    with pytest.raises(AssertionError, match="is being added"):
        server.control("zone", "purge", "sent.test")
    held.unlink()
    adding.join()
    assert server.ask("www.sent.test").answer and created.exists()
    with pytest.raises(AssertionError, match="configured"):
        server.control("zone", "purge", "sent.test")


def test_the_requests_of_powerdns_admin(beside):
    """What PowerDNS-Admin 0.6.1 sent when its pages were used. It compares whole RRsets as it reads them with those of its
    form: one member more, and it would write all of them again. It leaves the final dot of zones out, and quotes a slash
    in a name as URLs do."""
    server, program = beside(zones=("example.test", "0/26.2.0.192.in-addr.arpa"), section=KEYS)
    client = Client(program, ADMIN)
    form = {"name": "panel.test.", "kind": "native", "masters": [], "nameservers": [], "soa_edit_api": "DEFAULT", "account": ""}
    status, made = client("POST", ZONES, form)
    assert status == 201, made
    assert "panel.test." in [zone["name"] for zone in client("GET", ZONES)[1]]
    added = [{"name": "www.panel.test.", "type": "A", "ttl": 60, "comments": [],
              "records": [{"content": content, "disabled": False} for content in ("192.0.2.1", "192.0.2.2")]},
             {"name": "panel.test.", "type": "MX", "ttl": 60, "comments": [],
              "records": [{"content": "10 www.panel.test.", "disabled": False}]}]
    status, refused = client("PATCH", f"{ZONES}/panel.test", {"rrsets": [rrset | {"changetype": "REPLACE"} for rrset in added]})
    assert status == 204, refused
    found = client("GET", f"{ZONES}/panel.test")[1]["rrsets"]
    assert all(rrset in found for rrset in added), found
    gone = {"name": "panel.test.", "type": "MX", "changetype": "DELETE"}
    changed = {"name": "www.panel.test.", "type": "A", "ttl": 60, "changetype": "REPLACE",
               "records": [{"content": "192.0.2.3", "disabled": False}]}
    assert client("PATCH", f"{ZONES}/panel.test", {"rrsets": [gone, changed]})[0] == 204
    assert server.ask("www.panel.test").answer[0][0].to_text() == "192.0.2.3"
    assert not server.ask("panel.test", "MX").answer
    assert client("GET", f"{ZONES}/panel.test/cryptokeys") == (200, [])
    assert client("PUT", f"{ZONES}/panel.test/notify")[0] == 200
    for part in ("statistics", "config"):
        assert client("GET", f"/api/v1/servers/localhost/{part}")[0] == 200
    # Its pages for statistics and search: the first takes "uptime" for granted.
    statistics = {item["name"]: item["value"] for item in client("GET", "/api/v1/servers/localhost/statistics")[1]}
    assert int(statistics["uptime"]) >= 0
    found = client("GET", "/api/v1/servers/localhost/search-data?object_type=all&q=www.panel.test")[1]
    assert [(one["object_type"], one["name"], one["zone"]) for one in found] == [("record", "www.panel.test.", "panel.test.")]
    # Its forms for the zone itself: kind, serials, account; its button that signs the zone.
    for change in ({"kind": "master", "masters": []}, {"soa_edit_api": "INCREASE", "kind": "Master"}, {"account": ""},
                   {"api_rectify": True}):
        assert client("PUT", f"{ZONES}/panel.test", change)[0] == 204, change
    status, key = client("POST", f"{ZONES}/panel.test/cryptokeys", {"keytype": "ksk", "active": True})
    assert status == 201 and key in client("GET", f"{ZONES}/panel.test/cryptokeys")[1]
    assert server.ask("panel.test", "DNSKEY", tcp=True).answer[0][0].flags == 257 == key["flags"]
    # Records with a comment, or disabled ones, have no place.
    for more in ({"comments": [{"content": "hi", "account": ""}]}, {"records": [{"content": "192.0.2.9", "disabled": True}]}):
        assert client("PATCH", f"{ZONES}/panel.test", {"rrsets": [changed | more]})[0] == 422
    # Automatic PTR records: the reverse zone comes and stays, the record goes with its address.
    assert client("POST", ZONES, form | {"name": "2.0.192.in-addr.arpa.", "kind": "Master", "account": None})[0] == 201
    pointer = {"name": "3.2.0.192.in-addr.arpa.", "type": "PTR", "changetype": "REPLACE", "ttl": 60, "comments": [],
               "records": [{"content": "www.panel.test.", "disabled": False}]}
    assert client("PATCH", f"{ZONES}/2.0.192.in-addr.arpa", {"rrsets": [pointer]})[0] == 204
    assert server.ask("3.2.0.192.in-addr.arpa", "PTR").answer
    pointer = {"name": "3.2.0.192.in-addr.arpa.", "type": "PTR", "changetype": "DELETE", "records": []}
    assert client("PATCH", f"{ZONES}/2.0.192.in-addr.arpa", {"rrsets": [pointer]})[0] == 204
    assert not server.ask("3.2.0.192.in-addr.arpa", "PTR").answer
    status, refused = client("PUT", f"{ZONES}/panel.test", {"kind": "Slave", "masters": ["192.0.2.1"]})
    assert status == 422 and "cannot become" in refused["error"]
    assert client("GET", f"{ZONES}/0%2F26.2.0.192.in-addr.arpa")[1]["name"] == "0/26.2.0.192.in-addr.arpa."
    status, refused = client("PUT", f"{ZONES}/panel.test/axfr-retrieve")
    assert status == 422, "its button of secondary zones"
    assert client("DELETE", f"{ZONES}/panel.test")[0] == 204
    assert client("GET", f"{ZONES}/panel.test")[0] == 404


def test_the_requests_of_terraform(beside):
    """The order and the members of what the resources powerdns_zone and powerdns_record of the provider 1.5.0 send."""
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    status, found = client("GET", "/api/v1/servers")  # its version of the API
    assert status == 200 and [one["id"] for one in found] == ["localhost"]
    assert client("GET", "/api/v1/servers/localhost")[1]["version"].startswith("4.")
    # powerdns_zone: create, read
    wanted = {"id": "", "name": "tf.test.", "url": "", "kind": "Native", "dnsssec": False, "serial": 0, "account": "admin",
              "nameservers": ["ns1.tf.test.", "ns2.tf.test."], "soa_edit_api": ""}
    status, made = client("POST", ZONES, wanted)
    assert status == 201 and made["id"] == "tf.test.", made
    at = f"{ZONES}/{made['id']}"
    zone = client("GET", at)[1]
    assert (zone["name"], zone["kind"], zone["account"], zone["soa_edit_api"]) == ("tf.test.", "Master", "", "DEFAULT")
    listed = {(rrset["name"], rrset["type"]): rrset for rrset in client("GET", at)[1]["rrsets"]}
    assert {record["content"] for record in listed["tf.test.", "NS"]["records"]} == {"ns1.tf.test.", "ns2.tf.test."}
    # powerdns_record: exists, create, read
    record = lambda content: {"name": "www.tf.test.", "type": "A", "content": content, "ttl": 300, "disabled": False, "set-ptr": False}
    assert ("www.tf.test.", "A") not in listed
    rrset = {"name": "www.tf.test.", "type": "A", "changetype": "REPLACE", "ttl": 300,
             "records": [record("192.0.2.1"), record("192.0.2.2")]}
    assert client("PATCH", at, {"rrsets": [rrset]})[0] == 204
    assert client.rrset("www.tf.test.", "A", zone="tf.test.") == [(300, ["192.0.2.1", "192.0.2.2"])]
    assert {rdata.to_text() for rdata in server.ask("www.tf.test").answer[0]} == {"192.0.2.1", "192.0.2.2"}
    # powerdns_zone: update of kind, account and serials; the provider wants 204
    for change in ({"kind": "Native", "account": "admin"}, {"kind": "Master", "account": ""},
                   {"kind": "Native", "account": "x", "soa_edit_api": "INCREASE"}):
        status, refused = client("PUT", at, {"name": "tf.test.", **change})
        assert (status, refused) == (204, "")
    status, refused = client("PUT", at, {"name": "tf.test.", "kind": "Slave", "account": "admin"})
    assert status == 422 and "cannot become" in refused["error"]
    assert client.rrset("www.tf.test.", "A", zone="tf.test."), "nothing has changed"
    # powerdns_record: delete; powerdns_zone: delete, exists
    assert client("PATCH", at, {"rrsets": [{"name": "www.tf.test.", "type": "A", "changetype": "DELETE", "ttl": 0}]})[0] == 204
    assert not server.ask("www.tf.test").answer
    assert client("DELETE", at)[0] == 204
    assert client("GET", at)[0] == 404 and client("PUT", at, {"kind": "Native"})[0] == 404


def test_a_put_gives_a_secondary_zone_other_primaries(beside, pando, tmp_path):
    """Of the two primaries only the second has the zone."""
    server, program = beside(section=KEYS)
    (tmp_path / "theirs").write_text(ZONE)
    primary = pando([{"name": "moved.test", "file": str(tmp_path / "theirs"), "allow-transfer": [{"address": "127.0.0.0/8"}]}])
    primary.start("moved.test")
    server.config.write_text(server.config.read_text() + (
        f"remotes: [{{name: gone, address: [127.0.0.1@1]}}, {{name: there, address: [127.0.0.1@{primary.port}]}}]\n"))
    program.stop()
    server.control("reload")
    program.start()
    client, writer = Client(program, ADMIN), Client(program, WRITE)
    at = f"{ZONES}/moved.test."
    status, made = client("POST", ZONES, {"name": "moved.test.", "kind": "Slave", "masters": ["127.0.0.1:1"]})
    assert (status, made["kind"], made["masters"], made["rrsets"]) == (201, "Slave", ["127.0.0.1:1"], []), made
    status, waiting = client("GET", at)
    assert (status, waiting["rrsets"], waiting["masters"]) == (200, [], ["127.0.0.1:1"]), "before the first transfer, too"
    there = f"127.0.0.1:{primary.port}"
    assert writer("PUT", at, {"masters": [there]})[0] == 403, "not by a key for records"
    status, refused = client("PUT", at, {"masters": ["127.0.0.2"]})
    assert status == 422 and "no remote" in refused["error"]
    assert client("PUT", at, {"name": "moved.test.", "kind": "Slave", "masters": [there]})[0] == 204
    servers.wait_until("the zone is transferred", lambda: server.ask("www.moved.test").answer)
    assert client("PUT", f"{ZONES}/moved.test/axfr-retrieve")[0] == 200, "PowerDNS-Admin's button"
    zone = client("GET", at)[1]
    assert zone["masters"] == [there] and any(rrset["name"] == "www.moved.test." for rrset in zone["rrsets"])
    assert client("PUT", f"{ZONES}/example.test.", {"masters": [there]})[0] == 422, "a primary zone"
    server.kill()
    assert client("GET", at)[1]["masters"] == [], "nobody knows them then"


def test_a_zone_whose_name_is_no_path_has_a_file_all_the_same(beside):
    server, program = beside(section=KEYS)
    client = Client(program, ADMIN)
    for name in ("64/26.2.0.192.in-addr.arpa.", "\\/\\047.test."):
        status, made = client("POST", ZONES, new_zone(name))
        assert status == 201, made
        assert client("GET", f"{ZONES}/{made['id']}")[1]["rrsets"]
    files = [path.name for path in (server.folder / "journal/zones").iterdir()]
    assert sorted(files) == ["64\\047" + "26.2.0.192.in-addr.arpa.zone", "\\047\\047.test.zone"]
    server.kill()
    server.start("64/26.2.0.192.in-addr.arpa")
