"""Real server processes for the system tests: Pando and its peers, on loopback, in folders of their own."""

import functools
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import dns.exception
import dns.message
import dns.query
import dns.rcode
import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(SOURCE / "contrib"))

import pando_control  # noqa: E402

# The version of the messages between manager and worker, for tests that write such messages.
WORKER_PROTOCOL = int(re.search(r"kWorkerProtocol = (\d+);", (SOURCE / "ipc/worker_messages.h").read_text())[1])
# A late answer of another server may come to a port that a client of that server had before.
dns.query.udp = functools.partial(dns.query.udp, ignore_unexpected=True)
SHARED_DATA = pathlib.Path(os.environ.get("PANDO_SHARED", SOURCE.parent / "shared")) / "data"


def build_folder():
    """Where the programs are: PANDO_BUILD, or the newest build that has them."""
    if "PANDO_BUILD" in os.environ:
        return pathlib.Path(os.environ["PANDO_BUILD"]).resolve()
    found = [p.parent for p in SOURCE.glob("build/*/pando-manager")]
    if not found:
        raise RuntimeError("no build with pando-manager: set PANDO_BUILD")
    return max(found, key=lambda p: (p / "pando-manager").stat().st_mtime)


def is_sanitized():
    """Whether the programs have AddressSanitizer. Workers then have no filter of system calls, and freed memory stays."""
    return b"__asan_init" in (build_folder() / "pando-worker").read_bytes()


# The program of each peer, and where it is in a folder that it was installed to, or in a built source tree.
PEERS = {"bind": ("named", ("sbin", "bin/named")), "nsd": ("nsd", ("sbin", ".")), "knot": ("knotd", ("sbin", "src"))}


def peer_program(kind):
    """A peer's program: from the folder that PANDO_BIND, PANDO_NSD or PANDO_KNOT names, else the distribution's."""
    name, places = PEERS[kind]
    folder = os.environ.get(f"PANDO_{kind.upper()}")
    if not folder:
        return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin") or f"/usr/sbin/{name}"
    for place in places:
        program = pathlib.Path(folder).resolve() / place / name
        if program.is_file() and os.access(program, os.X_OK):
            return str(program)
    raise RuntimeError(f"no {name} in {' or '.join(places)} of {folder}")


def link_or_copy(source, target):
    """A second name of the file. Linux makes none of others' files for a plain user, who gets a copy."""
    try:
        os.link(source, target)
    except PermissionError:
        shutil.copy2(source, target)


def needs_root(reason):
    """A mark of tests that other users skip. All other tests pass as any user."""
    return pytest.mark.skipif(os.getuid() != 0, reason=f"needs root: {reason}")


PORTS_GIVEN = set()


def free_port():
    """A port that is free for UDP and TCP on 127.0.0.1 right now, and that no client takes for its own.

    BIND's clients choose a random port of the kernel's range and set SO_REUSEPORT. Run by the server's user
    they may choose the server's port: nsupdate then asks itself, once in 28,232 requests, and is not answered.

    No port is given twice, nor by two processes of one run: a port is free again while its server restarts, and a
    second one that took it then would share it (SO_REUSEPORT).
    """
    first_of_clients = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert first_of_clients > 12_000, "clients would use the servers' ports"
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = random.randrange(10_000 + process, first_of_clients, processes)
        if port in PORTS_GIVEN:
            continue
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as tcp, \
                socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            try:
                tcp.bind(("127.0.0.1", port))
                udp.bind(("127.0.0.1", port))
                PORTS_GIVEN.add(port)
                return port
            except OSError:
                continue


def wait_until(what, condition, seconds=30):
    """Waits for a condition; the limit is generous because machines are slow, not to measure. Where all processes are
    stopped for a while (SIGSTOP), that counts as a few seconds."""
    waited, looked = 0, time.monotonic()
    while waited < seconds:
        value = condition()
        if value:
            return value
        time.sleep(0.05)
        before, looked = looked, time.monotonic()
        waited += min(looked - before, 5)
    raise AssertionError(f"not within {seconds} s: {what}")


class Server:
    """A process that answers on 127.0.0.1, with its log in a file."""

    name = "server"

    def __init__(self, folder, port=None):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        self.process = None
        self.log_path = self.folder / "log"

    def command(self):
        raise NotImplementedError

    def environment(self):
        return dict(os.environ)

    def start(self, zone=None, seconds=150):
        """Starts the process and waits until it answers the SOA of `zone` (any answer without one)."""
        with open(self.log_path, "ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                cwd=self.folder, env=self.environment())
        wait_until(f"{self.name} serves {zone}", lambda: self.serves(zone), seconds)
        return self

    def serves(self, zone):
        if self.process.poll() is not None:
            raise AssertionError(f"{self.name} ended with {self.process.returncode}:\n{self.log()}")
        answer = self.ask(zone or ".", "SOA", timeout=1)
        return answer is not None and (zone is None or (answer.rcode() == 0 and answer.answer))

    def ask(self, name, rdtype="A", tcp=False, timeout=15, **options):
        query = dns.message.make_query(name, rdtype, **options)
        ask = dns.query.tcp if tcp else dns.query.udp
        try:
            return ask(query, "127.0.0.1", port=self.port, timeout=timeout)
        except (dns.exception.Timeout, OSError, EOFError):
            return None

    def serial(self, zone):
        answer = self.ask(zone, "SOA")
        if answer is None or not answer.answer:
            return None
        return answer.answer[0][0].serial

    def records(self, zone, keyring=None):
        """All records of a zone by AXFR, as a set of texts."""
        import dns.zone
        transfer = dns.query.xfr("127.0.0.1", zone, port=self.port, relativize=False, lifetime=120,
                                 **({"keyring": keyring} if keyring else {}))
        lines = set()
        for message in transfer:
            for rrset in message.answer:
                for rdata in rrset:
                    lines.add(f"{str(rrset.name).lower()} {rrset.ttl} {rdata.rdtype} {rdata.to_text().lower()}")
        return lines

    def log(self):
        return self.log_path.read_text(errors="replace")[-8000:] if self.log_path.exists() else ""

    def kill(self, number=signal.SIGKILL):
        os.kill(self.process.pid, number)
        self.process.wait()

    def stop(self, seconds=30):
        if self.process is None or self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{self.name} did not stop in {seconds} s:\n{self.log()}")


class Pando(Server):
    """A manager with its workers. `zones`: list of mappings as in the configuration."""

    name = "pando"
    users = None  # manager's and workers' user: by default this process's own

    def __init__(self, folder, zones, port=None, workers=2, keys=(), remotes=(), extra="", limits="",
                 store_extra="", size_limit="2GiB", journal="journal"):
        super().__init__(folder, port)
        self.size_limit, self.journal = size_limit, journal
        self.store = pathlib.Path(f"/dev/shm/pando-system-{os.getpid()}-{self.port}")
        self.crash_at = None
        self.crash_if = None  # a file: crash_at counts only while it exists
        self.pause_at = None  # a place, and a file: held there while it is there
        self.workers_wanted = workers
        self.config = self.folder / "pando.yaml"
        self.zones, self.keys, self.remotes = zones, keys, remotes
        self.extra, self.limits, self.store_extra = extra, limits, store_extra
        self.write_config()

    def write_config(self):
        own = "root" if os.getuid() == 0 else str(os.getuid())
        user, worker_user = self.users or (own, own)
        lines = [
            "server:",
            f"  listen: [127.0.0.1@{self.port}]",
            f"  workers: {self.workers_wanted}",
            "  run-directory: run",
            f"  user: '{user}'",
            f"  worker-user: '{worker_user}'",
            "  control-group: root" if os.getuid() == 0 else f"  control-group: '{os.getgid()}'",
            self.extra,
            "store:",
            f"  path: {self.store}/zones.store",
            f"  size-limit: {self.size_limit}",
            f"  journal: {self.journal}",
            self.store_extra,
        ]
        if self.limits:
            lines.append(f"limits: {self.limits}")
        for section, values in (("keys", self.keys), ("remotes", self.remotes), ("zones", self.zones)):
            if values:
                lines.append(f"{section}:")
                lines += [f"  - {json.dumps(value)}" for value in values]
        self.config.write_text("\n".join(line for line in lines if line) + "\n")

    def command(self):
        return [str(build_folder() / "pando-manager"), "--config", str(self.config)]

    def environment(self):
        environment = dict(os.environ)
        if self.crash_at:
            environment["PANDO_CRASH_AT"] = self.crash_at
        if self.crash_if:
            environment["PANDO_CRASH_IF"] = str(self.crash_if)
        if self.pause_at:
            environment["PANDO_PAUSE_AT"], environment["PANDO_PAUSE_WHILE"] = map(str, self.pause_at)
        return environment

    # Asked again and again by tests that wait: without a process for each question.
    ASKED_DIRECTLY = {("status",): "status", ("worker", "list"): "worker-list"}

    def control(self, *words, check=True):
        """What pandoctl --json prints, decoded."""
        verb = self.ASKED_DIRECTLY.get(words)
        if verb and check and len(str(self.folder)) < 90:  # longer ones are no addresses of sockets
            try:
                with pando_control.Control(self.folder / "run") as connection:
                    return connection.call(verb)
            except (OSError, pando_control.ControlError) as error:
                raise AssertionError(f"{verb}: {error}") from error
        done = subprocess.run(
            [str(build_folder() / "pandoctl"), "--config", str(self.config), "--json", *words],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
        # Exit code 1, and which ones, or what is wrong with the zone.
        told = (words == ("reload",) and '"zones_failed"' in done.stdout
                or words[:2] == ("zone", "status") and '"problem"' in done.stdout)
        if check and done.returncode != 0 and not told:
            raise AssertionError(f"pandoctl {' '.join(words)}: {done.stdout}{done.stderr}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def serves(self, zone):
        """The zone is answered, and by way of this manager: workers answer without one, too."""
        return super().serves(zone) and self.manager_pid() == self.process.pid

    def manager_pid(self):
        try:
            return self.control("status")["pid"]
        except AssertionError:
            return None

    def start(self, zone=None, seconds=150):
        """As Server.start; then gives the workers time to find this manager, since until then updates get
        SERVFAIL. Not finding it in time is for the test to say."""
        super().start(zone, seconds)
        deadline = time.monotonic() + 10
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                if all(row["state"] == "serving" for row in self.workers().values()):
                    break
            except AssertionError:  # it has died
                break
            time.sleep(0.02)
        return self

    def start_until_killed(self, zone=None):
        """A start whose manager ends at its crash point: before the zone is served, or behind that."""
        try:
            self.start(zone)
        except AssertionError:
            if self.process.poll() is None:
                raise
        wait_until("the manager has died", lambda: self.process.poll() is not None, 90)
        assert self.process.returncode == -signal.SIGKILL, self.log()

    def workers(self):
        return {row["slot"]: row for row in self.control("worker", "list")["workers"]}

    def clean(self):
        """Ends whatever is left of the processes and removes the store."""
        try:
            self.stop()
        finally:
            for pid in self.left_over():
                os.kill(pid, signal.SIGKILL)
            shutil.rmtree(self.store, ignore_errors=True)

    def lose_memory(self):
        """What a restart of the host leaves: no process and no store, but all files on disk."""
        if self.process.poll() is None:
            self.kill()
        for pid in self.left_over():
            os.kill(pid, signal.SIGKILL)
        wait_until("workers are gone", lambda: not self.left_over())
        shutil.rmtree(self.store, ignore_errors=True)

    def left_over(self):
        """Pids of workers and of pando-tls that serve this run directory."""
        run = str(self.folder / "run")
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                if words[0].endswith(("pando-worker", "pando-tls")) and run in words:
                    found.append(int(entry.name))
        return found


class Bind(Server):
    """named as a primary or secondary. `zones`: text of zone statements by zone name."""

    name = "bind"

    def __init__(self, folder, zones, options="", keys="", port=None, minimal="yes"):
        super().__init__(folder, port)
        text = f"""
options {{
  directory "{self.folder}"; pid-file "{self.folder}/named.pid"; session-keyfile "{self.folder}/session.key";
  listen-on port {self.port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }};
  recursion no; dnssec-validation no; minimal-responses {minimal}; minimal-any yes; notify no; zero-no-soa-ttl no;
  {options}
}};
controls {{ }};
{keys}
"""
        for zone, body in zones.items():
            text += f'zone "{zone}" {{ {body} }};\n'
        (self.folder / "named.conf").write_text(text)

    def command(self):
        return [peer_program("bind"), "-g", "-n", "1", "-c",
                str(self.folder / "named.conf")]


class Nsd(Server):
    """nsd serving zone files. `zones`: zone name → file path."""

    name = "nsd"

    def __init__(self, folder, zones, port=None, zone_options=""):
        super().__init__(folder, port)
        text = f"""
server:
  ip-address: 127.0.0.1@{self.port}
  server-count: 1
  username: ""
  zonesdir: "{self.folder}"
  database: ""
  pidfile: "{self.folder}/nsd.pid"
  xfrdfile: "{self.folder}/xfrd.state"
  zonelistfile: "{self.folder}/zone.list"
  minimal-responses: yes
  refuse-any: no
  rrl-ratelimit: 0
  rrl-whitelist-ratelimit: 0
  verbosity: 1
remote-control:
  control-enable: no
"""
        for zone, path in zones.items():
            text += f'zone:\n  name: "{zone}"\n  zonefile: "{path}"\n{zone_options}'
        (self.folder / "nsd.conf").write_text(text)

    def command(self):
        return [peer_program("nsd"), "-d", "-c", str(self.folder / "nsd.conf")]


class Knot(Server):
    """knotd serving zone files. `zones`: zone name → file path."""

    name = "knot"

    def __init__(self, folder, zones, port=None, text="", zone_options=None):
        super().__init__(folder, port)
        text = f"""
server:
  rundir: "{self.folder}"
  listen: 127.0.0.1@{self.port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "{self.folder}/db"
log:
  - target: stderr
    any: info
{text}
template:
  - id: default
    zonefile-sync: -1
    journal-content: none
zone:
"""
        for zone, path in zones.items():
            text += f'  - domain: "{zone}"\n    file: "{path}"\n{(zone_options or {}).get(zone, "")}'
        (self.folder / "knot.conf").write_text(text)

    def command(self):
        return [peer_program("knot"), "-c", str(self.folder / "knot.conf")]


class Dnsperf:
    """dnsperf that asks without a pause, from many ports, until it is stopped."""

    class Result:
        """What it reports. `interrupted`: under way when it was stopped."""

        def __init__(self, text):
            fields = dict(line.strip().split(":", 1) for line in text.splitlines() if ":" in line)
            self.text = text
            self.sent = int(fields["Queries sent"])
            self.completed = int(fields["Queries completed"].split()[0])
            self.lost = int(fields["Queries lost"].split()[0])
            self.interrupted = int(fields.get("Queries interrupted", "0").split()[0])
            codes = fields.get("Response codes", "").split(",")
            self.rcodes = {code.split()[0]: int(code.split()[1]) for code in codes if code.strip()}

    def __init__(self, port, questions, rate=2000, timeout=20, clients=60):
        self.file = tempfile.NamedTemporaryFile("w", suffix=".queries")
        self.file.write("\n".join(questions) + "\n")
        self.file.flush()
        self.process = subprocess.Popen(
            ["dnsperf", "-s", "127.0.0.1", "-p", str(port), "-d", self.file.name, "-Q", str(rate), "-l", "3600",
             "-t", str(timeout), "-c", str(clients)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, text=True)

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        return self.Result(self.process.communicate(timeout=60)[0])

    def end(self):
        """For a test that failed half-way."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()
        self.file.close()


def memory_of(pid):
    """The writable memory of a process but for files and shared memory, in pieces."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            first, last, rights = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", line).groups()
            if not rights.startswith("rw-p"):
                continue
            memory.seek(int(first, 16))
            at, end = int(first, 16), int(last, 16)
            try:
                yield memory.read(end - at)
            except OSError:
                continue  # a guard page


def found_in(pid, wanted):
    """The names of those `wanted` values that the memory of a process has."""
    pieces = list(memory_of(pid))
    return {name for name, value in wanted.items() if any(value in piece for piece in pieces)}
