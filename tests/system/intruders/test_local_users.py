"""Other users of the host: processes that look like workers, floods of the sockets, and links where a manager that
starts as root makes its folders."""

import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import servers
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, both_serve, user_exists

STRANGER = "games"

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(user_exists, (MANAGER, WORKER, STRANGER))),
    reason="needs root and three ordinary users")


@pytest.fixture
def server():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-users-", dir="/tmp"))
    folder.chmod(0o755)
    zone = folder / "zone"
    zone.write_text(ZONE)
    zone.chmod(0o644)
    instance = TwoUsers(folder, [{"name": "two.test", "file": str(zone)}])
    try:
        yield instance
    finally:
        instance.clean()
        shutil.rmtree(folder)


def as_stranger(words):
    entry = pwd.getpwnam(STRANGER)
    return subprocess.Popen(words, user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/",
                            stdout=subprocess.PIPE, text=True)


def test_processes_that_look_like_workers_delay_no_start_and_block_no_stop(server):
    fake = server.folder / "pando-worker"
    fake.symlink_to("/bin/sh")
    fakes = [as_stranger([str(fake), "-c", "sleep 120; :", "--slot", str(slot), "--run-directory",
                          str(server.folder / "run")]) for slot in range(8)]
    try:
        server.start("two.test")
        both_serve(server)
        server.stop(seconds=20)
        log = server.log_path.read_text()
        pids = [str(process.pid) for process in fakes]
        assert not any(f"pid={pid}" in line for line in log.splitlines() for pid in pids), log
        assert all(process.poll() is None for process in fakes), "they are nobody's to end"
    finally:
        for process in fakes:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
        fake.unlink()


HOLD = """
import socket, sys, time
held = []
for _ in range(80):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.settimeout(5)
    connection.connect(sys.argv[1])
    held.append(connection)
    time.sleep(0.01)
print(len(held), flush=True)
time.sleep(600)
"""


def test_the_user_of_pando_http_leaves_room_for_commands(server):
    server.extra = f"  control-group: {STRANGER}"
    server.write_config()
    text = server.config.read_text().replace("  control-group: root\n", "")
    server.config.write_text(text + f"http: {{user: {STRANGER}, listen: [127.0.0.1@{servers.free_port()}]}}\n")
    server.start("two.test")
    holder = as_stranger([sys.executable, "-c", HOLD, str(server.folder / "run/control.sock")])
    try:
        assert holder.stdout.readline() == "80\n"
        for _ in range(5):
            assert server.control("status")["pid"] == server.process.pid
        assert "control_refused" in server.log_path.read_text()
    finally:
        holder.kill()
        holder.wait()


FLOOD = """
import signal, socket, sys
refused, made, goes_on = 0, 0, True
def end(*_):
    global goes_on
    goes_on = False
signal.signal(signal.SIGTERM, end)
print("begins", flush=True)
while goes_on or not refused:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    connection.setblocking(False)
    try:
        connection.connect(sys.argv[1])
        made += 1
    except PermissionError:
        refused += 1
    except OSError:
        pass
    connection.close()
print(made, refused)
"""


@pytest.mark.parametrize("name", ["control.sock", "workers.sock"])
def test_a_stranger_cannot_even_connect(server, name):
    server.start("two.test")
    both_serve(server)
    before = server.log_path.stat().st_size
    floods = [as_stranger([sys.executable, "-c", FLOOD, str(server.folder / "run" / name)]) for _ in range(3)]
    for process in floods:
        assert process.stdout.readline() == "begins\n"
    took = min(asked_status(server) for _ in range(3))  # one of them may wait for a processor
    for process in floods:
        process.terminate()
    counts = [tuple(map(int, process.communicate(timeout=60)[0].split())) for process in floods]
    grown = server.log_path.stat().st_size - before
    print(f"{counts}, status {took:.2f} s, log {grown} octets")
    assert all(made == 0 and refused > 0 for made, refused in counts)
    assert took < 2 and grown < 2000
    server.stop()


def asked_status(server):
    """Seconds that the answer took."""
    begin = time.monotonic()
    server.control("status")
    return time.monotonic() - begin


def victim(server):
    """A folder of root's that nobody may get."""
    folder = server.folder / "victim"
    folder.mkdir()
    folder.chmod(0o711)
    return folder


def refusal(server):
    done = subprocess.run(server.command(), capture_output=True, text=True, timeout=60, cwd=server.folder)
    assert done.returncode == 1
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["run", "run/slots", "journal"])
def test_a_link_of_the_servers_user_gives_it_nothing_of_roots(server, name):
    """The user pando, taken over, prepares the next start of the manager by root."""
    target, manager = victim(server), pwd.getpwnam(MANAGER)
    link = server.folder / name
    if link.parent != server.folder:
        link.parent.mkdir()
        os.chown(link.parent, manager.pw_uid, manager.pw_gid)
    link.symlink_to(target)
    os.chown(link, manager.pw_uid, manager.pw_gid, follow_symlinks=False)
    told = refusal(server)
    assert "start_failed" in told
    status = target.stat()
    assert (status.st_uid, status.st_mode & 0o7777) == (0, 0o711), told
    assert not list(target.iterdir())


@pytest.mark.parametrize("name, key", [("run", "server.run-directory"), ("store", "store.path"),
                                       ("journal", "store.journal")])
def test_a_folder_that_a_stranger_owns_or_can_write_to_is_refused(server, name, key):
    path = server.store if name == "store" else server.folder / name
    path.mkdir()
    os.chown(path, pwd.getpwnam(STRANGER).pw_uid, 0)
    told = refusal(server)
    assert f"{key}: " in told and "who could replace what is in it" in told, told
    os.chown(path, 0, 0)
    path.chmod(0o1777)
    told = refusal(server)
    assert f"{key}: " in told and "others could replace what is in it" in told, told
    path.chmod(0o755)
    server.start("two.test")
    server.stop()
