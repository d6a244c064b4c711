"""dnstap as collectors see it: what the messages tell, and what a bad collector costs."""

import os
import shutil
import signal
import socket
import subprocess
import time

import dns.message
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers
from collector import Collector, name_of
from test_ipv6 import has_ipv6, listen_on_both

ZONE = "tapped.test"
ZONE_FILE = "$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n* A 192.0.2.80\n"
KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})


@pytest.fixture
def collectors(tmp_path):
    """Makes collectors at one path; each takes the place of the one before."""
    made = []

    def make(**options):
        for earlier in made:
            earlier.close()
        made[:] = [Collector(tmp_path / "dnstap.sock", **options)]
        return made[0]

    yield make
    for collector in made:
        collector.close()


def settings(tmp_path, more=""):
    return f"  dnstap: {{socket: {tmp_path / 'dnstap.sock'}{more}}}"


@pytest.fixture
def server(pando, tmp_path):
    """Makes a server with dnstap, not started."""

    def make(more="", workers=1):
        (tmp_path / "zone").write_text(ZONE_FILE)
        return pando([{"name": ZONE, "file": str(tmp_path / "zone"), "allow-update": [{"key": KEY["name"]}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                     workers=workers, keys=[KEY], extra=settings(tmp_path, more))

    return make


def wait_for_streams(collector, count=1):
    servers.wait_until(f"{count} streams", lambda: len(collector.started()) >= count)


def wait_for(collector, count, name=None, kind=None):
    servers.wait_until(f"{count} messages of {name} {kind}",
                       lambda: len(collector.messages(name, kind)) >= count)
    return collector.messages(name, kind)


def counters(server):
    """dnstap_frames and dnstap_dropped of all workers."""
    rows = [row["counters"] for row in server.workers().values()]
    return tuple(sum(row[name] for row in rows) for name in ("dnstap_frames", "dnstap_dropped"))


def ask_many(server, name, count):
    """Asks one question after the other, each of which must be answered."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", server.port))
        query = dns.message.make_query(name, "A")
        for number in range(count):
            query.id = number % 65536
            client.send(query.to_wire())
            assert client.recv(4096)[:2] == number.to_bytes(2, "big")


def check_time(tapped, side, began):
    seconds = tapped[f"{side}_time_sec"] + tapped[f"{side}_time_nsec"] / 1e9
    assert tapped[f"{side}_time_nsec"] < 1_000_000_000
    # The kernel's clock of whole ticks and this process's may differ a little.
    assert began - 0.1 <= seconds <= time.time() + 0.1
    return seconds


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_a_query_and_its_response_have_every_field(server, collectors, tcp):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    name = f"www.{ZONE}"
    query = dns.message.make_query(name, "A", want_dnssec=True)
    source_port = servers.free_port()
    began = time.time()
    ask = dns.query.tcp if tcp else dns.query.udp
    response = ask(query, "127.0.0.1", port=pando.port, timeout=20, source="127.0.0.1", source_port=source_port)
    assert response.answer
    wait_for(collector, 2, name)
    (asked,), (answered,) = collector.messages(name, "AUTH_QUERY"), collector.messages(name, "AUTH_RESPONSE")
    for tapped in asked, answered:
        assert tapped["identity"] == socket.gethostname()
        assert tapped["version"].startswith("pando ")
        assert tapped["socket_family"] == 1
        assert tapped["socket_protocol"] == (2 if tcp else 1)
        assert tapped["query_address"] == tapped["response_address"] == "127.0.0.1"
        assert (tapped["query_port"], tapped["response_port"]) == (source_port, pando.port)
    assert asked["query_message"] == query.to_wire()
    assert answered["response_message"] == response.to_wire() or \
        dns.message.from_wire(answered["response_message"]) == response
    assert answered["query_zone"] == b"\x06tapped\x04test\x00"
    assert "query_zone" not in asked and "query_message" not in answered and "response_message" not in asked
    assert check_time(asked, "query", began) == check_time(answered, "query", began)
    assert check_time(answered, "response", began) >= check_time(answered, "query", began)
    servers.wait_until("all frames are counted", lambda: counters(pando)[0] == len(collector.messages()))
    assert counters(pando)[1] == 0


def test_a_name_outside_of_all_zones_has_no_zone(server, collectors):
    collector = collectors()
    pando = server("").start(ZONE)
    wait_for_streams(collector)
    assert pando.ask("elsewhere.test").rcode() == dns.rcode.REFUSED
    wait_for(collector, 2, "elsewhere.test")
    (answered,) = collector.messages("elsewhere.test", "AUTH_RESPONSE")
    assert "query_zone" not in answered


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 loopback")
def test_ipv6_addresses_have_sixteen_octets(server, collectors):
    collector = collectors()
    pando = listen_on_both(server()).start(ZONE)
    wait_for_streams(collector)
    dns.query.udp(dns.message.make_query(f"six.{ZONE}", "A"), "::1", port=pando.port, timeout=20)
    for tapped in wait_for(collector, 2, f"six.{ZONE}"):
        assert tapped["socket_family"] == 2
        assert tapped["query_address"] == tapped["response_address"] == "::1"


@pytest.mark.parametrize("tcp", [False, True], ids=["udp", "tcp"])
def test_an_update_has_a_query_and_a_response(server, collectors, tcp):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    update = dns.update.Update(ZONE, keyring=KEYRING)
    update.add("new", 60, "A", "192.0.2.99")
    ask = dns.query.tcp if tcp else dns.query.udp
    assert ask(update, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
    (asked,) = wait_for(collector, 1, kind="UPDATE_QUERY")
    (answered,) = wait_for(collector, 1, kind="UPDATE_RESPONSE")
    assert update.mac in asked["query_message"]  # a second to_wire() would sign again, maybe in the next second
    assert answered["response_message"][:2] == asked["query_message"][:2]
    assert answered["response_message"][3] & 15 == dns.rcode.NOERROR
    assert answered["query_zone"] == b"\x06tapped\x04test\x00"
    assert answered["query_port"] == asked["query_port"]


def test_malformed_requests_and_dropped_ones(server, collectors):
    """FORMERR is a response as any other; a datagram without a header and a response are no requests."""
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    malformed = bytes.fromhex("beef0100000100000000000003777777")  # the question is cut
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", pando.port))
        for datagram in (b"", b"\xbe", b"\xbe\xef\x80" + bytes(9), malformed[:11]):
            client.send(datagram)
        client.send(malformed)
        assert client.recv(512)[3] & 15 == dns.rcode.FORMERR
    ask_many(pando, f"last.{ZONE}", 1)
    wait_for(collector, 2, f"last.{ZONE}")
    of_malformed = [tapped for tapped in collector.messages()
                    if (tapped.get("query_message") or tapped["response_message"])[:2] == b"\xbe\xef"]
    assert [tapped["type"] for tapped in of_malformed] == ["AUTH_QUERY", "AUTH_RESPONSE"]
    assert of_malformed[0]["query_message"] == malformed
    assert "query_zone" not in of_malformed[1]


def test_the_request_of_a_transfer_is_told_and_its_messages_are_not(server, collectors):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    assert pando.records(ZONE)
    ask_many(pando, f"behind.{ZONE}", 1)
    wait_for(collector, 2, f"behind.{ZONE}")
    by_tcp = [tapped["type"] for tapped in collector.messages(ZONE) if tapped["socket_protocol"] == 2]
    assert by_tcp == ["AUTH_QUERY"]


def test_one_request_in_n_is_told_with_its_response(server, collectors):
    collector = collectors()
    pando = server(", sample: 10").start(ZONE)
    wait_for_streams(collector)
    ask_many(pando, f"sampled.{ZONE}", 1000)
    wait_for(collector, 200, f"sampled.{ZONE}")
    time.sleep(0.2)
    queries = collector.messages(f"sampled.{ZONE}", "AUTH_QUERY")
    responses = collector.messages(f"sampled.{ZONE}", "AUTH_RESPONSE")
    assert len(queries) == len(responses) == 100
    assert {q["query_message"][:2] for q in queries} == {r["response_message"][:2] for r in responses}


@pytest.mark.parametrize("wanted,expected", [
    ("queries", {"AUTH_QUERY"}), ("responses", {"AUTH_RESPONSE"}), ("updates", {"UPDATE_QUERY", "UPDATE_RESPONSE"})])
def test_only_the_wanted_messages_are_told(server, collectors, wanted, expected):
    collector = collectors()
    pando = server(f", messages: [{wanted}]").start(ZONE)
    wait_for_streams(collector)
    ask_many(pando, f"some.{ZONE}", 10)
    update = dns.update.Update(ZONE, keyring=KEYRING)
    update.add("new", 60, "A", "192.0.2.99")
    assert dns.query.udp(update, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
    ask_many(pando, f"some.{ZONE}", 10)
    wait_for(collector, 2 if wanted == "updates" else 20)
    time.sleep(0.2)
    assert {tapped["type"] for tapped in collector.messages()} == expected


def test_fstrm_capture_and_dnstap_read_understand_it(server, tmp_path):
    assert shutil.which("fstrm_capture") and shutil.which("dnstap-read"), "scripts/install-packages test"
    captured = tmp_path / "captured"
    capture = subprocess.Popen(
        ["fstrm_capture", "-t", "protobuf:dnstap.Dnstap", "-u", str(tmp_path / "dnstap.sock"), "-w", str(captured)],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        servers.wait_until("fstrm_capture listens", (tmp_path / "dnstap.sock").exists)
        (tmp_path / "dnstap.sock").chmod(0o666)
        pando = server(workers=2).start(ZONE)
        servers.wait_until("two streams are open", lambda: pando.log().count("dnstap_stream_opened") == 2)
        for number in range(50):
            assert pando.ask(f"n{number}.{ZONE}", tcp=number % 2 == 1).answer
        update = dns.update.Update(ZONE, keyring=KEYRING)
        update.add("new", 60, "A", "192.0.2.99")
        assert dns.query.udp(update, "127.0.0.1", port=pando.port, timeout=20).rcode() == dns.rcode.NOERROR
        time.sleep(0.2)
        pando.stop()  # ends the streams in order
    finally:
        capture.send_signal(signal.SIGINT)
        capture.communicate(timeout=30)
    lines = subprocess.run(["dnstap-read", str(captured)], capture_output=True, text=True, check=True).stdout
    for number in range(50):
        transport = "TCP" if number % 2 == 1 else "UDP"
        told = [line for line in lines.splitlines() if f" n{number}.{ZONE}/IN/A" in line]
        assert len(told) == 2, told
        assert " AQ " in told[0] and "->" in told[0] and f" {transport} " in told[0]
        assert " AR " in told[1] and "<-" in told[1]
    assert " UQ " in lines and " UR " in lines
    details = subprocess.run(["dnstap-read", "-y", str(captured)], capture_output=True, text=True, check=True).stdout
    assert f"query_zone: {ZONE}" in details.lower().replace('"', "").replace(f"{ZONE}.", ZONE)
    assert "parse error" not in lines and "AUTH_RESPONSE" in details


def test_answers_do_not_need_a_collector(server, collectors):
    pando = server().start(ZONE)
    ask_many(pando, f"lost.{ZONE}", 100)
    frames, dropped = counters(pando)
    assert frames == 0 and dropped >= 200
    servers.wait_until("the log tells", lambda: "dnstap_unreachable" in pando.log())
    assert pando.log().count("dnstap_unreachable") == 1, "not for every attempt"
    collector = collectors()
    wait_for_streams(collector)
    ask_many(pando, f"found.{ZONE}", 10)
    assert len(wait_for(collector, 20, f"found.{ZONE}")) == 20
    assert not collector.messages(f"lost.{ZONE}")


def test_a_collector_may_restart(server, collectors):
    collector = collectors()
    pando = server(workers=2).start(ZONE)
    wait_for_streams(collector, 2)
    for turn in range(3):
        collector = collectors()
        wait_for_streams(collector, 2)
        ask_many(pando, f"turn{turn}.{ZONE}", 20)
        wait_for(collector, 40, f"turn{turn}.{ZONE}")
    assert len(collector.streams) == 2


def test_a_collector_that_never_reads_costs_no_answer(server, collectors):
    collector = collectors(reads=False)
    pando = server().start(ZONE)
    wait_for_streams(collector)
    started = counters(pando)
    ask_many(pando, f"unread.{ZONE}", 5000)
    frames, dropped = counters(pando)
    assert dropped > 0
    # What the kernel holds and the worker's buffer: the rest was dropped.
    assert frames - started[0] + dropped - started[1] <= 10_000
    assert frames - started[0] < 10_000
    assert pando.ask(f"unread.{ZONE}", tcp=True).answer
    assert len(collector.streams) == 1, "the stream is kept"
    collectors().close()
    ask_many(pando, f"unread.{ZONE}", 1)
    servers.wait_until("every frame was either sent or dropped",
                       lambda: sum(counters(pando)) - sum(started) >= 10_004)


@pytest.mark.parametrize("greeting", [
    b"220 mail.example ESMTP\r\n", bytes(4096), b"\xff" * 4096, b"\0\0\0\0\xff\xff\xff\xff",
    b"\0\0\0\0\0\0\0\x04\0\0\0\x05", b"\0\0\0\0\0\0\0\x10\0\0\0\1\0\0\0\1\xff\xff\xff\xffabcd", b"\0\0\0\0\0\0"],
    ids=["text", "zeros", "ones", "endless", "finish", "field", "half"])
def test_a_collector_that_talks_nonsense_harms_nobody(server, collectors, greeting):
    bad = collectors(greeting=greeting)
    pando = server().start(ZONE)
    servers.wait_until("the manager has tried", lambda: len(bad.streams) >= 1)
    ask_many(pando, f"any.{ZONE}", 100)
    assert counters(pando)[0] == 0
    assert pando.manager_pid() == pando.process.pid
    good = collectors()
    wait_for_streams(good)
    ask_many(pando, f"good.{ZONE}", 10)
    wait_for(good, 20, f"good.{ZONE}")


def test_a_killed_worker_has_a_successor_with_a_stream_of_its_own(server, collectors):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    os.kill(pando.workers()[0]["pid"], signal.SIGKILL)
    wait_for_streams(collector, 2)
    ask_many(pando, f"next.{ZONE}", 10)
    wait_for(collector, 20, f"next.{ZONE}")
    assert collector.streams[0].ended and not collector.streams[0].stopped
    assert not collector.streams[1].ended


def test_a_worker_keeps_its_stream_without_a_manager_and_gets_one_from_the_next(server, collectors):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    worker = pando.workers()[0]["pid"]
    pando.kill()
    ask_many(pando, f"alone.{ZONE}", 10)
    wait_for(collector, 20, f"alone.{ZONE}")
    pando.start(ZONE)
    wait_for_streams(collector, 2)
    assert pando.workers()[0]["pid"] == worker
    ask_many(pando, f"again.{ZONE}", 10)
    wait_for(collector, 20, f"again.{ZONE}")
    servers.wait_until("the first stream has ended in order", lambda: collector.streams[0].stopped)


def test_a_reload_switches_it_on_and_off(server, collectors, tmp_path):
    collector = collectors()
    pando = server(workers=2)
    with_dnstap = pando.extra
    pando.extra = ""
    pando.write_config()
    pando.start(ZONE)
    ask_many(pando, f"off.{ZONE}", 10)
    assert counters(pando) == (0, 0)
    pando.extra = with_dnstap
    pando.write_config()
    assert pando.control("reload")["restart_needed"] == []
    wait_for_streams(collector, 2)
    ask_many(pando, f"on.{ZONE}", 10)
    wait_for(collector, 20, f"on.{ZONE}")
    pando.extra = settings(tmp_path, ", sample: 5, messages: [queries]")
    pando.write_config()
    pando.control("reload")
    ask_many(pando, f"fewer.{ZONE}", 100)
    servers.wait_until("1 in 5", lambda: len(collector.messages(f"fewer.{ZONE}")) == 20)
    assert len(collector.streams) == 2, "the streams go on"
    pando.extra = ""
    pando.write_config()
    pando.control("reload")
    servers.wait_until("the streams end in order", lambda: all(stream.stopped for stream in collector.streams))
    before = counters(pando)
    ask_many(pando, f"off.{ZONE}", 10)
    assert counters(pando) == before
    assert not collector.messages(f"off.{ZONE}")


def test_a_stop_ends_the_streams_in_order(server, collectors):
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    ask_many(pando, f"end.{ZONE}", 5)
    pando.stop()
    servers.wait_until("STOP", lambda: collector.streams[0].stopped)
    assert len(collector.messages(f"end.{ZONE}")) == 10


def test_a_flood_arrives_whole_or_is_counted(server, collectors):
    """Many datagrams at once, so that batches are full."""
    collector = collectors()
    pando = server().start(ZONE)
    wait_for_streams(collector)
    before = sum(counters(pando))
    query = dns.message.make_query(f"flood.{ZONE}", "A")
    answers = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", pando.port))
        for number in range(20_000):
            query.id = number
            client.send(query.to_wire())
            client.settimeout(0)
            while True:
                try:
                    client.recv(4096)
                    answers += 1
                except OSError:
                    break
        client.settimeout(1)
        try:
            while client.recv(4096):
                answers += 1
        except OSError:
            pass
    assert answers > 0
    asked = pando.workers()[0]["counters"]["queries_udp"]
    servers.wait_until("sent and dropped are all", lambda: sum(counters(pando)) >= 2 * answers + before)
    frames, _ = counters(pando)
    servers.wait_until("what was sent has come", lambda: len(collector.messages()) >= frames)
    assert sum(counters(pando)) <= 2 * (asked + 20)
    for tapped in collector.messages():
        assert name_of(tapped) in (f"flood.{ZONE}", ZONE, "")


def test_bad_values_are_refused_with_their_line(server):
    pando = server(", sample: 0")
    done = subprocess.run(pando.command(), capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "server.dnstap.sample" in done.stdout + done.stderr
    assert f"{pando.config.name}:" in done.stdout + done.stderr
