"""Started as root, the manager and its workers become two ordinary users: what each of them can do, and
what the workers' user cannot."""

import os
import pathlib
import pwd
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import dns.query
import dns.update
import pytest

import servers

MANAGER, WORKER = "daemon", "nobody"
ZONE = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"


def user_exists(name):
    try:
        return pwd.getpwnam(name).pw_uid != 0
    except KeyError:
        return False


pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not (user_exists(MANAGER) and user_exists(WORKER)),
    reason="needs root and two ordinary users")


class TwoUsers(servers.Pando):
    users = (MANAGER, WORKER)

    def environment(self):
        # A sanitizer looks for leaks by tracing its own process, which a change of user forbids.
        return {**super().environment(), "ASAN_OPTIONS": "detect_leaks=0"}


@pytest.fixture(scope="module")
def server():
    """A folder of its own below /tmp: pytest's is closed to the two users."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-isolation-", dir="/tmp"))
    folder.chmod(0o755)
    zone = folder / "zone"
    zone.write_text(ZONE)
    zone.chmod(0o644)
    instance = TwoUsers(folder, [{"name": "two.test", "file": str(zone),
                                  "allow-update": [{"address": "127.0.0.0/8"}]}])
    try:
        yield instance.start("two.test")
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(folder)


def add(server, name):
    update = dns.update.UpdateMessage("two.test")
    update.add(name, 60, "A", "192.0.2.7")
    return dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode()


def pids(server):
    return {slot: row["pid"] for slot, row in server.workers().items() if row["state"] == "serving"}


def both_serve(server):
    return servers.wait_until("two workers serve", lambda: len(pids(server)) == 2 and pids(server))


def status_of(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.split() for key, _, value in (line.partition(":") for line in lines)}


# One thing a process tries; prints "done" or the error's name.
ATTEMPT = """
import ctypes, errno, os, sys
def seize(pid):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(0x4206, ctypes.c_int(int(pid)), None, None) != 0:
        raise OSError(ctypes.get_errno(), "ptrace")
attempts = {
    "read": lambda path: os.close(os.open(path, os.O_RDONLY)),
    "write": lambda path: os.close(os.open(path, os.O_RDWR)),
    "create": lambda path: os.close(os.open(path, os.O_WRONLY | os.O_CREAT)),
    "list": os.listdir,
    "trace": seize,
    "kill": lambda pid: os.kill(int(pid), 0),
}
try:
    attempts[sys.argv[1]](sys.argv[2])
    print("done")
except OSError as error:
    print(errno.errorcode[error.errno])
"""


def attempt(user, what, target):
    """What comes of it when a process of `user`, with that user's own group only, tries it."""
    entry = pwd.getpwnam(user)
    done = subprocess.run([sys.executable, "-c", ATTEMPT, what, str(target)], user=entry.pw_uid,
                          group=entry.pw_gid, extra_groups=[], capture_output=True, text=True,
                          timeout=60, check=True, cwd="/")
    return done.stdout.strip()


def test_manager_and_workers_run_as_two_users_and_serve(server):
    workers = both_serve(server)
    assert status_of(server.process.pid)["Uid"] == [str(pwd.getpwnam(MANAGER).pw_uid)] * 4
    for pid in workers.values():
        assert status_of(pid)["Uid"] == [str(pwd.getpwnam(WORKER).pw_uid)] * 4
        assert int(status_of(pid)["CapPrm"][0], 16) == 0
    assert server.ask("ns.two.test").answer[0][0].address == "192.0.2.1"
    assert add(server, "served") == 0
    assert server.ask("served.two.test").answer[0][0].address == "192.0.2.7"


def test_a_killed_worker_is_replaced(server):
    before = both_serve(server)
    os.kill(before[0], signal.SIGKILL)

    def replaced():  # its end may be news to the manager between two looks
        now = pids(server)
        return len(now) == 2 and now[0] != before[0]
    servers.wait_until("another process serves slot 0", replaced)
    assert pids(server)[1] == before[1]
    assert add(server, "after-worker") == 0
    assert server.ask("after-worker.two.test").rcode() == 0


def test_a_new_manager_adopts_the_workers(server):
    before = both_serve(server)
    server.kill()
    assert server.ask("ns.two.test").rcode() == 0
    server.start("two.test")
    assert both_serve(server) == before
    assert server.log().count("adopted=true") >= 2
    assert add(server, "after-manager") == 0
    assert server.ask("after-manager.two.test").rcode() == 0


def test_a_reload_works_without_root(server):
    server.zones[0]["allow-transfer"] = [{"address": "127.0.0.0/8"}]
    server.write_config()
    server.control("reload")
    assert any(line.startswith("ns.two.test.") for line in server.records("two.test"))


def test_the_workers_user_can_neither_read_nor_write_nor_replace_the_store(server):
    """A worker gets it by descriptor. Whoever could open it could lock it, as a reader that nobody knows."""
    store = server.store / "zones.store"
    assert attempt(WORKER, "read", store) == "EACCES"
    assert attempt(WORKER, "write", store) == "EACCES"
    assert attempt(WORKER, "create", server.store / "other") == "EACCES"
    assert attempt(MANAGER, "write", store) == "done"
    assert attempt("bin", "read", store) == "EACCES"


def test_the_workers_user_cannot_trace_or_signal_the_manager(server):
    manager = server.process.pid
    assert attempt("root", "trace", manager) == "done"
    assert attempt(WORKER, "trace", manager) == "EPERM"
    assert attempt(WORKER, "kill", manager) == "EPERM"
    assert attempt(WORKER, "read", f"/proc/{manager}/mem") == "EACCES"
    assert attempt(WORKER, "list", f"/proc/{manager}/fd") == "EACCES"


def test_the_workers_user_cannot_open_another_slot(server):
    workers = both_serve(server)
    slots = server.folder / "run/slots"
    assert attempt(MANAGER, "write", slots / "0.slot") == "done"
    assert attempt(WORKER, "write", slots / "0.slot") == "EACCES"
    assert attempt(WORKER, "list", slots) == "EACCES"
    for pid in workers.values():
        assert attempt(WORKER, "trace", pid) == "EPERM"
        assert attempt(WORKER, "list", f"/proc/{pid}/fd") == "EACCES"


# Says Hello by itself, and prints what the manager sends until it closes: message numbers, and the number of
# descriptors that came along. Each packet is protocol version, message number, fields (ipc/worker_messages.cpp).
STRANGER = """
import socket, struct, sys
path, slot, pid, layout = sys.argv[1], *map(int, sys.argv[2:])
connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
connection.settimeout(30)
connection.connect(path)
connection.send(struct.pack(">HBIIQIII", PROTOCOL, 0, slot, pid, layout, 0, 0, 0))
numbers, descriptors = [], 0
while True:
    data, received, _, _ = socket.recv_fds(connection, 65536, 64)
    if not data:
        break
    numbers.append(data[2])
    descriptors += len(received)
print(numbers, descriptors)
""".replace("PROTOCOL", str(servers.WORKER_PROTOCOL))
STOP, SENT_AWAY = 5, 12


def say_hello(server, slot, pid, layout):
    entry = pwd.getpwnam(WORKER)
    done = subprocess.run([sys.executable, "-c", STRANGER, str(server.folder / "run/workers.sock"), str(slot), str(pid),
                           str(layout)], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                          capture_output=True, text=True, timeout=60, check=True, cwd="/")
    return done.stdout.strip()


def test_a_process_of_the_workers_user_that_says_hello_gets_nothing(server):
    workers = both_serve(server)
    assert say_hello(server, 0, 0, 0) == f"[{SENT_AWAY}, {STOP}] 0", "of another build, it says"
    assert "worker_of_another_build" not in server.log()
    # The right layout is no secret: the refusal of a wrong one names it.
    layout = int(re.search(r"layout 0, not ([0-9a-f]+)", server.log())[1], 16)
    for slot, claimed in ((0, workers[0]), (1, 0), (2, 0), (1023, 0)):
        time.sleep(1.1)  # the log has one refusal a second
        assert say_hello(server, slot, claimed, layout) == f"[{SENT_AWAY}, {STOP}] 0", f"slot {slot}: {server.log()}"
    log = server.log()
    assert f"process {workers[0]} is in slot 0 already" in log
    assert re.search(r"worker_refused slot=2 .*nobody started process \d+ for slot 2", log)
    assert both_serve(server) == workers
    assert add(server, "after-strangers") == 0
    assert server.ask("after-strangers.two.test").rcode() == 0


def test_the_workers_user_cannot_read_the_journal(server):
    journal = server.folder / "journal"
    segment = next(journal.glob("*.journal"))
    assert attempt(MANAGER, "read", segment) == "done"
    assert attempt(WORKER, "list", journal) == "EACCES"
    assert attempt(WORKER, "read", segment) == "EACCES"


def test_the_workers_user_may_not_give_commands(server):
    command = [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "status"]
    assert subprocess.run(command, capture_output=True, timeout=60).returncode == 0
    entry = pwd.getpwnam(WORKER)
    done = subprocess.run(command, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and not done.stdout
    assert "Permission denied" in done.stderr, "the socket is for the control group"


def test_a_stop_ends_even_workers_that_do_not_listen(server):
    """The manager may not signal the workers' user; the launcher does that for it."""
    workers = both_serve(server)
    os.kill(workers[1], signal.SIGSTOP)
    server.stop()
    servers.wait_until("no worker is left", lambda: not server.left_over())
