"""A registry's zone: delegations that share name server sets, which the store keeps once (zone/record/shared_sets.h). Answers,
transfers, updates and restarts are the same as BIND's."""

import random
import shutil
import subprocess
import sys

import dns.message
import dns.query
import dns.rcode
import dns.update
import pytest

import compare
import servers

sys.path.insert(0, str(servers.SOURCE / "bench"))
import profiles  # noqa: E402

DELEGATIONS = 20_000
EVERYBODY = [{"address": "127.0.0.0/8"}]


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = tmp_path_factory.mktemp("registry") / "tld.zone"
    with open(path, "w") as file:
        profiles.registry(file, DELEGATIONS)
    return path


def start_both(tmp_path, pando, peers, registry):
    files = []
    for name in ("ours", "theirs"):
        files.append(tmp_path / f"{name}.zone")
        shutil.copy(registry, files[-1])
    ours = pando([{"name": "tld", "file": str(files[0]), "allow-update": EVERYBODY, "allow-transfer": EVERYBODY}])
    ours.start("tld")
    theirs = peers(servers.Bind(tmp_path / "bind", {"tld": (
        f'type primary; file "{files[1]}"; allow-update {{ any; }}; allow-transfer {{ any; }};')}), "tld")
    return ours, theirs


def records_of(server):
    """All records by AXFR, taken apart by dig: dnspython takes ten seconds for so many."""
    done = subprocess.run(["dig", "@127.0.0.1", "-p", str(server.port), "tld", "AXFR", "+noall", "+answer", "+onesoa"],
                          capture_output=True, text=True, timeout=120, check=True)
    return {" ".join(line.lower().split()) for line in done.stdout.splitlines() if line and not line.startswith(";")}


def same_zone(ours, theirs):
    one, other = records_of(ours), records_of(theirs)
    assert len(one) > DELEGATIONS
    assert one == other, f"only ours {sorted(one - other)[:5]}, only BIND's {sorted(other - one)[:5]}"
    return one


def same_answers(ours, theirs, names):
    questions = [(name, rdtype) for name in names for rdtype in ("A", "NS", "DS")]
    questions += [(f"www.{name}", "AAAA") for name in names] + [(f"x{name}", "A") for name in names]
    comparison = compare.Comparison(ours, [theirs])
    comparison.run(questions, False)
    comparison.run(questions, True)
    assert comparison.unanswered == 0
    # Glue that does not fit sets TC with us (docs/explanation/conformance.md).
    assert not [entry for entry in comparison.found if entry[2]["bind"] != ["tc"]], comparison.found[:3]


def change(source, names, sets):
    """An UPDATE that does what registries do: other servers, keys in and out, new and dropped delegations."""
    update = dns.update.Update("tld")
    name = source.choice(names).removesuffix(".tld.")
    kind = source.randrange(5)
    if kind == 0:
        update.delete(name, "NS")
    if kind in (0, 1):
        for server in source.choice(sets):
            update.add(f"{name}-{source.randrange(1000)}" if kind == 1 else name, 86400, "NS", server)
    if kind == 2:
        update.add(name, 86400, "DS", f"{source.randrange(65536)} 13 2 {source.randbytes(32).hex()}")
    if kind == 3:
        update.delete(name)
    if kind == 4:
        update.add(name, 3600, "NS", source.choice(sets)[0])
    return update


def test_answers_updates_and_restarts(tmp_path, pando, peers, registry):
    ours, theirs = start_both(tmp_path, pando, peers, registry)
    source = random.Random(11)
    records = same_zone(ours, theirs)
    store = ours.control("status")["store"]
    assert store["live"] < 30 * len(records), "name server sets are kept once"
    names = sorted({line.split()[0] for line in records if " in ns " in line} - {"tld."})
    same_answers(ours, theirs, source.sample(names, 200))
    sets = profiles.operators(random.Random(4))[:20]
    for _ in range(400):
        update = change(source, names, sets)
        for server in (ours, theirs):
            assert dns.query.udp(update, "127.0.0.1", port=server.port, timeout=10).rcode() == dns.rcode.NOERROR
    same_zone(ours, theirs)
    same_answers(ours, theirs, source.sample(names, 100))
    ours.kill()
    ours.start("tld")
    same_zone(ours, theirs)
    ours.stop()  # a host restart: the store is gone, zone file and journal are there
    shutil.rmtree(ours.store)
    ours.start("tld")
    same_zone(ours, theirs)


def test_secondary_follows_by_ixfr(tmp_path, pando, peers, registry):
    path = tmp_path / "primary.zone"
    shutil.copy(registry, path)
    port = servers.free_port()
    bind = peers(servers.Bind(tmp_path / "bind", {"tld": (
        f'type primary; file "{path}"; allow-update {{ any; }}; allow-transfer {{ any; }}; notify explicit; '
        f'also-notify {{ 127.0.0.1 port {port}; }}; notify-delay 0;')}), "tld")
    ours = pando([{"name": "tld", "primaries": ["bind"], "allow-transfer": EVERYBODY}], port=port,
                 remotes=[{"name": "bind", "address": [f"127.0.0.1@{bind.port}"]}])
    ours.start("tld")
    source = random.Random(12)
    records = same_zone(ours, bind)
    assert ours.control("status")["store"]["live"] < 30 * len(records)
    names = sorted({line.split()[0] for line in records if " in ns " in line} - {"tld."})
    sets = profiles.operators(random.Random(4))[:20]
    for _ in range(200):
        answer = dns.query.udp(change(source, names, sets), "127.0.0.1", port=bind.port, timeout=10)
        assert answer.rcode() == dns.rcode.NOERROR
    servers.wait_until("the secondary has BIND's serial", lambda: ours.serial("tld") == bind.serial("tld"))
    same_zone(ours, bind)
