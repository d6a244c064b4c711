"""Dynamic updates as clients see them: nsupdate, dnsperf beside it, looks from other sockets."""

import concurrent.futures
import socket
import struct
import subprocess
import threading
import time

import dns.edns
import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers

KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})

ZONE = """$ORIGIN example.
$TTL 300
@ SOA ns admin 1 3600 600 1209600 300
@ NS ns
ns A 192.0.2.1
counter TXT "0"
"""


@pytest.fixture
def server(tmp_path, pando):
    path = tmp_path / "example.zone"
    path.write_text(ZONE + "".join(f"host{i} A 192.0.2.{i % 250}\n" for i in range(1000)))
    instance = pando([{"name": "example", "file": str(path), "allow-update": [{"key": KEY["name"]}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}], keys=[KEY])
    return instance.start("example")


def send(server, update, tcp=False, timeout=20):
    ask = dns.query.tcp if tcp else dns.query.udp
    return ask(update, "127.0.0.1", port=server.port, timeout=timeout)


def new_update():
    return dns.update.Update("example", keyring=KEYRING)


def test_history_journal_and_log_name_key_and_client(server):
    update = new_update()
    update.add("who", 60, "A", "192.0.2.9")
    assert send(server, update).rcode() == dns.rcode.NOERROR
    for _ in range(2):
        [changeset] = server.control("zone", "history", "example")["changesets"]
        assert (changeset["by"], changeset["client"]) == (f"key {KEY['name']}.", "127.0.0.1")
        records = server.control("journal", "print", "example")["records"]
        assert [(one["by"], one["client"]) for one in records if one["kind"] == "changeset"] == [
            (f"key {KEY['name']}.", "127.0.0.1")]
        server.kill()  # which the next start gets from the store
        server.start("example")


def test_ten_thousand_nsupdate_changes_while_dnsperf_asks(tmp_path, server):
    queries = tmp_path / "queries"
    queries.write_text("".join(f"host{i}.example A\n" for i in range(1000)))
    load = subprocess.Popen(
        ["dnsperf", "-s", "127.0.0.1", "-p", str(server.port), "-d", str(queries), "-Q", "2000", "-l", "3600",
         "-t", "10"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        text = f"server 127.0.0.1 {server.port}\nkey {KEY['algorithm']}:{KEY['name']} {KEY['secret']}\nzone example\n"
        for i in range(10_000):
            text += f"update add n{i}.example 60 A 10.0.{i // 250}.{i % 250}\n"
            if i % 10 == 9:
                text += "send\n"
        done = subprocess.run(["nsupdate"], input=text, text=True, capture_output=True, timeout=300)
        assert done.returncode == 0 and not done.stderr, done.stderr
    finally:
        load.send_signal(2)
        output = load.communicate(timeout=60)[0]
    fields = dict(line.strip().split(":", 1) for line in output.splitlines() if ":" in line)
    assert int(fields["Queries lost"].split()[0]) == 0, output
    assert fields["Response codes"].split()[0] == "NOERROR" and "100.00%" in fields["Response codes"], output
    records = server.records("example")
    for i in range(10_000):
        assert f"n{i}.example. 60 1 10.0.{i // 250}.{i % 250}" in records


@pytest.mark.release
def test_no_worker_shows_old_data_after_the_acknowledgement(server):
    """Each look comes from a socket of its own, so the kernel spreads them over the workers."""
    looks = 0
    query = dns.message.make_query("counter.example", "TXT", use_edns=-1)
    wire = query.to_wire()
    sockets = []
    for _ in range(16):
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.connect(("127.0.0.1", server.port))
        sock.settimeout(20)
        sockets.append(sock)
    rounds = 700
    for number in range(1, rounds + 1):
        update = new_update()
        update.replace("counter", 300, "TXT", str(number))
        assert send(server, update).rcode() == 0
        expected = struct.pack("B", len(str(number))) + str(number).encode()
        for _ in range(9):
            for sock in sockets:
                sock.send(wire)
            for sock in sockets:
                assert sock.recv(4096).endswith(expected)
                looks += 1
    for sock in sockets:
        sock.close()
    assert looks >= 100_000
    busy = [row for row in server.workers().values() if row["counters"].get("queries-udp", row["counters"].get("queries", 1)) > 0]
    assert len(busy) == 2, "both workers took part"


def test_readers_see_whole_versions_only(server):
    """One update changes two names; no answer may mix old and new across ... one transfer's records."""
    stop = threading.Event()

    def read():
        """Pairs of values seen by transfers; whatever goes wrong in one comes out of result()."""
        seen = []
        while not stop.is_set():
            lines = server.records("example")
            seen.append({line.rsplit('"', 2)[1] for line in lines if line.startswith(("pair1.", "pair2."))})
        return seen

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reader = pool.submit(read)
        try:
            for number in range(200):
                update = new_update()
                update.replace("pair1", 300, "TXT", f'"v{number}"')
                update.replace("pair2", 300, "TXT", f'"v{number}"')
                assert send(server, update).rcode() == 0
        finally:
            stop.set()
        seen = reader.result()
    assert [values for values in seen if len(values) > 1] == []
    assert sum(len(values) for values in seen) > 1, "transfers ran beside the updates"


def test_rcodes_that_clients_steer_by(server):
    update = new_update()
    update.present("nowhere")
    assert send(server, update).rcode() == dns.rcode.NXDOMAIN
    update = new_update()
    update.absent("host1")
    assert send(server, update).rcode() == dns.rcode.YXDOMAIN
    update = new_update()
    update.present("host1", "TXT")
    assert send(server, update).rcode() == dns.rcode.NXRRSET
    update = new_update()
    update.absent("host1", "A")
    assert send(server, update).rcode() == dns.rcode.YXRRSET
    update = dns.update.Update("other", keyring=KEYRING)
    update.add("x", 60, "A", "192.0.2.1")
    assert send(server, update).rcode() == dns.rcode.NOTAUTH
    update = new_update()
    update.add("www.other.", 60, "A", "192.0.2.1")
    assert send(server, update).rcode() == dns.rcode.NOTZONE
    update = dns.update.Update("example")
    update.add("x", 60, "A", "192.0.2.1")
    assert send(server, update).rcode() == dns.rcode.REFUSED
    assert server.serial("example") == 1, "nothing changed, so the serial stays"


@pytest.mark.release
def test_a_flood_of_forged_updates_holds_no_client_of_another_worker_up(server):
    """Who floods knows a key's name. All of it comes from one socket, hence to one worker; what clients of that one
    lose is lost in its socket's queue."""
    forged = dns.update.Update("example", keyring=dns.tsigkeyring.from_text({KEY["name"]: "d3Jvbmc="}))
    forged.add("forged", 60, "A", "192.0.2.1")
    octets = bytearray(forged.to_wire())
    stop = threading.Event()

    def flood():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.connect(("127.0.0.1", server.port))
            number = 0
            while not stop.is_set():
                number += 1
                struct.pack_into("!H", octets, 0, number % 65536)
                sender.send(octets)

    def forwarded():
        return {slot: row["counters"]["forwarded_updates"] for slot, row in server.workers().items()}

    def honest(number):
        update = new_update()
        update.add(f"honest{number}", 60, "A", "192.0.2.2")
        try:
            return send(server, update, timeout=10).rcode() == dns.rcode.NOERROR
        except dns.exception.Timeout:
            return False

    with concurrent.futures.ThreadPoolExecutor(17) as pool:
        flooding = pool.submit(flood)
        try:
            servers.wait_until("the flood is there", lambda: max(forwarded().values()) > 1000)
            answered = sum(pool.map(honest, range(32)))
            counts = forwarded()
        finally:
            stop.set()
            flooding.result()
    assert 0 < min(counts.values()) <= answered, (counts, answered)
    assert not servers.wait_until("the queue is empty", lambda: server.ask("forged.example")).answer


def test_floods_of_forged_updates_to_some_workers_leave_the_clients_of_others_alone(tmp_path, pando):
    """The kernel gives all that one socket sends to one worker: two of four are flooded, one socket each."""
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    server = pando([{"name": "example", "file": str(path), "allow-update": [{"key": KEY["name"]}]}], keys=[KEY],
                   workers=4).start("example")
    forged = dns.update.Update("example", keyring=dns.tsigkeyring.from_text({KEY["name"]: "d3Jvbmc="}))
    forged.add("forged", 60, "A", "192.0.2.1")
    stop = threading.Event()

    def forwarded():
        return {slot: row["counters"]["forwarded_updates"] for slot, row in server.workers().items()}

    def connected():
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.settimeout(20)
        made.connect(("127.0.0.1", server.port))
        return made

    def exchange(connection, octets):
        connection.send(octets)
        return connection.recv(4096)[3] & 0x0F

    def worker_of(connection):
        before = forwarded()
        assert exchange(connection, forged.to_wire()) == dns.rcode.NOTAUTH
        return next(slot for slot, count in forwarded().items() if count != before[slot])

    def flood(connection):
        octets, number = bytearray(forged.to_wire()), 0
        while not stop.is_set():
            number += 1
            struct.pack_into("!H", octets, 0, number % 65536)
            connection.send(octets)

    connections = {}
    while len(connections) < 4:
        made = connected()
        slot = worker_of(made)
        made.close() if slot in connections else connections.update({slot: made})
    flooded, spared = sorted(connections)[:2], sorted(connections)[2:]
    before = forwarded()
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        floods = [pool.submit(flood, connections[slot]) for slot in flooded]
        try:
            servers.wait_until("the floods are there",
                               lambda: all(forwarded()[slot] > before[slot] + 1000 for slot in flooded))
            for number in range(20):
                for slot in spared:
                    update = new_update()
                    update.add(f"honest{number}-{slot}", 60, "A", "192.0.2.2")
                    assert exchange(connections[slot], update.to_wire()) == dns.rcode.NOERROR
        finally:
            stop.set()
            for done in floods:
                done.result()
    after = forwarded()
    assert [after[slot] - before[slot] for slot in spared] == [20, 20]
    for connection in connections.values():
        connection.close()
    servers.wait_until("the queues are empty", lambda: server.serial("example") == 41)
    assert not servers.wait_until("the queues are empty", lambda: server.ask("forged.example")).answer


def test_a_rule_about_the_key_that_signs_brings_no_unsigned_update_to_the_manager(tmp_path, pando):
    """The worker knows what such a rule says of these, and gives the manager's answer."""
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    key = {**KEY, "name": "host.example"}
    server = pando([{"name": "example", "file": str(path),
                     "allow-update": [{"address": "127.0.0.0/8", "names": ["self", "_acme-challenge.self"]}]}],
                   keys=[key]).start("example")

    def forwarded():
        return sum(row["counters"]["forwarded_updates"] for row in server.workers().values())

    def update(owner, keyring=None):
        message = dns.update.Update("example", keyring=keyring)
        message.use_edns()
        message.add(owner, 60, "TXT", "new")
        return message

    for tcp in (False, True):
        answer = send(server, update("host"), tcp)
        assert answer.rcode() == dns.rcode.REFUSED
        assert [option.code for option in answer.options] == [dns.edns.EDECode.PROHIBITED]
    assert forwarded() == 0
    assert "update_refused" not in server.log()
    keyring = dns.tsigkeyring.from_text({key["name"]: key["secret"]})
    assert send(server, update("other", keyring)).rcode() == dns.rcode.REFUSED
    assert send(server, update("_acme-challenge.host", keyring)).rcode() == dns.rcode.NOERROR
    assert forwarded() == 2
    assert server.ask("_acme-challenge.host.example", "TXT").answer
    assert not server.ask("host.example", "TXT").answer


@pytest.mark.parametrize("policy", ["increment", "unixtime", "date"])
def test_serials_follow_the_policy(tmp_path, pando, policy):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    server = pando([{"name": "example", "file": str(path), "serial-policy": policy,
                     "allow-update": [{"address": "127.0.0.0/8"}]}]).start("example")

    def by_the_clock():
        now = time.time()
        return {"increment": 1, "unixtime": int(now), "date": int(time.strftime("%Y%m%d", time.gmtime(now))) * 100}[policy]

    serials, earliest = [], by_the_clock()
    for number in range(3):
        update = dns.update.Update("example")
        update.add(f"new{number}", 60, "A", "192.0.2.1")
        assert send(server, update).rcode() == dns.rcode.NOERROR
        serials.append(server.serial("example"))
    assert serials == sorted(set(serials))
    # Three in one second, or of one day, go on from the one before.
    assert earliest <= serials[0] and serials[-1] <= by_the_clock() + 3


def test_large_update_over_tcp(server):
    update = new_update()
    for i in range(1500):
        update.add(f"big{i}", 60, "TXT", f"value {i}")
    assert len(update.to_wire(max_size=65535)) > 30_000
    assert send(server, update, tcp=True).rcode() == 0
    assert server.ask("big1499.example", "TXT").answer
    assert server.serial("example") == 2


def test_the_largest_update_that_tcp_has_room_for(server):
    def update_with(octets):
        update = new_update()
        for i in range(260):
            update.add(f"big{i:03}", 60, "TXT", "x" * 231)
        update.add("rest", 60, "TXT", "x" * octets)
        return update

    room = 65535 - len(update_with(1).to_wire(max_size=65535))
    assert 0 <= room < 254, "another number of records"
    update = update_with(1 + room)
    assert len(update.to_wire(max_size=65535)) == 65535
    assert send(server, update, tcp=True).rcode() == 0
    assert server.ask("big259.example", "TXT").answer and server.ask("rest.example", "TXT").answer
    assert server.serial("example") == 2


def test_more_updates_one_after_the_other_than_a_worker_may_have_under_way(server):
    """The manager answers them; the worker must hear of that before its places are used up."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect(("127.0.0.1", server.port))
        client.settimeout(20)
        for i in range(600):
            update = new_update()
            update.replace("counter", 60, "TXT", str(i))
            wire = update.to_wire()
            client.send(wire)
            response = dns.message.from_wire(client.recv(4096), keyring=KEYRING, request_mac=update.mac)
            assert (response.id, response.rcode()) == (update.id, dns.rcode.NOERROR)
    assert server.ask("counter.example", "TXT").answer[0][0].strings == (b"599",)
    server.stop()  # also within its time, with answered requests that the worker has not heard of


def test_manager_gone_means_servfail_for_updates_and_answers_for_queries(server):
    server.kill()
    assert server.ask("host1.example").answer
    update = new_update()
    update.add("lost", 60, "A", "192.0.2.1")
    started = time.monotonic()
    assert send(server, update, tcp=True).rcode() == dns.rcode.SERVFAIL
    assert time.monotonic() - started < 5, "soon, not by time-out"
    before = {row for row in server.left_over()}
    server.start("example")
    servers.wait_until("updates work again", lambda: send(server, update).rcode() == 0)
    assert server.ask("lost.example").answer
    assert {row for row in server.left_over()} == before, "the workers were adopted"


def test_acknowledged_updates_survive_the_loss_of_the_live_store(server):
    """A host restart: shared memory is gone, zone file and journal remain."""
    import shutil
    for i in range(50):
        update = new_update()
        update.add(f"kept{i}", 60, "A", "192.0.2.7")
        assert send(server, update).rcode() == 0
    server.kill()
    for pid in server.left_over():
        import os
        os.kill(pid, 9)
    shutil.rmtree(server.store)
    server.start("example")
    for i in range(50):
        assert server.ask(f"kept{i}.example").answer, i
    assert server.serial("example") == 51


def test_knsupdate(server):
    text = (f"server 127.0.0.1 {server.port}\nkey {KEY['algorithm']}:{KEY['name']}:{KEY['secret']}\nzone example.\n"
            "add fromknot.example. 60 A 192.0.2.9\nsend\nquit\n")
    done = subprocess.run(["knsupdate"], input=text, text=True, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr + done.stdout
    assert server.ask("fromknot.example").answer
