"""A zone goes through all ways of being signed, each time by reloading an edited file: what the server
made by differences answers like what was loaded afresh, and everything is proven."""

import serving
import servers
import signing
import wire

APEX = "m.c."
STEPS = "unhptou"  # unsigned, NSEC, NSEC3, and so on: see signing.VARIANTS


def write_step(source, variant, serial, folder):
    """The zone's file as of this step."""
    folder.mkdir()
    return signing.make_zone(source, variant, folder, APEX, serial)[1]


def thinned(text, serial):
    """Each step lacks other names, so that names, empty non-terminals and wildcards come and go."""
    lines = text.splitlines()
    kept = [line for number, line in enumerate(lines)
            if line.startswith(("@", ";", "$", "ns", "sec", "kid")) or number % 5 != serial % 5]
    return "\n".join(kept) + "\n"


def start(folder, path):
    server = servers.Pando(folder, [{"name": APEX, "file": str(path)}])
    return server.start(APEX)


def answers_of(server, zone, asked, dnssec):
    class Alone:
        @staticmethod
        def servers():
            return [server]
    return serving.Answers(Alone, zone, asked, dnssec, "tcp").ours


def same(one, other):
    """Equal answers: sections as sets, since differences may order records otherwise."""
    return one[1:5] == other[1:5] and all(
        set(a) == set(b) for a, b in zip(one[5:8], other[5:8]))


def test_answers_after_edits_are_those_of_a_fresh_start(tmp_path):
    served = tmp_path / "served.zone"
    text = (serving.sources.HERE / "zones/m.zone").read_text()
    anchors = {wire.read_text_name(APEX): (signing.dnskey().to_wire(),)}
    live = None
    try:
        for serial, variant in enumerate(STEPS, 1):
            source = tmp_path / "m.zone"
            source.write_text(thinned(text, serial))
            path = write_step(source, variant, serial, tmp_path / str(serial))
            served.write_text(path.read_text())
            if live is None:
                live = start(tmp_path / "live", served)
            live.control("reload")
            servers.wait_until(f"serial {serial}", lambda: live.serial(APEX) == serial)
            zone = serving.Zone(APEX, path, signing.source_text(source, variant, APEX), "m", variant)
            check_step(live, zone, anchors, tmp_path / f"fresh{serial}")
    finally:
        if live is not None:
            live.clean()


def check_step(live, zone, anchors, folder):
    fresh = start(folder, zone.path)
    try:
        asked = zone.questions()
        for dnssec in (False, True):
            both = zip(asked, answers_of(live, zone, asked, dnssec), answers_of(fresh, zone, asked, dnssec))
            for (name, rrtype), ours, theirs in both:
                text = f"{wire.name_text(name)} {rrtype} as {zone.variant}"
                assert same(ours, theirs), text
                if dnssec and zone.variant != "u":
                    verdict = serving.verdict(zone, ours, (wire.lower(name), rrtype), anchors)
                    assert not isinstance(verdict, str), f"{text}: {verdict}"
    finally:
        fresh.clean()
