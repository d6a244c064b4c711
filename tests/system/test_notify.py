"""Pando tells its secondaries of changes (RFC 1996)."""

import itertools
import select
import shutil
import socket
import struct

import dns.flags
import dns.message
import dns.opcode
import dns.query
import dns.rcode
import pytest

import servers
from test_transfers import BIND_KEY, KEY, KEYRING, nsupdate, zone_file  # noqa: F401 (a fixture)

LOCAL = [{"address": "127.0.0.0/8"}]


def primary_zone(path, **more):
    return {"name": "example", "file": str(path), "allow-update": [{"key": KEY["name"]}], "allow-transfer": LOCAL,
            "notify": ["peer"], **more}


def remote(port, key=False, name="peer"):
    return {"name": name, "address": [f"127.0.0.1@{port}"], **({"key": KEY["name"]} if key else {})}


def bind(tmp_path, primary, key=""):
    return servers.Bind(tmp_path / "bind",
                        {"example": f'type secondary; file "{tmp_path}/copy"; '
                                    f'primaries {{ 127.0.0.1 port {primary}{key}; }}; '
                                    f'allow-notify {{ {key or "127.0.0.1"}; }};'}, keys=BIND_KEY)


def nsd(tmp_path, primary):
    return servers.Nsd(tmp_path / "nsd", {"example": tmp_path / "copy"},
                       zone_options=f"  request-xfr: AXFR 127.0.0.1@{primary} NOKEY\n"
                                    "  allow-notify: 127.0.0.1 NOKEY\n")


def knot(tmp_path, primary):
    return servers.Knot(tmp_path / "knot", {"example": tmp_path / "copy"},
                        text=f"remote:\n  - id: up\n    address: 127.0.0.1@{primary}\n"
                             "acl:\n  - id: told\n    address: 127.0.0.1\n    action: notify\n",
                        zone_options={"example": "    master: up\n    acl: told\n"})


def update(pando, name="new"):
    nsupdate(pando.port, f"zone example\nupdate add {name}.example 60 TXT \"from pando\"\nsend\n")


def answered(pando, count=1):
    return lambda: pando.control("status")["counters"]["notifies_answered"] >= count


@pytest.mark.parametrize("make", [bind, nsd, knot])
def test_an_update_reaches_each_kind_of_secondary(tmp_path, zone_file, pando, peers, make):  # noqa: F811
    port = servers.free_port()
    peer = make(tmp_path, port)
    primary = pando([primary_zone(zone_file)], port=port, keys=[KEY], remotes=[remote(peer.port)])
    primary.start("example")
    peers(peer, "example")
    update(primary)
    servers.wait_until("the secondary has the change", lambda: peer.ask("new.example", "TXT").answer)
    servers.wait_until("the secondary has answered", answered(primary))
    servers.wait_until("status tells", lambda: "NOERROR" in primary.control("zone", "status", "example")["notified"][
        f"127.0.0.1@{peer.port}"])


def test_bind_takes_signed_notifies_alone(tmp_path, zone_file, pando, peers):  # noqa: F811
    port = servers.free_port()
    peer = bind(tmp_path, port, key=f' key {KEY["name"]}')
    primary = pando([primary_zone(zone_file)], port=port, keys=[KEY], remotes=[remote(peer.port, key=True)])
    primary.start("example")
    peers(peer, "example")
    update(primary)
    servers.wait_until("the secondary has the change", lambda: peer.ask("new.example", "TXT").answer)
    servers.wait_until("its answer was good", answered(primary))
    assert primary.control("status")["counters"]["notifies_failed"] == 0


def test_a_change_goes_down_a_chain(zone_file, pando):  # noqa: F811
    ports = [servers.free_port() for _ in range(3)]
    chain = [pando([primary_zone(zone_file)], port=ports[0], keys=[KEY], remotes=[remote(ports[1])])]
    for i in (1, 2):
        zone = {"name": "example", "primaries": ["up"], "allow-transfer": LOCAL}
        remotes = [remote(ports[i - 1], name="up")]
        if i == 1:
            zone["notify"] = ["peer"]
            remotes.append(remote(ports[2]))
        chain.append(pando([zone], port=ports[i], remotes=remotes))
    for server in chain:
        server.start("example")
    update(chain[0])
    servers.wait_until("the last has the change", lambda: chain[2].ask("new.example", "TXT").answer)
    assert chain[2].serial("example") == chain[0].serial("example")


def test_an_edited_file_is_told(tmp_path, zone_file, pando, peers):  # noqa: F811
    port = servers.free_port()
    peer = nsd(tmp_path, port)
    primary = pando([primary_zone(zone_file)], port=port, keys=[KEY], remotes=[remote(peer.port)])
    primary.start("example")
    peers(peer, "example")
    text = zone_file.read_text().replace("admin 1 ", "admin 2 ") + "edited TXT \"by hand\"\n"
    zone_file.write_text(text)
    primary.control("reload")
    servers.wait_until("the secondary has the change", lambda: peer.ask("edited.example", "TXT").answer)


def notifies(listener, count):
    """So many messages that arrive there, with their senders."""
    listener.settimeout(60)
    return [listener.recvfrom(4096) for _ in range(count)]


@pytest.fixture
def listener():
    """A socket that plays a secondary, or one that is silent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        yield udp


def test_who_does_not_answer_is_tried_again(zone_file, pando, listener):  # noqa: F811
    primary = pando([primary_zone(zone_file)], keys=[KEY], remotes=[remote(listener.getsockname()[1])])
    primary.start("example")
    first, again = notifies(listener, 2)
    for message, _ in (first, again):
        flags, questions, answers = struct.unpack_from("!3H", message, 2)
        assert (flags, questions, answers) == (0x2400, 1, 1), "NOTIFY, AA, a question, a SOA"
    status = primary.control("zone", "status", "example")["notified"]
    assert "pending" in status[f"127.0.0.1@{listener.getsockname()[1]}"]
    primary.stop()  # with one pending


def test_each_zone_is_told_after_a_start(tmp_path, pando):
    zones = []
    for i in range(100):
        path = tmp_path / f"z{i}.zone"
        path.write_text(f"$ORIGIN z{i}.example.\n@ 60 SOA ns admin 1 3600 600 86400 60\n@ 60 NS ns\nns 60 A 192.0.2.1\n")
        zones.append({"name": f"z{i}.example", "file": str(path), "notify": ["peer", "other"]})
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as peer, \
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        told = {peer: set(), other: set()}
        for listener in told:
            listener.bind(("127.0.0.1", 0))
        primary = pando(zones, remotes=[remote(peer.getsockname()[1]), remote(other.getsockname()[1], name="other")])
        primary.start("z0.example")

        def answer(seconds):
            ready, _, _ = select.select(list(told), [], [], seconds)
            for listener in ready:
                message, sender = listener.recvfrom(4096)
                told[listener].add(message[12:12 + message[12:].index(b"\0")])
                listener.sendto(message[:2] + b"\xa4\x00" + message[4:], sender)
            return ready

        while min(map(len, told.values())) < 100:
            assert answer(60), f"no more NOTIFYs after {[len(names) for names in told.values()]}"
            if max(map(len, told.values())) == 100:
                assert min(map(len, told.values())) > 20, "one waited for the other"
        all_answered = answered(primary, 200)

        def answer_and_look():  # one whose answer came late is repeated
            while answer(0):
                pass
            return all_answered()
        servers.wait_until("all have been answered", answer_and_look)


def test_transfers_and_notifies_come_from_the_configured_address(zone_file, pando, listener):  # noqa: F811
    source = "127.0.0.9"
    primary = pando([primary_zone(zone_file, notify=[], **{"allow-transfer": [{"address": source}]})], keys=[KEY])
    primary.start("example")
    secondary = pando([{"name": "example", "primaries": ["up"], "notify": ["peer"]}],
                      extra=f"  transfer-source: {source}",
                      remotes=[remote(primary.port, name="up"), remote(listener.getsockname()[1])])
    secondary.start("example")  # else it would have been refused
    (_, sender), = notifies(listener, 1)
    assert sender[0] == source


def notify_message(zone="example"):
    message = dns.message.make_query(zone, "SOA")
    message.set_opcode(dns.opcode.NOTIFY)
    message.flags = (message.flags | dns.flags.AA) & ~dns.flags.RD
    return message


def first_answered(port, messages):
    """Of messages that one socket sends in this order, hence to one worker: the id of the first answer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(60)
        udp.connect(("127.0.0.1", port))
        for message in messages:
            udp.send(message.to_wire())
        return struct.unpack_from("!H", udp.recv(4096))[0]


def test_a_notify_while_there_is_no_manager_is_repeated_by_its_primary(tmp_path, zone_file, pando, peers,  # noqa: F811
                                                                       listener):
    """RFC 1996 §3.6: a primary says it again while it has no answer, and never after SERVFAIL. The zone's REFRESH is
    an hour."""
    port = servers.free_port()
    primary = servers.Bind(
        tmp_path / "bind", {"example": f'type primary; file "{zone_file}"; allow-update {{ any; }}; '
                                       'allow-transfer { any; }; notify explicit; notify-delay 0; '
                                       f'also-notify {{ 127.0.0.1 port {port}; '
                                       f'127.0.0.1 port {listener.getsockname()[1]}; }};'},
        keys=BIND_KEY, options="startup-notify-rate 1000; notify-rate 1000;")
    peers(primary, "example")
    secondary = pando([{"name": "example", "primaries": ["up"]}], port=port, workers=1,
                      remotes=[remote(primary.port, name="up")])
    secondary.start("example")
    nsupdate(primary.port, "zone example\nupdate add one.example 60 TXT \"one\"\nsend\n")
    servers.wait_until("the secondary follows", lambda: secondary.ask("one.example", "TXT").answer)
    secondary.kill()
    query = dns.message.make_query("example", "SOA")
    assert first_answered(port, [notify_message(), query]) == query.id
    over_tcp = dns.query.tcp(notify_message(), "127.0.0.1", port=port, timeout=60)
    assert over_tcp.rcode() == dns.rcode.SERVFAIL
    nsupdate(primary.port, "zone example\nupdate add two.example 60 TXT \"two\"\nsend\n")
    serial = primary.serial("example")
    while dns.message.from_wire(notifies(listener, 1)[0][0]).answer[0][0].serial != serial:
        pass  # what the primary has said to both
    secondary.start("example")
    servers.wait_until("the secondary follows again", lambda: secondary.ask("two.example", "TXT").answer, 60)


def test_a_primary_zones_notify_is_answered_by_the_worker(zone_file, pando):  # noqa: F811
    primary = pando([primary_zone(zone_file, notify=[])], keys=[KEY]).start("example")
    for ask in (dns.query.udp, dns.query.tcp):
        assert ask(notify_message(), "127.0.0.1", port=primary.port, timeout=60).rcode() == dns.rcode.NOTAUTH
        signed = notify_message()
        signed.use_tsig(KEYRING)
        answer = ask(signed, "127.0.0.1", port=primary.port, timeout=60)  # dnspython verifies its signature
        assert answer.rcode() == dns.rcode.NOTAUTH and answer.had_tsig
    assert sum(row["counters"]["forwarded_notifies"] for row in primary.workers().values()) == 0


def notified(primary, address):
    return primary.control("zone", "status", "example")["notified"].get(address, "")


def answer_all(listener, primary, address):
    """Answers NOTIFYs until none is pending."""
    listener.settimeout(0.1)

    def none_is_left():
        try:
            message, sender = listener.recvfrom(4096)
            listener.sendto(message[:2] + b"\xa4\x00" + message[4:], sender)
        except TimeoutError:
            pass
        text = notified(primary, address)
        return "NOERROR" in text and "pending" not in text

    servers.wait_until("all have been answered", none_is_left)


def drain(listener):
    """Takes what has arrived there; whether there was something."""
    listener.setblocking(False)
    for count in itertools.count():
        try:
            listener.recvfrom(4096)
        except BlockingIOError:
            return count > 0


def forget_zones(tmp_path, peer):
    """Leaves nothing of the zone to the secondary, which has to ask for it when it starts."""
    (tmp_path / "copy").unlink(missing_ok=True)
    (peer.folder / "xfrd.state").unlink(missing_ok=True)
    shutil.rmtree(peer.folder / "db", ignore_errors=True)


@pytest.mark.parametrize("make", [bind, nsd, knot])
def test_a_secondary_that_was_away_and_asks_hears_of_the_next_change(tmp_path, zone_file, pando, peers,  # noqa: F811
                                                                     make, monkeypatch):
    """Another remote, at an address of its own, gets the same NOTIFYs, does not answer and never asks. So its next one
    tells when the pause ends that a query ends for the secondary. REFRESH and RETRY are an hour."""
    monkeypatch.setenv("PANDO_DIVIDE_PAUSES", "4")
    zone_file.write_text(zone_file.read_text().replace("3600 5 ", "3600 3600 "))
    port = servers.free_port()
    peer = make(tmp_path, port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.7", 0))
        other = f"127.0.0.7@{silent.getsockname()[1]}"
        primary = pando([primary_zone(zone_file, notify=["peer", "silent"])], port=port, keys=[KEY],
                        remotes=[remote(peer.port), {"name": "silent", "address": [other]}])
        primary.start("example")
        peers(peer, "example")
        for turn in range(5):
            answer_all(silent, primary, other)
            servers.wait_until("the secondary has answered",
                               lambda: "NOERROR" in notified(primary, f"127.0.0.1@{peer.port}"))
            peer.stop()
            forget_zones(tmp_path, peer)
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as away:  # nobody refuses what comes there
                away.bind(("127.0.0.1", peer.port))
                update(primary, f"missed{turn}")
                notifies(away, 1)
                servers.wait_until("neither is probed any more", lambda: all(
                    "pending, 3 sent" in notified(primary, address)
                    for address in (other, f"127.0.0.1@{peer.port}")), 60)
            drain(silent)
            peer.start("example")  # asks for the zone
            assert peer.ask(f"missed{turn}.example", "TXT").answer
            update(primary, f"later{turn}")
            servers.wait_until("the secondary has the change", lambda: peer.ask(f"later{turn}.example", "TXT").answer, 150)
            if not drain(silent):
                break  # the pause is not over
        else:
            raise AssertionError("each time the pause was over first")
        servers.wait_until("it has answered", lambda: "pending" not in notified(primary, f"127.0.0.1@{peer.port}"))
