"""The server's private key is in the memory of pando-tls alone."""

import pytest

import servers
from servers import found_in
from tls_certificates import Authority, Pair
from tls_clients import TlsStream, ask, tls_pids

pytestmark = servers.needs_root("it reads the memory of other processes")

NAME = "www.tls.test"


def forms(secret, pem):
    """The private number as OpenSSL holds it, in either order of octets, and the lines of its file."""
    lines = [line for line in pem.splitlines() if line and not line.startswith(b"-")]
    return {"number": secret, "number backwards": secret[::-1],
            **{f"line {i + 1} of the file": line for i, line in enumerate(lines[:2])}}


def holders(server, wanted):
    """What of `wanted` the manager and the workers have, by process number."""
    others = [server.process.pid, *(row["pid"] for row in server.workers().values())]
    return {pid: found for pid in others if (found := found_in(pid, wanted))}


def test_no_other_process_has_a_private_key_after_the_hand_over(secure, tmp_path):
    if servers.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")
    server = secure()
    first = forms(server.pair.secret(), server.pair.key.read_bytes())
    with TlsStream(server.tls_port) as stream:
        assert stream.ask(NAME).answer
        assert found_in(tls_pids(server)[0], first) & {"number", "number backwards"}, "the key in use"
        assert not holders(server, first)

    # Another pair takes the place, and after it what cannot be used: a key that is not the certificate's.
    new = Authority(tmp_path / "other").sign("server", "ns1.tls.test")
    second = forms(new.secret(), new.key.read_bytes())
    stranger = Authority(tmp_path / "stranger").sign("server", "ns1.tls.test")
    third = forms(stranger.secret(), stranger.key.read_bytes())
    for kind in ("certificate", "key"):
        getattr(server.pair, kind).write_bytes(getattr(new, kind).read_bytes())
    server.control("reload")
    servers.wait_until("pando-tls has the new key", lambda: ask(server.tls_port, NAME)
                       and found_in(tls_pids(server)[0], second) & {"number", "number backwards"})
    assert not holders(server, first | second)
    servers.wait_until("pando-tls has forgotten the key before",
                       lambda: not found_in(tls_pids(server)[0], first), seconds=10)
    server.pair.key.write_bytes(stranger.key.read_bytes())
    server.control("reload")
    servers.wait_until("the stranger's key is refused", lambda: "not that of the certificate" in server.control(
        "tls", "status", check=False)["certificate"]["problem"])
    assert not holders(server, third)
    assert not found_in(tls_pids(server)[0], third)


def test_own_keys_are_in_no_other_process_either(secure):
    if servers.is_sanitized():
        pytest.skip("a sanitizer keeps freed memory")
    server = secure(start=False)
    server.extra = f"  listen-tls: [127.0.0.1@{server.tls_port}]"
    server.write_config()
    server.start("tls.test")
    servers.wait_until("TLS is served", lambda: ask(server.tls_port, NAME))
    own = server.folder / "journal" / "tls"
    wanted = {}
    for name in ("current", "next"):
        pair = Pair(own, name)
        pair.key = own / f"{name}.pem"
        for form, octets in forms(pair.secret(), pair.key.read_bytes()).items():
            wanted[f"{name}: {form}"] = octets
    assert any(name.startswith("current: number") for name in found_in(tls_pids(server)[0], wanted))
    assert not any(name.startswith("next") for name in found_in(tls_pids(server)[0], wanted)), "not before its time"
    assert not holders(server, wanted)
    server.control("tls", "roll")
    servers.wait_until("pando-tls has the next key", lambda: ask(server.tls_port, NAME) and any(
        name.startswith("next: number") for name in found_in(tls_pids(server)[0], wanted)))
    assert not holders(server, wanted)
