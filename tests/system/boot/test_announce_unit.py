"""contrib/bird under a real systemd: the unit has BIRD announce an address while Pando answers at it, and ends that
however it ends itself."""

import shutil
import subprocess

import pytest

from containers import ROOT, UNITS, boot, needs_containers, overlay, write
from test_systemd_boot import CONFIGURATION, install

CONTRIB = ROOT / "contrib/bird"
ANYCAST = "198.51.100.53"

pytestmark = [needs_containers, pytest.mark.skipif(
    shutil.which("bird") is None or shutil.which("birdc") is None, reason="needs bird2")]

SCRIPT = r"""
announced() { birdc show route 2> /dev/null | grep -q '^198.51.100.53/32'; }
withdrawn() { birdc show protocols 2> /dev/null | grep -q '^anycast' && ! announced; }

step started
ip address add 198.51.100.53/32 dev lo
systemctl start bird
until_true withdrawn
echo withdrawn
systemctl start pando-manager pando-announce
until_true announced
ask ns.example.com 198.51.100.53
systemctl is-active pando-announce
ps -o user:20= -p "$(main_pid pando-announce)"
systemctl show -P NRestarts pando-announce

step server_stopped
systemctl stop pando-manager
until_true withdrawn
systemctl start pando-manager
until_true announced
echo announced again

step bird_restarted
systemctl restart bird
until_true announced
echo announced

step stopped
systemctl stop pando-announce
withdrawn && echo withdrawn
systemctl start pando-announce
until_true announced
echo announced

step killed
mkdir -p /run/systemd/system/pando-announce.service.d
printf '[Service]\nRestart=no\n' > /run/systemd/system/pando-announce.service.d/once.conf
systemctl daemon-reload
systemctl kill -s KILL pando-announce
until_true systemctl is-failed pando-announce
withdrawn && echo withdrawn
rm /run/systemd/system/pando-announce.service.d/once.conf
systemctl daemon-reload
systemctl start pando-announce
until_true announced
systemctl kill -s KILL pando-announce
restarted() { [ "$(systemctl show -P NRestarts pando-announce)" = 1 ] && announced; }
until_true restarted
echo announced by the next one

step journal
journalctl -b --no-pager -o short-monotonic
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The output of each step of the script. Files are where docs/howto/fleet.md has them."""
    with overlay(tmp_path_factory.mktemp("announce")) as root:
        install(root, SCRIPT, "basic.target", "basic.target")
        write(root / UNITS / "pando-announce.service.d/test.conf", "[Service]\nEnvironment=ASAN_OPTIONS=detect_leaks=0\n")
        write(root / "etc/pando/pando.yaml", CONFIGURATION.replace("workers: external", "workers: 1").replace(
            "[127.0.0.1,", f"[127.0.0.1, {ANYCAST},"))
        (root / "usr/local/sbin").mkdir(parents=True, exist_ok=True)
        shutil.copy(CONTRIB / "pando-announce", root / "usr/local/sbin")
        write(root / "etc/systemd/system/pando-announce.service", (CONTRIB / "pando-announce.service").read_text())
        write(root / "etc/sysusers.d/pando-announce.conf", (CONTRIB / "sysusers.conf").read_text())
        subprocess.run(["systemd-sysusers", f"--root={root}"], check=True, capture_output=True)
        write(root / "etc/bird/bird.conf", (CONTRIB / "bird.conf").read_text())
        subprocess.run(["chroot", str(root), "chown", "bird:bird", "/etc/bird/bird.conf"], check=True)
        return boot(root, "pando-announce-test")


def lines(results, step):
    print(results["journal"])  # shown by pytest when the test fails
    return results[step].splitlines()


def test_the_unit_announces_the_address_as_a_user_of_its_own(results):
    assert lines(results, "started") == ["withdrawn", "192.0.2.53", "active", "pando-announce", "0"]


def test_the_address_goes_with_the_server_and_comes_back_with_it(results):
    assert lines(results, "server_stopped") == ["announced again"]


def test_a_bird_that_restarts_is_told_again(results):
    assert lines(results, "bird_restarted") == ["announced"]


def test_a_stop_withdraws_the_address(results):
    assert lines(results, "stopped") == ["withdrawn", "announced"]


def test_a_kill_withdraws_the_address_and_the_next_one_announces_it(results):
    assert lines(results, "killed") == ["withdrawn", "announced by the next one"]


def test_systemd_complained_about_nothing(results):
    assert [line for line in lines(results, "journal") if "pando-announce" in line and
            ("Unknown" in line or "ignoring" in line or "status=2" in line)] == []
