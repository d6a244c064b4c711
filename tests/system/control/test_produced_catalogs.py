"""Catalog zones (RFC 9432) that Pando produces, with Knot, BIND and Pando as consumers."""

import json
import re
import shutil
import signal
import subprocess
import time

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_records import ctl

CATALOG = "catalog.test"
ANYBODY = [{"address": "127.0.0.0/8"}]


def zone_text(address):
    return f"@ 300 SOA ns admin 1 3600 600 1209600 300\n@ 300 NS ns\nns 300 A 192.0.2.1\nwww 300 A {address}\n"


class Producer:
    """A Pando with members, whose configuration changes."""

    def __init__(self, pando, tmp_path):
        self.folder = tmp_path / "zones"
        self.folder.mkdir()
        self.members = {}
        self.server = pando([], workers=1)
        self.notify = []
        self.add("one.test", "192.0.2.11")
        self.add("two.test", "192.0.2.12", "gold")

    def add(self, zone, address, group=None):
        (self.folder / zone).write_text(zone_text(address))
        self.members[zone] = group

    def write(self):
        zones = [{"name": zone, "file": str(self.folder / zone), "catalog": CATALOG,
                  **({"catalog-group": group} if group else {})} for zone, group in self.members.items()]
        remotes = [{"name": f"r{port}", "address": [f"127.0.0.1@{port}"]} for port in self.notify]
        shared = {"allow-transfer": ANYBODY, "notify": [remote["name"] for remote in remotes]}
        self.server.zones, self.server.remotes = zones, remotes
        self.server.write_config()
        self.server.config.write_text(
            self.server.config.read_text() +
            f"templates: {json.dumps([{'name': 'default', **shared}])}\n"
            f"catalogs: [{{zone: {CATALOG}, role: producer}}]\n")

    def start(self):
        self.write()
        self.server.start("one.test")
        self.await_members()
        return self

    def change(self):
        self.write()
        self.server.control("reload")
        self.await_members()

    def shown(self):
        """Member → group, as a client that may transfer the catalog sees it."""
        records = [rrset for rrset in self.records()]
        labels = {}
        for owner, kind, data in records:
            if kind == "PTR":
                labels[owner.split(".")[0]] = data.rstrip(".")
        groups = {owner.split(".")[1]: data.strip('"') for owner, kind, data in records
                  if kind == "TXT" and owner.startswith("group.")}
        return {zone: groups.get(label) for label, zone in labels.items()}

    def records(self):
        found = []
        for message in dns.query.xfr("127.0.0.1", CATALOG, port=self.server.port, relativize=False, lifetime=30):
            for rrset in message.answer:
                found += [(str(rrset.name), dns.rdatatype.to_text(rrset.rdtype), rdata.to_text()) for rdata in rrset]
        return found

    def await_members(self):
        servers.wait_until(f"the catalog has {len(self.members)} members", lambda: self.shown() == self.members, seconds=60)

    def serial(self):
        return self.server.serial(CATALOG)


@pytest.fixture
def producer(pando, tmp_path):
    return Producer(pando, tmp_path)


def address_of(server, zone):
    answer = server.ask(f"www.{zone}")
    return answer.answer[0][0].address if answer is not None and answer.answer else None


def await_served(server, served, absent=()):
    def is_so():
        return (all(address_of(server, zone) == address for zone, address in served.items())
                and all(server.ask(zone, "SOA").rcode() == dns.rcode.REFUSED for zone in absent))
    servers.wait_until(f"{served} are served, {absent} not", is_so, seconds=90)


def follows(consumer, producer):
    await_served(consumer, {"one.test": "192.0.2.11", "two.test": "192.0.2.12"})
    producer.add("three.test", "192.0.2.13")
    del producer.members["one.test"]
    producer.change()
    await_served(consumer, {"two.test": "192.0.2.12", "three.test": "192.0.2.13"}, ["one.test"])


def test_members_follow_the_configuration_as_changesets(producer):
    producer.start()
    assert ("version.catalog.test.", "TXT", '"2"') in producer.records()
    before = producer.serial()
    producer.add("three.test", "192.0.2.13")
    del producer.members["one.test"]
    producer.members["two.test"] = "silver"
    producer.change()
    assert producer.serial() != before
    messages = list(dns.query.xfr("127.0.0.1", CATALOG, rdtype="IXFR", serial=before, port=producer.server.port,
                                  relativize=False, lifetime=30))
    rrsets = [rrset for message in messages for rrset in message.answer]
    assert rrsets[1].rdtype == dns.rdatatype.SOA, "a changeset, and not the whole zone"


def test_a_restart_changes_nothing_and_members_survive_one(producer):
    producer.start()
    serial, shown = producer.serial(), sorted(producer.records())
    for _ in range(2):
        producer.server.kill()
        producer.server.start("one.test")
        producer.await_members()
        time.sleep(1.5)  # it looks once a second, and could find something to change
        assert (producer.serial(), sorted(producer.records())) == (serial, shown)
    producer.server.control("reload")
    time.sleep(1.5)
    assert producer.serial() == serial


def test_a_lost_file_takes_no_member_away(producer):
    producer.start()
    serial = producer.serial()
    file = producer.server.folder / "journal/catalogs" / f"{CATALOG}.zone"
    for end in (producer.server.kill, producer.server.stop):
        end()
        text = file.read_text()
        file.unlink()
        producer.server.start("one.test")
        servers.wait_until("the file is there again", file.exists)
        time.sleep(1.5)
        assert file.read_text() == text
        assert producer.shown() == producer.members and producer.serial() == serial


@pytest.mark.parametrize("point", ["whole-file-written", "whole-file-renamed", "whole-file-named"])
def test_a_manager_that_is_killed_while_it_writes_the_file_is_followed_by_one_that_does(producer, point):
    server = producer.server
    server.crash_at, server.crash_if = point, server.folder / "crash"
    producer.start()
    server.crash_if.touch()
    producer.add("three.test", "192.0.2.13")
    producer.write()
    subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                   capture_output=True, timeout=60)
    servers.wait_until("the manager is killed", lambda: server.process.poll() is not None)
    server.crash_at = server.crash_if = None
    server.start("one.test")
    producer.await_members()


def test_the_status_tells_catalog_and_members(producer):
    producer.start()
    server = producer.server
    catalog = server.control("zone", "status", CATALOG)
    assert (catalog["catalog_role"], catalog["catalog_members"], catalog["catalog"]) == ("producer", 2, "")
    member = server.control("zone", "status", "one.test")
    assert (member["catalog_role"], member["catalog"], member["added"]) == ("", f"{CATALOG}.", False)
    assert server.control("status")["catalogs"] == [{"zone": f"{CATALOG}.", "role": "producer", "problem": ""}]
    assert "producer, 2 members" in ctl(server, "zone", "status", CATALOG)[1]
    assert f"{CATALOG}. (producer)" in ctl(server, "status")[1]


def test_two_catalogs_have_their_own_members(producer):
    producer.start()
    config = producer.server.config
    config.write_text(config.read_text().replace("catalogs: [", "catalogs: [{zone: other.test, role: producer}, ")
                      .replace(f'"catalog": "{CATALOG}", "catalog-group": "gold"', '"catalog": "other.test"'))
    producer.server.control("reload")
    del producer.members["two.test"]
    producer.await_members()
    servers.wait_until("the other has its member", lambda: any(
        rdata.to_text() == "two.test."
        for message in dns.query.xfr("127.0.0.1", "other.test", port=producer.server.port, relativize=False)
        for rrset in message.answer if rrset.rdtype == dns.rdatatype.PTR for rdata in rrset))


def test_zones_that_commands_add_are_members(producer):
    producer.start()
    file = producer.folder / "one.test"
    words = ["zone", "add", "added.test", "--file", str(file), f"catalog={CATALOG}", "catalog-group=gold"]
    code, out, err = ctl(producer.server, *words)
    assert code == 0, out + err
    producer.members["added.test"] = "gold"
    producer.await_members()
    producer.server.kill()
    producer.server.start("one.test")
    producer.await_members()
    code, out, err = ctl(producer.server, "zone", "remove", "added.test")
    assert code == 0, out + err
    del producer.members["added.test"]
    producer.await_members()


def test_a_catalog_leaves_after_the_zones_that_commands_gave_it(producer):
    """Until then the reload is refused, with the zone and the way out."""
    producer.start()
    server = producer.server
    server.control("zone", "add", "added.test", "--file", str(producer.folder / "one.test"), f"catalog={CATALOG}")
    text = server.config.read_text()
    server.config.write_text(text.replace(f"catalogs: [{{zone: {CATALOG}, role: producer}}]\n", "").replace(
        f', "catalog": "{CATALOG}"', "").replace(', "catalog-group": "gold"', ""))
    code, _, err = ctl(server, "reload")
    assert code == 1 and f"zone added.test.: catalog: no catalog '{CATALOG}.' is produced here" in err, err
    way_out = err.strip().rpartition("pandoctl ")[2].split()
    assert way_out == ["zone", "configure", "added.test.", "catalog"]
    assert ctl(server, *way_out)[0] == 0
    assert ctl(server, "reload")[0] == 0
    assert server.ask(CATALOG, "SOA").rcode() == dns.rcode.REFUSED
    assert address_of(server, "added.test") == "192.0.2.11"


@pytest.mark.release
def test_ten_thousand_at_once(producer):
    producer.start()
    file = str(producer.folder / "one.test")
    names = [f"z{number}.test" for number in range(10000)]
    zones = json.dumps([{"name": name, "file": file, "catalog": CATALOG} for name in names])
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(producer.server.config), "zone",
                           "add", "-"], input=zones, text=True, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr
    producer.members.update(dict.fromkeys(names))
    producer.await_members()


def test_nobody_else_changes_the_catalog(producer):
    producer.start()
    message = dns.update.UpdateMessage(CATALOG)
    message.add("x.zones", 0, "PTR", "evil.test.")
    answer = dns.query.udp(message, "127.0.0.1", port=producer.server.port, timeout=10)
    assert answer.rcode() == dns.rcode.REFUSED
    for words in (["zone", "begin", CATALOG], ["zone", "rollback", CATALOG, "1"]):
        code, _, err = ctl(producer.server, *words)
        assert code == 1 and "produced catalog" in err, words
    assert producer.shown() == producer.members


def test_a_catalog_that_cannot_be_written_stays_and_tells_why(producer):
    producer.start()
    folder = producer.server.folder / "journal/catalogs"
    folder.rename(folder.parent / "away")
    folder.write_text("in the way")
    producer.add("three.test", "192.0.2.13")
    producer.write()
    producer.server.control("reload")
    servers.wait_until("the status tells it", lambda: "catalogs/catalog.test.zone" in producer.server.control(
        "zone", "status", CATALOG).get("problem", ""))
    servers.wait_until("so does the log", lambda: "catalog_not_produced" in producer.server.log())
    assert set(producer.shown()) == {"one.test", "two.test"}
    folder.unlink()
    (folder.parent / "away").rename(folder)
    producer.await_members()


def test_config_check_knows_a_catalog_without_its_file(producer):
    producer.write()
    for words in (["config", "check"], ["config", "check", "--zones"]):
        code, out, err = ctl(producer.server, *words)
        assert code == 0 and "warning" not in out + err, out + err


def test_knot_serves_the_members(producer, peers, tmp_path):
    folder = tmp_path / "knot"
    (folder / "db").mkdir(parents=True)  # without it, Knot 3.2 ends by a signal at its first member
    knot = servers.Knot(
        folder, {CATALOG: folder / "catalog.zone"},
        text=f"remote:\n  - id: up\n    address: 127.0.0.1@{producer.server.port}\n"
             "acl:\n  - id: up\n    address: 127.0.0.1\n    action: notify\n",
        zone_options={CATALOG: "    master: up\n    acl: up\n    catalog-role: interpret\n    catalog-template: member\n"})
    text = (folder / "knot.conf").read_text()
    (folder / "knot.conf").write_text(text.replace(
        "zone:\n", "  - id: member\n    master: up\n    acl: up\n"
                   f"    file: \"{folder}/%s.zone\"\nzone:\n", 1))
    producer.notify = [knot.port]
    producer.start()
    peers(knot)
    follows(knot, producer)


def test_bind_serves_the_members(producer, peers, tmp_path):
    folder = tmp_path / "bind"
    primary = f"127.0.0.1 port {producer.server.port}"
    bind = servers.Bind(
        folder, {CATALOG: f"type secondary; primaries {{ {primary}; }}; file \"{folder}/catalog.zone\"; "},
        options=f"catalog-zones {{ zone \"{CATALOG}\" default-primaries {{ {primary}; }} in-memory yes "
                "min-update-interval 1; };")
    producer.notify = [bind.port]
    producer.start()
    peers(bind)
    follows(bind, producer)


def test_pando_serves_the_members_with_the_settings_of_their_groups(producer, pando):
    producer.start()
    consumer = pando([], workers=1, remotes=[{"name": "up", "address": [f"127.0.0.1@{producer.server.port}"]}])
    consumer.config.write_text(
        consumer.config.read_text() + 'templates: [{name: gold, allow-query: [{address: 192.0.2.99}]}]\n'
        f"catalogs: [{{zone: {CATALOG}, role: consumer, primaries: [up], groups: [{{name: gold, template: gold}}]}}]\n")
    consumer.start()
    await_served(consumer, {"one.test": "192.0.2.11"}, ["two.test"])
    producer.members["two.test"] = None
    producer.add("three.test", "192.0.2.13")
    del producer.members["one.test"]
    producer.change()
    consumer.control("zone", "refresh", CATALOG)
    await_served(consumer, {"two.test": "192.0.2.12", "three.test": "192.0.2.13"}, ["one.test"])


@pytest.mark.parametrize("text, reason", [
    ("catalogs: [{zone: c.test, role: producer, primaries: [up]}]", "has no 'primaries'"),
    ("zones: [{name: z.test, file: f, catalog: c.test}]", "no catalog 'c.test.' is produced here"),
])
def test_configurations_without_a_meaning_are_refused(tmp_path, text, reason):
    path = tmp_path / "p.yaml"
    path.write_text("remotes: [{name: up, address: [127.0.0.1]}]\n" + text + "\n")
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(path), "config", "check"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and reason in done.stderr and re.match(rf"{path}:2: ", done.stderr), done.stderr


def test_copies_of_many_members_are_whole_whatever_ends_the_consumer(producer, pando):
    members = {f"z{number}.test": f"192.0.2.{100 + number}" for number in range(60)}
    for zone, address in members.items():
        producer.add(zone, address)
    producer.start()
    consumer = pando([], workers=1, remotes=[{"name": "up", "address": [f"127.0.0.1@{producer.server.port}"]}])
    consumer.config.write_text(consumer.config.read_text() +
                               f"catalogs: [{{zone: {CATALOG}, role: consumer, primaries: [up]}}]\n")
    copies = consumer.folder / "journal/secondary"

    def copied():
        return {zone for zone in members if (copies / f"{zone}.zone").exists()}
    # The catalog has the first copy and a member alone the second one; all others may be written together.
    consumer.crash_at = "zone-copy-written:3"
    consumer.start_until_killed()
    for zone in copied():
        assert members[zone] in (copies / f"{zone}.zone").read_text(), "a copy has its last record"
    consumer.crash_at = None
    consumer.start()
    servers.wait_until("all have copies", lambda: copied() == set(members), 90)
    producer.server.stop()
    consumer.stop()
    shutil.rmtree(consumer.store)
    consumer.start()
    await_served(consumer, members)
