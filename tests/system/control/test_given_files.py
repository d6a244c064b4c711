"""Files that pandoctl has written for itself: they are where pandoctl sees their path, also if the manager has another
folder there (PrivateTmp= of its unit), and belong to the caller."""

import grp
import json
import os
import pwd
import re
import subprocess

import pytest

import servers
from test_records import ctl

ZONE = "given.test"
TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs a mount namespace")


@pytest.fixture
def server(pando, tmp_path):
    """Its manager has a folder of its own in the place of `tmp_path/mine`."""
    (tmp_path / "given.zone").write_text(TEXT)
    (tmp_path / "mine").mkdir()
    made = pando([{"name": ZONE, "file": str(tmp_path / "given.zone")}], workers=1)
    words = made.command()
    made.command = lambda: ["unshare", "--mount", "sh", "-c",
                            f'mount -t tmpfs tmpfs {tmp_path}/mine && exec "$@"', "sh", *words]
    return made.start(ZONE)


def test_a_dump_and_an_export_are_where_the_caller_sees_their_path(server, tmp_path):
    for words in (("store", "dump", str(tmp_path / "mine/d")), ("zone", "export", ZONE, "--to", str(tmp_path / "mine/z"))):
        code, out, err = ctl(server, *words)
        assert (code, err) == (0, ""), (out, err)
    assert sorted(os.listdir(tmp_path / "mine")) == ["d", "z"]
    assert (tmp_path / "mine/d").stat().st_mode & 0o777 == 0o600
    assert re.search(r"ns1\S*\s.*192\.0\.2\.1", (tmp_path / "mine/z").read_text())
    loads = subprocess.run([str(servers.build_folder() / "pandoctl"), "--json", "--config", str(server.config), "zone",
                            "export", "Given.TEST", "--to", str(tmp_path / "mine/z")], capture_output=True, text=True, timeout=60)
    assert json.loads(loads.stdout)["file"] == str(tmp_path / "mine/z"), "an export is replaced by the next one"


def test_a_copy_into_a_folder_that_the_manager_does_not_see_is_refused(server, tmp_path):
    code, _, err = ctl(server, "store", "copy", str(tmp_path / "mine/zones.image"))
    assert code == 1 and "sees another one of that name" in err
    assert os.listdir(tmp_path / "mine") == []
    assert ctl(server, "store", "copy", str(tmp_path / "zones.image"))[0] == 0
    assert (tmp_path / "zones.image").exists()


def test_files_of_the_server_are_not_replaced(server, tmp_path):
    for target in (server.folder / server.journal / "d", server.store / "zones.store"):
        code, _, err = ctl(server, "store", "dump", str(target))
        assert code == 1, err
    assert ctl(server, "store", "dump", "/dev/null")[0] == 1
    assert not os.path.isfile("/dev/null")


def test_a_dump_of_another_user_belongs_to_that_user(pando, tmp_path):
    """The manager's user needs no right in the folder, and the caller none beside the control socket."""
    nobody = pwd.getpwnam("nobody")
    (tmp_path / "given.zone").write_text(TEXT)
    made = pando([{"name": ZONE, "file": str(tmp_path / "given.zone")}], workers=1)
    made.write_config()
    made.config.write_text(made.config.read_text().replace(
        "control-group: root", f"control-group: {grp.getgrgid(nobody.pw_gid).gr_name}"))
    made.start(ZONE)
    folder = tmp_path / "own"
    folder.mkdir()
    os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    folder.chmod(0o700)
    for path in (tmp_path, *tmp_path.parents):
        if path.stat().st_mode & 0o001 == 0:
            path.chmod(path.stat().st_mode | 0o011)
    done = subprocess.run(
        ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups",
         str(servers.build_folder() / "pandoctl"), "--run-directory", str(made.folder / "run"), "store", "dump",
         str(folder / "d")], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert (folder / "d").stat().st_uid == nobody.pw_uid
