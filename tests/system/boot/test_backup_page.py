"""docs/howto/back-up-and-restore.md, followed word by word: the packages are installed in two containers, the page's
commands are run in its order with its paths, and print what the page says. `editor` is the page's user: a script."""

import re
import shutil
import subprocess

import pytest

import pages
from containers import BUILD, ROOT, boot, needs_containers, overlay, prepare
from test_packages import make_packages

pytestmark = [needs_containers, pytest.mark.skipif(
    shutil.which("dpkg-deb") is None or not (BUILD / "CPackConfig.cmake").exists(),
    reason="needs dpkg and a build that CMake configured")]

PAGE = "docs/howto/back-up-and-restore.md"
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE="
KEY = f"hmac-sha256:panel:{SECRET}"

# The server of the page: a zone with a file, and what was changed since by updates and by commands.
SERVER = rf"""
zones() {{ [ "$(pandoctl zone list 2> /dev/null | grep -c ' ok ')" = 2 ]; }}
update() {{ printf '%s\n' 'server 127.0.0.1' 'zone example.com.' "update add $1.example.com. 60 A 192.0.2.77" send | nsupdate -y {KEY}; }}
serving() {{ [ "$(pandoctl worker list 2> /dev/null | grep -c serving)" = "$(nproc)" ]; }}

step install
rm -f /usr/sbin/policy-rc.d  # keeps packages of a build host from starting services
dpkg --install /boot-test/pando.deb
echo "exit code $?"
until_true serving
printf '#!/bin/sh\nsed -i "s,\\"left out by pandoctl backup\\",{SECRET}," "$1"\n' > /usr/local/bin/editor
chmod 755 /usr/local/bin/editor
"""
FIRST_HOST = r"""
step prepare
cat > /var/lib/pando/zones/example.com.zone <<'ZONE'
$TTL 60
@ SOA ns hostmaster 1 3600 900 604800 300
@ NS ns
ns A 192.0.2.53
www A 192.0.2.80
ZONE
cat >> /etc/pando/pando.yaml <<'YAML'
keys:
  - {name: panel, algorithm: hmac-sha256, secret: "SECRET"}
zones:
  - {name: example.com, file: /var/lib/pando/zones/example.com.zone, allow-update: [{key: panel}]}
YAML
pandoctl reload
update by-update
pandoctl zone add example.net --file /var/lib/pando/zones/example.com.zone
ask by-update.example.com
""".replace("SECRET", SECRET)

STATE = r"""
until_true zones
until_true serving
pandoctl zone read example.com
pandoctl zone read example.net | wc -l
pandoctl zone history example.com
"""
# What is different from run to run, and what stands for it.
VARYING = [(re.compile(r"\b[\d.]+ (B|KiB|MiB)\b"), "SIZE"), (re.compile(r"pando-\d{4}-\d\d-\d\d"), "pando-DATE")]


def commands(heading):
    """(command, lines that it prints) of each command below this heading of the page."""
    return [(command.text, command.shown) for command in pages.commands(PAGE, heading)]


def steps(name, heading):
    """A part of a script: each command of a section, as it stands there."""
    return "".join(f"\nstep {name}-{number}\n{command}\necho \"exit code $?\"\n"
                   for number, (command, _) in enumerate(commands(heading)))


def plain(line):
    for pattern, word in VARYING:
        line = pattern.sub(word, line)
    return line


def check(results, name, heading):
    """All commands of the section succeeded, and printed what the page says."""
    for number, (command, shown) in enumerate(commands(heading)):
        printed = results[f"{name}-{number}"].splitlines()
        assert list(map(plain, printed)) == [*map(plain, shown), "exit code 0"], f"{command}: {printed}"


@pytest.fixture(scope="module")
def hosts(tmp_path_factory):
    """The results of both hosts. The backup goes from one to the other as files."""
    folder = tmp_path_factory.mktemp("backup")
    server, _ = make_packages(folder)
    found = {}
    saved = re.search(r"pandoctl backup (\S+)", (ROOT / PAGE).read_text())[1].lstrip("/")
    scripts = {
        "first": SERVER + FIRST_HOST + "\nstep before" + STATE + steps("back-up", "Back up") + "\nupdate behind\n"
        + steps("same", "Restore the same server") + "\nstep after" + STATE,
        "second": SERVER + steps("restore", "Restore on another host") + "\nstep after" + STATE
        + "update later\nask later.example.com\npandoctl zone remove example.net\n"}
    for name, script in scripts.items():
        (folder / name).mkdir()
        with overlay(folder / name) as root:
            prepare(root, script + "\nstep journal\njournalctl -b --no-pager -o short-monotonic\n", "basic.target",
                    "basic.target")
            shutil.copy(server, root / "boot-test/pando.deb")
            if name == "second":
                subprocess.run(["cp", "-r", folder / "copied", root / saved], check=True)
            found[name] = boot(root, f"pando-backup-{name}")
            if name == "first":
                subprocess.run(["cp", "-r", root / saved, folder / "copied"], check=True)
        print(name, found[name]["journal"])
    return found


def test_the_backup_is_made_as_the_page_says(hosts):
    assert hosts["first"]["prepare"].splitlines()[-1] == "192.0.2.77", hosts["first"]["prepare"]
    check(hosts["first"], "back-up", "Back up")


def test_another_host_goes_on_from_it(hosts):
    check(hosts["second"], "restore", "Restore on another host")
    before, after = hosts["first"]["before"].splitlines(), hosts["second"]["after"].splitlines()
    # A dump, which a backup is, has no authors of changes.
    before = [line.replace("key panel. from 127.0.0.1", "-") for line in before]
    assert after[:len(before)] == before and len(before) == 8
    assert after[len(before):] == ["192.0.2.77", "1 zone removed"], "its key, and zones that were added"
    assert "dump_loaded" in hosts["second"]["journal"]


def test_the_same_server_has_also_what_came_behind_the_backup(hosts):
    check(hosts["first"], "same", "Restore the same server")
    after = hosts["first"]["after"]
    assert "behind.example.com." in after and "by-update.example.com." in after
    assert "dump_loaded" in hosts["first"]["journal"] and "image_replayed" in hosts["first"]["journal"]
