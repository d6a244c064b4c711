"""The part of systemd that keeps a service's descriptors, in a few lines: NOTIFY_SOCKET, FDSTORE, LISTEN_FDS."""

import array
import os
import socket
import subprocess
import sys
import threading

# Puts the descriptors where sd_listen_fds(3) looks for them, and becomes the program: LISTEN_PID is its own.
PASS_ON = """
import fcntl, os, sys
given = [int(number) for number in sys.argv[1].split(',') if number]
high = [fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 300) for fd in given]
os.closerange(3, 300)
for index, fd in enumerate(high):
    os.dup2(fd, 3 + index)
os.environ['LISTEN_PID'] = str(os.getpid())
os.execv(sys.argv[2], sys.argv[2:])
"""


class ServiceManager:
    """Takes the messages of the programs that it starts."""

    def __init__(self, path):
        self.path = path
        self.stored = {}  # name → descriptor
        self.unit_sockets = []  # (name, descriptor): those of socket units, passed to each process
        self.lines = []  # of messages that are not about the store
        self.changed = threading.Condition()
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(path))
        self.thread = threading.Thread(target=self.receive, daemon=True)
        self.thread.start()

    def receive(self):
        while True:
            data, rights, _, _ = self.socket.recvmsg(8192, socket.CMSG_SPACE(4 * 16))
            passed = array.array("i")
            for level, kind, content in rights:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    passed.frombytes(content[:len(content) - len(content) % passed.itemsize])
            lines = data.decode().split("\n")
            with self.changed:
                self.take(lines, list(passed))
                self.changed.notify_all()
            if lines == ["END"]:
                return

    def take(self, lines, passed):
        fields = dict(line.split("=", 1) for line in lines if "=" in line)
        name = fields.get("FDNAME", "stored")
        if fields.get("FDSTOREREMOVE") == "1" and name in self.stored:
            os.close(self.stored.pop(name))
        elif fields.get("FDSTORE") == "1":
            assert len(passed) == 1 and name not in self.stored, (name, passed)
            self.stored[name] = passed.pop()
        else:
            self.lines += lines
        for descriptor in passed:
            os.close(descriptor)

    def names(self):
        with self.changed:
            return sorted(self.stored)

    def await_line(self, line, count=1, seconds=30):
        """Until `line` has come `count` times since the last forget()."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.lines.count(line) >= count, seconds):
                raise AssertionError(f"no {count} × {line} within {seconds} s: {self.lines}")

    def forget(self):
        with self.changed:
            self.lines.clear()

    def launch(self, server):
        """Starts the program of `server` with all that is stored, and asks it nothing."""
        descriptors = self.unit_sockets + sorted(self.stored.items())
        environment = {**server.environment(), "NOTIFY_SOCKET": str(self.path), "LISTEN_FDS": str(len(descriptors)),
                       "LISTEN_FDNAMES": ":".join(name for name, _ in descriptors)}
        numbers = [descriptor for _, descriptor in descriptors]
        with open(server.log_path, "ab") as log:
            server.process = subprocess.Popen(
                [sys.executable, "-c", PASS_ON, ",".join(map(str, numbers)), *server.command()], stdout=log, stderr=log,
                stdin=subprocess.DEVNULL, cwd=server.folder, env=environment, pass_fds=numbers)

    def end(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"END", str(self.path))
        self.thread.join()
        self.socket.close()
        for descriptor in [*self.stored.values(), *(fd for _, fd in self.unit_sockets)]:
            os.close(descriptor)
