"""What one of very many zones costs to update and to look at, and what a reload of all of them does to updates. Run it as

  PANDO_BUILD=build/release bench/updates.py zones [--zones N] [--rate N] [--seconds N]
  PANDO_BUILD=build/release bench/updates.py zones --rules [--zones N] [--rate N]    reloads that change a rule of each zone
  PANDO_BUILD=build/release bench/updates.py zones --rest [--zones N]                memory right after loading, and later

All zones but the updated one share a file of five records. Rows: one zone alone; one of many; the same while a reload goes
through all zones, none of which has changed. Columns: updates answered per second, their times from when each was due, and
processor time of the manager for each (idle work of the many zones and the reload included).
"""

import argparse
import pathlib
import re
import threading
import time

import octets
import peers
import servers
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
        self.server, self.seconds, self.cpu, self.more_mb = server, 0.0, 0.0, 0.0

    def run(self):
        pid = self.server.process.pid
        pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")  # the peak begins anew (proc(5))
        before, anonymous = sum(peers.cpu([pid])), status_kb(pid, "RssAnon")
        self.seconds = time_of(self.server, "reload") / 1000
        self.cpu = sum(peers.cpu([pid])) - before
        # The peak is of all memory; that of files and of the store hardly changes.
        self.more_mb = (status_kb(pid, "VmHWM") - status_kb(pid, "VmRSS") + status_kb(pid, "RssAnon") - anonymous) / 1000


def status_kb(pid, key):
    return int(re.search(rf"^{key}:\s+(\d+)", pathlib.Path(f"/proc/{pid}/status").read_text(), re.M)[1])


def small_zone(folder):
    path = folder / "small.zone"
    path.write_text("@ 3600 SOA ns1 admin 1 3600 600 86400 300\n@ 3600 NS ns1\n@ 3600 A 10.0.0.1\n"
                    "www 3600 A 192.0.2.1\nns1 3600 A 192.0.2.2\n")
    # A file that changed in the last two seconds has no stamp (decision 016): the first look after the start would read
    # it for each zone.
    time.sleep(3)
    return path


def rules(folder, zones, rate):
    """Each zone has a rule of its own, and each reload gives it another one. Updates go on at the same time."""
    small, updated = small_zone(folder), updates.zone_file(folder, zone="z.many")
    server = servers.Pando(folder / "server", [], keys=[updates.KEY], workers=1, size_limit="16GiB", store_extra=octets.IMAGE)
    head = server.config.read_text()

    def configure(network):
        text = [head, "zones:\n", f'  - {{name: z.many, file: {updated}, allow-update: [{{key: {updates.KEY["name"]}}}]}}\n']
        text += [f"  - {{name: z{i}.many, file: {small}, allow-query: [{{address: {network}.{i >> 16}.{i >> 8 & 255}.{i & 255}}}]}}\n"
                 for i in range(zones)]
        server.config.write_text("".join(text))

    configure(10)
    server.start("z.many", 600)
    try:
        servers.wait_until("all zones are loaded", lambda: (
            lambda status: status["zones"] == status["zones_loaded"])(server.control("status")), 3600)
        time.sleep(3)
        updates.load(server, 1000, 64, zone="z.many")
        print(f"\n| {zones:,} zones, each with another rule | s | CPU s | MB more at its peak | updates' p50 ms | p99 ms | max ms |"
              "\n|---|---:|---:|---:|---:|---:|---:|")
        for turn in range(5):
            configure(11 + turn)
            beside = Reload(server)
            load = {}
            sender = threading.Thread(target=lambda: load.update(updates.load(server, rate * 4, 64, str(rate), zone="z.many")))
            sender.start()
            time.sleep(1)
            beside.start()
            beside.join()
            sender.join()
            times = " | ".join(f"{load[key]:.2f}" for key in ("p50", "p99", "max"))
            print(f"| reload {turn + 1} | {beside.seconds:.2f} | {beside.cpu:.2f} | {beside.more_mb:.0f} | {times} |", flush=True)
    finally:
        server.clean()


def pss(pids):
    """MB of processes: proportional set size, and the part of it that is nobody else's and no file's."""
    def sum_of(key):
        texts = [pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
        return sum(int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1]) for text in texts) / 1000
    return sum_of("Pss"), sum_of("Pss_Anon")


def rest(folder, zones):
    """An image is configured. The second start makes the store of it, the third finds neither store nor image."""
    small = small_zone(folder)
    server = servers.Pando(folder / "server", [{"name": "z.many", "file": str(small)}], workers=1, size_limit="16GiB",
                           store_extra=octets.IMAGE)
    with (server.folder / "zones.list").open("w") as out:
        out.writelines(f"z{number}.many {small}\n" for number in range(zones))
    with server.config.open("a") as config:
        config.write("zone-lists: [zones.list]\n")
    print(f"\n| {zones:,} zones, MB of all processes (anonymous memory of these) | as all are loaded | 10 s later | a minute later |")
    print("|---|---:|---:|---:|")
    try:
        for name in ("from the zone files", "from the image"):
            server.start("z.many", 600)
            servers.wait_until("all zones are loaded", lambda: (
                lambda status: status["zones"] == status["zones_loaded"])(server.control("status")), 3600)
            figures = []
            for seconds in (0, 10, 50):
                time.sleep(seconds)
                figures.append("{:.1f} ({:.1f})".format(*pss(peers.family(server.process.pid))))
            print(f"| {name} | {' | '.join(figures)} |", flush=True)
            server.control("--timeout", "600", "store", "checkpoint")
            server.stop()
            (server.store / "zones.store").unlink()
    finally:
        server.clean()


def run(folder, words):
    parser = argparse.ArgumentParser(prog="bench/updates.py zones", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--zones", type=int)
    parser.add_argument("--rules", action="store_true")
    parser.add_argument("--rest", action="store_true")
    parser.add_argument("--rate", type=int, default=200, help="updates per second")
    parser.add_argument("--seconds", type=int, default=20, help="of each row")
    options = parser.parse_args(words)
    if options.rules:
        return rules(folder, options.zones or 100_000, options.rate)
    if options.rest:
        return rest(folder, options.zones or 100_000)
    options.zones = options.zones or 1_000_000
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
