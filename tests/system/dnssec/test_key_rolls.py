"""Keys that follow others: each kind of roll beside a validating resolver, step by step and by itself, over kills."""

import shutil
import time

import dns.rdatatype
import pytest

import servers
from signed_zones import run
from test_served_signed import TEXT, ZONE, Unbound, key_folder, send, zone_of
from test_signing_stages import Asker, apex_sets, configure, dnssec, folder, options, signing, status, wait_for  # noqa: F401

CHILD_TEXT = "@ 1 SOA ns1 admin 7 3600 600 86400 1\n@ 1 NS ns1\nns1 1 A 192.0.2.1\nwww 1 A 192.0.2.2\n"
TIMES = "validity: 1h, propagation: 1s, parent-ds-ttl: 1s"
POLICIES = ", ".join([f"{{name: quick, {TIMES}}}", f"{{name: csk, rolls: auto, {TIMES}}}",
                      f"{{name: split, keys: ksk-zsk, rolls: auto, {TIMES}}}",
                      f"{{name: ed25519, algorithm: ED25519, rolls: auto, {TIMES}}}"])
# Child: policy before, policy after, keys that are rolled.
ROLLS = {"zsk": ("split", "split", "zsk"), "ksk": ("split", "split", "ksk"), "both": ("split", "split", "all"),
         "csk": ("csk", "csk", "all"), "parted": ("csk", "split", "all"), "joined": ("split", "csk", "all"),
         "algorithm": ("csk", "ed25519", "all")}


def child_name(child):
    return f"{child}.{ZONE}"


def keys_of(server, zone):
    return {(key["role"], key["algorithm"], key["tag"]) for key in status(server, zone)["keys"]}


def signers_of(server, zone):
    """Algorithm and tag of the keys that have made the served signatures."""
    return {(rdata.algorithm, rdata.key_tag) for _, _, rdata in zone_of(server, zone).iterate_rdatas()
            if rdata.rdtype == dns.rdatatype.RRSIG}


def publish_ds(server, child):
    ds = status(server, child_name(child))["ds"]
    send(server, ("delete", child, "DS"), *[("add", child, 1, "DS", one) for one in ds])
    dnssec(server, "ds-seen", zone=child_name(child))


@pytest.fixture
def children(folder, options):  # noqa: F811
    """The zones of a parent and of its children, by the children's policies."""
    for child in ROLLS:
        (folder / child).write_text(CHILD_TEXT)

    def make(which):
        return [options] + [{**options, "name": child_name(child), "file": str(folder / child), "dnssec": which(roll)}
                            for child, roll in ROLLS.items()]
    return make


def test_all_rolls_beside_a_resolver(signing, children, folder, peers):  # noqa: F811
    if not shutil.which("unbound"):
        pytest.skip("unbound is not installed")
    server = signing(children(lambda roll: roll[0]), POLICIES).start(ZONE)
    for child in ROLLS:
        send(server, ("add", child, 1, "NS", f"ns1.{child_name(child)}."), ("add", f"ns1.{child}", 1, "A", "192.0.2.1"))
        wait_for(server, "ds-wanted", child_name(child))
        servers.wait_until("CDS is published", lambda: apex_sets(server, child_name(child))["CDS"])
        publish_ds(server, child)
    wait_for(server, "ds-wanted")
    zones = [child_name(child) for child in ROLLS]
    before = {zone: keys_of(server, zone) for zone in zones}
    anchor = f"{ZONE}. DS {status(server)['ds'][0]}"
    resolver = peers(Unbound(folder / "unbound", server, anchor, [ZONE, *zones]), ZONE)
    asker = Asker(resolver, [f"{label}{zone}" for zone in zones for label in ("www.", "none.", "")])
    steps = {child: [] for child in ROLLS}
    try:
        servers.wait_until("answers have come", lambda: asker.secure > 50 or asker.faults)
        server.zones = children(lambda roll: roll[1])
        configure(server, POLICIES)
        server.control("reload")
        for child, (_, _, keys) in ROLLS.items():
            dnssec(server, "roll", "--keys", keys, zone=child_name(child))
        kill_at = [time.monotonic() + pause for pause in (3, 9, 20)]
        rolling, deadline = set(ROLLS), time.monotonic() + 240
        while rolling and not asker.faults:
            assert time.monotonic() < deadline, {child: status(server, child_name(child)) for child in rolling}
            if kill_at and time.monotonic() > kill_at[0]:
                kill_at.pop(0)
                server.kill()
                server.start(ZONE)
            for child in sorted(rolling):
                seen = status(server, child_name(child))
                if not seen.get("roll") and seen.get("stage") == "secure":
                    rolling.discard(child)
                elif seen.get("roll") and seen["roll"] not in steps[child][-1:]:
                    steps[child].append(seen["roll"])
                if seen.get("roll_wait") == "parent":
                    publish_ds(server, child)
                if seen.get("roll_wait") == "signatures":  # a name that changes is signed by the new key
                    for label in ("@", "ns1", "www"):
                        send(server, ("add", label, 1, "TXT", f"at{round(time.monotonic())}"), zone=child_name(child))
            time.sleep(0.2)
        secure = asker.secure
        servers.wait_until("answers come afterwards", lambda: asker.secure > secure + 100 or asker.faults)
    finally:
        asker.end()
    assert asker.insecure == 0
    for child in ROLLS:
        zone = child_name(child)
        now, (_, policy, keys) = keys_of(server, zone), ROLLS[child]
        assert len(now) == (2 if policy == "split" else 1), (child, now)
        assert len(now & before[zone]) == (1 if keys in ("ksk", "zsk") else 0), (child, now, before[zone])
        published = sorted(apex_sets(server, zone)["DNSKEY"])
        assert len(published) == len(now), (child, published)
        assert signers_of(server, zone) == {(algorithm, tag) for _, algorithm, tag in now}, child
        put_away = [path.name for path in key_folder(server, zone).iterdir() if ".removed-" in path.name]
        assert len(put_away) == len(before[zone] - now), (child, put_away)
    assert {step for child in steps.values() for step in child} >= {"sign", "publish", "swap"}, steps


def test_steps_wait_for_the_operator(signing, options):  # noqa: F811
    server = signing([options], f"{{name: quick, keys: ksk-zsk, {TIMES}}}").start(ZONE)
    wait_for(server, "ds-wanted")
    assert "stage 'ds-wanted'" in dnssec(server, "roll", code=1)
    assert "no key rollover" in dnssec(server, "continue", code=1) and "no key rollover" in dnssec(server, "hold", code=1)
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    dnssec(server, "ds-seen")
    old = keys_of(server, ZONE)
    dnssec(server, "roll", "--keys", "ksk")
    assert "already" in dnssec(server, "roll", code=1)
    assert "under way" in dnssec(server, "restore-key", "1", code=1)
    servers.wait_until("the step waits", lambda: status(server).get("roll_wait") == "operator")
    seen = status(server)
    assert seen["roll"] == "publish" and "dnssec continue" in seen["roll_next"]
    parts = {key["tag"]: (key["part"], key["uses"]) for key in seen["keys"]}
    assert sorted(part for part, _ in parts.values()) == ["new", "old", "stays"]
    new = next(tag for tag, (part, _) in parts.items() if part == "new")
    assert parts[new][1] == ["published", "signs keys"]
    assert "step 'publish'" in dnssec(server, "status")
    cds = apex_sets(server)["CDS"]
    server.kill()
    server.start(ZONE)
    time.sleep(2)
    assert status(server)["roll"] == "publish" and apex_sets(server)["CDS"] == cds, "nobody has agreed"
    dnssec(server, "continue")
    servers.wait_until("the parent is asked", lambda: status(server).get("roll_wait") == "parent")
    assert [int(one.split()[0]) for one in apex_sets(server)["CDS"]] == [new]
    assert [int(one.split()[0]) for one in status(server)["ds"]] == [new]
    dnssec(server, "hold")
    dnssec(server, "ds-seen")
    servers.wait_until("the step waits", lambda: status(server).get("roll_wait") == "operator")
    assert len(apex_sets(server)["DNSKEY"]) == 3
    dnssec(server, "continue")
    servers.wait_until("the roll is over", lambda: not status(server).get("roll"))
    assert len(apex_sets(server)["DNSKEY"]) == 2
    gone = next(tag for role, _, tag in old if role == "KSK")
    assert gone not in {tag for _, _, tag in keys_of(server, ZONE)}

    # The parent went back to the old key: it signs again at once.
    assert "no key" in dnssec(server, "restore-key", "1", code=1) if gone != 1 else True
    assert "no tag" in dnssec(server, "restore-key", "x", code=1)
    dnssec(server, "restore-key", gone)
    servers.wait_until("the key is published", lambda: len(apex_sets(server)["DNSKEY"]) == 3)
    assert (13, gone) in signers_of(server, ZONE)
    for wait in ("publish", "swap"):
        servers.wait_until("the step waits", lambda: status(server).get("roll_wait") in ("operator", "parent"))
        assert status(server)["roll"] == wait
        if wait == "swap":
            dnssec(server, "ds-seen")
        dnssec(server, "continue")
    servers.wait_until("the roll is over", lambda: not status(server).get("roll"))
    assert len(status(server)["ds"]) == 2 and len(keys_of(server, ZONE)) == 3


def test_a_key_that_is_lost_in_a_roll_is_missed_by_its_name(signing, options):  # noqa: F811
    server = signing([options], f"{{name: quick, rolls: manual, {TIMES}}}").start(ZONE)
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    dnssec(server, "ds-seen")
    dnssec(server, "roll")
    servers.wait_until("the step waits", lambda: status(server).get("roll_wait") == "operator")
    new = next(key["tag"] for key in status(server)["keys"] if key["part"] == "new")
    path = key_folder(server) / f"013-{new:05}.pem"
    text = path.read_text()
    server.stop()
    path.unlink()
    server.start(ZONE)
    servers.wait_until("the key is missed", lambda: f"the key {new} of algorithm 13 is not there" in status(server).get("problem", ""))
    assert len(apex_sets(server)["DNSKEY"]) == 2, "the zone is served as it was"
    path.write_text(text)
    path.chmod(0o600)
    servers.wait_until("it is there again", lambda: status(server).get("roll_wait") == "operator")


def test_an_unsigned_zone_forgets_its_roll(signing, options):  # noqa: F811
    server = signing([options], f"{{name: quick, {TIMES}}}").start(ZONE)
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    dnssec(server, "ds-seen")
    old = keys_of(server, ZONE)
    dnssec(server, "roll")
    servers.wait_until("the new key is published", lambda: len(apex_sets(server)["DNSKEY"]) == 2)
    dnssec(server, "unsign")
    dnssec(server, "ds-gone")
    wait_for(server, "unsigned")
    dnssec(server, "unsign", "--cancel")
    wait_for(server, "ds-wanted")
    servers.wait_until("one key is left", lambda: len(apex_sets(server)["DNSKEY"]) == 1 and not status(server).get("roll"))
    assert not keys_of(server, ZONE) & old


def secure(server):
    """Brings the zone to the stage in which keys are rolled."""
    wait_for(server, "ds-wanted")
    servers.wait_until("CDS is published", lambda: apex_sets(server)["CDS"])
    dnssec(server, "ds-seen")


def sign_all_names(server):
    """A name that changes is signed by the new key."""
    for name in {str(name) for name, _, _ in zone_of(server).iterate_rdatas()}:
        send(server, ("add", name, 1, "TXT", f"at{time.monotonic_ns()}"))


def take_steps(server):
    """Does what a roll waits for, until it is over."""
    is_signed = False
    for _ in range(1000):
        seen = status(server)
        if seen.get("stage") == "secure" and not seen.get("roll"):
            return
        if seen.get("roll_wait") == "parent":
            dnssec(server, "ds-seen")
        if seen.get("roll_wait") == "operator":
            server.control("dnssec", "continue", ZONE)
        if seen.get("roll_wait") == "signatures" and not is_signed:
            sign_all_names(server)
            is_signed = True
        time.sleep(0.1)
    raise AssertionError(status(server))


def kill_at(server, place, act):
    """Restarts the server so that it dies at a place, and again so that it does not."""
    server.stop()
    server.crash_at = f"{place}:1"
    server.start(ZONE)
    act()
    servers.wait_until("the manager has died", lambda: server.process.poll() is not None, 60)
    server.crash_at = None
    server.start(ZONE)


@pytest.mark.parametrize("place", ["roll-noted", "key-written", "key-made"])
def test_a_kill_as_a_roll_begins_leaves_both_keys_or_the_old_one(signing, options, place):  # noqa: F811
    server = signing([options], f"{{name: quick, {TIMES}}}").start(ZONE)
    secure(server)
    old = keys_of(server, ZONE)
    kill_at(server, place, lambda: server.control("dnssec", "roll", ZONE, check=False))
    servers.wait_until("the zone is open", lambda: status(server).get("stage") == "secure")
    if place == "key-made":
        servers.wait_until("the new key is published", lambda: len(apex_sets(server)["DNSKEY"]) == 2)
    else:
        assert not status(server)["roll"] and keys_of(server, ZONE) == old and len(apex_sets(server)["DNSKEY"]) == 1
    send(server, ("add", "after", 1, "A", "192.0.2.9"))
    if place != "key-made":
        dnssec(server, "roll")
    take_steps(server)
    assert len(keys_of(server, ZONE)) == 1 and keys_of(server, ZONE) != old


def test_a_kill_between_two_new_keys_leaves_none(signing, options):  # noqa: F811
    server = signing([options], f"{{name: quick, keys: ksk-zsk, {TIMES}}}").start(ZONE)
    secure(server)
    old = keys_of(server, ZONE)
    kill_at(server, "key-made", lambda: server.control("dnssec", "roll", ZONE, check=False))
    servers.wait_until("the zone is open", lambda: status(server).get("stage") == "secure")
    assert not status(server)["roll"] and keys_of(server, ZONE) == old
    assert len(list(key_folder(server).glob("*.pem"))) == 2
    send(server, ("add", "after", 1, "A", "192.0.2.9"))


def test_a_zone_that_leaves_and_returns_goes_on_with_its_roll(signing, options):  # noqa: F811
    """Its parent has the DS record of the old key."""
    policies = f"{{name: quick, {TIMES}}}"
    server = signing([options, {**options, "name": "other.test"}], policies).start(ZONE)
    secure(server)
    (_, _, old), = keys_of(server, ZONE)
    dnssec(server, "roll")
    servers.wait_until("the new key is published", lambda: len(apex_sets(server)["DNSKEY"]) == 2)
    zones = server.zones
    for some in (zones[1:], zones):
        server.zones = some
        configure(server, policies)
        server.control("reload")
    servers.wait_until("it is served", lambda: len(apex_sets(server)["DNSKEY"]) == 2)
    assert status(server)["roll"] == "publish" and (13, old) in signers_of(server, ZONE)
    assert old in {key["tag"] for key in status(server)["keys"] if "published" in key["uses"]}


def test_a_key_file_that_nobody_noted_signs_nothing_in_a_roll(signing, options, folder):  # noqa: F811
    server = signing([options], f"{{name: quick, {TIMES}}}").start(ZONE)
    secure(server)
    dnssec(server, "roll")
    servers.wait_until("the step waits", lambda: status(server).get("roll_wait") == "operator")
    before = signers_of(server, ZONE)
    server.stop()
    run(servers.build_folder() / "pandoctl", "dnssec", "key", "make", ZONE, "--zsk", "--folder", key_folder(server),
        folder=folder)
    server.start(ZONE)
    servers.wait_until("it is said", lambda: "is not in the zone's DNSKEY records" in status(server).get("problem", ""))
    assert signers_of(server, ZONE) == before


@pytest.mark.parametrize("keys", ["ksk", "all"])
def test_a_kill_as_old_keys_are_put_away_loses_nothing(signing, options, keys):  # noqa: F811
    server = signing([options], f"{{name: quick, keys: ksk-zsk, rolls: auto, {TIMES}}}").start(ZONE)
    secure(server)
    old = keys_of(server, ZONE)
    server.stop()
    server.crash_at = "key-put-away:1"
    server.start(ZONE)
    server.control("dnssec", "roll", ZONE, "--keys", keys)
    is_signed = False
    while server.process.poll() is None:
        seen = status(server)
        if seen.get("roll_wait") == "parent":
            server.control("dnssec", "ds-seen", ZONE, check=False)
        if seen.get("roll_wait") == "signatures" and not is_signed:
            sign_all_names(server)
            is_signed = True
        time.sleep(0.1)
    server.crash_at = None
    server.start(ZONE)
    take_steps(server)
    now = keys_of(server, ZONE)
    assert len(now) == 2 and len(now & old) == (1 if keys == "ksk" else 0)
    assert len(list(key_folder(server).glob("*.removed-*"))) == len(old - now)


def test_a_kill_as_a_key_is_restored_can_be_repeated(signing, options):  # noqa: F811
    server = signing([options], f"{{name: quick, {TIMES}}}").start(ZONE)
    secure(server)
    (_, _, old), = keys_of(server, ZONE)
    server.control("dnssec", "roll", ZONE)
    server.control("dnssec", "hold", ZONE)
    take_steps(server)
    kill_at(server, "restore-noted", lambda: server.control("dnssec", "restore-key", ZONE, str(old), check=False))
    servers.wait_until("the zone is open", lambda: status(server).get("stage") == "secure")
    assert not status(server)["roll"] and len(keys_of(server, ZONE)) == 1
    server.control("dnssec", "restore-key", ZONE, str(old))
    servers.wait_until("both sign", lambda: (13, old) in signers_of(server, ZONE))


def test_the_policy_brings_another_algorithm_by_a_roll_alone(signing, options):  # noqa: F811
    """RFC 6781 section 4.1.4: signatures before keys, and keys away before signatures."""
    policies = f"{{name: quick, {TIMES}}}, {{name: other, algorithm: ED25519, {TIMES}}}"
    server = signing([options], policies).start(ZONE)
    secure(server)
    (_, _, old), = keys_of(server, ZONE)
    server.zones = [{**options, "dnssec": "other"}]
    configure(server, policies)
    server.control("reload")
    time.sleep(2)
    assert signers_of(server, ZONE) == {(13, old)}, "a policy alone changes no key"
    dnssec(server, "roll")
    seen = []
    while status(server).get("roll") or not seen:
        servers.wait_until("the step is shown", lambda: status(server).get("roll_wait") not in ("zone", "caches", ""))
        step = status(server).get("roll")
        if step is None or step == "":
            break
        algorithms = {int(text.split()[2]) for text in apex_sets(server)["DNSKEY"]}
        seen.append((step, algorithms, {algorithm for algorithm, _ in signers_of(server, ZONE)}))
        if status(server).get("roll_wait") == "parent":
            dnssec(server, "ds-seen")
            servers.wait_until("the step waits", lambda: status(server).get("roll_wait") == "operator")
        dnssec(server, "continue")
        servers.wait_until("the next step", lambda: status(server).get("roll") != step)
        if step == "withdraw":
            break
    assert seen == [("sign", {13}, {13, 15}), ("publish", {13, 15}, {13, 15}), ("swap", {13, 15}, {13, 15}),
                    ("withdraw", {15}, {13, 15})]
    servers.wait_until("the roll is over", lambda: not status(server).get("roll"))
    assert {algorithm for algorithm, _ in signers_of(server, ZONE)} == {15}


def test_a_resolver_tells_of_the_parent(signing, options, folder, peers):  # noqa: F811
    """The whole way to secure, a roll, and back, without a word of the operator about DS records."""
    if not shutil.which("unbound"):
        pytest.skip("unbound is not installed")
    (folder / "child").write_text(CHILD_TEXT)
    port = servers.free_port()
    policies = f"{{name: quick, {TIMES}}}, {{name: watched, rolls: auto, ds-check: resolver, {TIMES}}}"
    child = {**options, "name": child_name("child"), "file": str(folder / "child"), "dnssec": "watched"}
    server = signing([options, child], policies, remotes=[{"name": "resolver", "address": [f"127.0.0.1@{port}"]}]).start(ZONE)
    zone = child_name("child")
    send(server, ("add", "child", 1, "NS", f"ns1.{zone}."), ("add", "ns1.child", 1, "A", "192.0.2.1"))
    wait_for(server, "ds-wanted", zone)
    wait_for(server, "ds-wanted")
    servers.wait_until("the resolver is missed", lambda: "ds_not_checked" in server.log())
    resolver = Unbound(folder / "unbound", server, f"{ZONE}. DS {status(server)['ds'][0]}", [ZONE, zone])
    text = (resolver.folder / "unbound.conf").read_text()
    (resolver.folder / "unbound.conf").write_text(text.replace(f"port: {resolver.port}\n", f"port: {port}\n"))
    resolver.port = port
    peers(resolver, ZONE)
    servers.wait_until("CDS is published", lambda: apex_sets(server, zone)["CDS"])
    send(server, ("add", "child", 1, "DS", f"1 13 2 {'00' * 32}"))
    time.sleep(4)
    assert status(server, zone)["stage"] == "ds-wanted", "the parent has another DS record"

    def set_ds(*records):
        send(server, ("delete", "child", "DS"), *[("add", "child", 1, "DS", one) for one in records])

    old = status(server, zone)["ds"]
    set_ds(*old)
    wait_for(server, "secure", zone)
    dnssec(server, "roll", zone=zone)
    servers.wait_until("the parent is asked", lambda: status(server, zone).get("roll_wait") == "parent")
    new = status(server, zone)["ds"]
    set_ds(*old, *new)
    time.sleep(4)
    assert status(server, zone)["roll_wait"] == "parent", "the old DS record is there"
    set_ds(*new)
    servers.wait_until("the new DS record is seen", lambda: status(server, zone).get("roll_wait") != "parent")
    for label in ("@", "ns1", "www"):
        send(server, ("add", label, 1, "TXT", "new"), zone=zone)
    servers.wait_until("the roll is over", lambda: not status(server, zone).get("roll"), 60)
    dnssec(server, "unsign", zone=zone)
    time.sleep(3)
    assert status(server, zone)["stage"] == "no-ds-wanted"
    set_ds()
    wait_for(server, "unsigned", zone)
