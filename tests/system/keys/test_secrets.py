"""Secrets leave the memory of the processes: texts after they were read, and keys after a reload that removed them."""

import base64
import secrets
import sys

import pytest

import servers
from servers import found_in

ZONE = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"

pytestmark = servers.needs_root("it reads the memory of other processes")


def key(name, secret):
    return {"name": name, "algorithm": "hmac-sha256", "secret": base64.b64encode(secret).decode()}


def test_removed_secrets_are_in_no_memory_any_more(pando, tmp_path):
    if servers.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")
    (tmp_path / "zone").write_text(ZONE)
    update, transfer, filed, cookie = (secrets.token_bytes(n) for n in (32, 32, 32, 16))
    kept_secret = tmp_path / "kept.secret"
    kept_secret.write_text(base64.b64encode(filed).decode() + "\n")
    kept_secret.chmod(0o600)
    zone = {"name": "one.test", "file": str(tmp_path / "zone"),
            "allow-update": [{"key": "update-key"}], "allow-transfer": [{"key": "transfer-key"}]}
    server = pando([zone], keys=[
        key("update-key", update), key("transfer-key", transfer),
        {"name": "filed-key", "algorithm": "hmac-sha256", "secret-file": str(kept_secret)}],
        extra=f"  cookies: {{secrets: [{cookie.hex()}]}}").start("one.test")
    raw = {"update key": update, "transfer key": transfer, "filed key": filed, "cookie secret": cookie}
    texts = {f"{name}'s text": base64.b64encode(value) for name, value in raw.items()}
    texts["cookie secret's text"] = cookie.hex().encode()

    workers = [row["pid"] for row in server.workers().values()]
    assert found_in(server.process.pid, {**raw, **texts}) == set(raw), "keys in use, and no text"
    for pid in workers:
        assert found_in(pid, {**raw, **texts}) == {"transfer key", "filed key", "cookie secret"}

    server.keys = [key("update-key", b"another update key, just as long"),
                   key("transfer-key", b"another transfer key, also long.")]
    server.extra = ""
    server.write_config()
    server.control("reload")
    for pid in [server.process.pid, *workers]:
        servers.wait_until(f"{pid} has forgotten the secrets, but for {found_in(pid, {**raw, **texts})}",
                           lambda: not found_in(pid, {**raw, **texts}), seconds=10)


if __name__ == "__main__":
    sys.exit(pytest.main([__file__]))
