"""Pando, BIND, NSD and Knot serve the same zones and are asked the same questions: everywhere the
same answers, or a rule says why not (rules.py). Every signed answer of ours is proven (proofs.py).

CI asks every sixteenth question, by a checksum of its text; PANDO_FULL=1 asks all."""

import collections

import rules
import servers
import serving
import sizes
import wire


class Findings:
    """Counts, and a line for each thing that nothing explains."""

    def __init__(self):
        self.asked = 0
        self.rules = collections.Counter()
        self.verdicts = collections.Counter()
        self.unexplained = {}  # what → questions

    def note(self, answers, question, what, detail=""):
        name, rrtype = question
        self.unexplained.setdefault((answers.zone.apex, what), []).append(
            f"{wire.name_text(name)} type {rrtype} {'DO ' if answers.dnssec else ''}"
            f"{answers.transport} {detail}")

    def text(self):
        lines = [f"{self.asked} questions to each server"]
        lines += [f"{count:8} {peer:5} {name}" for (peer, name), count in sorted(self.rules.items())]
        lines += [f"{count:8} our answers: {verdict}" for verdict, count in sorted(self.verdicts.items())]
        lines.append(f"{sum(map(len, self.unexplained.values()))} unexplained")
        lines += [f"{len(asked):8} {apex} {what}: {'; '.join(asked[:4])}"
                  for (apex, what), asked in self.unexplained.items()]
        return "\n".join(lines)


def check_whole(suite, whole, findings):
    """Over TCP: each peer against us, and our proofs."""
    for number, question in enumerate(whole.asked):
        ours = whole.ours[number]
        check_proof(suite, whole, question, ours, findings)
        check_question(whole, number, findings)
        check_additional(whole, number, findings)
        for peer, theirs in whole.peers.items():
            case = rules.Case(suite, whole.zone, question, whole.dnssec, peer, ours, theirs[number])
            if not case.parts:
                continue
            why = rules.explain(case)
            findings.rules[peer, why or "UNEXPLAINED"] += 1
            if why is None:
                findings.note(whole, question, f"{peer} differs in {sorted(case.parts)}")


def check_question(answers, number, findings):
    """The question comes back octet for octet, in its own case (RFC 4343 §4.1)."""
    name, _ = answers.asked[number]
    end = 12 + wire.wire_length(name) + 4
    if answers.wires["pando"][number][12:end] != answers.queries[number][12:end]:
        findings.note(answers, answers.asked[number], "the question is another one")


def check_additional(whole, number, findings):
    """What else we send, a peer that says the same sends too. Not BIND, which sends addresses of name
    servers elsewhere in the zone only when they are glue."""
    ours = whole.ours[number]
    alike = [theirs[number].additional for peer, theirs in whole.peers.items() if peer != "bind"
             and rules.without_denial(theirs[number].authority) == rules.without_denial(ours.authority)]
    sent = {record for additional in alike for record in rules.without_ttl(additional)}
    if alike and not sent.issuperset(rules.without_ttl(ours.additional)):
        findings.note(whole, whole.asked[number], "additional records that no peer sends")


def check_cut(suite, whole, cut, findings):
    """Over UDP: what fits is what TCP gives; what does not fit has TC, whole RRsets and no more."""
    for number, question in enumerate(cut.asked):
        message = cut.ours[number]
        check_question(cut, number, findings)
        check_proof(suite, cut, question, message, findings)
        reason = sizes.fault(message, len(cut.wires["pando"][number]), whole.ours[number],
                             len(whole.wires["pando"][number]), cut.transport)
        if reason:
            findings.note(cut, question, reason)
        for peer in cut.peers:
            check_cut_of_peer(whole, cut, number, peer, findings)


def check_cut_of_peer(whole, cut, number, peer, findings):
    ours, theirs = cut.ours[number], cut.peers[peer][number]
    if ours.tc == theirs.tc:
        return
    why = "TC: only the peer's answer is cut"  # ours was found to be whole
    if ours.tc:
        why = sizes.only_ours_is_cut(theirs, whole.peers[peer][number], len(whole.wires[peer][number]),
                                     cut.transport)
    findings.rules[peer, why or "UNEXPLAINED"] += 1
    if why is None:
        findings.note(cut, cut.asked[number], f"only we set TC, {peer} does not")


def check_proof(suite, answers, question, message, findings):
    if not answers.dnssec or answers.zone.variant == "u":
        return
    verdict = suite.verdict(answers.zone, message, (wire.lower(question[0]), question[1]))
    if isinstance(verdict, str):
        findings.note(answers, question, "unproven", verdict)
        verdict = None
    findings.verdicts[verdict.value if verdict else "unproven"] += 1


def test_each_rule_is_in_the_documentation():
    text = (servers.SOURCE / "docs/explanation/conformance.md").read_text()
    for name, _, _ in rules.RULES:
        first, _, rest = name.partition(": ")
        assert first in text and rest in text, name


L60 = "l" * 60

# What peers have been seen to answer without proof: zone, name, type, what they get wrong.
HARD_QUESTIONS = [
    ("m.n.", r"\000!.zero", wire.A, "Knot: NSEC order of octet 0"),
    ("m.n.", r"\000\000\000.zero", wire.A, "Knot: NSEC order of octet 0"),
    ("m.o.", "nx.ent2", wire.A, "NSD: opt-out hides the closest encloser"),
    ("oo.o.", "x.b.c", wire.A, "NSD: opt-out hides the closest encloser"),
    ("oo.o.", "made.up.wild", wire.A, "NSD: opt-out hides wildcard and encloser"),
    ("m.n.", "zz.below", wire.TXT, "BIND, Knot: the wildcard is an empty non-terminal"),
    ("aw.n.", "zz.x2", wire.TXT, "BIND, Knot: the wildcard is an empty non-terminal"),
    ("m.n.", "nx.d", wire.A, "NSD: denial of a DNAME's target"),
    ("m.n.", "q.b.dwild", wire.AAAA, "NSD: denial of a DNAME's target"),
    ("aw.h.", "*.x.y", wire.MX, "Knot: QNAME begins with an asterisk below an apex wildcard"),
    ("ac.h.", "*.nx", wire.DNAME, "Knot: QNAME begins with an asterisk below an apex wildcard"),
    ("m.n.", f"{L60}.{L60}.dl", wire.A, "Knot: YXDOMAIN"),
    ("m.h.", f"{L60}.dlz", wire.TXT, "Knot: YXDOMAIN"),
    ("oo.p.", "x.b.c", wire.A, "opt-out, while another chain is being built"),
    ("m.t.", "nx.nx.ent", wire.A, "two chains"),
]


def test_what_peers_leave_unproven_is_proven(suite):
    zones = {zone.apex: zone for zone in suite.zones}
    for apex, text, rrtype, about in HARD_QUESTIONS:
        zone = zones[apex]
        question = (wire.read_text_name(text, zone.labels), rrtype)
        answers = serving.Answers(suite, zone, [question], True, "tcp")
        verdicts = {name: suite.verdict(zone, messages[0], question)
                    for name, messages in answers.messages.items()}
        print(f"{text}.{apex} {about}: " + ", ".join(
            f"{name} {'unproven' if isinstance(verdict, str) else verdict.value}"
            for name, verdict in verdicts.items()))
        assert not isinstance(verdicts["pando"], str), f"{text}.{apex} {rrtype}: {verdicts['pando']}"


def check_zone(suite, zone, asked, findings):
    for dnssec in (False, True):
        whole = serving.Answers(suite, zone, asked, dnssec, "tcp")
        check_whole(suite, whole, findings)
        findings.asked += 3 * len(asked)
        for size in (512, 1232):
            check_cut(suite, whole, serving.Answers(suite, zone, asked, dnssec, size), findings)


def test_answers_equal_the_peers_or_a_rule_says_why(suite):
    findings = Findings()
    for zone in suite.zones:
        check_zone(suite, zone, zone.questions(), findings)
    print(findings.text())
    assert not findings.unexplained
