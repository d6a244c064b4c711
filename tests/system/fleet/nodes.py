"""Processes of a fleet, each on a host of its own: Pando as a primary and as secondaries, and dnsdist."""

import os
import shutil
import signal
import subprocess

import dns.tsigkeyring

import namespaces
import servers

THIS = servers.build_folder()
NEXT = THIS / "next" if (THIS / "next/pando-manager").exists() else THIS  # with another layout, if it is built
CATALOG = "catalog.test"
TRANSFER_KEY = {"name": "transfer-key", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
UPDATE_KEY = {"name": "update-key", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMuLi4uLi4="}
KEYRING = dns.tsigkeyring.from_text({TRANSFER_KEY["name"]: TRANSFER_KEY["secret"]})
WITH_KEY = [{"key": TRANSFER_KEY["name"]}]


class Node(namespaces.InstalledPando):
    """A Pando on a host of its own."""

    def __init__(self, folder, lan, name, address, sections, balancers=()):
        self.lan, self.name, self.address, self.balancers = lan, name, address, list(balancers)
        self.sections = sections
        super().__init__(folder, lan.host(name, address))

    def write_config(self):
        self.store = self.store.with_name(f"pando-fleet-{os.getpid()}-{self.name}")
        self.write_sections({"listen": [self.address, "127.0.0.1"], "proxy-protocol-from": self.balancers},
                            **self.sections)

    def await_ready(self):
        servers.wait_until(f"{self.name} is ready: {self.log()}", self.is_ready, 150)

    # Faults ---------------------------------------------------------------------------------------------------------

    def kill_worker(self):
        os.kill(self.workers()[0]["pid"], signal.SIGKILL)

    def kill_manager(self):
        pid = self.manager_pid()
        os.kill(pid, signal.SIGKILL)
        if pid == self.process.pid:
            self.process.wait()

    def kill_all(self):
        self.kill_manager()
        for pid in self.left_over():
            os.kill(pid, signal.SIGKILL)
        servers.wait_until("the workers have ended", lambda: not self.left_over())

    def lose_memory(self):
        """As a host that restarts: the store has gone, and the disk is there."""
        self.kill_all()
        shutil.rmtree(self.store)

    def lose_way_to(self, address):
        self.host.ip("route", "add", "blackhole", address)

    def find_way_to(self, address):
        self.host.ip("route", "delete", "blackhole", address)

    def cut(self):
        self.lan.cut(self.name)

    def join(self):
        self.lan.join(self.name)

    def log(self):
        return super().log()[-2000:]


def primary_sections(zones, secondaries, delay):
    """`zones`: file by name; `secondaries`: address by name."""
    names = list(secondaries)
    shared = {"allow-transfer": WITH_KEY, "notify": names, "notify-delay": delay}
    return {
        "keys": [TRANSFER_KEY, UPDATE_KEY],
        "remotes": [{"name": name, "address": [address], "key": TRANSFER_KEY["name"]}
                    for name, address in secondaries.items()],
        "templates": [{"name": "catalog", **shared},
                      {"name": "member", "catalog": CATALOG, "allow-update": [{"key": UPDATE_KEY["name"]}], **shared}],
        "catalogs": [{"zone": CATALOG, "role": "producer", "template": "catalog"}],
        "zones": [{"name": zone, "file": str(file), "template": "member"} for zone, file in zones.items()],
    }


def secondary_sections(primary):
    return {
        "keys": [TRANSFER_KEY],
        "remotes": [{"name": "primary", "address": [primary], "key": TRANSFER_KEY["name"]}],
        "templates": [{"name": "member", "allow-transfer": WITH_KEY}],
        "catalogs": [{"zone": CATALOG, "role": "consumer", "primaries": ["primary"], "template": "member"}],
    }


def tier_sections(primary, edges):
    """Of a secondary with secondaries of its own: the template `default` is the catalog's, too."""
    sections = secondary_sections(primary)
    return {
        **sections,
        "remotes": sections["remotes"] + [{"name": name, "address": [address], "key": TRANSFER_KEY["name"]}
                                          for name, address in edges.items()],
        "templates": [{"name": "default", "allow-transfer": WITH_KEY, "notify": list(edges)}, {"name": "member"}],
    }


class Dnsdist(servers.Server):
    """dnsdist in front of the secondaries, as docs/howto/fleet.md has it."""

    name = "dnsdist"

    def __init__(self, folder, lan, address, backends, check_name):
        super().__init__(folder, port=53)
        self.address, self.host = address, lan.host("front", address)
        lines = [f'setLocal("{address}:53")', 'setACL({"192.0.2.0/24"})', 'setSecurityPollSuffix("")',
                 "setServerPolicy(leastOutstanding)"]
        for name, backend in backends.items():
            lines.append(f'newServer({{address="{backend}:53", name="{name}", checkName="{check_name}.", '
                         'checkType="SOA", mustResolve=true, useProxyProtocol=true, checkInterval=1, checkTimeout=500, '
                         'maxCheckFailures=2, rise=2})')
        (self.folder / "dnsdist.conf").write_text("\n".join(lines) + "\n")

    def command(self):
        return ["/usr/bin/dnsdist", "--supervised", "--disable-syslog", "-C", str(self.folder / "dnsdist.conf")]

    def start(self, zone=None, seconds=60):
        with self.host.inside(), open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder)
        return self
