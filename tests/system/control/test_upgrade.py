"""`pandoctl upgrade`: the programs that are installed take over from those that run, and no query is lost."""

import json
import os
import pathlib
import signal
import subprocess

import pytest

import servers
from test_dump import ANYBODY

ZONE = "upgrade.test"
THIS = servers.build_folder()
NEXT = servers.build_folder() / "next"


def build_of(program):
    """The build ID, as binutils read it."""
    notes = subprocess.run(["readelf", "--notes", program], capture_output=True, text=True, check=True).stdout
    return notes.split("Build ID:")[1].split()[0]


class Installed:
    """A server whose programs are installed in a folder of its own."""

    def __init__(self, pando, tmp_path, external=False):
        self.folder = tmp_path / "programs"
        self.folder.mkdir()
        self.log = tmp_path / "new.log"
        self.install(THIS)
        file = tmp_path / "upgrade.zone"
        file.write_text("@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n")
        self.server = pando([{"name": ZONE, "file": str(file), "allow-update": ANYBODY}],
                            workers="external" if external else 2)
        self.server.command = lambda: [str(self.folder / "pando-manager"), "--config", str(self.server.config)]
        self.worker = self.start_worker() if external else None
        self.server.start(ZONE)

    def start_worker(self):
        run = self.server.folder / "run"
        run.mkdir(exist_ok=True)
        return subprocess.Popen([str(self.folder / "pando-worker"), "--slot", "0", "--run-directory", str(run)],
                                stdin=subprocess.DEVNULL)

    def install(self, build):
        """As a package does it: the new file takes the old one's name."""
        for program in ("pando-manager", "pando-worker"):
            new = self.folder / f"{program}.new"
            servers.link_or_copy(build / program, new)
            new.rename(self.folder / program)

    def upgrade(self, *words, config=None):
        return subprocess.run(
            [str(THIS / "pandoctl"), "--config", str(config or self.server.config), "--json", "upgrade", *words],
            capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)

    def processes(self):
        return {self.server.manager_pid(), *(row["pid"] for row in self.server.workers().values())}

    def runs(self, build):
        """Whether the manager and all workers are programs of that build."""
        return (self.server.control("status")["build"] == build_of(build / "pando-manager") and
                {row["build"] for row in self.server.workers().values()} == {build_of(build / "pando-worker")})

    def end(self):
        """The new manager is no child of the test."""
        pid = self.server.manager_pid()
        if pid and pid != self.server.process.pid:
            self.server.control("stop")
        if self.worker:
            self.worker.kill()
            self.worker.wait()


@pytest.fixture
def installed(pando, tmp_path):
    made = Installed(pando, tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("build", [THIS, NEXT], ids=["same-layout", "other-layout"])
def test_the_installed_programs_take_over(installed, build):
    server = installed.server
    load = servers.Dnsperf(server.port, [f"ns1.{ZONE} A"], rate=1000)
    try:
        before = installed.processes()
        assert installed.runs(THIS)
        installed.install(build)
        done = installed.upgrade("--log", str(installed.log))
        assert done.returncode == 0, done.stderr + server.log()
        told = json.loads(done.stdout)
        assert not before & installed.processes()
        assert {told["pid"], *(row["pid"] for row in told["workers"])} == installed.processes()
        assert told["build"] == build_of(build / "pando-manager") and installed.runs(build)
        assert server.process.wait(30) == 0
        assert "manager_ready" in installed.log.read_text()
        result = load.stop()
        assert result.lost == 0 and set(result.rcodes) == {"NOERROR"}, result.text
    finally:
        load.end()


def test_again_and_without_a_log(installed):
    """The log of a manager is continued where the caller may see which it is: root, or anybody with a sanitized build,
    whose processes may be inspected."""
    for _ in range(2):
        before = installed.processes()
        done = installed.upgrade()
        if os.getuid() != 0 and done.returncode != 0:
            assert done.returncode == 1 and "--log FILE" in done.stderr
            assert installed.processes() == before
            return
        assert done.returncode == 0, done.stderr
        assert not before & installed.processes()
    assert installed.server.log().count("manager_ready") == 3


def test_what_a_program_judges_is_judged_anew_and_not_served_before(installed, tmp_path):
    server = installed.server
    hold, judge, file = tmp_path / "hold", tmp_path / "judge", tmp_path / "upgrade.zone"
    judge.write_text(f"#!/bin/sh\ncat > /dev/null\nwhile [ -e {hold} ]; do sleep 0.05; done\n")
    judge.chmod(0o755)
    hold.touch()
    server.zones[0].update({"verify-command": [str(judge)], "verify-time": "1h"})
    server.write_config()
    file.write_text(file.read_text().replace("admin 1 ", "admin 2 "))
    assert server.control("reload")["zones_being_judged"] == 1

    def judged_since():
        row = server.control("zone", "status", ZONE)
        return row["judged_since"] if row["judged_by"] == str(judge) else 0

    def programs():
        return {entry.name for entry in pathlib.Path("/proc").iterdir() if entry.name.isdigit() and runs(entry)}

    def runs(process):
        try:
            return str(judge).encode() in (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            return False

    servers.wait_until("it is judged", judged_since)
    before = programs()
    done = installed.upgrade("--log", str(installed.log))
    assert done.returncode == 0, done.stderr + server.log()
    servers.wait_until("the former manager's programs have ended", lambda: not before & programs())
    servers.wait_until("it is judged anew", judged_since)
    assert server.serial(ZONE) == 1
    hold.unlink()
    servers.wait_until("it is served", lambda: server.serial(ZONE) == 2)


def test_programs_that_cannot_run_change_nothing(installed):
    before = installed.processes()
    for program, reason in (("#!/bin/sh\nexit 3\n", "exit code 3"), ("no program", "exit code"), (None, "cannot run")):
        (installed.folder / "pando-manager").unlink()
        if program:
            (installed.folder / "pando-manager").write_text(program)
            (installed.folder / "pando-manager").chmod(0o755)
        done = installed.upgrade("--log", str(installed.log))
        assert done.returncode == 1
        assert reason in json.loads(done.stderr)["error"] or "cannot run" in done.stderr
        assert installed.processes() == before
        if not program:
            break


def test_a_program_that_ends_at_its_start_leaves_the_old_one(installed):
    before = installed.processes()
    program = installed.folder / "pando-manager"
    program.unlink()
    program.write_text('#!/bin/sh\n[ "$1" = --version ] || { echo "out of luck" >&2; exit 7; }\n')
    program.chmod(0o755)
    done = installed.upgrade("--log", str(installed.log))
    assert done.returncode == 1
    assert "ended with exit code 7" in done.stderr and "goes on as the manager" in done.stderr
    assert installed.log.read_text() == "out of luck\n"
    assert installed.processes() == before


def test_a_wrong_configuration_changes_nothing(installed):
    before = installed.processes()
    text = installed.server.config.read_text()
    installed.server.config.write_text(text.replace("server:", "server:\n  lisen: []", 1))
    done = installed.upgrade("--log", str(installed.log))
    installed.server.config.write_text(text)
    assert done.returncode == 1 and "lisen" in done.stderr
    assert installed.processes() == before and not installed.log.exists()


def test_a_log_that_cannot_be_written_changes_nothing(installed, tmp_path):
    before = installed.processes()
    done = installed.upgrade("--log", str(tmp_path / "no-folder/log"))
    assert done.returncode == 1 and "no-folder/log" in done.stderr
    assert installed.processes() == before


def test_without_a_manager(installed):
    installed.server.kill(signal.SIGTERM)
    done = installed.upgrade("--log", str(installed.log))
    assert done.returncode == 3 and json.loads(done.stderr)["error"]
    assert not pathlib.Path(installed.log).exists()


@pytest.fixture
def external(pando, tmp_path):
    made = Installed(pando, tmp_path, external=True)
    yield made
    made.end()


def test_external_workers_without_units_are_named(external):
    """The manager is replaced; who started the workers has to restart them."""
    manager = external.server.manager_pid()
    done = external.upgrade("--log", str(external.log))
    assert done.returncode == 1
    assert f"slot 0, process {external.worker.pid}, is no unit's" in done.stderr
    assert external.server.manager_pid() not in (None, manager)
    assert external.server.ask(f"ns1.{ZONE}").answer
