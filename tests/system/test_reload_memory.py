"""What new data of a zone that is served take of the store and of the manager's memory: the changed part, not a
second zone, whatever the order in which its records come."""

import os
import pathlib
import random
import threading

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

pytestmark = pytest.mark.release

NAMES = 200_000  # 100 chunks and more
HEAD = "$TTL 300\n@ SOA ns admin {serial} 3600 5 1209600 300\n@ NS ns\nns A 192.0.2.1\n"


class Zone:
    """A zone file of two records a name, and a manager that serves it."""

    def __init__(self, folder):
        self.path = folder / "large.zone"
        self.lines = [line for i in range(NAMES) for line in (f"n{i:06} A 192.0.2.{i % 250}\n", f"n{i:06} TXT {i}\n")]
        self.serial = 0

    def write(self):
        self.serial += 1
        self.path.write_text(HEAD.format(serial=self.serial) + "".join(self.lines))
        os.utime(self.path, ns=(self.serial * 10**9, self.serial * 10**9))

    def edit_part(self, percent):
        """Gives so many names of each hundred other records, and tells how many records go out and come in."""
        changed = [at for at in range(len(self.lines)) if at // 2 % 100 < percent]
        for at in changed:
            self.lines[at] = self.lines[at].replace(" A 192.0.2.", " A 198.51.100.").replace(" TXT ", " TXT x")
        self.write()
        return 2 * len(changed)

    def edit(self):
        """Takes a name out, changes one and brings one in."""
        self.lines = [line for line in self.lines if not line.startswith(f"n{self.serial:06} ")]
        self.lines[7 * self.serial] = self.lines[7 * self.serial].replace(" A 192.0.2.", " A 198.51.100.")
        self.lines.append(f"new{self.serial} A 192.0.2.7\n")
        self.write()


def chunks(server):
    store = server.control("status")["store"]
    return store["chunks_in_use"], store["chunks_peak"]


def expect_no_second_zone(server, before):
    """`before`: chunks in use when the zone had just been built, and the most there were by then."""
    in_use, peak = before
    assert chunks(server)[1] <= max(peak, in_use * 1.1), (before, chunks(server))


class Heap:
    """The most memory of a manager's own that was resident since this began; its process is looked at every 5 ms."""

    def __init__(self, server):
        self.status = pathlib.Path(f"/proc/{server.process.pid}/status")
        self.before = self.peak = self.now()
        self.ended = threading.Event()
        self.watch = threading.Thread(target=self.look)

    def __enter__(self):
        self.watch.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.watch.join()

    def look(self):
        while not self.ended.wait(0.005):
            self.peak = max(self.peak, self.now())

    def now(self):
        lines = self.status.read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon:"))


def allocates_plainly():
    """A sanitizer's allocator keeps what was freed, and more beside it."""
    return b"san_init" not in (servers.build_folder() / "pando-manager").read_bytes()


def expect_changed_part(server, heap, before, share, records):
    """`before`: chunks in use before; `share`: of the zone that changes, in `records` that go out or come in. New
    names take as much of the store as old ones, the history about twice that, and copied paths of the trie some."""
    assert chunks(server)[1] <= before * (1 + 5 * share) + 10, (before, chunks(server))
    if allocates_plainly():
        assert heap.peak - heap.before <= 900 * records + (8 << 20), (heap.before, heap.peak, records)


@pytest.mark.parametrize("percent", [1, 10, 16, 30])
def test_a_part_of_the_names_is_edited_and_the_edit_taken_back(tmp_path, pando, percent):
    """With a dynamic update to keep: so there is no way but to merge, however much is new."""
    zone = Zone(tmp_path)
    zone.write()
    server = pando([{"name": "large.test", "file": str(zone.path), "allow-update": [{"address": "127.0.0.0/8"}]}],
                   workers=1, limits="{history: 256MiB, history-total: 100%}")
    server.start("large.test")
    update = dns.update.UpdateMessage("large.test")
    update.add("dynamic", 300, "A", "192.0.2.9")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=15).rcode() == dns.rcode.NOERROR
    serial, before = server.serial("large.test"), chunks(server)[0]
    zone.serial = serial
    records = zone.edit_part(percent)
    with Heap(server) as heap:
        server.control("reload", check=False)  # a busy machine may take longer than pandoctl waits
        servers.wait_until("the edit is served", lambda: server.serial("large.test") == zone.serial, 120)
    assert [rrset.to_text() for rrset in server.ask("n000100.large.test").answer] == [
        "n000100.large.test. 300 IN A 198.51.100.100"]
    assert server.ask("n000099.large.test").answer[0].to_text().endswith(" A 192.0.2.99")
    assert server.ask("dynamic.large.test").answer
    expect_changed_part(server, heap, before, percent / 100, records)

    before = chunks(server)[0]
    with Heap(server) as heap:
        server.control("zone", "rollback", "large.test", str(serial), check=False)
        servers.wait_until("it is taken back", lambda: server.serial("large.test") != zone.serial, 120)
    assert server.ask("n000100.large.test").answer[0].to_text().endswith(" A 192.0.2.100")
    assert server.ask("dynamic.large.test").answer
    expect_changed_part(server, heap, before, percent / 100, records)


@pytest.mark.parametrize("order", ["canonical", "shuffled"])
def test_an_edited_file(tmp_path, pando, order):
    zone = Zone(tmp_path)
    zone.write()
    server = pando([{"name": "large.test", "file": str(zone.path)}], workers=1)
    server.start("large.test")
    before = chunks(server)
    assert before[0] > 100
    if order == "shuffled":
        random.Random(1).shuffle(zone.lines)
    for edits in range(1, 3):
        zone.edit()
        server.control("reload")
        servers.wait_until("the edit is served", lambda: server.serial("large.test") == zone.serial, 120)
        assert server.ask(f"new{edits}.large.test").answer
        assert server.ask(f"n{edits:06}.large.test").rcode() == 3
    assert server.control("zone", "status", "large.test")["records"] == 3 + 2 * NAMES - 2 * 2 + 2
    expect_no_second_zone(server, before)


def test_a_zone_that_a_primary_sends_whole(tmp_path, pando):
    """Without a history the primary answers an IXFR with all of the zone."""
    zone = Zone(tmp_path)
    zone.write()
    port = servers.free_port()
    primary = pando([{"name": "large.test", "file": str(zone.path), "notify": ["copy"],
                      "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1, limits="{history: 0}",
                    remotes=[{"name": "copy", "address": [f"127.0.0.1@{port}"]}])
    primary.start("large.test")
    secondary = pando([{"name": "large.test", "primaries": ["up"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                      port=port, workers=1, remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}])
    secondary.start("large.test")
    before = chunks(secondary)
    for _ in range(2):
        zone.edit()
        primary.control("reload")
        servers.wait_until("the secondary has it", lambda: secondary.serial("large.test") == zone.serial, 120)
    counters = secondary.control("status")["counters"]
    assert counters["transfers_in"] == 3 and counters["transfers_in_ixfr"] == 0, counters
    records = [server.control("zone", "status", "large.test")["records"] for server in (secondary, primary)]
    assert records == [3 + 2 * NAMES - 2 * 2 + 2] * 2
    for name in ("new1", "new2", "n000003", "n000004", "n000005"):
        answers = [server.ask(f"{name}.large.test").answer for server in (secondary, primary)]
        assert answers[0] and answers[0] == answers[1], name
    assert secondary.ask("n000002.large.test").rcode() == 3
    expect_no_second_zone(secondary, before)
