"""Limits that keep rooms, classes and functions small. Each list of exceptions may only shrink: an exception that is no
longer needed, or is larger than needed, fails too."""

import collections
import json
import re
import subprocess

import pytest

from tree import DOCUMENTS, ROOT, SOURCES, relative, tracked

MAX_FILES = 30
MAX_METHODS = 40
MAX_MEMBERS = 20
MAX_COMPLEXITY = 20
MAX_FUNCTION_LINES = 80
MAX_SENTENCE_WORDS = 40

# Files of a folder. Tests of real processes and of documents are one flat list on purpose.
FOLDERS_ABOVE = {"tests/system": 52}
METHODS_ABOVE: dict[str, int] = {}
MEMBERS_ABOVE: dict[str, int] = {}
COMPLEXITY_ABOVE: dict[str, int] = {}
LINES_ABOVE: dict[str, int] = {}
SENTENCES_ABOVE: dict[str, int] = {}

# Words that the glossary replaced, as patterns of identifiers and text, and where they may stand no longer.
OLD_WORDS = {
    r"\bSecondaryVisits\b|\bVisitPlaces\b": "Refresher, RefreshSlots",
    r"\bKeptConnections\b|\bKeptTimers\b": "ConnectionPool, PersistentTimers",
    r"\bFileState\b|\bNotedFile\b": "MergeBase, ZoneFileInfo",
    r"\bRareLine\b|\bTrickledFile\b|\bWritePace\b": "RateLimitedLog, ThrottledFile, WriteRateLimiter",
    r"\bRequestGate\b": "UpdateQueue",
    r"\bRefusedImage\b": "QuarantinedImage",
    r"\bFileLook\b": "ZoneFileCheck",
    r"\b(?:is|stays)_tight\b": "low_space, low_space_without_pins",
    r"\bpay_notes\b|\bnote_later\b": "flush_pending, add_pending",
    r"\bgo_straight\b|\bask_first\b": "request_ixfr_directly, query_soa_first",
    r"\bSavedVersion\b": "ZoneSnapshot",
    r"\bsaved[_ ]versions?\b|\b(?:find|read|write|put|has)_saved\b": "snapshot",
    r"\bset_aside\b|\bimage_(?:set_aside|refused|kept)\b|\brefused[_ ]image": "quarantined, image_not_used",
    r"\bretired_(?:zones|data)\b|\bRetiredStack\b": "archived data, discarded data; retired in shm alone",
    r"\bzone::Snapshot\b|[.>]snapshot\(\)": "StoreView, view()",
    r"\bzone::Changes\b|\bk?(?:Delta|DumpDifference)\b": "Changeset",
    r"\bkOverlay\b|\boverlay_entry\b|[.>]overlay\b": "dynamic changes",
    r"\bsteps_of\b|\bfile_steps\b|\bmanager::Steps\b": "RecordChanges",
    r"\bnow_seconds\b": "unix_seconds",
    r"Overlay": "dynamic changes",
    r"\bk?Patience\b": "timeout",
    r"\bkMost\w*\b": "kMax...",
}


def check(found, allowed, limit, what):
    """`found` has what is above the limit: it must be what is allowed, neither more nor less."""
    above = {name: count for name, count in found.items() if count > limit}
    grown = {name: count for name, count in above.items() if count > allowed.get(name, limit)}
    assert not grown, f"{what} above {limit}: {grown}"
    slack = {name: count for name, count in allowed.items() if above.get(name, 0) < count}
    assert not slack, f"exceptions that can shrink: {slack}, now {({name: above.get(name, 0) for name in slack})}"


def test_folders_stay_small():
    files = collections.Counter(
        relative(path.parent) for path in tracked() if path.suffix in (".h", ".cpp", ".py", ".md"))
    for folder in [name for name in files if name.startswith("docs/decisions")]:
        del files[folder]  # one page for each decision
    check(files, FOLDERS_ABOVE, MAX_FILES, "files in a folder")


def test_file_names_are_unique():
    names = collections.Counter(path.name for path in SOURCES if path.name != "main.cpp")
    assert not [name for name, count in names.items() if count > 1]


def class_sizes():
    """Members and methods of each class, and of each struct that hides its members, by qualified name."""
    headers = [str(path) for path in SOURCES if path.suffix == ".h"]
    listed = subprocess.run(
        ["ctags", "--language-force=C++", "--kinds-c++=+mpcs", "--fields=+sKZ", "--output-format=json", "-f", "-", *headers],
        capture_output=True, text=True, check=True).stdout
    kinds, members, methods = {}, collections.Counter(), collections.Counter()
    for line in listed.splitlines():
        tag = json.loads(line)
        if tag["kind"] in ("class", "struct"):
            kinds[f"{tag['scope']}::{tag['name']}" if "scope" in tag else tag["name"]] = tag["kind"]
        elif tag.get("scopeKind") in ("class", "struct"):
            if tag["kind"] == "member":
                members[tag["scope"]] += 1
            elif tag["kind"] in ("prototype", "function"):
                methods[tag["scope"]] += 1
    classes = {name for name, kind in kinds.items() if kind == "class" or name.endswith("::Impl")}
    return ({name: members[name] for name in classes}, {name: methods[name] for name in classes})


def test_classes_stay_small():
    members, methods = class_sizes()
    assert len(members) > 100, "ctags found the classes"
    check(members, MEMBERS_ABOVE, MAX_MEMBERS, "members of a class")
    check(methods, METHODS_ABOVE, MAX_METHODS, "methods of a class")


def test_functions_stay_small():
    lizard = pytest.importorskip("lizard", reason="scripts/install-packages test installs it")
    complexity, lines = {}, {}
    for path in SOURCES:
        for function in lizard.analyze_file(str(path)).function_list:
            name = f"{relative(path)} {function.name.split('::', 2)[-1]}"
            complexity[name] = max(function.cyclomatic_complexity, complexity.get(name, 0))
            lines[name] = max(function.length, lines.get(name, 0))
    assert len(lines) > 2000, "lizard found the functions"
    check(complexity, COMPLEXITY_ABOVE, MAX_COMPLEXITY, "cyclomatic complexity")
    check(lines, LINES_ABOVE, MAX_FUNCTION_LINES, "lines of a function")


def test_old_words_do_not_come_back():
    found = []
    for path in tracked():
        if path.suffix in (".h", ".cpp", ".py", ".md", ".js", ".html", ".yaml") and path.name != "test_ratchet.py" and path.name != "glossary.md":
            text = path.read_text()
            for word, instead in OLD_WORDS.items():
                if re.search(word, text):
                    found.append(f"{relative(path)}: {word}, use {instead}")
    assert not found


def prose(text):
    """A document without its code blocks, tables and pictures."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    return "\n".join(line for line in text.splitlines() if not line.startswith(("|", "    ", "#", "<")))


def longest_sentence(text):
    """Words of the longest sentence; a list item or a paragraph ends one as well as a full stop."""
    pieces = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s|(?<=[.!?:;])\s+(?=[A-Z`*(\"\[])", prose(text))
    return max((len(piece.split()) for piece in pieces), default=0)


def test_documents_have_short_sentences():
    check({relative(path): longest_sentence(path.read_text()) for path in DOCUMENTS}, SENTENCES_ABOVE,
          MAX_SENTENCE_WORDS, "words of a sentence")


@pytest.mark.parametrize("text, words", [
    ("One two three. Four five.", 3),
    ("- one two\n- three four five", 3),
    ("```\none two three four\n```\nfive six", 2),
])
def test_sentences_are_counted(text, words):
    assert longest_sentence(text) == words


def test_a_ratchet_goes_one_way():
    check({"a": 5, "b": 1}, {"a": 5}, 2, "things")
    for found, allowed in [({"a": 6}, {"a": 5}), ({"a": 4}, {"a": 5}), ({"a": 1}, {"a": 5}), ({"b": 3}, {})]:
        with pytest.raises(AssertionError):
            check(found, allowed, 2, "things")
