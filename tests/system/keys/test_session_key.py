"""Session keys: secrets that the manager makes, for nsupdate on the same host."""

import pathlib
import re
import stat
import subprocess

import pytest

import servers

ZONE = "session.test"
TEXT = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"
DEFAULT = pathlib.Path("/run/named/session.key")


@pytest.fixture
def make(pando, tmp_path):
    (tmp_path / "zone").write_text(TEXT)

    def make(file, **options):
        server = pando([{"name": ZONE, "file": str(tmp_path / "zone"), "allow-update": [{"key": "local-ddns."}]}],
                       workers=1, keys=[{"name": "local-ddns.", "session-file": str(file)}], **options)
        # Where nobody listens on ::1, which nsupdate tries first, it sends a malformed request to 127.0.0.1.
        text = server.config.read_text()
        server.config.write_text(text.replace(f"[127.0.0.1@{server.port}]",
                                              f"[127.0.0.1@{server.port}, '::1@{server.port}']"))
        return server
    return make


def nsupdate(server, name, *words):
    text = f"zone {ZONE}\nupdate add {name}.{ZONE} 300 A 192.0.2.9\nsend\n"
    return subprocess.run(["nsupdate", "-l", "-p", str(server.port), *words], input=text, text=True,
                          capture_output=True, timeout=60)


def works(server, name, *words):
    done = nsupdate(server, name, *words)
    assert done.returncode == 0, done.stderr
    return bool(server.ask(f"{name}.{ZONE}").answer)


def test_nsupdate_takes_the_key_from_the_file(make, tmp_path):
    file = tmp_path / "made" / "session.key"
    server = make(file).start(ZONE)
    assert re.fullmatch(r'key "local-ddns" \{\n\talgorithm hmac-sha256;\n\tsecret "[A-Za-z0-9+/]{43}=";\n\};\n',
                        file.read_text())
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert works(server, "first", "-k", str(file))
    # The secret lives as long as the file: programs that have it go on over a restart of the manager.
    kept = file.read_text()
    server.kill()
    server.start(ZONE)
    assert file.read_text() == kept and works(server, "second", "-k", str(file))


def test_no_other_secret_is_taken(make, tmp_path):
    file = tmp_path / "session.key"
    server = make(file).start(ZONE)
    for secret in ("", "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="):
        wrong = tmp_path / "wrong.key"
        wrong.write_text(f'key "local-ddns" {{ algorithm hmac-sha256; secret "{secret}"; }};\n')
        assert nsupdate(server, "wrong", "-k", str(wrong)).returncode != 0
    assert not server.ask(f"wrong.{ZONE}").answer


@pytest.mark.parametrize("damage", ["gone", "empty", "no secret", "short"])
def test_a_reload_makes_a_new_secret_for_a_file_without_one(make, tmp_path, damage):
    file = tmp_path / "session.key"
    server = make(file).start(ZONE)
    before = file.read_text()
    old = tmp_path / "old.key"
    old.write_text(before)
    if damage == "gone":
        file.unlink()
    else:
        file.write_text({"empty": "", "no secret": 'key "local-ddns" {};\n',
                         "short": 'key "local-ddns" { algorithm hmac-sha256; secret "AAAA"; };\n'}[damage])
    server.control("reload")
    assert file.read_text() != before and 'secret "' in file.read_text()
    assert works(server, "new", "-k", str(file))
    assert nsupdate(server, "old", "-k", str(old)).returncode != 0


def test_a_link_or_a_folder_of_others_is_refused(make, tmp_path):
    target = tmp_path / "target"
    target.write_text("precious\n")
    (tmp_path / "link.key").symlink_to(target)
    server = make(tmp_path / "link.key").start(ZONE)  # all but the key works
    assert "session_key_not_made" in server.log() and target.read_text() == "precious\n"
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "local-ddns." in done.stderr


@servers.needs_root("mounts")
def test_nsupdate_finds_the_file_by_itself(make, tmp_path):
    """Its default folder is mounted for nsupdate alone, as the host may have BIND's there."""
    folder = tmp_path / "named"
    server = make(folder / DEFAULT.name).start(ZONE)
    alone = f"mount -t tmpfs none /run && mkdir {DEFAULT.parent} && mount --bind {folder} {DEFAULT.parent} && exec "
    done = subprocess.run(["unshare", "-m", "sh", "-c", alone + f"nsupdate -l -p {server.port}"], text=True,
                          input=f"zone {ZONE}\nupdate add default.{ZONE} 300 A 192.0.2.9\nsend\n",
                          capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert server.ask(f"default.{ZONE}").answer
