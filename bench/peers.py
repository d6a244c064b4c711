#!/usr/bin/env python3
"""Figures beside NSD, Knot and BIND in one run: CPU per query on the root zone, or loading a zone of one of the
profiles in profiles.py, the memory it takes, and CPU per query of it. Prints Markdown tables.

  PANDO_BUILD=build/release bench/peers.py query [SECONDS] [SERVER]...
  PANDO_BUILD=build/release bench/peers.py root|addresses|sorted|delegations|tld|tld-nsec [SCALE] [SERVER]...

Queries of a profile's zone are for A of 300,000 of its owners at random, every twentieth for a name that is not there.
"""

import contextlib
import os
import pathlib
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

import dns.message

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))
import profiles  # noqa: E402
import question_mix  # noqa: E402
import servers  # noqa: E402

ROOT_RECORDS = 25_570
TICK = os.sysconf("SC_CLK_TCK")


def processor(pids):
    """Nanoseconds of processor time that processes took so far, with those of threads that have ended."""
    total = 0
    for pid in pids:
        try:
            total += time.clock_gettime_ns((~pid << 3) | 2)
        except OSError:  # it has ended
            pass
    return total


def cpu(pids):
    """User and system seconds of processes so far, in ticks."""
    user = system = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        user += int(fields[11])
        system += int(fields[12])
    return user / TICK, system / TICK


def family(pid):
    """A process and its descendants."""
    found = [pid]
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) in found:
            found.append(int(path.parent.name))
    return found


def memory(pids):
    """PSS and page tables in octets: what the processes really cost together."""
    total = 0
    for pid in pids:
        rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        total += int(re.search(r"^Pss:\s+(\d+)", rollup, re.M)[1]) * 1024
        total += int(re.search(r"^VmPTE:\s+(\d+)", status, re.M)[1]) * 1024
    return total


def make(kind, folder, zones, workers=1):
    """A server with these zones. A zone that is alone is given to this host in whole."""
    alone = len(zones) == 1
    if kind == "pando":
        given = {"allow-transfer": ["127.0.0.1"]} if alone else {}
        return servers.Pando(folder, [{"name": name, "file": str(path), **given} for name, path in zones.items()],
                             workers=workers)
    if kind == "bind":
        given = "allow-transfer { 127.0.0.1; };" if alone else ""
        return servers.Bind(folder, {name: f'type primary; file "{path}"; {given}' for name, path in zones.items()})
    if kind == "nsd":
        return servers.Nsd(folder, zones, zone_options="  provide-xfr: 127.0.0.1 NOKEY\n" if alone else "")
    return servers.Knot(folder, zones, text="acl:\n  - id: transfers\n    address: 127.0.0.1\n    action: transfer",
                        zone_options={name: "    acl: transfers\n" for name in zones} if alone else {})


def rest(server, seconds=60):
    """Until its processes use less than 2 % of a processor: checks and copies behind a load are not a query's cost."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pids = family(server.process.pid)
        before = processor(pids)
        time.sleep(0.5)
        if processor(pids) - before < 10_000_000:
            return


def transferred(server, zone):
    """An AXFR: seconds of CPU of all processes of the server, and octets of all messages, with their lengths."""
    pids = family(server.process.pid)
    before = processor(pids)
    query = dns.message.make_query(zone, "AXFR").to_wire()
    octets, end = 0, None
    with socket.create_connection(("127.0.0.1", server.port), timeout=60) as connection:
        connection.sendall(len(query).to_bytes(2, "big") + query)
        stream = connection.makefile("rb", buffering=1 << 20)
        while True:
            head = stream.read(2)
            assert len(head) == 2, "the transfer ended too early"
            message = stream.read(int.from_bytes(head, "big"))
            octets += 2 + len(message)
            assert message[3] & 15 == 0, f"RCODE {message[3] & 15}"
            if end is None:  # the five numbers of the SOA record, with which the last message ends as well
                first = dns.message.from_wire(message, one_rr_per_rrset=True, xfr=True).answer[0][0]
                end = first.to_digestable()[-20:]
                if int.from_bytes(message[6:8], "big") == 1:
                    continue
            if message.endswith(end):
                return (processor(pids) - before) / 1e9, octets


def end(server):
    (server.clean if isinstance(server, servers.Pando) else server.stop)()


def version(kind):
    """What a server's program says of its version."""
    program = str(servers.build_folder() / "pando-manager") if kind == "pando" else servers.peer_program(kind)
    word = {"pando": "--version", "knot": "-V"}.get(kind, "-v")
    done = subprocess.run([program, word], capture_output=True, text=True)
    return re.search(r"\d+\.\d+\S*", done.stdout + done.stderr)[0]


def asked(server, queries, seconds, mode):
    """A turn of dnsperf: microseconds of CPU per query of all processes, and its own report. The sum of user and system
    time is exact; ticks tell how it is divided."""
    pids = family(server.process.pid)
    before = [processor(pids), *cpu(pids)]
    report = subprocess.run(
        ["dnsperf", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(queries), "-l", str(seconds), "-c", "8"] +
        (["-D"] if mode == "DO" else []), capture_output=True, text=True).stdout
    total, user, system = (now - then for now, then in zip([processor(pids), *cpu(pids)], before))
    result = servers.Dnsperf.Result(report)
    each, share = total / result.completed / 1000, user / (user + system) if user + system else 0.5
    return each * share, each * (1 - share), result


def answer_cost(server, queries, seconds, mode):
    """User and system microseconds of CPU per query of all processes, and queries per second."""
    user, system, result = asked(server, queries, seconds, mode)
    return user, system, float(re.search(r"Queries per second:\s+([\d.]+)", result.text)[1])


def query_costs(folder, kinds, seconds):
    zone = servers.SHARED_DATA / "root-2021-05-19.zone"
    queries = servers.SHARED_DATA / "root-queries-2001.txt"
    running = {kind: make(kind, folder / kind, {".": zone}) for kind in kinds}
    for server in running.values():
        server.start(".")
    rows = {}
    for mode in ("plain", "DO"):
        for _ in range(3):  # in turn, so that a noisy minute hits all of them
            for kind, server in running.items():
                rows.setdefault((mode, kind), []).append(answer_cost(server, queries, seconds, mode))
    print("| queries | server | user µs/query | system µs/query | queries/s |\n|---|---|---:|---:|---:|")
    for (mode, kind), values in rows.items():
        user, system, rate = sorted(values)[len(values) // 2]
        print(f"| root, {mode} | {kind} | {user:.2f} | {system:.2f} | {rate:.0f} |")
    for server in running.values():
        end(server)


def load_costs(folder, profile, scale, kinds):
    path = folder / "bench.zone"
    if profile == "root":
        path, origin, records = servers.SHARED_DATA / "root-2021-05-19.zone", ".", ROOT_RECORDS
    else:
        origin, records = profiles.write(profile, path, scale)
    queries = folder / "queries"
    with open(queries, "w") as file:
        file.writelines(question_mix.of_owners(question_mix.owners(path), origin, random.Random(6), 300_000))
    print(f"| {profile}: {records:,} records | CPU s to serving | wall s | octets per record "
          "| user, system µs per query: plain | DO |\n|---|---:|---:|---:|---:|---:|")
    for kind in kinds:
        server = make(kind, folder / f"load-{kind}", {origin: path})
        started = time.monotonic()
        server.start(origin, 600)
        wall = time.monotonic() - started
        pids = family(server.process.pid)
        user, system = cpu(pids)
        octets = memory(pids)
        costs = []
        for mode in ("plain", "DO"):
            answer_cost(server, queries, 1, mode)
            costs.append(sorted(answer_cost(server, queries, 3, mode) for _ in range(3))[1])
        print(f"| {kind} (all processes) | {user + system:.2f} | {wall:.2f} | {octets / records:.0f} | " +
              " | ".join(f"{cost[0]:.2f}, {cost[1]:.2f}" for cost in costs) + " |", flush=True)
        if kind == "pando":
            store = server.control("status")["store"]
            print(f"| pando, the store alone: live | | | {store['live'] / records:.1f} | | |")
            print(f"| pando, the store alone: chunks in use | | | {store['chunks_in_use'] * 65536 / records:.1f} | | |")
        end(server)


# Turns beside a Pando with one worker, which serves a zone of ten records: http_abuse.py, query_log.py ---------------------


def turn_words(*defaults):
    """Numbers of the command line: TURNS, SECONDS and RATE."""
    given = sys.argv[1:1 + len(defaults)]
    return [int(word) for word in (*given, *defaults[len(given):])]


@contextlib.contextmanager
def small_pando():
    """A folder, a server that is not started yet, its zone's name, and a file of questions."""
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = pathlib.Path(name)
        origin, _ = profiles.ten(folder / "zone")
        questions = folder / "questions"
        questions.write_text("".join(question_mix.of_ten(random.Random(1), 10_000)))
        server = make("pando", folder / "pando", {origin: folder / "zone"})
        try:
            yield folder, server, origin, questions
        finally:
            end(server)


def times(server):
    """Nanoseconds of processor time of the worker and of the manager so far."""
    return [processor([pid]) for pid in (server.workers()[0]["pid"], server.process.pid)]


def ask(server, questions, seconds, rate):
    """Questions of eight clients at this rate; the result of dnsperf."""
    report = subprocess.run(["dnsperf", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(questions), "-l", str(seconds),
                             "-Q", str(rate), "-c", "8"], capture_output=True, text=True, check=True).stdout
    return servers.Dnsperf.Result(report)


def cell(values):
    return f"{statistics.median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main():
    what = sys.argv[1] if len(sys.argv) > 1 else "query"
    number = float(sys.argv[2]) if len(sys.argv) > 2 else None
    kinds = sys.argv[3:] or ["pando", "nsd", "knot", "bind"]
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as folder:
        if what == "query":
            query_costs(pathlib.Path(folder), kinds, int(number or 10))
        else:
            load_costs(pathlib.Path(folder), what, number or 1.0, kinds)


if __name__ == "__main__":
    main()
