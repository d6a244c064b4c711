"""Clients over TCP that send slowly, half, too much or nothing, or never read: the worker's memory and descriptors stay
bounded, idle connections end, and all other clients get their answers meanwhile (RFC 7766 §6.2, RFC 9210 §4)."""

import os
import pathlib
import random
import resource
import select
import socket
import struct
import threading

import dns.message
import dns.update
import dns.query
import pytest

import servers
from streams import Stream, framed

# So much may a worker grow, whatever the clients do: 200 connections with 128 KiB of a request and 320 KiB of answers
# each are 90 MB; the rest is for allocators and sanitizers. What has no bound grows to gigabytes here.
MOST_GROWTH = 512 << 20

TEXT = "0123456789" * 20
ZONE = f"""$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
big TXT ( {' '.join([TEXT] * 100)} )
"""
LARGE_ZONE = ZONE + "".join(f"big{number} TXT ( {' '.join([TEXT] * 50)} )\n" for number in range(1000))
OPEN = {"allow-transfer": [{"address": "127.0.0.0/8"}], "allow-update": [{"address": "127.0.0.0/8"}]}


def query(name="ns.tcp.test", rdtype="A", number=1):
    return dns.message.make_query(name, rdtype, id=number).to_wire()


class Client(Stream):
    """A connection that never waits but to read a whole message."""

    def __init__(self, server, receive_buffer=None):
        super().__init__(server.port, 60, receive_buffer)

    def push(self, octets, most):
        """Sends these octets again and again until nobody takes them or `most` are sent; how many were taken."""
        self.socket.setblocking(False)
        sent = 0
        try:
            while sent < most:
                sent += self.socket.send(octets)
        except (BlockingIOError, ConnectionError):
            pass
        self.socket.settimeout(60)
        return sent

    def is_closed(self):
        """The server has closed or reset; what it sent before is read and thrown away."""
        try:
            while select.select([self.socket], [], [], 0)[0]:
                if not self.socket.recv(65536):
                    return True
        except ConnectionError:
            return True
        return False

    def close(self, reset=False):
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


class Abused:
    """A server with one worker, so that each connection is that worker's."""

    def __init__(self, server):
        self.server = server
        self.pid = self.worker()["pid"]
        self.clients = []
        self.others_are_served()  # what is allocated once is allocated
        self.nobody_is_connected()
        self.memory_before, self.descriptors_before = self.memory(), self.descriptors()

    def worker(self):
        return next(iter(self.server.workers().values()))

    def count(self, counter):
        return self.worker()["counters"][counter]

    def connect(self, count=1, **options):
        made = [Client(self.server, **options) for _ in range(count)]
        self.clients += made
        return made

    def end(self):
        for client in self.clients:
            client.close()

    def memory(self):
        """Octets of the worker that are resident and its own."""
        status = pathlib.Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) << 10 for line in status.splitlines() if line.startswith("RssAnon:"))

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    def nobody_is_connected(self):
        servers.wait_until("nobody is connected", lambda: self.count("tcp_open") == 0, 120)

    def others_are_served(self, transports=("udp", "tcp")):
        """Other clients get an answer to each query."""
        for number in range(1, 51) if "udp" in transports else ():
            response = self.server.ask("ns.tcp.test", timeout=30)
            assert response is not None and response.answer
        if "tcp" in transports:
            client, = self.connect()
            for number in range(1, 51):
                response = self.exchange(client, number)
                if response is None:  # we were slower than tcp-idle
                    client, = self.connect()
                    response = self.exchange(client, number)
                assert dns.message.from_wire(response).id == number
            client.close()

    @staticmethod
    def exchange(client, number):
        try:
            client.send(framed(query(number=number)))
            return client.receive()
        except ConnectionError:
            return None

    def memory_is_bounded(self):
        assert self.memory() - self.memory_before < MOST_GROWTH

    def recovers(self):
        """The abuse is over: it is the same worker, with no descriptor more than before, and serves."""
        self.nobody_is_connected()
        assert self.descriptors() == self.descriptors_before
        self.memory_is_bounded()
        self.others_are_served()
        assert self.worker()["pid"] == self.pid


@pytest.fixture
def abused(pando, tmp_path):
    """Starts a server with one worker."""
    started = []

    def start(limits="{tcp-clients: 800, tcp-idle: 2s}", zone=ZONE):
        path = tmp_path / "zone"
        path.write_text(zone)
        server = pando([{"name": "tcp.test", "file": str(path), **OPEN}], workers=1, limits=limits)
        one = Abused(server.start("tcp.test"))
        started.append(one)
        return one

    yield start
    for one in started:
        one.end()


def all_end(clients):
    servers.wait_until("the server has closed them all", lambda: all(client.is_closed() for client in clients), 60)


def answered(client, number=1):
    message = dns.message.from_wire(client.receive())
    return message.id == number and bool(message.answer)


# Slow and silent ones
# ----------------------------------------------------------------------------------------


def test_a_request_may_come_in_single_octets(abused):
    server = abused()
    client, = server.connect()
    for octet in framed(query()):
        client.send(bytes([octet]))
    assert answered(client)


def test_a_request_that_trickles_in_is_no_progress(abused):
    server = abused()
    clients = server.connect(50)

    def end_while_they_send():
        for client in clients:
            client.push(b"\xff", 1)
        return all(client.is_closed() for client in clients)

    server.others_are_served()
    servers.wait_until("the server has closed them all", end_while_they_send, 60)
    server.recovers()


def test_silent_connections_end(abused):
    server = abused()
    clients = server.connect(100)
    server.others_are_served()
    all_end(clients)
    assert server.count("tcp_timeouts") == len(clients)
    server.recovers()


def test_an_answered_client_that_falls_silent_ends(abused):
    server = abused()
    client, = server.connect()
    client.send(framed(query()))
    assert answered(client)
    all_end([client])
    server.recovers()


def test_a_client_that_shuts_its_side_down_gets_its_answers(abused):
    server = abused(limits="{tcp-idle: 1h}")
    client, = server.connect()
    client.send(b"".join(framed(query(number=number)) for number in range(1, 101)))
    client.socket.shutdown(socket.SHUT_WR)
    assert all(answered(client, number) for number in range(1, 101))
    assert client.receive() is None
    server.recovers()


# What is no request
# ----------------------------------------------------------------------------------------

NO_REQUESTS = {
    "length 0": b"\0\0", "length 11": framed(bytes(11)),
    "a response": framed(query()[:2] + b"\x80" + query()[3:]),
}


@pytest.mark.parametrize("what", NO_REQUESTS)
def test_what_is_no_request_ends_the_connection(abused, what):
    server = abused(limits="{tcp-idle: 2s}")
    for rest in (b"", bytes(3), framed(query())):
        client, = server.connect()
        client.send(NO_REQUESTS[what] + rest)
        assert client.receive() is None
    server.recovers()


@pytest.mark.parametrize("what", NO_REQUESTS)
def test_requests_before_it_are_answered_and_none_behind_it(abused, what):
    """More than one turn's worth, with what the manager has to answer, and with much behind it that nobody reads."""
    server = abused(limits="{tcp-idle: 1h}")
    update = dns.update.UpdateMessage("tcp.test", id=99)
    update.replace("new", 60, "TXT", "x")
    count = 40
    for behind in (b"", framed(query(number=1000)) * 2000):
        client, = server.connect()
        asked = b"".join(framed(query("big.tcp.test", "TXT", number)) for number in range(1, count + 1))
        client.send(asked + framed(update.to_wire()) + NO_REQUESTS[what] + behind)
        ids = [dns.message.from_wire(client.receive()).id for _ in range(count + 1)]
        assert sorted(ids) == [*range(1, count + 1), 99]
        assert client.receive() is None
        client.close()
    server.recovers()


def test_who_was_told_the_end_and_stays_is_closed(abused):
    server = abused()
    clients = server.connect(20)
    for client in clients:
        client.send(framed(query()) + NO_REQUESTS["length 0"])
        assert answered(client) and client.receive() is None

    def nobody_while_they_send():
        for client in clients:
            client.push(bytes(1000), 1000)
        return server.count("tcp_open") == 0

    servers.wait_until("nobody is connected", nobody_while_they_send, 60)
    server.recovers()


def test_lengths_without_bodies_cost_little_and_end(abused):
    server = abused()
    clients = server.connect(150)
    for client in clients:
        client.send(b"\xff\xff" + bytes(60000))
    server.others_are_served()
    server.memory_is_bounded()
    all_end(clients)
    server.recovers()


def test_noise_of_any_kind_ends_nobody_else(abused):
    server = abused()
    noise = random.Random(9)
    for _ in range(300):
        client, = server.connect()
        client.push(noise.randbytes(noise.randrange(1, 3000)), 1)
        client.close(reset=noise.random() < 0.5)
    server.recovers()


# Too many, too much
# ----------------------------------------------------------------------------------------


def test_connections_beyond_the_limit_are_closed_at_once(abused):
    server = abused(limits="{tcp-clients: 800, tcp-idle: 1h}")
    kept = server.connect(200)
    for client in kept:
        client.send(framed(query()))
        assert answered(client)
    for _ in range(10):
        refused = server.connect(300)
        all_end(refused)
        for client in refused:
            client.close()
        server.others_are_served(["udp"])
    assert server.count("tcp_refused") == 3000 and server.count("tcp_open") == 200
    for client in kept:  # and are served on
        client.send(framed(query(number=2)))
        assert answered(client, 2)
        client.close()
    server.recovers()


def test_more_connections_than_descriptors_wait_for_their_turn(abused):
    server = abused(limits="{tcp-clients: 4000, tcp-idle: 1h}")
    _, most = resource.prlimit(server.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (server.descriptors_before + 50, most))
    clients = server.connect(120)
    for client in clients:
        client.send(framed(query()))
    server.others_are_served(["udp"])
    for client in clients:  # in the order in which they came: each that goes makes room for one more
        assert answered(client)
        client.close()
    server.recovers()


@pytest.mark.parametrize("name, rdtype", [("big.tcp.test", "TXT"), ("ns.tcp.test", "A"), ("tcp.test", "AXFR")])
@pytest.mark.release
def test_floods_of_queries_whose_answers_nobody_reads_stay_in_bounds(abused, name, rdtype):
    """Without a bound the worker would take all of them: gigabytes of answers."""
    server = abused(limits="{tcp-clients: 800, tcp-idle: 3s}")
    clients = server.connect(40, receive_buffer=4096)
    flood = framed(query(name, rdtype)) * 1000
    taken = [client.push(flood, 64 << 20) for client in clients]
    server.others_are_served()
    taken = [first + client.push(flood, 64 << 20) for first, client in zip(taken, clients)]
    assert max(taken) < 64 << 20, "all were taken"
    server.memory_is_bounded()
    server.recovers()  # without their reading: they were closed


def test_a_flood_that_is_read_late_is_answered_in_full(abused):
    server = abused(limits="{tcp-idle: 1h}")
    client, = server.connect(receive_buffer=4096)
    count = 4000
    flood = b"".join(framed(query("big.tcp.test", "TXT", number)) for number in range(1, count + 1))
    taken = client.push(flood, 1)  # what server and kernel take while nothing is read
    sender = threading.Thread(target=client.send, args=(flood[taken:],))
    sender.start()
    assert all(answered(client, number) for number in range(1, count + 1))
    sender.join(60)
    client.close()
    server.recovers()


def test_many_updates_on_one_connection_are_all_answered(abused):
    """More than may be at the manager at once."""
    server = abused(limits="{tcp-idle: 1h}")
    client, = server.connect()
    updates = []
    for number in range(1, 301):
        update = dns.update.UpdateMessage("tcp.test", id=number)
        update.add(f"u{number}", 60, "A", "192.0.2.9")
        updates.append(framed(update.to_wire()))
    client.send(b"".join(updates))
    answers = [dns.message.from_wire(client.receive()) for _ in updates]
    assert {message.id for message in answers} == {*range(1, 301)}
    assert all(message.rcode() == 0 for message in answers)
    client.close()
    server.recovers()


# Those that vanish or never read
# ----------------------------------------------------------------------------------------


def test_resets_at_any_moment_leave_nothing_behind(abused):
    server = abused(zone=LARGE_ZONE)
    update = dns.update.UpdateMessage("tcp.test")
    update.replace("new", 60, "TXT", "x")
    moments = [b"", b"\0", framed(query())[:9], framed(query()), framed(query("big.tcp.test", "TXT")) * 100,
               framed(query("tcp.test", "AXFR")), framed(update.to_wire())]
    for turn in range(210):
        client, = server.connect()
        client.send(moments[turn % len(moments)])
        if turn % 3 == 0 and len(moments[turn % len(moments)]) > 20:
            client.socket.recv(1)  # it is being answered
        client.close(reset=turn % 2 == 0)
    server.recovers()


def test_transfers_that_nobody_reads_end_and_hold_nobody_back(abused):
    server = abused(limits="{tcp-clients: 800, tcp-idle: 3s}", zone=LARGE_ZONE)
    clients = server.connect(30, receive_buffer=4096)
    for client in clients:
        client.send(framed(query("tcp.test", "AXFR")))
        client.socket.recv(1)  # it has begun
    server.others_are_served()
    assert len(server.server.records("tcp.test")) == 1004
    log = server.server.log_path.read_text
    servers.wait_until("the log tells why each of them ended",
                       lambda: log().count('complete=false reason="the client took nothing') == 30, 60)
    server.memory_is_bounded()
    server.nobody_is_connected()
    update = dns.update.UpdateMessage("tcp.test")
    update.replace("new", 60, "TXT", "x")
    assert dns.query.udp(update, "127.0.0.1", port=server.server.port, timeout=30).rcode() == 0
    server.recovers()
