"""A worker that code has taken over: system calls are injected into a serving worker, under its live filter. What
it reaches must end with it."""

import contextlib
import errno
import mmap
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

import dns.message
import dns.query
import pytest

import injected
import servers
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, add, pids, user_exists
from test_local_users import asked_status

pytestmark = [injected.needed, injected.needs_filter, pytest.mark.skipif(
    not (user_exists(MANAGER) and user_exists(WORKER)), reason="needs two ordinary users")]

SOL_SOCKET, SO_LOCK_FILTER, SO_ATTACH_REUSEPORT_CBPF, SO_SNDBUF, SO_RCVBUF = 1, 44, 51, 7, 8
F_OFD_SETLK, F_SETFL, F_SETOWN, F_ADD_SEALS, F_DUPFD_CLOEXEC = 37, 4, 8, 1033, 1030
# A worker may stand still in the middle of a batch for as long as a busy machine takes for a test.
PATIENT = "{pin-time: 24h}"
FIONBIO, MAP_GROWSDOWN, MAP_NORESERVE = 0x5421, 0x100, 0x4000


class Logged(TwoUsers):
    """Its log goes through a pipe, as under a service manager."""

    def start(self, zone=None, seconds=150):
        with open(self.log_path, "ab") as log:
            self.cat = subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=log)
        self.process = subprocess.Popen(self.command(), stdout=self.cat.stdin, stderr=self.cat.stdin,
                                        stdin=subprocess.DEVNULL, cwd=self.folder, env=self.environment())
        self.cat.stdin.close()
        servers.wait_until(f"it serves {zone}", lambda: self.serves(zone), seconds)
        return self


def make(**more):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-hijacked-", dir="/tmp"))
    folder.chmod(0o755)
    zone = folder / "zone"
    zone.write_text(ZONE)
    zone.chmod(0o644)
    return Logged(folder, [{"name": "two.test", "file": str(zone),
                            "allow-update": [{"address": "127.0.0.0/8"}]}], limits=PATIENT, **more)


@pytest.fixture(scope="module")
def server():
    instance = make()
    instance.pause_at = ("worker-started", instance.folder / "held")  # while that file is there
    try:
        yield instance.start("two.test")
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)


@pytest.fixture
def worker(server):
    """Pid of the worker in slot 0. All slots serve again afterwards."""
    yield servers.wait_until("slots 0 and 1 serve", lambda: both_live(server))[0]
    servers.wait_until("slots 0 and 1 serve again", lambda: both_live(server))


def both_live(server):
    """The pids, if slots 0 and 1 serve. The manager may hear of the end of a worker a little later."""
    now = pids(server)
    return now if {0, 1} <= now.keys() and all(map(injected.lives, now.values())) else None


def told(server, event):
    """How many lines of the log begin with this event, or with it and its first field."""
    return len(re.findall(rf" {event}\b", server.log_path.read_text()))


def end(server, worker):
    """Ends the worker in slot 0, and waits until another one serves there."""
    with contextlib.suppress(ProcessLookupError):  # the manager may have ended it
        os.kill(worker, signal.SIGKILL)
    servers.wait_until("the next worker serves", lambda: pids(server).get(0) not in (None, worker))


def is_ended(worker, call, *arguments):
    """Whether the filter ends the worker for this call."""
    with injected.into(worker) as process:
        try:
            result = process.call(call, *[a(process) if callable(a) else a for a in arguments])
        except injected.Ended as ended:
            assert ended.number == signal.SIGSYS
            return True
    print(f"{call}{arguments}: {result}")
    return False


def everybody_is_answered(server, queries=60):
    """Queries of as many ports, so that they come to all sockets."""
    for _ in range(queries):
        assert server.ask("ns.two.test", timeout=30) is not None, server.log()
    for _ in range(10):
        assert server.ask("ns.two.test", tcp=True, timeout=30) is not None, server.log()


def test_it_cannot_signal_the_other_worker(server, worker):
    other = pids(server)[1]
    assert is_ended(worker, "tgkill", other, other, 0)


def test_it_cannot_signal_itself_by_another_call(server, worker):
    assert is_ended(worker, "kill", worker, 0)


def test_it_opens_no_other_kind_of_socket(server, worker):
    assert is_ended(worker, "socket", socket.AF_UNIX, socket.SOCK_DGRAM, 0)


def test_it_opens_no_internet_socket(server, worker):
    assert is_ended(worker, "socket", socket.AF_INET, socket.SOCK_DGRAM, 0)


def slot_file(worker):
    return next(number for number, link in injected.descriptors(worker).items() if link.endswith("/0.slot"))


def store_file(worker):
    return next(number for number, link in injected.descriptors(worker).items() if "zones.store" in link)


def lock(at, kind):
    return lambda process: process.put(struct.pack("hhqqi4x", kind, os.SEEK_SET, at, 1, 0))


@pytest.mark.parametrize("at", [(1 << 62) + 777, (1 << 62) - 1, 0])
def test_it_locks_nothing_in_the_store(server, worker, at):
    """A lock that says "slot 777 has a reader" would hold every version for ever."""
    assert is_ended(worker, "fcntl", store_file(worker), F_OFD_SETLK, lock(at, 0))
    assert add(server, f"after-lock-{at}") == 0


@pytest.mark.parametrize("command", [F_SETFL, F_SETOWN, F_ADD_SEALS])
def test_it_changes_no_descriptor_that_others_have_too(server, worker, command):
    assert is_ended(worker, "fcntl", injected.listening(worker, "udp", server.port), command, 0)


def test_it_shuts_no_listening_socket(server, worker):
    assert is_ended(worker, "shutdown", injected.listening(worker, "tcp", server.port), socket.SHUT_RD)
    everybody_is_answered(server)


def test_it_sets_no_option_of_a_socket(server, worker):
    udp = injected.listening(worker, "udp", server.port)
    drop_all = struct.pack("HBBI", 0x06, 0, 0, 0)
    with injected.into(worker) as process:
        program = struct.pack("HxxxxxxQ", 1, process.put(drop_all, 4096))
        results = [process.setsockopt(udp, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, program),
                   process.setsockopt(udp, SOL_SOCKET, SO_LOCK_FILTER, 1),
                   process.setsockopt(udp, SOL_SOCKET, SO_SNDBUF, 1),
                   process.setsockopt(udp, SOL_SOCKET, SO_RCVBUF, 1)]
    end(server, worker)
    assert results == [-errno.EPERM] * 4
    everybody_is_answered(server)


def test_what_it_silences_is_answered_after_its_end(server, worker):
    """connect() and shutdown() cannot be kept from a listening socket by a filter."""
    udp = injected.listening(worker, "udp", server.port)
    nowhere = struct.pack("!BBH4s8x", socket.AF_INET, 0, 9, socket.inet_aton("127.0.0.1"))
    nowhere = struct.pack("=H", socket.AF_INET) + nowhere[2:]
    with injected.into(worker) as process:
        assert process.call("connect", udp, process.put(nowhere), len(nowhere)) == 0
        assert process.call("shutdown", udp, socket.SHUT_WR) == 0
    end(server, worker)
    everybody_is_answered(server)
    assert told(server, "sockets_replaced slot=0")


def test_it_shuts_no_log(server, worker):
    """Under systemd the log is a socket that the manager and all workers write to."""
    assert is_ended(worker, "shutdown", 2, socket.SHUT_WR)


@pytest.mark.parametrize("call, rest", [("shutdown", [socket.SHUT_WR]), ("fcntl", [F_DUPFD_CLOEXEC, 100])],
                         ids=["shutdown", "fcntl"])
@pytest.mark.parametrize("number", [0, 1, 2, (1 << 32) + 2], ids=str)
def test_the_log_has_no_other_number(server, worker, call, rest, number):
    """The kernel reads 32 bits of a descriptor, a filter 64."""
    assert is_ended(worker, call, number, *rest)


def waits(pid, number):
    """Whether calls on this descriptor wait, for all that have the same open file."""
    text = pathlib.Path(f"/proc/{pid}/fdinfo/{number}").read_text()
    return int(re.search(r"flags:\s+(\d+)", text)[1], 8) & os.O_NONBLOCK == 0


def test_no_descriptor_of_others_begins_to_wait(server, worker):
    """Whoever has the same socket would wait in accept4(2) for a connection that another one took."""
    for number in (injected.listening(worker, "udp", server.port), injected.listening(worker, "tcp", server.port), 2):
        before = waits(worker, number)
        assert before == (number == 2)
        with injected.into(worker) as process:
            assert process.call("ioctl", number, FIONBIO, process.put(struct.pack("i", before))) == 0
        assert waits(worker, number) == before


def test_its_memory_is_bounded(server, worker):
    half = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    with injected.into(worker) as process:
        assert process.call("mmap", 0, max(half, 1 << 30), mmap.PROT_READ | mmap.PROT_WRITE,
                            mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) == -errno.ENOMEM


@pytest.mark.parametrize("flags", [mmap.MAP_SHARED, mmap.MAP_PRIVATE | MAP_GROWSDOWN], ids=["shared", "stack"])
def test_it_gets_no_memory_that_is_not_counted(server, worker, flags):
    assert is_ended(worker, "mmap", 0, 4096, mmap.PROT_READ | mmap.PROT_WRITE, flags | mmap.MAP_ANONYMOUS, -1, 0)


def lent_sockets(process, ipc):
    """The sockets of another slot, for UDP and TCP, as soon as they come by the connection to the manager: taken
    before the worker's own code sees them."""
    taken = []

    def come():
        taken.extend(received_descriptors(process, ipc))
        return len(taken) >= 2
    servers.wait_until("the sockets come", come)
    return taken


def received_descriptors(process, ipc):
    """Descriptors that wait in the connection to the manager."""
    taken = []
    while True:
        data, control = process.put(b"\0" * 4096), process.put(b"\0" * 1024, 4096)
        vector = process.put(struct.pack("QQ", data, 4096), 6000)
        header = process.put(struct.pack("QIxxxxQQQQI4x", 0, 0, vector, 1, control, 1024, 0), 7000)
        if process.call("recvmsg", ipc, header, 0x40) <= 0:  # MSG_DONTWAIT
            return taken
        length = struct.unpack("QIxxxxQQQQI4x", process.peek(header, 56))[5]
        if length > 16:
            size = struct.unpack("Q", process.peek(control, 8))[0]
            taken += struct.unpack(f"{(size - 16) // 4}i", process.peek(control + 16, size - 16))


def test_what_it_silences_of_another_slot_is_answered_within_seconds(server, worker):
    """Its neighbour dies, and it gets the neighbour's sockets to read them to the end."""
    neighbour = pids(server)[1]
    ipc = injected.connection(worker)
    replaced = told(server, "sockets_replaced slot=1")
    (server.folder / "held").touch()  # a successor that comes at once leaves nothing to be lent
    with injected.into(worker) as process:
        os.kill(neighbour, signal.SIGKILL)
        shut = [process.call("shutdown", one, socket.SHUT_WR) for one in lent_sockets(process, ipc)]
    (server.folder / "held").unlink()
    assert {0, -errno.ENOTCONN} & set(shut), shut  # the second shuts an unconnected socket, too
    servers.wait_until("its sockets are replaced", lambda: told(server, "sockets_replaced slot=1") > replaced)
    servers.wait_until("others serve", lambda: {0, 1} <= pids(server).keys() and worker not in pids(server).values())
    everybody_is_answered(server)


def unanswered(server, queries):
    """How many queries of as many ports have no answer within a second."""
    query, missing = dns.message.make_query("ns.two.test", "A").to_wire(), 0
    for _ in range(queries):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(1)
            client.connect(("127.0.0.1", server.port))
            client.send(query)
            try:
                client.recv(512)
            except TimeoutError:
                missing += 1
    return missing


def test_what_it_was_lent_is_not_its_to_read_when_the_slot_has_a_worker_again(server, worker):
    """It keeps the descriptors of its neighbour's sockets, and would take the neighbour's queries from there."""
    neighbour = pids(server)[1]
    ipc = injected.connection(worker)
    (server.folder / "held").touch()
    replaced = told(server, "lent_sockets_replaced slot=1")
    with injected.into(worker) as process:
        os.kill(neighbour, signal.SIGKILL)
        kept = lent_sockets(process, ipc)
        (server.folder / "held").unlink()
        servers.wait_until("the neighbour has other sockets",
                           lambda: told(server, "lent_sockets_replaced slot=1") > replaced)
        own = injected.listening(worker, "udp", server.port)
        unanswered(server, 60)  # half of them wait in the socket of the worker that stands still
        assert process.call("recvfrom", own, process.free, 512, 0x40, 0, 0) > 0
        connections = []
        for _ in range(20):
            connections.append(socket.create_connection(("127.0.0.1", server.port), 5))
        taken = [process.call(*call) for one in kept for call in (
            ("recvfrom", one, process.free, 512, 0x40, 0, 0), ("accept4", one, 0, 0, 0))]
        for connection in connections:
            connection.close()
    assert max(taken) < 0, taken
    servers.wait_until("it answers again", lambda: unanswered(server, 20) == 0)


def slot_memory(worker):
    """Where the worker has mapped its slot's file, in the order of the file: pairs of address and length."""
    parts = []
    for line in pathlib.Path(f"/proc/{worker}/maps").read_text().splitlines():
        if line.endswith("/0.slot"):
            span, _, offset = line.split()[:3]
            begin, end = (int(text, 16) for text in span.split("-"))
            parts.append((int(offset, 16), begin, end - begin))
    return [part[1:] for part in sorted(parts)]


def test_its_slot_file_does_not_grow(server, worker):
    """The file lies in the run directory's memory: a worker must not fill that. It writes what stands there already:
    with other bytes in the page the manager ends it, perhaps before it has come to the end of the file."""
    path = server.folder / "run/slots/0.slot"
    before, parts = path.stat().st_size, slot_memory(worker)
    assert sum(length for _, length in parts) == before
    with injected.into(worker) as process:
        written = [process.call("write", slot_file(worker), *part) for part in parts + parts]
    assert path.stat().st_size == before, written
    assert written == [length for _, length in parts] + [-errno.EFBIG] * len(parts)


@pytest.mark.parametrize("byte", [0, 0xFF])
def test_a_spoilt_page_harms_nobody_else(server, worker, byte):
    """Zeros name no worker and no layout; ones are holds on all versions that there will ever be."""
    with injected.into(worker) as process:
        for address, length in slot_memory(worker):
            process.poke(address, bytes([byte]) * length)
        assert add(server, f"beside-{byte}") == 0
        servers.wait_until("the other worker has it", lambda: has(server, f"beside-{byte}"))
        assert 0 in server.workers()
    end(server, worker)
    everybody_is_answered(server)


def has(server, name):
    """The other worker answers half of the questions."""
    answer = server.ask(f"{name}.two.test", timeout=1)
    return answer is not None and answer.rcode() == 0


AT_FDCWD, AT_EMPTY_PATH = -100, 0x1000


@pytest.mark.parametrize("path", ["/etc/passwd", "/etc/shadow", "/no/such/file", "/", "."])
def test_it_learns_nothing_of_a_file_by_its_path(server, worker, path):
    """Neither size, owner and times, nor whether it is there: Landlock does not govern that."""
    with injected.into(worker) as process:
        name, result = process.put(path.encode() + b"\0"), process.free + 4096
        assert process.call("newfstatat", AT_FDCWD, name, result, 0) == -errno.EACCES
        assert process.call("statx", AT_FDCWD, name, 0, 0x7FF, result) == -errno.EACCES
        assert process.call("openat", AT_FDCWD, name, os.O_PATH, 0) == -errno.EACCES
    everybody_is_answered(server, 4)


@pytest.mark.parametrize("call, folder", [
    ("stat", []), ("lstat", []), ("access", []), ("readlink", []), ("statfs", []), ("open", []),
    ("readlinkat", [AT_FDCWD]), ("faccessat", [AT_FDCWD]), ("faccessat2", [AT_FDCWD]), ("openat2", [AT_FDCWD]),
    ("name_to_handle_at", [AT_FDCWD])])
def test_no_other_call_tells_of_a_path(server, worker, call, folder):
    assert is_ended(worker, call, *folder, lambda process: process.put(b"/etc/passwd\0"),
                    lambda process: process.free + 4096, 4096, 0)


def test_it_still_learns_of_what_it_has_open(server, worker):
    """Its own code needs lengths of files; the descriptor of a folder, with no path, is no way around either."""
    with injected.into(worker) as process:
        result = process.free + 4096
        assert process.call("fstat", slot_file(worker), result) == 0
        size = struct.unpack("q", process.peek(result + 48, 8))[0]
        assert size == (server.folder / "run/slots/0.slot").stat().st_size
        empty = process.put(b"\0")
        assert process.call("newfstatat", slot_file(worker), empty, result, AT_EMPTY_PATH) == -errno.EACCES


def test_it_seeks_in_no_file(server, worker):
    assert is_ended(worker, "lseek", slot_file(worker), 1 << 30, os.SEEK_SET)


def test_it_punches_no_holes_through_its_mapping(server, worker):
    injected.CALLS.setdefault("madvise", 28)
    assert is_ended(worker, "madvise", slot_memory(worker)[0][0], 4096, 9)  # MADV_REMOVE


def test_a_page_that_goes_while_its_worker_lives_ends_the_worker(server, worker):
    """And holds everything until then (unit_shm: WorkerThatCutsItsSlotOff...)."""
    os.truncate(server.folder / "run/slots/0.slot", 0)
    servers.wait_until("another worker serves", lambda: pids(server).get(0) not in (None, worker))
    assert add(server, "after-page") == 0
    assert server.ask("after-page.two.test").rcode() == 0


MANY_HELLOS = """
import os, socket, struct, sys, time
path, layout, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
kept, given = [], 0
for slot in range(count):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(60)
    try:
        connection.connect(path)
        connection.send(struct.pack(">HBIIQIII", PROTOCOL, 0, slot, os.getpid(), layout, 0, 0, 0))
        data, descriptors, _, _ = socket.recv_fds(connection, 65536, 64)
    except OSError:
        continue
    given += len(descriptors) > 0
    kept.append(connection)
print(given, flush=True)
time.sleep(float(sys.argv[4]))
""".replace("PROTOCOL", str(servers.WORKER_PROTOCOL))


def hello_many(server, layout, count, stay=0):
    entry = pwd.getpwnam(WORKER)
    return subprocess.Popen([sys.executable, "-c", MANY_HELLOS, str(server.folder / "run/workers.sock"), str(layout),
                             str(count), str(stay)], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                            stdout=subprocess.PIPE, text=True, cwd="/")


def layout_of(server):
    """A refusal names it."""
    with hello_many(server, 0, 1) as process:
        process.communicate(timeout=60)
    return int(servers.wait_until("the refusal is logged", lambda: re.search(
        r"layout 0, not ([0-9a-f]+)", server.log_path.read_text()))[1], 16)


def test_one_process_of_the_workers_user_gets_one_slot():
    """With `workers: external` the manager knows no process before it comes."""
    instance = make(workers="external")
    entry = pwd.getpwnam(WORKER)
    try:
        instance.write_config()
        with open(instance.log_path, "ab") as log:
            instance.process = subprocess.Popen(instance.command(), stdout=log, stderr=log, cwd=instance.folder)
        real = subprocess.Popen([str(servers.build_folder() / "pando-worker"), "--slot", "100", "--run-directory",
                                 str(instance.folder / "run")], user=entry.pw_uid, group=entry.pw_gid,
                                extra_groups=[], stderr=subprocess.DEVNULL)
        servers.wait_until("it serves", lambda: instance.serves("two.test"), 60)
        layout = layout_of(instance)
        with hello_many(instance, layout, 60, stay=2) as process:
            given = int(process.stdout.readline())
        assert given == 1
        assert re.search(r"worker_refused .*process \d+ is in slot \d+ already", instance.log_path.read_text())
        real.terminate()
        real.wait(30)
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)


def test_a_flood_of_connections_does_not_keep_the_manager_from_its_work(server, worker):
    """By a process of the workers' user, whom the socket's mode lets in."""
    entry = pwd.getpwnam(WORKER)
    flood = """
import socket, sys
while True:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    try:
        connection.connect(sys.argv[1])
        connection.send(b"nonsense")
    except OSError:
        pass
    connection.close()
"""
    refused = told(server, "worker_refused")
    before, begin = server.log_path.stat().st_size, time.monotonic()
    processes = [subprocess.Popen([sys.executable, "-c", flood, str(server.folder / "run/workers.sock")],
                                  user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/")
                 for _ in range(3)]
    try:
        servers.wait_until("the flood has begun", lambda: told(server, "worker_refused") > refused)
        took = min(asked_status(server) for _ in range(3))  # one of them may wait for a processor
        assert add(server, "in-the-flood") == 0
        servers.wait_until("it goes on for seconds", lambda: told(server, "worker_refused") > refused + 3)
        assert all(process.poll() is None for process in processes)
    finally:
        for process in processes:
            process.kill()
            process.wait(30)
    grown, seconds = server.log_path.stat().st_size - before, time.monotonic() - begin
    print(f"status {took:.2f} s, log {grown} octets in {seconds:.1f} s")
    assert took < 2 and grown < 4_000 * max(seconds, 5)
