"""A worker that code has taken over, and the streams that it is lent: to a dnstap collector and to the query log. What
it sends is its own; the other worker's stream, the manager and the log's file are beyond it."""

import array
import errno
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import tempfile
import time

import dns.message
import dns.query
import pytest

import injected
import servers
from collector import START, Collector, control_frame
from test_isolation import MANAGER, WORKER, ZONE, TwoUsers, add, pids, user_exists

pytestmark = [injected.needed, pytest.mark.skipif(
    not (user_exists(MANAGER) and user_exists(WORKER)), reason="needs two ordinary users")]

DNSTAP_LOST = 7  # the number of the message in ipc/worker_messages.h
LINE = re.compile(rb"\{[\x20-\x7E]*\}")


@pytest.fixture
def folder():
    """A folder of its own below /tmp: pytest's is closed to the two users."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="pando-streams-", dir="/tmp"))
    made.chmod(0o755)
    (made / "zone").write_text(ZONE)
    (made / "zone").chmod(0o644)
    (made / "logs").mkdir()
    shutil.chown(made / "logs", MANAGER)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def start(folder):
    """Starts a server with two workers and one more setting."""
    started = []

    def make(extra):
        instance = TwoUsers(folder, [{"name": "two.test", "file": str(folder / "zone"),
                                      "allow-update": [{"address": "127.0.0.0/8"}]}], extra=extra)
        started.append(instance)
        instance.start("two.test")
        servers.wait_until("both workers serve", lambda: {0, 1} <= pids(instance).keys())
        return instance

    yield make
    for instance in started:
        instance.stop()
        instance.clean()


@pytest.fixture
def tapped(folder, start):
    taker = Collector(folder / "tap.sock", decodes=False)
    (folder / "tap.sock").chmod(0o666)
    server = start(f"  dnstap: {{socket: {folder}/tap.sock, messages: [queries]}}")
    servers.wait_until("both have a stream", lambda: len(taker.streams) == 2)
    servers.wait_until("both streams are open", lambda: server.log().count("dnstap_stream_opened") == 2)
    yield server, taker
    taker.close()


@pytest.fixture
def logged(folder, start):
    log = folder / "logs/queries.log"
    server = start(f"  query-log: {{file: {log}}}")
    servers.wait_until("the file is open", lambda: ask_all(server, "first.two.test") and log.exists())
    return server, log


def stream_of(pid):
    """The process's descriptor of its lent stream, which is its only connected one of this kind."""
    inodes = set()
    for line in pathlib.Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if (fields[4], fields[5]) == ("0001", "03"):  # SOCK_STREAM, connected
            inodes.add(f"socket:[{fields[6]}]")
    found = [number for number, link in injected.descriptors(pid).items() if number > 2 and link in inodes]
    assert len(found) == 1, injected.descriptors(pid)
    return found[0]


def send(process, descriptor, octets):
    """Sends all octets, or as many as the socket takes without waiting; how many these were."""
    sent = 0
    while sent < len(octets):
        part = octets[sent:sent + 4096]
        result = process.call("sendto", descriptor, process.put(part), len(part), 0x4040, 0, 0)  # DONTWAIT | NOSIGNAL
        if result < 0:
            assert result in (-errno.EAGAIN, -errno.EPIPE), result
            break
        sent += result
    return sent


def ask_all(server, name, count=64):
    """Questions from as many ports, so that they come to both workers; each must be answered."""
    for _ in range(count):
        query = dns.message.make_query(name, "A")
        assert dns.query.udp(query, "127.0.0.1", port=server.port, timeout=20).id == query.id
    return True


def lines_of(log):
    """All lines of the log: printable ASCII between braces, whatever a worker has sent."""
    lines = log.read_bytes().split(b"\n")[:-1]
    assert not [line for line in lines if not LINE.fullmatch(line)]
    return lines


def honest(log, name):
    """Lines of whole workers about this name. What a hijacked worker sends need not be JSON."""
    lines = [line for line in lines_of(log) if line.startswith(b'{"time":')]
    return sum(json.loads(line)["qname"] == f"{name}." for line in lines)


def memory_of(pid):
    """Resident memory in kB that no file backs."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0])


# -- dnstap --------------------------------------------------------------------------------------------------------

def test_garbage_in_its_stream_stays_in_its_stream(tapped):
    """A frame of 4 GB that never comes, and control frames: the collector gets them from one stream alone."""
    server, taker = tapped
    hijacked = pids(server)[0]
    garbage = struct.pack(">I", 0xFFFFFFFF) + b"GARBAGE!" * 512 + control_frame(START) * 20
    with injected.into(hijacked) as process:
        assert send(process, stream_of(hijacked), garbage) == len(garbage)
    spoilt = servers.wait_until("it has come", lambda: [
        stream for stream in taker.streams if b"GARBAGE!" in stream.taken])
    assert len(spoilt) == 1
    others = [stream for stream in taker.streams if stream not in spoilt]
    ask_all(server, "after-garbage.two.test")
    servers.wait_until("the other worker's messages come", lambda: taker.told("after-garbage.two.test", others) > 0)
    assert not any(stream.ended for stream in others)
    assert add(server, "after-garbage") == 0


def test_it_ends_no_stream_but_its_own(tapped):
    server, taker = tapped
    hijacked, before = pids(server)[0], list(taker.streams)
    with injected.into(hijacked) as process:
        assert process.call("close", stream_of(hijacked)) == 0
    servers.wait_until("its stream has ended", lambda: sum(stream.ended for stream in before) == 1)
    other = [stream for stream in before if not stream.ended]
    ask_all(server, "after-close.two.test")
    servers.wait_until("the other one goes on", lambda: taker.told("after-close.two.test", other) > 0)


def test_its_stream_leads_to_no_other_place(tapped, folder):
    """A connected socket cannot be connected again, so the descriptor reaches this collector alone."""
    server, taker = tapped
    hijacked = pids(server)[0]
    elsewhere = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    elsewhere.bind(str(folder / "elsewhere.sock"))
    (folder / "elsewhere.sock").chmod(0o666)
    elsewhere.listen(1)
    address = struct.pack("=H", socket.AF_UNIX) + str(folder / "elsewhere.sock").encode() + b"\0"
    with injected.into(hijacked) as process:
        result = process.call("connect", stream_of(hijacked), process.put(address), len(address))
    elsewhere.settimeout(0.2)
    with pytest.raises(socket.timeout):
        elsewhere.accept()
    elsewhere.close()
    assert result == -errno.EISCONN
    assert len(taker.streams) == 2


def test_reports_of_lost_streams_cost_the_manager_a_bounded_number_of_connections(tapped):
    """Each would have the manager connect again; only the first report of each stream counts, after a pause."""
    server, taker = tapped
    hijacked = pids(server)[0]
    report = struct.pack(">HB", servers.WORKER_PROTOCOL, DNSTAP_LOST)
    with injected.into(hijacked) as process:
        ipc = injected.connection(hijacked)
        address = process.put(report)
        reports = 0
        end = time.monotonic() + 3
        while time.monotonic() < end and reports < 20_000:
            if process.call("sendto", ipc, address, len(report), 0x4040, 0, 0) == len(report):
                reports += 1
    assert reports > 1000
    assert add(server, "after-reports") == 0
    # The first at once, then pauses of 100, 200, 400, 800 and 1,600 ms at least; and the two of before.
    assert len(taker.streams) <= 2 + 8, len(taker.streams)
    assert pids(server)[1]
    ask_all(server, "after-reports.two.test")
    servers.wait_until("messages come", lambda: taker.told("after-reports.two.test") > 0)


@pytest.fixture
def untapped(folder, start):
    """The collector reads no more once its streams are open."""
    taker = Collector(folder / "tap.sock", reads=False)
    (folder / "tap.sock").chmod(0o666)
    server = start(f"  dnstap: {{socket: {folder}/tap.sock, messages: [queries]}}")
    servers.wait_until("both have a stream", lambda: len(taker.streams) == 2)
    servers.wait_until("both streams are open", lambda: server.log().count("dnstap_stream_opened") == 2)
    yield server
    taker.close()


def test_descriptors_that_outlive_it_hold_neither_its_slot_nor_memory(untapped):
    """They lie in a stream that nobody reads, with the locks by which the slot is known to be alive."""
    server = untapped
    hijacked = pids(server)[0]
    links = injected.descriptors(hijacked)
    passed = array.array("i", [number for number, link in links.items() if "zones.store" in link or
                               link.endswith("/0.slot")]).tobytes()
    assert len(passed) == 8, links
    control = struct.pack("QII", 16 + len(passed), socket.SOL_SOCKET, socket.SCM_RIGHTS) + passed
    with injected.into(hijacked) as process:
        vector = process.put(struct.pack("QQ", process.put(b"x"), 1), 1024)
        header = process.put(struct.pack("QIxxxxQQQQI4x", 0, 0, vector, 1, process.put(control, 2048), len(control),
                                         0), 1536)
        assert process.call("sendmsg", stream_of(hijacked), header, 0x4040) == 1
    os.kill(hijacked, signal.SIGKILL)
    servers.wait_until("the slot serves again", lambda: pids(server).get(0) not in (None, hijacked), 60)
    assert "slot_left_open slot=0" in server.log()
    assert add(server, "after-the-leak") == 0


# -- The query log -------------------------------------------------------------------------------------------------

def test_it_has_no_descriptor_of_the_log(logged):
    server, log = logged
    for pid in pids(server).values():
        assert not any(str(log.parent) in link for link in injected.descriptors(pid).values())


def test_no_garbage_comes_into_the_log_and_the_other_workers_lines_do(logged):
    server, log = logged
    hijacked = pids(server)[0]
    garbage = (b"\x1b[2J\x1b]0;title\x07\n" + b"no object\n" + b"{\x00}\n" + b"\r\n" * 50 + "{ü}\n".encode() +
               b"{" + b"x" * 20_000 + b"}\n" + b"{\"a part of a line")
    before = server.control("status")["counters"]["query_log_unwritten"]
    with injected.into(hijacked) as process:
        assert send(process, stream_of(hijacked), garbage) == len(garbage)
    servers.wait_until("the bad lines are counted", lambda: server.control("status")["counters"][
        "query_log_unwritten"] - before >= 55)
    ask_all(server, "beside.two.test")
    # The first line of the hijacked worker itself is spoilt by the part that stands before it.
    servers.wait_until("lines come", lambda: honest(log, "beside.two.test") >= 63)
    assert b"no object" not in log.read_bytes() and b"\x1b" not in log.read_bytes()


def test_a_flood_of_lines_holds_no_memory_and_stops_nobody(logged):
    server, log = logged
    hijacked, manager = pids(server)[0], server.manager_pid()
    line = b"{" + b"f" * 4094 + b"}\n"
    before, sent = memory_of(manager), 0
    with injected.into(hijacked) as process:
        stream, address = stream_of(hijacked), process.put(line)
        end = time.monotonic() + 4
        while time.monotonic() < end:
            sent += max(process.call("sendto", stream, address, len(line), 0x4040, 0, 0), 0)
    assert sent > 1 << 20
    assert add(server, "after-flood") == 0
    ask_all(server, "after-flood.two.test")
    servers.wait_until("lines come", lambda: honest(log, "after-flood.two.test") >= 63)
    assert memory_of(manager) - before < 64 << 10
    assert lines_of(log)


def test_descriptors_that_it_passes_on_do_not_stay_in_the_manager(logged):
    server, log = logged
    hijacked, manager = pids(server)[0], server.manager_pid()
    before = len(injected.descriptors(manager))
    with injected.into(hijacked) as process:
        stream = stream_of(hijacked)
        passed = array.array("i", [stream] * 100).tobytes()
        control = struct.pack("QII", 16 + len(passed), socket.SOL_SOCKET, socket.SCM_RIGHTS) + passed
        data = process.put(b"{}\n")
        vector = process.put(struct.pack("QQ", data, 3), 1024)
        rights = process.put(control, 2048)
        header = process.put(struct.pack("QIxxxxQQQQI4x", 0, 0, vector, 1, rights, len(control), 0), 1536)
        results = [process.call("sendmsg", stream, header, 0x4040) for _ in range(20)]
    assert results == [3] * 20, "the attack is one"
    servers.wait_until("the lines have come", lambda: lines_of(log).count(b"{}") == 20)
    assert len(injected.descriptors(manager)) <= before + 2
    assert add(server, "after-descriptors") == 0
