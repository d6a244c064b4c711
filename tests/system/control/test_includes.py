"""A configuration in several files: a reload follows each of them, a mistake in one changes nothing, and a backup has
all."""

import shutil
import stat

import pytest

import servers
from test_records import ctl

TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE="


class Parted:
    """A server with a file for each zone in `conf.d/`, and one with a key."""

    def __init__(self, pando, tmp_path):
        self.zones = tmp_path / "zones"
        self.zones.mkdir()
        self.server = pando([], workers=1)
        self.parts = self.server.folder / "conf.d"
        self.parts.mkdir()
        self.write("keys.yaml", f"keys:\n  - {{name: panel, secret: {SECRET}}}\n")
        self.add("one.test")
        with open(self.server.config, "a") as config:
            config.write("include: 'conf.d/*.yaml'\n")
        self.server.start("one.test")

    def write(self, name, text):
        (self.parts / name).write_text(text)
        (self.parts / name).chmod(0o640)

    def add(self, zone):
        (self.zones / zone).write_text(TEXT)
        self.write(f"{zone}.yaml", f"zones:\n  - name: {zone}\n    file: {self.zones / zone}\n"
                                   "    allow-update: [{key: panel}]\n")

    def do(self, *words):
        code, out, err = ctl(self.server, *words)
        assert code == 0, f"{words}: {out}{err}"
        return out


@pytest.fixture
def parted(pando, tmp_path):
    return Parted(pando, tmp_path)


def test_a_reload_follows_each_file(parted):
    parted.add("two.test")
    parted.do("reload")
    servers.wait_until("the new file's zone is served", lambda: parted.server.serial("two.test"))
    (parted.parts / "one.test.yaml").unlink()
    parted.write("server.yaml", "server: {identity: parted}\n")
    parted.do("reload")
    assert parted.server.serial("two.test") == 1
    assert "parted" in parted.do("config", "show")
    servers.wait_until("the zone without a file is gone", lambda: parted.server.serial("one.test") is None)


def test_a_mistake_in_one_file_keeps_what_was(parted):
    parted.add("two.test")
    parted.write("wrong.yaml", "# a comment\nzones:\n  - {name: three.test, file: three.zone, tempalte: none}\n")
    for words in (["reload"], ["config", "check"]):
        code, out, err = ctl(parted.server, *words)
        assert code != 0
        assert f"{parted.parts}/wrong.yaml:3: zones[" in out + err and "did you mean 'template'" in out + err
    assert parted.server.serial("one.test") == 1 and parted.server.serial("two.test") is None
    parted.write("wrong.yaml", "server: {workers: 2}\n")
    code, out, err = ctl(parted.server, "reload")
    assert code != 0
    assert f"{parted.parts}/wrong.yaml:1: server.workers: given twice, first in {parted.server.config}:" in out + err
    (parted.parts / "wrong.yaml").unlink()
    parted.do("reload")
    servers.wait_until("the right files are used", lambda: parted.server.serial("two.test"))


def test_pandoctl_finds_the_manager_by_an_included_file(parted):
    text = parted.server.config.read_text()
    run = next(line for line in text.splitlines() if "run-directory" in line)
    parted.write("run.yaml", f"server:\n  {run.strip().rstrip(',')}\n")
    large = "# a large file\n" + "#" * (1 << 20) + "\n"
    parted.server.config.write_text(large + text.replace(run + "\n", ""))
    assert "1 of 1 zone ok" in parted.do("zone", "status")


def test_backup_and_restore_take_all_files(parted):
    out = parted.do("backup", str(folder := parted.server.folder.parent / "saved"))
    assert "left out: the secret of key panel" in out
    kept = folder / "files" / str(parted.parts).lstrip("/")
    assert SECRET not in (kept / "keys.yaml").read_text()
    assert (kept / "one.test.yaml").read_text() == (parted.parts / "one.test.yaml").read_text()
    parted.server.stop()
    servers.wait_until("its processes are gone", lambda: not parted.server.left_over())
    shutil.rmtree(parted.server.store, ignore_errors=True)
    for path in parted.server.folder.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    code, out, err = ctl(parted.server, "restore", str(folder))
    assert code == 0, err
    assert f"write into {parted.parts}/keys.yaml: the secret of key panel" in out
    assert stat.S_IMODE((parted.parts / "keys.yaml").stat().st_mode) == 0o640
    text = (parted.parts / "keys.yaml").read_text()
    parted.write("keys.yaml", text.replace('"left out by pandoctl backup"', SECRET))
    parted.server.start("one.test")
    assert "dump_loaded" in parted.server.log()
