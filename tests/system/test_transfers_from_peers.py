"""Secondary zones of BIND, Knot and NSD: differences from updates and from edited files, serials that wrap,
restarts of the primary, and journals that it has lost."""

import os
import signal
import subprocess
import time

import pytest

import servers

LAST = 0xFFFFFFFF
ALWAYS_IXFR = "max-ixfr-ratio unlimited;"  # BIND sends small zones whole otherwise

ZONE = """$TTL 300
@ SOA ns admin {serial} 1 1 86400 300
@ NS ns
ns A 192.0.2.1
www A {address}
"""


def text_of(serial, *more, address="192.0.2.10"):
    return ZONE.format(serial=serial, address=address) + "".join(f"{line}\n" for line in more)


class Primary:
    """A peer that serves "example" from a file; edit() has it read the file anew."""

    def __init__(self, kind, tmp_path, peers, serial):
        self.path = tmp_path / "primary.zone"
        self.path.write_text(text_of(serial))
        if kind == "bind":
            self.server = servers.Bind(tmp_path / "bind", {"example": (
                f'type primary; file "{self.path}"; ixfr-from-differences yes; allow-transfer {{ any; }};')},
                options=ALWAYS_IXFR)
        elif kind == "nsd":
            self.server = servers.Nsd(tmp_path / "nsd", {"example": self.path}, zone_options=(
                "  provide-xfr: 127.0.0.1 NOKEY\n  store-ixfr: yes\n  create-ixfr: yes\n  ixfr-number: 10\n"))
        else:
            (tmp_path / "knot/db").mkdir(parents=True)
            self.server = servers.Knot(
                tmp_path / "knot", {"example": self.path},
                text="acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n",
                zone_options={"example": "    acl: all\n    zonefile-load: difference\n    journal-content: changes\n"})
        self.edits = 0
        peers(self.server, "example")

    def edit(self, text, serial):
        self.path.write_text(text)
        self.edits += 1
        later = time.time() + 2 * self.edits  # BIND looks at whole seconds
        os.utime(self.path, (later, later))
        self.server.process.send_signal(signal.SIGHUP)
        servers.wait_until("the primary has read its file", lambda: self.server.serial("example") == serial)


def follow(pando, port):
    server = pando([{"name": "example", "primaries": ["upstream"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                   remotes=[{"name": "upstream", "address": [f"127.0.0.1@{port}"]}])
    return server.start("example")


def has_followed(secondary, primary):
    servers.wait_until("the secondary has the primary's serial",
                       lambda: secondary.serial("example") == primary.serial("example"), 60)
    assert secondary.records("example") == primary.records("example")


def counters(server):
    return server.control("status")["counters"]


@pytest.mark.parametrize("kind", ["bind", "knot", "nsd"])
def test_edits_of_the_primarys_file_come_as_differences_across_the_wrap(tmp_path, pando, peers, kind):
    primary = Primary(kind, tmp_path, peers, LAST - 1)
    secondary = follow(pando, primary.server.port)
    steps = [(LAST, ["one A 192.0.2.1"]), (3, ["one A 192.0.2.2", "two TXT second"]), (4, ["two TXT second"])]
    for serial, more in steps:  # the serial goes from 2^32 - 2 over its end (RFC 1982)
        primary.edit(text_of(serial, *more), serial)
        has_followed(secondary, primary.server)
    seen = counters(secondary)
    assert seen["transfers_in_ixfr"] == len(steps) and seen["transfers_in_fallbacks"] == 0, seen


@pytest.mark.parametrize("kind", ["bind", "knot", "nsd"])
def test_a_restarted_primary_is_followed(tmp_path, pando, peers, kind):
    primary = Primary(kind, tmp_path, peers, 1)
    secondary = follow(pando, primary.server.port)
    primary.edit(text_of(2, "one A 192.0.2.1"), 2)
    has_followed(secondary, primary.server)
    primary.server.stop()
    primary.path.write_text(text_of(3, "three A 192.0.2.3"))  # edited while nobody served it
    primary.path.with_name("primary.zone.jnl").unlink(missing_ok=True)  # BIND would not start beside it
    primary.server.start("example")
    has_followed(secondary, primary.server)
    primary.edit(text_of(4, "four A 192.0.2.4"), 4)
    has_followed(secondary, primary.server)


def test_a_primary_that_lost_its_journal_sends_the_whole_zone(tmp_path, pando, peers):
    path = tmp_path / "primary.zone"
    path.write_text(text_of(1))
    bind = peers(servers.Bind(tmp_path / "bind", {"example": (
        f'type primary; file "{path}"; allow-update {{ any; }}; allow-transfer {{ any; }};')},
        options=ALWAYS_IXFR + " flush-zones-on-shutdown yes;"), "example")

    def update(*lines):
        text = f"server 127.0.0.1 {bind.port}\nzone example\n" + "".join(f"update {line}\n" for line in lines) + "send\n"
        done = subprocess.run(["nsupdate"], input=text, text=True, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr

    secondary = follow(pando, bind.port)
    update("add one.example 60 A 192.0.2.1")
    update("add two.example 60 A 192.0.2.2")
    has_followed(secondary, bind)
    assert counters(secondary)["transfers_in_ixfr"] >= 1
    bind.stop()  # it writes its file then
    path.with_name(path.name + ".jnl").unlink()
    text = path.read_text()
    assert "two" in text
    path.write_text(text.replace(f"{secondary.serial('example')} ", "9 ", 1) + "three.example. 60 A 192.0.2.3\n")
    bind.start("example")
    has_followed(secondary, bind)
    seen = counters(secondary)
    assert seen["transfers_in"] > seen["transfers_in_ixfr"] + 1 and seen["transfers_in_fallbacks"] == 0, seen
    update("delete one.example")
    has_followed(secondary, bind)
    assert counters(secondary)["transfers_in_ixfr"] == seen["transfers_in_ixfr"] + 1


@pytest.mark.parametrize("kind", ["knot", "nsd"])
def test_a_primary_of_files_that_lost_its_journal_sends_the_whole_zone(tmp_path, pando, peers, kind):
    primary = Primary(kind, tmp_path, peers, 1)
    secondary = follow(pando, primary.server.port)
    primary.edit(text_of(2, "one A 192.0.2.1"), 2)
    has_followed(secondary, primary.server)
    seen = counters(secondary)
    assert seen["transfers_in_ixfr"] == 1
    primary.server.stop()
    journal = tmp_path / "knot/db" if kind == "knot" else tmp_path
    lost = [path for path in journal.rglob("*") if path.is_file() and (kind == "knot" or ".ixfr" in path.name)]
    assert lost
    for path in lost:
        path.unlink()
    primary.path.write_text(text_of(7, "seven A 192.0.2.7"))
    primary.server.start("example")
    has_followed(secondary, primary.server)
    after = counters(secondary)
    assert after["transfers_in_ixfr"] == 1 and after["transfers_in"] > seen["transfers_in"], after
    primary.edit(text_of(8, "eight A 192.0.2.8"), 8)
    has_followed(secondary, primary.server)
    assert counters(secondary)["transfers_in_ixfr"] == 2
