"""Validators of others, with our zones' key as their trust anchor, believe what we answer: BIND's delv
and ldns's drill. The proof checker's verdict says what each of them must come to."""

import base64
import os
import subprocess
import zlib

import pytest

import proofs
import rules
import serving
import signing
import wire

SAMPLE = 60 if os.environ.get("PANDO_FULL") else 800
NAMES = {wire.A: "A", wire.TXT: "TXT", wire.MX: "MX", wire.DS: "DS", wire.NS: "NS", wire.AAAA: "AAAA",
         wire.CNAME: "CNAME", wire.DNAME: "DNAME", wire.SOA: "SOA", wire.DNSKEY: "DNSKEY"}


@pytest.fixture(scope="module")
def answers(suite):
    """(zone, question, our answer, verdict) of a sample of signed questions that a validator can ask."""
    found = []
    for zone in suite.zones:
        if zone.variant == "u":
            continue
        asked = [(wire.lower(name), rrtype) for name, rrtype in zone.all_questions()
                 if rrtype in NAMES and zlib.crc32(b"%d" % rrtype + wire.encode_name(name)) % SAMPLE == 0]
        got = serving.Answers(suite, zone, asked, True, "tcp")
        for question, message in zip(asked, got.ours):
            if ends_here(suite, zone, question, message):
                verdict = suite.verdict(zone, message, question)
                found.append((zone, question, message, verdict))
    print(f"{len(found)} questions for validators")
    return found


def ends_here(suite, zone, question, message):
    """The answer is final: a validator need not ask another server, nor give up a loop."""
    name, rrtype = question
    chain, loops = rules.links(message, name)
    referral = not any(record.type == wire.SOA for record in message.authority) and any(
        record.type == wire.NS for record in message.authority)
    refused = message.rcode in (wire.YXDOMAIN, wire.REFUSED)
    at_apex = rrtype == wire.DS and name == zone.labels  # the parent's business
    return not (loops or referral or refused or at_apex or len(chain) > proofs.MAX_LINKS
                or suite.zone_of(chain[-1]) != zone.labels)


def run(command, tries=3):
    """What a validator prints. One that hangs, as delv has done on a busy machine, is started again."""
    for _ in range(tries):
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=30)
            return done.stdout + done.stderr
        except subprocess.TimeoutExpired:
            continue
    raise AssertionError(f"hangs: {' '.join(command)}")


def delv(suite, zone, question, anchors):
    name, rrtype = question
    return run(["delv", "@127.0.0.1", "-p", str(suite.pando.port), "-a", str(anchors),
                f"+root={zone.apex}", "-q", wire.name_text(name), "-t", NAMES[rrtype]])


def test_delv_believes_our_answers(suite, answers, tmp_path):
    key = base64.b64encode(signing.public_key()).decode()
    for zone, question, _, verdict in answers:
        anchors = tmp_path / "anchors"
        anchors.write_text(f'trust-anchors {{ "{zone.apex}" static-key 257 3 15 "{key}"; }};\n')
        said = delv(suite, zone, question, anchors)
        believed = ["fully validated"]
        if verdict != proofs.Verdict.SECURE:
            believed.append("unsigned answer")  # insecure, as opt-out is
        assert any(words in said for words in believed), f"{wire.name_text(question[0])} {question[1]}: {said}"


def is_within_drills_reach(message, question, verdict):
    """drill follows no DNAME, takes no proof by opt-out spans, none that an empty non-terminal
    exists, and for DS none that needs several NSEC3."""
    name, rrtype = question
    aliases = any(record.type in (wire.CNAME, wire.DNAME) for record in message.answer)
    owners = {record.owner for record in message.authority if record.type == wire.NSEC}
    no_data = message.rcode == wire.NOERROR and not message.answer
    spans = sum(record.type == wire.NSEC3 for record in message.authority)
    return (verdict == proofs.Verdict.SECURE and not aliases and not (rrtype == wire.DS and spans > 1)
            and not name[0].startswith(b"-")  # which it takes for an option
            and not (no_data and owners and name not in owners))


def test_drill_believes_our_answers(suite, answers, tmp_path):
    asked = 0
    for zone, (name, rrtype), message, verdict in answers:
        if not is_within_drills_reach(message, (name, rrtype), verdict):
            continue
        key = signing.write_key(tmp_path, zone.apex)
        said = run(["drill", "-t", "-S", "-k", str(key), "-p", str(suite.pando.port),
                    wire.name_text(name), "@127.0.0.1", NAMES[rrtype]])
        asked += 1
        assert "Chase successful" in said, f"{wire.name_text(name)} {rrtype}: {said}"
    assert asked > 10
