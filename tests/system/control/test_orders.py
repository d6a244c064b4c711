"""Orders to one zone: refresh, retransfer, notify."""

import shutil

import pytest

import servers

from test_records import ctl

ZONE = "ordered.test"
TEXT = """$TTL 300
@ SOA ns1 admin {serial} 3600 600 864000 60
@ NS ns1
ns1 A 192.0.2.1
www A {address}
"""
SECONDARY = {"name": ZONE, "primaries": ["upstream"]}


@pytest.fixture
def primary(pando, tmp_path):
    """A primary that tells nobody of its changes."""
    file = tmp_path / "zone"
    file.write_text(TEXT.format(serial=10, address="192.0.2.10"))
    made = pando([{"name": ZONE, "file": str(file), "allow-transfer": [{"address": "127.0.0.1"}],
                   "allow-update": [{"address": "127.0.0.1"}]}])
    made.file = file
    return made.start(ZONE)


@pytest.fixture
def secondary(pando, primary):
    return pando([SECONDARY], remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}]).start(ZONE)


def address(server):
    return server.ask(f"www.{ZONE}").answer[0][0].to_text()


def test_a_refresh_asks_the_primary_at_once(primary, secondary):
    primary.file.write_text(TEXT.format(serial=11, address="192.0.2.11"))
    primary.control("reload")
    assert secondary.serial(ZONE) == 10, "nobody told it"
    assert ctl(secondary, "zone", "refresh", ZONE) == (0, "", "")
    servers.wait_until("the change is there", lambda: secondary.serial(ZONE) == 11)
    assert address(secondary) == "192.0.2.11"


@pytest.mark.parametrize("serial", [10, 3])
def test_a_retransfer_takes_any_serial(primary, secondary, serial, tmp_path, pando):
    """The primary is made anew, with other data under the same serial or an earlier one."""
    primary.stop()
    shutil.rmtree(primary.store)
    file = tmp_path / "other"
    file.write_text(TEXT.format(serial=serial, address="192.0.2.99"))
    other = pando([{"name": ZONE, "file": str(file), "allow-transfer": [{"address": "127.0.0.1"}]}], port=primary.port)
    other.start(ZONE)
    assert ctl(secondary, "zone", "refresh", ZONE)[0] == 0
    if serial < 10:
        servers.wait_until("the primary is behind", lambda: "behind" in secondary.control("zone", "status", ZONE)["problem"])
    assert address(secondary) == "192.0.2.10"
    assert ctl(secondary, "zone", "retransfer", ZONE) == (0, "", "")
    servers.wait_until("the primary's data are there", lambda: address(secondary) == "192.0.2.99")
    assert secondary.serial(ZONE) == serial
    servers.wait_until("the problem is gone", lambda: secondary.control("zone", "status", ZONE)["problem"] == "")
    assert ctl(secondary, "zone", "refresh", ZONE)[0] == 0, "the next one is an ordinary one"


def test_a_notify_is_sent_at_once(pando, tmp_path):
    file = tmp_path / "zone"
    file.write_text(TEXT.format(serial=10, address="192.0.2.10"))
    port = servers.free_port()
    primary = pando([{"name": ZONE, "file": str(file), "notify": ["downstream"],
                      "allow-transfer": [{"address": "127.0.0.1"}]}],
                    remotes=[{"name": "downstream", "address": [f"127.0.0.1@{port}"]}]).start(ZONE)
    secondary = pando([SECONDARY], port=port,
                      remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}]).start(ZONE)
    servers.wait_until("the start's NOTIFY is over",
                       lambda: "NOERROR" in str(primary.control("zone", "status", ZONE)["notified"]))
    before = secondary.control("status")["counters"]["notifies"]
    assert ctl(primary, "zone", "notify", ZONE) == (0, "", "")
    servers.wait_until("the NOTIFY has come", lambda: secondary.control("status")["counters"]["notifies"] > before)


@pytest.mark.parametrize("verb, name, reason", [
    ("refresh", ZONE, "is a primary zone"), ("retransfer", ZONE, "is a primary zone"),
    ("refresh", "absent.test", "no zone absent.test."), ("retransfer", "absent.test", "no zone absent.test."),
    ("notify", ZONE, "no remotes to notify"), ("notify", "absent.test", "no zone absent.test."),
    ("notify", "a..b", "a..b")])
def test_wrong_orders_are_refused_with_a_reason(primary, verb, name, reason):
    code, out, err = ctl(primary, "zone", verb, name)
    assert code == 1 and out == "" and reason in err
