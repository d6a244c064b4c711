"""Clients that nobody here wrote, as they are: docs/howto/clients.md has the same recipes for people. Each skips when it
is not installed, or cannot be had."""

import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys

import pytest

import servers
from test_http import Http, beside  # noqa: F401: a fixture

SECRET = "client-secret-of-a-test"
TSIG = "Y2xpZW50IGtleSBvZiBhIHRlc3QsIDMyIG9jdGV0cyE="
SECTION = f"keys: [{{name: client, secret: {SECRET}, role: write, zones: [example.com]}}]"
PYTHON_CLIENTS = ("octodns==1.22.0", "octodns-powerdns==1.2.0", "octodns-bind==1.1.0", "certbot==5.8.0",
                  "certbot-dns-rfc2136==5.8.0", "certbot-dns-pdns==0.1.1", "dns-lexicon==3.25.2")
# lexicon would look for the newest list of public suffixes; it has one of its own.
OFFLINE = {"HTTPS_PROXY": "http://127.0.0.1:9", "NO_PROXY": "127.0.0.1"}


def run(*words, seconds=120, **options):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL,
                          **options)


def check(done):
    assert done.returncode == 0, f"{' '.join(done.args)}\n{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def needs(*programs):
    missing = [program for program in programs if shutil.which(program) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def install_clients(folder):
    """Installs the clients to `folder`, or nothing. The modules that are used are compiled when they are."""
    unfinished = folder.with_name(f"{folder.name}.{os.getpid()}")
    try:
        done = run(sys.executable, "-m", "pip", "install", "-q", "--no-input", "--disable-pip-version-check", "--no-compile",
                   "--retries", "0", "--timeout", "10", "--target", unfinished, *PYTHON_CLIENTS)
    except subprocess.TimeoutExpired:
        pytest.skip("pip takes too long")
    if done.returncode != 0:
        pytest.skip(f"pip cannot install the clients: {done.stderr[-300:]}")
    unfinished.rename(folder)


@pytest.fixture(scope="session")
def python_clients():
    """Runs a program of a client from PyPI. One of the processes of the first run installs them for all, beside the
    build; the folder's name has their versions, and Python's."""
    versions = hashlib.sha256(repr((PYTHON_CLIENTS, sys.version)).encode()).hexdigest()[:12]
    folder = servers.build_folder() / "test-clients" / versions
    folder.parent.mkdir(exist_ok=True)
    with open(folder.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            install_clients(folder)
    return lambda program, *words: run(folder / "bin" / program, *words, env=os.environ | OFFLINE | {"PYTHONPATH": str(folder)})


@pytest.fixture
def served(beside):
    """A server with an API for one key and its zone; and a TSIG key that may change the same zone."""
    server, program = beside(zones=("example.com", "other.test"), section=SECTION)
    server.keys = [{"name": "client", "algorithm": "hmac-sha256", "secret": TSIG}]
    server.zones[0]["allow-update"] = server.zones[0]["allow-transfer"] = [{"key": "client"}]
    section = server.config.read_text().splitlines()[-1]
    server.write_config()
    server.config.write_text(server.config.read_text() + section + "\n")
    server.control("reload")
    return server, program


def texts(server, name, rdtype="TXT"):
    return sorted(rdata.to_text() for rrset in server.ask(name, rdtype).answer for rdata in rrset)


# octodns plans the difference between a file and the server, and sends it as one PATCH or UPDATE.

RECORDS = """\
'':
  - {type: NS, ttl: 300, values: [ns.example.com.]}
  - {type: MX, ttl: 300, values: [{preference: 10, exchange: mx.example.com.}]}
  - {type: CAA, ttl: 300, values: [{flags: 0, tag: issue, value: ca.example}]}
ns: {type: A, ttl: 300, value: 192.0.2.1}
mx: [{type: A, ttl: 60, values: [192.0.2.25, 192.0.2.26]}, {type: AAAA, ttl: 60, value: '2001:db8::25'}]
www: {type: CNAME, ttl: 60, value: mx.example.com.}
'*.wild': {type: TXT, ttl: 60, values: ['v=DKIM1\\; k=rsa\\; p=%s', plain]}
_sip._tcp: {type: SRV, ttl: 60, values: [{priority: 1, weight: 2, port: 3, target: mx.example.com.}]}
""" % ("a" * 300)


def octodns(python_clients, folder, provider, extra=""):
    zones = folder / "zones"
    zones.mkdir(exist_ok=True)
    (folder / "octodns.yaml").write_text(
        f"providers:\n  files: {{class: octodns.provider.yaml.YamlProvider, directory: {zones}, enforce_order: false}}\n"
        f"  pando: {json.dumps(provider)}\n"
        "zones: {example.com.: {sources: [files], targets: [pando]}}\n")

    def sync(records, force=False):
        (zones / "example.com.yaml").write_text("---\n" + records)
        return check(python_clients("octodns-sync", "--config-file", folder / "octodns.yaml", "--doit",
                                    *(["--force"] if force else [])))

    return sync


def try_octodns(server, sync):
    serial = server.serial("example.com")
    assert "No changes" not in sync(RECORDS, force=True)
    assert texts(server, "mx.example.com", "A") == ["192.0.2.25", "192.0.2.26"]
    strings = [text.replace('" "', "") for text in texts(server, "x.wild.example.com")]
    assert strings == ['"plain"', '"v=DKIM1; k=rsa; p=' + "a" * 300 + '"']
    assert texts(server, "www.example.com", "CNAME") == ["mx.example.com."]
    assert texts(server, "_sip._tcp.example.com", "SRV") == ["1 2 3 mx.example.com."]
    assert server.serial("example.com") == serial + 1, "one version"
    assert "No changes were planned" in sync(RECORDS)
    changed = RECORDS.replace("192.0.2.26", "192.0.2.27").replace("www: {type: CNAME, ttl: 60, value: mx.example.com.}\n",
                                                                  "www: {type: A, ttl: 60, value: 192.0.2.80}\n")
    sync(changed, force=True)
    assert texts(server, "mx.example.com", "A") == ["192.0.2.25", "192.0.2.27"]
    assert texts(server, "www.example.com", "A") == ["192.0.2.80"]
    assert server.serial("example.com") == serial + 2


def test_octodns_by_the_api(served, python_clients, tmp_path):
    server, program = served
    try_octodns(server, octodns(python_clients, tmp_path, {
        "class": "octodns_powerdns.PowerDnsProvider", "host": "127.0.0.1", "port": program.port, "api_key": SECRET,
        "notify": True}))


def test_octodns_by_update(served, python_clients, tmp_path):
    server, _ = served
    try_octodns(server, octodns(python_clients, tmp_path, {
        "class": "octodns_bind.Rfc2136Provider", "host": "127.0.0.1", "port": server.port, "key_name": "client",
        "key_secret": TSIG, "key_algorithm": "hmac-sha256"}))


# ACME: pebble is a certificate authority for tests, and asks the server for the challenge.

class Pebble(servers.Server):
    name = "pebble"

    def __init__(self, folder, dns_port):
        super().__init__(folder)
        self.dns_port, self.certificate = dns_port, self.folder / "ca.pem"
        check(run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=127.0.0.1",
                  "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", self.folder / "key.pem", "-out", self.certificate))
        (self.folder / "pebble.json").write_text(json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}", "managementListenAddress": f"127.0.0.1:{servers.free_port()}",
            "certificate": str(self.certificate), "privateKey": str(self.folder / "key.pem"),
            "httpPort": 5002, "tlsPort": 5001, "ocspResponderURL": ""}}))

    @property
    def directory(self):
        return f"https://127.0.0.1:{self.port}/dir"

    def command(self):
        return ["pebble", "-config", str(self.folder / "pebble.json"), "-dnsserver", f"127.0.0.1:{self.dns_port}"]

    def environment(self):
        return os.environ | {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_WFE_NONCEREJECT": "0"}

    def serves(self, zone):
        assert self.process.poll() is None, self.log()
        return run("openssl", "s_client", "-connect", f"127.0.0.1:{self.port}").returncode == 0


@pytest.fixture
def pebble(served, peers, tmp_path):
    return peers(Pebble(tmp_path / "pebble", served[0].port))


def names_in(certificate):
    text = check(run("openssl", "x509", "-in", certificate, "-noout", "-ext", "subjectAltName"))
    return sorted(part.strip() for part in text.splitlines()[-1].split(","))


def try_lego(pebble, tmp_path, provider, **environment):
    """The name and its wildcard: two challenges at one name. The propagation check asks port 53, so it is off."""
    check(run("lego", "--server", pebble.directory, "--path", tmp_path / "lego", "--accept-tos", "--email", "a@example.com",
              "--dns", provider, "--dns.disable-cp", "--dns.resolvers", f"127.0.0.1:{pebble.dns_port}",
              "--domains", "example.com", "--domains", "*.example.com", "run",
              env=os.environ | {"LEGO_CA_CERTIFICATES": str(pebble.certificate)} | environment))
    assert names_in(tmp_path / "lego/certificates/example.com.crt") == ["DNS:*.example.com", "DNS:example.com"]


@needs("lego", "pebble", "openssl")
def test_lego_by_the_api(served, pebble, tmp_path):
    server, program = served
    try_lego(pebble, tmp_path, "pdns", PDNS_API_URL=f"http://127.0.0.1:{program.port}", PDNS_API_KEY=SECRET)
    assert texts(server, "_acme-challenge.example.com") == [], "it cleans up"
    assert server.serial("example.com") > 8


@needs("lego", "pebble", "openssl")
def test_lego_by_update(served, pebble, tmp_path):
    server, _ = served
    try_lego(pebble, tmp_path, "rfc2136", RFC2136_NAMESERVER=f"127.0.0.1:{server.port}", RFC2136_TSIG_KEY="client.",
             RFC2136_TSIG_ALGORITHM="hmac-sha256.", RFC2136_TSIG_SECRET=TSIG,
             RFC2136_SEQUENCE_INTERVAL="1")
    assert texts(server, "_acme-challenge.example.com") == []


def try_certbot(python_clients, pebble, tmp_path, plugin, **settings):
    credentials = tmp_path / "credentials.ini"
    credentials.write_text("".join(f"dns_{plugin}_{name} = {value}\n" for name, value in settings.items()))
    credentials.chmod(0o600)
    folders = [word for kind in ("config", "work", "logs") for word in (f"--{kind}-dir", tmp_path / kind)]
    check(python_clients("certbot", "certonly", "--non-interactive", "--agree-tos", "-m", "a@example.com", *folders,
                         "--server", pebble.directory, "--no-verify-ssl", "--authenticator", f"dns-{plugin}",
                         f"--dns-{plugin}-credentials", credentials, f"--dns-{plugin}-propagation-seconds", "0",
                         "-d", "example.com", "-d", "*.example.com"))
    assert names_in(tmp_path / "config/live/example.com/cert.pem") == ["DNS:*.example.com", "DNS:example.com"]


@needs("pebble", "openssl")
def test_certbot_by_the_api(served, python_clients, pebble, tmp_path):
    """The plugin changes records by lexicon, which reads the zone and replaces the whole RRset."""
    server, program = served
    try_certbot(python_clients, pebble, tmp_path, "pdns", endpoint=f"http://127.0.0.1:{program.port}", api_key=SECRET,
                server_id="localhost", disable_notify="no")
    assert texts(server, "_acme-challenge.example.com") == []


@needs("pebble", "openssl")
def test_certbot_by_update(served, python_clients, pebble, tmp_path):
    server, _ = served
    try_certbot(python_clients, pebble, tmp_path, "rfc2136", server="127.0.0.1", port=server.port, name="client", secret=TSIG,
                algorithm="HMAC-SHA256")
    assert texts(server, "_acme-challenge.example.com") == []


# Kea's D2 gets leases' names from Kea's DHCP servers, here from the test, and changes zones by UPDATE over UDP. DHCID
# records tell which client a name belongs to (RFC 4703).

class Kea(servers.Server):
    name = "kea-dhcp-ddns"

    def __init__(self, folder, dns_port):
        super().__init__(folder)
        at = [{"ip-address": "127.0.0.1", "port": dns_port}]
        domains = {kind: {"ddns-domains": [{"name": zone, "key-name": "client", "dns-servers": at}]} for kind, zone in
                   (("forward-ddns", "example.com."), ("reverse-ddns", "2.0.192.in-addr.arpa."))}
        (self.folder / "kea.json").write_text(json.dumps({"DhcpDdns": {
            "ip-address": "127.0.0.1", "port": self.port, "dns-server-timeout": 20000,
            "tsig-keys": [{"name": "client", "algorithm": "HMAC-SHA256", "secret": TSIG}], **domains,
            "loggers": [{"name": "kea-dhcp-ddns", "output_options": [{"output": "stdout"}], "severity": "DEBUG"}]}}))

    def command(self):
        return ["kea-dhcp-ddns", "-c", str(self.folder / "kea.json")]

    def environment(self):
        return os.environ | {name: str(self.folder) for name in ("KEA_PIDFILE_DIR", "KEA_LOCKFILE_DIR")}

    def serves(self, zone):
        assert self.process.poll() is None, self.log()
        return "DHCP_DDNS_STARTED" in self.log()

    def tell(self, name, address, client, removes=False):
        """Tells of a lease, as a DHCP server does; waits until D2 has finished with it."""
        done = self.finished()
        lease = {"change-type": int(removes), "forward-change": True, "reverse-change": True, "fqdn": name,
                 "ip-address": address, "dhcid": "0001" + f"{client:02X}" * 33, "lease-expires-on": "20371231235959",
                 "lease-length": 3600, "use-conflict-resolution": True}
        text = json.dumps(lease).encode()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(len(text).to_bytes(2, "big") + text, ("127.0.0.1", self.port))
        servers.wait_until("D2 has finished", lambda: self.finished() > done, 60)

    def finished(self):
        log = self.log_path.read_text(errors="replace")
        return sum(log.count(f"DHCP_DDNS_{kind}_{how}") for kind in ("ADD", "REMOVE") for how in ("SUCCEEDED", "FAILED"))


@needs("kea-dhcp-ddns")
def test_kea_by_update(served, peers, tmp_path):
    server, _ = served
    (tmp_path / "reverse").write_text("$TTL 300\n@ SOA ns.example.com. admin 1 3600 600 86400 300\n@ NS ns.example.com.\n")
    server.zones.append({"name": "2.0.192.in-addr.arpa", "file": str(tmp_path / "reverse"),
                         "allow-update": [{"key": "client", "types": ["PTR", "DHCID"]}]})
    server.zones[0]["allow-update"] = [{"key": "client", "types": ["A", "AAAA", "DHCID"]}]
    server.write_config()
    server.control("reload")
    kea = peers(Kea(tmp_path / "kea", server.port))
    kea.tell("host.example.com.", "192.0.2.7", client=1)
    assert texts(server, "host.example.com", "A") == ["192.0.2.7"]
    assert len(texts(server, "host.example.com", "DHCID")) == 1
    assert texts(server, "7.2.0.192.in-addr.arpa", "PTR") == ["host.example.com."]
    kea.tell("host.example.com.", "192.0.2.8", client=2)
    assert texts(server, "host.example.com", "A") == ["192.0.2.7"], "the name is another client's"
    kea.tell("host.example.com.", "192.0.2.9", client=1)
    assert texts(server, "host.example.com", "A") == ["192.0.2.9"]
    kea.tell("host.example.com.", "192.0.2.9", client=1, removes=True)
    assert texts(server, "host.example.com", "A") == texts(server, "host.example.com", "DHCID") == []
    assert texts(server, "9.2.0.192.in-addr.arpa", "PTR") == []


# external-dns makes records of what runs in a Kubernetes cluster. Its planner and providers are built from its sources
# by a program of some lines; its controller, which reads the cluster, is not.

ROUND = pathlib.Path(__file__).resolve().parent / "external_dns"


@pytest.fixture(scope="session")
def external_dns():
    """The program, built once: 250 modules are downloaded for it, and compiled for minutes."""
    if "PANDO_FULL" not in os.environ or shutil.which("go") is None:
        pytest.skip("needs PANDO_FULL=1 and go")
    sources = b"".join((ROUND / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    folder = servers.build_folder() / "test-clients"
    program = folder / f"external-dns-{hashlib.sha256(sources).hexdigest()[:12]}"
    folder.mkdir(exist_ok=True)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not program.exists():
            try:
                done = run("go", "build", "-mod=readonly", "-trimpath", "-o", program, ".", cwd=ROUND, seconds=500)
            except subprocess.TimeoutExpired:
                pytest.skip("go takes too long")
            if done.returncode != 0:
                pytest.skip(f"go cannot build it: {done.stderr[-300:]}")
    return program


def try_external_dns(server, program, *words):
    def sync(*endpoints):
        desired = [{"dnsName": name, "recordType": kind, "targets": list(targets), "recordTTL": 300}
                   for name, kind, *targets in endpoints]
        return check(run_with(json.dumps(desired), program, words[0], "example.com", *words[1:])).splitlines()

    def run_with(text, *command):
        return subprocess.run(list(map(str, command)), input=text, capture_output=True, text=True, timeout=120)

    kept = [(name, rdtype, *texts(server, name, rdtype)) for name, rdtype in (("ns.example.com", "A"), ("www.example.com", "A"))]
    web = ("web.example.com", "A", "192.0.2.31", "192.0.2.32")
    assert "3 created, 0 updated, 0 deleted" in sync(*kept, web, ("alias.example.com", "CNAME", "web.example.com"),
                                                     ("owner.example.com", "TXT", '"heritage=external-dns"'))
    assert texts(server, "web.example.com", "A") == ["192.0.2.31", "192.0.2.32"]
    assert texts(server, "alias.example.com", "CNAME") == ["web.example.com."]
    assert texts(server, "owner.example.com") == ['"heritage=external-dns"']
    changed = ("web.example.com", "A", "192.0.2.31", "192.0.2.33")
    assert "0 created, 1 updated, 2 deleted" in sync(*kept, changed)
    assert texts(server, "web.example.com", "A") == ["192.0.2.31", "192.0.2.33"]
    assert texts(server, "alias.example.com", "CNAME") == texts(server, "owner.example.com") == []
    assert "0 created, 0 updated, 0 deleted" in sync(*kept, changed)
    assert texts(server, "www.example.com", "A") == list(kept[1][2:])


def test_external_dns_by_the_api(served, external_dns):
    server, program = served
    try_external_dns(server, external_dns, "pdns", f"http://127.0.0.1:{program.port}", SECRET)


def test_external_dns_by_update(served, external_dns):
    server, _ = served
    try_external_dns(server, external_dns, "rfc2136", server.port, "client", TSIG)
