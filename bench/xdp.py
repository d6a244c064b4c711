#!/usr/bin/env python3
"""CPU per query of the whole core of one worker over veth, by sockets and by AF_XDP, beside Knot. Needs root, and a
Knot that was built with XDP, for itself and for its load generator kxdpgun.

  PANDO_BUILD=build/release bench/xdp.py --knot DIR [--turns N] [--seconds S] [--rate QPS] [KIND]...

Each server has a wire of its own: two network namespaces with a veth pair. A server runs on one core, and kxdpgun on
another one; Knot chooses its worker's core itself, the first one. The kernel's work for what an interface receives is
done on the core of its host, as with network cards: by threads for AF_XDP (threaded NAPI), by packet steering (RPS) for
sockets. Turns of all servers are interleaved. The core's time is what the kernel says that it was not idle, so nothing
else may run on it. KIND: pando, pando-xdp, knot, knot-xdp.
"""

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/system"), str(ROOT / "tests/system/xdp")]
import hosts  # noqa: E402
import pairs  # noqa: E402
import servers  # noqa: E402

KINDS = ("pando", "pando-xdp", "knot", "knot-xdp")
CORES = {"pando": (1, 0), "knot": (0, 1)}  # of the server, and of its load generator
PARTS = {"user": (1, 2), "system": (3,), "interrupts": (6, 7)}  # fields of /proc/stat
NAMES = 1000
TICK = os.sysconf("SC_CLK_TCK")


def zone_text():
    head = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"
    return head + "".join(f"host{n} A 10.0.{n >> 8}.{n & 255}\n" for n in range(NAMES))


def busy(core):
    """Seconds for which the core was not idle, by parts."""
    for line in pathlib.Path("/proc/stat").read_text().splitlines():
        fields = line.split()
        if fields[0] == f"cpu{core}":
            return {part: sum(int(fields[place]) for place in places) / TICK for part, places in PARTS.items()}
    raise SystemExit(f"there is no core {core}")


class Pando(hosts.XdpPando):
    def __init__(self, folder, wire, by_xdp):
        super().__init__(folder, wire, [{"interface": "eth0"}] if by_xdp else [],
                         prefix=["taskset", "-c", str(CORES["pando"][0])])
        self.zone_file.write_text(zone_text())
        self.by_xdp = by_xdp

    def begin(self):
        self.start(hosts.ZONE, attached=self.by_xdp)


class Knot(servers.Server):
    name = "knot"

    def __init__(self, folder, wire, by_xdp, program):
        folder.mkdir()
        super().__init__(folder, port=53)
        self.wire, self.program = wire, program
        (folder / "zone").write_text(zone_text())
        (folder / "knot.conf").write_text("\n".join([
            "server:", f"  rundir: {folder}", f"  listen: {hosts.SERVER[4]}@53",
            "  udp-workers: 1", "  tcp-workers: 1", "  background-workers: 1",
            *(["xdp:", "  listen: eth0@53"] if by_xdp else []),
            "database:", f"  storage: {folder}", "log:", "  - target: stderr", "    any: warning",
            "zone:", f"  - domain: {hosts.ZONE}", f"    file: {folder}/zone"]) + "\n")

    def command(self):
        return ["taskset", "-c", str(CORES["knot"][0]), str(self.program), "-c", str(self.folder / "knot.conf")]

    def begin(self):
        with self.wire.server.inside(), open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        query = servers.dns.message.make_query(hosts.ZONE, "SOA").to_wire()
        servers.wait_until(f"knot answers: {self.log()}", lambda: hosts.ask(
            self.wire.client, query, hosts.SERVER[4], timeout=0.5))

    def clean(self):
        self.stop()


def receive_on(host, interface, core):
    """Sockets' part of what the interface receives is done on this core, and AF_XDP's by a thread; an interface without
    an XDP program has no such part, and the kernel refuses a thread then."""
    host.run("unshare", "--mount", "sh", "-c", "mount -t sysfs sys /sys && cd /sys/class/net/" + interface +
             f" && echo {1 << core:x} > queues/rx-0/rps_cpus && {{ echo 1 > threaded || true; }}")


def pin_receivers(interface, core):
    """Of all wires: those of others have nothing to do now."""
    for path in pathlib.Path("/proc").glob("[0-9]*/comm"):
        with contextlib.suppress(OSError):
            if path.read_text().startswith(f"napi/{interface}-"):
                os.sched_setaffinity(int(path.parent.name), {core})


def turn(server, kxdpgun, queries, options):
    """Microseconds of the core per answer by parts, and answers in a second."""
    own, other = CORES[server.name]
    command = ["taskset", "-c", str(other), str(kxdpgun), "-t", str(options.seconds), "-Q", str(options.rate),
               "-F", f"{other}s1", "-I", "c0", "-i", str(queries), "-p", "53", hosts.SERVER[4]]
    before = busy(own)
    with server.wire.client.inside():
        load = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.1)  # until it has attached its program
    for host, interface, core in ((server.wire.server, "eth0", own), (server.wire.client, "c0", other)):
        receive_on(host, interface, core)
        pin_receivers(interface, core)
    output, errors = load.communicate(timeout=60 + options.seconds)
    spent = {part: seconds - before[part] for part, seconds in busy(own).items()}
    answers = re.search(r"total replies:\s+(\d+)", output)
    if not answers or not int(answers[1]):
        raise SystemExit(f"kxdpgun: {output}{errors}")
    return {part: seconds / int(answers[1]) * 1e6 for part, seconds in spent.items()}, int(answers[1]) / options.seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--knot", type=pathlib.Path, required=True, metavar="DIR")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--rate", type=int, default=200_000, help="queries in a second")
    parser.add_argument("kinds", nargs="*", choices=[*KINDS, []], metavar="KIND")
    options = parser.parse_args()
    programs = options.knot / "sbin"
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-bench-"))
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        queries = folder / "queries"
        queries.write_text("".join(f"host{n}.{hosts.ZONE}. A\n" for n in range(NAMES)))
        running = {}
        for kind in options.kinds or KINDS:
            wire = hosts.Wire()
            stack.callback(wire.close)
            path = folder / kind
            by_xdp = kind.endswith("-xdp")
            server = Knot(path, wire, by_xdp, programs / "knotd") if "knot" in kind else Pando(path, wire, by_xdp)
            stack.callback(server.clean)
            server.begin()
            running[kind] = server
        costs, rates = {kind: [] for kind in running}, {kind: [] for kind in running}
        for _ in range(options.turns):
            for kind, server in running.items():
                cost, rate = turn(server, programs / "kxdpgun", queries, options)
                costs[kind].append(cost)
                rates[kind].append(rate)
    print_table(costs, rates, options)


def print_table(costs, rates, options):
    """`costs`: {server: [{part: µs} of a turn]}."""
    print(f"{options.turns} turns of {options.seconds} s, {options.rate:,} queries/s sent\n\n"
          "| server | core's µs per answer (middle 80 %) | user, system, interrupts | answers/s | to pando-xdp |\n"
          "|---|---:|---:|---:|---:|")
    whole = {kind: [sum(turn.values()) for turn in turns] for kind, turns in costs.items()}
    for kind, values in whole.items():
        own, rate = pairs.spread(values), pairs.spread(rates[kind])
        parts = ", ".join(f"{pairs.spread([turn[part] for turn in costs[kind]]).median:.2f}" for part in PARTS)
        compared = pairs.compare(whole["pando-xdp"], values) if "pando-xdp" in costs and kind != "pando-xdp" else None
        claim = "" if compared is None else f"× {compared.ratio.median:.2f}" if compared.apart else "not told apart"
        print(f"| {kind} | {own.median:.2f} ({own.low:.2f}–{own.high:.2f}) | {parts} | {rate.median:,.0f} | {claim} |")


if __name__ == "__main__":
    main()
