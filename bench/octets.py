"""What a small update writes, in octets: in the store, and on disk. Run it as

  PANDO_BUILD=build/release bench/updates.py octets [--updates N] [--zones N] [--peers bind,knot]

Rows: one client; one client whose zone is one of many; 64 clients. Each update replaces the A record of one of 10,000 names.
Columns:

  store       octets of fresh blocks, of all versions that were published: what an update copies (status: store_octets; with the
              change history, and with what compaction moved, if it walked)
  growth      of the live store; most of it is change history, which has a limit
  journal     as the journal counts its records
  checkpoint  written to the image by one checkpoint behind all updates: the more of them, the less for each
  write()     octets that the process handed to write calls (wchar of /proc/PID/io), to files of all kinds and pipes, not to sockets;
              the checkpoint included
  disk        write_bytes of /proc/PID/io: pages that were made dirty, of 4 KiB each, so a synced record of 200 octets counts 4,096;
              the checkpoint included
"""

import argparse
import pathlib
import re
import time

import peers
import servers
import updates

IMAGE = "  image: zones.image\n  checkpoint: {interval: 24h, journal: 32GiB}"


def written(pids):
    """Octets handed to write calls by processes so far, and octets of pages that they made dirty."""
    rows = [dict(re.findall(r"(\w+): (\d+)", pathlib.Path(f"/proc/{pid}/io").read_text())) for pid in pids]
    return sum(int(row["wchar"]) for row in rows), sum(int(row["write_bytes"]) for row in rows)


def send(server, zone, count, clients):
    result = updates.load(server, count, clients, zone=zone)
    if result["answered"] != count:
        raise SystemExit(f"{server.name}: {result}")


def start_pando(folder, zones):
    """With so many zones beside the one that is updated, which lies in their middle."""
    folder.mkdir()
    zone = f"z{zones // 2}.many"
    server = servers.Pando(folder / "server", [
        {"name": zone, "file": str(updates.zone_file(folder, zone=zone)), "allow-update": [{"key": updates.KEY["name"]}]}],
        keys=[updates.KEY], workers=1, size_limit="16GiB", store_extra=IMAGE)
    if zones > 1:
        small = folder / "small.zone"
        small.write_text("@ 3600 SOA ns1 admin 1 3600 600 86400 300\n@ 3600 NS ns1\n@ 3600 A 10.0.0.1\n"
                         "www 3600 A 192.0.2.1\nns1 3600 A 192.0.2.2\n")
        with (server.folder / "zones.list").open("w") as out:
            out.writelines(f"z{number}.many {small}\n" for number in range(zones) if number != zones // 2)
        with server.config.open("a") as config:
            config.write("zone-lists: [zones.list]\n")
    server.start(zone, 600 if zones > 1 else 60)
    servers.wait_until("all zones are loaded", lambda: (
        lambda status: status["zones"] == status["zones_loaded"])(server.control("status")), 3600)
    time.sleep(3)
    return server, zone


def pando_row(name, server, zone, count, clients):
    send(server, zone, 1000, clients)  # the first difference says more than later ones
    server.control("--timeout", "600", "store", "checkpoint")
    pids = [server.process.pid]
    before, io = server.control("status"), written(pids)
    send(server, zone, count, clients)
    middle = server.control("status")
    server.control("--timeout", "600", "store", "checkpoint")
    after, io_after = server.control("status"), written(pids)

    def each(section, key, status=middle):
        return (status[section][key] - before[section][key]) / count

    store = f"{each('counters', 'store_bytes'):,.0f}" if "store_bytes" in middle["counters"] else "not counted by this build"
    walks = middle["counters"]["upkeep_walks"] - before["counters"]["upkeep_walks"]
    journal, image = each("journal", "bytes"), each("image", "bytes_written", after)
    print(f"| {name} | {1 / each('counters', 'versions'):.1f} | {store}{f' ({walks} walks)' if walks else ''} | "
          f"{each('store', 'live'):,.0f} | {each('store', 'history'):,.0f} | {journal:,.0f} | {image:,.0f} | {journal + image:,.0f} | "
          f"{(io_after[0] - io[0]) / count:,.0f} | {(io_after[1] - io[1]) / count:,.0f} |", flush=True)


def peer_row(kind, folder, count, clients):
    folder.mkdir()
    server = updates.updated(kind, folder / "server", updates.zone_file(folder)).start("example")
    try:
        pids = peers.family(server.process.pid)
        io = written(pids)
        send(server, "example", count, clients)
        time.sleep(5)  # files that are written after a while
        after = written(pids)
        print(f"| {kind}: {clients} client{'s' * (clients > 1)}, {count:,} updates | | | | | | | | {(after[0] - io[0]) / count:,.0f} | "
              f"{(after[1] - io[1]) / count:,.0f} |", flush=True)
    finally:
        peers.end(server)


def run(folder, words):
    parser = argparse.ArgumentParser(prog="bench/updates.py octets", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=20_000, help="for each row; 260,000 is what a checkpoint has behind it by "
                        "default (64 MiB of journal)")
    parser.add_argument("--zones", type=int, default=100_000, help="of the row with many")
    parser.add_argument("--peers", default="bind,knot", type=lambda text: [kind for kind in text.split(",") if kind])
    options = parser.parse_args(words)
    print(f"| octets per update, {options.updates:,} updates | updates per version | store | growth | of it history | journal | checkpoint | "
          "journal and checkpoint | write() | disk |")
    print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for zones in (1, options.zones):
        server, zone = start_pando(folder / f"pando-{zones}", zones)
        try:
            pando_row(f"one client, {zones:,} zone{'s' * (zones > 1)}", server, zone, options.updates, 1)
            if zones == 1:
                pando_row("64 clients", server, zone, options.updates, 64)
        finally:
            server.clean()
    for kind in options.peers:
        for clients in (1, 64):
            peer_row(kind, folder / f"{kind}-{clients}", min(options.updates, 5_000), clients)
