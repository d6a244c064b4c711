#!/usr/bin/env python3
"""What a reload takes in memory and time when a part of a large zone's file was edited. Prints a Markdown table.

  PANDO_BUILD=build/release bench/edits.py [NAMES [EDITED]...]

The zone has one A record for each of NAMES (700,000), EDITED of them, spread over the zone, get another address. Memory is
looked at each 5 ms: the manager's own (private pages of its heap and stacks, not the store's), and the store's chunks.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers  # noqa: E402
import servers  # noqa: E402

CHUNK = 65536


def write_zone(path, names, edited, serial):
    step = names // edited if edited else 0
    with open(path, "w") as out:
        out.write(f"$ORIGIN example.\n$TTL 300\n@ SOA ns admin {serial} 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
        out.writelines(f"n{i} A 192.0.2.{serial % 200 if step and i % step == 0 else 1}\n" for i in range(names))


def own_memory(pid):
    return int(re.search(r"^RssAnon:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1]) * 1024


class Watch:
    """The most that was seen while it is entered."""

    def __init__(self, server):
        self.pid, self.chunks = server.process.pid, pathlib.Path(server.store) / "zones.store"
        self.own = self.store = 0
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def look(self):
        self.own = max(self.own, own_memory(self.pid))
        self.store = max(self.store, self.chunks.stat().st_blocks * 512)

    def run(self):
        while not self.ended.wait(0.005):
            self.look()

    def __enter__(self):
        self.look()
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.ended.set()
        self.thread.join()


def row(folder, names, edited, serial):
    server = peers.make("pando", folder / f"edit-{edited}", {"example": folder / "example.zone"})
    server.size_limit = "4GiB"
    server.write_config()
    try:
        write_zone(folder / "example.zone", names, 0, 1)
        server.start("example", 600)
        time.sleep(1)
        measure(server, folder / "example.zone", names, edited, serial)
    finally:
        server.clean()


def measure(server, file, names, edited, serial):
    pid = server.process.pid
    at_rest, before = own_memory(pid), sum(peers.cpu([pid]))
    store = server.control("status")["store"]["chunks_in_use"] * CHUNK
    write_zone(file, names, edited, serial)
    with Watch(server) as watch:
        started = time.monotonic()
        subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "--timeout", "600", "reload"],
                       check=True, capture_output=True)
        wall = time.monotonic() - started
    spent = sum(peers.cpu([pid])) - before
    assert server.serial("example") == serial
    print(f"| {edited:,} | {at_rest / 1e6:.0f}, {watch.own / 1e6:.0f} | {(watch.own - at_rest) / edited:.0f} | "
          f"{store / 1e6:.1f}, {watch.store / 1e6:.1f} | {wall:.2f} | {spent:.2f} |", flush=True)


def main():
    numbers = [int(word) for word in sys.argv[1:]]
    names, edits = numbers[0] if numbers else 700_000, numbers[1:] or [7_000, 70_000, 95_000, 170_000, 300_000]
    print(f"| of {names:,} names edited | manager's memory before, at most, MB | octets per name edited | "
          "store before, at most, MB | s | CPU s |\n|---:|---:|---:|---:|---:|---:|")
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as folder:
        for serial, edited in enumerate(edits, 2):
            row(pathlib.Path(folder), names, edited, serial)


if __name__ == "__main__":
    main()
