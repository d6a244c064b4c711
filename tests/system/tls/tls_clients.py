"""Clients over TLS, by Python's ssl module."""

import socket
import ssl
import struct

import dns.message

from streams import framed


def context(alpn=("dot",), pair=None, most=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname = False
    made.verify_mode = ssl.CERT_NONE
    if alpn:
        made.set_alpn_protocols(list(alpn))
    if pair:
        made.load_cert_chain(pair.certificate, pair.key)
    if most:
        made.maximum_version = most
    return made


class TlsStream:
    """A connection over TLS that sends what it is given and reads whole messages."""

    def __init__(self, port, using=None, session=None, timeout=30, before=b"", source=None):
        self.plain = socket.create_connection(("127.0.0.1", port), timeout,
                                              source_address=(source, 0) if source else None)
        try:
            if before:
                self.plain.sendall(before)
            self.socket = (using or context()).wrap_socket(self.plain, session=session)
        except BaseException:
            self.plain.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def close(self):
        self.socket.close()

    def send(self, octets):
        self.socket.sendall(octets)

    def read(self, count):
        octets = b""
        while len(octets) < count:
            more = self.socket.recv(count - len(octets))
            if not more:
                break
            octets += more
        return octets

    def receive(self):
        """One message; None when the server has closed."""
        length = self.read(2)
        return self.read(struct.unpack(">H", length)[0]) if len(length) == 2 else None

    def ask(self, name, rdtype="A", **options):
        query = dns.message.make_query(name, rdtype, **options)
        self.send(framed(query.to_wire()))
        octets = self.receive()
        return dns.message.from_wire(octets) if octets else None


def ask(port, name, rdtype="A", using=None, **options):
    """The answer over a connection of its own; None if there is none."""
    try:
        with TlsStream(port, using) as stream:
            return stream.ask(name, rdtype, **options)
    except OSError:
        return None


def tls_pids(server):
    """Process numbers of pando-tls, by slot."""
    found = {}
    for pid in server.left_over():
        try:
            with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                words = file.read().split("\0")
        except OSError:
            continue
        if words[0].endswith("pando-tls"):
            found[int(words[words.index("--slot") + 1])] = pid
    return found
