"""Workers that somebody else starts (`workers: external`): one that ends without an order is missed, one that was
stopped is not."""

import subprocess

import pytest

import servers
from test_records import ctl

ZONE = "units.test"


class Units:
    """What systemd does with pando-worker@N: processes by number."""

    def __init__(self, server):
        self.server, self.running = server, {}

    def start(self, number):
        with open(self.server.log_path, "ab") as log:
            self.running[number] = subprocess.Popen(
                [str(servers.build_folder() / "pando-worker"), "--slot", str(number), "--run-directory",
                 str(self.server.folder / "run")], stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        servers.wait_until("it serves", lambda: self.row(number).get("pid") == self.running[number].pid
                           and self.row(number)["state"] == "serving")

    def end(self, number, orderly):
        process = self.running.pop(number)
        process.terminate() if orderly else process.kill()
        process.wait(30)
        servers.wait_until("the manager knows", lambda: self.row(number).get("pid") != process.pid
                           or self.row(number)["state"] not in ("serving", "starting"))

    def row(self, number):
        return self.server.workers().get(number, {})

    def end_all(self):
        for process in self.running.values():
            process.kill()
            process.wait()


@pytest.fixture
def server(pando, tmp_path):
    file = tmp_path / "units.zone"
    file.write_text("@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n")
    made = pando([{"name": ZONE, "file": str(file)}], workers="external")
    begin(made)
    made.units = Units(made)
    for number in (0, 2):
        made.units.start(number)
    yield made
    made.units.end_all()


def begin(server):
    with open(server.log_path, "ab") as log:
        server.process = subprocess.Popen(server.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                          cwd=server.folder)
    servers.wait_until("the manager runs", lambda: server.manager_pid() == server.process.pid)


def numbers(server):
    status = server.control("status")
    return status["workers_wanted"], status["workers_running"], "slot 2" in status["problem"]


def test_a_worker_that_was_killed_is_missed_until_its_unit_starts_another(server):
    assert numbers(server) == (2, 2, False)
    server.units.end(2, orderly=False)
    assert numbers(server) == (2, 1, True)
    assert server.units.row(2)["state"] == "dead"
    assert "1 of 2 running (external)" in ctl(server, "status")[1]
    server.units.start(2)
    assert numbers(server) == (2, 2, False)
    assert (server.units.row(2)["restarts"], server.units.row(0)["restarts"]) == (1, 0)


def test_a_worker_that_was_stopped_is_not_missed(server):
    server.units.end(2, orderly=True)
    servers.wait_until("it is stopped", lambda: server.units.row(2)["state"] == "stopped")
    assert numbers(server) == (1, 1, False)
    server.units.start(2)
    assert numbers(server) == (2, 2, False)


def test_the_next_manager_misses_the_worker_as_well(server):
    server.units.end(2, orderly=False)
    server.kill()
    begin(server)
    servers.wait_until("worker 0 is there again", lambda: server.control("status")["workers_running"] == 1)
    assert numbers(server) == (2, 1, True)
    server.units.start(2)
    assert numbers(server) == (2, 2, False)


def test_workers_that_end_while_there_is_no_manager_are_told_apart(server):
    server.units.start(1)
    server.kill()
    for number, orderly in ((1, True), (2, False)):
        process = server.units.running.pop(number)
        process.terminate() if orderly else process.kill()
        process.wait(30)
    begin(server)
    servers.wait_until("worker 0 is there again", lambda: server.control("status")["workers_running"] == 1)
    assert numbers(server) == (2, 1, True)
    assert server.units.row(1) == {} or server.units.row(1)["state"] == "stopped"
