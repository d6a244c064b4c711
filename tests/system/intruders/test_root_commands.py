"""Commands of root beside a manager that has fallen: its user owns the folders of the server, and puts links and
processes there. Root neither reads nor writes nor starts what that user chooses."""

import contextlib
import json
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import tempfile

import pytest

import servers
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, user_exists

STRANGER = "games"
SECRET = "only root may read this"

pytestmark = pytest.mark.skipif(
    os.getuid() != 0 or not all(map(user_exists, (MANAGER, WORKER, STRANGER))),
    reason="needs root and three ordinary users")


@pytest.fixture
def folder():
    made = pathlib.Path(tempfile.mkdtemp(prefix="pando-root-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def secret(folder):
    """A folder of root's with a file that only root may read."""
    (folder / "root").mkdir(mode=0o700)
    file = folder / "root/secret"
    file.write_text(SECRET)
    file.chmod(0o600)
    return file


@pytest.fixture
def server(folder):
    zones = folder / "zones"
    zones.mkdir()
    (zones / "two.zone").write_text(ZONE)
    for path in (zones, zones / "two.zone"):
        shutil.chown(path, MANAGER)
    instance = TwoUsers(folder, [{"name": "two.test", "file": str(zones / "two.zone")}])
    try:
        yield instance.start("two.test")
    finally:
        instance.clean()


def of_the_manager(path):
    shutil.chown(path, MANAGER) if not path.is_symlink() else os.chown(
        path, pwd.getpwnam(MANAGER).pw_uid, -1, follow_symlinks=False)


def link(path, target):
    """A link that the manager's user has made."""
    path.symlink_to(target)
    of_the_manager(path)


def as_root(server, *words):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), *words],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def everything_below(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file() and not path.is_symlink())


# -- backup --------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("name", ["journal/frozen-zones.list", "journal/added-zones.list", "zones/two.zone"])
def test_a_backup_takes_no_file_of_roots_by_a_link(server, folder, secret, name):
    (folder / name).unlink(missing_ok=True)
    link(folder / name, secret)
    done = as_root(server, "backup", str(folder / "saved"))
    (folder / name).unlink()
    if (folder / "saved").exists():  # a list of another name
        assert SECRET.encode() not in everything_below(folder / "saved")
        pytest.fail(done.stdout)
    assert done.returncode == 1 and "linked" in done.stderr, done.stderr


def test_a_backup_takes_no_file_of_roots_by_a_second_name(server, folder, secret):
    """As on a kernel with fs.protected_hardlinks=0: root makes the second name here."""
    os.link(secret, folder / "journal/frozen-zones.list")
    done = as_root(server, "backup", str(folder / "saved"))
    assert done.returncode == 1 and "another name" in done.stderr, done.stderr
    assert not (folder / "saved").exists()


def test_a_backup_takes_no_file_that_the_list_of_added_zones_names(server, folder, secret):
    """The list is the manager's. Of zones with files it names those that its user can read."""
    listed = folder / "journal/added-zones.list"
    listed.write_text(f"more.test. {secret} - {{}}\ncommit\n")
    of_the_manager(listed)
    done = as_root(server, "backup", str(folder / "saved"))
    assert done.returncode == 1 and f"user {MANAGER} cannot read {secret}" in done.stderr, done.stdout + done.stderr
    assert not (folder / "saved").exists() and not (folder / "saved.partial").exists()


def test_a_backup_empties_no_folder_behind_a_link(server, folder, secret):
    link(folder / "journal/backup", secret.parent)
    done = as_root(server, "backup", str(folder / "saved"))
    assert done.returncode == 0, done.stderr
    assert secret.read_text() == SECRET and secret.parent.stat().st_uid == 0
    assert not (folder / "journal/backup").is_symlink()


def test_a_backup_of_files_behind_links_of_their_owner_is_whole(server, folder):
    """As of a deployment that exchanges a link."""
    (folder / "zones/two.zone").rename(folder / "zones/release.zone")
    link(folder / "zones/two.zone", "release.zone")
    done = as_root(server, "backup", str(folder / "saved"))
    assert done.returncode == 0, done.stderr
    assert (folder / f"saved/files{folder}/zones/two.zone").read_text() == ZONE


# -- restore -------------------------------------------------------------------------------------------------------

@pytest.fixture
def saved(server, folder):
    done = as_root(server, "backup", str(folder / "saved"))
    assert done.returncode == 0, done.stderr
    server.stop()
    servers.wait_until("its processes are gone", lambda: not server.left_over())
    shutil.rmtree(server.store, ignore_errors=True)
    for path in ("zones", "journal"):
        shutil.rmtree(folder / path)
    return folder / "saved"


def test_a_restore_writes_into_no_folder_of_roots(server, folder, saved, secret):
    link(folder / "zones", secret.parent)
    done = as_root(server, "restore", str(saved))
    assert done.returncode == 1 and f"is a link that user {pwd.getpwnam(MANAGER).pw_uid} has made" in done.stderr
    assert [path.name for path in secret.parent.iterdir()] == ["secret"]


def test_a_restore_places_no_dump_in_a_folder_of_roots(server, folder, saved, secret):
    link(folder / "journal", secret.parent)
    done = as_root(server, "restore", str(saved))
    assert done.returncode == 1 and "is a link that user" in done.stderr, done.stderr
    assert [path.name for path in secret.parent.iterdir()] == ["secret"] and secret.parent.stat().st_uid == 0


@pytest.mark.parametrize("name", ["store.dump.partial", "store.dump"])
def test_a_restore_overwrites_nothing_behind_a_name_in_the_journal(server, folder, saved, secret, name):
    (folder / "journal").mkdir()
    of_the_manager(folder / "journal")
    os.link(secret, folder / "journal" / name)
    done = as_root(server, "restore", str(saved))
    assert done.returncode == 0, done.stderr
    assert secret.read_text() == SECRET and secret.stat().st_uid == 0
    server.start("two.test")


def test_a_restore_replaces_a_link_and_not_its_target(server, folder, saved, secret):
    (folder / "zones").mkdir()
    of_the_manager(folder / "zones")
    link(folder / "zones/two.zone", secret)
    done = as_root(server, "restore", str(saved))
    assert done.returncode == 1 and "is there, and differs" in done.stderr
    done = as_root(server, "restore", str(saved), "--replace")
    assert done.returncode == 0, done.stderr
    assert secret.read_text() == SECRET
    assert (folder / "zones/two.zone").read_text() == ZONE and not (folder / "zones/two.zone").is_symlink()
    assert (folder / "zones/two.zone").owner() == MANAGER


@pytest.mark.parametrize("part", [".", "manifest.json", "files"])
def test_a_backup_of_another_user_is_not_restored(server, folder, saved, part):
    """Its owner would choose what root writes, and where."""
    of_the_manager(saved / part)
    done = as_root(server, "restore", str(saved))
    assert done.returncode == 1 and "chown root" in done.stderr, done.stderr
    assert not (folder / "zones").exists()


def test_a_dump_of_another_user_gives_no_copy_of_roots_file(server, folder, secret):
    server.stop()
    servers.wait_until("its processes are gone", lambda: not server.left_over())
    shutil.rmtree(server.store, ignore_errors=True)
    for target in (secret, secret.parent / "secret"):
        link(folder / "journal/mine.dump", target)
        done = as_root(server, "store", "load", str(folder / "journal/mine.dump"))
        (folder / "journal/mine.dump").unlink()
        assert done.returncode == 1 and "linked" in done.stderr, done.stderr
    assert SECRET.encode() not in everything_below(folder / "journal")


# -- upgrade -------------------------------------------------------------------------------------------------------

FALSE_MANAGER = """
import json, os, socket, sys
folder, answers = sys.argv[1], json.loads(sys.argv[2])
answers["status"].setdefault("pid", os.getpid())
path = os.path.join(folder, "control.sock")
try:
    os.unlink(path)
except FileNotFoundError:
    pass
listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
listening.bind(path)
os.chmod(path, 0o666)
listening.listen(8)
print("listens", flush=True)
while True:
    connection, _ = listening.accept()
    while packet := connection.recv(131072):
        verb = json.loads(packet[1:])["verb"]
        connection.send(b"." + json.dumps({"ok": True, "result": answers.get(verb, {})}).encode())
"""


@contextlib.contextmanager
def false_manager(server, status, workers, program=sys.executable, user=MANAGER):
    """A process that took the control socket over, and answers there."""
    entry = pwd.getpwnam(user)
    process = subprocess.Popen(
        [str(program), "-c", FALSE_MANAGER, str(server.folder / "run"),
         json.dumps({"status": status, "worker-list": workers})],
        user=entry.pw_uid, group=entry.pw_gid, extra_groups=[], cwd="/", stdout=subprocess.PIPE, text=True,
        env={"PYTHONHOME": sys.base_prefix, "PATH": "/usr/bin:/bin"})
    try:
        assert process.stdout.readline() == "listens\n"
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def told(server):
    """What the honest manager told, without its pid."""
    status, workers = server.control("status"), server.control("worker", "list")
    server.stop()
    servers.wait_until("its processes are gone", lambda: not server.left_over())
    workers["workers"] = []
    del status["pid"]
    return status, workers


@pytest.fixture
def evil(folder):
    """A program of the manager's user; it tells whom it was run as."""
    program = folder / "zones/pando-manager"
    program.write_text(f"#!/bin/sh\nid -u >> {folder}/zones/ran\nsleep 1\n")
    program.chmod(0o755)
    of_the_manager(program)
    return program


def upgrade(server, *words):
    return as_root(server, "--timeout", "5", "upgrade", *words)


@pytest.mark.parametrize("is_unit", [False, True])
def test_an_upgrade_runs_no_program_that_the_manager_names(server, folder, told, evil, is_unit):
    status, workers = told
    status["program"] = str(evil)
    with false_manager(server, status, workers):
        done = upgrade(server, *(["--log", str(folder / "new.log")] if not is_unit else []))
    assert not (folder / "zones/ran").exists()
    assert done.returncode == 1 and "it is no pando-manager" in done.stderr, done.stderr


def test_an_upgrade_runs_no_program_that_the_managers_user_has_put_there(server, folder, told):
    """The process is what it claims, by the name of its file."""
    own = folder / "zones/pando-manager"
    shutil.copy(os.path.realpath(sys.executable), own)
    own.chmod(0o755)
    of_the_manager(own)
    status, workers = told
    with false_manager(server, {**status, "program": str(own)}, workers, program=own):
        done = upgrade(server, "--log", str(folder / "new.log"))
    user = pwd.getpwnam(MANAGER).pw_uid
    assert done.returncode == 1 and f"zones belongs to user {user}" in done.stderr, done.stderr


def test_an_upgrade_restarts_no_process_that_the_manager_names(server, folder, told):
    status, workers = told
    with false_manager(server, {**status, "pid": 1}, workers) as process:
        done = upgrade(server, "--log", str(folder / "new.log"))
    assert done.returncode == 1 and f"process {process.pid} has the control socket" in done.stderr, done.stderr


def test_an_upgrade_believes_no_other_user(server, folder, told):
    status, workers = told
    shutil.chown(folder / "run", STRANGER)
    with false_manager(server, status, workers, user=STRANGER):
        done = upgrade(server, "--log", str(folder / "new.log"))
    assert done.returncode == 1 and f"'server.user' is '{MANAGER}'" in done.stderr, done.stderr


def test_an_upgrade_reads_no_configuration_that_the_manager_names(server, folder, told, secret):
    status, workers = told
    with false_manager(server, {**status, "configuration": str(secret)}, workers):
        done = upgrade(server, "--log", str(folder / "new.log"))
    assert done.returncode == 1 and "--config names it" in done.stderr and SECRET not in done.stderr, done.stderr


def test_an_upgrade_appends_to_no_file_of_roots(server, folder, secret):
    """The log is named by root, in a folder of the manager's user."""
    link(folder / "zones/new.log", secret)
    done = upgrade(server, "--log", str(folder / "zones/new.log"))
    assert done.returncode == 1 and "is a link that user" in done.stderr, done.stderr
    assert secret.read_text() == SECRET
    assert server.control("status")["pid"] == server.process.pid


def test_an_upgrade_of_an_honest_manager_of_another_user(server, folder):
    done = as_root(server, "--timeout", "60", "upgrade", "--log", str(folder / "new.log"))
    assert done.returncode == 0, done.stderr + server.log()
    pid = server.control("status")["pid"]
    assert pid != server.process.pid
    assert pathlib.Path(f"/proc/{pid}").owner() in (MANAGER, "root")  # a process that cannot be inspected is root's
    server.control("stop")
