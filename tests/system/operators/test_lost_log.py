"""No process ends, and no file is written to, because of the place where its log lines go."""

import json
import os
import pathlib
import signal
import subprocess

import servers

ZONE = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"
# Tells as its reason for a refusal which signals it ignores.
VERIFIER = "#!/bin/sh\ncat >/dev/null\ngrep SigIgn /proc/self/status >&2\nexit 1\n"


class Unread(servers.Pando):
    """A server whose output nobody reads, from the first line on; or whose standard descriptors are closed."""

    closed = False

    def command(self):
        words = super().command()
        return ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *words] if self.closed else words

    def start(self, zone=None, seconds=150):
        reading, writing = os.pipe()
        os.close(reading)
        self.process = subprocess.Popen(self.command(), stdout=writing, stderr=writing, stdin=subprocess.DEVNULL,
                                        cwd=self.folder, env=self.environment())
        os.close(writing)
        servers.wait_until(f"{zone} is served", lambda: self.serves(zone), seconds)
        return self


def unread(tmp_path, closed=False, **zone):
    path = tmp_path / "zone"
    path.write_text(ZONE)
    server = Unread(tmp_path / "server", [{"name": "one.test", "file": str(path), **zone}],
                    extra="  log: {level: debug}")
    server.closed = closed
    return server


def ignores(pid, number):
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return bool(int(status.partition("SigIgn:")[2].split()[0], 16) & 1 << (number - 1))


def serving_pids(server):
    return {row["pid"] for row in server.workers().values() if row["state"] == "serving"}


def test_nobody_reads_the_log(tmp_path):
    server = unread(tmp_path)
    try:
        server.start("one.test")
        servers.wait_until("both workers serve", lambda: len(serving_pids(server)) == 2)
        first = serving_pids(server)
        for pid in [server.process.pid, *first]:
            assert ignores(pid, signal.SIGPIPE) and ignores(pid, signal.SIGXFSZ)
        os.kill(min(first), signal.SIGKILL)  # a line of the manager, and some of the next worker
        servers.wait_until("another worker serves", lambda: len(serving_pids(server) - first) == 1)
        server.control("reload")
        assert server.manager_pid() == server.process.pid
        server.stop()
        assert server.process.returncode == 0
    finally:
        server.clean()


def test_metrics_are_served_though_nobody_reads_the_log(tmp_path):
    server = unread(tmp_path)
    port = servers.free_port()
    server.config.write_text(server.config.read_text() + f"http: {{listen: ['127.0.0.1@{port}'], user: root}}\n")
    reading, writing = os.pipe()
    os.close(reading)
    program = subprocess.Popen([str(servers.build_folder() / "pando-http"), "--config", str(server.config)],
                               stdout=writing, stderr=writing, cwd=server.folder)
    os.close(writing)
    try:
        servers.wait_until("it listens", lambda: program.poll() is not None or listens(program.pid, port))
        assert program.poll() is None, program.returncode
        program.terminate()
        assert program.wait(30) == 0
    finally:
        program.kill()


def listens(pid, port):
    local = f"0100007F:{port:04X}"
    return any(line.split()[1] == local and line.split()[3] == "0A"
               for line in pathlib.Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:])


def test_closed_standard_descriptors_are_not_those_of_other_files(tmp_path):
    server = unread(tmp_path, closed=True)
    try:
        server.start("one.test")
        servers.wait_until("both workers serve", lambda: len(serving_pids(server)) == 2)
        for pid in [server.process.pid, *serving_pids(server)]:
            assert {os.readlink(f"/proc/{pid}/fd/{number}") for number in range(3)} == {"/dev/null"}
    finally:
        server.clean()


def test_a_program_that_verifies_has_the_signals_defaults(tmp_path):
    program = tmp_path / "program"
    program.write_text(VERIFIER)
    program.chmod(0o755)
    server = unread(tmp_path, **{"verify-command": [str(program)]})
    try:
        server.start()
        servers.wait_until("the zone is refused", lambda: "SigIgn" in json.dumps(
            server.control("zone", "status", "one.test")))
        problem = server.control("zone", "status", "one.test")["problem"]
        ignored = int(problem.partition("SigIgn:")[2].split()[0], 16)
        assert ignored & (1 << (signal.SIGPIPE - 1) | 1 << (signal.SIGXFSZ - 1)) == 0, problem
    finally:
        server.clean()
