#!/usr/bin/env python3
"""A laboratory beside the peers: load, memory, restart, queries, transfers and updates of all servers in short turns
that are interleaved (A B C D A B C D …). Writes what it measured as JSON, which bench/report makes tables and plots of.

  PANDO_BUILD=build/release bench/laboratory.py --nsd DIR --knot DIR --bind DIR --output FILE [PROFILE[:SCALE]]...

A DIR is a folder that a peer was installed to, or its source tree in which it was built. Without one the distribution's
program is taken, and the tables say so. Profiles are root, ten, 1m, delegations, tld, tld-nsec, tld-nsec3, zones and
updates; a scale of 0.1 makes a tenth of the records. Each profile starts all servers, so 1m at full scale wants 3 GiB
of memory.
docs/contributing/measuring.md says how the figures are taken.
"""

import argparse
import collections
import datetime
import json
import os
import pathlib
import platform
import random
import re
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers  # noqa: E402
import profiles  # noqa: E402
import question_mix  # noqa: E402
import servers  # noqa: E402
import starts  # noqa: E402
import updates  # noqa: E402

KINDS = ("pando", "nsd", "knot", "bind")
UPDATES = {1: {"pando": 3_000, "bind": 1_500, "knot": 50}, 64: {"pando": 12_000, "bind": 2_500, "knot": 2_500}}
ROOT_ZONE = servers.SHARED_DATA / "root-2021-05-19.zone"
ROOT_QUESTIONS = servers.SHARED_DATA / "root-queries-2001.txt"

# A profile that is there: zones and their files, the zone that is asked for at a start, how many things of which name it
# has, and questions: {name of the set: lines for dice and a count}.
Subject = collections.namedtuple("Subject", "zones last count unit questions")


def root(folder, scale):
    if not ROOT_ZONE.exists():
        return None
    tlds = question_mix.delegations_of(ROOT_ZONE)
    sets = {"root-random": lambda dice, count: question_mix.root_shaped(tlds, dice, count)}
    if ROOT_QUESTIONS.exists():
        real = [" ".join(line.split()[:2]) + "\n" for line in ROOT_QUESTIONS.read_text().splitlines() if line.strip()]
        sets = {"root-real": lambda dice, count: dice.sample(real, min(count, len(real))), **sets}
    return Subject({".": ROOT_ZONE}, ".", peers.ROOT_RECORDS, "record", sets)


def ten(folder, scale):
    path = folder / "ten.zone"
    origin, _ = profiles.ten(path)
    return Subject({origin: path}, origin, 1, "zone", {"ten": lambda dice, count: question_mix.of_ten(dice, count)})


def written(profile):
    """A profile of one file that profiles.py writes."""
    def prepare(folder, scale):
        path = folder / f"{profile}.zone"
        origin, records = profiles.write("addresses" if profile == "1m" else profile, path, scale)
        owners = question_mix.owners(path)
        if profile.startswith("tld-"):  # the delegations, and none of the owners that are hashes
            names = [owner for owner in owners if "." not in owner and len(owner) < 32 and owner != "ns1"]

            def ask(dice, count):
                return question_mix.below_delegations(names, origin, dice, count)
        else:
            def ask(dice, count):
                return question_mix.of_owners(owners, origin, dice, count)
        return Subject({origin: path}, origin, records, "record", {profile: ask})
    return prepare


def zones(folder, scale):
    files = profiles.many(folder / "files", int(100_000 * scale))
    names = list(files)
    return Subject(files, names[-1], len(names), "zone", {"zones": lambda dice, count: question_mix.of_zones(names, dice, count)})


PROFILES = {"root": root, "ten": ten, **{name: written(name) for name in ("1m", "delegations", "tld", "tld-nsec", "tld-nsec3")},
            "zones": zones}


class Run:
    """What was measured so far; the file is written again behind each profile."""

    def __init__(self, options):
        self.options = options
        self.rows = {}
        self.loads = []
        self.found = {
            "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
            "machine": machine(), "note": options.note, "servers": {kind: described(kind) for kind in options.servers},
            "profiles": {}, "skipped": {}}

    def add(self, profile, measure, kind, turn, value):
        """A value of a turn; turns that failed are None."""
        row = self.rows.setdefault((profile, measure), {each: [] for each in self.options.servers})[kind]
        row += [None] * (turn - len(row)) + [value]
        self.loads.append(os.getloadavg()[0])

    def save(self):
        self.found["load_average"] = [min(self.loads), max(self.loads)] if self.loads else []
        self.found["rows"] = [{"profile": profile, "measure": measure, "turns": turns}
                              for (profile, measure), turns in self.rows.items()]
        self.options.output.write_text(json.dumps(self.found, indent=1) + "\n")

    def fail(self, profile, kind, error):
        told = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"{profile}: {kind} failed, {told}", file=sys.stderr, flush=True)
        self.found["skipped"].setdefault(profile, {})[kind] = told[:200]


def machine():
    cpu = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return {"processors": os.cpu_count(), "model": cpu[1] if cpu else "", "kernel": platform.release()}


def described(kind):
    """The version that the program itself tells, and where it comes from."""
    if kind == "pando":
        commit = subprocess.run(["git", "-C", str(peers.ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
        return {"version": peers.version(kind), "from": "this tree", "commit": commit.stdout.strip()}
    return {"version": peers.version(kind), "from": "given" if f"PANDO_{kind.upper()}" in os.environ else "distribution"}


def load_turn(run, profile, subject, kind, turn, folder):
    """From nothing to the first answer, memory at rest, and the same again after all processes were killed. The server
    keeps running."""
    server = starts.make(kind, folder / f"{kind}-{turn}", subject.zones)
    try:
        _, cpu = starts.launch(server, subject.last)
        starts.settled(server)
        peers.rest(server)
        octets = peers.memory(peers.family(server.process.pid))
        starts.kill(server)
        again, _ = starts.launch(server, subject.last)
    except BaseException:
        peers.end(server)
        raise
    run.add(profile, "load", kind, turn, cpu)
    run.add(profile, "memory", kind, turn, octets / subject.count)
    run.add(profile, "restart", kind, turn, again)
    return server


def query_turn(run, name, mode, kind, turn, server, file):
    user, system, result = peers.asked(server, file, run.options.seconds, mode)
    wrong = sum(result.rcodes.get(code, 0) for code in ("SERVFAIL", "REFUSED", "FORMERR", "NOTIMP"))
    assert wrong == 0, f"wrong answers: {result.rcodes}"
    run.add(name, f"{mode} user", kind, turn, user)
    run.add(name, f"{mode} system", kind, turn, system)
    run.found["profiles"][name]["nxdomain"] = round(result.rcodes.get("NXDOMAIN", 0) / result.completed, 3)


def transfer_turns(run, profile, zone, running):
    """A whole zone to a client that does nothing with it."""
    for turn in range(run.options.turns):
        for kind, server in running.items():
            try:
                seconds, octets = peers.transferred(server, zone)
                run.add(profile, "axfr cpu", kind, turn, seconds)
                run.add(profile, "axfr octets", kind, turn, octets)
            except Exception as error:  # the others go on
                run.fail(profile, kind, error)


def query_turns(run, subject, running, folder):
    for name, ask in subject.questions.items():
        run.found["profiles"].setdefault(name, {"count": subject.count, "unit": subject.unit})
        for mode in ("plain", "DO"):
            for turn in range(run.options.turns):
                file = folder / "questions"
                with open(file, "w") as out:
                    out.writelines(ask(random.Random(f"{name} {mode} {turn}"), run.options.questions))
                for kind, server in running.items():
                    try:
                        query_turn(run, name, mode, kind, turn, server, file)
                    except Exception as error:  # the others go on
                        run.fail(name, kind, error)


def measure(run, profile, scale, folder):
    subject = PROFILES[profile](folder, scale)
    if subject is None:
        run.found["skipped"][profile] = {"all": "its data are not there"}
        print(f"{profile}: skipped, {ROOT_ZONE} is not there", file=sys.stderr, flush=True)
        return
    run.found["profiles"][profile] = {"count": subject.count, "unit": subject.unit}
    running = {}
    try:
        for turn in range(run.options.loads):
            for kind in run.options.servers:
                if kind in running:
                    peers.end(running.pop(kind))
                try:
                    running[kind] = load_turn(run, profile, subject, kind, turn, folder)
                except Exception as error:  # the others go on
                    run.fail(profile, kind, error)
        for server in running.values():
            peers.rest(server)
        query_turns(run, subject, running, folder)
        if len(subject.zones) == 1 and profile != "ten":
            transfer_turns(run, profile, subject.last, running)
    finally:
        for server in running.values():
            peers.end(server)


def measure_updates(run, folder):
    run.found["profiles"]["updates"] = {"count": updates.NAMES, "unit": "record"}
    kinds = [kind for kind in run.options.servers if kind in UPDATES[1]]
    running = {}
    try:
        for kind in kinds:
            (folder / kind).mkdir()
            running[kind] = updates.updated(kind, folder / kind / "server", updates.zone_file(folder / kind))
            running[kind].start("example")
        for turn in range(run.options.turns):
            for clients, counts in UPDATES.items():
                for kind, server in running.items():
                    result = updates.turn(server, max(10, int(counts[kind] * run.options.updates)), clients)
                    assert result["refused"] == 0, f"{kind} refused updates"
                    run.add("updates", f"rate {clients}", kind, turn, result["rate"])
                    run.add("updates", f"cpu {clients}", kind, turn, result["cpu"])
    except (AssertionError, KeyError, ZeroDivisionError) as error:
        run.fail("updates", "all", error)
    finally:
        for server in running.values():
            peers.end(server)


def options_of(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for kind in ("nsd", "knot", "bind"):
        parser.add_argument(f"--{kind}", type=pathlib.Path, metavar="DIR")
    parser.add_argument("--servers", default=",".join(KINDS), help="a part of pando,nsd,knot,bind")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("laboratory.json"))
    parser.add_argument("--note", default="", help="what else is to be said of this run; it stands over the tables")
    parser.add_argument("--loads", type=int, default=3, help="turns of load, memory and restart (3)")
    parser.add_argument("--turns", type=int, default=7, help="turns of queries and of updates (7)")
    parser.add_argument("--seconds", type=int, default=2, help="of each turn of queries (2)")
    parser.add_argument("--questions", type=int, default=150_000, help="of each turn, asked again when they are through (150000)")
    parser.add_argument("--updates", type=float, default=1.0, help="how many updates of each turn, as a scale")
    parser.add_argument("profiles", nargs="*", metavar="PROFILE[:SCALE]", default=[*PROFILES, "updates"])
    options = parser.parse_args(words)
    options.servers = options.servers.split(",")
    options.profiles = [(name, float(scale or 1)) for name, _, scale in (word.partition(":") for word in options.profiles)]
    unknown = [name for name, _ in options.profiles if name not in PROFILES and name != "updates"]
    unknown += [kind for kind in options.servers if kind not in KINDS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    return options


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends servers
    options = options_of(sys.argv[1:])
    for kind in ("nsd", "knot", "bind"):
        if getattr(options, kind):
            os.environ[f"PANDO_{kind.upper()}"] = str(getattr(options, kind).resolve())
    run = Run(options)
    for kind, told in run.found["servers"].items():
        print(f"{kind} {told['version']} ({told['from']})", flush=True)
    for profile, scale in options.profiles:
        begun = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
            if profile == "updates":
                measure_updates(run, pathlib.Path(name))
            else:
                measure(run, profile, scale, pathlib.Path(name))
        run.save()
        print(f"{profile}: {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
