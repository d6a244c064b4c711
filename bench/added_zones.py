#!/usr/bin/python3
"""Zones added while the server runs: as one array, one by one with one or more requests under way, and by several
clients; updates beside them.

    PANDO_BUILD=build/release bench/added_zones.py [ZONES [ROUNDS [FOLDER]]]

The array is added and removed ROUNDS times, so that the percentiles are those of a few hundred updates. FOLDER is on
the disk whose fdatasync counts. Prints zones a second, and times of updates in milliseconds.
"""

import concurrent.futures
import json
import multiprocessing
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(SOURCE / "tests/system"), str(SOURCE / "contrib")]

import dns.query  # noqa: E402
import dns.rcode  # noqa: E402
import dns.update  # noqa: E402

import servers  # noqa: E402
from pando_control import Control  # noqa: E402

ZONE = "$TTL 300\n@ SOA ns1.base.test. admin.base.test. 1 3600 600 86400 300\n@ NS ns1.base.test.\n@ A 192.0.2.1\n" \
       "www A 192.0.2.1\n@ MX 10 www\n"
FORK = multiprocessing.get_context("fork")


def send_updates(port, stop, results):
    """One client that sends updates one after the other, 5 ms apart."""
    times = []
    while not stop.is_set():
        number = len(times)
        change = dns.update.Update("base.test")
        change.replace("busy", 60, "A", f"10.0.{number // 250 % 250}.{number % 250}")
        begun = time.monotonic()
        answer = dns.query.udp(change, "127.0.0.1", port=port, timeout=30)
        times.append(time.monotonic() - begun)
        assert answer.rcode() == dns.rcode.NOERROR
        if number == 0:
            results.send("begun")
        time.sleep(0.005)
    results.send(times)


class Updates:
    """The client in a process of its own while the block runs: this one's work must not keep it waiting."""

    def __init__(self, server):
        self.stop = FORK.Event()
        self.results, sent = FORK.Pipe(duplex=False)
        self.process = FORK.Process(target=send_updates, args=(server.port, self.stop, sent))
        self.times = []

    def __enter__(self):
        self.process.start()
        assert self.results.recv() == "begun"
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.times = self.results.recv()[1:]
        self.process.join()


def summary(times):
    times = sorted(times)
    if not times:
        return "no update"
    at = [times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.99, 1)]
    return f"{len(times)} updates: p50 {at[0]:.1f}, p99 {at[1]:.1f}, longest {at[2]:.1f} ms"


class Turn:
    """The same work, done several times."""

    def __init__(self, server, what, count):
        self.server, self.what, self.count = server, what, count
        self.seconds, self.times = [], []

    def run(self, work):
        with Updates(self.server) as updates:
            begun = time.monotonic()
            work()
            self.seconds.append(time.monotonic() - begun)
        self.times += updates.times
        return self

    def tell(self):
        seconds = sorted(self.seconds)[len(self.seconds) // 2]
        print(f"{self.what}: {self.count} in {seconds:.2f} s, {self.count / seconds:.0f} a second; "
              f"{summary(self.times)}", flush=True)


def main(count, rounds, parent):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="added-", dir=parent))
    (folder / "a.zone").write_text(ZONE)
    file = str(folder / "a.zone")
    server = servers.Pando(folder / "pando", [{"name": "base.test", "file": file,
                                               "allow-update": [{"address": "127.0.0.1"}]}])
    run = server.folder / "run"
    try:
        server.start("base.test")
        with Updates(server) as updates:
            time.sleep(3)
        print(f"nothing else: {summary(updates.times)}", flush=True)

        def zones(prefix, number=count):
            return [{"name": f"{prefix}{i}.added.test", "file": file} for i in range(number)]

        names = [zone["name"] for zone in zones("array")]
        text = json.dumps(zones("array"))

        def array():
            subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "add", "-"],
                           input=text, check=True, text=True, stdout=subprocess.DEVNULL)

        def remove():
            with Control(run) as control:
                control.remove_zones(*names)

        def singly(prefix, number):
            with Control(run) as control:
                for zone in zones(prefix, number):
                    control.add_zones([zone])

        def in_flight(prefix, number):
            with Control(run) as control:
                for result in control.add_each(zones(prefix, number)):
                    assert result["zones_added"] == 1

        def several():
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                list(pool.map(lambda client: singly(f"client{client}-", 100), range(16)))

        added, removed = Turn(server, "one array", count), Turn(server, "removed at once", count)
        for _ in range(rounds):
            added.run(array)
            removed.run(remove)
        added.tell()
        removed.tell()
        Turn(server, "one by one, one client", 1000).run(lambda: singly("single", 1000)).tell()
        Turn(server, "one by one, 16 clients", 1600).run(several).tell()
        Turn(server, "one by one, one client, requests in flight", count).run(lambda: in_flight("flight", count)).tell()
    finally:
        server.clean()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 10_000, int(words[1]) if len(words) > 1 else 10,
         words[2] if len(words) > 2 else None)
