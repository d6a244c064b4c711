"""BIRD announces an anycast address while `pandoctl ready` says that Pando answers at it: contrib/bird. A host with
Pando and BIRD, and a router whose BIRD hears of the address and asks at it."""

import os
import signal
import subprocess

import dns.message
import dns.query
import pytest

import servers
from namespaces import Lan

ANYCAST = "198.51.100.53"
HOST, ROUTER = "192.0.2.11", "192.0.2.1"
CONTRIB = servers.SOURCE / "contrib/bird"
ZONE = "anycast.test"
TEXT = "@ 300 SOA ns admin 1 3600 600 86400 300\n@ 300 NS ns\nns 300 A 198.51.100.53\n"

ROUTERS_BIRD = f"""
log stderr all;
router id {ROUTER};
protocol device {{ }}
protocol kernel {{ ipv4 {{ import none; export all; }}; }}
protocol bgp host {{
  local {ROUTER} as 65000; neighbor {HOST} as 65001;
  connect retry time 1; error wait time 1, 2;
  ipv4 {{ import all; export none; }};
}}
"""


class Site:
    """The host, the router, and what runs on them."""

    def __init__(self, folder):
        self.folder = folder
        self.lan = Lan()
        self.host, self.router = self.lan.host("host", HOST), self.lan.host("router", ROUTER)
        self.running = []
        self.host.ip("address", "add", f"{ANYCAST}/32", "dev", "lo")
        (folder / "zone").write_text(TEXT)
        (folder / "router.conf").write_text(ROUTERS_BIRD)
        example = (CONTRIB / "bird.conf").read_text()
        assert "log syslog" in example and "connect retry time 5" in example
        (folder / "host.conf").write_text(example.replace("log syslog", "log stderr")
                                          .replace("connect retry time 5", "connect retry time 1"))

    def spawn(self, namespace, name, *words, **options):
        with namespace.inside(), open(self.folder / f"{name}.log", "ab") as log:
            process = subprocess.Popen(words, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder,
                                       **options)
        self.running.append(process)
        return process

    def start_birds(self):
        self.spawn(self.router, "router", "bird", "-f", "-c", "router.conf", "-s", "router.ctl")
        self.bird = self.start_bird()

    def start_bird(self):
        return self.spawn(self.host, "host", "bird", "-f", "-c", "host.conf", "-s", "host.ctl")

    def announce(self, pando, **environment):
        pandoctl = f"{servers.build_folder() / 'pandoctl'} --config {pando.config}"
        return self.spawn(self.host, "announce", str(CONTRIB / "pando-announce"), ANYCAST, "anycast",
                          env={**os.environ, "PANDOCTL": pandoctl, "BIRDC": "birdc -s host.ctl", "INTERVAL": "0.2",
                               **environment})

    def told(self):
        return (self.folder / "announce.log").read_text() if (self.folder / "announce.log").exists() else ""

    def routes(self):
        """What the router's kernel does with packets for the address."""
        return f"via {HOST}" in self.router.ip("route", "show", ANYCAST)

    def await_route(self, there, why):
        servers.wait_until(f"the route is {'there' if there else 'gone'} {why}: {self.told()}",
                           lambda: self.routes() == there, 90)

    def ask(self):
        query = dns.message.make_query(f"ns.{ZONE}", "A")
        with self.router.inside():
            return dns.query.udp(query, ANYCAST, timeout=15).answer[0][0].address

    def close(self):
        for process in reversed(self.running):
            if process.poll() is None:
                process.terminate()
                process.wait(30)
        self.lan.close()


class Pando(servers.Pando):
    """On the host of the site, at the anycast address."""

    def __init__(self, site, folder, zones, **options):
        self.host = site.host
        super().__init__(folder, zones, port=53, **options)

    def write_config(self):
        self.store = self.store.with_name(f"pando-anycast-{os.getpid()}")
        super().write_config()
        self.config.write_text(self.config.read_text().replace("[127.0.0.1@53]", f"[127.0.0.1, {ANYCAST}]"))

    def start(self, zone=None, seconds=150):
        with self.host.inside():
            return super().start(zone, seconds)


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


@pytest.fixture
def make(site, tmp_path):
    made = []

    def pando(zones=(), **options):
        first = {"name": ZONE, "file": str(tmp_path / "zone")}
        made.append(Pando(site, tmp_path / "pando", [first, *zones], **options))
        return made[0]

    yield pando
    for server in made:
        server.clean()


def test_the_route_is_there_while_the_server_is_ready(site, make):
    pando = make(workers=1)
    site.start_birds()
    site.announce(pando)
    servers.wait_until("no manager answers", lambda: "withdrawn: " in site.told())
    assert not site.routes()

    pando.start(ZONE)
    site.await_route(True, "with a server")
    assert site.ask() == ANYCAST

    pando.stop()
    site.await_route(False, "without a manager")
    pando.start(ZONE)
    site.await_route(True, "with a manager again")

    site.host.ip("address", "delete", f"{ANYCAST}/32", "dev", "lo")
    site.await_route(False, "without the address")
    assert f"{ANYCAST}: is no address of this host" in site.told()
    site.host.ip("address", "add", f"{ANYCAST}/32", "dev", "lo")
    site.await_route(True, "with the address again")
    assert site.ask() == ANYCAST


def test_without_workers_there_is_no_route(site, make):
    """The manager alone answers nobody. Workers are the service manager's here, as under systemd."""
    pando = make(workers="external")
    site.start_birds()
    run = pando.folder / "run"
    run.mkdir(parents=True)

    def start_worker():
        return site.spawn(site.host, "worker", str(servers.build_folder() / "pando-worker"), "--slot", "0",
                          "--run-directory", str(run))

    worker = start_worker()
    pando.start(ZONE)
    site.announce(pando)
    site.await_route(True, "with a worker")
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    site.await_route(False, "without a worker")
    assert "no worker serves" in site.told()
    start_worker()
    site.await_route(True, "with another worker")


def test_a_first_announcement_waits_for_all_zones(site, make, tmp_path):
    """A host that is new or was away has not all zones yet. Later, one zone that fails takes no host away."""
    pando = make([{"name": "late.test", "file": str(tmp_path / "late")}], workers=1)
    site.start_birds()
    pando.start(ZONE)
    site.announce(pando)
    servers.wait_until("a zone is missing", lambda: "1 of 2 zones loaded" in site.told())
    assert not site.routes()
    (tmp_path / "late").write_text(TEXT)
    pando.control("reload")
    site.await_route(True, "with all zones")
    (tmp_path / "more").write_text("no zone")
    pando.zones = [*pando.zones, {"name": "more.test", "file": str(tmp_path / "more")}]
    pando.write_config()
    pando.control("reload")
    assert not pando.control("ready", "--zones", check=False)["ready"] and pando.control("ready")["ready"]
    site.bird.kill()  # its route goes; what restarts begins without
    site.bird.wait()
    site.await_route(False, "without BIRD")
    site.start_bird()
    site.await_route(True, "with BIRD again, as nothing is wrong with the address")


def test_nothing_is_announced_that_nobody_watches(site, make):
    pando = make(workers=1)
    pando.start(ZONE)
    site.start_birds()
    announcer = site.announce(pando)
    site.await_route(True, "with a server")
    announcer.terminate()
    assert announcer.wait(30) == 0
    site.await_route(False, "without the program that watches")
