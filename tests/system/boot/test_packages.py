"""The Debian packages under a real systemd: installation, upgrade under load, removal, purge."""

import pathlib
import re
import shutil
import subprocess

import pytest

from containers import BUILD, boot, needs_containers, overlay, prepare

pytestmark = [needs_containers, pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not (BUILD / "CPackConfig.cmake").exists(),
    reason="needs dpkg and a build that CMake configured")]

SCRIPT = r"""
pids() { for unit in pando-manager pando-worker@{0..1} pando-http; do main_pid $unit; done; }
programs() { for pid in $(pids); do sha256sum /proc/$pid/exe | cut -c 1-64; done | sort -u; }
serving() { [ "$(pandoctl worker list 2> /dev/null | grep -c serving)" = "$(nproc)" ]; }

step installed
rm -f /usr/sbin/policy-rc.d  # keeps packages of a build host from starting services
begun=$(date +%s%N)
dpkg --install /boot-test/old.deb /boot-test/old-http.deb
echo "exit code $?"
answers() { dig +tries=1 +time=1 @127.0.0.1 example.com SOA | grep -q 'status: REFUSED'; }
until_true answers
echo "$((($(date +%s%N) - begun) / 1000000)) ms" > /boot-test/results/first_answer
systemctl is-active pando-http
until_true serving
dig +tries=1 @127.0.0.1 example.com SOA | grep -o 'status: [A-Z]*'
stat -c '%A %U:%G' /etc/pando/pando.yaml /var/lib/pando /var/lib/pando/zones

step configured
cat > /var/lib/pando/zones/example.com.zone <<'ZONE'
$TTL 60
@ SOA ns hostmaster 1 3600 900 604800 300
@ NS ns
ns A 192.0.2.53
ZONE
sed -i 's/# query-log:/query-log:/' /etc/pando/pando.yaml
cat >> /etc/pando/pando.yaml <<'YAML'
http: {}
zones:
  - {name: example.com, file: /var/lib/pando/zones/example.com.zone, allow-update: [{address: 127.0.0.0/8}]}
YAML
systemctl restart pando-manager  # gives pando-http what it reads
systemctl enable --now pando-http
until_true serving
printf '%s\n' 'server 127.0.0.1' 'zone example.com.' 'update add new.example.com. 60 A 192.0.2.77' send | nsupdate
ask new.example.com
programs > /boot-test/old-programs

step query_log
stat -c '%A %U:%G' /var/log/pando
logged() { grep -c '"qname":"new.example.com."' /var/log/pando/queries.log 2> /dev/null; }
until_true logged
stat -c '%A %U:%G' /var/log/pando/queries.log
logrotate --force /etc/logrotate.d/pando
echo "exit code $?"
ls /var/log/pando
rotated() { ask new.example.com && logged; }
until_true rotated
ls /var/log/pando

step load
until_true serving
for i in $(seq 50); do printf 'ns.example.com A\nnew.example.com A\n'; done > /boot-test/questions
dnsperf -s 127.0.0.1 -d /boot-test/questions -l 200 -Q 500 -t 5 > /boot-test/results/dnsperf 2>&1 &
load=$!
sleep 1

step upgraded
dpkg --install --force-confold /boot-test/new.deb /boot-test/new-http.deb
echo "exit code $?"
kill -0 $load && echo "still under load"
until_true serving
dpkg-query -W -f '${Version}\n' pando pando-http
systemctl is-active pando-http
kill -INT $load  # it tells what it has counted
wait $load

step programs
for program in /usr/sbin/pando-{manager,worker,http}; do sha256sum $program | cut -c 1-64; done | sort -u \
  > /boot-test/new-programs
cmp <(programs) /boot-test/new-programs && echo "all processes run the new programs"
cmp -s /boot-test/old-programs /boot-test/new-programs || echo "which are not the old ones"
ask new.example.com

step removed
dpkg --remove pando-http pando
echo "exit code $?"
systemctl is-active pando-manager pando-worker@0 pando-http
test -s /etc/pando/pando.yaml -a -d /var/lib/pando/journal && echo "configuration and journal stay"

step purged
dpkg --purge pando-http pando
echo "exit code $?"
find /etc /usr /var/lib /var/log /run /dev/shm -xdev -name '*pando*' -not -path '*pando-boot-test*' -not -path '/run/systemd/*' \
  -not -path '*/pando-*.service.d*' -not -path '*/pando-worker@.service.d*' -not -name '*pandoc*' 2> /dev/null
getent passwd pando pando-worker pando-http
getent group pando pando-worker pando-http

step journal
journalctl -b --no-pager -o short-monotonic
"""


def make_packages(folder):
    """The packages of this build, made by cpack: pando and pando-http."""
    made = subprocess.run(["cpack", "--config", BUILD / "CPackConfig.cmake", "-D", "CPACK_DEBIAN_COMPRESSION_TYPE=gzip",
                           "-B", folder / "cpack"], cwd=BUILD, capture_output=True, text=True)
    assert made.returncode == 0, made.stdout + made.stderr
    http, server = sorted((folder / "cpack").glob("*.deb"))
    assert http.name.startswith("pando-http_") and server.name.startswith("pando_")
    return server, http


def make_newer(package, folder):
    """The same package as a later version with programs of other bytes."""
    tree = folder / f"newer-{package.name}"
    subprocess.run(["dpkg-deb", "--raw-extract", package, tree], check=True)
    control = tree / "DEBIAN/control"
    text = re.sub(r"(?m)^Version: (.*)$", r"Version: \1.1", control.read_text())
    control.write_text(re.sub(r"pando \(= ([^)]*)\)", r"pando (= \1.1)", text))
    for program in [*tree.glob("usr/sbin/*"), *tree.glob("usr/bin/*")]:
        with program.open("ab") as file:
            file.write(b"newer")  # behind the last section: nobody reads it
    newer = folder / f"newer-{package.name}.deb"
    subprocess.run(["dpkg-deb", "-Zgzip", "-z1", "--build", "--root-owner-group", tree, newer], check=True, capture_output=True)
    return newer


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The output of each step of the script."""
    folder = tmp_path_factory.mktemp("packages")
    packages = make_packages(folder)
    newer = [make_newer(package, folder) for package in packages]
    with overlay(folder) as root:
        prepare(root, SCRIPT, "basic.target", "basic.target")
        for age, found in (("old", packages), ("new", newer)):
            for package, name in zip(found, (f"{age}.deb", f"{age}-http.deb")):
                shutil.copy(package, root / "boot-test" / name)
        found = boot(root, "pando-package-test")
    print(found["journal"])
    print("from dpkg to the first answer:", found["first_answer"])
    return found


def test_an_installed_server_answers_at_once(results):
    lines = results["installed"].splitlines()
    assert "exit code 0" in lines
    assert "inactive" in lines, "pando-http waits for its section in the configuration"
    assert "status: REFUSED" in lines  # it has no zone yet
    assert lines[-3:] == ["-rw-r----- root:pando", "drwxr-x--- pando:pando", "drwxr-x--- pando:pando"]
    assert "never" not in results["installed"], results["installed"]


def test_a_zone_of_the_packages_folder_is_served_and_updated(results):
    assert results["configured"].splitlines()[-1] == "192.0.2.77"


@pytest.mark.skipif(shutil.which("logrotate") is None, reason="needs logrotate")
def test_the_query_log_is_rotated_where_unit_package_and_reference_have_it(results):
    assert results["query_log"].splitlines() == [
        "drwxr-x--- pando:pando", "-rw-r----- pando:pando", "exit code 0", "queries.log.1", "queries.log", "queries.log.1"]


def test_an_upgrade_loses_no_query(results):
    assert "exit code 0" in results["upgraded"]
    assert "still under load" in results["upgraded"]
    assert "active" in results["upgraded"].splitlines(), "pando-http serves again"
    assert re.search(r"Queries sent: +[1-9]\d{3,}", results["dnsperf"]), results["dnsperf"]
    assert re.search(r"Queries lost: +0 ", results["dnsperf"]), results["dnsperf"]
    assert re.search(r"NOERROR [1-9]\d* \(100\.00%\)", results["dnsperf"]), results["dnsperf"]


def test_an_upgrade_replaces_all_processes_and_keeps_updates(results):
    assert results["programs"].splitlines() == [
        "all processes run the new programs", "which are not the old ones", "192.0.2.77"]


def test_removal_keeps_data_and_purge_keeps_nothing(results):
    assert results["removed"].splitlines()[-4:] == ["inactive"] * 3 + ["configuration and journal stay"]
    assert results["purged"].splitlines()[-1] == "exit code 0", results["purged"]


@pytest.mark.skipif(shutil.which("lintian") is None, reason="needs lintian")
def test_lintian_finds_no_error(tmp_path):
    packages = make_packages(tmp_path)
    judged = subprocess.run(["lintian", "--allow-root", "--fail-on", "error", *packages], capture_output=True, text=True)
    # Programs of a build with sanitizers are linked in ways that a user's are not.
    errors = [line for line in judged.stdout.splitlines() if line.startswith("E:") and "/asan/" not in str(BUILD)]
    assert not errors, errors
