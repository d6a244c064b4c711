"""Processes of a fleet, each on a host of its own: Pando as a primary and as secondaries, and dnsdist."""

import json
import os
import shutil
import signal
import subprocess

import dns.tsigkeyring

import servers

THIS = servers.build_folder()
NEXT = THIS / "next" if (THIS / "next/pando-manager").exists() else THIS  # with another layout, if it is built
CATALOG = "catalog.test"
TRANSFER_KEY = {"name": "transfer-key", "secret": "c2VjcmV0IG9mIHRoZSB0ZXN0cyBvZiB0cmFuc2ZlcnM="}
UPDATE_KEY = {"name": "update-key", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMuLi4uLi4="}
KEYRING = dns.tsigkeyring.from_text({TRANSFER_KEY["name"]: TRANSFER_KEY["secret"]})
WITH_KEY = [{"key": TRANSFER_KEY["name"]}]


class Node(servers.Pando):
    """A Pando on a host of its own, whose programs are installed in a folder of its own."""

    def __init__(self, folder, lan, name, address, sections, balancers=()):
        self.lan, self.name, self.address, self.balancers = lan, name, address, list(balancers)
        self.host = lan.host(name, address)
        self.sections = sections
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        self.install(THIS)
        super().__init__(folder, [], port=53, workers=1)

    def write_config(self):
        self.store = self.store.with_name(f"pando-fleet-{os.getpid()}-{self.name}")
        own = "root" if os.getuid() == 0 else str(os.getuid())
        self.config.touch(0o640)
        self.config.write_text(json.dumps({
            "server": {"listen": [self.address, "127.0.0.1"], "workers": 1, "run-directory": "run", "user": own,
                       "worker-user": own, "control-group": "root", "proxy-protocol-from": self.balancers},
            "store": {"path": f"{self.store}/zones.store", "size-limit": "128MiB", "journal": "journal"},
            **self.sections}, indent=1))

    def command(self):
        return [str(self.programs / "pando-manager"), "--config", str(self.config)]

    def install(self, build):
        """As a package does it: the new file takes the old one's name."""
        for program in ("pando-manager", "pando-worker"):
            new = self.programs / f"{program}.new"
            os.link(build / program, new)
            new.rename(self.programs / program)

    def launch(self):
        """Starts the process without waiting for it."""
        with self.host.inside(), open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder)

    def control(self, *words, check=True):
        with self.host.inside():  # an upgrade starts the next manager from there
            return super().control(*words, check=check)

    def await_ready(self):
        servers.wait_until(f"{self.name} is ready: {self.log()}", self.is_ready, 150)

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.name} has ended: {self.log()}")
        try:
            return self.control("ready", "--zones")["ready"]
        except AssertionError:
            return False

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

    def upgrade(self, build):
        before = {self.manager_pid(), *self.left_over()}
        self.install(build)
        done = self.control("upgrade", "--log", str(self.folder / "log"))
        assert done["pid"] not in before
        servers.wait_until("the old processes have ended", lambda: not before & set(self.left_over()))
        self.process.wait(60)

    def log(self):
        return super().log()[-2000:]

    def faults_of_sanitizers(self):
        return [line for line in self.log_path.read_text(errors="replace").splitlines()
                if "ERROR: AddressSanitizer" in line or "runtime error:" in line]

    def clean(self):
        """The manager may be no child of the test."""
        pid = self.manager_pid() if self.process else None
        if pid and pid != self.process.pid:
            self.control("stop")
            servers.wait_until("the manager has ended", lambda: not os.path.exists(f"/proc/{pid}"))
        super().clean()


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
