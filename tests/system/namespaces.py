"""Hosts of a test: network namespaces on one bridge, and a Pando on one. A file descriptor holds each namespace, so that
nothing is left of them."""

import contextlib
import ctypes
import json
import os
import subprocess

import servers

CLONE_NEWNET = 0x40000000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(descriptor):
    if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def own_namespace():
    return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)


class Namespace:
    """A network namespace. `with` puts the calling thread into it, with the sockets and processes it makes there."""

    def __init__(self):
        outside = own_namespace()
        try:
            if LIBC.unshare(CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "unshare: network namespaces need root")
            self.descriptor = own_namespace()
        finally:
            enter(outside)
            os.close(outside)
        self.ip("link", "set", "lo", "up")

    @property
    def path(self):
        return f"/proc/{os.getpid()}/fd/{self.descriptor}"

    @contextlib.contextmanager
    def inside(self):
        outside = own_namespace()
        enter(self.descriptor)
        try:
            yield self
        finally:
            enter(outside)
            os.close(outside)

    def run(self, *words):
        with self.inside():
            done = subprocess.run(words, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, f"{words}: {done.stderr}"
        return done.stdout

    def ip(self, *words):
        return self.run("ip", *words)

    def close(self):
        """The namespace goes with its last process."""
        os.close(self.descriptor)


class Lan:
    """A bridge in a namespace of its own, from which the test asks, and hosts on it."""

    def __init__(self, address="192.0.2.254"):
        self.hub = Namespace()
        self.hosts = {}
        self.hub.ip("link", "add", "br0", "type", "bridge")
        self.hub.ip("link", "set", "br0", "up")
        self.hub.ip("address", "add", f"{address}/24", "dev", "br0")

    def host(self, name, address):
        host = self.hosts[name] = Namespace()
        self.hub.ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", host.path)
        self.hub.ip("link", "set", name, "master", "br0", "up")
        host.ip("address", "add", f"{address}/24", "dev", "eth0")
        host.ip("link", "set", "eth0", "up")
        return host

    def cut(self, name):
        self.hub.ip("link", "set", name, "down")

    def join(self, name):
        self.hub.ip("link", "set", name, "up")

    def close(self):
        for host in self.hosts.values():
            host.close()
        self.hub.close()


class InstalledPando(servers.Pando):
    """A Pando on a host of its own, whose programs are installed in a folder of its own, so that they can be upgraded.
    Addresses and sections are chosen in write_config()."""

    def __init__(self, folder, host, workers=1):
        self.host = host
        self.programs = folder / "bin"
        self.programs.mkdir(parents=True)
        self.install(servers.build_folder())
        super().__init__(folder, [], port=53, workers=workers)

    def write_sections(self, server, **sections):
        """The configuration: what all of them have, and these."""
        own = "root" if os.getuid() == 0 else str(os.getuid())
        self.config.touch(0o640)
        self.config.write_text(json.dumps({
            "server": {"workers": self.workers_wanted, "run-directory": "run", "user": own, "worker-user": own,
                       "control-group": "root", **server},
            "store": {"path": f"{self.store}/zones.store", "size-limit": "128MiB", "journal": "journal"},
            **sections}, indent=1))

    def command(self):
        return [str(self.programs / "pando-manager"), "--config", str(self.config)]

    def install(self, build):
        """As a package does it: the new file takes the old one's name."""
        for program in ("pando-manager", "pando-worker"):
            new = self.programs / f"{program}.new"
            servers.link_or_copy(build / program, new)
            new.rename(self.programs / program)

    def launch(self):
        """Starts the process without waiting for it."""
        with self.host.inside(), open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            cwd=self.folder, env=self.environment())

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"{self.folder.name} has ended: {self.log()}")
        try:
            return self.control("ready", "--zones")["ready"]
        except AssertionError:
            return False

    def control(self, *words, check=True):
        with self.host.inside():  # an upgrade starts the next manager from there
            return super().control(*words, check=check)

    def upgrade(self, build):
        before = {self.manager_pid(), *self.left_over()}
        self.install(build)
        done = self.control("upgrade", "--log", str(self.folder / "log"))
        assert done["pid"] not in before
        servers.wait_until("the old processes have ended", lambda: not before & set(self.left_over()))
        self.process.wait(60)

    def faults_of_sanitizers(self):
        if not self.log_path.exists():  # it was never started
            return []
        return [line for line in self.log_path.read_text(errors="replace").splitlines()
                if "ERROR: AddressSanitizer" in line or "runtime error:" in line]

    def clean(self):
        """The manager may be no child of the test."""
        pid = self.manager_pid() if self.process else None
        if pid and pid != self.process.pid:
            self.control("stop")
            servers.wait_until("the manager has ended", lambda: not os.path.exists(f"/proc/{pid}"))
        super().clean()
