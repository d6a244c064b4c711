"""Every verb of pandoctl with wrong words, zones that are not there and huge words: a reason in one line, an exit code
that tells who is wrong, and a manager that goes on as before."""

import re
import subprocess

import pytest

import servers

ZONE = "here.test"
ABSENT = "absent.test"
TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
HUGE = "a" * 100_000

# Of each verb: the fewest words with which it would be done, Z for a zone. "..." after them: it takes more words.
WORDS = {
    "backup": "FOLDER", "compare": "--with 127.0.0.1@1 ...", "completion": "bash", "config check": "", "config diff": "",
    "config show": "", "dnssec key ds": "FILE ...", "dnssec key make": "Z --folder FOLDER",
    "dnssec key show": "FILE ...", "explain": "Z A", "hand-over": "", "help": "", "import": "FILE", "journal print": "", "log level": "info",
    "ready": "", "reload": "", "restore": "FOLDER", "status": "", "stop": "", "store check": "", "store checkpoint": "",
    "store copy": "FILE", "store dump": "FILE", "store load": "FILE", "store stats": "", "top": "--times 1",
    "tls roll": "", "tls status": "", "upgrade": "", "version": "", "worker add": "1", "worker list": "", "worker remove": "1", "worker restart": "",
    "zone abort": "Z ...", "zone add": "Z ...", "zone begin": "Z ...", "zone check": "Z FILE", "zone commit": "Z ...",
    "zone configure": "Z notify []", "zone diff": "Z 1 2", "zone export": "Z", "zone freeze": "Z", "zone history": "Z",
    "zone list": "", "zone notify": "Z", "zone purge": "Z", "zone read": "Z www A", "zone refresh": "Z",
    "dnssec check": "Z", "dnssec clock-ok": "", "dnssec ds": "Z", "dnssec ds-gone": "Z", "dnssec ds-seen": "Z",
    "dnssec continue": "Z", "dnssec hold": "Z", "dnssec roll": "Z", "dnssec restore-key": "Z 1",
    "dnssec import": "Z FILE ...", "dnssec list": "", "dnssec status": "Z", "dnssec unsign": "Z",
    "zone reload": "Z ...", "zone remove": "Z ...", "zone retransfer": "Z", "zone rollback": "Z 1",
    "zone sign": "FILE --key FILE", "zone set": "Z www A 192.0.2.1 ...", "zone snapshot": "Z label", "zone snapshots": "", "zone status": "",
    "zone thaw": "Z", "zone unset": "Z www ..."}
# May be given a zone, and need none.
WITH_ZONE = {"config show": "Z", "journal print": "Z", "store stats": "Z", "zone snapshots": "Z", "zone status": "Z",
             "compare": "--with 127.0.0.1@1 Z"}
OFFLINE = {"dnssec import", "dnssec key make", "zone check"}  # tell of the file that is not there first
NOT_REFUSED = {  # a zone that is not there is an answer, too
    "explain": "No zone of this server is at or above the name", "journal print": "no records"}


def words(verb, zone, shape=None):
    """The command line of a verb. Files are none that are there."""
    shape = WORDS[verb] if shape is None else shape
    named = {"Z": zone, "FILE": "/nonexistent/file", "FOLDER": "/nonexistent/folder"}
    return [*verb.split(), *(named.get(word, word) for word in shape.split() if word != "...")]


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    (folder / "zone").write_text(TEXT)
    made = servers.Pando(folder / "pando", [{"name": ZONE, "file": str(folder / "zone")}], workers=1)
    try:
        made.start(ZONE)
        pid = made.manager_pid()
        yield made
        assert made.manager_pid() == pid, made.log()
        assert made.serial(ZONE) == 1 and made.control("status")["zones"] == 1
        made.control("store", "check")
    finally:
        made.clean()


def run(server, arguments):
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), *arguments],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def is_short(text):
    """A reason that a person can read: one line, and one about --help."""
    return text.count("\n") <= 2 and len(text) < 1000


def test_no_verb_is_left_out():
    page = (servers.SOURCE / "docs/reference/pandoctl.md").read_text()
    headings = re.findall(r"^### `([a-z -]+?)(?: [\[A-Z-].*)?`$", page, re.M)
    assert sorted(headings) == sorted(WORDS)


@pytest.mark.parametrize("verb", sorted(WORDS))
def test_an_unknown_option_and_wrong_numbers_of_words_are_usage(server, verb):
    code, out, err = run(server, [*words(verb, ZONE), "--frobnicate"])
    assert code == 2 and out == "" and "unknown option '--frobnicate'" in err and is_short(err), err
    if "..." not in WORDS[verb]:
        most = words(verb, ZONE, WITH_ZONE.get(verb))
        code, out, err = run(server, [*most, "surplus", "surplus"])
        assert code == 2 and out == "" and re.search("surplus|At Most", err) and is_short(err), err
    needed = [word for word in WORDS[verb].split() if word == "Z" or word.startswith("F")]
    if needed:
        code, out, err = run(server, verb.split())
        assert code == 2 and out == "" and "required" in err and is_short(err), err


@pytest.mark.parametrize("verb", sorted(verb for verb in WORDS if "Z" in WITH_ZONE.get(verb, WORDS[verb])))
def test_a_zone_that_is_not_there_and_names_that_are_none_are_refused(server, verb):
    shape = WITH_ZONE.get(verb)
    code, out, err = run(server, words(verb, ABSENT, shape))
    if verb in NOT_REFUSED:
        assert code == 0 and NOT_REFUSED[verb] in out, out
    else:
        assert code == 1 and is_short(err), err
        assert f"{ABSENT}." in err or verb in OFFLINE or verb == "compare" and f"{ABSENT}." in out, out + err
    for name, reason in (("a..b", "a..b"), (HUGE, "above 255 octets"), ("", "")):
        if name == "" and verb in WITH_ZONE:
            continue  # as if no zone was given
        code, out, err = run(server, words(verb, name, shape))
        told = out + err if verb == "compare" else err
        # Each row of a comparison begins with the zone as it was given.
        assert code in (1, 2) and reason in told and is_short(err), f"{name[:9]}: {code} {told[:999]}"


@pytest.mark.parametrize("arguments", [
    ("zone", "set", ZONE, HUGE, "A", "192.0.2.1"), ("zone", "set", ZONE, "x", HUGE, "192.0.2.1"),
    ("zone", "set", ZONE, "x", "TXT", HUGE), ("zone", "set", ZONE, "x", "A", HUGE),
    ("zone", "unset", ZONE, HUGE), ("zone", "unset", ZONE, "ns1", HUGE),
    ("zone", "unset", ZONE, "ns1", "A", HUGE), ("zone", "read", ZONE, HUGE), ("zone", "read", ZONE, "@", HUGE),
    ("zone", "snapshot", ZONE, HUGE), ("zone", "rollback", ZONE, HUGE), ("zone", "export", ZONE, "--to", "/" + HUGE),
    ("zone", "begin", *[f"z{number}.test" for number in range(20_000)]),
    ("zone", "commit", *[f"z{number}.test" for number in range(20_000)]),
    ("zone", "add", "new.test", "--file", HUGE), ("zone", "add", "new.test", "--file", "x", f"colour={HUGE}"),
    ("zone", "add", "new.test", "--file", "x", f"{HUGE}=blue"), ("zone", "add", "new.test", "--template", HUGE),
    ("zone", "add", "new.test", "--primary", HUGE), ("zone", "configure", ZONE, HUGE, "x"),
    ("zone", "configure", ZONE, "notify", HUGE), ("zone", "configure", ZONE, "notify", "[" * 100_000),
    ("explain", ZONE, HUGE), ("explain", ZONE, "A", "--from", HUGE), ("explain", ZONE, "A", "--key", HUGE),
    ("log", "level", HUGE), ("store", "copy", "/" + HUGE), ("store", "dump", "/" + HUGE), ("compare", "--with", HUGE),
    ("config", "show", HUGE), ("worker", "add", "9" * 1000)], ids=lambda words: " ".join(words)[:40])
def test_huge_words_are_refused_with_a_reason_that_is_not(server, arguments):
    needs_transaction = arguments[1] in ("set", "unset")
    if needs_transaction:
        assert run(server, ["zone", "begin", ZONE])[0] == 0
    code, out, err = run(server, arguments)
    if needs_transaction:
        assert run(server, ["zone", "abort", ZONE])[0] == 0
    assert code in (1, 2) and out == "" and err.startswith("pandoctl: ") and is_short(err), f"{code} {err[:999]}"
