"""Keys whose algorithm has a number of bits, with BIND's programs on the other side.

BIND's `hmac-sha256-128` is `hmac-sha256` on the wire, with a MAC that is cut to 16 octets; RFC 8945 §6 has a name of its own
for that, which dnspython sends.
"""

import re
import subprocess

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.tsig
import pytest

import servers

SECRET = "cGFuZG8gYnVnIGxhYjogYSBrZXkgb2YgMzIgb2N0ZXRz"
ALGORITHMS = ("hmac-sha256-128", "hmac-sha384-192", "hmac-sha512-256")
ZONE = "$TTL 300\n@ SOA ns1 admin {serial} 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n"


def key(algorithm):
    return {"name": "short", "algorithm": algorithm, "secret": SECRET}


def zone_file(tmp_path, serial=1):
    path = tmp_path / "zone"
    path.write_text(ZONE.format(serial=serial))
    return path


def dig(server, algorithm, *words):
    done = subprocess.run(["dig", "@127.0.0.1", "-p", str(server.port), "-y", f"{algorithm}:short:{SECRET}", "+tries=1",
                           *words], capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


@pytest.fixture(params=ALGORITHMS)
def algorithm(request):
    return request.param


def test_dig_and_nsupdate_use_it(algorithm, tmp_path, pando):
    server = pando([{"name": "one.test", "file": str(zone_file(tmp_path)), "allow-query": [{"key": "short"}],
                     "allow-transfer": [{"key": "short"}]},
                    {"name": "two.test", "file": str(zone_file(tmp_path)), "allow-update": [{"key": "update"}]}],
                   keys=[key(algorithm), {**key(algorithm), "name": "update"}]).start("two.test")
    for words in (["one.test", "SOA"], ["one.test", "AXFR"]):
        told = dig(server, algorithm, *words)
        assert "IN\tSOA\tns1.one.test." in told and "verify" not in told, told
        assert re.search(rf"TSIG\s+{algorithm[:11]}\. .* NOERROR 0", told), told
    done = subprocess.run(["nsupdate", "-y", f"{algorithm}:update:{SECRET}"], capture_output=True, text=True, timeout=60,
                          input=f"server 127.0.0.1 {server.port}\nzone two.test\nadd new.two.test 60 A 192.0.2.7\nsend\n")
    assert done.returncode == 0, done.stderr
    assert server.ask("new.two.test").answer[0][0].address == "192.0.2.7"


def test_the_name_with_the_number_is_taken_too(algorithm, tmp_path, pando):
    server = pando([{"name": "one.test", "file": str(zone_file(tmp_path)), "allow-query": [{"key": "short"}]}],
                   keys=[key(algorithm)]).start()
    query = dns.message.make_query("one.test", "SOA")
    query.use_tsig(dns.tsig.Key("short", SECRET, algorithm))
    answer = dns.query.udp(query, "127.0.0.1", port=server.port, timeout=15)
    assert answer.answer and answer.had_tsig and answer.tsig[0].algorithm == dns.name.from_text(algorithm)


def test_bind_is_a_primary_and_a_secondary_with_it(algorithm, tmp_path, pando, peers):
    """NOTIFY, the question for the serial, and the transfer, in both directions."""
    keys = f'key short {{ algorithm {algorithm}; secret "{SECRET}"; }};'
    bind_port = servers.free_port()
    path = zone_file(tmp_path)
    ours = pando([{"name": "ours.test", "file": str(path), "allow-transfer": [{"key": "short"}], "notify": ["bind"]},
                  {"name": "theirs.test", "primaries": ["bind"]}],
                 keys=[key(algorithm)],
                 remotes=[{"name": "bind", "address": [f"127.0.0.1@{bind_port}"], "key": "short"}])
    theirs = tmp_path / "theirs"
    theirs.write_text(ZONE.format(serial=1))
    bind = peers(servers.Bind(tmp_path / "bind", {
        "theirs.test": f'type primary; file "{theirs}"; allow-transfer {{ key short; }}; notify explicit;'
                       f' also-notify {{ 127.0.0.1 port {ours.port} key short; }};',
        "ours.test": f'type secondary; file "ours"; primaries {{ 127.0.0.1 port {ours.port} key short; }};'
                     f' allow-notify {{ !{{ !127.0.0.1; any; }}; key short; }};',
    }, keys=keys, port=bind_port), "theirs.test")
    ours.start("ours.test")
    servers.wait_until("ours has theirs", lambda: ours.serial("theirs.test") == 1)
    servers.wait_until("BIND has ours", lambda: bind.serial("ours.test") == 1, 60)
    path.write_text(ZONE.format(serial=2))
    ours.control("zone", "reload", "ours.test")
    servers.wait_until("BIND has the next version of ours", lambda: bind.serial("ours.test") == 2, 60)


def test_an_imported_key_is_one_that_works(tmp_path, pando, peers):
    bind_port = servers.free_port()
    path = zone_file(tmp_path)
    bind = peers(servers.Bind(tmp_path / "bind", {
        "z.example": f'type primary; file "{path}"; allow-transfer {{ key short; }};',
    }, keys=f'key short {{ algorithm hmac-sha256-128; secret "{SECRET}"; }};', port=bind_port), "z.example")
    conf = bind.folder / "named.conf"
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "import", str(conf), "--with-secrets"],
                          capture_output=True, text=True, timeout=60)
    assert "algorithm: hmac-sha256-128" in done.stdout, done
    server = pando([{"name": "z.example", "primaries": ["bind"]}], keys=[key("hmac-sha256-128")],
                   remotes=[{"name": "bind", "address": [f"127.0.0.1@{bind_port}"], "key": "short"}])
    server.start("z.example")
    assert server.serial("z.example") == 1
