"""What one of very many zones costs to update and to look at, and what a reload of all of them does to updates. Run it as

  PANDO_BUILD=build/release bench/updates.py zones [--zones N] [--rate N] [--seconds N]

All zones but the updated one share a file of five records. Rows: one zone alone; one of many; the same while a reload goes
through all zones, none of which has changed. Columns: updates answered per second, their times from when each was due, and
processor time of the manager for each (idle work of the many zones and the reload included).
"""

import argparse
import threading
import time

import octets
import peers
import updates


def paced(server, zone, count, rate):
    """A row's figures: updates per second, percentiles of their times in ms, manager's CPU seconds for each."""
    before, started = sum(peers.cpu([server.process.pid])), time.monotonic()
    result = updates.load(server, count, 64, str(rate), zone=zone)
    if result.get("answered") != count:
        raise SystemExit(f"{server.name}: {result}")
    spent = sum(peers.cpu([server.process.pid])) - before
    return count / (time.monotonic() - started), result, spent / count


def show(name, figures):
    rate, result, spent = figures
    times = " | ".join(f"{result[key]:.2f}" for key in ("p50", "p99", "max"))
    print(f"| {name} | {rate:,.0f} | {times} | {spent * 1e6:,.0f} |", flush=True)


def time_of(server, *command):
    started = time.monotonic()
    server.control("--timeout", "600", *command)
    return (time.monotonic() - started) * 1000


class Reload(threading.Thread):
    """`pandoctl reload` to its end; pandoctl returns when all files have been looked at."""

    def __init__(self, server):
        super().__init__()
        self.server, self.seconds, self.cpu = server, 0.0, 0.0

    def run(self):
        before = sum(peers.cpu([self.server.process.pid]))
        self.seconds = time_of(self.server, "reload") / 1000
        self.cpu = sum(peers.cpu([self.server.process.pid])) - before


def run(folder, words):
    parser = argparse.ArgumentParser(prog="bench/updates.py zones", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zones", type=int, default=1_000_000)
    parser.add_argument("--rate", type=int, default=200, help="updates per second")
    parser.add_argument("--seconds", type=int, default=20, help="of each row")
    options = parser.parse_args(words)
    count = options.rate * options.seconds
    print(f"| {options.rate} updates/s for {options.seconds} s | answered/s | p50 ms | p99 ms | max ms | manager's CPU us each |")
    print("|---|---:|---:|---:|---:|---:|")
    for zones in (1, options.zones):
        server, zone = octets.start_pando(folder / f"pando-{zones}", zones)
        try:
            updates.load(server, 1000, 64, zone=zone)
            show(f"one of {zones:,}", paced(server, zone, count, options.rate))
            if zones == 1:
                continue
            alone = Reload(server)
            alone.run()
            reload = Reload(server)
            reload.start()
            show("the same, beside a reload", paced(server, zone, count, options.rate))
            reload.join()
            print(f"\nA reload takes {alone.seconds:.2f} s and {alone.cpu:.2f} CPU s, beside updates {reload.seconds:.2f} s; "
                  f"`status` {time_of(server, 'status'):.0f} ms, `zone status NAME` "
                  f"{time_of(server, 'zone', 'status', zone):.0f} ms, the start of pandoctl included.", flush=True)
        finally:
            server.clean()
