"""Certificate and key of the server: only a usable pair is used, and the one before stays otherwise."""

import ssl

import servers
import tls_clients
from tls_certificates import Authority
from tls_clients import TlsStream


def shown(server):
    """The certificate that clients see, in DER."""
    with TlsStream(server.tls_port) as stream:
        return stream.socket.getpeercert(binary_form=True)


def der(pair):
    return ssl.PEM_cert_to_DER_cert(pair.certificate.read_text())


def test_a_first_start_without_a_pair_serves_everything_else(secure, pair, tmp_path):
    key = pair.key.read_bytes()
    pair.key.unlink()
    server = secure(start=False)
    server.start("tls.test")
    assert tls_clients.ask(server.tls_port, "www.tls.test") is None
    servers.wait_until("the fault is in the log", lambda: "tls_certificate_refused" in server.log())
    assert f"{pair.key}" in server.log()
    pair.key.touch(0o600)
    pair.key.write_bytes(Authority(tmp_path / "other").pair.key.read_bytes())
    server.control("reload")
    servers.wait_until("the fault is in the log",
                       lambda: "the private key is not that of the certificate" in server.log())
    assert tls_clients.ask(server.tls_port, "www.tls.test") is None
    pair.key.write_bytes(key)
    server.control("reload")
    servers.wait_until("TLS is served", lambda: tls_clients.ask(server.tls_port, "www.tls.test"))


def test_a_new_pair_is_used_and_connections_go_on(secure, pair, tmp_path):
    server = secure(workers=2)
    new = Authority(tmp_path / "new").sign("server", "ns1.tls.test")
    with TlsStream(server.tls_port) as stream:
        assert shown(server) == der(pair)
        for changed in ("certificate", "key"):  # one after the other: no pair in between
            getattr(pair, changed).write_bytes(getattr(new, changed).read_bytes())
            server.control("reload")
            assert tls_clients.ask(server.tls_port, "www.tls.test")
        servers.wait_until("the new one is shown", lambda: shown(server) == der(new))
        assert "tls_certificate_refused" in server.log(), "after the first change"
        assert stream.ask("www.tls.test")


def test_a_bad_pair_is_not_used_after_a_restart_of_the_process(secure, pair):
    """The pair before is the manager's to keep, in a file without a name."""
    import os
    import signal
    server = secure()
    good = der(pair)
    pair.certificate.write_text("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    server.control("reload")
    servers.wait_until("it is refused", lambda: "tls_certificate_refused" in server.log())
    for pid in tls_clients.tls_pids(server).values():
        os.kill(pid, signal.SIGKILL)
    assert shown(server) == good
