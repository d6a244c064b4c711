"""Catalog zones (RFC 9432) from Knot and BIND: members come and go without a configuration for each."""

import shutil
import signal
import subprocess
import time

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

CATALOG = "catalog.test"
LOCAL = [{"address": "127.0.0.0/8"}]


def zone_text(address):
    return f"@ 300 SOA ns admin 1 3600 600 1209600 300\n@ 300 NS ns\nns 300 A 192.0.2.1\nwww 300 A {address}\n"


def pando_for(pando, primary, more="", templates=(), prepare=lambda server: None, **options):
    """A Pando that consumes the catalog of this primary and has no zone of its own."""
    server = pando([], remotes=[{"name": "up", "address": [f"127.0.0.1@{primary.port}"]}], **options)
    server.sections = (f"templates: {list(templates)}\n"
                       f"catalogs: [{{zone: {CATALOG}, role: consumer, primaries: [up]{more}}}]\n")
    write_config = server.write_config

    def write():
        write_config()
        server.config.write_text(server.config.read_text() + server.sections)
    server.write_config = write
    write()
    prepare(server)
    server.start()
    return server


def address_of(server, zone):
    answer = server.ask(f"www.{zone}")
    return answer.answer[0][0].address if answer is not None and answer.answer else None


def await_members(server, served, absent=()):
    def is_so():
        return (all(address_of(server, zone) == address for zone, address in served.items())
                and all(server.ask(zone, "SOA").rcode() == dns.rcode.REFUSED for zone in absent))
    servers.wait_until(f"{served} are served, {absent} not", is_so, seconds=60)


def problem(server):
    return server.control("zone", "status", CATALOG).get("problem", "")


class Producer(servers.Knot):
    """Knot that generates the catalog of its members."""

    def __init__(self, folder, members):
        folder.mkdir(exist_ok=True)
        self.paths = folder
        self.port = None
        self.write(members)

    def write(self, members):
        zones = {CATALOG: self.paths / "catalog.zone"}
        options = {CATALOG: "    catalog-role: generate\n    acl: all\n"}
        for member, (address, group) in members.items():
            zones[member] = self.paths / f"{member}.zone"
            zones[member].write_text(zone_text(address))
            options[member] = (f"    catalog-role: member\n    catalog-zone: {CATALOG}\n    acl: all\n"
                               + (f"    catalog-group: {group}\n" if group else ""))
        process = getattr(self, "process", None)
        super().__init__(self.paths, zones, self.port,
                         "acl:\n  - id: all\n    address: 127.0.0.1\n    action: transfer\n", options)
        self.process = process

    def serial(self, zone):
        """Knot shows catalogs over TCP alone."""
        answer = self.ask(zone, "SOA", tcp=True)
        return answer.answer[0][0].serial if answer is not None and answer.answer else None

    def change(self, members):
        self.write(members)
        serial = self.serial(CATALOG)
        self.process.send_signal(signal.SIGHUP)
        servers.wait_until("Knot has generated another catalog", lambda: self.serial(CATALOG) != serial)


def test_members_are_signed_here_by_their_template(pando, peers, tmp_path):
    """A catalog itself is no zone to serve, and stays as its primary sends it."""
    members = {f"m{number}.test": (f"192.0.2.{number}", "") for number in range(5)}
    knot = Producer(tmp_path / "knot", members)
    peers(knot, "m0.test")
    server = pando_for(pando, knot, templates=[{"name": "default", "dnssec": "default"}])
    servers.wait_until("all are signed", lambda: all(
        name in zones(server) and server.control("zone", "status", name)["ds"] for name in (f"{zone}." for zone in members)), 60)
    for zone in members:
        row = server.control("zone", "status", zone)
        assert (row["primary_serial"], row["serial"], row["problem"]) == (1, 2, "")
        assert server.ask(zone, "DNSKEY").answer
    assert server.control("zone", "status", CATALOG)["ds"] == []
    members["new.test"] = ("192.0.2.77", "")
    knot.change(members)
    server.control("zone", "refresh", CATALOG)
    servers.wait_until("the new one is signed", lambda: "new.test." in zones(server)
                       and server.ask("new.test", "DNSKEY").answer, 60)


def test_members_of_knots_catalog_come_and_go_and_outlive_restarts(pando, peers, tmp_path):
    members = {"one.test": ("192.0.2.11", ""), "two.test": ("192.0.2.12", "gold")}
    knot = Producer(tmp_path / "knot", members)
    peers(knot, "one.test")
    server = pando_for(pando, knot, ", groups: [{name: gold, template: gold}]",
                       [{"name": "gold", "allow-query": [{"address": "192.0.2.99"}]}])
    servers.wait_until("one.test is served", lambda: address_of(server, "one.test") == "192.0.2.11")
    servers.wait_until("two.test has the template of its group", lambda: "two.test." in zones(server))
    assert server.ask("two.test", "SOA").rcode() == dns.rcode.REFUSED
    assert server.ask(CATALOG, "SOA").rcode() == dns.rcode.REFUSED  # nobody may transfer it
    assert problem(server) == ""

    del members["one.test"]
    members["two.test"] = ("192.0.2.12", "")
    members["three.test"] = ("192.0.2.13", "")
    knot.change(members)
    server.control("zone", "refresh", CATALOG)
    served = {"two.test": "192.0.2.12", "three.test": "192.0.2.13"}
    await_members(server, served, ["one.test"])

    knot.stop()
    server.kill()
    server.start()
    await_members(server, served, ["one.test"])
    server.stop()
    shutil.rmtree(server.store)  # as a restart of the host leaves it: the members' copies are on disk
    server.start()
    await_members(server, served, ["one.test"])


def zones(server):
    return {row["name"]: row for row in server.control("zone", "list")}


MEMBERS = [f"m{number}.test" for number in range(6)]
BIND_CATALOG = ("@ 0 SOA invalid. invalid. 1 3600 600 2147483646 0\n@ 0 NS invalid.\nversion 0 TXT \"2\"\n" +
                "".join(f"id{number}.zones 0 PTR {zone}.\n" for number, zone in enumerate(MEMBERS)))


@pytest.fixture
def bind(peers, tmp_path):
    """BIND with the members' zones, and the catalog as a dynamic zone."""
    folder = tmp_path / "bind"
    folder.mkdir()
    (folder / "catalog.zone").write_text(BIND_CATALOG)
    body = 'type primary; file "{}"; allow-transfer {{ any; }}; allow-update {{ 127.0.0.1; }};'
    texts = {CATALOG: body.format(folder / "catalog.zone")}
    for number, zone in enumerate(MEMBERS):
        (folder / f"{zone}.zone").write_text(zone_text(f"192.0.2.{number}"))
        texts[zone] = body.format(folder / f"{zone}.zone")
    instance = servers.Bind(folder, texts)
    peers(instance, CATALOG)
    return instance


def edit(bind, server, *steps):
    """An update of the catalog, and a transfer. A step: (method, name, words...)."""
    message = dns.update.UpdateMessage(CATALOG)
    for method, *words in steps:
        getattr(message, method)(*words)
    assert dns.query.tcp(message, "127.0.0.1", port=bind.port, timeout=20).rcode() == 0
    serial = bind.serial(CATALOG)
    server.control("zone", "refresh", CATALOG)
    servers.wait_until("the catalog is there",
                       lambda: server.control("zone", "status", CATALOG)["serial"] == serial)


ALL = {zone: f"192.0.2.{number}" for number, zone in enumerate(MEMBERS)}


def test_an_emptied_catalog_keeps_its_members_for_the_grace(pando, bind):
    server = pando_for(pando, bind)
    await_members(server, ALL)
    edit(bind, server, *[("delete", f"id{number}.zones") for number in range(1, 6)])
    servers.wait_until("the removals wait", lambda: "5 members left at once" in problem(server))
    [catalog] = server.control("status")["catalogs"]
    assert catalog["role"] == "consumer" and "5 members left at once" in catalog["problem"]
    member = server.control("zone", "status", MEMBERS[1])
    assert (member["catalog"], member["added"]) == (f"{CATALOG}.", False)
    assert server.control("zone", "status", CATALOG)["catalog_members"] == len(MEMBERS)
    await_members(server, ALL)
    server.sections = server.sections.replace("primaries: [up]", "primaries: [up], removal-grace: 0")
    server.write_config()
    server.control("reload")
    await_members(server, {"m0.test": "192.0.2.0"}, MEMBERS[1:])
    assert problem(server) == ""


def test_a_catalog_of_two_zones_that_is_emptied_keeps_them_for_the_grace(pando, bind):
    message = dns.update.UpdateMessage(CATALOG)
    for number in range(2, 6):
        message.delete(f"id{number}.zones")
    assert dns.query.tcp(message, "127.0.0.1", port=bind.port, timeout=20).rcode() == 0
    server = pando_for(pando, bind)
    two = {zone: ALL[zone] for zone in MEMBERS[:2]}
    await_members(server, two)
    edit(bind, server, ("delete", "id0.zones"), ("delete", "id1.zones"))
    servers.wait_until("the removals wait", lambda: "2 members left at once" in problem(server))
    await_members(server, two)
    edit(bind, server, ("add", "id0.zones", 0, "PTR", f"{MEMBERS[0]}."))
    servers.wait_until("it is no longer empty", lambda: problem(server) == "")
    await_members(server, {MEMBERS[0]: ALL[MEMBERS[0]]}, [MEMBERS[1]])


def test_a_broken_catalog_changes_nothing_until_it_is_mended(pando, bind):
    server = pando_for(pando, bind)
    await_members(server, ALL)
    edit(bind, server, ("delete", "version"), ("delete", "id0.zones"))
    servers.wait_until("the fault is told", lambda: "catalog not used: it has no version" in problem(server))
    await_members(server, ALL)
    edit(bind, server, ("add", "version", 0, "TXT", "2"))
    await_members(server, {"m1.test": "192.0.2.1"}, ["m0.test"])


def test_a_member_whose_label_changes_is_transferred_anew(pando, bind):
    """RFC 9432 §5.6: so a producer can have the data replaced without a later serial."""
    server = pando_for(pando, bind)
    await_members(server, ALL)
    bind.stop()
    for number in (0, 1):
        (bind.folder / f"m{number}.test.zone").write_text(zone_text(f"192.0.2.{100 + number}"))
    bind.start(CATALOG)
    assert bind.serial("m0.test") == server.serial("m0.test") == 1 and address_of(bind, "m0.test") == "192.0.2.100"
    edit(bind, server, ("delete", "id0.zones"), ("add", "again.zones", 0, "PTR", "m0.test."))
    await_members(server, {**ALL, "m0.test": "192.0.2.100"})
    reset = [line for line in server.log().splitlines() if " catalog_member_reset " in line]
    assert len(reset) == 1 and "zone=m0.test." in reset[0] and f"catalog={CATALOG}." in reset[0]
    assert problem(server) == ""


def test_zones_of_commands_stay_and_members_are_the_catalogs(pando, bind, tmp_path):
    server = pando_for(pando, bind)
    await_members(server, ALL)
    path = tmp_path / "own.zone"
    path.write_text(zone_text("192.0.2.200"))
    server.control("zone", "add", "own.test", "--file", str(path))
    edit(bind, server, ("add", "id9.zones", 0, "PTR", "own.test."))
    servers.wait_until("the member is refused", lambda: "own.test.: a command has added it" in problem(server))
    await_members(server, {**ALL, "own.test": "192.0.2.200"})
    with pytest.raises(AssertionError, match="member of catalog"):
        server.control("zone", "remove", "m0.test")
    server.control("zone", "remove", "own.test")
    edit(bind, server, ("delete", "id9.zones"))
    servers.wait_until("nothing is wrong any more", lambda: problem(server) == "")
    await_members(server, ALL, ["own.test"])


def test_a_member_moves_between_two_catalogs(pando, tmp_path):
    """Its old catalog has to yield it (property coo of RFC 9432); its data stay served all the time."""
    texts = {"moves.test": zone_text("192.0.2.55")}
    for number, catalog in enumerate(("first.test", "second.test")):
        texts[catalog] = ("@ 0 SOA invalid. invalid. 1 3600 600 2147483646 0\n@ 0 NS invalid.\nversion 0 TXT \"2\"\n" +
                          ("m.zones 0 PTR moves.test.\n" if number == 0 else ""))
    zones = []
    for zone, text in texts.items():
        (tmp_path / f"{zone}.zone").write_text(text)
        zones.append({"name": zone, "file": str(tmp_path / f"{zone}.zone"), "allow-transfer": LOCAL, "allow-update": LOCAL})
    primary = pando(zones, workers=1).start("moves.test")
    server = pando_for(pando, primary)
    server.sections = "catalogs:\n" + "".join(
        f"  - {{zone: {catalog}, role: consumer, primaries: [up]}}\n" for catalog in ("first.test", "second.test"))
    server.write_config()
    server.control("reload")
    await_members(server, {"moves.test": "192.0.2.55"})

    def change(catalog, method, *words):
        message = dns.update.UpdateMessage(catalog)
        getattr(message, method)(*words)
        assert dns.query.tcp(message, "127.0.0.1", port=primary.port, timeout=20).rcode() == 0
        server.control("zone", "refresh", catalog)

    def problem_of(catalog):
        assert address_of(server, "moves.test") == "192.0.2.55"
        return server.control("zone", "status", catalog)["problem"]

    change("second.test", "add", "n.zones", 0, "PTR", "moves.test.")
    servers.wait_until("it is refused", lambda: "catalog first.test. has it" in problem_of("second.test"))
    change("first.test", "add", "coo.m.zones", 0, "PTR", "second.test.")
    servers.wait_until("it has moved", lambda: problem_of("second.test") == "")
    change("first.test", "delete", "m.zones")
    change("first.test", "delete", "coo.m.zones")
    servers.wait_until("the old catalog has no member", lambda: (
        server.control("zone", "status", "first.test")["serial"] == primary.serial("first.test")))
    time.sleep(1.5)  # it looks once a second, and could take the member away
    assert problem_of("first.test") == problem_of("second.test") == ""


BATCH = {f"b{number:02}.test": "192.0.2.44" for number in range(40)}


@pytest.fixture
def batch(pando, tmp_path):
    """A primary of many small zones with an empty catalog, a server that consumes it, and the folder of its copies."""
    class Batch:
        def __init__(self):
            self.file = tmp_path / "batch.zone"
            self.file.write_text(zone_text("192.0.2.44"))
            catalog = tmp_path / "batch-catalog.zone"
            catalog.write_text(BIND_CATALOG[:BIND_CATALOG.index("id0")])
            self.primary = pando([{"name": CATALOG, "file": str(catalog), "allow-transfer": LOCAL, "allow-update": LOCAL}]
                                 + [{"name": zone, "file": str(self.file), "allow-transfer": LOCAL} for zone in BATCH],
                                 workers=1).start(CATALOG)

        def consume(self, prepare):
            self.server = pando_for(pando, self.primary, prepare=prepare)
            self.copies = self.server.folder / "journal/secondary"

        def add_members(self, members):
            message = dns.update.UpdateMessage(CATALOG)
            for zone in members:
                message.add(f"{zone[:3]}.zones", 0, "PTR", f"{zone}.")
            assert dns.query.tcp(message, "127.0.0.1", port=self.primary.port, timeout=20).rcode() == 0
            self.server.control("zone", "refresh", CATALOG, check=False)

        def names(self):
            return sorted(path.name for path in self.copies.iterdir()) if self.copies.exists() else []

        def lose_host(self):
            """The host restarts, and the primary is away."""
            self.server.lose_memory()
            self.primary.stop()
    return Batch()


@pytest.mark.parametrize("passes", [1, 2, 3])
def test_copies_that_a_crash_left_without_their_names_are_not_used(batch, tmp_path, passes):
    """The first copy is written alone. Those that wait meanwhile may be written together, so 40 members may have two
    passes; members that come later have more."""
    now = tmp_path / "now"

    def prepare(server):
        server.crash_at, server.crash_if = f"zone-copy-written:{passes}", now
    batch.consume(prepare)
    server = batch.server
    servers.wait_until("the catalog is there", lambda: server.control("zone", "status", CATALOG)["state"] == "ok")
    servers.wait_until("its copy is there", lambda: f"{CATALOG}.zone" in batch.names())
    now.touch()

    def has_died():
        return server.process.poll() is not None
    members = list(BATCH.items())
    early, late = dict(members[:20]), dict(members[20:])
    batch.add_members(early)
    servers.wait_until("the first copies are there, or the manager has died", lambda: (
        has_died() or {f"{zone}.zone" for zone in early} <= set(batch.names())), 60)
    batch.add_members(late)
    servers.wait_until("the manager has died", has_died, 60)
    assert server.process.returncode == -signal.SIGKILL
    server.crash_at = server.crash_if = None
    names = batch.names()
    drafts = {name.removesuffix(".zone.partial") for name in names if name.endswith(".partial")}
    whole = {name.removesuffix(".zone") for name in names if name.endswith(".zone")} - {CATALOG}
    assert drafts and CATALOG not in drafts and not drafts & whole, names
    batch.lose_host()
    server.start()
    servers.wait_until("members are configured", lambda: all(
        server.ask(zone, "SOA").rcode() == dns.rcode.SERVFAIL for zone in drafts), 60)
    await_members(server, dict.fromkeys(whole, "192.0.2.44"))
    batch.primary.start(CATALOG)
    server.control("zone", "refresh", CATALOG)
    await_members(server, BATCH)
    servers.wait_until("all have copies and no drafts are left", lambda: batch.names() == sorted(
        f"{zone}.zone" for zone in [*BATCH, CATALOG]), 60)


@servers.needs_root("mounts")
def test_copies_for_which_the_disk_has_no_room_are_written_later(batch):
    """Each file takes a page of the small file system."""
    members = dict(list(BATCH.items())[:24])

    def mount(options, folder):
        subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)

    def prepare(server):
        folder = server.folder / "journal/secondary"
        folder.mkdir(parents=True)
        mount("size=40k,mode=0755", folder)
    batch.consume(prepare)
    server = batch.server
    try:
        batch.add_members(members)
        await_members(server, members)

        def lines():
            return server.log_path.read_text().splitlines()

        def told(event):
            return {word.removeprefix("zone=").rstrip(".") for line in lines() if f" {event} " in line
                    for word in line.split() if word.startswith("zone=")}
        servers.wait_until("each copy was tried", lambda: set(members) <= told("zone_copied") | told("zone_not_copied"))
        failed = set(members) - told("zone_copied")
        assert len(failed) >= len(members) - 9 and any("No space left on device" in line for line in lines())
        assert not any(name.endswith(".partial") for name in batch.names()), "nothing half-written is left"
        assert not failed & {name.removesuffix(".zone") for name in batch.names()}
        mount("remount,size=1m", batch.copies)
        server.control("reload")
        servers.wait_until("all have copies", lambda: batch.names() == sorted(
            f"{zone}.zone" for zone in [*members, CATALOG]), 60)
        batch.lose_host()
        server.start()
        await_members(server, members)
    finally:
        server.kill()
        subprocess.run(["umount", "-l", str(batch.copies)], check=True)
