"""Asks several servers the same questions and says where their answers differ.

Answers are compared as a client sees them: RCODE, AA, TC, and answer and authority sections as sets of
records. Sections of truncated answers are not compared: what fits is each server's own affair."""

import functools
import select
import socket

import dns.message
import dns.rdatatype

import wire


def make_query(name, rdtype, dnssec):
    return wire.make_query(wire.read_text_name(name), dns.rdatatype.from_text(rdtype), dnssec)


def ask_all(port, queries, window=64, timeout=5.0, tries=3):
    """Wire answers by position; None where none came in `tries` tries. Bounded queries in flight."""
    answers = [None] * len(queries)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        sock.connect(("127.0.0.1", port))
        for _ in range(tries):
            missing = [i for i, answer in enumerate(answers) if answer is None]
            for start in range(0, len(missing), window):
                batch = missing[start:start + window]
                waiting = {}
                for i in batch:
                    wire = i.to_bytes(4, "big")[2:] + queries[i][2:]
                    waiting[wire[:2]] = i
                    sock.send(wire)
                while waiting:
                    if not select.select([sock], [], [], timeout)[0]:
                        break
                    answer = sock.recv(65535)
                    i = waiting.pop(answer[:2], None)
                    if i is not None:
                        answers[i] = answer
            if None not in answers:
                break
    return answers


@functools.lru_cache(200_000)
def read_reply(octets_behind_id):
    """A Reply; real queries ask the same again and again."""
    return Reply(b"\0\0" + octets_behind_id)


class Reply:
    """What of an answer is compared; BadMessage when an octet of it is not accounted for."""

    def __init__(self, octets):
        self.missing = octets is None
        if self.missing:
            return
        self.octets = octets
        message = wire.parse(octets)
        self.rcode, self.aa, self.tc = message.rcode, message.aa, message.tc
        self.answer = frozenset(message.answer)
        self.authority = frozenset(message.authority)

    def __repr__(self):
        return "no answer" if self.missing else dns.message.from_wire(self.octets).to_text()

    def differences(self, other):
        """Names of the parts that differ."""
        if self.missing or other.missing:
            return [] if self.missing == other.missing else ["no answer"]
        parts = [part for part in ("rcode", "aa", "tc") if getattr(self, part) != getattr(other, part)]
        if not self.tc and not other.tc:
            parts += [part for part in ("answer", "authority") if getattr(self, part) != getattr(other, part)]
        return parts


class Comparison:
    """Differences between one server and its peers over a list of questions."""

    def __init__(self, ours, peers):
        self.ours, self.peers = ours, peers
        self.asked = 0
        self.unanswered = 0
        self.found = []  # (question, dnssec, {peer: parts}, our Reply, {peer: Reply})

    def run(self, questions, dnssec):
        queries = [make_query(name, rdtype, dnssec) for name, rdtype in questions]
        ours = ask_all(self.ours.port, queries, timeout=20, tries=1)  # a lost answer is a fault
        theirs = {peer.name: ask_all(peer.port, queries) for peer in self.peers}
        for i, question in enumerate(questions):
            self.asked += 1
            reply = self.read(ours[i])
            self.unanswered += reply.missing
            replies = {name: self.read(answers[i]) for name, answers in theirs.items()}
            different = {name: parts for name, other in replies.items()
                         if (parts := reply.differences(other))}
            if different:
                self.found.append((question, dnssec, different, reply, {name: replies[name] for name in different}))

    @staticmethod
    def read(octets):
        return Reply(None) if octets is None else read_reply(octets[2:])

    def summary(self):
        """How often each combination of peers and parts occurs."""
        counts = {}
        for _, dnssec, different, _, _ in self.found:
            key = ("DO" if dnssec else "plain",
                   tuple(sorted((name, tuple(parts)) for name, parts in different.items())))
            counts[key] = counts.get(key, 0) + 1
        return counts

    def against_all(self):
        """Differences in which all peers agree against us."""
        return [entry for entry in self.found if len(entry[2]) == len(self.peers)]
