"""Landlock is a wall of its own. The filter of system calls is off here, so nothing else keeps code in a worker from
files that its user may open, from TCP and from processes of the same user. The same calls in a process of that user
without Landlock succeed."""

import ctypes
import errno
import os
import pathlib
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import tempfile

import pytest

import injected
import servers
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, both_serve, status_of, user_exists

CREATE_RULESET, ASK_VERSION = 444, 1
VERSION = ctypes.CDLL(None).syscall(CREATE_RULESET, None, 0, ASK_VERSION)
AT_FDCWD = -100

pytestmark = [injected.needed, pytest.mark.skipif(VERSION < 1, reason="the kernel has no Landlock"), pytest.mark.skipif(
    servers.is_sanitized(), reason="workers with AddressSanitizer are without Landlock"), pytest.mark.skipif(
    not (user_exists(MANAGER) and user_exists(WORKER)), reason="needs two ordinary users")]


class Unfiltered(TwoUsers):
    def environment(self):
        return {**super().environment(), "PANDO_SECCOMP": "off"}


@pytest.fixture(scope="module")
def server():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-landlock-", dir="/tmp"))
    folder.chmod(0o755)
    zone = folder / "zone"
    zone.write_text(ZONE)
    instance = Unfiltered(folder, [{"name": "two.test", "file": str(zone)}])
    (folder / "anybody").mkdir()
    (folder / "anybody").chmod(0o777)
    (folder / "anybody/file").write_text("for everybody")
    (folder / "anybody/file").chmod(0o666)
    try:
        yield instance.start("two.test")
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(folder)


@pytest.fixture(scope="module")
def worker(server):
    pid = both_serve(server)[0]
    assert status_of(pid)["Seccomp"] == ["0"], "the filter is not off"
    return pid


@pytest.fixture(scope="module")
def unwalled():
    """A process of the workers' user, without any wall."""
    entry = pwd.getpwnam(WORKER)
    process = subprocess.Popen(["sleep", "600"], user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/")
    servers.wait_until("it sleeps", lambda: b"sleep" in pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes() and
                       "libc.so" in pathlib.Path(f"/proc/{process.pid}/maps").read_text())
    yield process.pid
    process.kill()
    process.wait(30)


def opens(pid, path, flags):
    """The error number of openat(2) in the process; 0: it opens the file."""
    with injected.into(pid) as process:
        opened = process.call("openat", AT_FDCWD, process.put(bytes(path) + b"\0"), flags, 0o600)
        if opened >= 0:
            process.call("close", opened)
    return -min(opened, 0)


@pytest.mark.parametrize("path, flags", [
    ("anybody/file", os.O_RDONLY), ("anybody/file", os.O_RDWR), ("anybody/file", os.O_WRONLY | os.O_TRUNC),
    ("anybody", os.O_RDONLY | os.O_DIRECTORY), ("anybody/new", os.O_WRONLY | os.O_CREAT)],
    ids=["read", "write", "empty", "list", "create"])
def test_it_opens_no_file_of_everybody(server, worker, unwalled, path, flags):
    file = server.folder / path
    assert opens(worker, file, flags) == errno.EACCES
    assert not (server.folder / "anybody/new").exists()
    assert (server.folder / "anybody/file").read_text() == "for everybody"
    assert opens(unwalled, file, flags) == 0
    (server.folder / "anybody/new").unlink(missing_ok=True)
    (server.folder / "anybody/file").write_text("for everybody")


def test_it_opens_no_file_of_the_system(worker, unwalled):
    for path in (b"/etc/passwd", b"/proc/self/maps", b"/dev/null"):
        assert opens(unwalled, path, os.O_RDONLY) == 0, path
        assert opens(worker, path, os.O_RDONLY) == errno.EACCES, path


def tcp(pid, call, port):
    """The error number of bind(2) or connect(2) of a new TCP socket in the process."""
    address = struct.pack("=H", socket.AF_INET) + struct.pack("!H4s8x", port, socket.inet_aton("127.0.0.1"))
    with injected.into(pid) as process:
        one = process.call("socket", socket.AF_INET, socket.SOCK_STREAM, 0)
        assert one >= 0
        result = process.call(call, one, process.put(address), len(address))
        process.call("close", one)
    return -min(result, 0)


@pytest.mark.skipif(VERSION < 4, reason="the kernel's Landlock has no rules for TCP")
def test_it_neither_connects_nor_listens_over_tcp(server, worker, unwalled):
    for call, port in (("connect", server.port), ("bind", 0)):
        assert tcp(unwalled, call, port) == 0, call
        assert tcp(worker, call, port) == errno.EACCES, call


@pytest.mark.skipif(VERSION < 6, reason="the kernel's Landlock has no rules for signals")
def test_it_signals_no_other_process_of_its_user(worker, unwalled):
    def signals(pid, other):
        with injected.into(pid) as process:
            return -min(process.call("kill", other, 0), 0)
    assert signals(unwalled, worker) == 0
    assert signals(worker, unwalled) == errno.EPERM


def test_it_has_served_all_along(server, worker):
    assert both_serve(server)[0] == worker
    os.kill(worker, signal.SIGKILL)
    servers.wait_until("its successor serves", lambda: both_serve(server)[0] != worker)
