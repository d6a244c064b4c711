"""Two hosts on one wire: a server with `server.xdp` and a client, each in a network namespace of its own."""

import array
import contextlib
import fcntl
import os
import signal
import socket
import struct
import threading
import time

import dns.message

import namespaces
import servers

SERVER = {4: "192.0.2.1", 6: "2001:db8::1", "vlan": "198.51.100.1"}
CLIENT = {4: "192.0.2.2", 6: "2001:db8::2", "vlan": "198.51.100.2"}
VLAN = 7
ZONE = "xdp.test"

SIOCETHTOOL = 0x8946
STXCSUM, GFLAGS, SFLAGS, SCHANNELS = 0x17, 0x25, 0x26, 0x3D
FLAG_TXVLAN = 1 << 7
AF_XDP = 44


def missing():
    """Why these tests cannot run here; None if they can."""
    try:
        socket.socket(AF_XDP, socket.SOCK_RAW).close()
        namespace = namespaces.Namespace()
    except OSError as error:
        return f"AF_XDP sockets and network namespaces need root and a kernel with them: {error}"
    try:
        namespace.ip("link", "add", "probe0", "type", "veth", "peer", "name", "probe1")
    except (AssertionError, OSError) as error:
        return f"no veth: {error}"
    finally:
        namespace.close()
    return None


def ethtool(interface, command, value=0):
    """One number of the interface by ioctl, as the program ethtool does it."""
    request = array.array("B", struct.pack("II", command, value))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sP", interface.encode(), request.buffer_info()[0]) + bytes(16)
        fcntl.ioctl(any_socket, SIOCETHTOOL, name)
    return struct.unpack("II", request.tobytes())[1]


def set_channels(interface, count):
    """ethtool -L INTERFACE rx COUNT tx COUNT."""
    request = array.array("B", struct.pack("9I", SCHANNELS, 0, 0, 0, 0, count, count, 0, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        name = struct.pack("16sP", interface.encode(), request.buffer_info()[0]) + bytes(16)
        fcntl.ioctl(any_socket, SIOCETHTOOL, name)


class Wire:
    """veth: eth0 of the server and c0 of the client."""

    def __init__(self, queues=1, mtu=1500):
        self.server, self.client = namespaces.Namespace(), namespaces.Namespace()
        count = ["numrxqueues", str(queues), "numtxqueues", str(queues)]
        self.server.ip("link", "add", "eth0", *count, "type", "veth", "peer", "name", "c0", *count, "netns",
                       self.client.path)
        for host, interface, own in ((self.server, "eth0", SERVER), (self.client, "c0", CLIENT)):
            host.ip("link", "set", interface, "mtu", str(mtu), "up")
            host.ip("address", "add", f"{own[4]}/24", "dev", interface)
            if mtu >= 1280:  # RFC 8200 §5
                host.ip("address", "add", f"{own[6]}/64", "dev", interface, "nodad")

    def add_vlan(self):
        """A VLAN on both ends; False if this kernel has none."""
        for host, interface, own in ((self.server, "eth0", SERVER), (self.client, "c0", CLIENT)):
            name = f"{interface}.{VLAN}"
            try:
                host.ip("link", "add", "link", interface, "name", name, "type", "vlan", "id", str(VLAN))
            except AssertionError:
                return False
            host.ip("link", "set", name, "up")
            host.ip("address", "add", f"{own['vlan']}/24", "dev", name)
        return True

    def write_tags(self):
        """The client's kernel writes tags and checksums into the frames, as a wire has them."""
        with self.client.inside():
            ethtool("c0", SFLAGS, ethtool("c0", GFLAGS) & ~FLAG_TXVLAN)
            ethtool("c0", STXCSUM, 0)

    def use_queues(self, count):
        """A veth has one queue until it is told of more."""
        for host, interface in ((self.server, "eth0"), (self.client, "c0")):
            with host.inside():
                set_channels(interface, count)

    @staticmethod
    def mac(host, interface):
        words = host.ip("-o", "link", "show", interface).split()
        return bytes.fromhex(words[words.index("link/ether") + 1].replace(":", ""))

    def close(self):
        self.client.close()
        self.server.close()


class XdpPando(namespaces.InstalledPando):
    """A Pando on the server's host."""

    def __init__(self, folder, wire, xdp, workers=1, server=(), prefix=(), **sections):
        self.wire, self.xdp, self.server, self.sections = wire, xdp, dict(server), sections
        self.prefix = list(prefix)
        folder.mkdir()
        self.zone_file = folder / "zone"
        self.zone_file.write_text(zone_text())
        super().__init__(folder, wire.server, workers)

    def write_config(self):
        self.store = self.store.with_name(f"pando-xdp-{os.getpid()}-{self.folder.name}")
        zone = {"name": ZONE, "file": str(self.zone_file), "allow-update": [{"key": "editor"}]}
        self.write_sections({"listen": ["0.0.0.0@53", "::@53"], "xdp": self.xdp, **self.server},
                            **{"keys": [{"name": "editor", "secret": "c2VjcmV0IG9mIHRoZSBlZGl0b3I="}],
                               "zones": [zone], **self.sections})

    def command(self):
        return [*self.prefix, *super().command()]

    def start(self, zone=None, seconds=150, attached=True):
        self.launch()
        servers.wait_until("all is served", self.is_ready, seconds)
        if attached:
            self.await_queues()
        return self

    def await_queues(self, interface="eth0"):
        """All queues of the interface are workers'."""
        def served():
            rows = [row for row in self.control("status")["xdp"] if row["interface"] == interface]
            return rows and rows[0]["queues"] and len(rows[0]["served"]) == rows[0]["queues"] and rows[0]
        try:
            return servers.wait_until("queues are served by XDP", served)
        except AssertionError as error:
            raise AssertionError(f"{error}: {self.control('status')['xdp']}\n{self.log()}") from error

    def counter(self, name):
        return sum(row["counters"].get(name, 0) for row in self.workers().values())

    def kill_manager(self):
        self.kill(signal.SIGKILL)


def zone_text():
    lines = ["$TTL 300", "@ SOA ns1 admin 1 3600 600 86400 300", "@ NS ns1", "ns1 A 192.0.2.1",
             "ns1 AAAA 2001:db8::1", "www A 192.0.2.80", "www AAAA 2001:db8::80", "alias CNAME www",
             "*.wild TXT \"wild\"", "sub NS ns.sub", "ns.sub A 192.0.2.53"]
    lines += [f"large TXT \"{number:03} {'x' * 90}\"" for number in range(10)]  # 1,070 octets
    return "\n".join(lines) + "\n"


def ask(host, query, to, port=53, timeout=5, options=()):
    """The response as octets; None without one."""
    family = socket.AF_INET6 if ":" in to else socket.AF_INET
    with host.inside(), socket.socket(family, socket.SOCK_DGRAM) as client:
        for option in options:
            client.setsockopt(*option)
        client.settimeout(timeout)
        client.sendto(query, (to, port))
        with contextlib.suppress(TimeoutError):
            return client.recv(65535)
    return None


class Load:
    """Clients that ask one question after the other, and count those without an answer."""

    def __init__(self, wire, to=SERVER[4], clients=4):
        self.wire, self.to = wire, to
        self.stopping = threading.Event()
        self.asked = self.lost = 0
        self.wrong = []
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(clients)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        query = dns.message.make_query(f"www.{ZONE}", "A")
        with self.wire.client.inside(), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect((self.to, 53))
            client.settimeout(5)
            while not self.stopping.is_set():
                query.id = (query.id + 1) % 65536
                client.send(query.to_wire())
                answer = None
                with contextlib.suppress(OSError):
                    answer = client.recv(4096)
                with self.lock:
                    self.asked += 1
                    if answer is None:
                        self.lost += 1
                    elif answer[:2] != query.to_wire()[:2] or answer[3] & 15 or answer[7] != 1:
                        self.wrong.append(answer)
                time.sleep(0.001)

    def wait_for(self, more):
        end = self.asked + more
        servers.wait_until(f"{more} more questions were asked", lambda: self.asked >= end)

    def stop(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()
        return self
