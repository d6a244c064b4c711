"""The same questions to Pando, BIND, NSD and Knot must get the same answers.

PANDO_FULL=1 asks all 49,728 root queries; otherwise an even sample of them."""

import os

import pytest

import compare
import servers

ROOT_ZONE = servers.SHARED_DATA / "root-2021-05-19.zone"
ROOT_QUERIES = servers.SHARED_DATA / "root-queries-2001.txt"
SAMPLE = 49728 if os.environ.get("PANDO_FULL") else 4000


def start_all(tmp_path, zones, pando, peers):
    """Pando and its peers serving `zones` (name → file)."""
    ours = pando([{"name": name, "file": str(path)} for name, path in zones.items()])
    first = next(iter(zones))
    ours.start(first)
    bind = servers.Bind(tmp_path / "bind", {name: f'type primary; file "{path}";' for name, path in zones.items()})
    others = [bind, servers.Nsd(tmp_path / "nsd", zones), servers.Knot(tmp_path / "knot", zones)]
    for other in others:
        peers(other, first)
    return ours, others


def report(comparison, folder, name):
    text = [f"asked {comparison.asked}, unanswered by us {comparison.unanswered}, "
            f"different from somebody {len(comparison.found)}, from all {len(comparison.against_all())}"]
    for (kind, different), count in sorted(comparison.summary().items(), key=lambda item: -item[1]):
        text.append(f"{count:6} {kind:5} " + "; ".join(f"{peer}: {', '.join(parts)}" for peer, parts in different))
    for question, dnssec, different, ours, theirs in comparison.found[:200]:
        text.append(f"\n== {question} {'DO' if dnssec else ''} {different}\n-- pando\n{ours}")
        for peer, answer in theirs.items():
            text.append(f"-- {peer}\n{answer}")
    path = folder / name
    path.write_text("\n".join(text) + "\n")
    print("\n".join(text[:40]))
    return path


def read_questions(path):
    questions = []
    for line in path.read_text().splitlines():
        words = line.split()
        if len(words) == 2:
            questions.append((words[0], words[1]))
    step = max(1, len(questions) // SAMPLE)
    return questions[::step]


@pytest.mark.skipif(not (ROOT_ZONE.exists() and ROOT_QUERIES.exists()), reason="the root zone's data is not here")
def test_root_zone_answers_equal_the_peers(tmp_path, pando, peers):
    ours, others = start_all(tmp_path, {".": ROOT_ZONE}, pando, peers)
    questions = read_questions(ROOT_QUERIES)
    comparison = compare.Comparison(ours, others)
    comparison.run(questions, False)
    comparison.run(questions, True)
    where = report(comparison, tmp_path, "differences.txt")
    assert comparison.unanswered == 0
    assert not comparison.against_all(), f"see {where}"
    for question, dnssec, different, _, _ in comparison.found:
        # docs/explanation/conformance.md: with some peers we differ in TC of referrals, never in more.
        assert all(parts == ["tc"] for parts in different.values()), f"{question} {different}, see {where}"


def example_questions(zones):
    import dns.name
    import dns.zone
    questions = []
    for name, path in zones.items():
        zone = dns.zone.from_file(str(path), origin=name, relativize=False, check_origin=False)
        owners = set(zone.nodes)
        derived = set()
        for owner in owners:
            derived.add(owner)
            for label in (b"no-such-name", b"*", b"\0"):
                try:
                    derived.add(dns.name.Name([label]) + owner)
                except dns.name.NameTooLong:
                    pass
            if owner != zone.origin:
                derived.add(owner.parent())
        for owner in sorted(derived):
            if owner.is_subdomain(zone.origin):
                questions += [(owner.to_text(), rdtype) for rdtype in ("A", "AAAA", "NS", "SOA", "MX", "TXT", "DS", "CNAME", "SRV")]
    return questions


def test_example_zones_answer_as_the_peers_do(tmp_path, pando, peers):
    folder = servers.SOURCE / "config/zones"
    zones = {name: folder / f"{name}.zone" for name in ("signed.example", "signed3.example", "example.net")}
    ours, others = start_all(tmp_path, zones, pando, peers)
    questions = example_questions(zones)
    comparison = compare.Comparison(ours, others)
    comparison.run(questions, False)
    comparison.run(questions, True)
    where = report(comparison, tmp_path, "differences.txt")
    assert comparison.unanswered == 0
    assert not comparison.against_all(), f"see {where}"
