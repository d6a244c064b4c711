"""Members of a catalog (RFC 9432) take no names of others: of the configuration, of commands, of other catalogs."""

import dns.query
import dns.update
import pytest

import servers

LOCAL = [{"address": "127.0.0.0/8"}]
ZONE = "@ 300 SOA ns admin 1 3600 600 1209600 300\n@ 300 NS ns\nns 300 A 192.0.2.1\n"
CATALOG = "@ 0 SOA invalid. invalid. 1 3600 600 2147483646 0\n@ 0 NS invalid.\nversion 0 TXT \"2\"\n"


def catalog_text(members):
    return CATALOG + "".join(f"id{number}.zones 0 PTR {zone}.\n" for number, zone in enumerate(members))


def primary_of(pando, folder, catalogs):
    """A primary of these catalogs and of their members."""
    folder.mkdir(exist_ok=True)
    (folder / "member.zone").write_text(ZONE + "@ 300 TXT \"from the catalog\"\n")
    zones = []
    for catalog, members in catalogs.items():
        (folder / f"{catalog}.zone").write_text(catalog_text(members))
        zones.append({"name": catalog, "file": str(folder / f"{catalog}.zone"),
                      "allow-transfer": LOCAL, "allow-update": LOCAL})
        zones += [{"name": zone, "file": str(folder / "member.zone"), "allow-transfer": LOCAL} for zone in members]
    return pando(zones, workers=1).start(next(iter(catalogs)))


class Consumer:
    def __init__(self, pando, primary, own, catalogs):
        """`catalogs`: the keys of each besides role and primaries, as text."""
        self.server = pando(own, remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}])
        self.catalogs = catalogs
        self.write_zones = self.server.write_config
        self.server.write_config = self.write
        self.write()
        self.server.start()

    def write(self):
        self.write_zones()
        lines = "".join(f"  - {{zone: {name}, role: consumer, primaries: [up]{more}}}\n"
                        for name, more in self.catalogs.items())
        self.server.config.write_text(f"{self.server.config.read_text()}catalogs:\n{lines}")

    def reload(self):
        self.write()
        self.server.control("reload")

    def problem(self, catalog):
        return self.server.control("zone", "status", catalog).get("problem", "")

    def is_member(self, zone):
        answer = self.server.ask(zone, "TXT")
        return bool(answer.answer) and answer.answer[0].name.to_text() == f"{zone}."

    def await_members(self, *zones):
        servers.wait_until(f"{zones} are served", lambda: all(self.is_member(zone) for zone in zones), 60)


@pytest.fixture
def own_zone(tmp_path):
    path = tmp_path / "mine.zone"
    path.write_text(ZONE + "www 300 TXT \"the operator's\"\n")
    return {"name": "mine.example", "file": str(path)}


def operators_text(consumer):
    answer = consumer.server.ask("www.mine.example", "TXT")
    return answer.answer[0][0].to_text() if answer.answer else answer.rcode()


def test_a_member_inside_the_operators_zone_is_refused_unless_it_is_allowed(pando, tmp_path, own_zone):
    primary = primary_of(pando, tmp_path / "primary", {"c.test": ["www.mine.example", "unloaded.mine.example", "a.test"]})
    consumer = Consumer(pando, primary, [own_zone], {"c.test": ""})
    consumer.await_members("a.test")
    servers.wait_until("the members are refused", lambda: "2 of its members not taken" in consumer.problem("c.test"))
    assert "www.mine.example.: the configuration has mine.example. above it" in consumer.problem("c.test")
    assert operators_text(consumer) == '"the operator\'s"'
    assert consumer.server.ask("unloaded.mine.example", "A").rcode() == 3  # NXDOMAIN of the operator's zone
    told = [line for line in consumer.server.log().splitlines() if " catalog_member_not_taken " in line]
    assert {"zone=www.mine.example." in line for line in told} == {True, False}

    consumer.catalogs["c.test"] = ", members-below: [www.mine.example, a.test]"
    consumer.reload()
    consumer.await_members("a.test", "www.mine.example")
    servers.wait_until("only one is refused", lambda: consumer.problem("c.test") == (
        "1 of its members not taken: unloaded.mine.example.: the configuration has mine.example. above it"))


def test_members_that_an_added_zone_comes_above_stay_until_members_below_is_set(pando, tmp_path, own_zone):
    primary = primary_of(pando, tmp_path / "primary", {"c.test": ["www.mine.example", "a.test", "b.test"]})
    consumer = Consumer(pando, primary, [], {"c.test": ""})
    consumer.await_members("www.mine.example", "a.test", "b.test")
    consumer.server.control("zone", "add", "mine.example", "--file", own_zone["file"])
    servers.wait_until("the member is retained", lambda: consumer.problem("c.test") == (
        "1 of its members retained: www.mine.example.: a command has added mine.example. above it"), 60)
    assert operators_text(consumer) == 0 or consumer.is_member("a.test")
    assert " catalog_member_retained " in consumer.server.log()
    consumer.server.kill()
    consumer.server.start()
    servers.wait_until("also after a restart", lambda: "retained" in consumer.problem("c.test"), 60)
    consumer.catalogs["c.test"] = ", members-below: [.]"
    consumer.reload()
    servers.wait_until("the operator's record is there", lambda: operators_text(consumer) == '"the operator\'s"', 60)
    consumer.await_members("a.test", "b.test")


def test_a_catalog_takes_no_names_below_another_ones_members(pando, tmp_path):
    primary = primary_of(pando, tmp_path / "primary", {"c.test": ["customer.example"], "d.test": ["other.example"]})
    consumer = Consumer(pando, primary, [], {"c.test": "", "d.test": ""})
    consumer.await_members("customer.example", "other.example")
    message = dns.update.UpdateMessage("d.test")
    message.add("evil.zones", 0, "PTR", "www.customer.example.")
    assert dns.query.tcp(message, "127.0.0.1", port=primary.port, timeout=20).rcode() == 0
    consumer.server.control("zone", "refresh", "d.test")
    servers.wait_until("it is refused", lambda: consumer.problem("d.test") == (
        "1 of its members not taken: www.customer.example.: catalog c.test. has customer.example. above it"), 60)
    assert consumer.server.ask("www.customer.example", "TXT").rcode() == 3
