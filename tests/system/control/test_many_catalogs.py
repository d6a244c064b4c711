"""Many catalogs (RFC 9432) take no more time than one."""

import pytest

import servers

CATALOGS = [f"c{number}.example" for number in range(60)]
MEMBERS = [f"{label}.members.{catalog}" for catalog in CATALOGS for label in ("one", "two")]
LOCAL = [{"address": "127.0.0.0/8"}]

# One catalog a second would need a minute, and machines differ.
MANY_SECONDS = 30


def catalog_text(serial, labels):
    return (f"@ 0 SOA invalid. invalid. {serial} 3600 600 2147483646 0\n@ 0 NS invalid.\nversion 0 TXT \"2\"\n"
            + "".join(f"{label}.zones 0 PTR {label}.members\n" for label in labels))


@pytest.fixture
def primary(pando, tmp_path):
    """All catalogs have one file, and their members another one."""
    (tmp_path / "catalog.zone").write_text(catalog_text(1, ["one"]))
    (tmp_path / "member.zone").write_text(
        "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n")
    zones = [{"name": zone, "file": str(tmp_path / name), "allow-transfer": LOCAL, "notify": ["down"]}
             for zones, name in ((CATALOGS, "catalog.zone"), (MEMBERS, "member.zone")) for zone in zones]
    port = servers.free_port()
    server = pando(zones, workers=1, remotes=[{"name": "down", "address": [f"127.0.0.1@{port}"]}])
    server.consumer = port
    return server.start(CATALOGS[0])


def test_members_of_many_catalogs_are_served_within_seconds(pando, primary, tmp_path):
    server = pando([], port=primary.consumer, remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}])
    with server.config.open("a") as out:
        out.write("catalogs:\n" + "".join(
            f"  - {{zone: {catalog}, role: consumer, primaries: [up], removal-grace: 0}}\n" for catalog in CATALOGS))
    server.write_config = lambda: None
    server.start()

    def are_served(label, is_served=True):
        return lambda: all((server.serial(f"{label}.members.{catalog}") == 1) == is_served for catalog in CATALOGS)
    servers.wait_until("all first members are served", are_served("one"), MANY_SECONDS)
    (tmp_path / "catalog.zone").write_text(catalog_text(2, ["one", "two"]))
    primary.control("reload")
    servers.wait_until("all catalogs have changed together", are_served("two"), MANY_SECONDS)
    (tmp_path / "catalog.zone").write_text(catalog_text(3, ["two"]))
    primary.control("reload")
    servers.wait_until("members have left", are_served("one", False), MANY_SECONDS)

    text = server.config.read_text()
    server.config.write_text("templates: [{name: other, serial-policy: date}]\n"
                             + text.replace("removal-grace: 0", "removal-grace: 0, template: other"))
    server.control("reload")
    servers.wait_until("the reload has reached all catalogs", lambda: len(
        [line for line in server.log_path.read_text().splitlines()
         if " catalog_applied " in line and " changed=1 " in line]) == len(CATALOGS), MANY_SECONDS)
