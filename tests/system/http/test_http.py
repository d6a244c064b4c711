"""pando-http: metrics of a running server, read by Prometheus itself; and that it hurts nobody."""

import http.client
import json
import os
import pathlib
import pwd
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

import dns.message
import dns.query
import dns.rcode
import dns.rrset
import dns.update
import pytest

import servers

ZONE = "$TTL 300\n@ SOA ns admin 7 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.2\n"
HOSTILE = 'a\\034\\032b\\010c.test'  # a quote, a blank and a line feed in a label
READ, ADMIN = "read-secret-of-a-test", "admin-secret-of-a-test"


class Http(servers.Server):
    """pando-http beside a server."""

    name = "pando-http"

    def __init__(self, server, port, certificate=None):
        super().__init__(server.folder / "http", port)
        self.server, self.certificate = server, certificate

    def command(self):
        return [str(servers.build_folder() / "pando-http"), "--config", str(self.server.config)]

    def serves(self, zone):
        if self.process.poll() is not None:
            raise AssertionError(f"pando-http ended with {self.process.returncode}:\n{self.log()}")
        try:
            return self.get("/")[0] in (200, 401)
        except OSError:
            return False

    def get(self, path, method="GET", **headers):
        """(status, headers, text)"""
        if self.certificate:
            connection = http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=30, context=ssl.create_default_context(cafile=self.certificate))
        else:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        with_dashes = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, headers=with_dashes)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return response.status, response.headers, text

    def metrics(self):
        """Samples of /metrics: (name, labels) → number."""
        status, _, text = self.get("/metrics")
        assert status == 200, text
        return samples_of(text)


def samples_of(text):
    found = {}
    for line in text.splitlines():
        if line.startswith("#"):
            continue
        name, labels, value = re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line).groups()
        labels = re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', labels or "")
        key = (name, frozenset(labels))
        assert key not in found, line
        found[key] = float(value)
    return found


def total(samples, name, **labels):
    wanted = set(labels.items())
    return sum(value for (found, at), value in samples.items() if found == name and wanted <= at)


@pytest.fixture
def beside(pando, tmp_path):
    """Makes a server and pando-http beside it."""
    started = []

    def make(zones=("example.test",), section="metrics-zones: 10", certificate=None, **options):
        (tmp_path / "zone").write_text(ZONE)
        port = servers.free_port()
        section = f"http: {{listen: [127.0.0.1@{port}], user: root, {section}}}"
        server = pando([{"name": name, "file": str(tmp_path / "zone"), "allow-update": [{"address": "127.0.0.0/8"}]}
                        for name in zones], extra="", store_extra="", **options)
        server.config.write_text(server.config.read_text() + section + "\n")
        server.start(zones[0])
        program = Http(server, port, certificate)
        started.append(program)
        program.start()
        return server, program

    yield make
    for program in started:
        program.stop()


def add(server, name, zone="example.test"):
    update = dns.update.UpdateMessage(zone)
    update.add(name, 60, "A", "192.0.2.7")
    return dns.query.udp(update, "127.0.0.1", port=server.port, timeout=20).rcode()


def test_without_keys_another_hosts_name_reaches_nothing(beside):
    """As a browser sends it for a web page whose name leads to 127.0.0.1 (DNS rebinding)."""
    _, program = beside(section="hosts: [Pando.example]")
    for path in ("/", "/metrics", "/page/zones", "/api/v1/servers/localhost/zones", "/nothing"):
        for host in ("rebound.example", f"rebound.example:{program.port}", "127.0.0.1.rebound.example", "x.localhost"):
            status, _, text = program.get(path, Host=host)
            assert status == 421 and "http.hosts" in text and "example.test" not in text, (path, host)
    for host in ("localhost", f"LOCALHOST:{program.port}", "127.0.0.1", f"[::1]:{program.port}", "pando.example:80"):
        assert program.get("/metrics", Host=host)[0] == 200, host


def test_with_keys_the_key_decides_and_not_the_name(beside):
    _, program = beside(section=f"keys: [{{name: reader, secret: {READ}}}]")
    assert program.get("/metrics", Host="any.example", X_API_Key=READ)[0] == 200
    assert program.get("/metrics", Host="any.example")[0] == 401


def test_metrics_count_what_clients_did(beside):
    server, program = beside()
    before = program.metrics()
    for name, rdtype in (("www", "A"), ("www", "AAAA"), ("missing", "MX")):
        assert server.ask(f"{name}.example.test", rdtype, tcp=rdtype == "AAAA") is not None
    assert add(server, "new") == dns.rcode.NOERROR
    time.sleep(0.3)  # a look may be that old
    after = program.metrics()
    grown = lambda name, **labels: total(after, name, **labels) - total(before, name, **labels)
    assert grown("pando_queries_total", qtype="AAAA") == 1 and grown("pando_queries_total", qtype="MX") == 1
    assert grown("pando_responses_total", rcode="NXDOMAIN") == 1
    assert grown("pando_requests_total", transport="tcp") == 1 and grown("pando_requests_total", transport="udp") == 3
    assert grown("pando_requests_by_opcode_total", opcode="UPDATE") == 1
    assert grown("pando_requests_forwarded_total", kind="update") == 1
    assert grown("pando_updates_accepted_total") == 1 and grown("pando_store_version") >= 1
    assert grown("pando_response_duration_seconds_count") == 3, "the update's response is the manager's"
    assert grown("pando_response_duration_seconds_sum") > 0
    assert grown("pando_zone_serial", zone="example.test.") == 1 and grown("pando_zone_records") == 1
    assert total(after, "pando_worker_up") == 2 and total(after, "pando_manager_up") == 1
    assert total(after, "pando_zones") == 1 and total(after, "pando_zones_loaded") == 1
    assert ("pando_udp_kernel_drops_total", frozenset({("address", f"127.0.0.1@{server.port}")})) in after
    processes = {dict(at)["process"] for name, at in after if name == "pando_process_cpu_seconds_total"}
    assert processes == {"manager", "worker-0", "worker-1", "http"}


def test_dropped_datagrams_of_the_kernel_are_counted(beside):
    """A worker that stands still does not read its socket, which overflows."""
    server, program = beside(workers=1)
    worker = server.workers()[0]["pid"]
    os.kill(worker, signal.SIGSTOP)
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flood:
            flood.connect(("127.0.0.1", server.port))
            end = time.monotonic() + 60
            while time.monotonic() < end:
                for _ in range(2000):
                    flood.send(b"x" * 1000)
                samples = program.metrics()
                if total(samples, "pando_udp_kernel_drops_total") > 0:
                    break
        assert total(samples, "pando_udp_kernel_drops_total") > 0
        assert total(samples, "pando_udp_receive_queue_bytes") > 0
    finally:
        os.kill(worker, signal.SIGCONT)
    servers.wait_until("the worker reads", lambda: total(program.metrics(), "pando_udp_receive_queue_bytes") == 0)


def test_formats_follow_the_accept_field(beside):
    _, program = beside()
    status, headers, text = program.get("/metrics")
    assert status == 200 and headers["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert text.endswith("# EOF\n") and "# TYPE pando_requests counter\n" in text
    _, headers, text = program.get("/metrics", Accept="text/plain")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert "# EOF" not in text and "# TYPE pando_requests_total counter\n" in text
    status, headers, text = program.get("/metrics", method="HEAD")
    assert status == 200 and int(headers["Content-Length"]) > 1000 and text == ""
    assert program.get("/metric")[0] == 404 and program.get("/metrics/")[0] == 404
    status, headers, _ = program.get("/metrics", method="DELETE")
    assert status == 405 and headers["Allow"] == "GET, HEAD"


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_promtool_finds_nothing_to_complain_of(beside):
    _, program = beside(zones=("example.test", HOSTILE))
    text = program.get("/metrics", Accept="text/plain")[2]
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True)
    assert done.returncode == 0 and not done.stdout and not done.stderr, done.stdout + done.stderr


class Prometheus(servers.Server):
    name = "prometheus"

    def __init__(self, folder, target):
        super().__init__(folder)
        rules = servers.SOURCE / "contrib/prometheus/pando.rules.yml"
        (self.folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\n"
            f"rule_files: ['{rules}']\n"
            f"scrape_configs: [{{job_name: pando, static_configs: [{{targets: ['127.0.0.1:{target}']}}]}}]\n")

    def command(self):
        return ["prometheus", f"--config.file={self.folder}/prometheus.yml", f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{self.port}"]

    def serves(self, zone):
        assert self.process.poll() is None, self.log()
        try:
            return self.api("query", query="vector(1)")
        except OSError:
            return False

    def api(self, kind, **words):
        url = f"http://127.0.0.1:{self.port}/api/v1/{kind}?{urllib.parse.urlencode(words)}"
        with urllib.request.urlopen(url, timeout=10) as answer:
            return json.load(answer)["data"]

    def value(self, query):
        found = self.api("query", query=query)["result"]
        return float(found[0]["value"][1]) if found else None


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")
def test_prometheus_scrapes_it(beside, peers, tmp_path):
    server, program = beside(zones=("example.test", HOSTILE))
    prometheus = peers(Prometheus(tmp_path / "prometheus", program.port))
    servers.wait_until("a scrape", lambda: prometheus.value('up{job="pando"}') == 1, 60)
    target = prometheus.api("targets")["activeTargets"][0]
    assert target["health"] == "up" and not target["lastError"], target
    before = prometheus.value("sum(pando_requests_total)")
    for _ in range(50):
        server.ask("www.example.test")
    servers.wait_until("the queries are seen", lambda: prometheus.value("sum(pando_requests_total)") >= before + 50, 60)
    assert prometheus.value("sum(pando_response_duration_seconds_count)") >= 50
    assert 0 < prometheus.value("histogram_quantile(0.5, sum by (le) (pando_response_duration_seconds_bucket))") < 4
    zones = {row["metric"]["zone"] for row in prometheus.api("query", query="pando_zone_serial")["result"]}
    assert zones == {"example.test.", 'a\\"\\032b\\010c.test.'}
    rules = prometheus.api("rules")["groups"][0]["rules"]
    servers.wait_until("the rules are evaluated", lambda: all(
        rule["health"] == "ok" for rule in prometheus.api("rules")["groups"][0]["rules"]), 60)
    firing = {rule["name"] for rule in rules if rule["state"] == "firing"}
    assert not firing


def test_the_number_of_zones_is_bounded(beside):
    zones = [f"z{number:03}.test" for number in range(100)]
    _, program = beside(zones=zones, section="metrics-zones: 70")
    samples = program.metrics()
    shown = sorted(dict(at)["zone"] for name, at in samples if name == "pando_zone_serial")
    assert shown == [zone + "." for zone in zones[:70]]
    assert total(samples, "pando_zones_not_shown") == 30


def of_zone(samples, zone, kind):
    """Counts by result of pando_zone_`kind`_total."""
    return {dict(at)["result"]: value for (name, at), value in samples.items()
            if name == f"pando_zone_{kind}_total" and dict(at)["zone"] == f"{zone}."}


def test_a_zone_has_its_updates_by_result(beside):
    server, program = beside(zones=("example.test", "other.test", "closed.test"))
    server.zones[2]["allow-update"] = [{"address": "127.0.0.1", "names": ["only.closed.test"]}]
    section = server.config.read_text().splitlines()[-1]
    server.write_config()
    server.config.write_text(server.config.read_text() + section + "\n")
    server.control("reload")
    before = program.metrics()
    assert of_zone(before, "example.test", "updates") == {}, "results of 0 are left out"
    sizes = total(before, "pando_zone_bytes", zone="example.test."), total(before, "pando_zone_bytes", zone="other.test.")
    assert min(sizes) > 100 and abs(sizes[0] - sizes[1]) < 32, "the same records, but for the length of names"
    began = int(time.time())
    assert began - 600 < total(before, "pando_zone_changed_timestamp_seconds", zone="example.test.") <= began
    servers.wait_until("a second has passed", lambda: int(time.time()) > began + 1)
    for number in range(3):
        assert add(server, f"n{number}") == dns.rcode.NOERROR
    unmet = dns.update.UpdateMessage("example.test")
    unmet.present("missing")
    unmet.add("never", 60, "A", "192.0.2.7")
    assert dns.query.udp(unmet, "127.0.0.1", port=server.port, timeout=20).rcode() == dns.rcode.NXDOMAIN
    assert add(server, "n0", "other.test") == dns.rcode.NOERROR
    assert add(server, "not-only", "closed.test") == dns.rcode.REFUSED
    assert add(server, "n0", "elsewhere.test") == dns.rcode.NOTAUTH
    time.sleep(0.3)  # a look may be that old
    after = program.metrics()
    assert of_zone(after, "example.test", "updates") == {"accepted": 3, "prerequisite": 1}
    assert of_zone(after, "other.test", "updates") == {"accepted": 1}
    assert of_zone(after, "closed.test", "updates") == {"refused": 1}
    assert total(after, "pando_zone_updates_total") == 6 and total(after, "pando_zone_counts_lost_total") == 0
    assert total(after, "pando_zone_bytes", zone="example.test.") > sizes[0]
    changed = {zone: total(after, "pando_zone_changed_timestamp_seconds", zone=zone) for zone in ("example.test.", "closed.test.")}
    assert began < changed["example.test."] <= time.time() + 1 and changed["closed.test."] <= began
    # They go on when the manager is replaced, and are read without one.
    server.kill()
    time.sleep(0.3)
    assert of_zone(program.metrics(), "example.test", "updates") == {"accepted": 3, "prerequisite": 1}
    server.start("example.test")
    servers.wait_until("an update is taken", lambda: add(server, "later") == dns.rcode.NOERROR)
    time.sleep(0.3)
    again = program.metrics()
    assert of_zone(again, "example.test", "updates")["accepted"] == 4
    assert total(again, "pando_zone_changed_timestamp_seconds", zone="closed.test.") == changed["closed.test."]


def test_a_zone_has_its_transfers_in_and_out_by_result(beside, pando, tmp_path):
    """Of a primary and its secondary, each with metrics."""
    primary, metrics = beside(zones=("example.test", "idle.test"))
    primary.zones[0]["allow-transfer"] = [{"address": "127.0.0.0/8"}]
    section = primary.config.read_text().splitlines()[-1]
    primary.write_config()
    primary.config.write_text(primary.config.read_text() + section + "\n")
    primary.control("reload")
    secondary = pando([{"name": zone, "primaries": ["primary"]} for zone in ("example.test", "idle.test")],
                      remotes=[{"name": "primary", "address": [f"127.0.0.1@{primary.port}"]}])
    port = servers.free_port()
    secondary.config.write_text(secondary.config.read_text() +
                                f"http: {{listen: [127.0.0.1@{port}], user: root, metrics-zones: 10}}\n")
    secondary.start("example.test")
    theirs = Http(secondary, port)
    try:
        theirs.start()
        assert of_zone(theirs.metrics(), "example.test", "transfers_in") == {"axfr": 1}
        assert add(primary, "new") == dns.rcode.NOERROR
        secondary.control("zone", "refresh", "example.test")
        servers.wait_until("the change is there", lambda: secondary.ask("new.example.test").answer)
        secondary.control("zone", "retransfer", "example.test")
        servers.wait_until("all are counted", lambda: of_zone(theirs.metrics(), "example.test", "transfers_in") ==
                           {"axfr": 2, "ixfr": 1})
        servers.wait_until("a refused transfer is a failed one", lambda: of_zone(
            theirs.metrics(), "idle.test", "transfers_in").get("failed", 0) >= 1)
        assert set(of_zone(theirs.metrics(), "idle.test", "transfers_in")) == {"failed"}
        assert of_zone(theirs.metrics(), "example.test", "transfers_out") == {}
    finally:
        theirs.stop()
    serial = primary.serial("example.test")
    current = dns.message.make_query("example.test", "IXFR")
    current.authority = [dns.rrset.from_text("example.test.", 0, "IN", "SOA", f"ns.example.test. admin.example.test. {serial} 1 1 1 1")]
    for _ in range(5):
        assert len(dns.query.udp(current, "127.0.0.1", port=primary.port, timeout=20).answer) == 1
    servers.wait_until("they are seen", lambda: of_zone(metrics.metrics(), "example.test", "transfers_out").get("current", 0) >= 5)
    out = of_zone(metrics.metrics(), "example.test", "transfers_out")
    assert out["axfr"] == 2 and out["ixfr"] == 1 and "failed" not in out, out
    assert of_zone(metrics.metrics(), "idle.test", "transfers_out") == {}, "refused ones are nobody's"
    assert total(metrics.metrics(), "pando_transfers_out_refused_total") >= 1
    # A worker's successor goes on with them.
    for row in primary.workers().values():
        os.kill(row["pid"], signal.SIGKILL)
    servers.wait_until("successors serve", lambda: [row["state"] for row in primary.workers().values()] == ["serving"] * 2)
    time.sleep(0.3)
    assert of_zone(metrics.metrics(), "example.test", "transfers_out") == out


def test_metrics_go_on_without_a_manager(beside):
    server, program = beside()
    server.ask("www.example.test")
    server.kill()
    time.sleep(0.3)
    samples = program.metrics()
    assert total(samples, "pando_manager_up") == 0 and total(samples, "pando_updates_total") == 0
    assert total(samples, "pando_worker_up") == 2 and total(samples, "pando_requests_total") > 0
    assert total(samples, "pando_zone_serial") == 7
    server.start("example.test")
    time.sleep(0.3)
    assert total(program.metrics(), "pando_manager_up") == 1


def test_it_may_start_first_and_sees_a_new_store(beside):
    server, program = beside()
    server.stop()
    shutil.rmtree(server.store)
    time.sleep(0.3)
    assert total(program.metrics(), "pando_store_readable") == 0
    server.start("example.test")
    time.sleep(0.3)
    samples = program.metrics()
    assert total(samples, "pando_store_readable") == 1 and total(samples, "pando_worker_up") == 2


def test_scrapes_are_whole_while_versions_fly_by(beside):
    zones = [f"z{number:03}.test" for number in range(200)]
    server, program = beside(zones=zones, section="metrics-zones: 1000")
    ends = threading.Event()

    def write(number):
        count = 0
        while not ends.is_set():
            assert add(server, f"n{count}", zones[number * 50]) == dns.rcode.NOERROR
            count += 1

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for writer in writers:
        writer.start()
    try:
        for _ in range(10):
            time.sleep(0.25)
            samples = program.metrics()
            of_zones = {dict(at)["zone"]: value for (name, at), value in samples.items() if name == "pando_zone_records"}
            serials = {dict(at)["zone"]: value for (name, at), value in samples.items() if name == "pando_zone_serial"}
            assert len(of_zones) == 200
            # One record and one serial more by each update: both of one version.
            assert all(of_zones[zone] - 4 == serials[zone] - 7 for zone in of_zones)
    finally:
        ends.set()
        for writer in writers:
            writer.join()


def test_a_stopped_or_killed_one_holds_nothing_back(beside):
    server, program = beside()
    program.metrics()
    os.kill(program.process.pid, signal.SIGSTOP)
    try:
        for count in range(300):
            assert add(server, f"n{count}") == dns.rcode.NOERROR
        assert server.control("status")["store"]["chunks_waiting"] < 20
        assert server.ask("www.example.test").answer
    finally:
        os.kill(program.process.pid, signal.SIGCONT)
    program.kill()
    assert add(server, "last") == dns.rcode.NOERROR and server.ask("last.example.test").answer


def test_keys_are_asked_for_over_tls(beside, tmp_path):
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate],
                   check=True, capture_output=True)
    secret = tmp_path / "secret"
    secret.write_text(ADMIN + "\n")
    secret.chmod(0o600)
    section = (f"tls: {{certificate: {certificate}, key: {key}}}, keys: [{{name: prometheus, secret: {READ}}}, "
               f"{{name: operator, secret-file: {secret}, role: admin}}]")
    _, program = beside(section=section, certificate=str(certificate))
    assert program.get("/metrics", Authorization=f"Bearer {READ}")[0] == 200
    assert program.get("/metrics", X_API_Key=ADMIN)[0] == 200
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"X_API_Key": READ[:-1]}, {"Authorization": f"Basic {READ}"}):
        status, answered, text = program.get("/metrics", **headers)
        assert status == 401 and answered["WWW-Authenticate"] == 'Bearer realm="pando"' and "pando_" not in text
        assert program.get("/nowhere", **headers)[0] == 401
    # A client that would speak it: the security level of its default settings has no TLS 1.1.
    old = subprocess.run(["openssl", "s_client", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0", "-connect",
                          f"127.0.0.1:{program.port}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    assert old.returncode != 0 and "alert protocol version" in old.stderr, old.stderr
    with socket.create_connection(("127.0.0.1", program.port)) as plain:  # no TLS at all
        plain.settimeout(20)
        plain.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"pando_" not in plain.recv(4096)
    assert program.get("/metrics", X_API_Key=ADMIN)[0] == 200


@servers.needs_root("it sees the descriptors of pando-http, which nobody else may inspect")
def test_crowds_and_rubbish_disturb_neither_metrics_nor_answers(beside):
    server, program = beside()
    crowd = []
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (limits[1], limits[1]))
    try:
        for number in range(10_000 if os.environ.get("PANDO_FULL") else 900):
            client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            client.settimeout(20)
            client.connect(("127.0.0.1", program.port))
            crowd.append(client)
            if number % 3 == 0:
                client.send(b"GET /metrics HTTP/1.1\r\nX: ")
            if number % 3 == 1:
                client.send(os.urandom(100))
            if number % 300 == 0:
                assert total(program.metrics(), "pando_worker_up") == 2
                assert server.ask("www.example.test").answer
        descriptors = len(list(pathlib.Path(f"/proc/{program.process.pid}/fd").iterdir()))
        assert descriptors < 300
    finally:
        for client in crowd:
            client.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert total(program.metrics(), "pando_manager_up") == 1


def test_a_body_of_100_megabytes_is_refused_before_it_is_sent(beside):
    _, program = beside()
    with socket.create_connection(("127.0.0.1", program.port), timeout=20) as client:
        client.sendall(b"PATCH /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 104857600\r\n\r\n" + b"x" * 1000)
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_without_its_section_it_says_so(pando, tmp_path):
    (tmp_path / "zone").write_text(ZONE)
    server = pando([{"name": "example.test", "file": str(tmp_path / "zone")}])
    done = subprocess.run([servers.build_folder() / "pando-http", "--config", server.config], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 0 and "has no section 'http': nothing to serve" in done.stderr
    server.config.write_text(server.config.read_text() + "http: {listen: [192.0.2.1]}\n")
    done = subprocess.run([servers.build_folder() / "pando-http", "--config", server.config], capture_output=True, text=True,
                          timeout=30)
    assert done.returncode == 78 and "'keys' are missing" in done.stderr


def ordinary_user(name):
    try:
        return pwd.getpwnam(name)
    except KeyError:
        return None


@pytest.mark.skipif(os.getuid() != 0 or not ordinary_user("nobody"), reason="needs root and an ordinary user")
def test_its_user_reads_and_changes_nothing():
    """Started as root, it becomes its user: who reads slots and store, asks the manager, and gives no command."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-http-", dir="/tmp"))
    folder.chmod(0o755)
    (folder / "zone").write_text(ZONE)
    server = servers.Pando(folder, [{"name": "example.test", "file": str(folder / "zone")}])
    program = Http(server, servers.free_port())
    server.config.write_text(server.config.read_text() + f"http: {{listen: [127.0.0.1@{program.port}], user: nobody}}\n")
    try:
        server.start("example.test")
        program.start()
        status = pathlib.Path(f"/proc/{program.process.pid}/status").read_text()
        user = ordinary_user("nobody")
        assert re.search(rf"^Uid:(\t{user.pw_uid}){{4}}$", status, re.M), status
        assert re.search(r"^CapEff:\t0+$", status, re.M) and re.search(r"^NoNewPrivs:\t1$", status, re.M)
        samples = program.metrics()
        assert total(samples, "pando_worker_up") == 2 and total(samples, "pando_manager_up") == 1
        assert total(samples, "pando_store_readable") == 1

        def control(*words):  # as pando-http connects: with the control group, here root's
            return subprocess.run([servers.build_folder() / "pandoctl", "--run-directory", folder / "run", *words],
                                  user=user.pw_uid, group=user.pw_gid, extra_groups=[0], capture_output=True, text=True)

        assert control("status").returncode == 0 and control("worker", "list").returncode == 0
        for words in (("stop",), ("reload",), ("worker", "remove"), ("zone", "export", "example.test")):
            refused = control(*words)
            assert refused.returncode != 0 and "may only read" in refused.stdout + refused.stderr, words
        assert server.ask("www.example.test").answer
        slot = folder / "run/slots/0.slot"
        assert slot.stat().st_gid == user.pw_gid and slot.stat().st_mode & 0o777 == 0o640
    finally:
        program.stop()
        server.clean()
        shutil.rmtree(folder)
