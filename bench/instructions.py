#!/usr/bin/env python3
"""Instructions of the core, counted by callgrind: answers, transfers, staging of updates, a zone scan.

    bench/instructions.py BUILD [--record]

BUILD is a release build with the bench programs. Each count is compared with bench/instructions.json: more than 3 %
above or below it is an error, so a slower core is not unseen and a faster one is recorded (--record writes the file).
Counts belong to one compiler and one C library; on another machine than Debian 12 they are only printed. The cases of
the root zone need ../shared/data and are skipped without it.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import profiles
import question_mix

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECORDED = ROOT / "bench/instructions.json"
DATA = ROOT.parent / "shared/data"
TOLERANCE = 0.03
NAMES = 100_000
QUERIES = 5_000
UPDATES = 1_000


def count(toggle, *command):
    """Instructions that one run spends inside the function that `toggle` names."""
    run = subprocess.run(
        ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no",
         f"--toggle-collect={toggle}", *map(str, command)], capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", run.stderr)
    if run.returncode != 0 or not found or int(found[1]) == 0:
        sys.exit(f"{' '.join(map(str, command))}: nothing was counted\n{run.stdout}{run.stderr}")
    return int(found[1])


def write_names_zone(folder):
    """A zone of addresses below random labels, and queries for them, a fifth of which are for names it has not."""
    dice = random.Random(1)
    labels = [f"{dice.getrandbits(48):012x}" for _ in range(NAMES)]
    zone, queries = folder / "names.zone", folder / "names.txt"
    zone.write_text("$ORIGIN bench.example.\n@ 3600 IN SOA ns host 1 3600 900 604800 300\n@ 3600 NS ns\nns 3600 A 192.0.2.53\n"
                    + "".join(f"{label} 3600 A 192.0.2.{dice.randrange(1, 255)}\n" for label in labels))
    queries.write_text("".join(f"{dice.choice(labels)}{'x' * (dice.random() < 0.2)}.bench.example. A\n"
                               for _ in range(QUERIES)))
    return zone, queries


def write_signed_queries(folder):
    """Queries for a small signed zone: what is there, wildcards and denials."""
    dice = random.Random(2)
    queries = folder / "signed.txt"
    owners = ["", "www.", "ns1.", "nowhere.", "a.b.nowhere.", "ns2."]
    queries.write_text("".join(f"{dice.choice(owners)}signed.example. {dice.choice(['A', 'AAAA', 'SOA', 'DNSKEY', 'NS'])}\n"
                               for _ in range(QUERIES)))
    return queries


def write_root_queries(folder):
    queries = folder / "root.txt"
    lines = [line.split()[:2] for line in (DATA / "root-queries-2001.txt").read_text().splitlines() if line.strip()]
    queries.write_text("".join(" ".join(line) + "\n" for line in lines[:QUERIES]))
    return queries


def write_root_shaped_queries(folder):
    tlds = question_mix.delegations_of(DATA / "root-2021-05-19.zone")
    queries = folder / "root-shaped.txt"
    queries.write_text("".join(question_mix.root_shaped(tlds, random.Random(3), 2 * QUERIES)))
    return queries


def write_registry(folder, count=30_000):
    """A signed registry and questions below its delegations, half of them for names that are not there."""
    dice = random.Random(4)
    zone, queries = folder / "tld-nsec.zone", folder / "tld-nsec.txt"
    with open(zone, "w") as file:
        profiles.registry(file, count, "nsec")
    labels = profiles.words(count, 5)
    queries.write_text("".join(f"www.{dice.choice(labels)}{dice.choice(['', 'xyz'])}.tld. A\n" for _ in range(QUERIES)))
    return zone, queries


def write_delegations(folder, count=30_000):
    zone = folder / "tld.zone"
    with open(zone, "w") as file:
        return zone, profiles.registry(file, count)


def measure(build, folder):
    """{case: instructions per query, update or record}"""
    runs = {}  # case: what one run does so often, then count()'s arguments
    answers, scan = build / "bench/bench_answer_path", build / "bench/bench_zone_scan"
    zone, queries = write_names_zone(folder)
    runs["answer, names, plain"] = QUERIES, "*answer_all*", answers, zone, "bench.example.", queries, "plain", 1
    signed = ROOT / "config/zones/signed.example.zone"
    queries = write_signed_queries(folder)
    runs["answer, signed, DO"] = QUERIES, "*answer_all*", answers, signed, "signed.example.", queries, "DO", 1
    runs["stage an update"] = UPDATES, "*stage_all*", build / "bench/bench_update_stage", zone, "bench.example.", UPDATES
    runs["scan a record"] = NAMES + 3, "*scan_zone_file*", scan, zone, "bench.example."
    zone, queries = write_registry(folder)
    for kind in ("plain", "DO"):
        runs[f"answer, tld-nsec, {kind}"] = QUERIES, "*answer_all*", answers, zone, "tld.", queries, kind, 1
    zone, records = write_delegations(folder)
    runs["AXFR out, tld, a record"] = records, "*stream_zone*", build / "bench/bench_transfer_path", zone, "tld.", 1
    root = DATA / "root-2021-05-19.zone"
    if root.exists() and (DATA / "root-queries-2001.txt").exists():
        queries = write_root_queries(folder)
        asked = len(queries.read_text().splitlines())
        shaped = write_root_shaped_queries(folder)
        for kind in ("plain", "DO"):
            runs[f"answer, root, {kind}"] = asked, "*answer_all*", answers, root, ".", queries, kind, 1
            # five rounds before, in which each TLD's referral is seen
            runs[f"answer, root-shaped, {kind}"] = 2 * QUERIES, "*answer_all*", answers, root, ".", shaped, kind, 1, 5
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        counts = pool.map(lambda run: count(*run[1:]) / run[0], runs.values())
        return {name: round(value, 1) for name, value in zip(runs, counts)}


def same_platform():
    release = pathlib.Path("/etc/os-release").read_text()
    return "ID=debian" in release and 'VERSION_ID="12"' in release


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measure(options.build.resolve(), pathlib.Path(folder))
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    wrong = []
    for name, value in found.items():
        before = recorded.get(name)
        change = f"{(value / before - 1) * 100:+.1f} %" if before else "not recorded"
        print(f"{name:26} {value:12.1f}   {change}")
        if not before or abs(value / before - 1) > TOLERANCE:
            wrong.append(name)
    if options.record:
        RECORDED.write_text(json.dumps({**recorded, **found}, indent=2, sort_keys=True) + "\n")
    elif wrong and same_platform():
        sys.exit(f"not within 3 % of bench/instructions.json: {', '.join(wrong)}")


if __name__ == "__main__":
    main()
