#!/usr/bin/env python3
"""Builds of Pando, and peers if wanted, asked in short turns that are interleaved: whether a change made answers cheaper.

  bench/builds.py [--turns N] PROFILE[:SCALE] BUILD [BUILD|nsd|knot|bind]...

A BUILD is a folder with pando-manager, pando-worker and pandoctl of a release build. PANDO_NSD, PANDO_KNOT and
PANDO_BIND tell where peers are. Profiles are those of bench/laboratory.py. For each set of questions, plain and with
DO: own CPU µs per query, all CPU µs per query, and the ratio of its own time to the first one's, by pairs of turns. A
ratio without "apart" is within the spread of the pairs.
"""

import argparse
import os
import pathlib
import random
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import laboratory  # noqa: E402
import pairs  # noqa: E402
import peers  # noqa: E402
import starts  # noqa: E402

PEERS = ("nsd", "knot", "bind")


def started(what, folder, subject):
    kind = what if what in PEERS else "pando"
    if kind == "pando":
        os.environ["PANDO_BUILD"] = what
    server = starts.make(kind, folder, subject.zones)
    starts.launch(server, subject.last)
    starts.settled(server)
    peers.rest(server)
    return server


def ask(running, name, make, mode, options, folder):
    turns = {what: [] for what in running}
    for turn in range(options.turns):
        file = folder / "questions"
        with open(file, "w") as out:
            out.writelines(make(random.Random(f"{name} {mode} {turn}"), options.questions))
        for what, server in running.items():
            user, system, _ = peers.asked(server, file, options.seconds, mode)
            turns[what].append((user, user + system))
    first = [own for own, _ in next(iter(turns.values()))]
    for what, found in turns.items():
        own, whole = pairs.spread([turn[0] for turn in found]), pairs.spread([turn[1] for turn in found])
        compared = pairs.compare(first, [turn[0] for turn in found])
        print(f"{name} {mode}: {what}: own {own.median:.2f} ({own.low:.2f} to {own.high:.2f}), all {whole.median:.2f}, "
              f"× {compared.ratio.median:.2f}{' apart' if compared.apart else ''}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="of each turn (2)")
    parser.add_argument("--questions", type=int, default=500_000, help="of each turn (500000)")
    parser.add_argument("profile")
    parser.add_argument("builds", nargs="+", metavar="BUILD")
    options = parser.parse_args()
    profile, _, scale = options.profile.partition(":")
    with tempfile.TemporaryDirectory(dir="/dev/shm") as name:
        folder = pathlib.Path(name)
        subject = laboratory.PROFILES[profile](folder, float(scale or 1))
        running = {}
        try:
            for number, what in enumerate(options.builds):
                running[what] = started(what, folder / str(number), subject)
            for questions, make in subject.questions.items():
                for mode in ("plain", "DO"):
                    ask(running, questions, make, mode, options, folder)
        finally:
            for server in running.values():
                peers.end(server)


if __name__ == "__main__":
    main()
