"""Octets that are no TLS, or hostile TLS: one line in the log, bounded cost, and no worker notices."""

import re
import socket
import struct
import threading
import time

import dns.message
import pytest

import servers
import tls_clients
from streams import framed
from tls_clients import TlsStream, context, tls_pids

QUERY = framed(dns.message.make_query("www.tls.test", "A").to_wire())


def connect(server, timeout=30, source="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", server.tls_port), timeout, source_address=(source, 0))


def is_closed(connection):
    """The server closes or resets; what it sends before, as an alert, is left out."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    return True


def client_hello(octets=0):
    """A record with the beginning of a ClientHello of this length."""
    body = b"\x01" + struct.pack(">I", octets)[1:] + b"\x03\x03" + b"\0" * 32
    return b"\x16\x03\x01" + struct.pack(">H", len(body)) + body


@pytest.fixture
def watched(secure):
    """A server whose processes are the same at the end, and that serves."""
    server = secure()
    before = (tls_pids(server), {slot: row["pid"] for slot, row in server.workers().items()})
    yield server
    assert tls_clients.ask(server.tls_port, "www.tls.test"), server.log()
    assert before == (tls_pids(server), {slot: row["pid"] for slot, row in server.workers().items()}), server.log()


@pytest.mark.parametrize("octets", [
    b"GET / HTTP/1.1\r\nHost: tls.test\r\n\r\n",
    QUERY,
    b"\x16\x03\x01\xff\xff" + b"\x01" * 70_000,
    b"\x16\x03\x01\x00\x00" * 100,
    b"\x17\x03\x03\x00\x20" + b"\0" * 32,
    b"\x99" * 1000,
    client_hello(65_000) + b"\x16\x03\x01\x40\x00" + b"\0" * 16_384,
    b"\x15\x03\x03\x00\x02\x02\x28",
], ids=["http", "dns", "long record", "empty records", "data first", "no type", "long hello", "alert"])
def test_what_is_no_handshake_ends_with_a_line(watched, octets):
    with connect(watched) as connection:
        try:
            connection.sendall(octets)
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        assert is_closed(connection)
    line = r"tls_client_failed client=127\.0\.0\.1@\d+ reason=\S+"
    servers.wait_until("a line", lambda: re.search(line, watched.log()))


def test_a_hello_in_single_octets_is_whole(watched):
    """All that comes before the limit of ten seconds is a handshake as any other."""
    with connect(watched) as outer:
        import ssl
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context().wrap_bio(incoming, outgoing)
        outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                for octet in outgoing.read():
                    outer.sendall(bytes([octet]))
                incoming.write(outer.recv(65536))
        for octet in outgoing.read():
            outer.sendall(bytes([octet]))
        tls.write(QUERY)
        outer.sendall(outgoing.read())
        while True:
            incoming.write(outer.recv(65536))
            try:
                assert dns.message.from_wire(tls.read(65536)[2:]).answer
                break
            except ssl.SSLWantReadError:
                continue


def test_a_handshake_that_stalls_ends(watched):
    """Ten seconds at most, counted from the connection's begin: octets that trickle in do not help."""
    with connect(watched) as silent, connect(watched) as trickling:
        begun = time.monotonic()
        ended = threading.Event()

        def trickle():
            try:
                for octet in client_hello(500):
                    trickling.sendall(bytes([octet]))
                    if ended.wait(0.5):
                        return
            except OSError:
                pass

        thread = threading.Thread(target=trickle)
        thread.start()
        assert is_closed(silent) and is_closed(trickling)
        ended.set()
        thread.join()
        assert time.monotonic() - begun > 9
    assert "the handshake takes too long" in watched.log()


@pytest.mark.parametrize("state", range(4))
def test_connections_that_end_at_any_state(watched, state):
    for reset in (False, True):
        for number in range(20):
            connection = connect(watched, source=f"127.0.1.{2 * number + reset + 1}")  # each has a rate of its own
            if state == 1:
                connection.sendall(client_hello(500))
            if state >= 2:
                stream = context().wrap_socket(connection)
                if state == 3:
                    stream.sendall(QUERY * 10)
                connection = stream
            if reset:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.close()


def test_one_address_has_a_share_of_the_handshakes(watched):
    """A quarter of all places, and 20 new ones a second: others connect meanwhile."""
    connections = []
    try:
        for _ in range(60):
            connections.append(connect(watched))
        servers.wait_until("some are refused", lambda: "tls_client_refused" in watched.log())
        with TlsStream(watched.tls_port, source="127.0.0.2") as other:
            assert other.ask("www.tls.test")
    finally:
        for connection in connections:
            connection.close()
    time.sleep(1.1)  # the rate of this address


def test_records_that_are_damaged_end_the_connection(watched):
    stream = TlsStream(watched.tls_port)
    assert stream.ask("www.tls.test")
    plain = socket.socket(fileno=stream.socket.detach())
    with plain:
        plain.settimeout(30)
        plain.sendall(b"\x17\x03\x03\x00\x40" + b"\x55" * 64)
        assert is_closed(plain)
    servers.wait_until("a line", lambda: "tls_client_failed" in watched.log())


def test_a_client_that_reads_nothing_ends(secure):
    """Its answers have a bound, and it ends after limits.tls-idle."""
    server = secure(limits="{tls-idle: 1s}")
    query = framed(dns.message.make_query("big.tls.test", "TXT").to_wire())
    with TlsStream(server.tls_port) as stream:
        stream.socket.settimeout(2)
        sent = 0
        try:
            while sent < 64 << 20:
                sent += stream.socket.send(query * 100)
        except OSError:
            pass
        assert sent < 32 << 20
        stream.socket.settimeout(30)

        def ended():
            try:
                stream.socket.send(query)
                return False
            except TimeoutError:
                return False
            except OSError:
                return True
        servers.wait_until("it is closed", ended)
    assert tls_clients.ask(server.tls_port, "www.tls.test")


def test_an_idle_client_is_closed(secure):
    server = secure(limits="{tls-idle: 500ms}")
    with TlsStream(server.tls_port) as stream:
        assert stream.ask("www.tls.test")
        assert stream.receive() is None, "the worker ends it, and close_notify comes"
