"""Restarts under a real systemd: addresses stay bound, no query is lost, a manager that hangs is replaced."""

import re
import shutil

import pytest

from containers import BUILD, PROGRAMS, UNITS, boot, needs_containers, overlay, write
from test_systemd_boot import CONFIGURATION, ROOT, WORKERS, install

pytestmark = [needs_containers, pytest.mark.skipif(shutil.which("dnsperf") is None, reason="needs dnsperf")]

COMMON = r"""
serving() { [ "$(pandoctl worker list 2> /dev/null | grep -c serving)" = 2 ]; }
answers() { [ "$(ask ns.example.com)" = 192.0.2.53 ]; }
is_new() { local pid; pid=$(main_pid pando-manager); [ "$pid" != 0 ] && [ "$pid" != "$old" ] && serving; }
echo 'ns.example.com A' > /boot-test/questions
# A connection that was accepted ends with its worker, and its client opens another one. None is refused.
ask_by_tcp() {
  local told
  for _ in 1 2 3; do
    told=$(dig +tcp +short +tries=1 +time=60 @127.0.0.1 ns.example.com 2>&1)
    case $told in *refused*) break ;; 192.0.2.53) break ;; esac
  done
  echo "$told"
}
update() {
  printf '%s\n' 'server 127.0.0.1' 'zone example.com.' "update add $1.example.com. 60 A 192.0.2.77" send |
    nsupdate -t 60 -y hmac-sha256:update-key:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=
}
# Ten names, one after the other. A client repeats an update that failed.
updates() { for i in $(seq 10); do until_true update ${1//_/-}-$i; sleep 0.1; done; }
# Whether each process, also one of those before, is of the program that is installed.
programs() {
  local other=0
  for program in pando-manager pando-worker; do
    for pid in $(pgrep -x $program); do cmp -s /proc/$pid/exe /usr/sbin/$program || other=1; done
  done
  [ $other = 0 ] && pgrep -x pando-worker > /dev/null
}
# NAME COMMAND…: what dnsperf reports by UDP, the answers to clients by TCP, and the names that updates have brought,
# while the command runs.
under_load() {
  local name=$1; shift
  # A shell has its background processes ignore SIGINT, which ends the asking.
  env --default-signal=INT dnsperf -s 127.0.0.1 -d /boot-test/questions -l 3600 -Q 300 -t 60 \
    > /boot-test/results/$name.dnsperf 2>&1 &
  local asking=$!
  sleep 1
  old=$(main_pid pando-manager)
  updates $name > /boot-test/results/$name.updating 2>&1 &
  local updating=$!
  "$@" &
  local command=$!
  local clients=()
  for i in $(seq 30); do
    ask_by_tcp >> /boot-test/results/$name.tcp &
    clients+=($!)
    sleep 0.05
  done
  wait $command
  until_true is_new
  wait "${clients[@]}" $updating
  pandoctl zone read example.com | grep -c "^${name//_/-}-" > /boot-test/results/$name.updates
  sleep 1
  kill -INT $asking
  wait $asking
}
"""

# By the same build, then by one of another layout.
UPGRADES = r"""step upgraded
under_load upgraded pandoctl --timeout 120 upgrade
systemctl show -P NFileDescriptorStore pando-manager

step other_layout
for program in pando-manager pando-worker; do mv /boot-test/next/$program /usr/sbin/$program; done
under_load other_layout pandoctl --timeout 120 upgrade
until_true programs
pandoctl zone history example.com | grep -c -- '->'
systemctl show -P NFileDescriptorStore pando-manager
"""

AUTO = COMMON + r"""
step start
until_true answers
until_true serving
systemctl show -P NFileDescriptorStore pando-manager

step restarted
under_load restarted systemctl restart pando-manager
systemctl show -P NFileDescriptorStore pando-manager

step killed
under_load killed systemctl kill --kill-whom=all -s KILL pando-manager
systemctl show -P NFileDescriptorStore pando-manager

step target
under_load target systemctl restart pando.target pando-manager

""" + UPGRADES + r"""
step held
mkdir -p /run/systemd/system/pando-manager.service.d
cat > /run/systemd/system/pando-manager.service.d/held.conf <<'UNIT'
[Service]
ExecStartPre=/bin/sh -c 'while [ -e /run/held ]; do sleep 0.1; done'
UNIT
touch /run/held
pandoctl --timeout 120 upgrade &
upgrading=$!
until_true eval '[ "$(systemctl show -P SubState pando-manager)" = start-pre ]'
pgrep -x pando-manager
ask ns.example.com
ask_by_tcp
rm /run/held
wait $upgrading
until_true serving

step broken
cp /usr/sbin/pando-manager /boot-test/whole
printf '#!/bin/sh\n[ "$1" = --version ]\n' > /boot-test/broken
chmod 755 /boot-test/broken
mv /boot-test/broken /usr/sbin/pando-manager
pandoctl --timeout 120 upgrade
echo "exit code $?"
ask ns.example.com
ask_by_tcp
mv /boot-test/whole /usr/sbin/pando-manager
until_true serving
pandoctl --timeout 120 upgrade | grep -c pando-worker
systemctl show -P KillMode pando-manager

step watchdog
old=$(main_pid pando-manager)
kill -STOP $old
until_true is_new
journalctl -b --no-pager -u pando-manager | grep -c 'Watchdog timeout'

step stopped
systemctl stop pando-manager
systemctl show -P NFileDescriptorStore pando-manager
pgrep -c pando-worker
systemctl start pando-manager
until_true answers
echo answers again

step journal
journalctl -b --no-pager -o short-monotonic
"""

SOCKETS = COMMON + r"""
step rights
grep -E '^Cap(Eff|Bnd):' /proc/$(main_pid pando-manager)/status | sort
step start
until_true answers
until_true serving
ask ns.example.com
ask ns.example.com ::1
systemctl show -P NFileDescriptorStore pando-manager

step restarted
under_load restarted systemctl restart pando-manager pando-worker@0 pando-worker@1

step killed
under_load killed systemctl kill --kill-whom=all -s KILL pando-manager pando-worker@0 pando-worker@1

""" + UPGRADES + r"""
step stopped
systemctl stop pando-manager pando-worker@0 pando-worker@1
systemctl is-active pando-manager
dig +short +tries=1 +time=60 @127.0.0.1 ns.example.com > /boot-test/answer &
client=$!
until_true systemctl is-active pando-manager
systemctl start pando-worker@0 pando-worker@1
wait $client
cat /boot-test/answer

step journal
journalctl -b --no-pager -o short-monotonic
"""


def container(folder, script, configuration, drop_ins, wants="pando.target"):
    with overlay(folder) as root:
        install(root, script, wants, "pando-manager.service")
        shutil.copytree(BUILD / "next", root / "boot-test/next", ignore=lambda _, names: {*names} - {*PROGRAMS})
        write(root / "etc/pando/pando.yaml", configuration)
        for path, text in drop_ins.items():
            write(root / UNITS / path, text)
        return boot(root, f"pando-{folder.name.rstrip('0123456789')}-test")


@pytest.fixture(scope="module")
def auto(tmp_path_factory):
    """The shipped unit, whose workers are the manager's children."""
    return container(tmp_path_factory.mktemp("restarts"), AUTO, CONFIGURATION.replace("workers: external", "workers: 2"),
                     {"pando-manager.service.d/watchdog.conf": "[Service]\nWatchdogSec=10\n"})


@pytest.fixture(scope="module")
def sockets(tmp_path_factory):
    """The shipped socket unit, and a manager without any capability, as docs/howto/install-under-systemd.md has it."""
    page = (ROOT / "docs/howto/install-under-systemd.md").read_text()
    addresses, rights = re.findall(r"```ini\n(.*?)```", page, re.S)
    return container(tmp_path_factory.mktemp("sockets"), SOCKETS, CONFIGURATION,
                     {"pando.socket.d/addresses.conf": addresses, "pando-manager.service.d/rights.conf": rights},
                     f"pando.socket pando.target {WORKERS}")


def nothing_lost(results, name):
    print(results["journal"])
    report = results[f"{name}.dnsperf"]
    assert re.search(r"Queries sent: +[1-9]\d{2,}", report), report
    assert re.search(r"Queries lost: +0 ", report), report
    completed = re.search(r"Queries completed: +(\d+)", report)[1]
    assert re.search(rf"NOERROR {completed} \(100\.00%\)", report), report
    assert results[f"{name}.tcp"].split() == ["192.0.2.53"] * 30
    assert results[f"{name}.updates"].split() == ["10"], results[f"{name}.updating"]


def test_systemd_keeps_each_listening_socket(auto):
    print(auto["journal"])
    assert auto["start"].split() == ["8"], "two workers, two addresses, UDP and TCP"
    assert auto["restarted"].split() == ["8"] and auto["killed"].split() == ["8"]


@pytest.mark.parametrize("event", ["restarted", "killed", "target"])
def test_no_query_is_lost_when_manager_and_workers_end(auto, event):
    nothing_lost(auto, event)


@pytest.mark.parametrize("build", ["upgraded", "other_layout"])
def test_an_upgrade_loses_no_query(auto, build):
    nothing_lost(auto, build)
    assert "pando-manager" in auto[build] and auto[build].splitlines()[-1] == "8", auto[build]


@pytest.mark.parametrize("build", ["upgraded", "other_layout"])
def test_an_upgrade_with_units_of_workers_and_a_socket_unit_loses_no_query(sockets, build):
    nothing_lost(sockets, build)
    lines = sockets[build].splitlines()
    assert "hands over to pando-manager.service" in lines[0] and len(lines) >= 6, lines
    assert [line.split()[:1] for line in lines[2:5]] == [["pando-manager"], ["pando-worker"], ["pando-worker"]], lines
    assert lines[-1] == "0" and not any("never" in line for line in lines), lines


def test_old_workers_answer_until_the_new_manager_has_started(auto):
    print(auto["journal"])
    lines = auto["held"].splitlines()
    hand_over = next(number for number, line in enumerate(lines) if "hands over" in line)
    assert lines[hand_over + 1:hand_over + 3] == ["192.0.2.53"] * 2, lines
    assert lines[-3].startswith("pando-manager ") and lines[-1].startswith("pando-worker "), lines


def test_old_workers_answer_also_if_the_new_manager_does_not_start(auto):
    """Each attempt of systemd leaves them, until one succeeds. The unit's own settings come back with the next upgrade."""
    print(auto["journal"])
    lines = auto["broken"].splitlines()
    code = lines.index("exit code 1")
    assert "ended with exit code" in lines[code - 1] and "the workers go on" in lines[code - 1], lines
    assert lines[code + 1:] == ["192.0.2.53", "192.0.2.53", "2", "mixed"], lines


def test_a_manager_that_hangs_is_replaced(auto):
    print(auto["journal"])
    assert int(auto["watchdog"]) >= 1


def test_a_stop_lets_the_addresses_go(auto):
    print(auto["journal"])
    assert auto["stopped"].splitlines() == ["0", "0", "answers again"]


def test_port_53_is_served_without_any_capability(sockets):
    print(sockets["journal"])
    assert re.findall(r"Cap(\w+):\s+0{16}", sockets["rights"]) == ["Bnd", "Eff"]
    assert sockets["start"].split() == ["192.0.2.53", "192.0.2.53", "0"], "the socket unit keeps its own"


@pytest.mark.parametrize("event", ["restarted", "killed"])
def test_no_query_is_lost_with_a_socket_unit(sockets, event):
    nothing_lost(sockets, event)


def test_a_query_starts_a_manager_that_was_stopped(sockets):
    print(sockets["journal"])
    assert sockets["stopped"].splitlines()[-2:] == ["inactive", "192.0.2.53"]


@pytest.mark.parametrize("scenario", ["auto", "sockets"])
def test_nothing_fails(scenario, request):
    journal = request.getfixturevalue(scenario)["journal"]
    print(journal)
    for word in ("listen_failed", "steering_failed", "socket_not_restored", "SIGSYS", "Unknown key"):
        assert word not in journal
