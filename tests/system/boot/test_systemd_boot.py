"""The units under a real systemd, booted in a container over an overlay of this host's root: two
users, the sandboxes, restarts without lost service, adoption of workers, a reload."""

import re
import shutil
import subprocess

import pytest

from containers import BUILD, PROGRAMS, ROOT, UNITS, boot, needs_containers, overlay, prepare, write

pytestmark = needs_containers

CONFIGURATION = """
server:
  listen: [127.0.0.1, "::1"]
  workers: external
http: {metrics-zones: 1}
keys:
  - {name: update-key, algorithm: hmac-sha256, secret: "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
zones:
  - name: example.com
    file: /var/lib/pando/example.com.zone
    allow-update: [{key: update-key}]
"""

ZONE = """$TTL 60
@ SOA ns hostmaster 1 3600 900 604800 300
@ NS ns
ns A 192.0.2.53
"""

SCRIPT = r"""
answers() { [ "$(ask ns.example.com)" = 192.0.2.53 ]; }
serving() { [ "$(pandoctl worker list 2> /dev/null | grep -c serving)" = 2 ]; }
manager_is_new() { local pid; pid=$(main_pid pando-manager); [ "$pid" != 0 ] && [ "$pid" != "$old" ] && pandoctl status 2> /dev/null; }

step start
until_true answers
until_true serving
ask ns.example.com
ask ns.example.com ::1

step users
for unit in pando-manager pando-worker@0; do ps -o user= -p "$(main_pid $unit)"; done

step sandbox
worker=$(main_pid pando-worker@0)
grep -E '^(CapEff|NoNewPrivs|Seccomp):' /proc/$worker/status
ls -A /proc/$worker/root/etc/pando | wc -l
ls -A /proc/$worker/root/var/lib/pando | wc -l

step metrics
metrics() { curl -sf http://127.0.0.1:8053/metrics; }
systemctl start pando-http
until_true metrics
ps -o user:20= -p "$(main_pid pando-http)"
grep -E '^NoNewPrivs:' /proc/$(main_pid pando-http)/status
metrics | grep -E '^pando_(worker_up|manager_up|store_readable|zone_serial)'
metrics | grep -c '^pando_process_cpu_seconds_total'
systemctl show -P NRestarts pando-http

step manager_killed
workers="$(main_pid pando-worker@0) $(main_pid pando-worker@1)"
old=$(main_pid pando-manager)
systemctl kill -s KILL pando-manager
ask ns.example.com
until_true manager_is_new
until_true serving
[ "$workers" = "$(main_pid pando-worker@0) $(main_pid pando-worker@1)" ] && echo same workers

step manager_restarted
old=$(main_pid pando-manager)
systemctl restart pando-manager
ask ns.example.com
until_true manager_is_new
until_true serving
[ "$workers" = "$(main_pid pando-worker@0) $(main_pid pando-worker@1)" ] && echo same workers

step workers_killed
systemctl kill -s KILL pando-worker@0 pando-worker@1
until_true answers
until_true serving
ask ns.example.com

step all_killed
for turn in 1 2 3; do
  old="$(main_pid pando-worker@0) $(main_pid pando-worker@1)"
  systemctl kill -s KILL pando-manager pando-worker@0 pando-worker@1
  until_true answers
  until_true serving
  new="$(main_pid pando-worker@0) $(main_pid pando-worker@1)"
  sleep 4  # those of another build are ended when they have been silent for 3 s
  [ "$new" = "$(main_pid pando-worker@0) $(main_pid pando-worker@1)" ] && [ "$new" != "$old" ] && echo new workers
done
journalctl -b --no-pager | grep -c -e worker_silent -e "followed by another build"

step update
printf '%s\n' 'server 127.0.0.1' 'zone example.com.' 'update add new.example.com. 60 A 192.0.2.77' send |
  nsupdate -y hmac-sha256:update-key:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=
ask new.example.com

step reload
systemctl reload pando-manager
echo "reload: $?"
pandoctl reload
pandoctl zone status

step failed_reload
cp -p /etc/pando/pando.yaml /boot-test/whole.yaml
echo 'no-such-section: {}' >> /etc/pando/pando.yaml
systemctl reload pando-manager 2> /dev/null
echo "reload: $?"
said() { journalctl -b --no-pager -u pando-manager -t pandoctl -o cat | grep no-such-section; }
until_true said
said | wc -l
systemctl is-active pando-manager
cp -p /boot-test/whole.yaml /etc/pando/pando.yaml
systemctl reload pando-manager
echo "reload: $?"

step rights
chmod 600 /var/lib/pando/example.com.zone
chown root /var/lib/pando/example.com.zone
pandoctl config check > /dev/null
echo "check: $?"
chown pando:pando /var/lib/pando/example.com.zone
pandoctl config check > /dev/null
echo "check: $?"

step given_files
mkdir /tmp/given
pandoctl store dump /tmp/given/dump > /dev/null
stat -c '%U %a' /tmp/given/dump
pandoctl zone export example.com --to /tmp/given/zone > /dev/null
grep -c 192.0.2.77 /tmp/given/zone
pandoctl store copy /tmp/given/image
echo "copy: $?"
ls /tmp/given

step missing_worker
mkdir -p /run/systemd/system/pando-worker@1.service.d
printf '[Service]\nRestart=no\n' > /run/systemd/system/pando-worker@1.service.d/once.conf
systemctl daemon-reload
workers() { pandoctl status | grep -E '^(workers|problem):'; }
metrics() { curl -sf http://127.0.0.1:8053/metrics | grep -E '^pando_workers_(wanted|running) '; }
systemctl kill -s KILL pando-worker@1
until_true eval 'workers | grep "1 of 2"'
workers
metrics
systemctl start pando-worker@1
until_true serving
workers
pandoctl worker list | grep -E '^ +1 ' | grep -c serving
systemctl stop pando-worker@1
until_true eval 'workers | grep "1 of 1"'
workers
rm -r /run/systemd/system/pando-worker@1.service.d
systemctl daemon-reload
systemctl start pando-worker@1
until_true serving

step stopped_by_pandoctl
pandoctl stop
until_true eval '[ "$(systemctl is-active pando-manager)" = inactive ]'
systemctl is-active pando-manager
ask ns.example.com

step socket_unit
systemctl enable --now --quiet pando.target pando-manager.service pando-worker@{0..1}.service
until_true serving
SOCKET_UNIT
echo "exit code $?"
until_true answers
until_true serving
systemctl is-active pando.socket pando-manager pando-worker@0
grep -E '^Cap(Eff|Bnd):' /proc/$(main_pid pando-manager)/status | grep -c '0000000000000000$'

step journal
journalctl -b --no-pager -o short-monotonic
"""

# Of a control group whose processes end while they are listed, as containers have them: systemd 252 says so and goes on.
GROUP_ENDS = ("to auxiliary processes: Input/output error", "to auxiliary processes on client request: Input/output error")


WORKERS = "pando-worker@0.service pando-worker@1.service"


def install(root, script=SCRIPT, wants=f"pando.target {WORKERS}", after=f"pando-manager.service {WORKERS}"):
    """Puts the programs, units, configuration and the test's own units into the container."""
    for program, folder in PROGRAMS.items():
        (root / folder).mkdir(parents=True, exist_ok=True)
        shutil.copy(BUILD / program, root / folder)
    units = root / UNITS
    for source in (ROOT / "systemd").iterdir():
        text = source.read_text()
        for variable, value in (("@CMAKE_INSTALL_FULL_SBINDIR@", "/usr/sbin"),
                                ("@CMAKE_INSTALL_FULL_BINDIR@", "/usr/bin"),
                                ("@PANDO_CONFIG_FOLDER@", "/etc/pando"),
                                ("@PANDO_CONFIG_FILE@", "/etc/pando/pando.yaml")):
            text = text.replace(variable, value)
        if source.suffix == ".conf":  # sysusers-http.conf is pando-http.conf of sysusers.d
            folder, _, part = source.stem.partition("-")
            write(root / f"usr/lib/{folder}.d/{'-'.join(filter(None, ('pando', part)))}.conf", text)
        elif source.suffix != ".txt":
            write(units / source.name.removesuffix(".in"), text)
    prepare(root, script.replace("SOCKET_UNIT", socket_unit_steps()), wants, after)
    write(root / "etc/pando/pando.yaml", CONFIGURATION)
    write(root / "var/lib/pando/example.com.zone", ZONE)
    subprocess.run(["systemd-sysusers", f"--root={root}"], check=True, capture_output=True)
    (root / "etc/pando/pando.yaml").chmod(0o640)
    subprocess.run(["chroot", str(root), "chown", "root:pando", "/etc/pando/pando.yaml"], check=True)


def socket_unit_steps():
    """The commands of docs/howto/install-under-systemd.md for the socket unit; `systemctl edit` as drop-ins."""
    page = (ROOT / "docs/howto/install-under-systemd.md").read_text()
    section = re.search(r"^## Socket unit\n(.*?)^## ", page, re.M | re.S)[1]
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", section, re.M | re.S)
    [(_, addresses), (_, rights), (language, commands)] = blocks
    assert language == "", "settings of two units, then commands"
    steps = ""
    for unit, text in (("pando.socket", addresses), ("pando-manager.service", rights)):
        folder = f"/etc/systemd/system/{unit}.d"
        steps += f"mkdir -p {folder}\ncat > {folder}/override.conf <<'UNIT'\n{text}UNIT\n"
    return f"{steps}systemctl daemon-reload\n{commands}"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """The output of each step of the script."""
    with overlay(tmp_path_factory.mktemp("boot")) as root:
        install(root)
        return boot(root, "pando-boot-test")


def lines(results, step):
    print(results["journal"])  # shown by pytest when the test fails
    return [line for line in results[step].splitlines() if not line.endswith(GROUP_ENDS)]


def test_it_serves_after_boot(results):
    assert lines(results, "start") == ["192.0.2.53", "192.0.2.53"]


def test_manager_and_worker_have_users_of_their_own(results):
    assert [line.split()[0] for line in lines(results, "users")] == ["pando", "pando-w+"] or \
        lines(results, "users") == ["pando", "pando-worker"]


def test_a_worker_has_no_rights_and_sees_neither_secrets_nor_the_journal(results):
    found = lines(results, "sandbox")
    assert [line.split()[0:2] for line in found[:3]] == [
        ["CapEff:", "0000000000000000"], ["NoNewPrivs:", "1"], ["Seccomp:", "2"]]
    assert found[3:] == ["0", "0"]


def test_metrics_are_served_by_a_user_of_their_own_that_sees_all_processes(results):
    assert lines(results, "metrics") == [
        "pando-http", "NoNewPrivs:\t1", 'pando_worker_up{worker="0"} 1', 'pando_worker_up{worker="1"} 1',
        "pando_store_readable 1", 'pando_zone_serial{zone="example.com."} 1', "pando_manager_up 1", "4", "0"]


def test_workers_serve_on_when_the_manager_is_killed_and_the_next_one_adopts_them(results):
    assert lines(results, "manager_killed") == ["192.0.2.53", "same workers"]


def test_workers_serve_on_when_the_manager_is_restarted(results):
    assert lines(results, "manager_restarted") == ["192.0.2.53", "same workers"]


def test_killed_workers_come_back(results):
    assert lines(results, "workers_killed") == ["192.0.2.53"]


def test_units_of_workers_may_come_back_before_the_managers(results):
    assert lines(results, "all_killed") == ["new workers"] * 3 + ["0"]


def test_updates_are_taken_through_a_worker(results):
    assert lines(results, "update") == ["192.0.2.77"]


def test_reload_works_by_systemctl_and_pandoctl(results):
    assert lines(results, "reload") == [
        "reload: 0", "reloaded: 0 zones added, 0 removed, 0 changed", "1 of 1 zone ok"]


def test_a_reload_that_failed_fails_in_systemctl_with_the_reason_in_the_journal(results):
    assert lines(results, "failed_reload") == ["reload: 1", "1", "active", "reload: 0"]


def test_a_check_by_root_has_the_rights_of_the_managers_user(results):
    found = lines(results, "rights")
    assert found[0] == ("zone example.com.: user pando cannot read /var/lib/pando/example.com.zone: Permission denied")
    assert found[1:] == ["check: 1", "check: 0"]


def test_files_that_pandoctl_asks_for_are_in_the_callers_tmp(results):
    found = lines(results, "given_files")
    assert found[:2] == ["root 600", "1"]
    assert "the manager does not see this folder" in found[2]
    assert found[3:] == ["copy: 1", "dump", "zone"]


def test_a_worker_that_died_is_missed_and_one_that_was_stopped_is_not(results):
    found = lines(results, "missing_worker")
    assert re.sub(" +", " ", found[0]) == "workers: 1 of 2 running (external)"
    assert "no worker in slot 1" in found[1]
    assert found[2:4] == ["pando_workers_wanted 2", "pando_workers_running 1"]
    assert re.sub(" +", " ", found[4]) == "workers: 2 of 2 running (external)"
    assert found[5] == "1"
    assert re.sub(" +", " ", found[6]) == "workers: 1 of 1 running (external)"
    assert len(found) == 7


def test_a_stop_by_pandoctl_is_not_undone_by_systemd(results):
    assert lines(results, "stopped_by_pandoctl") == ["stopped", "inactive", "192.0.2.53"]


def test_the_pages_steps_lead_to_the_socket_unit(results):
    found = [line for line in lines(results, "socket_unit") if not line.startswith("Created symlink")]
    assert found == ["exit code 0", "active", "active", "active", "2"]


def test_systemd_complained_about_nothing(results):
    complaints = [line for line in lines(results, "journal")
                  if "pando" in line and ("Unknown" in line or "Failed to" in line
                                          or "ignoring" in line or "SIGSYS" in line)
                  # The kernel's, in a container, when a process of the group ends at that moment.
                  and "Failed to kill control group" not in line and not line.endswith(GROUP_ENDS)]
    assert complaints == []
