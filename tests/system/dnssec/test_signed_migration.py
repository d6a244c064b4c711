"""The move of signed zones from another server, by the commands of docs/howto/migrate.md. A validating resolver that
knows the zone's key asks both servers all the while, and sees nothing bogus."""

import os
import pathlib
import re
import shutil
import sqlite3
import stat
import subprocess
import types

import dns.rcode
import dns.rdatatype
import pytest

import servers
from signed_zones import run
from test_served_signed import TEXT, ZONE, Unbound
from test_signing_stages import Asker

SHORT = TEXT.replace(" 600 ", " 1 ").replace(" 300 ", " 1 ")
SCHEMA = """
CREATE TABLE domains (id INTEGER PRIMARY KEY, name VARCHAR(255), master VARCHAR(65535), type VARCHAR(8));
CREATE TABLE records (id INTEGER PRIMARY KEY, domain_id INTEGER, name VARCHAR(255), type VARCHAR(10), content TEXT, ttl INTEGER);
CREATE TABLE cryptokeys (id INTEGER PRIMARY KEY, domain_id INT, flags INT, active BOOL, published BOOL, content TEXT);
"""
ROOT = pathlib.Path(__file__).resolve().parents[2]


def pandoctl(*words):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), *map(str, words)], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


class ImportedPando(servers.Pando):
    """A server whose configuration is an imported one, but for its own ports and places."""

    def __init__(self, folder, text):
        self.text = re.sub(r"(?m)^server:\n(?:  .*\n)*", "", text)
        super().__init__(folder, [])

    def write_config(self):
        super().write_config()
        self.config.write_text(self.config.read_text() + self.text)


def needs(*programs):
    missing = [program for program in programs if not shutil.which(program)]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)}")


def dnskeys(server):
    return sorted(key.to_text() for answer in server.ask(ZONE, "DNSKEY", tcp=True).answer
                  if answer.rdtype == dns.rdatatype.DNSKEY for key in answer)


def secure_entry(keys):
    """A trust anchor: the keys with the SEP flag."""
    return next(f"{ZONE}. DNSKEY {key}" for key in keys if key.startswith("257"))


def imported(tmp_path, source, code=3):
    """A server by the imported configuration, and the commands for the keys."""
    folder = tmp_path / "pando"
    folder.mkdir()
    made = pandoctl("import", source, "--to", folder / "imported.yaml")
    assert made.returncode == code, made.stderr
    before, heading, commands = made.stderr.partition("Give the running manager the keys of signed zones")
    assert heading and "it is not served before the manager has its keys" in before, made.stderr
    assert pandoctl("--config", folder / "imported.yaml", "config", "check").returncode == 0
    text = re.sub("file: zones/", f"file: {folder}/zones/", (folder / "imported.yaml").read_text())
    return ImportedPando(folder, text), commands.splitlines()[1:]


def shell(server, tmp_path, command, code=0):
    """Runs a command as an operator types it, with the server's own configuration."""
    programs = tmp_path / "programs"
    programs.mkdir(exist_ok=True)
    shim = programs / "pandoctl"
    shim.write_text(f'#!/bin/sh\nexec {servers.build_folder()}/pandoctl --config {server.config} "$@"\n')
    shim.chmod(0o755)
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL,
                          env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}, cwd=server.folder)
    assert done.returncode == code, (command, done.stdout, done.stderr)
    return done.stdout + done.stderr


def start_without_keys(server):
    """The manager is there, the zone is not, and no key was made."""
    server.start()
    servers.wait_until("the reason is told", lambda: "dnssec import" in server.control("zone", "status", ZONE)["problem"])
    assert server.ask(ZONE, "SOA").rcode() == dns.rcode.SERVFAIL
    assert not (server.folder / "journal" / "dnssec").exists()


class Resolver(Unbound):
    """Asks both servers in turn, and answers its clients however long that takes."""

    def __init__(self, folder, old, new, anchor):
        super().__init__(folder, types.SimpleNamespace(port=f"{old.port}\n  stub-addr: 127.0.0.1@{new.port}"), anchor)
        config = self.folder / "unbound.conf"
        config.write_text(config.read_text().replace("server:\n", "server:\n  discard-timeout: 100000\n", 1))


def asking_of(peers, tmp_path, old, new, keys):
    resolver = peers(Resolver(tmp_path / "unbound", old, new, secure_entry(keys)), ZONE)
    return Asker(resolver, [f"www.{ZONE}", f"none.{ZONE}", ZONE])


def verify(server, folder):
    (folder / "now.zone").write_text(run("dig", "@127.0.0.1", "-p", server.port, ZONE, "AXFR", folder=folder))
    run("dnssec-verify", "-q", "-x", "-o", ZONE, "now.zone", folder=folder)


def move(tmp_path, peers, old, new, commands, set_serial):
    """From the old server, which runs, to the new one, which has not started."""
    keys = dnskeys(old)
    asking = asking_of(peers, tmp_path, old, new, keys)
    try:
        servers.wait_until("answers are secure", lambda: asking.secure > 20 or asking.faults)
        set_serial(old.serial(ZONE))
        start_without_keys(new)
        for command in commands:
            taken = shell(new, tmp_path, command)
            assert taken.count(": taken, tag ") == len(keys), taken
        servers.wait_until("the new server serves the zone", lambda: new.ask(ZONE, "SOA").answer, 60)
        assert dnskeys(new) == keys, "validators need not know of the move"
        assert new.serial(ZONE) >= old.serial(ZONE)
        ds = shell(new, tmp_path, f"pandoctl dnssec ds {ZONE}")
        assert len(ds.splitlines()) == sum(key.startswith("257") for key in keys)
        verify(new, tmp_path)
        before = asking.secure
        servers.wait_until("both are asked", lambda: asking.secure > before + 200 or asking.faults, 60)
        old.stop()
        before = asking.secure
        servers.wait_until("the new one alone is asked", lambda: asking.secure > before + 100 or asking.faults, 60)
        assert asking.insecure == 0
    finally:
        asking.end()
    assert "make-keys: false" in new.text
    new.kill()
    new.start(ZONE)
    assert dnskeys(new) == keys


@pytest.fixture
def cleaned():
    started = []
    yield started.append
    for server in started:
        getattr(server, "clean", server.stop)()


def raised(path, text):
    """Writes a zone file with a serial above another one."""
    return lambda serial: path.write_text(re.sub(r"(SOA \S+ \S+) \d+", rf"\1 {serial + 1}", text, count=1))


@needs("named", "unbound", "dnssec-verify", "dig")
@pytest.mark.parametrize("keys", ["csk", "ksk-zsk"])
def test_a_zone_that_bind_signs(tmp_path, peers, cleaned, keys):
    (tmp_path / "keys").mkdir()
    zone = tmp_path / "zone"
    zone.write_text(SHORT)
    roles = ["csk"] if keys == "csk" else ["ksk", "zsk"]
    nsec3 = "nsec3param iterations 0 optout no salt-length 0;" if keys == "csk" else ""
    policy = 'dnssec-policy own { keys { %s }; %s signatures-validity 10d; signatures-refresh 3d; };' % (" ".join(
        f"{role} key-directory lifetime unlimited algorithm ecdsap256sha256;" for role in roles), nsec3)
    old = servers.Bind(tmp_path / "bind", {ZONE: f'type primary; file "{zone}"; dnssec-policy own; inline-signing yes; '
                                                 f'key-directory "{tmp_path}/keys"; allow-transfer {{ 127.0.0.1; }};'}, keys=policy)
    cleaned(old)
    old.start(ZONE)
    servers.wait_until("BIND has signed it", lambda: "RRSIG" in str(old.ask(f"www.{ZONE}", want_dnssec=True).answer), 60)
    new, commands = imported(tmp_path, old.folder / "named.conf")
    cleaned(new)
    assert commands == [f"pandoctl dnssec import {ZONE}. {tmp_path}/keys/K{ZONE}.+*.private"]
    assert "validity: 10d" in new.text and "refresh: 3d" in new.text and ("nsec3: on" in new.text) == bool(nsec3)
    move(tmp_path, peers, old, new, commands, raised(zone, SHORT))


@needs("knotd", "keymgr", "unbound", "dnssec-verify", "dig")
@pytest.mark.parametrize("keys", ["csk", "ksk-zsk"])
def test_a_zone_that_knot_signs(tmp_path, peers, cleaned, keys):
    zone = tmp_path / "zone"
    zone.write_text(SHORT)
    single = "on" if keys == "csk" else "off"
    nsec3 = "off" if keys == "csk" else "on"
    old = servers.Knot(tmp_path / "knot", {ZONE: zone}, text=f"""
policy:
  - id: own
    single-type-signing: {single}
    rrsig-lifetime: 10d
    rrsig-refresh: 3d
    nsec3: {nsec3}
acl:
  - id: here
    address: 127.0.0.1
    action: transfer
""", zone_options={ZONE: "    dnssec-signing: on\n    dnssec-policy: own\n    zonefile-load: difference-no-serial\n"
                         "    journal-content: all\n    acl: here\n"})
    cleaned(old)
    (old.folder / "db").mkdir()
    old.start(ZONE)
    servers.wait_until("Knot has signed it", lambda: "RRSIG" in str(old.ask(f"www.{ZONE}", want_dnssec=True).answer), 60)
    new, commands = imported(tmp_path, old.folder / "knot.conf")
    cleaned(new)
    assert len(commands) == 1 and "keymgr -D" in commands[0]
    move(tmp_path, peers, old, new, commands, raised(zone, SHORT))


@needs("nsd", "dnssec-signzone", "unbound", "dig")
def test_a_zone_that_a_program_signs(tmp_path, peers, cleaned):
    """NSD serves the signed file of an external signer; its source and keys move."""
    zone = tmp_path / "zone"
    zone.write_text(SHORT)
    for kind in (["-f", "KSK"], []):
        run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", *kind, ZONE, folder=tmp_path)
    run("dnssec-signzone", "-q", "-S", "-N", "increment", "-o", ZONE, "-f", tmp_path / "zone.signed", zone, folder=tmp_path)
    old = servers.Nsd(tmp_path / "nsd", {ZONE: tmp_path / "zone.signed"}, zone_options="  provide-xfr: 127.0.0.1 NOKEY\n")
    cleaned(old)
    old.start(ZONE)
    folder = tmp_path / "pando"
    folder.mkdir()
    made = pandoctl("import", old.folder / "nsd.conf", "--to", folder / "imported.yaml")
    assert made.returncode in (0, 3), made.stderr
    text = (folder / "imported.yaml").read_text()
    new = ImportedPando(folder, re.sub(r"(file: \S+/zone)\.signed", r"\1\n    dnssec: moved", text) +
                        "dnssec-policies: [{name: moved, make-keys: false}]\n")
    assert "dnssec: moved" in new.text
    cleaned(new)
    command = f"pandoctl dnssec import {ZONE} {tmp_path}/K{ZONE}.+*.private"
    move(tmp_path, peers, old, new, [command], raised(zone, SHORT))


def test_a_zone_that_powerdns_signs(tmp_path, cleaned):
    """By a dump of its database, whose keys are in the form of `pdnsutil export-zone-key`."""
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    database.execute("INSERT INTO domains (id, name, type) VALUES (1, 'example', 'NATIVE')")
    for name, kind, content in (("example", "SOA", "ns1.example host.example 7 1 2 3 4"), ("example", "NS", "ns1.example"),
                                ("ns1.example", "A", "192.0.2.1")):
        database.execute("INSERT INTO records (domain_id, name, type, content, ttl) VALUES (1, ?, ?, ?, 60)",
                         (name, kind, content))
    stem = ROOT / "data/dnssec/keys/Kexample.+013+33270"
    database.execute("INSERT INTO cryptokeys VALUES (1, 1, 257, 1, 1, ?)", (stem.with_name(stem.name + ".private").read_text(),))
    dump = tmp_path / "dump.sql"
    dump.write_text("\n".join(database.iterdump()) + "\n")
    new, commands = imported(tmp_path, dump)
    cleaned(new)
    files = list((new.folder / "zone-keys").iterdir())
    assert [file.name for file in files] == ["Kexample.+013+33270.pem"]
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o600
    assert commands == ["pandoctl dnssec import example. zone-keys/Kexample.+013+33270.pem"]
    new.start()
    servers.wait_until("the reason is told", lambda: "dnssec import" in new.control("zone", "status", "example")["problem"])
    shell(new, tmp_path, commands[0])
    servers.wait_until("the zone is served", lambda: new.ask("ns1.example").answer, 60)
    key, = [key for answer in new.ask("example", "DNSKEY", tcp=True).answer for key in answer
            if answer.rdtype == dns.rdatatype.DNSKEY]
    public = stem.with_name(stem.name + ".key").read_text().splitlines()[-1].split("DNSKEY ")[1]
    assert key.to_text().replace(" ", "") == public.replace(" ", "")
