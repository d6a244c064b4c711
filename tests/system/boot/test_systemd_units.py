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
    "CMAKE_INSTALL_FULL_BINDIR": "/usr/bin",
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
    for name in ("pando-manager.service", "pando-worker@.service", "pando-http.service", "pando.socket", "pando.target",
                 "pando.slice"):
        text = rendered(name).replace("/usr/sbin/pando-", "/bin/true --pando-").replace("/usr/bin/pandoctl", "/bin/true")
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
                    installed / "pando.socket", installed / "pando.target", installed / "pando.slice")
    assert result.stdout + result.stderr == ""
    assert result.returncode == 0


def test_verify_has_nothing_to_say_about_the_unit_that_announces(installed):
    unit = installed / "pando-announce.service"
    text = (ROOT / "contrib/bird/pando-announce.service").read_text()
    assert "ExecStart=/usr/local/sbin/pando-announce " in text and "ExecStopPost=-/usr/sbin/birdc " in text
    unit.write_text(text.replace("/usr/local/sbin/pando-announce", "/bin/true").replace("/usr/sbin/birdc", "/bin/true"))
    (installed / "bird.service").write_text("[Service]\nExecStart=/bin/true\n")
    result = verify(unit)
    assert result.stdout + result.stderr == "" and result.returncode == 0


def test_verify_would_notice_a_misspelt_setting(installed):
    unit = installed / "pando-manager.service"
    unit.write_text(unit.read_text().replace("NoNewPrivileges", "NoNewPriviledges"))
    result = verify(unit)
    assert "NoNewPriviledges" in result.stdout + result.stderr


@pytest.mark.parametrize("name", ["pando-manager.service", "pando-worker@.service", "pando-http.service"])
def test_services_are_sandboxed(name):
    settings = dict(settings_of(name))
    assert settings["NoNewPrivileges"] == "yes"
    assert settings["ProtectSystem"] == "strict"
    assert settings["MemoryDenyWriteExecute"] == "yes"
    assert "SystemCallFilter" in settings


def test_the_manager_gets_no_capability_beyond_port_53_and_the_launchers():
    settings = dict(settings_of("pando-manager.service"))
    assert settings["CapabilityBoundingSet"] == settings["AmbientCapabilities"]
    assert settings["CapabilityBoundingSet"].split() == [
        "CAP_NET_BIND_SERVICE", "CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP"]


@pytest.mark.parametrize("name, most", [
    # 0.3 of it is for a look at the state of the clock (adjtimex), which a signer of zones needs.
    ("pando-manager.service", 2.4), ("pando-worker@.service", 0.7), ("pando-http.service", 1.9)])
def test_the_exposure_by_systemd_analyze_does_not_grow(installed, name, most):
    told = subprocess.run(["systemd-analyze", "security", "--offline=true", "--no-pager",
                           str(installed / name)], capture_output=True, text=True, timeout=120)
    assert float(re.search(r"Overall exposure level for \S+: ([0-9.]+)", told.stdout)[1]) <= most


def test_the_socket_unit_opens_the_default_addresses_for_the_manager():
    settings = settings_of("pando.socket")
    assert ["Service", "pando-manager.service"] in settings
    for kind in ("ListenDatagram", "ListenStream"):
        assert [value for name, value in settings if name == kind] == ["0.0.0.0:53", "[::]:53"]
    assert dict(settings)["BindIPv6Only"] == "ipv6-only"


def test_a_worker_that_the_manager_sends_away_is_not_started_again():
    code = re.search(r"kNotWanted = (\d+);", (ROOT / "worker/service.h").read_text())[1]
    assert ["RestartPreventExitStatus", code] in settings_of("pando-worker@.service")


def test_manager_and_workers_have_a_user_each():
    users = {name: dict(settings_of(name))["User"] for name in ("pando-manager.service", "pando-worker@.service")}
    assert users == {"pando-manager.service": "pando", "pando-worker@.service": "pando-worker"}


def test_the_manager_is_watched_and_its_sockets_are_kept():
    settings = dict(settings_of("pando-manager.service"))
    assert int(settings["WatchdogSec"]) > 0 and settings["Type"] == "notify"
    assert int(settings["FileDescriptorStoreMax"]) >= 2 * 1024, "UDP and TCP of the most workers"


def test_a_worker_is_in_no_group_of_the_managers():
    worker, manager = dict(settings_of("pando-worker@.service")), dict(settings_of("pando-manager.service"))
    assert "SupplementaryGroups" not in worker and worker["Group"] != manager["Group"]
