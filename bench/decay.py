#!/usr/bin/env python3
"""What single updates do to a large zone: memory, processor time per query and of an AXFR out, fresh, after a tenth of
the names were changed one by one, after as many more until compaction had to do something, and when it rests again.
Prints a Markdown table.

  PANDO_BUILD=build/release bench/decay.py [NAMES]
"""

import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers  # noqa: E402
import servers  # noqa: E402
import updates  # noqa: E402

SECONDS = 5  # of queries


def write_zone(folder, names):
    path = folder / "example.zone"
    with path.open("w") as out:
        out.write("$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
        out.writelines(f"n{i} 60 A 192.0.2.1\n" for i in range(names))
    return path


def change(server, count, names):
    """bench_update_load, over all names: it replaces the A RRset of one name per update."""
    output = subprocess.run(
        [str(servers.build_folder() / "bench/bench_update_load"), str(server.port), "example", updates.KEY["name"],
         updates.KEY["secret"], str(count), "64", str(names)], capture_output=True, text=True, check=True).stdout
    assert f"answered {count}" in output, output


def user_per_query(server, pid, queries):
    before = peers.cpu([pid])[0], server.workers()
    subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(queries), "-l", str(SECONDS), "-c", "8"],
                   capture_output=True, check=True)
    after = peers.cpu([pid])[0], server.workers()
    asked = sum(row["counters"]["queries_udp"] for row in after[1].values()) - sum(
        row["counters"]["queries_udp"] for row in before[1].values())
    return (after[0] - before[0]) / asked * 1e6


def axfr_cost(server, pid):
    before = sum(peers.cpu([pid]))
    subprocess.run(["dig", "@127.0.0.1", "-p", str(server.port), "example", "axfr", "+noall", "+stats"],
                   capture_output=True, check=True)
    return sum(peers.cpu([pid])) - before


def settled_store(server):
    """The store's figures once they have not changed for a while: compaction rests."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < 15:
        now = server.control("status")["store"]
        if (now["live"], now["chunks_in_use"]) != last:
            last, since = (now["live"], now["chunks_in_use"]), time.monotonic()
        time.sleep(0.5)
    return now


def row(what, server, queries, names, store):
    pid = next(iter(server.workers().values()))["pid"]
    cost = sorted(user_per_query(server, pid, queries) for _ in range(3))[1]
    transfer = sorted(axfr_cost(server, pid) for _ in range(3))[1]
    history = store["history"]
    print(f"| {what} | {(store['live'] - history) / names:.1f} | {(store['memory'] - history) / names:.1f} | "
          f"{history / 1e6:.1f} | {cost:.2f} | {transfer:.2f} |", flush=True)


def walks(server):
    return server.control("status")["counters"]["upkeep_walks"]


def main():
    names = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = pathlib.Path(name)
        queries = folder / "queries.txt"
        pick = random.Random(1)
        queries.write_text("".join(f"n{pick.randrange(names)}.example. A\n" for _ in range(200_000)))
        zone = {"name": "example", "file": str(write_zone(folder, names)), "allow-update": [{"key": updates.KEY["name"]}],
                "allow-transfer": [{"address": "127.0.0.0/8"}]}
        server = servers.Pando(folder / "server", [zone], keys=[updates.KEY], workers=1, size_limit="16GiB")
        server.start("example", 300)
        print(f"| {names:,} names | octets live per name | octets used per name | MB of history | user µs per query | "
              "AXFR: CPU s |\n|---|---:|---:|---:|---:|---:|")
        row("fresh", server, queries, names, settled_store(server))
        change(server, names // 10, names)
        row("a tenth changed", server, queries, names, server.control("status")["store"])
        changed, earlier = names // 10, walks(server)
        while walks(server) == earlier and changed < 4 * names:
            changed += names // 5  # from the first name on, over and over
            change(server, changed, names)
            settled_store(server)
        row(f"{changed / names:.0%} changed, {walks(server) - earlier} walks of compaction since", server, queries, names,
            settled_store(server))
        peers.end(server)


if __name__ == "__main__":
    main()
