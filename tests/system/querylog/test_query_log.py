"""The query log as its readers see it: a JSON object a line, and what a bad disk or reader costs."""

import json
import os
import signal
import socket
import subprocess
import threading
import time

import dns.message
import dns.name
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers

ZONE = "logged.test"
ZONE_FILE = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n* A 192.0.2.80\n"
KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})
KEYS = ["time", "client", "port", "server", "protocol", "opcode", "qname", "qtype", "qclass", "flags", "key", "zone",
        "result", "rcode", "response_flags", "answers", "request_size", "size", "duration_us"]


@pytest.fixture
def log(tmp_path):
    folder = tmp_path / "log"
    folder.mkdir()
    return folder / "queries.log"


@pytest.fixture
def server(pando, tmp_path, log):
    """Makes a server with a query log, not started."""

    def make(more="", workers=1, target=None):
        (tmp_path / "zone").write_text(ZONE_FILE)
        return pando([{"name": ZONE, "file": str(tmp_path / "zone"), "allow-update": [{"key": KEY["name"]}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                     workers=workers, keys=[KEY], extra=settings(target or f"file: {log}", more))

    return make


def settings(target, more=""):
    return f"  query-log: {{{target}{more}}}"


def lines_of(*paths):
    """All lines; each is a whole object with all keys, in printable ASCII."""
    found = []
    for path in paths:
        if not path.exists():
            continue
        # The last line may be on its way into the file.
        for line in path.read_bytes().split(b"\n")[:-1]:
            assert all(0x20 <= octet < 0x7F for octet in line), line
            logged = json.loads(line)
            assert list(logged) == KEYS
            found.append(logged)
    return found


def named(path, name):
    return [line for line in lines_of(path) if line["qname"] == f"{name}."]


def wait_for(path, name, count=1):
    servers.wait_until(f"{count} lines of {name}", lambda: len(named(path, name)) >= count, 60)
    lines = named(path, name)
    assert len(lines) == count
    return lines


def of_workers(server):
    """query_log_lines and query_log_dropped of all workers."""
    rows = [row["counters"] for row in server.workers().values()]
    return tuple(sum(row[name] for row in rows) for name in ("query_log_lines", "query_log_dropped"))


def of_manager(server):
    counters = server.control("status")["counters"]
    return counters["query_log_written"], counters["query_log_unwritten"]


def ask_many(server, name, count):
    """Asks one question after the other, each of which must be answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", server.port))
        query = dns.message.make_query(name, "A").to_wire()
        for number in range(count):
            client.send(number.to_bytes(4, "big")[2:] + query[2:])
            assert client.recv(4096)[:2] == number.to_bytes(4, "big")[2:]


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_a_query_is_a_line(server, log, tcp):
    pando = server().start(ZONE)
    name = f"www.{ZONE}"
    query = dns.message.make_query(name, "A", want_dnssec=True)
    port, began = servers.free_port(), time.time()
    ask = dns.query.tcp if tcp else dns.query.udp
    response = ask(query, "127.0.0.1", port=pando.port, timeout=20, source="127.0.0.1", source_port=port)
    (line,) = wait_for(log, name)
    assert line["client"] == line["server"] == "127.0.0.1" and line["port"] == port
    assert line["protocol"] == ("tcp" if tcp else "udp")
    assert [line[key] for key in ("opcode", "qtype", "qclass", "key", "zone", "result", "rcode", "answers")] == \
        ["QUERY", "A", "IN", None, f"{ZONE}.", "answered", "NOERROR", 1]
    assert line["flags"] == ["rd", "edns", "do"] and line["response_flags"] == ["aa"]
    assert line["request_size"] == len(query.to_wire()) and line["size"] == len(response.to_wire())
    seconds = time.mktime(time.strptime(line["time"][:19], "%Y-%m-%dT%H:%M:%S")) - time.timezone
    assert began - 2 <= seconds <= time.time() + 1 and line["time"][26:] == "Z"
    assert 0 <= line["duration_us"] < 20_000_000
    assert log.stat().st_mode & 0o7 == 0, "others do not read who asked for what"


def test_updates_transfers_and_bad_requests_are_lines(server, log):
    pando = server().start(ZONE)
    for name, ask in (("udp", dns.query.udp), ("tcp", dns.query.tcp)):
        update = dns.update.Update(ZONE, keyring=KEYRING)  # one signature is good once
        update.add(name, 60, "A", "192.0.2.99")
        assert ask(update, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
    assert pando.records(ZONE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", pando.port))
        client.send(bytes.fromhex("beef0100000100000000000003777777"))  # the question is cut
        assert client.recv(512)[3] & 15 == dns.rcode.FORMERR
    assert pando.ask("elsewhere.test").rcode() == dns.rcode.REFUSED
    wait_for(log, "elsewhere.test")
    lines = lines_of(log)
    updates = [line for line in lines if line["opcode"] == "UPDATE"]
    assert [(line["protocol"], line["qname"], line["qtype"], line["key"], line["rcode"], line["zone"])
            for line in updates] == [(protocol, f"{ZONE}.", "SOA", "update-key.", "NOERROR", f"{ZONE}.")
                                     for protocol in ("udp", "tcp")]
    (transfer,) = [line for line in lines if line["qtype"] == "AXFR"]
    assert (transfer["result"], transfer["rcode"], transfer["size"]) == ("transfer", None, None)
    (bad,) = [line for line in lines if line["rcode"] == "FORMERR"]
    assert (bad["qname"], bad["qtype"], bad["zone"], bad["result"]) == (None, None, None, "answered")
    (refused,) = [line for line in lines if line["rcode"] == "REFUSED"]
    assert refused["zone"] is None


def test_a_hostile_name_is_text_of_one_line(server, log):
    pando = server().start(ZONE)
    labels = [b'"},{"x":"', b"\n{}\n", b"\x1b[2J\x07", b"\x00\xff\x7f", b"a\\b.c", "ü".encode(), b"%s${x}`", bytes(63)]
    for label in labels:
        name = dns.name.Name([label, b"logged", b"test", b""])
        query = dns.message.make_query(name, "A")
        assert dns.query.udp(query, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
    ask_many(pando, f"last.{ZONE}", 1)
    wait_for(log, f"last.{ZONE}")
    lines = [line for line in lines_of(log) if line["qname"].endswith(f".{ZONE}.")]
    assert [dns.name.from_text(line["qname"]).labels[0] for line in lines] == [*labels, b"last"]


def test_one_request_in_n_is_a_line(server, log):
    pando = server(", sample: 10").start(ZONE)
    ask_many(pando, f"sampled.{ZONE}", 1000)
    servers.wait_until("100 lines", lambda: len(named(log, f"sampled.{ZONE}")) >= 99)
    servers.wait_until("all are written", lambda: of_manager(pando) == (of_workers(pando)[0], 0))
    # Questions of the start count as well, so the first of these may be any of the ten.
    assert 99 <= len(named(log, f"sampled.{ZONE}")) <= 101
    assert of_workers(pando)[1] == 0


def test_a_full_disk_costs_lines_and_no_answer(server, log):
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(log.parent)]).returncode != 0:
        pytest.skip("needs to mount a small disk")
    try:
        pando = server().start(ZONE)
        ask_many(pando, f"many.{ZONE}", 1000)
        servers.wait_until("lines are lost", lambda: of_manager(pando)[1] > 0)
        servers.wait_until("all are counted", lambda: sum(of_manager(pando)) + of_workers(pando)[1] >= 1000)
        assert pando.ask(f"many.{ZONE}", tcp=True).answer
        assert 0 < len(named(log, f"many.{ZONE}")) < 1000, "and each is whole"
        assert pando.log().count("query_log_failed") == 1, "not for every line"
        subprocess.run(["mount", "-o", "remount,size=16m", str(log.parent)], check=True)
        count = 0
        def again():
            nonlocal count
            count += 1
            ask_many(pando, f"again{count}.{ZONE}", 1)
            time.sleep(0.2)
            return "query_log_resumed" in pando.log()
        servers.wait_until("the log goes on", again)
        ask_many(pando, f"after.{ZONE}", 5)
        wait_for(log, f"after.{ZONE}", 5)
    finally:
        subprocess.run(["umount", "--lazy", str(log.parent)], check=True)


def test_a_disk_that_hangs_costs_lines_and_nothing_else(server, log, tmp_path):
    """Answers, updates, control and new workers go on. What does not fit is counted, and the rest is written later."""
    held = tmp_path / "held"
    pando = server(workers=2)
    pando.pause_at = "query-log-write", held
    pando.start(ZONE)
    ask_many(pando, f"first.{ZONE}", 5)
    wait_for(log, f"first.{ZONE}", 5)
    held.touch()
    asked = 0

    def until(what, condition):
        """Asks from new ports, so that both workers are asked; each question must be answered."""
        def ask():
            nonlocal asked
            ask_many(pando, f"held.{ZONE}", 250)
            asked += 250
            return condition()
        servers.wait_until(what, ask, 120)

    until("both drop lines", lambda: all(row["counters"]["query_log_dropped"] > 0 for row in pando.workers().values()))
    update = dns.update.Update(ZONE, keyring=KEYRING)
    update.add("beside", 60, "TXT", "updated")
    assert dns.query.tcp(update, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
    assert pando.ask(f"beside.{ZONE}", "TXT").answer
    assert pando.control("reload")["restart_needed"] == []
    pando.control("worker", "add")
    servers.wait_until("a third worker serves", lambda: [row["state"] for row in pando.workers().values()] ==
                       ["serving"] * 3)
    before = of_manager(pando)
    until("it is asked as well", lambda: pando.workers()[2]["counters"]["query_log_lines"] > 0)
    assert of_manager(pando) == before, "nothing is written meanwhile"
    assert len(named(log, f"held.{ZONE}")) == 0
    held.unlink()
    servers.wait_until("all lines that were not dropped are in the file",
                       lambda: len(named(log, f"held.{ZONE}")) + of_workers(pando)[1] >= asked)
    assert of_manager(pando)[1] == 0
    ask_many(pando, f"after.{ZONE}", 5)
    wait_for(log, f"after.{ZONE}", 5)


def test_a_manager_stops_although_the_disk_of_the_log_hangs(server, log, tmp_path):
    held = tmp_path / "held"
    pando = server()
    pando.pause_at = "query-log-write", held
    pando.start(ZONE)
    held.touch()
    ask_many(pando, f"lost.{ZONE}", 100)
    pando.stop(60)
    held.unlink()
    pando.start(ZONE)
    ask_many(pando, f"next.{ZONE}", 5)
    wait_for(log, f"next.{ZONE}", 5)


def test_a_fifo_that_nobody_reads_holds_nothing(server, log):
    os.mkfifo(log)
    pando = server().start(ZONE)
    ask_many(pando, f"lost.{ZONE}", 100)
    servers.wait_until("they are counted", lambda: of_manager(pando)[1] >= 100)
    with open(os.open(log, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:  # a reader of a FIFO takes no log, either
        time.sleep(1.1)
        ask_many(pando, f"lost.{ZONE}", 100)
        servers.wait_until("they are counted", lambda: of_manager(pando)[1] >= 200)
        assert not reader.read()
    assert pando.log().count("query_log_failed") == 1


def test_no_answer_waits_for_a_folder_that_is_missing(server, log):
    log.parent.rmdir()
    pando = server().start(ZONE)
    ask_many(pando, f"lost.{ZONE}", 100)
    servers.wait_until("they are counted", lambda: of_manager(pando)[1] >= 100)
    assert pando.log().count("query_log_failed") == 1
    log.parent.mkdir()
    time.sleep(1.1)
    ask_many(pando, f"found.{ZONE}", 10)
    wait_for(log, f"found.{ZONE}", 10)


class Reader:
    """A reader of the log that listens on a Unix socket; it takes lines when told so."""

    def __init__(self, path):
        path.unlink(missing_ok=True)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listening.bind(str(path))
        self.listening.listen(5)
        self.octets, self.connection = b"", None

    def read(self):
        """The lines so far."""
        if self.connection is None:
            self.listening.settimeout(30)
            self.connection, _ = self.listening.accept()
        self.connection.settimeout(0.2)
        try:
            while part := self.connection.recv(1 << 20):
                self.octets += part
        except socket.timeout:
            pass
        return [json.loads(line) for line in self.octets.split(b"\n")[:-1]]

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.listening.close()


@pytest.fixture
def reader(tmp_path):
    made = []

    def make():
        for earlier in made:
            earlier.close()
        made.append(Reader(tmp_path / "reader.sock"))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_reader_gets_the_lines_of_all_workers(server, reader, tmp_path):
    first = reader()
    pando = server(workers=2, target=f"socket: {tmp_path}/reader.sock").start(ZONE)
    for number in range(40):
        assert pando.ask(f"n{number}.{ZONE}").answer
    expected = {f"n{number}.{ZONE}." for number in range(40)}
    servers.wait_until("all lines", lambda: expected <= {line["qname"] for line in first.read()})
    first.close()
    second = reader()
    time.sleep(1.1)
    ask_many(pando, f"next.{ZONE}", 5)
    servers.wait_until("the next reader has lines", lambda: f"next.{ZONE}." in {line["qname"] for line in second.read()})


def test_a_reader_that_stalls_costs_no_answer(server, reader, tmp_path):
    stalled = reader()
    pando = server(target=f"socket: {tmp_path}/reader.sock").start(ZONE)
    count = 12_000  # some 5 MB, of which the manager holds one
    ask_many(pando, f"unread.{ZONE}", count)
    servers.wait_until("lines are lost", lambda: of_manager(pando)[1] + of_workers(pando)[1] > 0)
    assert pando.ask(f"unread.{ZONE}", tcp=True).answer
    lines = stalled.read()
    assert 0 < len(lines) < count
    servers.wait_until("what waited comes as well", lambda: len(stalled.read()) >= of_manager(pando)[0])
    assert all(list(line) == KEYS for line in stalled.read()), "each is whole"
    ask_many(pando, f"read.{ZONE}", 5)
    servers.wait_until("the log goes on", lambda: f"read.{ZONE}." in {line["qname"] for line in stalled.read()})


def test_no_line_is_lost_by_a_rotation_under_load(server, log):
    pando = server(workers=2).start(ZONE)
    end, asked = threading.Event(), []

    def load():
        while not end.is_set():
            ask_many(pando, f"load.{ZONE}", 100)
            asked.append(100)

    loading = threading.Thread(target=load)
    loading.start()
    rotated = []
    try:
        for turn in range(4):
            servers.wait_until("the log has lines", lambda: log.exists() and log.stat().st_size > 0)
            rotated.append(log.with_name(f"queries.log.{turn}"))
            log.rename(rotated[-1])
            if turn % 2 == 1:  # as logrotate's "create" does
                log.touch()
    finally:
        end.set()
        loading.join()
    servers.wait_until("every line is there", lambda: sum(
        line["qname"] == f"load.{ZONE}." for line in lines_of(log, *rotated)) == sum(asked))
    assert of_manager(pando)[1] == of_workers(pando)[1] == 0
    assert all(path.stat().st_size > 0 for path in rotated)


def test_a_killed_worker_has_a_successor_with_a_stream_of_its_own(server, log):
    pando = server().start(ZONE)
    ask_many(pando, f"before.{ZONE}", 5)
    wait_for(log, f"before.{ZONE}", 5)
    before = pando.workers()[0]["pid"]
    os.kill(before, signal.SIGKILL)
    servers.wait_until("the next one serves", lambda: pando.workers().get(0, {}).get("pid", before) != before)
    ask_many(pando, f"next.{ZONE}", 5)
    wait_for(log, f"next.{ZONE}", 5)


def test_without_a_manager_lines_are_counted_and_the_next_one_writes_again(server, log):
    pando = server().start(ZONE)
    worker = pando.workers()[0]["pid"]
    pando.kill()
    ask_many(pando, f"alone.{ZONE}", 10)
    pando.start(ZONE)
    assert pando.workers()[0]["pid"] == worker
    servers.wait_until("they are counted", lambda: of_workers(pando)[1] >= 1)
    ask_many(pando, f"again.{ZONE}", 10)
    wait_for(log, f"again.{ZONE}", 10)


def until(server, what, condition):
    """Asks until the workers have heard of a reload."""
    def asked():
        ask_many(server, f"probe.{ZONE}", 4)
        time.sleep(0.1)
        return condition()
    servers.wait_until(what, asked)


def test_a_reload_switches_it_on_and_off(server, log):
    pando = server(workers=2)
    with_log = pando.extra
    pando.extra = ""
    pando.write_config()
    pando.start(ZONE)
    ask_many(pando, f"off.{ZONE}", 10)
    assert of_workers(pando) == (0, 0) and not log.exists()
    pando.extra = with_log
    pando.write_config()
    assert pando.control("reload")["restart_needed"] == []
    until(pando, "it is on", lambda: of_workers(pando)[0] > 0)
    ask_many(pando, f"on.{ZONE}", 10)
    wait_for(log, f"on.{ZONE}", 10)
    other = log.with_name("other.log")
    pando.extra = settings(f"file: {other}", ", sample: 5")
    pando.write_config()
    pando.control("reload")
    until(pando, "it goes to the other file", lambda: other.exists() and lines_of(other))
    ask_many(pando, f"fewer.{ZONE}", 100)
    servers.wait_until("1 in 5", lambda: len(named(other, f"fewer.{ZONE}")) >= 18)
    pando.extra = ""
    pando.write_config()
    pando.control("reload")
    seen = []
    until(pando, "it is off", lambda: seen.append(of_workers(pando)) or seen[-2:-1] == seen[-1:])
    before = of_workers(pando)
    ask_many(pando, f"off.{ZONE}", 10)
    assert of_workers(pando) == before
    assert not named(log, f"off.{ZONE}") and not named(other, f"off.{ZONE}")


def test_a_stop_writes_the_last_lines(server, log):
    pando = server().start(ZONE)
    ask_many(pando, f"end.{ZONE}", 5)
    pando.stop()
    assert len(named(log, f"end.{ZONE}")) == 5


def test_bad_values_are_refused_with_their_line(server):
    pando = server(target="file: a, socket: b")
    done = subprocess.run(pando.command(), capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "server.query-log: needs either 'file' or 'socket'" in done.stdout + done.stderr
