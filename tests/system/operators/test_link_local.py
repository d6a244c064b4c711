"""Link-local addresses of IPv6, which have their interface with them: `fe80::1%eth0`."""

import os
import socket
import subprocess

import pytest

import servers
from namespaces import InstalledPando, Lan, Namespace

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="network namespaces need root")

ZONE = "$TTL 300\n@ SOA ns1 admin {serial} 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"
LOCAL = "127.0.0.1@53"


class Host(InstalledPando):
    """A server whose readiness is asked through its control socket. Each has port 53."""

    def __init__(self, folder, host):
        super().__init__(folder, host)
        self.store = self.store.with_name(f"pando-link-local-{os.getpid()}-{folder.name}")

    def start(self, zone=None, seconds=150):
        self.launch()
        servers.wait_until(f"{self.folder.name} is up", self.is_up, seconds)
        return self

    def is_up(self):
        if self.process.poll() is not None:
            raise AssertionError(self.log())
        try:
            rows = self.control("worker", "list")["workers"]
        except AssertionError:
            return False
        return rows and all(row["state"] == "serving" for row in rows)


def dig(host, *words):
    """Status of the answer and the lines of it, by dig on a host."""
    with host.inside():
        done = subprocess.run(["dig", "+tries=1", "+time=2", *words], capture_output=True, text=True, timeout=60)
    return done.stdout


def is_answered(host, at, zone="one.test", *words):
    return f"{zone}.\t\t300\tIN\tSOA" in dig(host, f"@{at}", zone, "SOA", "+noall", "+answer", *words)


@pytest.fixture
def lan():
    lan = Lan()
    for name, number in (("host-a", 1), ("host-b", 2)):
        host = lan.host(name, f"192.0.2.{number}")
        host.ip("address", "add", f"fe80::{number}/64", "dev", "eth0", "nodad")
    yield lan
    lan.close()


@pytest.fixture
def host():
    host = Namespace()
    yield host
    host.close()


@pytest.fixture
def start():
    started = []

    def one(folder, host, server, **sections):
        instance = Host(folder, host)
        instance.write_sections(server, **sections)
        started.append(instance)
        return instance.start()

    yield one
    for instance in started:
        instance.clean()


def zone_file(tmp_path, serial=1):
    path = tmp_path / "zone"
    path.write_text(ZONE.format(serial=serial))
    return path


def test_partners_have_link_local_addresses(lan, start, tmp_path):
    """Rules, NOTIFY, transfers with a source, updates and `pandoctl compare`."""
    a, b = lan.hosts["host-a"], lan.hosts["host-b"]
    path = zone_file(tmp_path)
    primary = start(tmp_path / "a", a, {"listen": [LOCAL, "fe80::1%eth0@53"]},
                    remotes=[{"name": "b", "address": ["fe80::2%eth0"]}],
                    zones=[{"name": "one.test", "file": str(path), "notify": ["b"],
                            "allow-transfer": [{"address": "fe80::2%eth0"}], "allow-update": [{"address": "fe80::/64"}]}])
    copy = start(tmp_path / "b", b, {"listen": [LOCAL, "::@53"], "transfer-source": "fe80::2%eth0"},
                 remotes=[{"name": "a", "address": ["fe80::1%eth0"]}], zones=[{"name": "one.test", "primaries": ["a"]}])
    servers.wait_until("the zone has come", lambda: is_answered(a, "fe80::2%eth0"))
    for words in ([], ["+tcp"]):
        assert is_answered(b, "fe80::1%eth0", "one.test", *words)
        assert is_answered(a, "fe80::2%eth0", "one.test", *words), "of a wildcard socket"
    assert primary.control("status")["addresses"]["fe80::1%eth0@53"] == ""
    assert primary.control("ready", "--address", "fe80::1%eth0")["ready"]
    with b.inside():
        done = subprocess.run(["nsupdate"], capture_output=True, text=True, timeout=60,
                              input="server fe80::1%eth0 53\nzone one.test\nadd new.one.test 60 A 192.0.2.9\nsend\n")
    assert done.returncode == 0, done.stderr
    servers.wait_until("the NOTIFY has led to a transfer",
                       lambda: "192.0.2.9" in dig(a, "@fe80::2%eth0", "new.one.test", "A", "+short"))
    assert copy.control("zone", "status", "one.test")["primaries"] == ["fe80::1%eth0@53"]
    with b.inside():
        done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(copy.config), "compare", "--with",
                               "fe80::1%eth0", "one.test"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done


def test_metrics_are_served_there(lan, start, tmp_path):
    host, client = lan.hosts["host-a"], lan.hosts["host-b"]
    server = start(tmp_path / "a", host, {"listen": [LOCAL]}, zones=[], http={
        "listen": ["fe80::1%eth0@8053"], "user": "root", "keys": [{"name": "k", "secret": "a-secret-of-this-test"}]})
    folder = tmp_path / "a"
    with host.inside():
        program = subprocess.Popen([str(servers.build_folder() / "pando-http"), "--config", str(server.config)], cwd=folder)
    try:
        with client.inside():
            scope = socket.if_nametoindex("eth0")

            def ask():
                try:
                    with socket.socket(socket.AF_INET6) as tcp:
                        tcp.settimeout(10)
                        tcp.connect(("fe80::1", 8053, 0, scope))
                        tcp.sendall(b"GET /metrics HTTP/1.1\r\nHost: [fe80::1]:8053\r\nConnection: close\r\n\r\n")
                        return int(tcp.recv(4096).split()[1])
                except OSError:
                    return None
            servers.wait_until("pando-http answers", lambda: program.poll() is not None or ask() is not None)
            assert ask() == 401, "without its key"
    finally:
        program.kill()
        program.wait()


def test_a_rule_counts_for_its_interface_alone(lan, start, tmp_path):
    a, b = lan.hosts["host-a"], lan.hosts["host-b"]
    path = str(zone_file(tmp_path))
    rules = {"mine.test": "fe80::2%eth0", "other.test": "fe80::2%lo", "any.test": "fe80::2", "later.test": "fe80::2%eth9",
             "net.test": "fe80::%eth0/64", "lo-net.test": "fe80::%lo/64", "all.test": "fe80::/10"}
    server = start(tmp_path / "a", a, {"listen": [LOCAL, "fe80::1%eth0@53"]},
                   zones=[{"name": name, "file": path, "allow-query": [{"address": rule}]} for name, rule in rules.items()])
    servers.wait_until("all zones are there", lambda: server.control("status")["zones_loaded"] == len(rules))
    answered = {name for name in rules if is_answered(b, "fe80::1%eth0", name)}
    assert answered == {"mine.test", "any.test", "net.test", "all.test"}
    explained = server.control("explain", "other.test", "--from", "fe80::2%eth0", check=False)
    assert "REFUSED" in str(explained), explained


def test_an_interface_may_come_later_and_come_again(host, start, tmp_path):
    server = start(tmp_path / "server", host, {"listen": [LOCAL, "fe80::53%late0@53"]},
                   zones=[{"name": "one.test", "file": str(zone_file(tmp_path))}])
    servers.wait_until("IPv4 is answered", lambda: is_answered(host, "127.0.0.1"))
    assert "interface" in server.control("status")["addresses"]["fe80::53%late0@53"]
    numbers = set()
    for _ in range(2):
        host.ip("link", "add", "late0", "type", "veth", "peer", "name", "late1")
        host.ip("link", "set", "late1", "up")
        host.ip("link", "set", "late0", "up")
        host.ip("address", "add", "fe80::53/64", "dev", "late0", "nodad")
        with host.inside():
            numbers.add(socket.if_nametoindex("late0"))
        servers.wait_until("it is answered there", lambda: is_answered(host, "fe80::53%late0"))
        assert is_answered(host, "fe80::53%late0", "one.test", "+tcp")
        host.ip("link", "delete", "late0")
    assert len(numbers) == 2
    assert is_answered(host, "127.0.0.1")


def test_a_server_listens_on_its_loopback(host, start, tmp_path):
    host.ip("address", "add", "fe80::53/64", "dev", "lo")
    start(tmp_path / "server", host, {"listen": [LOCAL, "fe80::53%lo@53"]},
          zones=[{"name": "one.test", "file": str(zone_file(tmp_path))}])
    servers.wait_until("it is answered", lambda: is_answered(host, "fe80::53%lo"))
