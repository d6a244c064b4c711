"""One manager at a time for a run directory, a journal and a store: a second one is refused with a line
that says what is taken, and the first one does not notice."""

import os
import shutil
import signal
import subprocess

import dns.query
import dns.update
import pytest

import servers

ZONE = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"


@pytest.fixture
def server(pando, tmp_path):
    zone = tmp_path / "zone"
    zone.write_text(ZONE)
    return pando([{"name": "one.test", "file": str(zone),
                   "allow-update": [{"address": "127.0.0.0/8"}]}], workers=1).start("one.test")


def add(server, *names):
    for name in names:
        update = dns.update.UpdateMessage("one.test")
        update.add(name, 60, "A", "192.0.2.7")
        assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == 0


def contents(folder):
    """Each file below the folder with its inode: what a second manager must leave as it is."""
    return {str(path.relative_to(folder)): path.lstat().st_ino for path in folder.rglob("*")}


def second_manager(server, **other):
    """Runs a manager whose store, run directory and journal are its own but for those in `other`."""
    own = {"path": server.folder / "second/store/zones.store",
           "run-directory": server.folder / "second/run", "journal": server.folder / "second/journal"}
    lines = []
    for line in server.config.read_text().splitlines():
        key = line.strip().split(":")[0]
        if key == "listen":
            line = f"  listen: [127.0.0.1@{servers.free_port()}]"
        elif key in own:
            line = f"  {key}: {other.get(key, own[key])}"
        lines.append(line)
    config = server.folder / "second.yaml"
    config.write_text("\n".join(lines) + "\n")
    done = subprocess.run([str(servers.build_folder() / "pando-manager"), "--config", str(config)],
                          capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
                          cwd=server.folder)
    assert done.returncode == 1
    errors = [line for line in done.stderr.splitlines() if " error " in line]
    assert len(errors) == 1, done.stderr
    assert not (server.folder / "second/store").exists(), "it went on after a lock was refused"
    return errors[0]


def still_in_charge(server):
    assert server.control("status")["pid"] == server.process.pid
    assert [row["state"] for row in server.workers().values()] == ["serving"]


def test_a_journal_has_one_manager_and_loses_nothing(server):
    add(server, "before")
    files = contents(server.folder / "journal")
    line = second_manager(server, journal=server.folder / "journal")
    assert f"store.journal: another manager (process {server.process.pid}) uses " in line
    assert f"{server.folder}/journal" in line
    assert contents(server.folder / "journal") == files
    add(server, "after")
    still_in_charge(server)
    # The host restarts: only what the journal has comes back.
    server.stop()
    shutil.rmtree(server.store)
    server.start("one.test")
    assert [server.ask(f"{name}.one.test").rcode() for name in ("before", "after")] == [0, 0]


def test_a_run_directory_has_one_manager_which_keeps_its_sockets(server):
    files = contents(server.folder / "run")
    line = second_manager(server, **{"run-directory": server.folder / "run"})
    assert f"server.run-directory: another manager (process {server.process.pid}) uses " in line
    assert f"{server.folder}/run" in line
    assert contents(server.folder / "run") == files
    add(server, "after")
    still_in_charge(server)


def test_a_second_manager_is_refused_when_somebody_removed_the_store(server):
    shutil.rmtree(server.store)
    done = subprocess.run(server.command(), capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, cwd=server.folder)
    assert done.returncode == 1 and "another manager" in done.stderr
    assert not server.store.exists()
    still_in_charge(server)
    add(server, "after")


def test_a_store_of_another_journal_is_refused_with_what_to_do(server):
    add(server, "before")
    store = server.store / "zones.store"
    server.stop()
    inode, mode = store.stat().st_ino, store.stat().st_mode
    line = second_manager(server, path=store)
    assert f"{store}: this store.path belongs to the journal in another folder" in line
    assert "choose another path or remove it" in line
    assert (store.stat().st_ino, store.stat().st_mode) == (inode, mode)
    # Its own manager goes on with it.
    assert server.start("one.test").ask("before.one.test").rcode() == 0


def test_a_store_whose_journal_was_removed_is_not_taken_for_a_new_one(server):
    add(server, "before")
    server.stop()
    shutil.move(server.folder / "journal", server.folder / "journal.away")
    done = subprocess.run(server.command(), capture_output=True, text=True, timeout=60,
                          stdin=subprocess.DEVNULL, cwd=server.folder)
    assert done.returncode == 1 and "belongs to the journal in another folder" in done.stderr
    shutil.rmtree(server.folder / "journal")
    shutil.move(server.folder / "journal.away", server.folder / "journal")
    assert server.start("one.test").ask("before.one.test").rcode() == 0


def test_an_identity_that_is_none_is_taken_from_the_live_store(server):
    server.stop()
    identity = server.folder / "journal/identity"
    text = identity.read_text()
    identity.write_text("0" * 31 + "\n")
    server.start("one.test")
    servers.wait_until("the identity is written again", lambda: identity.read_text() == text)


def test_a_start_right_after_a_kill_is_not_refused(server):
    for turn in range(5):
        os.kill(server.process.pid, signal.SIGKILL)
        killed = server.process  # perhaps still dying, and certainly not waited for
        server.start("one.test")
        killed.wait()
        # Until the worker has found it, updates get SERVFAIL.
        servers.wait_until("the worker has found the new manager",
                           lambda: [row["state"] for row in server.workers().values()] == ["serving"])
        add(server, f"turn{turn}")
    still_in_charge(server)
