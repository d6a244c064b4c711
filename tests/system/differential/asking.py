"""Asks a server many questions at once, over UDP or pipelined over TCP."""

import select
import socket
import struct

import compare

WINDOW = 100  # questions under way on a TCP connection


def over_udp(port, queries):
    """Responses by position; None where none came."""
    return compare.ask_all(port, queries)


def receive(sock, left, timeout):
    """Messages from a stream until `left` have come; None when the stream ends or is silent."""
    buffer = b""
    while left > 0:
        if not select.select([sock], [], [], timeout)[0]:
            return
        octets = sock.recv(1 << 17)
        if not octets:
            return
        buffer += octets
        while len(buffer) >= 2 and len(buffer) >= 2 + (size := struct.unpack_from("!H", buffer)[0]):
            yield buffer[2:2 + size]
            buffer = buffer[2 + size:]
            left -= 1


def over_tcp(port, queries, timeout=10.0):
    """Responses by position, pipelined in one connection for each window (RFC 7766 §6.2.1.1)."""
    answers = [None] * len(queries)
    for start in range(0, len(queries), WINDOW):
        batch = range(start, min(start + WINDOW, len(queries)))
        with socket.create_connection(("127.0.0.1", port), timeout=timeout) as sock:
            # Answers may come in any order: the ID says which is which.
            sock.sendall(b"".join(struct.pack("!HH", len(queries[i]), i - start) + queries[i][2:]
                                  for i in batch))
            for message in receive(sock, len(batch), timeout):
                answers[start + struct.unpack_from("!H", message)[0]] = message
    return answers
