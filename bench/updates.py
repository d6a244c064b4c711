#!/usr/bin/env python3
"""Updates and transfers in, beside BIND, Knot and NSD in one run. Prints Markdown tables.

  PANDO_BUILD=build/release bench/updates.py rate [SCALE] [SERVER]...    durable signed updates per second
  PANDO_BUILD=build/release bench/updates.py signed [SCALE] [SERVER]...  the same of a zone that the server signs, P-256
  PANDO_BUILD=build/release bench/updates.py beside [SCALE]              of an unsigned zone, beside those of a signed one
  PANDO_BUILD=build/release bench/updates.py renewal [SIZE]              queries while all signatures of a zone are renewed
  PANDO_BUILD=build/release bench/updates.py ixfr [SIZE] [SERVER]...     a difference of ten records, and a thousand
  PANDO_BUILD=build/release bench/updates.py axfr [SIZE] [SERVER]...     a whole zone: processor time, peak of memory
  PANDO_BUILD=build/release bench/updates.py looks [SCALE]               what was acknowledged, asked for at once
  PANDO_BUILD=build/release bench/updates.py isolation [OPTION]...       queries and updates beside other work: bench/isolation.py
  PANDO_BUILD=build/release bench/updates.py octets [OPTION]...          what an update writes, in the store and on disk: bench/octets.py
  PANDO_BUILD=build/release bench/updates.py zones [OPTION]...           one of a million zones: bench/many_zones.py
  PANDO_BUILD=build/release bench/updates.py large [SIZE]                updates beside differences of 200,000 records

Each server keeps its own default durability, told in docs/performance.md.
"""

import importlib
import json
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/system"))
import peers  # noqa: E402
import servers  # noqa: E402
from primary import Primary  # noqa: E402

KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
BIND_KEY = f'key "{KEY["name"]}" {{ algorithm {KEY["algorithm"]}; secret "{KEY["secret"]}"; }};'
NAMES = 10_000


def zone_file(folder, names=NAMES, zone="example"):
    path = folder / f"{zone}.zone"
    with path.open("w") as out:
        out.write(f"$ORIGIN {zone}.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
        out.writelines(f"n{i} 60 A 192.0.2.1\n" for i in range(names))
    return path


def updated(kind, folder, path, workers=1, more=None, signs=False):
    """A primary that takes updates signed with KEY. `more`: files of other zones by name (not Pando). `signs`: it signs
    the zone, each server as it does by default."""
    more = more or {}
    if kind == "pando":
        return servers.Pando(folder, [{"name": "example", "file": str(path), "allow-update": [{"key": KEY["name"]}],
                                       **({"dnssec": "default"} if signs else {})}],
                             keys=[KEY], workers=workers)
    if kind == "bind":
        policy = "dnssec-policy default; inline-signing yes;" if signs else ""
        return servers.Bind(folder, {"example": f'type primary; file "{path}"; {policy} allow-update {{ key {KEY["name"]}; }};',
                                     **{name: f'type primary; file "{path}";' for name, path in more.items()}},
                            keys=BIND_KEY)
    (folder / "db").mkdir(parents=True)
    return servers.Knot(folder, {"example": path, **more}, zone_options={
        "example": "    acl: update\n    journal-content: changes\n    zonefile-sync: 0\n"
                   + ("    dnssec-signing: on\n" if signs else "")}, text=f"""
key:
  - id: {KEY["name"]}
    algorithm: {KEY["algorithm"]}
    secret: {KEY["secret"]}
acl:
  - id: update
    key: {KEY["name"]}
    action: update
""")


def load(server, count, clients, *more, zone="example"):
    output = subprocess.run(
        [str(servers.build_folder() / "bench/bench_update_load"), str(server.port), zone, KEY["name"], KEY["secret"],
         str(count), str(clients), str(NAMES), *more], capture_output=True, text=True).stdout
    return {key: float(value) for key, value in re.findall(r"(\w+) ([\d.]+)", output)}


def turn(server, count, clients):
    """So many updates: their rate, CPU microseconds of all processes for each, what the load generator tells."""
    pids = peers.family(server.process.pid)
    before = peers.processor(pids)
    result = load(server, count, clients)
    return {**result, "cpu": (peers.processor(pids) - before) / count / 1000}


def wait_until_signed(server):
    servers.wait_until("it is signed", lambda: server.ask("example", "DNSKEY").answer, 120)


def openssl_speed():
    """Microseconds of a P-256 signature, as OpenSSL measures them itself."""
    done = subprocess.run(["openssl", "speed", "-seconds", "1", "-mr", "ecdsap256"], capture_output=True, text=True)
    return 1e6 / float(re.search(r"\+F4:\d+:256:([\d.]+)", done.stdout)[1])


def rate(folder, scale, kinds, signs=False):
    counts = {"pando": (20_000, 60_000), "bind": (10_000, 20_000), "knot": (2_000, 20_000)}
    if signs:
        counts = {"pando": (5_000, 20_000), "bind": (1_000, 2_000), "knot": (1_000, 4_000)}
        print(f"openssl speed: {openssl_speed():.1f} µs a signature")
    rows = {}
    running = {}
    for kind in kinds:
        (folder / kind).mkdir()
        running[kind] = updated(kind, folder / kind / "server", zone_file(folder / kind), signs=signs).start("example")
        if signs:
            wait_until_signed(running[kind])
    for _ in range(3):
        for kind, server in running.items():
            for clients, count in zip((1, 64), counts[kind]):
                result = turn(server, max(10, int(count * scale)), clients)
                rows.setdefault((clients, kind), []).append(
                    tuple(result[key] for key in ("rate", "cpu", "p50", "p99", "refused")))
    print("| clients | server | updates/s | CPU µs each | p50 ms | p99 ms | refused |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for (clients, kind), values in sorted(rows.items()):
        line = sorted(values)[len(values) // 2]
        print(f"| {clients} | {kind} | {line[0]:,.0f} | {line[1]:,.0f} | {line[2]:.2f} | {line[3]:.2f} | {line[4]:.0f} |")
    for server in running.values():
        peers.end(server)


def beside(folder, scale):
    """1,000 updates per second of an unsigned zone, alone, and beside as many of a signed zone as 64 clients send."""
    (folder / "signed").mkdir()
    server = servers.Pando(folder / "server", [
        {"name": "example", "file": str(zone_file(folder)), "allow-update": [{"key": KEY["name"]}]},
        {"name": "signed", "file": str(zone_file(folder / "signed", zone="signed")), "dnssec": "default",
         "allow-update": [{"key": KEY["name"]}]}], keys=[KEY], workers=1).start("example")
    servers.wait_until("it is signed", lambda: server.ask("signed", "DNSKEY").answer, 120)
    count = max(100, int(4_000 * scale))
    print("| unsigned updates, 1,000/s | p50 ms | p99 ms | max ms | signed updates/s beside |")
    print("|---|---:|---:|---:|---:|")
    rows = {}
    for _ in range(3):
        rows.setdefault("alone", []).append({**load(server, count, 64, "1000"), "signed": 0})
        other = []
        loader = threading.Thread(target=lambda: other.append(load(server, count * 20, 64, zone="signed")))
        loader.start()
        time.sleep(0.5)
        row = load(server, count, 64, "1000")
        loader.join()
        rows.setdefault("beside", []).append({**row, "signed": other[0]["rate"]})
    for what, values in rows.items():
        row = sorted(values, key=lambda one: one["p99"])[1]
        spread = f"{min(one['p99'] for one in values):.2f}-{max(one['p99'] for one in values):.2f}"
        print(f"| {what} | {row['p50']:.2f} | {row['p99']:.2f} ({spread}) | {row['max']:.2f} | {row['signed']:,.0f} |")
    peers.end(server)


def renewal(folder, size):
    """A worker's processor time for a query, idle and while a longer `validity` renews all signatures."""
    path = zone_file(folder, size)
    server = servers.Pando(folder / "server", [{"name": "example", "file": str(path), "dnssec": "timed"}], workers=1,
                           size_limit="8GiB")

    def configure(validity):
        server.write_config()
        with open(server.config, "a", encoding="utf-8") as config:
            config.write(f"dnssec-policies: [{{name: timed, validity: {validity}}}]\n")

    configure("1h")
    server.start("example", 900)
    questions = folder / "questions"
    questions.write_text("".join(f"n{i}.example A\n" for i in range(0, size, 7)))
    rate = 10_000
    workers = server.left_over()

    def measure(until):
        asking = subprocess.Popen([str(servers.build_folder() / "bench/bench_query_load"), str(server.port), str(questions),
                                   str(rate), "16", "0"], stdout=subprocess.PIPE, text=True)
        time.sleep(1)
        before, begin = peers.processor(workers), time.monotonic()
        until()
        spent, seconds = (peers.processor(workers) - before) / 1000, time.monotonic() - begin
        asking.terminate()
        told = asking.communicate()[0]
        p99 = re.search(r"p99 ([\d.]+)", told)[1]
        return spent / (seconds * rate), p99, seconds

    print("| zone of " + f"{size:,} names, {rate:,} queries/s | worker's CPU µs a query | p99 µs | seconds |")
    print("|---|---:|---:|---:|")
    for validity in ("14d", "60d", "200d"):  # each has older signatures made anew
        def renewed(validity=validity):
            before = server.log().count("signatures_renewed")
            configure(validity)
            server.control("reload")
            servers.wait_until("all are renewed", lambda: server.log().count("signatures_renewed") >= before + size // 5_000, 900)
        for what, until in (("idle", lambda: time.sleep(8)), ("renewing", renewed)):
            each, p99, seconds = measure(until)
            print(f"| {what} | {each:.2f} | {p99} | {seconds:.1f} |", flush=True)
    peers.end(server)


def looks(folder, scale):
    """Looks right after acknowledgements, that other workers answer."""
    server = updated("pando", folder / "server", zone_file(folder), workers=4).start("example")
    result = load(server, int(100_000 * scale), 64, "look")
    print(f"{result['looks']:,.0f} looks right after acknowledgements, 4 workers: {result['stale']:.0f} stale")
    peers.end(server)


def secondary(kind, folder, primary):
    where = f"127.0.0.1@{primary.port}"
    if kind == "pando":
        return servers.Pando(folder, [{"name": "example", "primaries": ["upstream"]}], workers=1,
                             remotes=[{"name": "upstream", "address": [where]}], size_limit="16GiB")
    if kind == "bind":
        return servers.Bind(folder, {"example": f'type secondary; file "{folder}/copy"; '
                                     f'primaries {{ 127.0.0.1 port {primary.port}; }}; allow-notify {{ 127.0.0.1; }};'},
                            options="serial-query-rate 1000;")
    if kind == "nsd":
        folder.mkdir()
        return servers.Nsd(folder, {"example": folder / "copy"}, zone_options=(
            f"  request-xfr: {where} NOKEY\n  allow-notify: 127.0.0.1 NOKEY\n"))
    (folder / "db").mkdir(parents=True)
    return servers.Knot(folder, {"example": "copy"}, zone_options={
        "example": "    master: upstream\n    acl: notify\n    journal-content: changes\n    zonefile-sync: -1\n"}, text=f"""
remote:
  - id: upstream
    address: {where}
acl:
  - id: notify
    address: 127.0.0.1
    action: notify
""")


def wait_for(server, serial, first=0.02, seconds=900):
    """Until the server has the serial; looks seldom, since looks take its processor time."""
    deadline = time.monotonic() + seconds
    time.sleep(first)
    while time.monotonic() < deadline:
        try:
            if server.serial("example") == serial:
                return
        except Exception:  # it does not answer yet
            pass
        time.sleep(0.05)
    raise SystemExit(f"{server.name} did not get serial {serial}: {server.log()}")


def told(server, primary, first):
    primary.notify(server.port)
    wait_for(server, primary.serial, first)


def ixfr(folder, size, kinds):
    print(f"| secondary of {size:,} names | CPU ms per difference, one at a time | of it manager | in one IXFR of 1,000 |")
    print("|---|---:|---:|---:|")
    rounds = {"pando": 300, "bind": 100, "nsd": 10, "knot": 20}
    for kind in kinds:
        primary = Primary(size)
        server = secondary(kind, folder / f"ixfr-{kind}-{size}", primary)
        server.start("example", 900)
        wait_for(server, primary.serial)
        time.sleep(3)  # copies that are written after a transfer
        first = 1.1 if kind == "nsd" else 0.03
        pids = peers.family(server.process.pid)
        manager = [server.process.pid]
        before = peers.processor(pids), peers.processor(manager)
        for _ in range(rounds[kind]):
            primary.change()
            told(server, primary, first)
        pids = peers.family(server.process.pid)  # NSD has new processes for each version
        single = (peers.processor(pids) - before[0]) / rounds[kind] / 1e6
        alone = (peers.processor(manager) - before[1]) / rounds[kind] / 1e6
        before = peers.processor(pids)
        for _ in range(1000):
            primary.change()
        told(server, primary, first)
        many = (peers.processor(peers.family(server.process.pid)) - before) / 1000 / 1e6
        transfers = {name: primary.transfers.count(code) for name, code in (("AXFR", 252), ("IXFR", 251))}
        print(f"| {kind} ({transfers['IXFR']} IXFR, {transfers['AXFR']} AXFR) | {single:.3f} | {alone:.3f} | {many:.4f} |", flush=True)
        peers.end(server)


class MemoryWatch:
    """The most that processes took together, looked at ten times per second."""

    def __init__(self, pid):
        self.pid, self.peak, self.ending = pid, 0, threading.Event()
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()

    def watch(self):
        while not self.ending.wait(0.1):
            self.peak = max(self.peak, steady(self.pid))

    def stop(self):
        self.ending.set()
        self.thread.join()
        return self.peak


def steady(pid):
    total = 0
    for process in peers.family(pid):
        try:
            total += peers.memory([process])
        except OSError:
            pass
    return total


def axfr(folder, size, kinds):
    print(f"| AXFR in of {size:,} records | CPU s until serving | wall s | peak MB | steady MB | peak / steady | again: CPU s | peak / steady |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in kinds:
        primary = Primary(size)
        primary.prepare()
        server = secondary(kind, folder / f"axfr-{kind}", primary)
        begin = time.monotonic()
        server.start()
        watch = MemoryWatch(server.process.pid)
        wait_for(server, primary.serial)
        wall = time.monotonic() - begin
        first = peers.processor(peers.family(server.process.pid)) / 1e9
        time.sleep(5)
        peak, rest = watch.stop(), steady(server.process.pid)
        # The whole zone again, with other data: the old version serves meanwhile.
        primary.renew()
        watch = MemoryWatch(server.process.pid)
        before = peers.processor(peers.family(server.process.pid))
        told(server, primary, 0.5)
        again = (peers.processor(peers.family(server.process.pid)) - before) / 1e9
        time.sleep(5)
        peak_again, rest_again = watch.stop(), steady(server.process.pid)
        print(f"| {kind} | {first:.2f} | {wall:.2f} | {peak / 1e6:.0f} | {rest / 1e6:.0f} | {peak / rest:.2f} | {again:.2f} | "
              f"{peak_again / rest_again:.2f} |", flush=True)
        peers.end(server)


LARGE = 200_000  # records of a large difference


def large(folder, size):
    """1,000 updates per second of one zone, beside a large difference of another."""
    primary = Primary(size, "big")
    primary.prepare()
    edited, updated_zone = folder / "edited.zone", zone_file(folder)

    def write_edited(version):
        with edited.open("w") as out:
            out.write(f"$ORIGIN edited.\n$TTL 300\n@ SOA ns admin {version} 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
            step = size * 2 // LARGE  # of every so many names one has another address in each version
            out.writelines(f"n{i:07} 60 A 192.0.2.{version if i % step == 0 else 0}\n" for i in range(size))

    write_edited(1)
    server = servers.Pando(folder / "server", [
        {"name": "big", "primaries": ["upstream"]}, {"name": "edited", "file": str(edited)},
        {"name": "example", "file": str(updated_zone), "allow-update": [{"key": KEY["name"]}]}],
        keys=[KEY], workers=1, size_limit="16GiB",
        remotes=[{"name": "upstream", "address": [f"127.0.0.1@{primary.port}"]}])
    server.start("example")
    wait_for_zone(server, "big")
    wait_for_zone(server, "edited")
    print(f"| beside, zones of {size:,} names | updates/s | p50 ms | p99 ms | max ms | seconds |")
    print("|---|---:|---:|---:|---:|---:|")

    def measure(what, zone, serial, begin, seconds=4):
        """A second of updates before the difference, and the rest while it comes."""
        rows = []
        loader = threading.Thread(target=lambda: rows.append(load(server, 1000 * seconds, 64, "1000")))
        loader.start()
        time.sleep(1)
        began = time.monotonic()
        begin()
        while server.serial(zone) != serial:
            time.sleep(0.02)
        spent = time.monotonic() - began
        loader.join()
        row = rows[0]
        print(f"| {what} | {row['rate']:,.0f} | {row['p50']:.2f} | {row['p99']:.2f} | {row['max']:.2f} | {spent:.2f} |", flush=True)

    measure("nothing", "edited", 1, lambda: None)
    for serial in (2, 3):
        primary.change(LARGE)
        measure(f"an IXFR of {LARGE:,} records", "big", serial, lambda: primary.notify(server.port))
    for serial in (2, 3):
        write_edited(serial)
        measure(f"an edited file, {LARGE:,} records", "edited", serial, lambda: server.control("reload"), 12)
    print(json.dumps({name: value for name, value in server.control("status")["counters"].items()
                      if name.startswith(("upkeep", "transfers", "large"))}))
    peers.end(server)


def wait_for_zone(server, zone):
    while True:
        try:
            return server.serial(zone)
        except Exception:  # not there yet
            time.sleep(0.2)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # by way of all that ends servers
    what = sys.argv[1] if len(sys.argv) > 1 else "rate"
    rest = sys.argv[2:]
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as name:
        folder = pathlib.Path(name)
        modules = {"isolation": "isolation", "octets": "octets", "zones": "many_zones"}  # they have options of their own
        if what in modules:
            return importlib.import_module(modules[what]).run(folder, rest)
        number = float(rest[0]) if rest else None
        kinds = rest[1:]
        if what == "rate":
            rate(folder, number or 1.0, kinds or ["pando", "bind", "knot"])
        elif what == "signed":
            rate(folder, number or 1.0, kinds or ["pando", "bind", "knot"], signs=True)
        elif what == "beside":
            beside(folder, number or 1.0)
        elif what == "renewal":
            renewal(folder, int(number or 100_000))
        elif what == "looks":
            looks(folder, number or 1.0)
        elif what == "ixfr":
            ixfr(folder, int(number or 1_000_000), kinds or ["pando", "bind", "nsd", "knot"])
        elif what == "large":
            large(folder, int(number or 1_000_000))
        elif what == "axfr":
            axfr(folder, int(number or 1_000_000), kinds or ["pando", "bind", "nsd", "knot"])
        else:
            raise SystemExit(__doc__)


if __name__ == "__main__":
    main()
