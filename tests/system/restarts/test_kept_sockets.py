"""Listening sockets outlive the manager and its workers: a service manager keeps them (FDSTORE), or has opened them."""

import concurrent.futures
import os
import signal
import socket
import time

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from service_manager import ServiceManager

ZONE = "kept.test"
NAMES = 100
ZONE_FILE = ("$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n" +
             "".join(f"host{number} A 192.0.2.{number}\n" for number in range(NAMES)))


@pytest.fixture
def service_manager(tmp_path):
    manager = ServiceManager(tmp_path / "notify")
    yield manager
    manager.end()


@pytest.fixture
def make(pando, tmp_path):
    def make_server(**options):
        (tmp_path / "kept.zone").write_text(ZONE_FILE)
        server = pando([{"name": ZONE, "file": str(tmp_path / "kept.zone"),
                         "allow-update": [{"address": "127.0.0.0/8"}]}], **options)
        return server
    return make_server


def start(service_manager, server):
    service_manager.launch(server)
    servers.wait_until("this manager serves", lambda: server.serves(ZONE), 150)
    await_serving(server, server.workers_wanted)
    return server


def await_serving(server, count):
    servers.wait_until(f"{count} workers serve", lambda: [row["state"] for row in server.workers().values()]
                       == ["serving"] * count, seconds=60)


def kill_all(server):
    """kill -9 of the manager and of each worker."""
    workers = [row["pid"] for row in server.workers().values()]
    server.kill()
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("the workers have ended", lambda: not server.left_over())


def dnsperf(server, rate=300):
    return servers.Dnsperf(server.port, [f"host{number}.{ZONE} A" for number in range(NAMES)], rate=rate, timeout=60)


def nothing_lost(load):
    result = load.stop()
    print(result.text)
    assert result.lost == 0 and result.sent == result.completed + result.interrupted, result.text
    assert result.rcodes == {"NOERROR": result.completed}, result.text


def slots_of(names):
    return sorted(int(name.split("-")[1]) for name in names)


def ask_by_tcp(server, number):
    query = dns.message.make_query(f"host{number}.{ZONE}", "A")
    return dns.query.tcp(query, "127.0.0.1", port=server.port, timeout=60).answer[0][0].address


@pytest.mark.parametrize("end", ["all are killed", "the manager is stopped", "only the manager is killed"])
def test_no_query_is_lost_over_a_restart(make, service_manager, end):
    server = start(service_manager, make())
    kept = service_manager.names()
    assert slots_of(kept) == [0, 0, 1, 1], "UDP and TCP of two workers"
    load = dnsperf(server)
    try:
        for turn in range(3):
            before = {row["pid"] for row in server.workers().values()}
            if end == "all are killed":
                kill_all(server)
            elif end == "the manager is stopped":
                server.stop(60)
            else:
                server.kill()
            # Connections and queries that come while nobody is there are answered by those who come then.
            with concurrent.futures.ThreadPoolExecutor(20) as pool:
                answers = [pool.submit(ask_by_tcp, server, number) for number in range(20)]
                time.sleep(0.5)
                service_manager.launch(server)
                assert [answer.result() for answer in answers] == [f"192.0.2.{number}" for number in range(20)]
            servers.wait_until("this manager serves", lambda: server.serves(ZONE), 60)
            await_serving(server, 2)
            after = {row["pid"] for row in server.workers().values()}
            assert (before == after) == (end == "only the manager is killed")
            assert service_manager.names() == kept, "the very same sockets"
        nothing_lost(load)
    finally:
        load.end()


def test_queues_of_slots_that_are_not_wanted_any_more_are_read(make, service_manager):
    server = start(service_manager, make(workers=4))
    assert len(service_manager.names()) == 8
    load = dnsperf(server)
    try:
        time.sleep(1)
        kill_all(server)
        server.workers_wanted = 1
        server.write_config()
        time.sleep(0.5)
        start(service_manager, server)
        assert slots_of(service_manager.names()) == [0, 0]
        nothing_lost(load)
    finally:
        load.end()


def test_a_worker_is_removed_without_loss_behind_a_restart(make, service_manager):
    """The positions in the kernel's groups come back: traffic is steered away from the right socket."""
    server = start(service_manager, make(workers=3))
    server.control("worker", "restart")  # members come and go: the last takes the place of each that leaves
    places = [tuple(name.split("-")[1:3]) for name in service_manager.names()]
    assert any(slot != position for slot, position in places), places
    kill_all(server)
    start(service_manager, server)
    servers.wait_until("a slot that is not wanted any more ends",
                       lambda: slots_of(service_manager.names()) == [0, 0, 1, 1, 2, 2])
    load = dnsperf(server, rate=1000)
    try:
        server.control("worker", "remove")
        await_serving(server, 2)
        server.control("worker", "remove")
        await_serving(server, 1)
        servers.wait_until("the others' sockets are let go", lambda: len(service_manager.names()) == 2)
        nothing_lost(load)
    finally:
        load.end()


def test_addresses_that_leave_the_configuration_leave_the_store(make, service_manager):
    server = start(service_manager, make())
    old = service_manager.names()
    server.port = servers.free_port()
    server.write_config()
    server.control("reload")
    assert not set(old) & set(service_manager.names()) and slots_of(service_manager.names()) == [0, 0, 1, 1]
    reloaded = service_manager.names()
    kill_all(server)
    server.port = servers.free_port()
    server.write_config()
    start(service_manager, server)
    assert not set(reloaded) & set(service_manager.names()) and slots_of(service_manager.names()) == [0, 0, 1, 1]
    assert server.log().count("socket_not_restored") == 4


def test_a_socket_unit_opens_the_address_and_all_workers_share_it(make, service_manager):
    server = make()
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_INET, kind) as opened:
            opened.bind(("127.0.0.1", server.port))
            if kind == socket.SOCK_STREAM:
                opened.listen(100)
            service_manager.unit_sockets.append(("pando.socket", os.dup(opened.fileno())))
    with concurrent.futures.ThreadPoolExecutor(20) as pool:  # asked before the first start, as at boot
        early = [pool.submit(ask_by_tcp, server, number) for number in range(20)]
        start(service_manager, server)
        assert [answer.result() for answer in early] == [f"192.0.2.{number}" for number in range(20)]
    assert service_manager.names() == [], "the socket unit keeps its own"
    load = dnsperf(server)
    try:
        kill_all(server)
        time.sleep(0.5)
        start(service_manager, server)
        server.kill()  # the workers go on
        start(service_manager, server)
        server.control("worker", "remove")
        server.control("worker", "add")
        server.control("worker", "remove")
        await_serving(server, 1)
        nothing_lost(load)
    finally:
        load.end()
    update = dns.update.UpdateMessage(ZONE)
    update.add("new", 60, "A", "192.0.2.200")
    assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=30).rcode() == dns.rcode.NOERROR
    assert server.ask(f"new.{ZONE}").answer, "the manager's own response went through the shared socket"


def test_the_watchdog_hears_from_a_manager_whose_disk_hangs_and_not_from_one_that_is_stopped(
        make, service_manager, tmp_path, monkeypatch):
    held = tmp_path / "held"
    monkeypatch.setenv("PANDO_PAUSE_AT", "journal-sync")
    monkeypatch.setenv("PANDO_PAUSE_WHILE", str(held))
    monkeypatch.setenv("WATCHDOG_USEC", "400000")
    server = start(service_manager, make())
    held.touch()
    update = dns.update.UpdateMessage(ZONE)
    update.add("waits", 60, "A", "192.0.2.200")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(dns.query.udp, update, "127.0.0.1", port=server.port, timeout=60)
        service_manager.forget()
        service_manager.await_line("WATCHDOG=1", 10)
        assert server.control("status")["pid"] == server.process.pid
        os.kill(server.process.pid, signal.SIGSTOP)
        time.sleep(0.5)  # what was sent before has come
        service_manager.forget()
        time.sleep(1)
        assert service_manager.lines == []
        os.kill(server.process.pid, signal.SIGCONT)
        service_manager.await_line("WATCHDOG=1", 2)
        held.unlink()
        waiting.result()
