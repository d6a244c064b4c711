"""Frames made by hand, for what no kernel sends."""

import socket
import struct

import hosts


def checksum(octets):
    if len(octets) % 2:
        octets += b"\0"
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def udp(message, source, destination, port=53, client_port=4242, wrong_sum=False, length=None):
    header = struct.pack("!HHHH", client_port, port, length or 8 + len(message), 0)
    pseudo = source + destination + struct.pack("!HH", 17, 8 + len(message))
    total = checksum(pseudo + header + message) ^ (0x5555 if wrong_sum else 0)
    return header[:6] + struct.pack("!H", total) + message


def ipv4(message, source=hosts.CLIENT[4], destination=hosts.SERVER[4], options=b"", flags=0, wrong_sum=False,
         protocol=17, **udp_options):
    source, destination = socket.inet_aton(source), socket.inet_aton(destination)
    payload = udp(message, source, destination, **udp_options)
    header = struct.pack("!BBHHHBBH", 0x45 + len(options) // 4, 0, 20 + len(options) + len(payload), 1, flags, 64,
                         protocol, 0) + source + destination + options
    total = checksum(header) ^ (0x5555 if wrong_sum else 0)
    return header[:10] + struct.pack("!H", total) + header[12:] + payload


class Port:
    """The client's end of the wire, without its kernel."""

    def __init__(self, wire):
        with wire.client.inside():
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.socket.bind(("c0", 0))
        self.destination = wire.mac(wire.server, "eth0")
        self.source = wire.mac(wire.client, "c0")

    def send(self, packet, kind=0x0800, destination=None, tag=b""):
        self.socket.send((destination or self.destination) + self.source + tag + struct.pack("!H", kind) + packet)

    def close(self):
        self.socket.close()
