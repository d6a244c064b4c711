"""Octets of a live store that change under a running worker, through another mapping, while no manager is there: the worker
stays, each question has its end, and what is started afterwards says what it finds."""

import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_signed_updates import WAYS, Signer

FIRST_CHUNK = 132 << 20  # docs/formats/store.md
COMMITTED, ROOT = 64, 128  # in the header: octets in use, reference to the root block
UNIT = 8
ROUNDS = 80
SPOTS = [1, 4, 16, 64, 256]  # of a round, in turn: alone, and so many that hardly anything is left
PATIENCE = 10  # seconds for an answer; the machine may be busy

PLAIN = """$TTL 300
@ SOA ns1 admin 1 3600 600 86400 300
@ NS ns1
@ NS ns.sub
@ MX 10 mail
ns1 A 192.0.2.1
mail AAAA 2001:db8::25
www CNAME web
web A 192.0.2.80
a.b.c TXT "below empty names"
*.wild MX 5 mail
loop1 CNAME loop2
loop2 CNAME loop1
sub NS ns.sub
ns.sub A 192.0.2.53
dn DNAME wild
svc SVCB 1 web alpn=h2
"""
SIGNED = ["@ NS ns1", "ns1 A 192.0.2.1", "www A 192.0.2.10", "alias CNAME www", "*.wild MX 10 www", "a.b.deep TXT below",
          "secure NS ns.elsewhere.test.", "secure DS 1 8 2 " + "01" * 32, "plain NS ns1.plain", "ns1.plain A 192.0.2.53"]
NAMES = ["@", "www", "web", "a.b.c", "b.c", "x.wild", "loop1", "x.sub", "sub", "x.dn", "svc", "mail", "nothing", "alias",
         "a.b.deep", "x.secure", "secure", "plain", "host7", "host1234", "host99999"]
TYPES = ["A", "AAAA", "SOA", "NS", "MX", "TXT", "DS", "ANY", "SVCB"]


class Victim:
    """A server whose manager was killed, and the octets of its store."""

    def __init__(self, pando, folder):
        local = [{"address": "127.0.0.0/8"}]
        plain = folder / "plain.zone"
        plain.write_text(PLAIN + "".join(f"host{number} A 192.0.2.{number % 250}\n" for number in range(3000)))
        zones = [{"name": "plain.test", "file": str(plain), "allow-transfer": local, "allow-update": local}]
        signed = Signer(folder / "signer", *WAYS["nsec3-ecdsap384"]).sign(SIGNED, 5)
        zones.append({"name": "example", "file": str(signed), "allow-transfer": local})
        self.server = pando(zones, workers=1).start("plain.test")
        self.server.control("reload")  # all zones are loaded
        update = dns.update.UpdateMessage("plain.test")
        update.add("new", 60, "TXT", "x" * 200)
        assert dns.query.udp(update, "127.0.0.1", port=self.server.port, timeout=PATIENCE).rcode() == dns.rcode.NOERROR
        self.sound = {zone: self.server.records(zone) for zone in ("plain.test", "example")}
        self.worker, = [row["pid"] for row in self.server.workers().values()]
        self.path = self.server.store / "zones.store"
        self.server.kill()
        self.idle = self.descriptors()
        with open(self.path, "r+b") as file:
            header = os.pread(file.fileno(), 4096, 0)
            self.end, = struct.unpack_from("<Q", header, COMMITTED)
            self.root = struct.unpack_from("<I", header, ROOT)[0] * UNIT
            self.map = mmap.mmap(file.fileno(), self.end)
        self.filled = [at for at in range(FIRST_CHUNK, self.end, 8) if self.map[at:at + 8] != bytes(8)]

    def close(self):
        self.map.close()

    # The worker.

    def alive(self):
        """It is the process that it was, and no sanitizer has said anything."""
        try:
            state = open(f"/proc/{self.worker}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            state = "gone"
        assert state not in ("Z", "X", "gone"), f"the worker has ended: {self.server.log()}"
        assert self.server.left_over() == [self.worker]
        assert not self.found_by_sanitizer(), self.server.log()

    def found_by_sanitizer(self):
        log = self.server.log_path.read_text(errors="replace")
        return "Sanitizer" in log or "runtime error" in log

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.worker}/fd"))

    def ask(self, question, tcp=False):
        """The answer's octets: whatever it says, it is one to this question. None: the connection was ended."""
        octets = question.to_wire()
        if tcp:
            with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE) as client:
                client.sendall(struct.pack("!H", len(octets)) + octets)
                return self.receive(client)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.connect(("127.0.0.1", self.server.port))
            client.settimeout(PATIENCE)
            client.send(octets)
            answer = client.recv(65535)
        assert answer[:2] == octets[:2] and answer[2] & 0x80
        return answer

    @staticmethod
    def receive(client):
        """One message, or None at the end."""
        octets = b""
        while len(octets) < 2 or len(octets) < 2 + int.from_bytes(octets[:2]):
            try:
                more = client.recv(65535 if len(octets) > 1 else 2 - len(octets))
            except ConnectionResetError:
                return None
            if not more:
                return None
            octets += more
        return octets[2:]

    def transfer(self, zone, serial=None):
        """An AXFR or IXFR to its end: the connection's, or that of the zone. Counts messages."""
        query = dns.message.make_query(zone, "IXFR" if serial else "AXFR")
        if serial:
            query.authority.append(dns.rrset.from_text(f"{zone}.", 0, "IN", "SOA", f". . {serial} 0 0 0 0"))
        octets = query.to_wire()
        messages = 0
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=PATIENCE) as client:
            client.sendall(struct.pack("!H", len(octets)) + octets)
            client.shutdown(socket.SHUT_WR)  # when all is sent, the worker ends the connection
            while self.receive(client) is not None:
                messages += 1
                assert messages < 100_000, "the transfer does not end"
        return messages

    def be_quiet(self):
        """What is done for connections that have ended is done."""
        servers.wait_until("connections are closed", lambda: self.descriptors() <= self.idle)

    # Damage.

    def spoil(self, chance, count, spare=range(0)):
        """Changes `count` places; gives what was there. Nobody asks meanwhile: octets that change while they are read are
        not what a worker is proof against."""
        self.be_quiet()
        before = []
        while len(before) < count:
            at = chance.choice(self.filled) if chance.random() < 0.9 else chance.randrange(FIRST_CHUNK, self.end - 16)
            if at in spare:
                continue
            octets = chance.choice([
                lambda: chance.randbytes(chance.choice([1, 1, 2, 4, 8, 16])),
                lambda: self.map[at:at + 1].translate(bytes(octet ^ 1 << chance.randrange(8) for octet in range(256))),
                # A reference, or what may be taken for one, to something that is there.
                lambda: struct.pack("<I", chance.choice(self.filled) // UNIT | chance.randrange(2)),
                lambda: self.map[(other := chance.choice(self.filled)):other + 8],
                lambda: b"\xff" * chance.choice([2, 4, 8]),
            ])()
            octets = octets[:self.end - at]
            before.append((at, self.map[at:at + len(octets)]))
            self.map[at:at + len(octets)] = octets
        return before

    def mend(self, before):
        self.be_quiet()
        for at, octets in reversed(before):
            self.map[at:at + len(octets)] = octets

    def check_file(self):
        return subprocess.run([str(servers.build_folder() / "pandoctl"), "store", "check", "--file", str(self.path)],
                              capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


@pytest.fixture
def victim(pando, tmp_path):
    made = Victim(pando, tmp_path)
    yield made
    made.close()


@pytest.fixture
def chance():
    seed = int(os.environ.get("PANDO_SEED", random.randrange(2**32)))
    print(f"again with PANDO_SEED={seed}")
    return random.Random(seed)


def test_a_worker_outlives_damage_anywhere_in_the_chunks(victim, chance):
    spots, rcodes = 0, {}
    for turn in range(ROUNDS):
        before = victim.spoil(chance, SPOTS[turn % len(SPOTS)])
        spots += len(before)
        for number in range(40):
            zone = chance.choice(["plain.test", "example"])
            name = chance.choice(NAMES)
            question = dns.message.make_query(zone if name == "@" else f"{name}.{zone}", chance.choice(TYPES),
                                              want_dnssec=chance.random() < 0.5)
            answer = victim.ask(question, tcp=number % 8 == 0)
            if answer:
                rcode = answer[3] & 15
                rcodes[rcode] = rcodes.get(rcode, 0) + 1
        for zone in ("plain.test", "example"):
            victim.transfer(zone)
        victim.transfer("plain.test", serial=1)
        victim.alive()
        victim.mend(before)
    print(f"{spots} spots, answers by rcode: {rcodes}")
    assert spots > 5000
    # The damage was met, and was not all that there was.
    assert rcodes.get(dns.rcode.SERVFAIL) and rcodes.get(dns.rcode.NOERROR)
    # Nothing of it is left in the worker.
    for zone, records in victim.sound.items():
        assert victim.server.records(zone) == records
    victim.alive()


def test_damage_that_stays_is_found_and_told(victim, chance):
    root = range(victim.root - 64, victim.root + 4096)
    victim.spoil(chance, 400, spare=root)
    for _ in range(20):
        victim.ask(dns.message.make_query(f"{chance.choice(NAMES[1:])}.plain.test", "A"))
    victim.alive()
    checked = victim.check_file()
    assert checked.returncode == 1 and checked.stderr.startswith(("error: ", "pandoctl: ")), checked
    # A manager does not walk all of the store when it starts (docs/explanation/damage.md). It may
    # attach, and finds it when it is asked; or it refuses, or makes the store anew, and says why.
    server = victim.server
    log = server.log_path.stat().st_size
    process = server.process = subprocess.Popen(
        server.command(), stdout=server.log_path.open("ab"), stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        cwd=server.folder, env=server.environment())
    servers.wait_until("the manager is there or has refused",
                       lambda: process.poll() is not None or server.manager_pid() == process.pid, 60)
    told = server.log_path.read_text(errors="replace")[log:]
    if process.poll() is None and "store_replaced" not in told:
        found = server.control("store", "check", check=False)
        assert found is None or found["faults_found"] > 0
        update = dns.update.UpdateMessage("plain.test")
        update.replace("host7", 60, "A", "192.0.2.7")
        dns.query.udp(update, "127.0.0.1", port=server.port, timeout=PATIENCE)  # taken or refused
        assert process.poll() is None and not victim.found_by_sanitizer(), server.log()
        server.stop()
    else:
        assert process.poll() in (None, 1), server.log()
        assert "store_replaced" in told or "error" in told
        server.stop()
    # The operator's way out, as for a host that was restarted: the journal has all that was acknowledged.
    start_without_store(victim)
    served = server.records("plain.test")
    assert {line for line in victim.sound["plain.test"] if line.startswith("new.")} <= served


def start_without_store(victim):
    for pid in victim.server.left_over():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("workers are gone", lambda: not victim.server.left_over())
    shutil.rmtree(victim.server.store)
    victim.server.start("plain.test")
    victim.server.control("reload")


def test_a_damaged_root_makes_the_store_anew(victim, chance):
    """That has a checksum: a manager that starts says so, and makes the store from files and journal."""
    victim.be_quiet()
    at = victim.root + chance.randrange(8, 16)  # the journal's position
    victim.map[at] ^= 1 << chance.randrange(8)
    victim.ask(dns.message.make_query("www.plain.test", "A"))
    victim.alive()
    checked = victim.check_file()
    assert checked.returncode == 1 and checked.stderr, checked
    victim.server.start("plain.test")
    victim.server.control("reload")
    assert "store_replaced" in victim.server.log_path.read_text()
    assert str(victim.server.store) in victim.server.control("status")["damage_found"][0]["text"]
    assert victim.server.control("store", "check")["faults_found"] == 0
    for zone, records in victim.sound.items():
        assert victim.server.records(zone) == records
