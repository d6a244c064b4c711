"""TCP connections of the tests: octets out, whole messages in (RFC 1035 §4.2.2)."""

import socket
import struct


class Stream:
    """A connection that sends what it is given and reads whole messages."""

    def __init__(self, port, timeout=10, receive_buffer=None):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        self.socket.connect(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, octets):
        self.socket.sendall(octets)

    def read(self, count):
        octets = b""
        while len(octets) < count:
            more = self.socket.recv(count - len(octets))
            if not more:
                return octets
            octets += more
        return octets

    def receive(self):
        """One message; None when the server has closed."""
        length = self.read(2)
        return self.read(struct.unpack(">H", length)[0]) if len(length) == 2 else None


def framed(message):
    return struct.pack(">H", len(message)) + message
