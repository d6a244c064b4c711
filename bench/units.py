#!/usr/bin/env python3
"""How long a restart takes under systemd: the units, booted in a container over an overlay of this host's root (as
tests/system/boot/test_systemd_boot.py), with workers as units of their own. Needs root and systemd-nspawn. Prints a Markdown table.

  PANDO_BUILD=build/release bench/units.py [RECORDS] [TURNS]

Each row: what was killed (kill -9), then milliseconds until the next answer, of a query that was sent behind it.
A query is sent each millisecond. The store stays in memory.
"""

import contextlib
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import peers  # noqa: E402  (which finds the system tests)
import profiles  # noqa: E402
import test_systemd_boot as booted  # noqa: E402

RECORDS = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
TURNS = int(sys.argv[2]) if len(sys.argv) > 2 else 10

CONFIGURATION = """
server:
  listen: [127.0.0.1]
  workers: external
store: {size-limit: 4GiB}
zones:
  - {name: example, file: /var/lib/pando/example.zone}
"""

PROBE = r"""
import os, signal, socket, subprocess, sys, time

QUESTION = bytes.fromhex("01000001000000000000") + b"\7example\0\0\6\0\1"

def answers(client):
    number = os.urandom(2)  # an answer to a query before is none
    try:
        client.send(number + QUESTION)
        while (answer := client.recv(4096))[:2] != number:
            pass
        return answer[3] & 15 == 0 and answer[7] == 1
    except OSError:
        return False

def pid(unit):
    return int(subprocess.run(["systemctl", "show", "-P", "MainPID", unit], capture_output=True, text=True).stdout)

def until_answered(client, started):
    while not answers(client):
        assert time.monotonic() - started < 120
        time.sleep(0.001)
    return time.monotonic() - started

client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.settimeout(0.002)
client.connect(("127.0.0.1", 53))
until_answered(client, time.monotonic())
UNITS = {"worker": ["pando-worker@0"], "manager": ["pando-manager"], "both": ["pando-manager", "pando-worker@0"]}
for what, units in UNITS.items():
    for turn in range(int(sys.argv[1])):
        time.sleep(1.5)
        pids = [pid(unit) for unit in units]
        started = time.monotonic()
        for one in pids:
            os.kill(one, signal.SIGKILL)
        print(what, until_answered(client, started), flush=True)
        while any(pid(unit) in (0, old) for unit, old in zip(units, pids)) or not answers(client):
            assert time.monotonic() - started < 120
"""


def measured(folder):
    """What the probe printed, by rows of (what, seconds)."""
    root, upper, work = (folder / name for name in ("root", "upper", "work"))
    for path in (root, upper, work):
        path.mkdir()
    booted.CONFIGURATION = CONFIGURATION
    subprocess.run(["mount", "-t", "overlay", "overlay", str(root), "-o",
                    f"lowerdir=/,upperdir={upper},workdir={work}"], check=True)
    with contextlib.ExitStack() as stack:
        stack.callback(subprocess.run, ["umount", "--lazy", str(root)], check=True)
        # The step "journal" tells boot() that the script came to its end.
        booted.install(root, f"python3 /boot-test/probe {TURNS} > /boot-test/results/rows 2>&1\nstep journal\n",
                       "pando.target pando-worker@0.service")
        profiles.write("addresses", root / "var/lib/pando/example.zone", RECORDS / 1_000_000)
        booted.write(root / "boot-test/probe", PROBE)
        rows = booted.boot(root, "pando-bench")["rows"]
    return [(line.split()[0], float(line.split()[1])) for line in rows.splitlines()]


def main():
    with tempfile.TemporaryDirectory(prefix="pando-bench-") as folder:
        rows = measured(pathlib.Path(folder))
    print(f"| killed, {RECORDS:,} records | ms until the next answer: median | lowest | highest |\n|---|---:|---:|---:|")
    for what in ("worker", "manager", "both"):
        took = sorted(seconds * 1000 for name, seconds in rows if name == what)
        print(f"| {what} | {took[len(took) // 2]:.0f} | {took[0]:.0f} | {took[-1]:.0f} |")


if __name__ == "__main__":
    main()
