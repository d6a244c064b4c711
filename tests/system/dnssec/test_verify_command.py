"""A program of the operator judges each version of a zone before it is served (`verify-command`)."""

import ctypes
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from changing_primary import Primary
from signed_zones import NEEDS_SIGNERS, ZONE, changed, ldns_signed, replace

TEXT = """$TTL 300
@ SOA ns1 admin {serial} 1 1 86400 60
@ NS ns1
ns1 A 192.0.2.1
www A 192.0.2.{address}
"""
# Refuses zones in which an address is 192.0.2.99, and tells what it was given.
JUDGE = """#!/bin/sh
if grep -q '192\\.0\\.2\\.99$'; then echo "$VERIFY_ZONE $VERIFY_SERIAL: 99 is not ours" >&2; exit 1; fi
"""
# The same, but only once a file is gone.
SLOW_JUDGE = """#!/bin/sh
zone=$(cat)
while [ -e HOLD ]; do sleep 0.05; done
case "$zone" in *192.0.2.99*) echo 99 >&2; exit 1;; esac
"""


def text(serial, address=1):
    return TEXT.format(serial=serial, address=address)


def script(tmp_path, body, name="judge"):
    path = tmp_path / name
    path.write_text(body)
    path.chmod(0o755)
    return str(path)


def problem(server):
    return server.control("zone", "status", "one.test")["problem"]


def address(server):
    return server.ask("www.one.test").answer[0][0].address


def command_lines():
    """The words of each process's command line, by its pid."""
    found = {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found[int(entry.name)] = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
    return found


def running(program):
    """Pids of the processes with this program in their command lines: the shell, and the process around it."""
    return [pid for pid, words in command_lines().items() if program in words]


# Files -------------------------------------------------------------------------------------------


def test_a_refused_file_leaves_the_version_before(pando, tmp_path):
    judge = script(tmp_path, JUDGE)
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge]}]).start("one.test")
    path.write_text(text(2, 99))
    result = server.control("reload")
    says = f"{path}: refused by {judge}: exit status 1: one.test. 2: 99 is not ours"
    if not result["zones_being_judged"]:  # of a machine that is not too busy
        assert (result["zones_failed"], result["problems"]) == (1, [f"one.test.: {says}"])
    servers.wait_until("it is refused", lambda: problem(server) == says)
    assert f'zone_not_loaded zone=one.test. reason="{says}"' in server.log()
    assert (server.serial("one.test"), address(server)) == (1, "192.0.2.1")
    path.write_text(text(3, 2))
    assert server.control("reload")["zones_failed"] == 0
    servers.wait_until("it is accepted", lambda: (server.serial("one.test"), problem(server)) == (3, ""))
    assert address(server) == "192.0.2.2"
    os.unlink(judge)
    path.write_text(text(4, 3))
    server.control("reload")
    servers.wait_until("it is refused", lambda: problem(server).endswith(f"cannot find {judge}: No such file or directory"))
    assert server.serial("one.test") == 3


def test_a_first_version_can_be_refused_and_other_zones_load(pando, tmp_path):
    judge = script(tmp_path, JUDGE)
    for name, number in (("one", 99), ("two", 2), ("three", 99)):
        (tmp_path / name).write_text(text(1, number))
    server = pando([{"name": f"{name}.test", "file": str(tmp_path / name), "verify-command": command}
                    for name, command in (("one", [judge]), ("two", [judge]), ("three", []))])
    server.start("two.test")
    servers.wait_until("it was refused", lambda: "99 is not ours" in problem(server))
    assert server.ask("www.one.test").rcode() == dns.rcode.SERVFAIL
    servers.wait_until("a zone without a program", lambda: server.serial("three.test") == 1)


def test_updates_and_transactions_are_not_judged(pando, tmp_path):
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [script(tmp_path, JUDGE)],
                     "allow-update": ["127.0.0.1"]}]).start("one.test")
    update = dns.update.UpdateMessage("one.test")
    update.add("new", 60, "A", "192.0.2.99")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == 0
    server.control("zone", "begin", "one.test")
    server.control("zone", "set", "one.test", "newer", "A", "192.0.2.99")
    assert server.control("zone", "commit", "one.test")["committed"][0]["to"] == 3


def test_commands_name_no_programs(pando, tmp_path):
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path)}]).start("one.test")
    (tmp_path / "pando0" / "new").write_text(text(1))
    done = subprocess.run(
        [str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "add", "new.test",
         "file=new", 'verify-command=["/bin/sh"]'], capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "only the configuration names programs" in done.stderr


# Transfers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["axfr", "ixfr"])
def test_a_refused_transfer_leaves_the_version_before(pando, peers, tmp_path, kind):
    judge = script(tmp_path, JUDGE)
    versions = {}
    for serial, number in ((1, 1), (2, 99), (3, 3)):
        versions[serial] = tmp_path / f"version{serial}"
        versions[serial].write_text(text(serial, number))
    # Knot sends a whole zone when it has no journal of the change.
    primary = Primary("bind" if kind == "ixfr" else "knot", tmp_path, peers, versions[1])
    server = pando([{"name": "one.test", "primaries": ["up"], "verify-command": [judge]}],
                   remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.server.port}"]}]).start("one.test")
    primary.replace(versions[2], 2)
    says = f"refused by {judge}: exit status 1: one.test. 2: 99 is not ours"
    servers.wait_until("it is refused", lambda: says in problem(server))
    assert f'zone_refresh_failed zone=one.test. primary=127.0.0.1@{primary.server.port} reason="{says}"' in server.log()
    assert (server.serial("one.test"), address(server)) == (1, "192.0.2.1")
    primary.replace(versions[3], 3)
    servers.wait_until("the next version", lambda: server.serial("one.test") == 3)
    assert (address(server), problem(server)) == ("192.0.2.3", "")
    assert "zone_refreshed" in server.log()


def test_an_ixfr_is_judged_as_a_whole_zone(pando, peers, tmp_path):
    """From another Pando, by a NOTIFY; the change itself says nothing about the record that is refused."""
    judge = script(tmp_path, "#!/bin/sh\nzone=$(cat)\ncase \"$zone\" in *192.0.2.7*) ;; *) exit 0;; esac\n"
                             "case \"$zone\" in *192.0.2.8*) echo both >&2; exit 1;; esac\n")
    path = tmp_path / "zone"
    path.write_text(text(1, 7))
    down = servers.free_port()
    primary = pando([{"name": "one.test", "file": str(path), "allow-transfer": ["127.0.0.1"],
                      "allow-update": ["127.0.0.1"], "notify": ["down"]}],
                    remotes=[{"name": "down", "address": [f"127.0.0.1@{down}"]}]).start("one.test")
    server = pando([{"name": "one.test", "primaries": ["up"], "verify-command": [judge]}], port=down,
                   remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]).start("one.test")

    def update(add, number):
        message = dns.update.UpdateMessage("one.test")
        (message.add if add else message.delete)("new", *([60] if add else []), "A", f"192.0.2.{number}")
        assert dns.query.udp(message, "127.0.0.1", port=primary.port, timeout=10).rcode() == 0

    update(True, 6)
    servers.wait_until("a change that is accepted", lambda: server.serial("one.test") == 2)
    assert "by=ixfr" in server.log()
    update(True, 8)
    servers.wait_until("it is refused", lambda: problem(server).endswith("exit status 1: both"))
    assert server.serial("one.test") == 2
    update(False, 8)
    servers.wait_until("the change was taken back", lambda: server.serial("one.test") == 4)
    assert problem(server) == ""


def test_programs_that_hang_keep_no_other_zone_from_its_primary(pando, tmp_path):
    """More zones than `limits.transfers-in-per-primary` wait for a program that hangs, until a reload takes it away."""
    hold = tmp_path / "hold"
    hold.touch()
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    path = tmp_path / "zone"
    path.write_text(text(1))
    judged = [f"judged{number}.test" for number in range(6)]
    primary = pando([{"name": name, "file": str(path), "allow-transfer": ["127.0.0.1"]}
                     for name in [*judged, "one.test"]]).start("one.test")
    server = pando([{"name": name, "primaries": ["up"], "verify-command": [judge], "verify-time": "1h"}
                    for name in judged],
                   limits="{transfers-in-per-primary: 1, transfers-in: 5}",
                   remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}])
    server.start()
    servers.wait_until("programs run", lambda: running(judge))
    server.zones += [{"name": "one.test", "primaries": ["up"]}]
    server.write_config()
    server.control("reload")
    servers.wait_until("a zone without a program", lambda: server.serial("one.test") == 1)
    assert running(judge) and not any(server.serial(name) for name in judged)
    for zone in server.zones:
        zone.pop("verify-command", None)
    server.write_config()
    server.control("reload")
    for name in judged:
        servers.wait_until(f"{name} needs no verdict any more", lambda: server.serial(name) == 1)
    servers.wait_until("the programs have ended", lambda: not running(judge))
    assert hold.exists()


@pytest.mark.parametrize("begun", [True, False])
def test_another_program_keeps_the_order_to_take_any_serial(pando, tmp_path, begun):
    """A retransfer that its program holds up, or that waits behind a refresh that its program holds up."""
    hold = tmp_path / "hold"
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    path = tmp_path / "zone"
    path.write_text(text(20))
    zone = {"name": "one.test", "file": str(path), "allow-transfer": ["127.0.0.1"]}
    primary = pando([zone]).start("one.test")
    server = pando([{"name": "one.test", "primaries": ["up"], "verify-command": [judge], "verify-time": "1h"}],
                   remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}]).start("one.test")
    hold.touch()
    if not begun:
        path.write_text(text(21))
        primary.control("reload")
        server.control("zone", "refresh", "one.test")
        servers.wait_until("its program hangs", lambda: running(judge))
        row = server.control("zone", "status", "one.test")
        assert (row["change_from"], row["change_step"], row["serial"]) == ("transfer", "judging", 20)
        server.control("zone", "retransfer", "one.test")
    primary.stop()
    shutil.rmtree(primary.store)
    path.write_text(text(3, 3))
    pando([zone], port=primary.port).start("one.test")
    if begun:
        server.control("zone", "retransfer", "one.test")
        servers.wait_until("its program hangs", lambda: running(judge))
    server.zones[0]["verify-command"] = ["/bin/true"]
    server.write_config()
    server.control("reload")
    servers.wait_until("the earlier serial is taken", lambda: server.serial("one.test") == 3)
    assert address(server) == "192.0.2.3"


# What programs do ---------------------------------------------------------------------------------


def test_what_a_program_prints_is_text_without_controls(pando, tmp_path):
    judge = script(tmp_path, "#!/bin/sh\ncat > /dev/null\n"
                             "printf 'a\\377\\302\\233b\\033c \\342\\202\\254\\355\\240\\200 \\342\\202' >&2; exit 1\n")
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge]}],
                   extra="  log: {format: json}").start()
    servers.wait_until("it is refused", lambda: problem(server))
    says = f"{path}: refused by {judge}: exit status 1: abc \u20ac "
    assert problem(server) == says
    lines = [json.loads(line) for line in server.log_path.read_bytes().splitlines() if b"zone_not_loaded" in line]
    assert lines and lines[0]["reason"] == says


def landlock_version():
    return ctypes.CDLL(None).syscall(444, None, 0, 1)


@pytest.mark.skipif(landlock_version() < 6, reason="the kernel's Landlock has no rules for signals")
def test_a_program_cannot_end_the_process_around_it(pando, tmp_path):
    """Else it would leave others behind: children of another session, as here."""
    judge = script(tmp_path, "#!/bin/sh\ncat > /dev/null\n"
                             "setsid sh -c \"while :; do sleep 1; done; : $0\" &\n"
                             "kill -9 $PPID 2> /dev/null; echo \"kill $?\" >&2; exit 1\n")
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge]}]).start()
    servers.wait_until("it is refused", lambda: problem(server))
    assert problem(server).endswith("exit status 1: kill 1")
    left = [words for words in command_lines().values() if any(f": {judge}" in word for word in words)]
    assert not left


ATTACKER = """#!{python}
import os, socket, sys
sys.stdin.read()
def send():
    one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    one.sendto(b"x", sys.argv[1])
def refused(act):
    try:
        act()
    except PermissionError:
        return "refused"
    return "done"
acts = [send, lambda: os.chmod(sys.argv[2], 0o666), lambda: os.utime(sys.argv[2], (1, 1)),
        lambda: os.chown(sys.argv[2], 1, 1), lambda: os.setxattr(sys.argv[2], "user.x", b"1")]
print(*map(refused, acts), file=sys.stderr)
sys.exit(1)
"""


@pytest.mark.skipif(landlock_version() < 3, reason="this kernel's Landlock is too old for such programs")
def test_a_program_of_the_managers_user_changes_no_file_and_sends_to_no_socket(pando, tmp_path):
    judge = script(tmp_path, ATTACKER.format(python=sys.executable))
    path = tmp_path / "zone"
    path.write_text(text(1))
    folder = pathlib.Path(tempfile.mkdtemp(dir="/tmp"))  # paths of sockets are short
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(folder / "socket"))
        server = pando([{"name": "one.test", "file": str(path),
                         "verify-command": [judge, str(folder / "socket"), str(path)]}]).start()
        servers.wait_until("it is refused", lambda: problem(server))
    shutil.rmtree(folder)
    assert problem(server).endswith(f"exit status 1: {' '.join(['refused'] * 5)}")


# The end of the manager ---------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_a_program_ends_with_the_manager_and_what_it_judged_is_not_served(pando, tmp_path, how):
    hold = tmp_path / "hold"
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge]}]).start("one.test")
    hold.touch()
    path.write_text(text(2, 99))
    server.process.send_signal(signal.SIGHUP)
    servers.wait_until("the program runs", lambda: len(running(judge)) >= 2)
    if how == "kill":
        server.kill()
    else:
        server.stop()
    servers.wait_until("it has ended", lambda: not running(judge))
    server.start("one.test")
    servers.wait_until("it runs again", lambda: running(judge))
    assert (server.serial("one.test"), address(server)) == (1, "192.0.2.1")
    hold.unlink()
    servers.wait_until("it is refused", lambda: problem(server).endswith("exit status 1: 99"))
    assert (server.serial("one.test"), address(server)) == (1, "192.0.2.1")
    servers.wait_until("it has ended", lambda: not running(judge))


def test_a_program_has_its_time(pando, tmp_path):
    path = tmp_path / "zone"
    path.write_text(text(1))
    (tmp_path / "hold").touch()
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(tmp_path / "hold")))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": [judge], "verify-time": "1s"}])
    server.start()
    servers.wait_until("the time is over", lambda: problem(server).endswith(f"{judge}: no verdict within 1 s"))
    assert not running(judge)


def test_other_zones_do_not_wait_for_programs(pando, tmp_path):
    hold = tmp_path / "hold"
    hold.touch()
    judge = script(tmp_path, SLOW_JUDGE.replace("HOLD", str(hold)))
    path = tmp_path / "zone"
    path.write_text(text(1))
    judged = [f"judged{number}.test" for number in range(8)]
    server = pando([{"name": name, "file": str(path), "verify-command": [judge]} for name in judged] +
                   [{"name": "one.test", "file": str(path)}]).start("one.test")
    servers.wait_until("programs run", lambda: running(judge))
    assert not any(server.control("zone", "status", name)["state"] == "ok" for name in judged)
    hold.unlink()
    for name in judged:
        servers.wait_until(f"{name} is served", lambda: server.serial(name) == 1)


# Programs that hang -------------------------------------------------------------------------------

# Hangs for zones named hang…, and refuses an address that is not ours for the others.
HANGING_JUDGE = """#!/bin/sh
zone=$(cat)
case "$VERIFY_ZONE" in hang*) while [ -e HOLD ]; do sleep 0.05; done;; esac
case "$zone" in *192.0.2.99*) echo 99 >&2; exit 1;; esac
"""


class Hanging:
    """A server with zones whose program hangs when asked to, and with others."""

    def __init__(self, pando, tmp_path, hanging=1, **settings):
        self.hold = tmp_path / "hold"
        self.judge = script(tmp_path, HANGING_JUDGE.replace("HOLD", str(self.hold)))
        self.names = [f"hang{number}.test" for number in range(hanging)]
        self.folder = tmp_path
        for name in [*self.names, "one.test", "plain.test"]:
            self.write(name, 1)
        self.server = pando(
            [{"name": name, "file": str(tmp_path / name), "verify-command": [self.judge], "verify-time": "1h",
              "allow-update": ["127.0.0.1"], **settings} for name in [*self.names, "one.test"]] +
            [{"name": "plain.test", "file": str(tmp_path / "plain.test")}])

    def write(self, name, serial, address=1):
        (self.folder / name).write_text(text(serial, address))

    def hang(self):
        """All hanging zones get version 2, and a reload leaves them with their programs."""
        self.hold.touch()
        for name in self.names:
            self.write(name, 2)
        result = self.server.control("reload")
        assert (result["zones_being_judged"], result["zones_failed"]) == (len(self.names), 0)

    def status(self, name="hang0.test"):
        return self.server.control("zone", "status", name)

    def served(self, name, serial):
        servers.wait_until(f"{name} is {serial}", lambda: self.server.serial(name) == serial)


def test_a_program_that_hangs_holds_up_its_own_zone_alone(pando, tmp_path):
    """More of them than run at once; other reloads begin, and other zones are judged."""
    world = Hanging(pando, tmp_path, hanging=6)
    server = world.server.start("plain.test")
    for name in world.names:
        world.served(name, 1)
    world.hang()
    for serial in (2, 3):
        world.write("plain.test", serial)
        world.write("one.test", serial)
        server.control("reload")
        world.served("plain.test", serial)
        world.served("one.test", serial)
    world.write("one.test", 4, 99)
    server.control("reload")
    servers.wait_until("it is refused", lambda: world.status("one.test")["problem"].endswith("exit status 1: 99"))
    assert [server.serial(name) for name in world.names] == [1] * 6
    world.hold.unlink()
    for name in world.names:
        world.served(name, 2)
    servers.wait_until("the programs have ended", lambda: not running(world.judge))


def test_status_tells_of_the_program(pando, tmp_path):
    world = Hanging(pando, tmp_path)
    server = world.server.start("plain.test")
    world.served("hang0.test", 1)
    assert (world.status()["judged_by"], world.status()["judged_since"]) == ("", 0)
    world.hang()
    row = world.status()
    assert (row["judged_by"], row["state"], row["serial"]) == (world.judge, "ok", 1)
    assert (row["change_from"], row["change_step"]) == ("file", "judging")
    assert row["judged_until"] - row["judged_since"] == 3600
    shown = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "zone", "status",
                            "hang0.test"], capture_output=True, text=True, timeout=60).stdout
    assert f"{world.judge} since 20" in shown and ", at most until 20" in shown
    world.hold.unlink()
    world.served("hang0.test", 2)
    servers.wait_until("no program is left", lambda: world.status()["judged_by"] == "")


def test_a_first_version_under_judgement_is_no_reason_to_wait(pando, tmp_path):
    world = Hanging(pando, tmp_path)
    world.hold.touch()
    server = world.server.start("plain.test")
    servers.wait_until("it is ready", lambda: "manager_ready" in server.log())
    assert re.search(r'reason="\d+ of \d+ zones loaded, 1 being judged"', server.log())
    assert (world.status()["state"], world.status()["judged_by"]) == ("loading", world.judge)
    assert server.ask("www.hang0.test").rcode() == dns.rcode.SERVFAIL
    world.hold.unlink()
    servers.wait_until("it is served", lambda: world.status()["state"] == "ok")
    assert server.serial("hang0.test") == 1


def programs(world):
    """Of each program the process around it: a shell may have just forked."""
    return {pid for pid, words in command_lines().items() if world.judge in words and "--verifier" in words}


def test_the_same_file_goes_on_being_judged_and_another_one_is_judged_instead(pando, tmp_path):
    world = Hanging(pando, tmp_path)
    server = world.server.start("plain.test")
    world.served("hang0.test", 1)
    world.hang()
    first = programs(world)
    assert len(first) == 1
    assert server.control("reload")["zones_being_judged"] == 1
    assert first <= programs(world)
    world.write("hang0.test", 3, 3)
    assert server.control("reload")["zones_being_judged"] == 1
    second = programs(world)
    assert second and not first & second
    assert server.control("zone", "reload", "hang0.test")["zones_being_judged"] == 1
    assert not second & programs(world), "the command begins anew"
    world.hold.unlink()
    world.served("hang0.test", 3)
    assert "serial=2" not in server.log()


@pytest.mark.parametrize("how", ["put back", "removed", "no program"])
def test_a_version_that_nobody_wants_is_not_judged_any_longer(pando, tmp_path, how):
    world = Hanging(pando, tmp_path)
    server = world.server.start("plain.test")
    world.served("hang0.test", 1)
    world.hang()
    if how == "put back":
        world.write("hang0.test", 1)
    elif how == "removed":
        server.zones.pop(0)
    else:
        server.zones[0].pop("verify-command")
    server.write_config()
    assert server.control("reload")["zones_being_judged"] == 0
    servers.wait_until("its program has ended", lambda: not running(world.judge))
    if how == "removed":
        return
    world.served("hang0.test", 1 if how == "put back" else 2)
    assert world.status()["problem"] == ""
    assert "zone_not_loaded" not in server.log()


def test_updates_during_a_judgement_are_kept(pando, tmp_path):
    """By UPDATE and by a transaction; the verdict is about a file that knows nothing of them."""
    world = Hanging(pando, tmp_path)
    server = world.server.start("plain.test")
    world.served("hang0.test", 1)
    world.hold.touch()
    world.write("hang0.test", 5, 7)
    server.control("reload")
    for number in range(8):
        update = dns.update.UpdateMessage("hang0.test")
        update.add(f"new{number}", 60, "A", "192.0.2.50")
        assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == 0
    server.control("zone", "begin", "hang0.test")
    server.control("zone", "set", "hang0.test", "newer", "A", "192.0.2.51")
    server.control("zone", "commit", "hang0.test")
    serial = server.serial("hang0.test")
    world.hold.unlink()
    servers.wait_until("the edit is merged",
                       lambda: server.ask("www.hang0.test").answer[0][0].address == "192.0.2.7")
    for name in [*(f"new{number}" for number in range(8)), "newer"]:
        assert server.ask(f"{name}.hang0.test").answer, name
    merged = server.serial("hang0.test")
    assert merged > serial and world.status()["problem"] == ""
    server.kill()
    server.start("plain.test")
    world.served("hang0.test", merged)
    assert server.ask("new7.hang0.test").answer and server.ask("newer.hang0.test").answer


def test_a_manager_killed_during_a_judgement_judges_anew(pando, tmp_path):
    world = Hanging(pando, tmp_path)
    server = world.server.start("plain.test")
    world.served("hang0.test", 1)
    world.hang()
    server.kill()
    servers.wait_until("its program has ended", lambda: not running(world.judge))
    server.start("plain.test")
    servers.wait_until("it is judged", lambda: world.status()["judged_since"] > 0)
    assert server.serial("hang0.test") == 1
    world.hold.unlink()
    world.served("hang0.test", 2)


# Rights ------------------------------------------------------------------------------------------


def user_exists(name):
    try:
        return pwd.getpwnam(name).pw_uid != 0
    except KeyError:
        return False


class TwoUsers(servers.Pando):
    users = ("daemon", "nobody")

    def environment(self):
        # A sanitizer looks for leaks by tracing its own process, which a change of user forbids.
        return {**super().environment(), "ASAN_OPTIONS": "detect_leaks=0"}


@pytest.mark.skipif(os.getuid() != 0 or not (user_exists("daemon") and user_exists("nobody")),
                    reason="needs root and two ordinary users")
def test_programs_run_as_the_workers_user():
    folder = pathlib.Path(tempfile.mkdtemp(prefix="pando-verifier-", dir="/tmp"))
    folder.chmod(0o755)
    store = pathlib.Path("/dev/shm")
    judge = script(folder, "#!/bin/sh\n"
                           "[ $(grep -c . /dev/stdin) = 4 ] || { echo no input >&2; exit 1; }\n"
                           "(: >> $1) 2>/dev/null && { echo writes the store >&2; exit 1; }\n"
                           "(: < $1) 2>/dev/null && { echo reads the store >&2; exit 1; }\n"
                           "echo \"$(id -un) $(id -G) $(grep CapEff /proc/self/status)\" >&2; exit 1\n")
    zone = folder / "zone"
    zone.write_text(text(1))
    server = TwoUsers(folder, [{"name": "one.test", "file": str(zone)}])
    server.zones[0]["verify-command"] = [judge, str(server.store / "zones.store")]
    server.write_config()
    try:
        server.start()
        servers.wait_until("it has judged", lambda: "exit status 1" in problem(server))
        group = pwd.getpwnam("nobody").pw_gid
        assert problem(server).endswith(f"exit status 1: nobody {group} CapEff:0000000000000000"), problem(server)
        assert store.exists()
        server.kill()
        servers.wait_until("it has ended", lambda: not running(judge))
    finally:
        server.clean()
        shutil.rmtree(folder)


# Programs that are there --------------------------------------------------------------------------


@pytest.mark.skipif(not shutil.which("named-checkzone"), reason="needs named-checkzone")
def test_named_checkzone_judges(pando, tmp_path):
    command = [shutil.which("named-checkzone"), "-i", "full", "one.test", "/dev/stdin"]
    path = tmp_path / "zone"
    path.write_text(text(1))
    server = pando([{"name": "one.test", "file": str(path), "verify-command": command}]).start("one.test")
    path.write_text(text(2).replace("ns1 A", "ns2 A"))  # the NS has no address
    server.control("reload")
    servers.wait_until("it is refused", lambda: "ns1.one.test' has no address records" in problem(server))
    assert server.serial("one.test") == 1
    path.write_text(text(3))
    server.control("reload")
    servers.wait_until("it is accepted", lambda: (server.serial("one.test"), problem(server)) == (3, ""))


@NEEDS_SIGNERS
@pytest.mark.skipif(not shutil.which("ldns-verify-zone"), reason="needs ldns-verify-zone")
def test_ldns_verify_zone_judges(pando, tmp_path):
    path = tmp_path / "zone"
    shutil.copy(ldns_signed(tmp_path / "good"), path)
    server = pando([{"name": "one.test", "file": str(path), "verify": "off",
                     "verify-command": [shutil.which("ldns-verify-zone"), "-V", "2"]}]).start("one.test")
    assert server.serial("one.test") == 7
    bad = changed(ldns_signed(tmp_path / "bad", text=ZONE.replace("admin 7", "admin 8")),
                  lambda zone: replace(zone, "mail", "A", "192.0.2.99"))
    shutil.copy(bad, path)
    server.control("reload")
    servers.wait_until("it is refused", lambda: "refused by" in problem(server))
    assert "mail.one.test" in problem(server), problem(server)
    assert server.serial("one.test") == 7
