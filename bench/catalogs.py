#!/usr/bin/python3
"""A catalog zone with many members: a Pando that produces it, and one that consumes it.

    PANDO_BUILD=build/release bench/catalogs.py [MEMBERS [FOLDER]]

The producer's members are a zone list. Prints seconds from the reload of that list until the consumer has the members,
until it has transferred their data, and until each has a copy on disk; then the same for a tenth of the members more,
and for their removal, for reloads without a change, and restarts of the consumer. CPU seconds are those of both
managers. Beside it goes one client that sends updates to the producer. FOLDER is on the disk whose fdatasync counts.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parent.parent
sys.path += [str(SOURCE / "tests/system"), str(SOURCE / "contrib"), str(SOURCE / "bench")]

import servers  # noqa: E402
from added_zones import ZONE, Updates, summary  # noqa: E402

CATALOG = "catalog.test"
LOCAL = [{"address": "127.0.0.0/8"}]


def cpu_of(pids):
    ticks = 0
    for pid in pids:
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def reload(server):
    subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "--timeout", "1800",
                    "reload"], check=True, stdout=subprocess.DEVNULL)


class Pair:
    def __init__(self, folder):
        self.folder = folder
        self.list = folder / "members.list"
        self.file = folder / "member.zone"
        self.file.write_text(ZONE)
        self.write_list(0)
        self.producer = servers.Pando(folder / "producer", [
            {"name": "base.test", "file": str(self.file), "allow-update": LOCAL}], workers=1)
        self.consumer = servers.Pando(folder / "consumer", [], workers=1)
        for server in (self.producer, self.consumer):
            server.remotes = [{"name": "consumer", "address": [f"127.0.0.1@{self.consumer.port}"]},
                              {"name": "producer", "address": [f"127.0.0.1@{self.producer.port}"]}]
            server.write_config()
        self.add(self.producer, [
            f"templates: {json.dumps([{'name': 'catalog', 'allow-transfer': LOCAL, 'notify': ['consumer']}, {'name': 'member', 'allow-transfer': LOCAL, 'catalog': CATALOG}])}",
            f"catalogs: [{{zone: {CATALOG}, role: producer, template: catalog}}]",
            f"zone-lists: ['{self.list}']"])
        self.add(self.consumer, [f"catalogs: [{{zone: {CATALOG}, role: consumer, primaries: [producer]}}]"])

    @staticmethod
    def add(server, lines):
        server.config.write_text(server.config.read_text() + "\n".join(lines) + "\n")

    def write_list(self, count):
        self.list.write_text("".join(f"z{number}.member.test {self.file} member\n" for number in range(count)))

    def status(self):
        return self.consumer.control("status")

    def await_members(self, count, loaded=True):
        def there():
            now = self.status()
            return now["zones"] == count + 1 and (not loaded or now["zones_loaded"] == count + 1)
        servers.wait_until(f"{count} members", there, seconds=1800)

    def await_copies(self, count):
        folder = self.consumer.folder / "journal/secondary"

        def there():
            time.sleep(0.3)  # listing is not free
            names = os.listdir(folder) if folder.exists() else []
            return len(names) == count + 1 and not any(name.endswith(".partial") for name in names)
        servers.wait_until(f"{count} copies", there, seconds=1800)

    def measure(self, what, *steps):
        """Each step is a name and a function; the time of each counts from the beginning."""
        pids = [self.producer.process.pid, self.consumer.process.pid]
        with Updates(self.producer) as updates:
            begun, before = time.monotonic(), cpu_of(pids)
            times = []
            for name, step in steps:
                step()
                times.append(f"{name} {time.monotonic() - begun:.2f} s")
            cpu = cpu_of(pids) - before
        print(f"{what}: {', '.join(times)}; {cpu:.1f} CPU s; {summary(updates.times)}", flush=True)

    def change(self, what, count):
        self.write_list(count)
        self.measure(what, ("reload", lambda: reload(self.producer)),
                     ("known to the consumer", lambda: self.await_members(count, loaded=False)),
                     ("transferred", lambda: self.await_members(count)),
                     ("copied", lambda: self.await_copies(count)))


def main(count, parent):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="catalogs-", dir=parent))
    pair = Pair(folder)
    try:
        pair.producer.start("base.test")
        pair.consumer.start()
        pair.measure("nothing", ("", lambda: time.sleep(3)))
        pair.change(f"{count} members", count)
        few = count // 10
        pair.change(f"{few} more", count + few)
        pair.change(f"{few} removed", count)
        pair.measure("reload of the producer", ("", lambda: reload(pair.producer)))
        pair.measure("reload of the consumer", ("", lambda: reload(pair.consumer)))
        pair.consumer.kill()
        begun = time.monotonic()
        pair.consumer.start(f"z{count - 1}.member.test")
        pair.await_members(count)
        print(f"start of the consumer: {time.monotonic() - begun:.2f} s", flush=True)
        print("producer:", [line for line in pair.producer.log().splitlines() if " error" in line][-3:])
        print("consumer:", [line for line in pair.consumer.log().splitlines() if " error" in line][-3:])
    finally:
        for server in (pair.producer, pair.consumer):
            server.clean()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000, sys.argv[2] if len(sys.argv) > 2 else None)
