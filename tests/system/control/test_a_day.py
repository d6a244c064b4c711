"""docs/howto/a-day.md: its commands are run in the order of the page, and print what the page says."""

import os
import re
import shutil
import subprocess

import pages
import servers

PROGRAMS = ("pando-manager", "pando-worker")
# What differs from run to run on this page, beside times and sizes.
VARYING = [(re.compile(r"^(pando-manager \S+ +-) +\d+"), r"\1 PID"), (re.compile(r"^pando-worker +\d+ +\d+"), "pando-worker SLOT PID"),
           *pages.VARYING]


class Host:
    """A host with the paths of the page in a folder of its own."""

    def __init__(self, pando, tmp_path):
        self.folder = tmp_path
        self.server = pando([], workers=1)
        self.paths = {"/etc/pando": tmp_path / "etc", "/var/lib/pando": tmp_path / "lib",
                      "/var/backups": tmp_path / "backups"}
        self.programs = tmp_path / "programs"
        self.own_lines = 0
        for folder in (*self.paths.values(), self.programs):
            folder.mkdir()
        self.install()
        self.server.config = self.paths["/etc/pando"] / "pando.yaml"
        self.server.command = lambda: [str(self.programs / PROGRAMS[0]), "--config", str(self.server.config)]
        tools = tmp_path / "bin"
        tools.mkdir()
        # The port of dig and the paths of the page are those of the test.
        self.tool(tools / "pandoctl", f'exec {servers.build_folder()}/pandoctl --config {self.server.config} "$@"')
        self.tool(tools / "dig", f'exec {shutil.which("dig")} -p {self.server.port} "$@"')
        self.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
        self.by_itself = {"systemctl start pando-manager": self.server.start, "ninja -C build/release install": self.install}

    @staticmethod
    def tool(path, line):
        path.write_text(f"#!/bin/sh\n{line}\n")
        path.chmod(0o755)

    def install(self):
        """As a package does it: the new file takes the old one's name."""
        for program in PROGRAMS:
            new = self.programs / f"{program}.new"
            shutil.copy(servers.build_folder() / program, new)
            new.rename(self.programs / program)

    def here(self, text):
        """The text with the paths of the test."""
        for path, folder in self.paths.items():
            text = text.replace(path, str(folder))
        return text

    def on_page(self, text):
        """What was printed, with the paths and the lines of the page."""
        for path, folder in self.paths.items():
            text = text.replace(str(folder), path)
        return re.sub(r"(?<=pando\.yaml:)\d+", lambda line: str(int(line[0]) - self.own_lines), text)

    def own(self, configuration):
        """What the page leaves to defaults has to be the test's own."""
        user = "root" if os.getuid() == 0 else str(os.getuid())
        group = "root" if os.getuid() == 0 else str(os.getgid())
        text = configuration.replace("[127.0.0.1@53]", f"[127.0.0.1@{self.server.port}]\n  workers: 1\n"
                                     f"  run-directory: {self.server.folder}/run\n  user: '{user}'\n"
                                     f"  worker-user: '{user}'\n  control-group: '{group}'").replace(
            "store:\n", f"store:\n  path: {self.server.store}/zones.store\n")
        self.own_lines = len(text.splitlines()) - len(configuration.splitlines())
        return text

    def lose(self):
        """Everything is gone but the backup."""
        pid = self.server.manager_pid()
        self.server.control("stop")
        servers.wait_until("the server is gone", lambda: not os.path.exists(f"/proc/{pid}") or is_dead(pid))
        servers.wait_until("its workers are gone", lambda: not self.server.left_over())
        shutil.rmtree(self.server.store, ignore_errors=True)
        for page in ("/etc/pando", "/var/lib/pando"):
            shutil.rmtree(self.paths[page])
            self.paths[page].mkdir()

    def run(self, command, shown):
        """The lines that the command prints."""
        words = command.split()
        if words[0] == "cat":  # the page shows a file that somebody has written
            text = "\n".join(shown) + "\n"
            path = self.folder / self.here(words[1])
            path.write_text(self.here(self.own(text) if path == self.server.config else text))
            return shown
        for beginning, action in self.by_itself.items():
            if command.startswith(beginning):
                action()
                return []
        done = subprocess.run(["sh", "-c", self.here(command)], capture_output=True, text=True, timeout=120,
                              env=self.environment, cwd=self.folder, stdin=subprocess.DEVNULL)
        return [self.on_page(line) for line in (done.stdout + done.stderr).splitlines()]


def is_dead(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return stat.read().rsplit(")", 1)[1].split()[0] == "Z"


@servers.needs_root("it may see which log a manager has")
def test_the_page_of_a_day_is_true(pando, tmp_path):
    host, name = Host(pando, tmp_path), "ns1"
    try:
        commands = pages.commands("docs/howto/a-day.md", hosts=True)
        assert len(commands) > 25
        for command in commands:
            if command.host != name:
                host.lose()
                name = command.host
            printed, shown = host.run(command.text, command.shown), command.shown
            assert pages.matches(shown, printed, VARYING), \
                f"{command.text}\nprints\n" + "\n".join(printed) + "\nand not\n" + "\n".join(shown)
    finally:
        pid = host.server.manager_pid()
        if pid and pid != host.server.process.pid:
            host.server.control("stop")
