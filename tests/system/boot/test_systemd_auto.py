"""`workers: auto` under the shipped unit: the manager starts the workers, and they are another user's."""

import pytest

from containers import boot, needs_containers, overlay, write
from test_systemd_boot import CONFIGURATION, install

pytestmark = needs_containers

SCRIPT = r"""
serving() { [ "$(pandoctl worker list 2> /dev/null | grep -c serving)" = 2 ]; }
answers() { [ "$(ask ns.example.com)" = 192.0.2.53 ]; }
workers() { pgrep -x pando-worker; }

step start
until_true answers
until_true serving
ask ns.example.com
pandoctl --json status | tr -d ' \n' | grep -o '"worker_isolation":"[a-z]*"'

step rights
for pid in $(workers); do
  echo "$(stat -c %U /proc/$pid) $(grep -E '^Cap' /proc/$pid/status | tr -d '\t\n') $(id -Gn pando-worker)"
done

step files
for path in /etc/pando/pando.yaml /var/lib/pando/example.com.zone /dev/shm/pando/zones.store; do
  setpriv --reuid=pando-worker --regid=pando-worker --init-groups cat $path > /dev/null 2>&1 || echo refused
done

step killed
old=$(workers | tail -1)
kill -STOP $old
pandoctl worker remove 1
until_true eval '[ "$(workers | wc -l)" = 1 ]'
pandoctl worker add
until_true serving
echo two again

step journal
journalctl -b --no-pager -o short-monotonic
"""


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    with overlay(tmp_path_factory.mktemp("auto")) as root:
        install(root, SCRIPT, "pando.target", "pando-manager.service")
        write(root / "etc/pando/pando.yaml", CONFIGURATION.replace("workers: external", "workers: 2"))
        return boot(root, "pando-auto-test")


def test_it_serves_and_says_that_workers_are_kept_apart(results):
    print(results["journal"])
    assert results["start"].split() == ["192.0.2.53", '"worker_isolation":"user"']


def test_workers_are_another_user_without_capabilities(results):
    print(results["journal"])
    none = "".join(f"Cap{name}:{'0' * 16}" for name in ("Inh", "Prm", "Eff", "Bnd", "Amb"))
    assert results["rights"].splitlines() == [f"pando-worker {none} pando-worker"] * 2


def test_the_workers_user_reads_nothing_of_the_managers(results):
    assert results["files"].split() == ["refused"] * 3


def test_the_launcher_ends_workers_without_cap_kill(results):
    print(results["journal"])
    assert results["killed"].splitlines()[-1] == "two again"
