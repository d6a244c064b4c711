#!/usr/bin/python3
"""Zones added while the server runs: as one array, one by one, and by several clients; updates beside them.

    PANDO_BUILD=build/release bench/added_zones.py [ZONES [FOLDER]]

FOLDER is on the disk whose fdatasync counts. Prints zones a second, and percentiles of updates in milliseconds.
"""

import concurrent.futures
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import threading
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


class Updates:
    """One client that sends updates one after the other, 5 ms apart, while the block runs."""

    def __init__(self, server):
        self.server, self.times, self.stop = server, [], threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        number = 0
        while not self.stop.is_set():
            number += 1
            change = dns.update.Update("base.test")
            change.replace("busy", 60, "A", f"10.0.{number // 250 % 250}.{number % 250}")
            begun = time.monotonic()
            answer = dns.query.udp(change, "127.0.0.1", port=self.server.port, timeout=30)
            assert answer.rcode() == dns.rcode.NOERROR
            self.times.append(time.monotonic() - begun)
            time.sleep(0.005)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def text(self):
        times = sorted(self.times)
        if not times:
            return "no update"
        at = [times[min(len(times) - 1, int(len(times) * share))] * 1000 for share in (0.5, 0.99, 1)]
        return f"{len(times)} updates: p50 {at[0]:.1f}, p99 {at[1]:.1f}, most {at[2]:.1f} ms"


def measure(server, what, count, work):
    with Updates(server) as updates:
        begun = time.monotonic()
        work()
        seconds = time.monotonic() - begun
    print(f"{what}: {count} in {seconds:.2f} s, {count / seconds:.0f} a second; {updates.text()}", flush=True)


def main(count, parent):
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
        print(f"nothing else: {updates.text()}", flush=True)

        def zones(prefix, number=count):
            return [{"name": f"{prefix}{i}.added.test", "file": file} for i in range(number)]

        def array():
            subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "add", "-"],
                           input=json.dumps(zones("array")), check=True, text=True, stdout=subprocess.DEVNULL)

        def singly(prefix, number):
            with Control(run) as control:
                for zone in zones(prefix, number):
                    control.add_zones([zone])

        def several():
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                list(pool.map(lambda client: singly(f"client{client}-", 100), range(16)))

        def remove():
            with Control(run) as control:
                control.remove_zones(*[zone["name"] for zone in zones("array")])

        measure(server, "one array", count, array)
        measure(server, "one by one, one client", 1000, lambda: singly("single", 1000))
        measure(server, "one by one, 16 clients", 1600, several)
        measure(server, "removed at once", count, remove)
    finally:
        server.clean()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000, sys.argv[2] if len(sys.argv) > 2 else None)
