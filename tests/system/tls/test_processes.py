"""Ends of processes: each is replaced, and the others' clients notice nothing."""

import os
import signal
import time

import servers
import tls_clients
from tls_clients import TlsStream, tls_pids


def serves(server):
    return tls_clients.ask(server.tls_port, "www.tls.test")


def test_a_killed_process_is_replaced(secure):
    server = secure()
    for _ in range(3):
        before = tls_pids(server)
        os.kill(before[0], signal.SIGKILL)
        # The listening socket is the manager's: a client that connects meanwhile waits.
        assert serves(server), server.log()
        assert tls_pids(server) != before
        assert server.ask("www.tls.test").answer


def test_a_killed_worker_takes_its_clients_alone(secure):
    server = secure(workers=2)
    pids = {row["pid"] for row in server.workers().values()}
    streams = [TlsStream(server.tls_port) for _ in range(8)]
    try:
        assert all(stream.ask("www.tls.test") for stream in streams)
        tls = tls_pids(server)
        os.kill(min(pids), signal.SIGKILL)

        def lives(stream):
            try:
                return stream.ask("www.tls.test") is not None
            except OSError:
                return False
        alive = [lives(stream) for stream in streams]
        assert alive.count(True) == 4, "clients are given by turns"
        servers.wait_until("others are served", lambda: serves(server))
        assert tls_pids(server) == tls
    finally:
        for stream in streams:
            stream.close()


def test_clients_outlive_a_killed_manager(secure):
    server = secure(workers=1)
    with TlsStream(server.tls_port) as stream:
        assert stream.ask("www.tls.test")
        before = tls_pids(server)
        server.kill()
        assert stream.ask("www.tls.test"), "without a manager"
        assert serves(server), "new clients, too"
        server.start("tls.test")
        assert stream.ask("www.tls.test"), "the next manager lets it finish"
        servers.wait_until("the next manager's process serves",
                           lambda: serves(server) and tls_pids(server) != before)
        assert stream.ask("www.tls.test")
    servers.wait_until("the process of the last manager has ended",
                       lambda: before[0] not in tls_pids(server).values()
                       and not os.path.exists(f"/proc/{before[0]}"))
    assert serves(server)


def test_a_stop_ends_all_processes(secure):
    server = secure(workers=2)
    with TlsStream(server.tls_port) as stream:
        assert stream.ask("www.tls.test")
        assert len(tls_pids(server)) == 2
        server.stop()
        assert not server.left_over()
        begun = time.monotonic()
        assert stream.receive() is None and time.monotonic() - begun < 20


def test_processes_follow_the_configuration(secure):
    server = secure(workers=1)
    server.workers_wanted = 3
    server.write_config()
    server.control("reload")
    servers.wait_until("three processes", lambda: len(tls_pids(server)) == 3)
    assert serves(server)
    lines = server.extra
    server.extra = ""
    server.write_config()
    server.control("reload")
    servers.wait_until("no process", lambda: not tls_pids(server))
    assert serves(server) is None
    server.extra = lines
    server.write_config()
    server.control("reload")
    servers.wait_until("TLS is served again", lambda: serves(server))
