"""Servers that listen for TLS."""

import pytest

import servers
import tls_clients
from tls_certificates import Authority

ZONE = "tls.test"
TEXT = "0123456789" * 20
ZONE_FILE = f"""$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
www A 192.0.2.10
big TXT ( {' '.join([TEXT] * 100)} )
"""


@pytest.fixture(scope="session")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def pair(authority, tmp_path):
    """The server's pair, in files of this test."""
    return Authority(tmp_path / "own").sign("server", "ns1.tls.test")


@pytest.fixture
def secure(pando, pair, tmp_path):
    """Makes a server that listens for TLS at its `tls_port`."""

    def make(rules=None, extra="", limits="", workers=1, text=ZONE_FILE, start=True, **options):
        (tmp_path / "zone").write_text(text)
        port = servers.free_port()
        lines = [f"  listen-tls: [127.0.0.1@{port}]",
                 f"  tls: {{certificate: {pair.certificate}, key: {pair.key}}}", extra]
        server = pando([{"name": ZONE, "file": str(tmp_path / "zone"), **(rules or {})}], workers=workers,
                       extra="\n".join(line for line in lines if line), limits=limits, **options)
        server.tls_port, server.pair = port, pair
        if start:
            server.start(ZONE)
            servers.wait_until("TLS is served", lambda: tls_clients.ask(port, f"www.{ZONE}"))
        return server

    return make
