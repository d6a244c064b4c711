"""Documents agree with the code: log events, verbs, JSON members, links, paths, line lengths, manual pages."""

import gzip
import pathlib
import re
import shutil
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
REFERENCE = ROOT / "docs/reference"


def relative(path):
    return str(path.relative_to(ROOT))


# -- Log events ----------------------------------------------------------------------------------------------------

# Functions that write an event whose name is an argument: name of the call, events, fields.
EVENTS_BY_ARGUMENT = {
    "notify_failed": {"zone", "remote", "serial", "try", "result"},
    "notify_answered": {"zone", "remote", "serial", "try", "result"},
    "notify_unanswered": {"zone", "remote", "serial", "try", "result"},
}
A_CALL = re.compile(r"\blog::(?:(info|warning|error|debug)|detail::event)\(")


def arguments(text, start):
    """The arguments of a call whose opening parenthesis is just before `start`, split at top-level commas."""
    found, piece, depth, in_string, at = [], "", 0, False, start
    while True:
        c = text[at]
        if in_string and c == "\\":
            piece += c + text[at + 1]
            at += 2
            continue
        if c == '"':
            in_string = not in_string
        elif not in_string and c in "([{":
            depth += 1
        elif not in_string and c in ")]}":
            if depth == 0:
                return [*found, piece.strip()]
            depth -= 1
        if c == "," and depth == 0 and not in_string:
            found.append(piece.strip())
            piece = ""
        else:
            piece += c
        at += 1


def events_of(text):
    """(event, level or None, fields) of each call in a source."""
    text = re.sub(r"^\s*//.*$", "", text, flags=re.M)
    for call in A_CALL.finditer(text):
        words = arguments(text, call.end())
        if call[1] is None:
            words = words[1:]
        if re.fullmatch(r'"[a-z_]+"', words[0]):
            yield words[0].strip('"'), call[1], {word.strip('"') for word in words[1::2]}


def events_in_code():
    """{event: (levels, fields)}"""
    events = {name: (set(), set(fields)) for name, fields in EVENTS_BY_ARGUMENT.items()}
    for folder in ("manager", "worker", "tls", "http", "ipc", "zone", "shm", "config", "base", "dns"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".h", ".cpp") and path.name not in ("log.h", "log.cpp"):
                for event, level, fields in events_of(path.read_text()):
                    levels, known = events.setdefault(event, (set(), set()))
                    levels.update({level} - {None})
                    known.update(fields)
    return events


def rows_of(path, columns):
    """Cells of the rows that begin with a word in backticks."""
    for line in path.read_text().splitlines():
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) == columns and cells[0].startswith("`"):
            yield cells


def test_every_log_event_is_documented():
    documented = {row[0].strip("`"): (set(re.findall(r"\w+", row[1])), set(re.findall(r"`(\w+)`", row[2])))
                  for row in rows_of(REFERENCE / "log-events.md", 4)}
    code = events_in_code()
    assert sorted(documented) == sorted(code), "docs/reference/log-events.md has other events than the code"
    for event, (levels, fields) in code.items():
        assert documented[event][1] == fields, f"fields of {event} in docs/reference/log-events.md"
        assert levels <= documented[event][0], f"levels of {event} in docs/reference/log-events.md"


def test_events_are_found_in_code():
    text = 'log::info("a_b", "zone", to_text(x, "y"), "n", f(1, 2));\n// log::error("no");\n' \
           'log::detail::event(level, "c", "text", "a, \\"b");'
    assert list(events_of(text)) == [("a_b", "info", {"zone", "n"}), ("c", None, {"text"})]


# -- pandoctl, JSON, status ----------------------------------------------------------------------------------------

def test_every_verb_of_pandoctl_is_documented():
    source = "".join(path.read_text() for path in (ROOT / "ctl").glob("*_verbs.cpp"))
    groups = dict(re.findall(r'CLI::App\* (\w+) = line\.group\("([a-z-]+)"', source))
    nested = re.findall(r'CLI::App\* (\w+) = line\.group\((\w+), "([a-z-]+)"', source)
    groups |= {name: f"{groups[parent]} {word}" for name, parent, word in nested}
    verbs = {f"{groups[parent] + ' ' if parent in groups else ''}{verb}"
             for parent, verb in re.findall(r'\badd(?:_session)?\(\s*&?(\w+),\s*"([a-z-]+)"', source)}
    assert len(verbs) > 20
    text = (REFERENCE / "pandoctl.md").read_text()
    headings = re.findall(r"^### (.*)$", text, re.M)
    documented = {re.match(r"`([a-z -]+?)(?: [\[A-Z-].*)?`$", heading)[1] for heading in headings if heading[0] == "`"}
    assert verbs == documented


def control_verbs():
    """The rows of ipc/control_verbs.h: {verb: (arguments that a request needs, all arguments)}."""
    text = (ROOT / "ipc/control_verbs.h").read_text()
    names = dict(re.findall(r'string_view (k\w+) = "([a-z-]+)";', text))
    rows = re.findall(r'\{verb::(k\w+), "([^"]*)",\s*"[^"]+"\}', text)
    assert len(rows) > 40 and {constant for constant, _ in rows} == set(names)
    needed = {constant: re.sub(r"\[\w+\]|\w+\|\w+", "", shape) for constant, shape in rows}
    return {names[constant]: (set(re.findall(r"\w+", needed[constant])), set(re.findall(r"\w+", shape)))
            for constant, shape in rows}


def test_every_verb_of_the_control_socket_is_documented():
    section = (REFERENCE / "control-protocol.md").read_text().split("\n## Verbs\n")[1].split("\n## ")[0]
    documented = {}
    for verbs, arguments in re.findall(r"^\| (`.*?) \| *(.*?) ?\|", section, re.M):
        needed = arguments.split(" (required)")[0] if "(required)" in arguments else ""
        shape = (set(re.findall(r"`(\w+)`", needed)),
                 set(re.findall(r"`(\w+)`", arguments)) | ({"descriptor"} if "descriptor" in arguments else set()))
        documented |= {verb: shape for verb in re.findall(r"`([a-z-]+)`", verbs)}
    assert documented == control_verbs()


def test_every_verb_of_the_control_socket_has_a_test():
    """By its constant in a test of the manager, or by pandoctl's words in one of a whole server."""
    names = dict(re.findall(r'string_view (k\w+) = "([a-z-]+)";', (ROOT / "ipc/control_verbs.h").read_text()))
    unit = "".join(path.read_text() for path in (ROOT / "tests/unit/manager").rglob("*.cpp"))
    system = "".join(path.read_text() for path in (ROOT / "tests/system").rglob("*.py"))
    missing = [verb for constant, verb in names.items()
               if not re.search(rf"verb::{constant}\b", unit) and f'"{verb}"' not in system
               and '"' + verb.replace("-", '", "', 1) + '"' not in system]
    assert not missing


def members_in_code():
    """Names of all members of the structs in ipc/control_results.h."""
    text = re.sub(r"//.*$", "", (ROOT / "ipc/control_results.h").read_text(), flags=re.M)
    structs = re.findall(r"^struct (\w+) \{(.*?)^\};", text, re.M | re.S)
    assert len(structs) > 10
    return {(struct, member) for struct, body in structs
            for member in re.findall(r"\b(\w+)(?:\{\}| = [^;=]+);", body) if member != "const"}


@pytest.mark.parametrize("struct, member", sorted(members_in_code()))
def test_every_json_member_is_documented(struct, member):
    of_status = ("StatusResult", "CatalogRow", "FoundDamageRow", "XdpRow", "XdpQueueRow", "WorkerRow", "WorkerListResult")
    page = "status.md" if struct in of_status else "control-protocol.md" if struct.startswith("Http") else "pandoctl.md"
    assert f"`{member}`" in (REFERENCE / page).read_text(), f"{member} of {struct} in docs/reference/{page}"


def test_every_counter_is_documented():
    workers = re.search(r"kCounterNames\{(.*?)\};", (ROOT / "ipc/counters.h").read_text(), re.S)[1]
    names = set(re.findall(r'"(\w+)"', workers))
    for path in (ROOT / "manager/control").rglob("*.cpp"):
        for block in re.findall(r"result\.(?:store|journal|image|counters) = \{(.*?)\};", path.read_text(), re.S):
            names |= set(re.findall(r'\{"(\w+)",', block))
    assert len(names) > 60
    text = (REFERENCE / "status.md").read_text()
    assert not [name for name in sorted(names) if f"`{name}`" not in text]


# -- Links and paths -----------------------------------------------------------------------------------------------

def anchors_of(path):
    headings = re.findall(r"^#+ (.*)$", path.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_links_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        there = (path.parent / file).resolve() if file else path
        assert there.exists(), f"{relative(path)} links to {target}"
        if anchor:
            assert anchor in anchors_of(there), f"{relative(path)} links to {target}"


def is_wide(line):
    """Tables and the lines of code blocks cannot be broken."""
    return len(line) > 120 and not line.startswith("|")


@pytest.mark.parametrize("path", DOCUMENTS, ids=relative)
def test_lines_of_documents_fit(path):
    assert not [line for line in path.read_text().splitlines() if is_wide(line)]


# -- Manual pages --------------------------------------------------------------------------------------------------

def test_manual_pages_are_made(tmp_path):
    subprocess.run([ROOT / "scripts/make-man", tmp_path], check=True)
    pages = {path.name for path in tmp_path.iterdir()}
    assert pages == {"pandoctl.1.gz", "pando-manager.8.gz", "pando-worker.8.gz", "pando-tls.8.gz",
                     "pando-http.8.gz", "pando.yaml.5.gz"}
    for page in pages:
        text = gzip.decompress((tmp_path / page).read_bytes()).decode()
        (tmp_path / page).write_text(text)
        assert text.startswith(".TH ") and ".SH NAME" in text
        if groff := shutil.which("groff"):
            made = subprocess.run([groff, "-man", "-t", "-ww", "-Tutf8", "-Kutf8", "-z", tmp_path / page],
                                  capture_output=True, text=True)
            assert made.returncode == 0 and not made.stderr, made.stderr
