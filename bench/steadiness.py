#!/usr/bin/env python3
"""How steady answers are: the time to an answer at a quarter, a half and three quarters of the load that saturates a
server, alone and beside other work, of all servers in interleaved turns. Prints a table, and draws the histograms.

  PANDO_BUILD=build/release bench/steadiness.py [--nsd DIR] [--knot DIR] [--bind DIR] [--turns N] [--seconds S]
                                                [--names N] [--svg FILE] [SERVER]...

All processes of a server run on one processor, and all generators on another one. The load that saturates is what
dnsperf gets from a server that has nothing else to do. Queries are sent in bursts of four at random times, whatever the
answers do; a time counts from when the burst was due. The other work:

  updates      200 signed updates per second of the zone that is asked (not NSD)
  transfers    whole copies of the zone by AXFR, one after another
  checkpoints  one after another (Pando)
"""

import argparse
import array
import contextlib
import math
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
from xml.sax.saxutils import escape

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import pairs  # noqa: E402
import peers  # noqa: E402
import servers  # noqa: E402
import tables  # noqa: E402
import updates  # noqa: E402

SERVER_PROCESSOR, LOAD_PROCESSOR = 1, 0
SHARES = (0.25, 0.5, 0.75)
WORKS = ("alone", "updates", "transfers", "checkpoints")
BURST = 4
UPDATE_RATE = 200
BINS_PER_TENFOLD, FIRST, LAST = 6, 10, 100_000  # µs


def make(kind, folder, path):
    """A primary that takes updates, if it can, and gives its zone to this host."""
    if kind == "nsd":
        return peers.make(kind, folder, {"example": path})
    server = updates.updated(kind, folder, path)
    if kind == "pando":
        server.zones[0]["allow-transfer"] = ["127.0.0.1"]
        server.store_extra = "  image: zones.image\n  checkpoint: {interval: 24h, journal: 32GiB}"
        server.write_config()
    elif kind == "bind":
        config = server.folder / "named.conf"
        config.write_text(config.read_text().replace("allow-update", "allow-transfer { 127.0.0.1; }; allow-update"))
    else:
        config = server.folder / "knot.conf"
        config.write_text(config.read_text().replace(
            "    action: update\n", "    action: update\n  - id: transfer\n    address: 127.0.0.1\n    action: transfer\n")
            .replace("    acl: update\n", "    acl: [update, transfer]\n"))
    return server


def pinned(server):
    for pid in peers.family(server.process.pid):
        subprocess.run(["taskset", "-a", "-c", "-p", str(SERVER_PROCESSOR), str(pid)], check=True, capture_output=True)


def generator(name, *words, **options):
    return subprocess.Popen(["taskset", "-c", str(LOAD_PROCESSOR), *map(str, words)] if name is None else
                            ["taskset", "-c", str(LOAD_PROCESSOR), str(servers.build_folder() / "bench" / name), *map(str, words)],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def saturated(server, queries):
    """Answers per second of a server that has nothing else to do."""
    text = generator(None, "dnsperf", "-s", "127.0.0.1", "-p", server.port, "-d", queries, "-l", 3, "-c", 8).communicate()[0]
    return float(re.search(r"Queries per second:\s+([\d.]+)", text)[1])


@contextlib.contextmanager
def repeated(action):
    """Does it again and again in a thread until the block ends."""
    end, failed = threading.Event(), []

    def loop():
        try:
            while not end.is_set():
                action()
        except Exception as error:
            failed.append(error)
    thread = threading.Thread(target=loop)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
    if failed:
        raise failed[0]


@contextlib.contextmanager
def beside(work, server):
    if work == "updates":
        load = generator("bench_update_load", server.port, "example", updates.KEY["name"], updates.KEY["secret"], 0, 8,
                         updates.NAMES, UPDATE_RATE)
        try:
            yield
        finally:
            load.send_signal(signal.SIGTERM)
            load.communicate()
    elif work == "transfers":
        with repeated(lambda: peers.transferred(server, "example")):
            yield
    elif work == "checkpoints":
        with repeated(lambda: server.control("store", "checkpoint")):
            yield
    else:
        yield


def can(kind, work):
    return work in ("alone", "transfers") or kind == "pando" or (work == "updates" and kind != "nsd")


def turn(server, queries, rate, seconds, folder):
    """All times of a turn in µs, and how many queries were not answered."""
    kept = folder / "latencies"
    kept.unlink(missing_ok=True)
    text = generator("bench_query_load", server.port, queries, rate, BURST, seconds,
                     env={**os.environ, "LATENCIES": str(kept)}).communicate()[0]
    told = {key: float(value) for key, value in re.findall(r"(\w+) (-?[\d.]+)", text)}
    assert told["bad"] == 0, text
    times = array.array("d")
    times.frombytes(kept.read_bytes())
    return times, told["lost"]


class Found:
    """What was measured: the times of each turn, by server, work and load."""

    def __init__(self):
        self.times, self.lost, self.rates = {}, {}, {}

    def add(self, case, times, lost):
        self.times.setdefault(case, []).append(sorted(times))
        self.lost[case] = self.lost.get(case, 0) + lost

    def row(self, case):
        kind, work, share = case
        cells = [pairs.spread([pairs.quantile(times, part) for times in self.times[case]]) for part in (0.5, 0.99, 0.999)]
        told = " | ".join(f"{cell.median:,.0f} ({cell.low:,.0f} to {cell.high:,.0f})" for cell in cells)
        return (f"| {work}, {share:.0%} | {tables.NAMES[kind]} | {self.rates[kind] * share:,.0f} | {told} | "
                f"{self.lost[case]:.0f} |")


def shares_of(turns):
    """The histogram of all turns: shares of bins that grow by a sixth of a tenfold."""
    bins = [0] * (1 + round(math.log10(LAST / FIRST) * BINS_PER_TENFOLD))
    for times in turns:
        for value in times:
            place = int(math.log10(max(value, FIRST) / FIRST) * BINS_PER_TENFOLD)
            bins[min(place, len(bins) - 1)] += 1
    total = sum(bins)
    return [count / total for count in bins]


def drawing(found, share):
    """Strips, one below the other: the darker, the more answers took that long. Each step of shade is a tenth."""
    left, width, height, top = 190, 26, 18, 60
    cases = sorted((case for case in found.times if case[2] == share), key=lambda case: WORKS.index(case[1]))
    columns = 1 + round(math.log10(LAST / FIRST) * BINS_PER_TENFOLD)
    size = left + columns * width + 20, top + len(cases) * height + 34
    rows = []
    for row, case in enumerate(cases):
        y = top + row * height
        rows.append(f'<text x="12" y="{y + 13}">{escape(tables.NAMES[case[0]])}, {escape(case[1])}</text>')
        for column, part in enumerate(shares_of(found.times[case])):
            if part > 0:
                shade = max(0.08, 1 + math.log10(part) / 6)  # from one in a million to all
                kind = "ours" if case[0] == "pando" else "theirs"
                rows.append(f'<rect class="{kind}" x="{left + column * width}" y="{y}" width="{width - 1}" '
                            f'height="{height - 2}" opacity="{shade:.2f}"><title>{part:.6f}</title></rect>')
    for tenfold in range(round(math.log10(LAST / FIRST)) + 1):
        x = left + tenfold * BINS_PER_TENFOLD * width
        text = {10: "10 µs", 100: "100 µs", 1000: "1 ms", 10_000: "10 ms", 100_000: "100 ms"}[FIRST * 10 ** tenfold]
        rows.append(f'<text class="quiet" x="{x}" y="{size[1] - 14}">{text}</text>')
    style = """
  .ground { fill: #ffffff } text { font: 13px system-ui, sans-serif; fill: #1f2328 }
  .title { font-size: 17px; font-weight: 600 } .quiet { fill: #59636e; font-size: 12px }
  .ours { fill: #0969da } .theirs { fill: #59636e }
  @media (prefers-color-scheme: dark) { .ground { fill: #0d1117 } text { fill: #e6edf3 } .quiet { fill: #9198a1 }
    .ours { fill: #4493f8 } .theirs { fill: #9198a1 } }
"""
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" height="{size[1]}">'
            f'<style>{style}</style><rect class="ground" width="{size[0]}" height="{size[1]}"/>'
            f'<text class="title" x="12" y="24">Time to an answer at {share:.0%} of the load that saturates</text>'
            f'<text class="quiet" x="12" y="44">Shade: share of the answers, from one in a million to all.</text>'
            + "".join(rows) + "</svg>\n")


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("nsd", "knot", "bind"):
        parser.add_argument(f"--{kind}", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--names", type=int, default=100_000)
    parser.add_argument("--svg", type=pathlib.Path)
    parser.add_argument("servers", nargs="*", choices=[*tables.NAMES, []], metavar="SERVER")
    return parser.parse_args(words)


def main():
    options = options_of(sys.argv[1:])
    for kind in ("nsd", "knot", "bind"):
        if getattr(options, kind):
            os.environ[f"PANDO_{kind.upper()}"] = str(getattr(options, kind).resolve())
    found, running = Found(), {}
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = pathlib.Path(name)
        path, queries = updates.zone_file(folder, options.names), folder / "questions"
        dice = random.Random(1)
        queries.write_text("".join(f"n{dice.randrange(options.names)}.example A\n" for _ in range(200_000)))
        try:
            for kind in options.servers or tables.NAMES:
                (folder / kind).mkdir()
                running[kind] = make(kind, folder / kind / "server", path)
                running[kind].start("example")
                pinned(running[kind])
                peers.rest(running[kind])
                found.rates[kind] = saturated(running[kind], queries)
            for work in WORKS:
                for _ in range(options.turns):
                    for share in SHARES:
                        for kind, server in running.items():
                            if can(kind, work):
                                with beside(work, server):
                                    found.add((kind, work, share), *turn(
                                        server, queries, found.rates[kind] * share, options.seconds, folder))
        finally:
            for server in running.values():
                peers.end(server)
    print(f"{options.turns} turns of {options.seconds:g} s; saturated: " + ", ".join(
        f"{tables.NAMES[kind]} {peers.version(kind)} {rate:,.0f}/s" for kind, rate in found.rates.items()))
    print("\n| beside, load | server | queries/s | p50 µs | p99 µs | p99.9 µs | lost |\n|---|---|---:|---:|---:|---:|---:|")
    for case in sorted(found.times, key=lambda case: (WORKS.index(case[1]), case[2])):
        print(found.row(case))
    if options.svg:
        options.svg.write_text(drawing(found, SHARES[1]))


if __name__ == "__main__":
    main()
