"""The servers of the differential suite, their zones, and what they answer."""

import os
import zlib

import asking
import proofs
import questions
import servers
import signing
import sources
import wire

SAMPLE = 1 if os.environ.get("PANDO_FULL") else 16
UNSIGNED_ONLY = ("mt", "wn")

# Zones (all variants, or one) that a peer does not load.
NOT_LOADED = {
    "bind": {"wn"},               # NS at a wildcard
    "nsd": {"od"}                 # names below a DNAME
    | {f"ln.{variant}" for variant in "hotp"},  # names of 255 octets: NSD 4.6 ends
    "knot": {"od"} | {"as.p"}     # names below a DNAME, even if they are NSEC3 owners
    | {f"{path.stem}.t" for path in sources.HERE.glob("zones/*.zone")} | {"ty.t", "oo.t"},
}


class Zone:
    """One variant of a zone, as it is served."""

    def __init__(self, apex, path, source, stem, variant):
        self.apex, self.path, self.source = apex, path, source
        self.stem, self.variant = stem, variant
        self.labels = wire.read_text_name(apex)
        self.all_nsec3 = None

    def served_by(self, peer):
        return not {self.stem, f"{self.stem}.{self.variant}"} & NOT_LOADED.get(peer, set())

    def all_questions(self):
        return questions.of_zone(self.source, self.labels)

    def questions(self):
        return [(name, rrtype) for name, rrtype in self.all_questions()
                if zlib.crc32(b"%d %b" % (rrtype, wire.encode_name(name))) % SAMPLE == 0]


def all_zones(folder):
    """Every zone in every variant."""
    made = {path.stem: path for path in sources.write_all(folder / "sources")}
    zones = []
    for apex, path in signing.make_all(made.values(), folder / "zones", UNSIGNED_ONLY).items():
        stem, variant = apex[:-1].rsplit(".", 1)
        source = signing.source_text(made[stem], variant, apex)
        zones.append(Zone(apex, path, source, stem, variant))
    return zones


class Suite:
    """The servers, the zones, and what was found."""

    def __init__(self, folder, zones):
        self.zones = zones
        key = signing.dnskey().to_wire()
        self.anchors = {zone.labels: (key,) for zone in zones if zone.variant != "u"}
        self.pando = servers.Pando(
            folder / "pando", [{"name": zone.apex, "file": str(zone.path)} for zone in zones])
        self.peers = [
            servers.Bind(folder / "bind", {
                apex: f'type primary; file "{path}"; check-integrity no;'
                for apex, path in self.files_of("bind").items()}, options="check-names primary ignore;"),
            servers.Nsd(folder / "nsd", self.files_of("nsd")),
            servers.Knot(folder / "knot", self.files_of("knot"))]

    def files_of(self, peer):
        return {zone.apex: zone.path for zone in self.zones if zone.served_by(peer)}

    def servers(self):
        return [self.pando, *self.peers]

    def start(self):
        for server in self.servers():
            server.start(self.zones[0].apex)
            for zone in self.zones:
                if zone.served_by(server.name):
                    servers.wait_until(f"{server.name} serves {zone.apex}",
                                       lambda: server.serial(zone.apex) == 1)

    def stop(self):
        for peer in self.peers:
            peer.stop()
        self.pando.clean()

    def verdict(self, zone, message, question):
        return verdict(zone, message, question, self.anchors)

    def zone_of(self, name):
        """The served zone that a name is in."""
        found = [zone.labels for zone in self.zones if wire.is_at_or_below(name, zone.labels)]
        return max(found, key=len, default=None)


def verdict(zone, message, question, anchors):
    """A Verdict, or the reason why there is none."""
    try:
        return proofs.prove(message, question, anchors)
    except proofs.Unproven as error:
        return unprovable(zone, message, question, anchors) or str(error)


def unprovable(zone, message, question, anchors):
    """Whether a denial that is not proven could not be: not even by the zone's whole chain. So it is
    when opt-out hides a name, and a wildcard stands beside it (docs/explanation/conformance.md)."""
    if zone.variant not in "op" or message.rcode != wire.NXDOMAIN:
        return None
    if zone.all_nsec3 is None:
        iterations = signing.VARIANTS[zone.variant][0].iterations
        zone.all_nsec3 = [record for record in signing.nsec3_records(zone.path)
                          if record.type != wire.NSEC3 or record.rdata[3] == iterations]
    everything = message._replace(authority=(*message.authority, *zone.all_nsec3))
    try:
        proofs.prove(everything, question, anchors)
    except proofs.Unproven:
        return proofs.Verdict.UNPROVABLE
    return None


def make_queries(asked, dnssec, transport):
    """Plain DNS where that does: without DO over TCP, and for 512 octets."""
    payload = None if transport == "tcp" or (transport == 512 and not dnssec) else transport
    return [wire.make_query(name, rrtype, dnssec, payload) for name, rrtype in asked]


def ask(server, queries, transport):
    over = asking.over_tcp if transport == "tcp" else asking.over_udp
    return over(server.port, queries)


class Answers:
    """What all servers said to the questions about a zone, over one transport."""

    def __init__(self, suite, zone, asked, dnssec, transport):
        self.zone, self.asked, self.dnssec, self.transport = zone, asked, dnssec, transport
        self.queries = queries = make_queries(asked, dnssec, transport)
        self.wires = {server.name: ask(server, queries, transport) for server in suite.servers()
                      if zone.served_by(server.name)}
        self.messages = {name: [wire.parse(octets) for octets in answers]
                         for name, answers in self.wires.items()}
        self.ours = self.messages["pando"]
        self.peers = {name: answers for name, answers in self.messages.items() if name != "pando"}
