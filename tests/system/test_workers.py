"""Workers that come, go and die while dnsperf asks: no query is lost."""

import itertools
import os
import signal
import socket
import subprocess

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "load.test"
NAMES = 500
ZONE_FILE = ("$TTL 300\n@ SOA ns1 admin 1 3600 600 86400 300\n@ NS ns1\nns1 A 192.0.2.1\n" +
             "".join(f"host{number} A 192.0.2.{number % 250}\n" for number in range(NAMES)))
SHARE = 200  # queries that show that a worker takes part


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "load.zone").write_text(ZONE_FILE)
    instance = pando([{"name": ZONE, "file": str(tmp_path / "load.zone"),
                       "allow-update": [{"address": "127.0.0.0/8"}],
                       "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=2, limits="{tcp-idle: 1h}")
    instance.start(ZONE)
    await_serving(instance, 2)
    return instance


@pytest.fixture
def load(server):
    running = servers.Dnsperf(server.port, [f"host{number}.{ZONE} A" for number in range(NAMES)])
    yield running
    running.end()


def await_serving(server, count):
    """All workers, when there are `count` and all of them serve."""
    def all_serve():
        rows = server.workers()
        return rows if [row["state"] for row in rows.values()] == ["serving"] * count else None
    return servers.wait_until(f"{count} workers serve", all_serve, seconds=60)


def pids(server):
    return {slot: row.get("pid") for slot, row in server.workers().items()}


def kill_worker(server, slot):
    """kill -9, and the wait for the next one in its slot."""
    victim = pids(server)[slot]
    os.kill(victim, signal.SIGKILL)

    def is_replaced():
        row = server.workers()[slot]
        return row["state"] == "serving" and row["pid"] != victim
    servers.wait_until(f"the worker in slot {slot} is replaced", is_replaced)


def await_share(server, slots):
    """Each of these workers, and no other, gets its share of the load from now on."""
    def counters():
        return {slot: row["counters"].get("queries_udp", 0) for slot, row in server.workers().items()}

    def all_have_more():
        now = counters()
        return now if all(now[slot] - before[slot] >= SHARE for slot in slots) else None
    before = counters()
    assert set(before) == set(slots)
    try:
        print("queries of the workers:", servers.wait_until(f"workers {slots} take their share", all_have_more, seconds=60))
    except AssertionError as error:
        raise AssertionError(f"{error}: {before}, then {counters()}\n{server.log()}") from error


def nothing_lost(load):
    result = load.stop()
    print(result.text)
    assert result.lost == 0 and result.sent == result.completed + result.interrupted, result.text
    assert result.rcodes == {"NOERROR": result.completed}, result.text


def update(server, name):
    message = dns.update.UpdateMessage(ZONE)
    message.replace(name, 60, "A", "192.0.2.99")
    return dns.query.udp(message, "127.0.0.1", port=server.port, timeout=20).rcode()


def test_an_added_worker_takes_its_share_and_a_removed_one_takes_no_query_with_it(server, load):
    await_share(server, [0, 1])
    server.control("worker", "add")
    await_serving(server, 3)
    await_share(server, [0, 1, 2])
    server.control("worker", "remove")
    await_serving(server, 2)
    await_share(server, [0, 1])
    nothing_lost(load)


@pytest.mark.parametrize("count", [1, 2])
def test_a_restart_replaces_all_workers_and_takes_no_query_with_it(server, load, count):
    if count == 1:
        server.control("worker", "remove")
        await_serving(server, 1)
    before = set(pids(server).values())
    for _ in range(2):
        rows = server.control("worker", "restart")["workers"]
        after = {row["pid"] for row in rows}
        assert [row["state"] for row in rows] == ["serving"] * count
        assert len(after) == count and not after & before
        before = after
        await_share(server, sorted(row["slot"] for row in rows))
    nothing_lost(load)


def test_top_shows_the_load_of_each_worker(server, load):
    await_share(server, [0, 1])
    rates = server.control("top", "--times", "1")
    assert [worker["slot"] for worker in rates["workers"]] == [0, 1]
    assert all(worker["queries"] > 0 and worker["response_us"] > 0 for worker in rates["workers"])
    assert rates["total"]["queries"] == pytest.approx(sum(worker["queries"] for worker in rates["workers"]))


def test_top_shows_the_zones_that_are_asked_for(server, load):
    def rates():
        found = {zone["zone"]: zone["queries"] for zone in server.control("top", "--times", "1")["zones"]}
        return found if f"{ZONE}." in found else None
    assert list(servers.wait_until("the zone is shown", rates)) == [f"{ZONE}."]


def test_a_mistyped_number_of_workers_changes_nothing(server):
    before = pids(server)
    for words, reason in ((("worker-remove", 3), "there are 2 workers, not 3"),
                          (("worker-add", 2**32 - 1), "at most 1024 workers"), (("worker-add", 1023), "at most 1024")):
        verb, count = words
        with servers.pando_control.Control(server.folder / "run") as control, \
                pytest.raises(servers.pando_control.ControlError, match=reason):
            control.call(verb, count=count)
    assert pids(server) == before


def test_the_list_tells_what_mapping_the_store_costs(server):
    for row in server.workers().values():
        with open(f"/proc/{row['pid']}/status") as status:
            told = next(int(line.split()[1]) for line in status if line.startswith("VmPTE:"))
        assert 0 < row["page_tables"] <= told * 1024


def test_the_list_counts_types_rcodes_opcodes_and_times(server):
    for name, rdtype in (("ns1", "A"), ("ns1", "AAAA"), ("missing", "MX")):
        assert server.ask(f"{name}.{ZONE}", rdtype, tcp=rdtype == "MX") is not None
    rows = server.workers().values()
    total = lambda member, name: sum(row[member].get(name, 0) for row in rows)
    assert total("types", "AAAA") == 1 and total("types", "MX") == 1 and total("types", "A") == 1
    assert total("rcodes", "NXDOMAIN") == 1 and total("rcodes", "NOERROR") >= 2
    assert total("opcodes", "QUERY") >= 3 and total("opcodes", "UPDATE") == 0
    responses = sum(count for row in rows for name, count in row["counters"].items() if name.startswith("responses_below_us_"))
    assert responses == sum(sum(row["rcodes"].values()) for row in rows)
    assert total("counters", "response_us") > 0


def test_workers_may_come_and_go_many_times(server, load):
    for _ in range(3):
        server.control("worker", "add", "2")
        await_serving(server, 4)
        server.control("worker", "remove", "3")
        await_serving(server, 1)
        server.control("worker", "add")
        await_serving(server, 2)
    await_share(server, [0, 1])
    nothing_lost(load)


def test_a_killed_worker_is_replaced_and_takes_no_query_with_it(server, load):
    await_share(server, [0, 1])
    for slot in (0, 1, 0):
        kill_worker(server, slot)
        await_share(server, [0, 1])
    nothing_lost(load)


def test_what_a_killed_worker_had_pinned_is_given_back(server, load):
    def holder():
        return next((slot for slot, row in server.workers().items() if row.get("leases")), None)

    def waiting():
        return server.control("status")["store"]["chunks_waiting"]

    def replace_every_name():
        """Until the blocks of the transfer's version are nobody else's."""
        message = dns.update.UpdateMessage(ZONE)
        address = f"10.0.0.{next(turns)}"
        for number in range(NAMES):
            message.replace(f"host{number}", 300, "A", address)
        assert dns.query.tcp(message, "127.0.0.1", port=server.port, timeout=20).rcode() == dns.rcode.NOERROR
        return waiting() > 0
    turns = itertools.count(1)
    query = dns.message.make_query(ZONE, "AXFR").to_wire()
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        for _ in range(2000):  # answers to all of them fit into no buffer: one transfer stands still
            client.sendall(len(query).to_bytes(2, "big") + query)
        servers.wait_until("a transfer has its lease", lambda: holder() is not None)
        servers.wait_until("its version holds memory back", replace_every_name)
        kill_worker(server, holder())
        assert holder() is None
        servers.wait_until("the memory is free again", lambda: waiting() == 0)
    nothing_lost(load)


def test_workers_answer_while_the_manager_is_dead_and_the_next_one_adopts_them(server, load):
    assert update(server, "before") == dns.rcode.NOERROR
    workers = pids(server)
    server.kill()
    assert update(server, "meanwhile") == dns.rcode.SERVFAIL
    assert server.ask(f"before.{ZONE}").answer
    server.start(ZONE)
    await_serving(server, 2)
    assert pids(server) == workers
    await_share(server, [0, 1])
    assert update(server, "after") == dns.rcode.NOERROR
    assert not server.ask(f"meanwhile.{ZONE}").answer
    nothing_lost(load)


def test_adopted_workers_can_be_killed_and_removed(server, load):
    for _ in range(3):
        server.kill()
        server.start(ZONE)
        await_serving(server, 2)
    server.control("worker", "add")
    await_serving(server, 3)
    kill_worker(server, 0)
    server.control("worker", "remove", "2")
    await_serving(server, 1)
    await_share(server, [0])
    nothing_lost(load)


def test_a_manager_killed_while_it_starts_workers_leaves_nobody_unheard(server, load):
    for _ in range(4):
        server.control("worker", "add", "2")
        server.kill()
        server.start(ZONE)
        await_serving(server, 2)
    await_share(server, [0, 1])
    nothing_lost(load)


def test_a_worker_that_cuts_its_slot_file_off_is_replaced_and_the_manager_goes_on(server):
    manager, workers = server.process.pid, pids(server)
    os.truncate(server.folder / "run" / "slots" / "0.slot", 0)

    def is_replaced():
        row = server.workers().get(0, {})
        return row.get("state") == "serving" and row.get("pid") != workers[0]
    servers.wait_until("it is replaced", is_replaced)
    assert pids(server)[1] == workers[1] and server.control("status")["pid"] == manager
    assert update(server, "after") == dns.rcode.NOERROR
    for _ in range(50):
        assert server.ask(f"after.{ZONE}").answer


# A manager that is killed while it starts a worker -------------------------------------------------------------------

START_ZONE = """$TTL 300
@ SOA ns admin 1 3600 600 86400 300
@ NS ns
ns A 192.0.2.1
"""


@pytest.mark.parametrize("worker", ["runs", "is held before its Hello", "runs on"])
@pytest.mark.parametrize("point", ["worker-page-made", "worker-started", "worker-recorded"])
def test_the_next_manager_has_a_worker(pando, tmp_path, point, worker):
    path, held = tmp_path / "example.zone", tmp_path / "held"
    path.write_text(START_ZONE)
    server = pando([{"name": "example", "file": str(path)}], workers=1)
    if worker != "runs":
        held.touch()
        server.pause_at = ("worker-started", held)
    server.crash_at = point
    with pytest.raises(AssertionError):
        server.start("example")
    assert server.process.wait(60) == -signal.SIGKILL
    server.crash_at = server.pause_at = None
    if worker == "runs on":  # comes while the next manager starts
        held.unlink()
    server.start("example", seconds=60)
    rows = server.workers().values()
    assert [row["state"] for row in rows] == ["serving"]
    assert server.ask("ns.example").answer


@pytest.mark.parametrize("slot", [0, 7])
def test_a_worker_that_nobody_wants_says_so_and_ends(server, slot):
    """A service manager that started it would start it again and again."""
    done = subprocess.run([servers.build_folder() / "pando-worker", "--slot", str(slot), "--run-directory",
                           server.folder / "run"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3, done.stderr
    told = [line for line in (done.stdout + done.stderr).splitlines() if "worker_sent_away" in line]
    assert len(told) == 1 and ("another process has the slot" if slot == 0 else "server.workers") in told[0], told
    await_serving(server, 2)
