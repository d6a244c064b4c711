"""`pandoctl compare`: a migration's zones beside those of the old server."""

import json
import socket
import subprocess
import threading

import dns.query
import dns.update
import pytest

import servers

TEXT = """$TTL 300
@ SOA ns1 admin 5 3600 600 86400 300
@ NS ns1
ns1 A 192.0.2.1
Mixed.Case A 192.0.2.2
alias CNAME MIXED.case
text TXT "one \\"two\\" \\\\ \\200" "; three"
*.wild 60 MX 10 ns1
unknown TYPE65280 \\# 3 010203
sub NS ns.other.test.
"""
TRANSFERS = {"allow-transfer": [{"address": "127.0.0.0/8"}], "allow-update": [{"address": "127.0.0.0/8"}]}
KEY = {"name": "transfer", "algorithm": "hmac-sha256", "secret": "b25lIHNlY3JldCBvZiBhIHRlc3QsIDMyIG9jdGV0cyE="}


def write(folder, text, name="zone"):
    path = folder / name
    path.write_text(text)
    return str(path)


def compare(server, *words):
    """(exit code, decoded output)"""
    done = subprocess.run([servers.build_folder() / "pandoctl", "--config", server.config, "--json", "compare", *words],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, json.loads(done.stdout or done.stderr)


def of_kind(kind, folder, path, key=False):
    if kind == "bind":
        keys = f'key {KEY["name"]} {{ algorithm {KEY["algorithm"]}; secret "{KEY["secret"]}"; }};'
        allowed = f'key {KEY["name"]}' if key else "any"
        return servers.Bind(folder / kind, {"example.test": f'type primary; file "{path}"; allow-transfer {{ {allowed}; }};'},
                            keys=keys)
    if kind == "nsd":
        return servers.Nsd(folder / kind, {"example.test": path}, zone_options="  provide-xfr: 127.0.0.1 NOKEY\n")
    return servers.Knot(folder / kind, {"example.test": path},
                        text="acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n",
                        zone_options={"example.test": "    acl: all\n"})


@pytest.mark.parametrize("kind", ["bind", "nsd", "knot"])
def test_the_same_file_at_another_server_is_the_same(pando, peers, tmp_path, kind):
    path = write(tmp_path, TEXT)
    server = pando([{"name": "example.test", "file": path}]).start("example.test")
    other = peers(of_kind(kind, tmp_path, path), "example.test")
    code, found = compare(server, "--with", f"127.0.0.1@{other.port}")
    assert (code, found["same"], found["different"]) == (0, 1, 0), found
    assert found["zones"][0]["records"] == 9


def test_differences_are_named(pando, peers, tmp_path):
    path = write(tmp_path, TEXT)
    server = pando([{"name": "example.test", "file": path, **TRANSFERS}]).start("example.test")
    other = peers(of_kind("bind", tmp_path, path), "example.test")
    update = dns.update.UpdateMessage("example.test")
    update.replace("mixed.case", 300, "A", "192.0.2.3")
    update.add("new", 60, "TXT", '"here"')
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=20).rcode() == 0
    at = f"127.0.0.1@{other.port}"
    code, found = compare(server, "--with", at, "example.test")
    zone = found["zones"][0]
    assert (code, zone["serial"], zone["serial_there"]) == (1, 6, 5)
    assert [row["rdata"] for row in zone["only_there"]] == ["192.0.2.2"]
    assert sorted(row["rdata"] for row in zone["only_here"]) == ['"here"', "192.0.2.3"]
    done = subprocess.run([servers.build_folder() / "pandoctl", "--config", server.config, "compare", "--with", at,
                           "--limit", "1", "example.test"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1
    assert done.stdout.splitlines() == [
        "example.test.: serial 5 there, 6 here; 1 record only there, 2 only here",
        "- mixed.case.example.test. 300 IN A 192.0.2.2",
        "+ mixed.case.example.test. 300 IN A 192.0.2.3",
        "+ ... 1 more"]


def test_a_key_of_the_configuration_signs(pando, peers, tmp_path):
    path = write(tmp_path, TEXT)
    server = pando([{"name": "example.test", "file": path}], keys=[KEY]).start("example.test")
    other = peers(of_kind("bind", tmp_path, path, key=True), "example.test")
    at = f"127.0.0.1@{other.port}"
    code, found = compare(server, "--with", at)
    assert code == 1 and "REFUSED" in found["zones"][0]["error"]
    assert compare(server, "--with", at, "--key", "transfer")[0] == 0
    code, found = compare(server, "--with", at, "--key", "other")
    assert code == 1 and "has no key other" in found["error"]


def test_a_zone_that_one_server_has_not_is_told_and_the_others_are_compared(pando, peers, tmp_path):
    path = write(tmp_path, TEXT)
    server = pando([{"name": name, "file": path} for name in ("example.test", "more.test")]).start("example.test")
    other = peers(of_kind("bind", tmp_path, path), "example.test")
    code, found = compare(server, "--with", f"127.0.0.1@{other.port}", "example.test", "more.test", "unknown.test", "a..b")
    assert code == 1 and found["same"] == 1 and found["different"] == 3
    errors = {row["zone"]: row["error"] for row in found["zones"] if "error" in row}
    assert "NOTAUTH" in errors["more.test"] or "REFUSED" in errors["more.test"], errors
    assert "unknown.test" in errors and "a..b" in errors


def serve(answer):
    """A server that answers one TCP connection by octets, and its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def run():
        client, _ = listener.accept()
        with client, listener:
            client.settimeout(60)
            query = client.recv(1000)
            answer(client, query)

    threading.Thread(target=run, daemon=True).start()
    return listener.getsockname()[1]


def test_a_server_that_hangs_or_talks_nonsense_is_given_up(pando, tmp_path):
    path = write(tmp_path, TEXT)
    server = pando([{"name": "example.test", "file": path}]).start("example.test")
    hanging = serve(lambda client, query: client.recv(1))
    code, found = compare(server, "--timeout", "1", "--with", f"127.0.0.1@{hanging}")
    assert code == 1 and "silent" in found["zones"][0]["error"]
    nonsense = serve(lambda client, query: client.sendall(b"\0\x20" + query[2:4] + b"\xff" * 30))
    code, found = compare(server, "--with", f"127.0.0.1@{nonsense}")
    assert code == 1 and found["zones"][0]["error"]
    assert server.ask("ns1.example.test").answer
