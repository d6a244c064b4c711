"""A fleet: one primary, secondaries by catalog zone, NOTIFY and IXFR, and dnsdist in front, each on a host of its own.

Updates come all the time, and each kind of fault hits a node. No answer was ever untrue, no node goes back, and all
have the same contents in the end. PANDO_FULL=1 has 20 secondaries and 1,000 updates a second, each fault hits several,
and each node has recovered before the next fault. Times are printed (pytest -s) and decide nothing.
FLEET_RATE, FLEET_DELAY: updates per second in all; the zones' notify-delay."""

import json
import os
import pathlib
import time

import pytest

import servers
from namespaces import Lan
from nodes import (KEYRING, NEXT, THIS, UPDATE_KEY, Dnsdist, Node, primary_sections, secondary_sections,
                   tier_sections)
from traffic import BusyZone, Probe, Questions, Traffic, UpdateStream, host_addresses, zone_text

FULL = bool(os.environ.get("PANDO_FULL"))
SECONDARIES = 20 if FULL else 6
QUIET = 20 if FULL else 2  # seconds without a fault, for the times
AWAY = 2 if FULL else 1  # seconds for which a node is cut off
RATE = int(os.environ.get("FLEET_RATE", 1000 if FULL else 500))
DELAY = os.environ.get("FLEET_DELAY", "100ms")
PRIMARY, FRONT = "192.0.2.1", "192.0.2.53"
BUSY = ["busy0.test", "busy1.test"]
QUESTIONS_PER_SECOND = 200


class Fleet:
    def __init__(self, folder):
        self.folder = folder
        self.lan = Lan()
        files = {}
        for zone in BUSY:
            files[zone] = folder / f"{zone}.zone"
            files[zone].write_text(zone_text())
        addresses = {f"s{number}": f"192.0.2.{100 + number}" for number in range(1, SECONDARIES + 1)}
        self.primary = Node(folder / "p", self.lan, "p", PRIMARY, primary_sections(files, addresses, DELAY))
        self.secondaries = [Node(folder / name, self.lan, name, address, secondary_sections(PRIMARY), [FRONT])
                            for name, address in addresses.items()]
        self.front = Dnsdist(folder / "front", self.lan, FRONT, addresses, BUSY[0])
        self.zones = [BusyZone(zone) for zone in BUSY]
        self.traffic = None
        self.recovering = []  # (what, node, begin)
        self.faults = []  # (what, name of the node, begin, end)

    def start(self):
        for node in self.nodes():
            node.launch()
        for node in self.nodes():
            node.await_ready()
        self.front.start()
        self.traffic = Traffic(self.lan.hub, self.make_traffic)
        self.traffic.start()
        self.await_(lambda: all(probe.number >= 0 for probe in self.probes.values()), "all nodes answer")
        self.await_(lambda: self.questions.answered, "the front answers")

    def nodes(self):
        return [self.primary, *self.secondaries]

    def make_traffic(self):
        self.streams = [UpdateStream(zone, PRIMARY, UPDATE_KEY, RATE / len(BUSY)) for zone in self.zones]
        self.probes = {(node.name, zone.name): Probe(node.name, zone, node.address, 0.025)
                       for node in self.nodes() for zone in self.zones}
        self.questions = Questions(self.zones, FRONT, QUESTIONS_PER_SECOND)
        return [*self.streams, *self.probes.values(), self.questions]

    def await_(self, condition, what):
        def is_so():
            self.traffic.check()
            return condition()
        servers.wait_until(what, is_so, 180)

    def await_updates(self):
        """Each zone has taken an update that was not sent before."""
        before = {zone.name: zone.sent for zone in self.zones}
        self.await_(lambda: all(zone.acknowledged > before[zone.name] for zone in self.zones), "updates go on")

    def caught_up(self, node):
        """The node has come to where the zones are now."""
        now = {zone.name: zone.acknowledged for zone in self.zones}
        self.await_(lambda: all(self.probes[node.name, zone].number >= number for zone, number in now.items()),
                    f"{node.name} has caught up")

    def fault(self, what, node, *steps):
        """Does the steps; the fault ends when the node serves what was acknowledged after the last one. A secondary
        may recover beside the next fault, to save time."""
        begin = time.monotonic()
        for step in steps:
            step()
            self.traffic.check()
        self.await_updates()
        self.recovering.append((what, node, begin))
        if FULL or node is self.primary:
            self.recover()

    def recover(self):
        for what, node, begin in self.recovering:
            for one in self.secondaries if node is self.primary else [node]:
                self.caught_up(one)
            self.faults.append((what, node.name, begin, time.monotonic()))
        self.recovering.clear()

    def close(self):
        if self.traffic and self.traffic.is_alive():
            self.traffic.ending.set()
            self.traffic.join()
        problems = []
        for server in [self.front, *self.nodes()]:
            try:
                server.stop() if server is self.front else server.clean()
            except Exception as problem:  # all of them are ended
                problems.append(str(problem))
        self.lan.close()
        assert not problems, problems


@pytest.fixture
def fleet(tmp_path):
    made = Fleet(tmp_path)
    yield made
    made.close()


def test_a_fleet(fleet):
    fleet.start()
    begin, before = time.monotonic(), costs(fleet)
    time.sleep(QUIET)
    fleet.await_updates()
    quiet, spent = (begin, time.monotonic()), costs(fleet) - before
    break_each(fleet)
    members_come_and_go(fleet)
    disturbed = (quiet[1], time.monotonic())
    settle(fleet)
    report(fleet, quiet, disturbed, spent)
    compare_contents(fleet)


def test_a_tier(tmp_path):
    """A secondary of the primary feeds others: what is served, and which zones, goes through it."""
    lan = Lan()
    (tmp_path / "zone").write_text(zone_text())
    sections = primary_sections({BUSY[0]: tmp_path / "zone"}, {"tier": "192.0.2.2"}, "0")
    nodes = [Node(tmp_path / name, lan, name, address, these) for name, address, these in (
        ("p", PRIMARY, sections), ("tier", "192.0.2.2", tier_sections(PRIMARY, {"edge": "192.0.2.3"})),
        ("edge", "192.0.2.3", secondary_sections("192.0.2.2")))]
    zone = BusyZone(BUSY[0])
    traffic = Traffic(lan.hub, lambda: [UpdateStream(zone, PRIMARY, UPDATE_KEY, 100),
                                        Probe("edge", zone, "192.0.2.3", 0.025)])
    try:
        for node in nodes:
            node.launch()
        for node in nodes:
            node.await_ready()
        traffic.start()
        stream, probe = traffic.parts
        servers.wait_until("updates come to the edge", lambda: traffic.check() or probe.number >= 100, 90)
        nodes[1].kill_manager()
        nodes[1].launch()
        served = probe.number
        servers.wait_until("and go on", lambda: traffic.check() or probe.number >= served + 100, 90)
        stream.ended = True
        servers.wait_until("all are there", lambda: not stream.under_way and probe.number == zone.sent, 90)
        traffic.stop()
        contents = []
        for node in nodes:
            with node.host.inside():
                contents.append(node.records(BUSY[0], KEYRING))
        assert contents[0] == contents[1] == contents[2] and len(contents[0]) > 50
        nodes[0].control("zone", "add", "late.test", "--template", "member", "--file", str(tmp_path / "zone"))
        servers.wait_until("late.test is served", lambda: rcode(nodes[2], "late.test") == 0, 90)
    finally:
        traffic.ending.set()
        for node in nodes:
            node.clean()
        lan.close()


def break_each(fleet):
    """Each kind of fault hits another node, and the primary as well."""
    turns = iter(fleet.secondaries * 2)
    for _ in range(3 if FULL else 1):
        for fault in (killed_worker, killed_manager, lost_memory, cut_off, without_primary, upgraded,
                      killed_for_a_while):
            fault(fleet, next(turns))
    fleet.recover()
    for fault in (killed_manager, upgraded, cut_off, lost_memory):
        fault(fleet, fleet.primary)
    fleet.fault("front killed", fleet.secondaries[0], fleet.front.kill, fleet.front.start, lambda: answers_go_on(fleet))
    fleet.recover()


def answers_go_on(fleet):
    before = fleet.questions.answered
    fleet.await_(lambda: fleet.questions.answered > before + 50, "the front answers")


def killed_worker(fleet, node):
    fleet.fault("worker killed", node, node.kill_worker)


def killed_manager(fleet, node):
    fleet.fault("manager killed", node, node.kill_manager, node.launch, node.await_ready)


def killed_for_a_while(fleet, node):
    fleet.fault("all killed", node, node.kill_all, lambda: answers_go_on(fleet), node.launch, node.await_ready)


def lost_memory(fleet, node):
    fleet.fault("host restarted", node, node.lose_memory, node.launch, node.await_ready)


def cut_off(fleet, node):
    fleet.fault("cut off", node, node.cut, lambda: time.sleep(AWAY), lambda: answers_go_on(fleet), node.join)


def without_primary(fleet, node):
    """It answers clients with what it has."""
    fleet.fault("without a way to the primary", node, lambda: node.lose_way_to(PRIMARY), lambda: time.sleep(AWAY),
                lambda: answers_go_on(fleet), lambda: node.find_way_to(PRIMARY))


def upgraded(fleet, node):
    fleet.fault("upgraded", node, lambda: node.upgrade(NEXT))


def members_come_and_go(fleet):
    """A zone that the primary gets at run time is served by all, and leaves with it."""
    file = fleet.folder / "late.test.zone"
    file.write_text(zone_text())
    fleet.primary.control("zone", "add", "late.test", "--template", "member", "--file", str(file))
    fleet.await_(lambda: all(rcode(node, "late.test") == 0 for node in fleet.secondaries), "late.test is served")
    fleet.primary.control("zone", "remove", "late.test")
    fleet.await_(lambda: all(rcode(node, "late.test") == 5 for node in fleet.secondaries), "late.test is gone")


def rcode(node, zone):
    with node.host.inside():
        answer = node.ask(zone, "SOA")
    return answer.rcode() if answer is not None else None


def settle(fleet):
    """No more updates; all that are there come to each node."""
    fleet.questions.ended = True
    for stream in fleet.streams:
        stream.ended = True
    fleet.await_(lambda: not any(stream.lost or stream.under_way for stream in fleet.streams), "updates have ended")
    fleet.await_(lambda: not fleet.questions.under_way, "each question has its answer")
    for node in fleet.nodes():
        fleet.caught_up(node)
    fleet.traffic.stop()


def compare_contents(fleet):
    """By whole transfers: all have the primary's records, which are those that the updates tell."""
    for zone in fleet.zones:
        with fleet.primary.host.inside():
            expected = fleet.primary.records(zone.name, KEYRING)
            serial = fleet.primary.serial(zone.name)
        assert serial == zone.acknowledged + 1 == zone.sent + 1
        assert f"a.{zone.name}. 5 5 v{zone.acknowledged}.{zone.name}." in expected
        for host, address in host_addresses(zone.acknowledged).items():
            assert f"{host}.{zone.name}. 60 1 {'.'.join(map(str, address))}" in expected
        for node in fleet.secondaries:
            with node.host.inside():
                assert node.records(zone.name, KEYRING) == expected, node.name
    for node in fleet.nodes():
        assert node.control("store", "check")["faults_found"] == 0
        assert node.faults_of_sanitizers() == []


# Times and costs ---------------------------------------------------------------------------------------------------

class Costs:
    """Processor seconds of a group of processes by its name, and octets and packets that the primary has sent."""

    def __init__(self, values):
        self.values = values

    def __sub__(self, earlier):
        return Costs({key: value - earlier.values[key] for key, value in self.values.items()})


def processor_seconds(pid):
    """User and system time of all threads (proc(5))."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def counted(nodes, counter):
    return sum(node.control("status")["counters"][counter] for node in nodes)


def costs(fleet):
    link = json.loads(fleet.primary.host.ip("-j", "-s", "link", "show", "eth0"))[0]["stats64"]["tx"]
    return Costs({
        "primary's manager": processor_seconds(fleet.primary.manager_pid()),
        "primary's worker": sum(processor_seconds(pid) for pid in fleet.primary.left_over()),
        "secondaries' managers": sum(processor_seconds(node.manager_pid()) for node in fleet.secondaries),
        "secondaries' workers": sum(processor_seconds(pid) for node in fleet.secondaries for pid in node.left_over()),
        "dnsdist": processor_seconds(fleet.front.process.pid),
        "octets": link["bytes"], "packets": link["packets"],
        "transfers": counted(fleet.secondaries, "transfers_in"),
        "IXFRs": counted(fleet.secondaries, "transfers_in_ixfr"),
        "NOTIFYs": counted([fleet.primary], "notifies_answered"),
    })


def delays(fleet, begin, end, without_hit):
    """Milliseconds from the acknowledgement of each update to the last secondary that shows it, as probes see it."""
    found = []
    for zone in fleet.zones:
        acknowledged = [(number, at) for number, at in sorted(zone.acknowledged_at.items()) if begin <= at < end]
        last = dict.fromkeys((number for number, _ in acknowledged), 0.0)
        for node in fleet.secondaries:
            seen = iter(fleet.probes[node.name, zone.name].seen)
            at_time, shown = next(seen)
            for number, at in acknowledged:
                while shown < number:
                    at_time, shown = next(seen)
                hit = any(name in (node.name, "p") and first <= at_time and at < past
                          for _, name, first, past in fleet.faults)
                if not (hit and without_hit):
                    last[number] = max(last[number], at_time - at)
        found += [value * 1000 for value in last.values() if value > 0]
    return sorted(found)


def line(title, values):
    if not values:
        return f"{title}: none"
    shares = ", ".join(f"p{share} {values[min(len(values) - 1, len(values) * share // 100)]:.0f}"
                       for share in (50, 90, 99))
    return f"{title}: {len(values)} updates, {shares}, max {values[-1]:.0f} ms"


def report(fleet, quiet, disturbed, spent):
    seconds = disturbed[1] - quiet[0]
    updates = sum(zone.acknowledged for zone in fleet.zones)
    print(f"\n{SECONDARIES} secondaries, {RATE} updates/s wanted, notify-delay {DELAY}, {THIS.name} build")
    in_quiet = sum(quiet[0] <= at < quiet[1] for zone in fleet.zones for at in zone.acknowledged_at.values())
    print(f"{updates} updates in {seconds:.0f} s; {in_quiet / (quiet[1] - quiet[0]):.0f}/s without faults; "
          f"resumed {sum(stream.resumed for stream in fleet.streams)} times")
    span = quiet[1] - quiet[0]
    print("without faults, a second: " + ", ".join(f"{key} {value / span:.3g}" for key, value in spent.values.items()))
    questions = fleet.questions
    print(f"front: {questions.answered} questions answered, {questions.repeated} repeated, {questions.errors} errors, "
          f"slowest {questions.slowest:.2f} s; errors of nodes: {sum(p.errors for p in fleet.probes.values())}")
    print(line("to the last secondary, without faults", delays(fleet, *quiet, False)))
    print(line("beside faults, secondaries without one", delays(fleet, *disturbed, True)))
    print(line("beside faults, all secondaries", delays(fleet, *disturbed, False)))
    for what, name, begin, end in fleet.faults:
        print(f"  {name}: {what}, up to date after {end - begin:.1f} s")
