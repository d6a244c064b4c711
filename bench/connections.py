#!/usr/bin/env python3
"""What TCP connections cost a worker: bytes of its own memory for each idle one, and processor time per query over many
busy ones. Prints a Markdown table.

  PANDO_BUILD=build/release bench/connections.py [IDLE] [BUSY] [TURNS] [SECONDS]

Each idle connection comes from an address of its own, has asked one question and has its answer. The worker's own
memory is Private_Dirty of /proc/PID/smaps_rollup, before and after. A warm-up opens a hundredth of the connections
before, so what a worker allocates once is not counted. The busy connections are dnsperf's, beside the idle ones.
"""

import pathlib
import re
import resource
import socket
import subprocess

import peers  # (which finds the system tests)
import servers
import dns.message

IDLE, BUSY, TURNS, SECONDS = peers.turn_words(16_000, 1000, 5, 4)


def own_memory(pid):
    rollup = pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(re.search(r"^Private_Dirty:\s+(\d+)", rollup, re.M)[1]) * 1024


def address(number):
    return f"127.{1 + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def connect(port, number):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    client.bind((address(number), 0))
    client.connect(("127.0.0.1", port))
    return client


def exchange(client, query):
    """One question, with its whole answer."""
    client.sendall(len(query).to_bytes(2, "big") + query)
    answer = b""
    while len(answer) < 2 or len(answer) < 2 + int.from_bytes(answer[:2], "big"):
        piece = client.recv(65536)
        assert piece, "the server has closed a connection"
        answer += piece


def connect_idle(port, count, query):
    clients = [connect(port, number) for number in range(1, 1 + count)]
    for client in clients:
        exchange(client, query)
    return clients


def close(clients, server):
    for client in clients:
        client.close()
    servers.wait_until("the server has seen the ends", lambda: server.workers()[0]["counters"]["tcp_open"] == 0)


def busy_cost(server, questions):
    """Microseconds of the worker's processor time per query over TCP."""
    before = peers.times(server)[0]
    report = subprocess.run(["dnsperf", "-m", "tcp", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(questions), "-l",
                             str(SECONDS), "-c", str(BUSY), "-q", str(BUSY)], capture_output=True, text=True, check=True)
    return (peers.times(server)[0] - before) / servers.Dnsperf.Result(report.stdout).completed / 1000


def main():
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    with peers.small_pando() as (_, server, origin, questions):
        server.limits = "{tcp-clients: 1000000, tcp-idle: 1h}"
        server.write_config()
        server.start(origin)
        query = dns.message.make_query(origin, "SOA").to_wire()
        pid = server.workers()[0]["pid"]
        close(connect_idle(server.port, IDLE // 100, query), server)
        before = own_memory(pid)
        clients = connect_idle(server.port, IDLE, query)
        each = (own_memory(pid) - before) / IDLE
        costs = [busy_cost(server, questions) for _ in range(TURNS)]
        exchange(clients[0], query)  # still open, and served
    print("| TCP connections of a worker | |\n|---|---:|")
    print(f"| {IDLE:,} idle: bytes each | {each:.0f} |")
    print(f"| {BUSY:,} busy beside them: µs of its CPU per query | {peers.cell(costs)} |")


if __name__ == "__main__":
    main()
