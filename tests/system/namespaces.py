"""Hosts of a test: network namespaces on one bridge. A file descriptor holds each, so that nothing is left of them."""

import contextlib
import ctypes
import os
import subprocess

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
