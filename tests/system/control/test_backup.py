"""pandoctl backup and restore: a server goes on elsewhere from one folder."""

import json
import shutil
import signal
import stat
import subprocess

import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import dns.update
import pytest

import servers
from test_records import ctl

ZONE = "base.test"
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE="
HTTP_SECRET = "a-secret-of-a-panel-0123456789"
TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
ALL = [{"address": "127.0.0.0/8"}]


class Setting:
    """A server with all that a backup has to have, and where its backup goes."""

    def __init__(self, pando, tmp_path):
        self.file = tmp_path / "zones" / "base.zone"
        self.file.parent.mkdir()
        self.file.write_text(TEXT)
        self.server = pando([{"name": ZONE, "file": str(self.file), "allow-transfer": ALL,
                              "allow-update": [{"key": "panel."}]}],
                            workers=1, keys=[{"name": "panel.", "secret": SECRET}])
        text = self.server.config.read_text()
        self.server.config.write_text(f"{text}http:\n  listen: [127.0.0.1@1]\n  keys:\n"
                                      f"    - {{name: shop, secret: '{HTTP_SECRET}', role: read}}\n")
        self.server.start(ZONE)
        self.update("by-update")
        ctl(self.server, "zone", "snapshot", ZONE, "before")
        self.do("zone", "add", "added.test", f"file={self.file}")
        servers.wait_until("the added zone is served", lambda: self.server.serial("added.test"))
        self.update("behind")
        self.folder = tmp_path / "saved"

    def update(self, name):
        message = dns.update.UpdateMessage(ZONE, keyring=dns.tsigkeyring.from_text({"panel.": SECRET}),
                                           keyalgorithm=dns.tsig.HMAC_SHA256)
        message.add(name, 300, "A", "192.0.2.9")
        answer = dns.query.udp(message, "127.0.0.1", port=self.server.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR

    def do(self, *words):
        code, out, err = ctl(self.server, *words)
        assert code == 0, f"{words}: {out}{err}"
        return out

    def lose_the_host(self):
        """Everything of the server is gone but its backup."""
        self.server.stop()
        servers.wait_until("its processes are gone", lambda: not self.server.left_over())
        shutil.rmtree(self.server.store, ignore_errors=True)
        for path in self.server.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(self.file.parent)


@pytest.fixture
def setting(pando, tmp_path):
    return Setting(pando, tmp_path)


def saved(setting, path):
    return setting.folder / "files" / str(path).lstrip("/")


def test_a_new_host_goes_on_from_it(setting):
    before = setting.server.records(ZONE)
    serial = setting.server.serial(ZONE)
    out = setting.do("backup", str(setting.folder), "--with-keys")
    assert "left out" not in out
    assert stat.S_IMODE(setting.folder.stat().st_mode) == 0o700
    assert not (setting.server.folder / "journal/backup").exists()
    modified = setting.file.stat().st_mtime_ns
    setting.lose_the_host()
    code, out, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 0, err
    assert "2 zones with 8 records" in out and str(setting.server.config) in out
    assert setting.file.stat().st_mtime_ns == modified
    setting.server.start(ZONE)
    assert "dump_loaded" in setting.server.log()
    assert setting.server.records(ZONE) == before
    assert setting.server.serial(ZONE) == serial
    assert setting.server.serial("added.test") == 1
    assert "before" in setting.do("zone", "snapshots", ZONE)
    assert "by-update" in setting.do("zone", "diff", ZONE, "1")
    setting.update("after")  # with the key
    setting.do("zone", "remove", "added.test")  # it is still one that was added


def test_secrets_are_left_out_unless_asked_for(setting):
    text = setting.server.config.read_text()
    out = setting.do("backup", str(setting.folder))
    assert "left out: the secret of key panel." in out and "left out: the secret of key shop" in out
    kept = saved(setting, setting.server.config).read_text()
    assert kept == text.replace(f'"{SECRET}"', '"left out by pandoctl backup"').replace(
        f"'{HTTP_SECRET}'", '"left out by pandoctl backup"')
    everything = b"".join(path.read_bytes() for path in setting.folder.rglob("*") if path.is_file())
    assert SECRET.encode() not in everything and HTTP_SECRET.encode() not in everything
    setting.lose_the_host()
    code, out, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 0, err
    assert f"write into {setting.server.config}: the secret of key panel." in out
    code, _, err = ctl(setting.server, "config", "check")
    assert code == 1 and "secret" in err  # no server starts with a secret that is none
    setting.server.config.write_text(text)
    setting.server.start(ZONE)
    setting.update("after")


def test_files_of_secrets_are_named_and_left_out(setting):
    key = setting.server.folder / "panel.secret"
    key.write_text(SECRET + "\n")
    key.chmod(0o600)
    setting.server.config.write_text(
        setting.server.config.read_text().replace(f'"secret": "{SECRET}"', f'"secret-file": "{key}"'))
    assert "secret-file" in setting.server.config.read_text()
    result = json.loads(setting.do("--json", "backup", str(setting.folder)))
    assert result["files-left-out"] == [str(key)] and not saved(setting, key).exists()
    setting.lose_the_host()
    code, out, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 0, err
    assert f"put there: {key}" in out


def test_files_in_the_way_are_not_lost(setting):
    setting.do("backup", str(setting.folder), "--with-keys")
    setting.lose_the_host()
    setting.file.parent.mkdir()
    setting.file.write_text(TEXT + "mine 300 A 192.0.2.7\n")
    code, _, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 1 and f"{setting.file} is there, and differs" in err and "--replace" in err
    assert "mine" in setting.file.read_text() and not setting.server.config.exists()
    code, _, err = ctl(setting.server, "restore", str(setting.folder), "--replace")
    assert code == 0, err
    assert setting.file.read_text() == TEXT
    setting.server.start(ZONE)


def test_a_running_server_and_a_live_store_are_left_alone(setting):
    setting.do("backup", str(setting.folder), "--with-keys")
    code, _, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 1 and "a manager runs" in err
    setting.server.kill()
    code, _, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 1 and "is there, and the server would go on with it" in err
    setting.server.start(ZONE)


@pytest.mark.parametrize("damage", ["file", "manifest", "dump", "end"])
def test_a_damaged_backup_restores_nothing(setting, damage):
    setting.do("backup", str(setting.folder), "--with-keys")
    setting.lose_the_host()
    path = {"file": saved(setting, setting.file), "manifest": setting.folder / "manifest.json",
            "dump": setting.folder / "store.dump", "end": setting.folder / "manifest.json"}[damage]
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    if damage == "end":
        path.unlink()
    code, _, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 1
    assert err.count("\n") == 1 and (path.name in err or damage == "end"), err
    assert not (setting.server.folder / "journal/store.dump").exists()


def test_a_backup_that_was_killed_is_none_and_keeps_no_later_one(setting):
    partial = setting.folder.with_name("saved.partial")
    partial.mkdir()
    (partial / "store.dump").write_text("half")
    left = setting.server.folder / "journal/backup"
    left.mkdir()
    (left / "dump.partial").write_text("half")
    code, _, err = ctl(setting.server, "restore", str(partial))
    assert code == 1 and "no backup, or one that did not end" in err
    setting.do("backup", str(setting.folder), "--with-keys")
    assert not partial.exists() and not left.exists()


def test_a_restore_that_was_killed_goes_on(setting):
    setting.do("backup", str(setting.folder), "--with-keys")
    setting.lose_the_host()
    setting.file.parent.mkdir()
    shutil.copy2(saved(setting, setting.file), setting.file)
    setting.file.with_name("base.zone.partial").write_text("half")
    code, out, err = ctl(setting.server, "restore", str(setting.folder))
    assert code == 0, err
    setting.server.start(ZONE)


@servers.needs_root("mounts")
def test_a_full_disk_leaves_nothing_of_a_backup(setting, tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(small)], check=True)
    try:
        code, _, err = ctl(setting.server, "backup", str(small / "saved"), "--with-keys")
        assert code == 1 and "No space left on device" in err, err
        assert list(small.iterdir()) == [] and not (setting.server.folder / "journal/backup").exists()
    finally:
        subprocess.run(["umount", str(small)], check=True)
    setting.do("backup", str(setting.folder))


def test_a_backup_never_replaces_one_and_leaves_nothing_half(setting, tmp_path):
    setting.do("backup", str(setting.folder))
    code, _, err = ctl(setting.server, "backup", str(setting.folder))
    assert code == 1 and "is there already" in err
    code, _, err = ctl(setting.server, "backup", str(tmp_path / "no" / "folder"))
    assert code == 1 and "mkdir" in err
    setting.file.unlink()  # the zone is whole in the dump
    out = setting.do("backup", str(tmp_path / "second"))
    assert f"not there: {setting.file}" in out
    setting.server.process.send_signal(signal.SIGKILL)
    setting.server.process.wait()
    code, _, err = ctl(setting.server, "backup", str(tmp_path / "third"))
    assert code == 3
    assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(("saved", "second", "third"))) == [
        "saved", "second"]
