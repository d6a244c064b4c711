#!/usr/bin/env python3
"""Loading, starts and memory beside NSD, Knot and BIND in one run: one zone of a profile, or many small ones.
Prints Markdown tables.

  PANDO_BUILD=build/release bench/starts.py zone PROFILE [SCALE] [SERVER]...
  PANDO_BUILD=build/release bench/starts.py zones [COUNT] [SERVER]...

`first`: from the start of the process to the first right answer, with nothing kept. `process`: the same after all
processes were killed; Pando's store is in memory, the others load again. `host`: after memory was lost, too; Pando
with an image (the last checkpoint just made; served before it is copied when it is larger than 64 MiB) and without.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers  # noqa: E402
import profiles  # noqa: E402
import servers  # noqa: E402

IMAGE = "  image: zones.image\n  checkpoint: {interval: 24h, journal: 32GiB}"


class Probe:
    """Asks over one socket again and again, so that the start of a process is not measured with it."""

    def __init__(self, port, zone):
        self.port, self.zone = port, zone

    def wait(self, process, seconds=3600):
        import socket
        import dns.message
        query = dns.message.make_query(self.zone, "SOA").to_wire()
        started = time.monotonic()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", self.port))
            client.settimeout(0.002)
            while time.monotonic() - started < seconds:
                assert process.poll() is None, "it has ended"
                try:
                    client.send(query)
                    answer = client.recv(4096)
                    if answer[:2] == query[:2] and answer[3] & 15 == 0 and answer[7] == 1:
                        return time.monotonic() - started
                except OSError:
                    pass
                time.sleep(0.001)  # or the asking would be measured
        raise AssertionError("no answer")


def launch(server, zone):
    """Wall seconds to the first answer, and CPU seconds of all processes by then."""
    with open(server.log_path, "ab") as log:
        server.process = subprocess.Popen(server.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                          cwd=server.folder, env=server.environment())
    wall = Probe(server.port, zone).wait(server.process)
    return wall, peers.processor(peers.family(server.process.pid)) / 1e9


def kill(server):
    pids = peers.family(server.process.pid)
    for pid in pids + (server.left_over() if isinstance(server, servers.Pando) else []):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    server.process.wait()
    time.sleep(0.3)


def show(what, wall, cpu, octets="", each=""):
    print(f"| {what} | {wall:.3f} | {cpu:.2f} | {octets} | {each} |", flush=True)


def head(title, unit):
    print(f"\n| {title} | s to the first answer | CPU s by then | MB, all processes | octets per {unit} |\n"
          "|---|---:|---:|---:|---:|")


def settled(server):
    if isinstance(server, servers.Pando):
        servers.wait_until("all zones are loaded", lambda: (
            lambda status: status["zones"] > 0 and status["zones_loaded"] == status["zones"])(server.control("status")),
            3600)
    time.sleep(3)  # memory that comes back, huge pages


def row(kind, server, zone, count):
    wall, cpu = launch(server, zone)
    settled(server)
    pids = peers.family(server.process.pid)
    total = peers.memory(pids)
    show(f"{kind}: first", wall, cpu, f"{total / 1e6:.0f}", f"{total / count:.0f}")
    if kind != "pando":
        kill(server)
        wall, cpu = launch(server, zone)
        return show(f"{kind}: process, host", wall, cpu)
    store = server.control("status")["store"]
    server.control("--timeout", "600", "store", "checkpoint")
    image = server.control("status")["image"]
    print(f"| pando: a whole checkpoint, paced | {image['last_ms'] / 1000:.3f} | | {image['last_bytes'] / 1e6:.0f} | |")
    print(f"| pando: the store alone, live and all | | | {store['live'] / 1e6:.0f}, {store['memory'] / 1e6:.0f} | "
          f"{store['live'] / count:.1f}, {store['memory'] / count:.1f} |")
    kill(server)
    show("pando: process", *launch(server, zone))
    pando_host(server, zone)


def pando_host(server, zone):
    settled(server)
    server.control("--timeout", "600", "store", "checkpoint")
    kill(server)
    shutil.rmtree(server.store)
    started = time.monotonic()
    show("pando: host, image", *launch(server, zone))
    servers.wait_until("the image is copied", lambda: server.control("status")["image"]["bytes_to_copy"] == 0, 600)
    print(f"| pando: by then it is in memory | {time.monotonic() - started:.3f} | | | |", flush=True)
    settled(server)
    kill(server)
    shutil.rmtree(server.store)
    for path in server.folder.glob("zones.image*"):
        path.unlink()
    show("pando: host, zone files", *launch(server, zone))


def make(kind, folder, zones):
    """A server with these zones; Pando with an image, and many zones from a list."""
    if kind != "pando":
        return peers.make(kind, folder, zones)
    server = peers.make(kind, folder, zones if len(zones) == 1 else {})
    server.store_extra, server.size_limit = IMAGE, "16GiB"
    server.write_config()
    if len(zones) > 1:
        (server.folder / "zones.list").write_text("".join(f"{name} {file}\n" for name, file in zones.items()))
        with open(server.config, "a") as config:
            config.write("zone-lists: [zones.list]\n")
    return server


def one_zone(folder, profile, scale, kinds):
    path = folder / "bench.zone"
    origin, records = profiles.write(profile, path, scale)
    head(f"{profile}: {records:,} records", "record")
    for kind in kinds:
        server = make(kind, folder / kind, {origin: path})
        row(kind, server, origin, records)
        peers.end(server)


def many_zones(folder, count, kinds):
    """Zones of five records; Pando has them from a list, the others from their configuration."""
    files = profiles.many(folder / "zones", count)
    head(f"{count:,} zones of 5 records", "zone")
    for kind in kinds:
        server = make(kind, folder / kind, files)
        row(kind, server, list(files)[-1], count)
        peers.end(server)


def main():
    what, rest = sys.argv[1], sys.argv[2:]
    profile = rest.pop(0) if what == "zone" else None
    size = float(rest.pop(0)) if rest and rest[0].replace(".", "").isdigit() else None
    kinds = rest or ["pando", "nsd", "knot", "bind"]
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as folder:
        if what == "zone":
            one_zone(pathlib.Path(folder), profile, size or 1.0, kinds)
        else:
            many_zones(pathlib.Path(folder), int(size or 100_000), kinds)


if __name__ == "__main__":
    main()
