"""Pando, BIND, NSD and Knot serve the same zones and are asked the same questions: everywhere the
same answers, or a rule says why not (rules.py). Every signed answer of ours is proven (proofs.py).

CI asks every eighth question, by a checksum of its text; PANDO_FULL=1 asks all."""

import collections

import rules
import serving
import sizes
import wire


class Findings:
    """Counts, and a line for each thing that nothing explains."""

    def __init__(self):
        self.asked = 0
        self.rules = collections.Counter()
        self.verdicts = collections.Counter()
        self.unexplained = []

    def note(self, answers, question, what):
        name, rrtype = question
        self.unexplained.append(f"{wire.name_text(name)} type {rrtype} "
                                f"{'DO ' if answers.dnssec else ''}{answers.transport}: {what}")

    def text(self):
        lines = [f"{self.asked} questions to each server"]
        lines += [f"{count:8} {peer:5} {name}" for (peer, name), count in sorted(self.rules.items())]
        lines += [f"{count:8} our answers: {verdict}" for verdict, count in sorted(self.verdicts.items())]
        lines.append(f"{len(self.unexplained)} unexplained")
        return "\n".join(lines)


def check_whole(suite, whole, findings):
    """Over TCP: each peer against us, and our proofs."""
    for number, question in enumerate(whole.asked):
        ours = whole.ours[number]
        check_proof(suite, whole, question, ours, findings)
        for peer, theirs in whole.peers.items():
            case = rules.Case(suite, whole.zone, question, whole.dnssec, peer, ours, theirs[number])
            if not case.parts:
                continue
            why = rules.explain(case)
            findings.rules[peer, why or "UNEXPLAINED"] += 1
            if why is None:
                findings.note(whole, question, f"{peer} differs in {sorted(case.parts)}")


def check_cut(suite, whole, cut, findings):
    """Over UDP: what fits is what TCP gives; what does not fit has TC, whole RRsets and no more."""
    for number, question in enumerate(cut.asked):
        message, octets = cut.ours[number], len(cut.wires[number])
        check_proof(suite, cut, question, message, findings)
        reason = sizes.fault(message, octets, whole.ours[number], len(whole.wires[number]), cut.transport)
        if reason:
            findings.note(cut, question, reason)


def check_proof(suite, answers, question, message, findings):
    if not answers.dnssec or answers.zone.variant == "u":
        return
    verdict = suite.verdict(answers.zone, message, (wire.lower(question[0]), question[1]))
    if isinstance(verdict, str):
        findings.note(answers, question, f"unproven: {verdict}")
        verdict = None
    findings.verdicts[verdict.value if verdict else "unproven"] += 1


def test_answers_equal_the_peers_or_a_rule_says_why(suite, tmp_path):
    findings = Findings()
    for zone in suite.zones:
        asked = zone.questions()
        for dnssec in (False, True):
            whole = serving.Answers(suite, zone, asked, dnssec, "tcp")
            check_whole(suite, whole, findings)
            findings.asked += 3 * len(asked)
            for size in (512, 1232):
                check_cut(suite, whole, serving.Answers(suite, zone, asked, dnssec, size), findings)
    (tmp_path / "unexplained").write_text("\n".join(findings.unexplained))
    print(findings.text())
    assert not findings.unexplained, "\n".join(findings.unexplained[:40])
