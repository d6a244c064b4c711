#!/usr/bin/env python3
"""What the query log costs: processor time of one worker and of the manager per query, with the log off, on, and of
one request in a hundred. Prints a Markdown table.

  PANDO_BUILD=build/release bench/query_log.py [TURNS] [SECONDS] [RATE]

One server, whose configuration is reloaded before each turn: off, on, sampled, off, on, sampled, … Cells are medians of
the turns, with the lowest and the highest. RATE queries per second come from eight clients, so that a worker's batches
and a system call's lines are few; the log is on the disk of the folder for temporary files.
"""

import statistics
import time

import peers

TURNS, SECONDS, RATE = peers.turn_words(7, 5, 20000)
MODES = {"off": "", "on": "sample: 1", "one in 100": "sample: 100"}


def lines(server):
    counters = server.workers()[0]["counters"]
    return counters["query_log_lines"], counters["query_log_dropped"]


def turn(server, log, setting, questions):
    log.unlink(missing_ok=True)
    server.extra = f"  query-log: {{file: {log}, {setting}}}" if setting else ""
    server.write_config()
    server.control("reload")
    time.sleep(1)  # the worker has heard of it, and the zone's file was looked at
    before, logged = peers.times(server), lines(server)
    asked = peers.ask(server, questions, SECONDS, RATE).completed
    time.sleep(0.5)  # the last lines
    worker, manager = (now - then for now, then in zip(peers.times(server), before))
    written, dropped = (now - then for now, then in zip(lines(server), logged))
    size = log.stat().st_size / written if log.exists() and written else 0
    return worker / asked / 1000, manager / asked / 1000, written / asked, dropped, size, asked


def main():
    found = {mode: [] for mode in MODES}
    with peers.small_pando() as (folder, server, origin, questions):
        server.start(origin)
        for _ in range(TURNS):
            for mode, setting in MODES.items():
                found[mode].append(turn(server, folder / "queries.log", setting, questions))
    cell = peers.cell
    print("| query log | worker, µs per query | manager, µs per query | lines per query | dropped | bytes per line |\n"
          "|---|---:|---:|---:|---:|---:|")
    for mode, turns in found.items():
        worker, manager, written, dropped, size, _ = zip(*turns)
        print(f"| {mode} | {cell(worker)} | {cell(manager)} | {statistics.median(written):.2f} | {sum(dropped)} | "
              f"{statistics.median(size):.0f} |")
    print(f"\n{sum(row[5] for rows in found.values() for row in rows):,} queries answered")


if __name__ == "__main__":
    main()
