"""`cmake --install` a second time: the operator's files stay as they are."""

import os
import shutil
import subprocess

import pytest

from containers import BUILD

OWNED_BY_OPERATORS = ("etc/pando/pando.yaml", "etc/logrotate.d/pando")

pytestmark = pytest.mark.skipif(
    shutil.which("cmake") is None or not (BUILD / "packaging/cmake_install.cmake").exists()
    or not (BUILD / "pandoctl").exists(), reason="needs cmake and a build")


def install(root):
    """Installs the files of `packaging/` below `root`; returns what cmake prints."""
    done = subprocess.run(["cmake", "--install", BUILD / "packaging", "--component", "pando"], capture_output=True,
                          text=True, env={**os.environ, "DESTDIR": str(root)}, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("name", OWNED_BY_OPERATORS)
def test_a_second_installation_leaves_a_file_of_the_operator_with_owner_and_mode(tmp_path, name):
    assert f"Kept: {tmp_path / name}" not in install(tmp_path)
    path = tmp_path / name
    assert path.stat().st_mode & 0o777 == 0o644
    path.write_text("mine\n")
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 4321)
    before = path.stat()
    assert f"Kept: {path}" in install(tmp_path)
    after = path.stat()
    assert path.read_text() == "mine\n"
    assert (after.st_mode, after.st_uid, after.st_gid, after.st_ino) == (
        before.st_mode, before.st_uid, before.st_gid, before.st_ino)


def test_a_link_that_leads_nowhere_is_not_replaced(tmp_path):
    path = tmp_path / OWNED_BY_OPERATORS[0]
    path.parent.mkdir(parents=True)
    path.symlink_to("/nowhere/pando.yaml")
    install(tmp_path)
    assert os.readlink(path) == "/nowhere/pando.yaml"


def test_a_file_that_is_not_there_any_more_comes_again(tmp_path):
    install(tmp_path)
    path = tmp_path / OWNED_BY_OPERATORS[0]
    text = path.read_text()
    path.unlink()
    install(tmp_path)
    assert path.read_text() == text
