"""A restarted host with an image and zone lists: an image of this very configuration is served before the lists are
read, any other one is not. As in test_zone_lists.py the thread that reads them later is held."""

import os
import shutil
import subprocess

import dns.rcode
import pytest

import servers
from test_image import IMAGE
from test_zone_lists import COUNT, LAST, Listed


class ListedHost(Listed):
    def __init__(self, make, folder):
        super().__init__(make, folder, store_extra=IMAGE)

    def checkpoint(self):
        self.server.control("store", "checkpoint")

    def image_files(self):
        return {path: path.read_bytes() for path in self.server.folder.glob("zones.image*")}

    def lose_memory(self):
        self.kill_all()
        shutil.rmtree(self.server.store)
        os.truncate(self.server.log_path, 0)

    def start_with_lists_first(self):
        """A thread that read them later would be held for ever."""
        self.hold.touch()
        self.server.start(LAST)
        assert self.status()["zone_lists"] == "read"
        assert "image_restored" in self.server.log()

    def replace_first(self):
        self.write(self.lines[1:] + [f"new.test {self.plain}"])


@pytest.fixture
def host(pando, tmp_path):
    made = ListedHost(pando, tmp_path)
    yield made
    made.hold.unlink(missing_ok=True)


def test_an_image_of_this_configuration_is_served_before_the_lists_are_read(host):
    host.start()
    host.checkpoint()
    assert host.update("behind") == dns.rcode.NOERROR
    host.lose_memory()
    host.start_held()
    assert "image_restored" in host.server.log()
    for zone in ("z0.test", LAST):
        assert host.rcode(zone) == dns.rcode.NOERROR
    assert host.has("behind"), "the journal is newer than the image"
    host.read()
    host.loaded()
    assert host.update("after") == dns.rcode.NOERROR
    assert host.status()["zones"] == COUNT + 1
    host.server.control("store", "check")
    assert "zone_loaded" not in host.server.log()


@pytest.mark.parametrize("change", ["list", "time", "configuration"])
def test_an_image_of_another_configuration_waits_for_the_lists(host, change):
    host.start()
    host.checkpoint()
    host.lose_memory()
    if change == "list":
        host.replace_first()
    elif change == "time":
        os.utime(host.list)
    else:
        with open(host.server.config, "a") as config:
            config.write("# as it was\n")
    host.start_with_lists_first()
    if change == "list":
        assert host.rcode("z0.test") == dns.rcode.REFUSED
    host.loaded()
    if change == "list":
        assert host.rcode("new.test") == dns.rcode.NOERROR


def test_an_image_from_before_the_last_reload_waits_for_the_lists(host):
    host.start()
    host.checkpoint()
    before = host.image_files()
    host.replace_first()
    assert host.server.control("reload")["zones_added"] == 1
    host.lose_memory()
    for path in host.image_files():
        path.unlink()
    for path, octets in before.items():
        path.write_bytes(octets)
    good = host.list.read_text()
    host.list.write_text("one two three four\n")
    ended = subprocess.run(host.server.command(), env=host.server.environment(), cwd=host.server.folder,
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 78 and "a line is NAME FILE [TEMPLATE]" in ended.stderr
    assert "image_not_used" not in ended.stderr, "it is not to blame"
    assert not (host.server.store / "zones.store").exists() and host.image_files() == before
    host.list.write_text(good)
    host.start_with_lists_first()
    assert host.rcode("z0.test") == dns.rcode.REFUSED
    host.loaded()
    assert host.rcode("new.test") == dns.rcode.NOERROR


def test_a_reload_of_other_zones_is_in_the_image_soon(host):
    host.start()
    host.checkpoint()
    version = host.status()["image"]["version"]
    host.replace_first()
    assert host.server.control("reload")["zones_added"] == 1
    servers.wait_until("a checkpoint", lambda: host.status()["image"]["version"] > version)
    host.lose_memory()
    host.start_held()
    assert host.rcode("z0.test") == dns.rcode.REFUSED
    assert host.rcode("new.test") == dns.rcode.NOERROR
