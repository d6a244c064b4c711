#!/usr/bin/env python3
"""What abuse of pando-http costs the answers beside it: processor time of one worker and of the manager per query, while
nothing else goes on, and under 10,000 connections, malformed and slow requests, wrong keys, and PATCHes of 100 MB.
Prints a Markdown table.

  PANDO_BUILD=build/release bench/http_abuse.py [TURNS] [SECONDS] [RATE]

Turns are interleaved: idle, busy, abused, idle, … Cells are medians, with the lowest and the highest; ratios are the
median of the ratios of neighbours. RATE queries per second come from eight clients. The worker has a processor of its
own, as `server.cpu-affinity` gives it; all else shares the others. "busy" is the control: a loop beside, which touches
nothing of ours.
"""

import contextlib
import os
import random
import resource
import selectors
import socket
import subprocess
import time

import peers  # (which finds the system tests)
import servers

TURNS, SECONDS, RATE = peers.turn_words(7, 5, 5000)
CONNECTIONS = 10_000
KEY = "abused-key-of-a-bench"
REQUESTS = [b"GET /metrics HTTP/1.1\r\nHost: x\r\nX-API-Key: wrong\r\n\r\n", b"GET /metrics HTTP/1.1\r\nX: ",
            b"\x16\x03\x01\x02\x00" + bytes(range(100)), b"nonsense\r\n\r\n",
            b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n",
            b"GET /api/v1/servers/localhost/zones HTTP/1.1\r\nHost: x\r\nX-API-Key: " + KEY.encode() + b"\r\n\r\n"]
LARGE = (b"PATCH /api/v1/servers/localhost/zones/example. HTTP/1.1\r\nHost: x\r\nX-API-Key: " + KEY.encode() +
         b"\r\nContent-Length: 104857600\r\n\r\n")


def connect(port):
    client = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    client.setblocking(False)
    client.connect_ex(("127.0.0.1", port))
    return client


def abuse(port):
    """Keeps the number of connections, whatever the server closes, until it is killed."""
    chosen = random.Random(1)
    with selectors.DefaultSelector() as open_ones:
        while True:
            while len(open_ones.get_map()) < CONNECTIONS:
                open_ones.register(connect(port), selectors.EVENT_READ | selectors.EVENT_WRITE, chosen.choice([*REQUESTS, LARGE]))
                if len(open_ones.get_map()) % 100 == 0:
                    break
            for key, events in open_ones.select(0.1):
                try:
                    if events & selectors.EVENT_READ and not key.fileobj.recv(65536):
                        raise ConnectionError
                    if events & selectors.EVENT_WRITE and key.data:
                        key.fileobj.send(key.data + (b"x" * 65536 if key.data is LARGE else b""))
                        open_ones.modify(key.fileobj, selectors.EVENT_READ, b"")
                except BlockingIOError:
                    pass
                except OSError:
                    open_ones.unregister(key.fileobj)
                    key.fileobj.close()


def loop(_):
    while True:
        pass


@contextlib.contextmanager
def beside(what, port):
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_NOFILE, (CONNECTIONS + 1000, CONNECTIONS + 1000))
        os.nice(10)
        what(port)
    time.sleep(2)
    try:
        yield
    finally:
        os.kill(pid, 9)
        os.waitpid(pid, 0)


def part_processors(server):
    """The worker alone on one processor; the manager, this process and what it starts on the others."""
    own, *others = sorted(os.sched_getaffinity(0))
    if not others:
        return
    for pid, processors in ((server.workers()[0]["pid"], {own}), (server.process.pid, others)):
        for task in os.listdir(f"/proc/{pid}/task"):
            os.sched_setaffinity(int(task), processors)
    os.sched_setaffinity(0, others)


def turn(server, questions):
    """Microseconds of processor time per query of the worker and of the manager, and the number of lost queries."""
    before = peers.times(server)
    result = peers.ask(server, questions, SECONDS, RATE)
    return [(now - then) / result.completed / 1000
            for now, then in zip(peers.times(server), before)] + [result.lost]


def main():
    found = {"idle": [], "busy": [], "abused": []}
    with peers.small_pando() as (_, server, origin, questions):
        port = servers.free_port()
        server.config.write_text(server.config.read_text() + f"http: {{listen: [127.0.0.1@{port}], user: root, "
                                 f"keys: [{{name: a, secret: {KEY}, role: admin}}]}}\n")
        server.start(origin)
        part_processors(server)
        http = subprocess.Popen([servers.build_folder() / "pando-http", "--config", server.config],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            time.sleep(1)
            for _ in range(TURNS):
                found["idle"].append(turn(server, questions))
                with beside(loop, port):
                    found["busy"].append(turn(server, questions))
                with beside(abuse, port):
                    found["abused"].append(turn(server, questions))
        finally:
            http.terminate()
            http.wait()
    cell = peers.cell
    print("| beside | worker, µs per query | manager, µs per query | lost |\n|---|---:|---:|---:|")
    for mode, turns in found.items():
        worker, manager, lost = zip(*turns)
        print(f"| {mode} | {cell(worker)} | {cell(manager)} | {sum(lost)} |")
    for mode in ("busy", "abused"):
        ratios = [after[0] / before[0] for before, after in zip(found["idle"], found[mode])]
        print(f"\nworker, {mode} to idle: {cell(ratios)}")


if __name__ == "__main__":
    main()
