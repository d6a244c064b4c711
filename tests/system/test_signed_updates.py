"""Updates of signed zones: what a signer makes of an edited zone is sent as an UPDATE, record by record. The signer
is BIND's, which also checks what Pando then has."""

import os
import pathlib
import re
import signal
import subprocess
import threading
import time

import dns.edns
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import dns.zone
import pytest

import servers

KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": "c2VjcmV0IG9mIHRoZSB1cGRhdGUgdGVzdHMu"}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})

ZONE = ["@ NS ns1", "@ MX 10 Mail", "ns1 A 192.0.2.1", "www A 192.0.2.10", "www AAAA 2001:db8::10", "alias CNAME www",
        "a.b.deep TXT below", "*.wild MX 10 WWW", "plain NS ns.plain", "ns.plain A 192.0.2.53",
        "secure NS ns.elsewhere.test.", "secure DS 1 8 2 " + "01" * 32, "x.y.ent NS ns.elsewhere.test."]

# What goes and what comes, one update each.
EDITS = [
    ([], ["new A 192.0.2.9"]),
    ([], ["one.two.three A 192.0.2.9", "*.three TXT wild"]),
    (["www AAAA 2001:db8::10"], ["www TXT one two", "www CAA 0 issue ca.test"]),
    (["alias CNAME www"], []),
    (["a.b.deep TXT below"], ["b.deep TXT moved"]),
    ([], ["sub NS ns.sub", "ns.sub A 192.0.2.8"]),
    ([], ["plain DS 2 8 2 " + "23" * 32]),
    (["secure DS 1 8 2 " + "01" * 32], []),
    ([], ["three NS ns1"]),
    (["x.y.ent NS ns.elsewhere.test."], []),
    (["sub NS ns.sub", "ns.sub A 192.0.2.8"], ["0 A 192.0.2.7", "zzz A 192.0.2.7"]),
]

WAYS = {
    "nsec-ed25519": ("ED25519", []),
    "nsec-ecdsap256": ("ECDSAP256SHA256", []),
    "nsec3-rsasha256": ("RSASHA256", ["-3", "AABB", "-H", "2"]),
    "optout-ed25519": ("ED25519", ["-3", "-", "-H", "0", "-A"]),
    "nsec3-ecdsap384": ("ECDSAP384SHA384", ["-3", "-", "-H", "0"]),
}


class Signer:
    """dnssec-signzone with a KSK and a ZSK."""

    def __init__(self, folder, algorithm, options):
        self.folder, self.options = folder, options
        self.folder.mkdir()
        size = ["-b", "2048"] if algorithm.startswith("RSA") else []
        self.keys = [self.run("dnssec-keygen", "-q", "-a", algorithm, *size, *flags, "example").stdout.strip()
                     for flags in ([], ["-f", "KSK"])]
        self.now = int(time.time())
        self.is_random = algorithm.startswith("ECDSA")

    def run(self, *command):
        return subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True, timeout=60)

    def sign(self, lines, serial, start=-3600, end=86400):
        """The signed zone as the path of its file; signatures from `start` to `end` seconds from now."""
        plain = self.folder / "plain"
        keys = "".join((self.folder / f"{key}.key").read_text() for key in self.keys)
        plain.write_text(f"$TTL 300\n@ SOA ns1 admin {serial} 3600 600 1209600 300\n" + "\n".join(lines) + "\n" + keys)
        when = [time.strftime("%Y%m%d%H%M%S", time.gmtime(self.now + seconds)) for seconds in (start, end)]
        out = self.folder / f"signed.{serial}"
        self.run("dnssec-signzone", "-P", "-O", "full", "-s", when[0], "-e", when[1], "-o", "example", *self.options,
                 "-f", str(out), str(plain), *self.keys)
        return out


def records_of(path):
    zone = dns.zone.from_file(str(path), "example", relativize=False)
    return {(name, ttl, rdata) for name, ttl, rdata in zone.iterate_rdatas()}


def difference(before, after):
    """The update that makes the one zone of the other."""
    update = dns.update.Update("example", keyring=KEYRING)
    update.use_edns(0, request_payload=65535)
    for name, _, rdata in sorted(before - after, key=str):
        if rdata.rdtype != dns.rdatatype.SOA:
            update.delete(name, rdata)
    for name, ttl, rdata in sorted(after - before, key=str):
        update.add(name, ttl, rdata)
    return update


def send(server, update):
    return dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=20)


def transferred(server):
    """All records as the server has them now."""
    zone = dns.zone.from_xfr(dns.query.xfr("127.0.0.1", "example", port=server.port, relativize=False, lifetime=60),
                             relativize=False)
    return {(name, ttl, rdata) for name, ttl, rdata in zone.iterate_rdatas()}


def verify(server, folder):
    """BIND's opinion of the whole zone."""
    path = pathlib.Path(folder) / "transferred"
    path.write_text("".join(f"{name} {ttl} IN {dns.rdatatype.to_text(rdata.rdtype)} {rdata.to_text()}\n"
                            for name, ttl, rdata in transferred(server)))
    done = subprocess.run(["dnssec-verify", "-o", "example", str(path)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(params=sorted(WAYS))
def signer(request, tmp_path):
    return Signer(tmp_path / "signer", *WAYS[request.param])


def serve(pando, path, remotes=(), image=False, **more):
    zone = {"name": "example", "file": str(path), "allow-update": [{"key": KEY["name"]}],
            "allow-transfer": [{"address": "127.0.0.0/8"}], **more}
    kept = "  image: zones.image\n  checkpoint: {interval: 24h, journal: 1GiB}" if image else ""
    return pando([zone], keys=[KEY], remotes=remotes, store_extra=kept).start("example")


def edit(lines, out, into):
    return [line for line in lines if line not in out] + into


def test_what_a_signer_makes_is_taken_kept_and_passed_on(tmp_path, pando, signer):
    lines, serial = ZONE, 1
    path = signer.sign(lines, serial)
    copy_port = servers.free_port()
    server = serve(pando, path, [{"name": "copy", "address": [f"127.0.0.1@{copy_port}"]}], notify=["copy"])
    copy = pando([{"name": "example", "primaries": ["primary"], "allow-transfer": [{"address": "127.0.0.0/8"}]}],
                 remotes=[{"name": "primary", "address": [f"127.0.0.1@{server.port}"]}], port=copy_port)
    copy.start("example")
    by_ixfr = False
    for out, into in EDITS:
        lines, serial, before = edit(lines, out, into), serial + 1, records_of(path)
        path = signer.sign(lines, serial)
        answer = send(server, difference(before, records_of(path)))
        assert answer.rcode() == dns.rcode.NOERROR, (out, into, answer.to_text())
        assert transferred(server) == records_of(path)
        verify(server, tmp_path)
        servers.wait_until("the secondary has it", lambda: copy.serial("example") == serial)
        by_ixfr = by_ixfr or "by=ixfr" in copy.log()
    assert transferred(copy) == records_of(path)
    # A difference that is larger than the zone is sent as the zone: ECDSA signs all anew each time.
    assert by_ixfr or signer.is_random
    # The file is not what is served, and touching it is no edit.
    os.utime(tmp_path / "signer" / "signed.1")
    server.control("reload")
    assert transferred(server) == records_of(path)
    # The manager goes; then the host with all that was in memory.
    server.kill()
    server.start("example")
    assert transferred(server) == records_of(path)
    # The host comes back with a file that something touched meanwhile.
    server.stop()
    server.clean()
    os.utime(tmp_path / "signer" / "signed.1")
    server.start("example")
    assert transferred(server) == records_of(path)
    verify(server, tmp_path)


def test_an_edited_file_needs_a_higher_serial(tmp_path, pando):
    """`dnssec-signzone` keeps the serial. The SOA's signature holds for it, so no other may be served with it."""
    signer = Signer(tmp_path / "signer", *WAYS["nsec-ed25519"])
    path = signer.sign(ZONE, 5)
    server = serve(pando, path)
    edited, longer = [*ZONE, "new A 192.0.2.9"], [*ZONE, "new A 192.0.2.9", "other A 192.0.2.9"]
    # With the same serial, and signatures that came later: what operators do, and BIND takes.
    signer.sign(edited, 5, end=2 * 86400)
    server.control("reload")
    assert transferred(server) == records_of(path)
    assert re.search("zone_file.*secondaries do not see", server.log())
    verify(server, tmp_path)
    server.kill()
    server.start("example")
    assert transferred(server) == records_of(path)
    # A lower one is refused, and the zone stays as it was.
    before = transferred(server)
    signer.sign(longer, 4).rename(path)
    assert "its SOA is signed, with serial 4, which is not ahead of the served zone's 5" in refused_reload(server)
    assert transferred(server) == before
    signer.sign(longer, 6).rename(path)
    server.control("reload")
    assert transferred(server) == records_of(path)
    # Beside an update the same serial is refused, too: its records would be lost.
    answer = send(server, difference(records_of(path), records_of(signer.sign(edited, 7))))
    assert answer.rcode() == dns.rcode.NOERROR
    before = transferred(server)
    signer.sign(longer + ["more A 192.0.2.9"], 7).rename(path)
    assert "with serial 7, which is not ahead of the served zone's 7" in refused_reload(server)
    assert transferred(server) == before
    verify(server, tmp_path)


@pytest.mark.parametrize("host", [False, True], ids=["process", "host"])
@pytest.mark.parametrize("image", [False, True], ids=["plain", "image"])
def test_a_kill_while_a_file_signed_again_takes_the_zones_place(tmp_path, pando, host, image):
    """The journal has it that the old zone is gone and another one is there; the store has the old one. Workers answer
    from that one until the file is read again, and nobody sees a server without the zone."""
    signer = Signer(tmp_path / "signer", *WAYS["nsec-ed25519"])
    path = signer.sign(ZONE, 5)
    server = serve(pando, path, image=image)
    if image:
        server.control("store", "checkpoint")
    server.kill()
    server.crash_at = "commit-journalled"
    server.start("example")
    before = transferred(server)
    signer.sign([*ZONE, "new A 192.0.2.9"], 5, end=2 * 86400)
    server.control("reload", check=False)
    assert server.process.wait(timeout=60) == -signal.SIGKILL
    server.crash_at = None
    assert transferred(server) == before != records_of(path)
    if host:
        server.lose_memory()
    started, rcodes = threading.Event(), set()

    def ask():
        while not started.is_set():
            answer = server.ask("www.example", "A", timeout=5)
            rcodes.add(None if answer is None else answer.rcode())

    asking = threading.Thread(target=ask)
    if not host:
        asking.start()
    try:
        server.start("example")
        server.control("reload")
    finally:
        started.set()
        if not host:
            asking.join()
    assert host or rcodes == {dns.rcode.NOERROR}
    assert transferred(server) == records_of(path)
    verify(server, tmp_path)
    answer = send(server, difference(records_of(path), records_of(signer.sign(ZONE, 6))))
    assert answer.rcode() == dns.rcode.NOERROR
    before = transferred(server)
    server.lose_memory()
    server.start("example")
    assert transferred(server) == before


def test_a_file_signed_again_survives_the_host(tmp_path, pando):
    """The image has the zone before, with the same serial: what came later must not be put on top of that."""
    signer = Signer(tmp_path / "signer", *WAYS["nsec-ed25519"])
    path = signer.sign(ZONE, 5)
    server = serve(pando, path, image=True)
    server.control("store", "checkpoint")
    edited, longer = [*ZONE, "new A 192.0.2.9"], [*ZONE, "new A 192.0.2.9", "other A 192.0.2.9"]
    signer.sign(edited, 5, end=2 * 86400)
    server.control("reload")
    answer = send(server, difference(records_of(path), records_of(signer.sign(longer, 6))))
    assert answer.rcode() == dns.rcode.NOERROR
    before = transferred(server)
    server.lose_memory()
    server.start("example")
    assert transferred(server) == before
    # The zone as it is served, saved in its file: nothing changes, and nothing is refused.
    verify(server, tmp_path)
    (tmp_path / "transferred").rename(path)
    assert not server.control("reload")["problems"]
    assert transferred(server) == before


def refused_reload(server):
    """What keeps the edited file from being served."""
    problem, = server.control("reload")["problems"]
    return problem


def refusal(server, update):
    """Sends what must be refused: the text of its extended error. The zone stays as it is."""
    before = transferred(server)
    answer = send(server, update)
    assert answer.rcode() == dns.rcode.REFUSED, answer.to_text()
    assert transferred(server) == before
    errors = [option for option in answer.options if isinstance(option, dns.edns.EDEOption)]
    assert errors and errors[0].code == dns.edns.EDECode.NOT_SUPPORTED
    assert re.search("update_refused.*zone=example", server.log()), server.log()
    return errors[0].text


def without(update, rdtype, covers=None, deleted=False):
    """The update but for its additions (or deletions) of one type."""
    def is_it(rrset):
        return rrset.rdtype == rdtype and (covers is None or rrset.covers == covers) and \
            bool(rrset.deleting) == deleted
    update.update[:] = [rrset for rrset in update.update if not is_it(rrset)]
    update.index.clear()
    return update


def test_each_inconsistency_is_refused_with_a_reason(pando, signer):
    kind = dns.rdatatype
    first = signer.sign(ZONE, 1)
    server = serve(pando, first)
    lines = edit(ZONE, ["www AAAA 2001:db8::10"], ["new A 192.0.2.9"])
    old, fresh = records_of(first), records_of(signer.sign(lines, 2))
    denial = kind.NSEC3 if any(rdata.rdtype == kind.NSEC3 for _, _, rdata in old) else kind.NSEC
    name = kind.to_text(denial)

    def whole():
        return difference(old, fresh)

    assert "SOA" in refusal(server, without(whole(), kind.SOA))
    assert "example. SOA" in refusal(server, without(whole(), kind.RRSIG, kind.SOA))
    assert "new.example. A" in refusal(server, without(whole(), kind.RRSIG, kind.A))
    assert "www.example. AAAA" in refusal(server, without(whole(), kind.RRSIG, kind.AAAA, deleted=True))
    assert name in refusal(server, without(whole(), denial))
    assert name in refusal(server, without(whole(), kind.RRSIG, denial))
    assert refusal(server, without(whole(), kind.AAAA, deleted=True))
    expired = records_of(signer.sign(lines, 3, start=-7200, end=-3600))
    assert "not valid now" in refusal(server, difference(old, expired))
    plain = dns.update.Update("example", keyring=KEYRING)
    plain.use_edns(0)
    plain.add("new.example.", 300, "A", "192.0.2.9")
    assert "SOA" in refusal(server, plain)
    unsigned = dns.update.Update("example", keyring=KEYRING)
    unsigned.use_edns(0)
    for rdtype in ("DNSKEY", "RRSIG", "NSEC", "NSEC3PARAM"):
        unsigned.delete("example.", rdtype)
    unsigned.add("example.", 300, "SOA", "ns1 admin 9 3600 600 1209600 300")
    assert refusal(server, unsigned)
    assert send(server, whole()).rcode() == dns.rcode.NOERROR
    assert transferred(server) == fresh


def test_keys_of_another_signer_do_not_count(tmp_path, pando):
    ours = Signer(tmp_path / "ours", "ED25519", [])
    first = ours.sign(ZONE, 1)
    server = serve(pando, first)
    stranger = Signer(tmp_path / "stranger", "ED25519", [])
    fresh = records_of(stranger.sign(edit(ZONE, [], ["new A 192.0.2.9"]), 2))
    assert "DNSKEY would be left" in refusal(server, difference(records_of(first), fresh))
    keys = {record for record in fresh if record[2].rdtype == dns.rdatatype.DNSKEY}
    kept = {record for record in records_of(first) if record[2].rdtype == dns.rdatatype.DNSKEY}
    assert "no key of the zone" in refusal(server, difference(records_of(first), fresh - keys | kept))


def test_a_rule_by_type_covers_the_signatures_of_its_types(pando, tmp_path):
    signer = Signer(tmp_path / "signer", "ED25519", [])
    first = signer.sign(ZONE, 1)
    rules = [{"key": KEY["name"], "types": ["A", "SOA", "NSEC"]}]
    server = serve(pando, first, **{"allow-update": rules})
    second = signer.sign(edit(ZONE, [], ["new A 192.0.2.9"]), 2)
    assert send(server, difference(records_of(first), records_of(second))).rcode() == dns.rcode.NOERROR
    third = signer.sign(edit(ZONE, [], ["new A 192.0.2.9", "new TXT no"]), 3)
    assert send(server, difference(records_of(second), records_of(third))).rcode() == dns.rcode.REFUSED
    assert server.serial("example") == 2
