"""Pages of the documents as programs: their commands are run in the order of a page, and print what the page says.

A command begins behind a prompt (`$ ` or `HOST# `) and goes on while a shell wants more lines: here-documents, quotes.
The lines behind it are what it prints. In these, `...` stands for any lines, or for any part of a line.

A `sleep` on a page gives something time, which the test does not measure: the commands behind it are repeated until
they print what the page says.
"""

import dataclasses
import os
import re
import subprocess
import threading

import servers

SECONDS = 100
# What differs from run to run, and a word that stands for it.
VARYING = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+\+00:00|Z)"), "TIME"),
    (re.compile(r"\b(pid|ms|us|uid|version|position|bytes|client|port|from)=\S+"), r"\1=VALUE"),
    (re.compile(r"\b[0-9a-f]{12,40}\b"), "BUILD"),
    (re.compile(r"(?<=process )\d+"), "PID"),
    (re.compile(r"^ *\d+ +\d+ +serving .*"), "A WORKER"),
    (re.compile(r"\b[\d.]+ (B|KiB|MiB)\b"), "SIZE"),
    (re.compile(r" {2,}"), "  "),
]


@dataclasses.dataclass
class Command:
    host: str  # of the prompt; empty: `$`
    text: str
    shown: list  # lines that it prints


def is_whole(text):
    """Whether a shell wants no further line. bash reports an open here-document as a warning."""
    done = subprocess.run(["bash", "-n", "-c", text], capture_output=True, stdin=subprocess.DEVNULL)
    return done.returncode == 0 and not done.stderr


def section_of(text, heading):
    found = re.search(rf"^#+ {re.escape(heading)}$\n(.*?)(?=^#+ |\Z)", without_blocks_headings(text), re.M | re.S)
    assert found, heading
    return text[found.start(1):found.end(1)]


def without_blocks_headings(text):
    """The text with other octets in the place of `#` in blocks, where it is a comment or a prompt."""
    return re.sub(r"^```.*?^```$", lambda block: block[0].replace("#", "_"), text, flags=re.M | re.S)


def commands(page, heading=None, hosts=False):
    """The commands of a page of the source tree, or of one of its sections."""
    text = (servers.SOURCE / page).read_text()
    if heading:
        text = section_of(text, heading)
    found = []
    for language, block in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        lines = [line for line in block.splitlines() if line]
        if language or not re.match(r"\$ |\w*# ", lines[0]):
            continue
        at = 0
        while at < len(lines):
            prompt = re.match(r"(?:\$|(\w+)#) (.*)$" if hosts else r"(?:\$|#()) (.*)$", lines[at])
            at += 1
            if not prompt:
                found[-1].shown.append(lines[at - 1])
                continue
            command = prompt[2]
            while not is_whole(command):
                assert at < len(lines), f"{page}: no end of {command}"
                command += "\n" + lines[at]
                at += 1
            found.append(Command(prompt[1] or "", command, []))
    assert found, (page, heading)
    return found


def plain(line, varying=VARYING):
    for pattern, word in varying:
        line = pattern.sub(word, line)
    return line.rstrip()


def same_line(shown, printed, varying):
    pattern = ".*".join(re.escape(part.strip()) for part in plain(shown, varying).split("..."))
    return re.fullmatch(pattern, plain(printed, varying).strip()) is not None


def matches(shown, printed, varying=VARYING):
    """Whether lines of the page stand for printed ones."""
    if not shown:
        return not printed
    if shown[0].strip() == "...":
        return any(matches(shown[1:], printed[at:], varying) for at in range(len(printed) + 1))
    return bool(printed) and same_line(shown[0], printed[0], varying) and matches(shown[1:], printed[1:], varying)


class Shell:
    """A shell in which all commands of a page are typed, with variables, aliases, jobs and a folder of its own.

    `here`: pairs of a text of the page and what stands for it in the test, such as paths and ports.
    """

    def __init__(self, folder, here=(), programs=()):
        self.here = list(here)
        folder.mkdir(parents=True, exist_ok=True)
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", cwd=folder, bufsize=1, start_new_session=True,
            env={**os.environ, "PATH": ":".join([*map(str, programs), os.environ["PATH"], "/usr/sbin"]), "LC_ALL": "C"})
        self.lines, self.more, self.ended = [], threading.Condition(), False
        threading.Thread(target=self._read, daemon=True).start()
        self.number = 0
        self.type("shopt -s expand_aliases; set -m")  # %1 names a job

    def _read(self):
        for line in self.process.stdout:
            with self.more:
                self.lines.append(line.rstrip("\n"))
                self.more.notify()
        with self.more:
            self.ended = True
            self.more.notify()

    def on_page(self, text):
        for page, here in self.here:
            text = text.replace(here, page)
        return text

    def type(self, command):
        """The lines that the command prints, and its exit code."""
        for page, here in self.here:
            command = command.replace(page, here)
        self.number += 1
        mark = f"end-of-command-{self.number}:"
        self.process.stdin.write(f"{command}\nprintf '\\n%s%s\\n' {mark} $?\n")
        self.process.stdin.flush()
        with self.more:
            ended = self.more.wait_for(lambda: self.ended or any(line.startswith(mark) for line in self.lines), SECONDS)
            assert ended and not self.ended, f"{command}\ndoes not end:\n" + "\n".join(self.lines)
            end = next(at for at, line in enumerate(self.lines) if line.startswith(mark))
            printed, code = self.lines[:end], int(self.lines[end][len(mark):])
            del self.lines[:end + 1]
        if printed and printed[-1] == "":  # of the mark
            printed.pop()
        return [self.on_page(line) for line in printed if not re.match(r"\[\d+\][-+]? ", line)], code

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


def follow(shell, page_commands, varying=VARYING, codes=None, strict=True):
    """Runs the commands and compares. `codes`: exit codes other than 0, by the beginning of a command. Unless `strict`, a
    command for which the page shows nothing may print anything."""
    patient = False
    for command in page_commands:
        if re.match(r"sleep \d", command.text):
            patient = True
            continue
        wanted = next((code for words, code in (codes or {}).items() if command.text.startswith(words)), 0)

        def right():
            printed, code = shell.type(command.text)
            right.said = f"{command.text}\nprints (exit code {code})\n" + "\n".join(printed) \
                + "\nand not\n" + "\n".join(command.shown)
            free = not strict and not command.shown
            return code == wanted and (free or matches(command.shown, printed, varying))

        if patient:
            try:
                servers.wait_until("the page is right", right, SECONDS)
            except AssertionError:
                raise AssertionError(right.said) from None
        else:
            assert right(), right.said
