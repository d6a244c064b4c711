"""The image of contrib/container as far as it can be had without a registry: the packages are installed over this
host's root, and the image's entry point runs as the first process, with a read-only root and the rights that the
Kubernetes example gives. tests/tidy/test_contrib.py reads both files."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import time

import pytest
import yaml

from containers import BUILD, ROOT, needs_containers, overlay
from test_packages import make_packages

pytestmark = [needs_containers, pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not (BUILD / "CPackConfig.cmake").exists(),
    reason="needs dpkg and a build that CMake configured")]

CONTAINERFILE = ROOT / "contrib/container/Containerfile"
KUBERNETES = ROOT / "contrib/kubernetes/pando.yaml"
# systemd-nspawn(1), --capability=; what is dropped goes even if it is asked for.
NSPAWN_GIVES = ("AUDIT_CONTROL AUDIT_WRITE CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID IPC_OWNER KILL LEASE LINUX_IMMUTABLE "
                "MKNOD NET_BIND_SERVICE NET_BROADCAST NET_RAW SETFCAP SETGID SETPCAP SETUID SYS_ADMIN SYS_BOOT SYS_CHROOT "
                "SYS_NICE SYS_PTRACE SYS_RESOURCE SYS_TTY_CONFIG")
ADDRESS = "198.18.53.1"  # of the container's loopback, which its namespace has alone
ZONE = "$TTL 60\n@ SOA ns hostmaster 1 3600 900 604800 300\n@ NS ns\nns A 192.0.2.53\n"


def instructions(word):
    """The instructions of the last stage, with continued lines joined."""
    text = CONTAINERFILE.read_text().replace("\\\n", "")
    return re.findall(rf"(?m)^{word} (.*)$", text.rpartition("\nFROM ")[2])


def kubernetes(kind):
    return next(part for part in yaml.safe_load_all(KUBERNETES.read_text()) if part["kind"] == kind)


class Container:
    """A container of systemd-nspawn. Each `run` is a new one with the same volumes."""

    def __init__(self, root, folder, namespace):
        self.root, self.folder, self.namespace = root, folder, namespace
        self.process = None
        for volume in ("state", "shm", "etc"):
            (folder / volume).mkdir()
            (folder / volume).chmod(0o755)
        made = (root / "var/lib/pando").stat()  # a new volume has its owner from the image
        os.chown(folder / "state", made.st_uid, made.st_gid)
        assert made.st_uid == made.st_gid == 853
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder / "shm"], check=True)

    def start(self):
        entry = json.loads(instructions("ENTRYPOINT")[0])
        wanted = kubernetes("StatefulSet")["spec"]["template"]["spec"]["containers"][0]["securityContext"]["capabilities"]
        assert wanted["drop"] == ["ALL"]
        given = ",".join(f"CAP_{name}" for name in wanted["add"])
        dropped = ",".join(f"CAP_{name}" for name in NSPAWN_GIVES.split() if name not in wanted["add"])
        binds = [f"--bind={self.folder / name}:{at}" for name, at in
                 (("state", "/var/lib/pando"), ("shm", "/dev/shm"))]  # /run is in memory and new each time
        with open(self.folder / "log", "ab") as log:
            self.process = subprocess.Popen(
                ["systemd-nspawn", "--quiet", "-D", self.root, "--read-only", "--register=no", "--keep-unit",
                 "--link-journal=no", "--machine=pando-container-test", f"--network-namespace-path=/run/netns/{self.namespace}",
                 "--setenv=ASAN_OPTIONS=detect_leaks=0", "--no-new-privileges=yes", f"--capability={given}", f"--drop-capability={dropped}",
                 *binds, f"--bind-ro={self.folder / 'etc'}:/etc/pando", "--console=pipe", "--", *entry],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def log(self):
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def ask(self, question):
        """The answer, once there is one."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            assert self.process.poll() is None, self.log()
            found = subprocess.run(["ip", "netns", "exec", self.namespace, "dig", "+short", "+tries=1", "+time=1",
                                    f"@{ADDRESS}", question], capture_output=True, text=True).stdout.strip()
            if found and not found.startswith(";;"):
                return found
            time.sleep(0.2)
        raise AssertionError(self.log())

    def processes(self):
        """(user, program, effective capabilities) of the processes in the container."""
        listed = subprocess.run(["ip", "netns", "pids", self.namespace], capture_output=True, text=True).stdout.split()
        found = []
        for pid in listed:
            status = pathlib.Path(f"/proc/{pid}/status").read_text()
            fields = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
            found.append((int(fields["Uid"].split()[0]), fields["Name"], int(fields["CapEff"], 16)))
        return found

    def kill(self, signal):
        leader = min((int(pid) for pid in subprocess.run(
            ["ip", "netns", "pids", self.namespace], capture_output=True, text=True).stdout.split()
            if pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("pando-manager")))
        subprocess.run(["kill", f"-{signal}", str(leader)], check=True)
        self.process.wait(120)

    def clean(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)
        subprocess.run(["umount", "--lazy", self.folder / "shm"])


@pytest.fixture
def image(tmp_path):
    """A root with the packages, as the second stage installs them."""
    packages = make_packages(tmp_path)
    with overlay(tmp_path) as root:
        (root / "packages").mkdir()
        for package in packages:
            shutil.copy(package, root / "packages")
        users, install = instructions("RUN")
        assert "/packages/*.deb" in install
        script = f"{users} && dpkg --install /packages/*.deb"  # apt would ask a mirror
        done = subprocess.run(["systemd-nspawn", "--quiet", "-D", root, "--register=no", "--keep-unit",
                               "--machine=pando-image-test", "--console=pipe", "--", "/bin/sh", "-ec", script],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        yield root


@pytest.fixture
def container(image, tmp_path):
    namespace = "pando-container-test"
    subprocess.run(["ip", "netns", "add", namespace], check=True)
    made = None
    try:
        for words in (("link", "set", "lo", "up"), ("address", "add", f"{ADDRESS}/32", "dev", "lo")):
            subprocess.run(["ip", "-n", namespace, *words], check=True)
        made = Container(image, tmp_path, namespace)
        yield made
    finally:
        if made:
            made.clean()
        subprocess.run(["ip", "netns", "delete", namespace], check=True)


def test_the_image_serves_with_a_read_only_root_and_keeps_its_volume(container, tmp_path):
    configuration = (ROOT / "contrib/container/pando.yaml").read_text()
    (tmp_path / "etc/pando.yaml").write_text(
        configuration.replace("# zones:\n#   ", "zones:\n  ").replace("/var/lib/pando/zones/", "/etc/pando/"))
    (tmp_path / "etc/example.com.zone").write_text(ZONE)
    container.start()
    assert container.ask("ns.example.com") == "192.0.2.53"
    processes = container.processes()
    managers = [row for row in processes if row[1] == "pando-manager" and row[0] == 853]
    workers = [row for row in processes if row[1].startswith("pando-worker")]
    assert managers and workers, processes
    assert all(user not in (0, 853) and capabilities == 0 for user, _, capabilities in workers), processes
    container.kill("TERM")
    assert "manager_stopped" in container.log()
    assert (tmp_path / "state/zones.image").exists() and list((tmp_path / "state/journal").iterdir())
    container.start()  # another container with the volume
    assert container.ask("ns.example.com") == "192.0.2.53"


def test_the_kubernetes_example_serves_its_zone(container, tmp_path):
    for name, text in kubernetes("ConfigMap")["data"].items():
        (tmp_path / "etc" / name).write_text(text)
    container.start()
    assert container.ask("ns1.example.org") == "192.0.2.53"
    container.kill("KILL")  # the store stays in its volume
    assert list((tmp_path / "shm/pando").iterdir())
    container.start()
    assert container.ask("ns1.example.org") == "192.0.2.53"
