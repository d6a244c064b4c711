"""A real systemd, booted in a container over an overlay of this host's root."""

import contextlib
import os
import pathlib
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
BUILD = pathlib.Path(os.environ.get("PANDO_BUILD", ROOT / "build/release"))
PROGRAMS = {"pando-manager": "usr/sbin", "pando-worker": "usr/sbin", "pando-tls": "usr/sbin", "pando-http": "usr/sbin",
            "pandoctl": "usr/bin"}
BOOT_SECONDS = 300  # an upper bound for a busy machine; a boot takes some 5 s

needs_containers = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("systemd-nspawn") is None
    or not all((BUILD / program).exists() for program in PROGRAMS),
    reason="needs root, systemd-nspawn and a build")

UNITS = "usr/lib/systemd/system"

# The script ends the container, whatever it returns.
SERVICE = """[Unit]
After={after}
SuccessAction=poweroff-force
FailureAction=poweroff-force
[Service]
Type=oneshot
TimeoutStartSec=240
ExecStart=/bin/bash /boot-test/script
"""

# Each `step NAME` of a script starts a file with the output of the following commands.
PRELUDE = r"""
step() { exec > /boot-test/results/$1 2>&1; }
ask() { dig +short +tries=1 +time=2 @"${2:-127.0.0.1}" "$1"; }
# Until a condition holds, at most 60 s.
until_true() { for _ in $(seq 600); do "$@" > /dev/null && return; sleep 0.1; done; echo "never: $*"; }
main_pid() { systemctl show -P MainPID "$1"; }
"""


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def prepare(root, script, wants, after):
    """Writes the script and the unit that runs it, beside the units that it `wants` and comes `after`."""
    # A build with a sanitizer looks for leaks by tracing itself, which no worker allows.
    for unit in ("pando-manager.service.d", "pando-worker@.service.d", "pando-http.service.d"):
        write(root / UNITS / unit / "test.conf", "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
    write(root / UNITS / "pando-boot-test.target", f"[Unit]\nWants={wants} pando-boot-test.service\n")
    write(root / UNITS / "pando-boot-test.service", SERVICE.format(after=after))
    write(root / "boot-test/script", PRELUDE + script)
    (root / "boot-test/results").mkdir()


@contextlib.contextmanager
def overlay(folder):
    """A root folder over the host's, whose changes go to `folder` and are lost at the end."""
    upper, work, root = (folder / name for name in ("upper", "work", "root"))
    for path in (upper, work, root):
        path.mkdir()
    mounted = subprocess.run(["mount", "-t", "overlay", "overlay", str(root), "-o",
                              f"lowerdir=/,upperdir={upper},workdir={work}"], capture_output=True)
    if mounted.returncode != 0:
        pytest.skip("needs an overlay of the host's root")
    try:
        yield root
    finally:
        subprocess.run(["umount", "--lazy", str(root)], check=True)


def boot(root, machine, *options):
    """Boots until the script has ended; returns the output of each of its steps. `options` are systemd-nspawn's."""
    pathlib.Path("/sys/fs/cgroup/systemd").mkdir(exist_ok=True)
    console = subprocess.run(
        ["systemd-nspawn", "--boot", "--quiet", "-D", str(root), f"--machine={machine}",
         "--register=no", "--keep-unit", "--private-network", "--console=pipe", *options,
         "--", "--unit=pando-boot-test.target"],
        env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"}, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=BOOT_SECONDS)
    steps = {path.name: path.read_text() for path in (root / "boot-test/results").iterdir()}
    if not steps:  # the script runs whatever our units do
        pytest.skip("systemd does not boot in a container here: " + console.stderr[-300:])
    assert "journal" in steps, console.stdout[-3000:] + console.stderr[-3000:] + repr(steps)
    return steps
