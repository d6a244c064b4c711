"""The rights of workers in each way of starting: another user, empty capability sets, and none of the manager's
files. The unit's way is played by setpriv with the capabilities that the unit names."""

import errno
import grp
import os
import pathlib
import pwd
import re
import shutil
import signal
import tempfile

import pytest

import injected
import servers
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, status_of, user_exists

UNIT = pathlib.Path(__file__).resolve().parents[3] / "systemd/pando-manager.service.in"
SETS = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
BIND_SERVICE = 1 << 10

pytestmark = [injected.needed, injected.needs_filter, pytest.mark.skipif(
    not (user_exists(MANAGER) and user_exists(WORKER)) or shutil.which("setpriv") is None,
    reason="needs two ordinary users and setpriv")]


def with_capabilities(user, names, groups):
    """The words before a command that runs as `user` with these ambient capabilities."""
    listed = ",".join("+" + name.removeprefix("CAP_").lower() for name in names)
    one = f"-all{',' if listed else ''}{listed}"
    entry = pwd.getpwnam(user)
    return ["setpriv", f"--reuid={entry.pw_uid}", f"--regid={entry.pw_gid}",
            f"--groups={','.join(str(grp.getgrnam(name).gr_gid) for name in groups)}" if groups else "--clear-groups",
            f"--inh-caps={one}", f"--ambient-caps={one}", f"--bounding-set={one}", "--no-new-privs"]


class Started(TwoUsers):
    """A manager that is not started as root: `capabilities` as a unit would give them."""

    capabilities = ()
    groups = ()

    def command(self):
        return with_capabilities(MANAGER, self.capabilities, self.groups) + super().command()


class ByTheUnit(Started):
    capabilities = re.search(r"^AmbientCapabilities=(.*)$", UNIT.read_text(), re.M)[1].split()
    groups = (grp.getgrgid(pwd.getpwnam(WORKER).pw_gid).gr_name,) if user_exists(WORKER) else ()


def make(kind, **more):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-rights-", dir="/tmp"))
    folder.chmod(0o755)
    zone = folder / "zone"
    zone.write_text(ZONE)
    instance = kind(folder, [{"name": "two.test", "file": str(zone)}],
                    store_extra=f"  image: {folder}/image/zones.image", **more)
    (folder / "image").mkdir()
    shutil.chown(folder / "image", MANAGER)
    (folder / "image").chmod(0o750)
    for path in (folder, instance.config):
        shutil.chown(path, MANAGER)
    instance.config.chmod(0o600)
    return instance


@pytest.fixture(scope="module", params=[TwoUsers, ByTheUnit], ids=["root", "unit"])
def server(request):
    instance = make(request.param)
    try:
        yield instance.start("two.test")
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)


def serving(server):
    return servers.wait_until("two workers serve", lambda: [
        row["pid"] for row in server.workers().values() if row["state"] == "serving"][1:] and [
        row["pid"] for row in server.workers().values() if row["state"] == "serving"])


def test_workers_are_another_user_with_empty_capability_sets(server):
    entry = pwd.getpwnam(WORKER)
    for pid in serving(server):
        status = status_of(pid)
        assert status["Uid"] == [str(entry.pw_uid)] * 4 and status["Gid"] == [str(entry.pw_gid)] * 4
        assert str(pwd.getpwnam(MANAGER).pw_gid) not in status["Groups"]
        assert {name: int(status[name][0], 16) for name in SETS} == dict.fromkeys(SETS, 0)
        assert status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"]


def test_the_manager_keeps_port_53_alone(server):
    status = status_of(server.process.pid)
    assert status["Uid"] == [str(pwd.getpwnam(MANAGER).pw_uid)] * 4
    assert {name: int(status[name][0], 16) for name in SETS} == {
        "CapInh": 0, "CapPrm": BIND_SERVICE, "CapEff": BIND_SERVICE, "CapBnd": BIND_SERVICE, "CapAmb": 0}


def test_a_hijacked_worker_cannot_open_the_managers_files(server):
    worker = serving(server)[0]
    files = [server.config, server.folder / "journal", server.folder / "image", server.store / "zones.store",
             server.folder / "run/slots/0.slot", pathlib.Path("/etc/passwd")]
    with injected.into(worker) as process:
        for path in files:
            assert path.exists(), path
            for flags in (os.O_RDONLY, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC):
                opened = process.call("openat", -100, process.put(bytes(path) + b"\0"), flags, 0)
                assert opened == -errno.EACCES, path
    assert serving(server)


def test_a_hijacked_worker_does_not_reach_the_managers_files_by_its_user_either(server):
    """Whoever runs as the workers' user, without any filter."""
    from test_isolation import attempt
    for path in (server.config, server.store / "zones.store", server.folder / "journal/journal.lock"):
        assert attempt(WORKER, "read", path) == "EACCES", path
    assert attempt(WORKER, "list", server.folder / "image") == "EACCES"


def test_status_and_log_say_nothing_of_a_shared_user(server):
    assert server.control("status")["worker_isolation"] == "user"
    assert "single_user" not in server.log_path.read_text()


def test_the_launcher_ends_a_worker_that_does_not_listen(server):
    """Without CAP_KILL, and of another user."""
    last = max(server.workers())
    pid = server.workers()[last]["pid"]
    os.kill(pid, signal.SIGSTOP)
    server.control("worker", "remove", "1")
    servers.wait_until("it has ended", lambda: not pathlib.Path(f"/proc/{pid}").exists())
    server.control("worker", "add", "1")
    assert serving(server)


def test_workers_of_a_manager_that_stays_root_are_another_user_too():
    class StaysRoot(TwoUsers):
        users = ("root", WORKER)
    instance = make(StaysRoot)
    try:
        instance.start("two.test")
        assert instance.control("status")["worker_isolation"] == "user"
        for pid in serving(instance):
            status = status_of(pid)
            assert status["Uid"] == [str(pwd.getpwnam(WORKER).pw_uid)] * 4
            assert {name: int(status[name][0], 16) for name in SETS} == dict.fromkeys(SETS, 0)
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)


def test_one_user_for_both_is_said_loudly():
    """Started by a plain user: no wall is possible, so everybody who looks is told."""
    instance = make(Started)
    try:
        instance.start("two.test")
        assert instance.control("status")["worker_isolation"] == "none"
        assert re.search(r"warning .*single_user .*hijacked worker", instance.log_path.read_text())
        for pid in serving(instance):
            assert {name: int(status_of(pid)[name][0], 16) for name in SETS[:3]} == dict.fromkeys(SETS[:3], 0)
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)


def test_a_shared_user_passes_no_ambient_capability_to_workers():
    """As the unit was: port 53 and CAP_KILL, and no right to become another user."""
    class OldUnit(Started):
        capabilities = ("CAP_NET_BIND_SERVICE", "CAP_KILL")
    instance = make(OldUnit)
    try:
        instance.start("two.test")
        for pid in serving(instance):
            assert {name: int(status_of(pid)[name][0], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb")} == {
                "CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapAmb": 0}
        instance.stop()
    finally:
        instance.clean()
        shutil.rmtree(instance.folder)
