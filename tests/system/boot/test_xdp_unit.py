"""AF_XDP under a real systemd: the unit and the lines of docs/howto/xdp.md give the manager what it needs, and no more."""

import re

import pytest

from containers import ROOT, UNITS, boot, needs_containers, overlay, write
from test_systemd_boot import CONFIGURATION, install

pytestmark = needs_containers

SCRIPT = r"""
client() { ip netns exec client "$@"; }
ask_by_wire() { client dig +short +tries=1 +time=2 @192.0.2.1 ns.example.com; }
answers() { [ "$(ask_by_wire)" = 192.0.2.53 ]; }
queue() { pandoctl status | grep -F '1 of 1 queues'; }
counted() { pandoctl worker list --json | tr -d ' \n' | grep -qE '"xdp_sent":[1-9]'; }

step wire
ip netns add client && ip link add eth0 type veth peer name c0 && ip link set c0 netns client || echo 'no veth'
ip address add 192.0.2.1/24 dev eth0
ip link set eth0 up
client ip address add 192.0.2.2/24 dev c0
client ip link set c0 up

step start
systemctl start pando-manager
until_true answers
until_true queue
ask_by_wire
until_true counted
queue | tr -s ' '

step rights
for pid in $(main_pid pando-manager) $(pgrep -x pando-worker); do
  echo "$(stat -c %U /proc/$pid) $(grep -E '^CapEff' /proc/$pid/status | tr -d '\t\n')"
done

step restarted
old=$(main_pid pando-manager)
systemctl restart pando-manager
until_true answers
until_true queue
queue | tr -s ' '

step stopped
systemctl stop pando-manager
gone() { ! ip link show eth0 | grep -q xdp; }
until_true gone
echo gone

step journal
journalctl -b --no-pager -o short-monotonic
"""


def documented_lines():
    """The drop-in that the page tells to write."""
    page = (ROOT / "docs/howto/xdp.md").read_text()
    block = re.search(r"```\n( *\[Service\]\n.*?)```", page, re.S)[1]
    return "\n".join(line.strip() for line in block.splitlines()) + "\n"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with overlay(tmp_path_factory.mktemp("xdp")) as root:
        install(root, SCRIPT, "basic.target", "basic.target")
        write(root / "etc/pando/pando.yaml", CONFIGURATION.replace("workers: external", "workers: 1\n  xdp: [{interface: eth0}]")
              .replace('listen: [127.0.0.1, "::1"]', "listen: [192.0.2.1, 127.0.0.1]"))
        write(root / UNITS / "pando-manager.service.d/xdp.conf", documented_lines())
        steps = boot(root, "pando-xdp-test", "--capability=CAP_NET_ADMIN,CAP_NET_RAW,CAP_BPF", "--system-call-filter=bpf")
    if "no veth" in steps["wire"]:
        pytest.skip("needs veth: " + steps["wire"])
    return steps


def test_queries_are_answered_by_af_xdp(results):
    print(results["journal"], results["start"])
    answer, queues = results["start"].splitlines()
    assert answer == "192.0.2.53" and "native, 1 of 1 queues" in queues


def test_the_manager_has_four_rights_and_the_worker_none(results):
    print(results["journal"])
    bits = sum(1 << number for number in (10, 12, 13, 39))  # BIND_SERVICE, NET_ADMIN, NET_RAW, BPF
    assert results["rights"].splitlines() == [f"pando CapEff:{bits:016x}", f"pando-worker CapEff:{0:016x}"]


def test_a_restart_brings_it_back_and_a_stop_takes_the_program_off(results):
    print(results["journal"])
    assert "native, 1 of 1 queues" in results["restarted"]
    assert results["stopped"].split() == ["gone"]
