"""The shipped systemd units: complete, without a complaint of systemd-analyze, and tight."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
UNITS = ROOT / "systemd"
VARIABLES = {
    "CMAKE_INSTALL_FULL_SBINDIR": "/usr/sbin",
    "PANDO_CONFIG_FOLDER": "/etc/pando",
    "PANDO_CONFIG_FILE": "/etc/pando/pando.yaml",
}

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")


def rendered(name):
    """A unit's text as CMake's configure_file would install it."""
    path = UNITS / name
    text = (path if path.exists() else UNITS / (name + ".in")).read_text()
    for variable, value in VARIABLES.items():
        text = text.replace(f"@{variable}@", value)
    assert not re.search(r"@[A-Z_]+@", text), "a variable that CMake does not set"
    return text


@pytest.fixture
def installed(tmp_path):
    """All units in one folder, their programs replaced by one that exists everywhere."""
    for name in ("pando-manager.service", "pando-worker@.service", "pando.target", "pando.slice"):
        text = rendered(name).replace("/usr/sbin/pando-", "/bin/true --pando-")
        (tmp_path / name).write_text(text)
    return tmp_path


def settings_of(name):
    return [line.split("=", 1) for line in rendered(name).splitlines()
            if "=" in line and not line.startswith("#")]


def verify(*units):
    return subprocess.run(["systemd-analyze", "verify", "--man=no", *map(str, units)],
                          capture_output=True, text=True, timeout=120)


def test_verify_has_nothing_to_say(installed):
    shutil.copy(installed / "pando-worker@.service", installed / "pando-worker@0.service")
    result = verify(installed / "pando-manager.service", installed / "pando-worker@0.service",
                    installed / "pando.target", installed / "pando.slice")
    assert result.stdout + result.stderr == ""
    assert result.returncode == 0


def test_verify_would_notice_a_misspelt_setting(installed):
    unit = installed / "pando-manager.service"
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPriviledges"))
    result = verify(unit)
    assert "NoNewPriviledges" in result.stdout + result.stderr


@pytest.mark.parametrize("name", ["pando-manager.service", "pando-worker@.service"])
def test_services_are_sandboxed(name):
    settings = dict(settings_of(name))
    assert settings["NoNewPrivileges"] == "yes"
    assert settings["ProtectSystem"] == "strict"
    assert settings["MemoryDenyWriteExecute"] == "yes"
    assert "SystemCallFilter" in settings


def test_the_manager_keeps_no_capability_beyond_its_two():
    settings = dict(settings_of("pando-manager.service"))
    assert settings["CapabilityBoundingSet"] == settings["AmbientCapabilities"]
    assert settings["CapabilityBoundingSet"].split() == ["CAP_NET_BIND_SERVICE", "CAP_KILL"]


def test_a_worker_has_no_capability_no_network_and_cannot_read_secrets():
    settings = dict(settings_of("pando-worker@.service"))
    assert settings["CapabilityBoundingSet"] == ""
    assert settings["RestrictAddressFamilies"] == "AF_UNIX"
    assert "-/etc/pando" in settings["InaccessiblePaths"].split()
    assert settings["User"] == "pando-worker" != dict(settings_of("pando-manager.service"))["User"]


@pytest.mark.parametrize("unit", ["pando-manager.service", "pando-worker@.service"])
def test_the_exposure_level_is_low(installed, unit):
    """`systemd-analyze security` rates 0 (tight) to 10; a unit without any sandbox gets 9.6."""
    path = installed / unit
    if "@" in unit:
        path = installed / unit.replace("@", "@0")
        shutil.copy(installed / unit, path)
    result = subprocess.run(
        ["systemd-analyze", "security", "--offline=yes", "--threshold=30", str(path)],
        capture_output=True, text=True, timeout=120)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr


def test_users_and_folders_are_declared(tmp_path):
    users = (UNITS / "sysusers.conf").read_text()
    assert re.search(r"^u pando\s", users, re.M) and re.search(r"^u pando-worker\s", users, re.M)
    (tmp_path / "etc").mkdir()
    result = subprocess.run(["systemd-sysusers", f"--root={tmp_path}", str(UNITS / "sysusers.conf")],
                            capture_output=True, text=True, timeout=60)
    assert result.returncode == 0, result.stderr
    passwd = (tmp_path / "etc/passwd").read_text()
    group = (tmp_path / "etc/group").read_text()
    assert re.search(r"^pando:", passwd, re.M) and re.search(r"^pando-worker:", passwd, re.M)
    assert re.search(r"^pando:", group, re.M) and re.search(r"^pando-worker:", group, re.M)


@pytest.mark.skipif("PANDO_BUILD" not in os.environ, reason="needs a configured build")
def test_the_build_installs_them(tmp_path):
    subprocess.run(["cmake", "--install", os.environ["PANDO_BUILD"], "--component", "systemd",
                    "--prefix", str(tmp_path)], check=True, capture_output=True, timeout=120)
    units = tmp_path / "lib/systemd/system"
    assert sorted(path.name for path in units.iterdir()) == [
        "pando-manager.service", "pando-worker@.service", "pando.slice", "pando.target"]
    assert re.search(r"^ExecStart=/.*/sbin/pando-manager --config /.*/pando/pando.yaml$",
                     (units / "pando-manager.service").read_text(), re.M)
    assert (tmp_path / "lib/sysusers.d/pando.conf").exists()
    assert (tmp_path / "lib/tmpfiles.d/pando.conf").exists()
