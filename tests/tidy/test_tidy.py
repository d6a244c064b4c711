"""The tree checks itself: which folder may include which, third-party headers in their rooms, no switched-off
tests, headers that say what they are."""

import re

import pytest

from tree import MAY_INCLUDE, ROOM_ORDER, ROOT, SOURCES, includes, relative, room_of

# From config only settings and their rules: a configuration knows rules, not bytes.
CONFIG_MAY_INCLUDE_OF_ZONE = {"zone/settings/compiled_settings.h", "zone/settings/acl.h"}

ROOMS = {  # third-party header → folders that may include it
    r"yaml-cpp/": {"config/yaml"},
    r"spdlog/": {"ipc"},
    r"boost/(interprocess|version)": {"shm"},
    r"boost/(asio|beast|system)": {"http"},
    r"boost/": {"shm", "http"},
    r"openssl/": {"dns", "manager/tls", "tls"},
    r"systemd/": {"manager", "ctl"},
    r"seccomp\.h": {"sandbox"},
    r"nlohmann/": {"ipc", "ctl", "manager", "http"},
    r"CLI/": {"ctl", "manager", "worker", "http", "tls"},
    r"asio": {"ipc", "worker", "manager", "ctl", "tls"},
    r"xxhash\.h": {"base", "shm", "zone", "worker", "manager"},
}

@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_includes_point_down(path):
    folder = path.relative_to(ROOT).parts[0]
    for kind, target in includes(path):
        top = target.split("/")[0]
        if kind == '"' and top in MAY_INCLUDE and top != folder:
            allowed = {top, target.rpartition("/")[0]} & MAY_INCLUDE[folder]
            assert allowed, f"{relative(path)} includes {target}"
            if folder == "config" and top == "zone":
                assert target in CONFIG_MAY_INCLUDE_OF_ZONE, f"{relative(path)} includes {target}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_rooms_include_rooms_below(path):
    folder, room = room_of(relative(path))
    if folder not in ROOM_ORDER:
        assert room == "", f"{folder} has no rooms, or ROOM_ORDER does not know them"
        return
    order = ROOM_ORDER[folder]
    assert room in order, f"{relative(path)}: ROOM_ORDER does not know this room"
    for kind, target in includes(path):
        if kind == '"' and target.startswith(folder + "/"):
            below = room_of(target)[1]
            assert order.index(room) <= order.index(below), f"{relative(path)} includes {target}, from a room above"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_third_party_headers_stay_in_their_rooms(path):
    folder, room = room_of(relative(path))
    for kind, target in includes(path):
        if kind == "<":
            for pattern, rooms in ROOMS.items():
                if re.match(pattern, target):
                    assert {folder, f"{folder}/{room}"} & rooms, f"{relative(path)} includes <{target}>"


def test_headers_begin_with_pragma_once():
    for path in SOURCES:
        if path.suffix == ".h":
            assert path.read_text().lstrip().startswith("#pragma once"), relative(path)


def test_no_test_is_switched_off():
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix in (".cpp", ".h") and path.is_file():
            assert "DISABLED" + "_" not in path.read_text(), relative(path)


A_TEST = re.compile(r"^(TEST|TEST_F|TEST_P|TYPED_TEST|TYPED_TEST_P)\(\s*(\w+)\s*,\s*(\w+)\s*\)", re.M)
A_FIXTURE = re.compile(r"^(?:(?:class|struct)\s+(\w+)\s*(?:final\s*)?:|using\s+(\w+)\s*=)", re.M)


def suite_clashes(program):
    """What is wrong with the names of tests in one program, given as {file: text}. googletest knows a suite by its
    plain name: two classes of one name end the program, and what a filter finds should stand in one place."""
    tests, rooms, fixtures, found = {}, {}, {}, []
    for file, text in program.items():
        for names in A_FIXTURE.findall(text):
            fixtures.setdefault(names[0] or names[1], []).append(file)
        for kind, suite, name in A_TEST.findall(text):
            tests.setdefault((suite, name), []).append(file)
            rooms.setdefault(suite, {}).setdefault(kind, set()).add(file)
    for suite, kinds in rooms.items():
        files = sorted(set().union(*kinds.values()))
        if len(kinds) > 1:
            found.append(f"{suite} is a suite of {' and of '.join(sorted(kinds))}: {files}")
        if "TEST" in kinds and len(files) > 1:
            found.append(f"{suite} stands in {files}")
        named = fixtures.get(suite, [])
        shared = [file for file in named if file.endswith(".h")]
        used = sorted({place for file in files for place in ([file] if file in named else shared)})
        if "TEST" not in kinds and len(used) != 1:
            found.append(f"{suite} is defined in {used}, and used in {files}")
    return found + [f"{suite}.{name} is in {files}" for (suite, name), files in tests.items() if len(files) > 1]


PROGRAMS = [sorted(path for path in folder.rglob("*") if path.is_file()) for folder in sorted((ROOT / "tests/unit").iterdir())]
PROGRAMS += [[path] for kind in ("property", "crash", "scenario", "process") for path in sorted((ROOT / "tests" / kind).glob("*.cpp"))]


def test_suites_have_names_of_their_own():
    for program in PROGRAMS:
        assert not suite_clashes({relative(path): path.read_text() for path in program})


def test_unit_tests_have_namespaces_of_their_own():
    """The tests of a room are compiled in groups, and have helpers of the same name."""
    for path in sorted((ROOT / "tests/unit").rglob("*_test.cpp")):
        text = path.read_text()
        assert not re.search(r"^namespace \{", text, re.M), f"{relative(path)}: a namespace without a name"


@pytest.mark.parametrize("program, clashes", [
    ({"a.cpp": "class A : public T {\nTEST_F(A, One)\n", "b.cpp": "TEST(B, One)\nTEST(B, Two)\n"}, 0),
    ({"f.h": "class A : public T {", "a.cpp": "TEST_F(A, One)\n", "b.cpp": "TEST_F(A, Two)\n"}, 0),
    ({"f.h": "class A : public T {", "a.cpp": "TEST_F(A, One)\n", "b.cpp": "TEST_F(A, One)\n"}, 1),
    ({"a.cpp": "class A : public T {\nTEST_F(A, One)\n", "b.cpp": "using A = T;\nTEST_F(A, Two)\n"}, 1),
    ({"a.cpp": "class A : public T {\nTEST_F(A, One)\nTEST(A, Two)\n"}, 1),
    ({"a.cpp": "TEST(A, One)\n", "b.cpp": "TEST(A, Two)\n"}, 1),
    ({"a.cpp": "class A : public T {\nTEST_F(A, One)\n", "b.cpp": "using A = int;\nTEST(B, Two)\n"}, 0),
])
def test_a_clash_of_suites_is_found(program, clashes):
    assert len(suite_clashes(program)) == clashes


def test_files_stay_readable():
    """House style: few files above 800 lines."""
    long = [relative(path) for path in SOURCES if len(path.read_text().splitlines()) > 800]
    assert not long, long


# Store::publish() takes a transaction as an rvalue: moved, or begun in the call itself.
A_PUBLICATION = re.compile(r"\bpublish\(\s*(?:std::move\(|[\w.()>-]*\bbegin\w*\()")


def test_one_door_publishes_versions():
    """Only NextVersion calls Store::publish(), which belongs to shm/; only the committer makes versions of its own."""
    publishers = {relative(path) for path in SOURCES if A_PUBLICATION.search(path.read_text())}
    assert publishers == {"shm/store.cpp", "manager/commit/next_version.cpp"}
    committers = {relative(path) for path in SOURCES if "Step::kCommit" in path.read_text()}
    assert committers == {"manager/commit/committer.cpp"}


# Draft::apply() and Draft::put_zone(), which bring data of zones into a version.
A_ZONE_CHANGE = re.compile(r"\bdraft_?(?:\(\))?\.(apply|put_zone)\(")

STAGING = "manager/change/change_staging.cpp"
CHANGERS = {
    "apply": {STAGING, "manager/checkpoint/store_replay.cpp", "manager/dnssec/signature_watch.cpp"},  # the last one in a draft that nobody publishes
    "put_zone": {STAGING, "manager/checkpoint/dump_loading.cpp", "manager/commit/zone_diff.cpp"},  # the last one likewise
}


@pytest.mark.parametrize("call", CHANGERS)
def test_one_road_changes_zones(call):
    """While the server runs only the road's staging changes zones; before that a replay or a dump does."""
    sources = [path for path in SOURCES if relative(path).startswith("manager/")]
    callers = {relative(path) for path in sources if call in A_ZONE_CHANGE.findall(path.read_text())}
    assert callers == CHANGERS[call]


def test_changes_pass_their_road():
    """Sources hand a ZoneChange in; the staging functions belong to the road."""
    users = {relative(path) for path in SOURCES if re.search(r"\bstage_(changesets|whole_zone|file_batch)\(", path.read_text())}
    assert users == {"manager/change/change_staging.h", STAGING, "manager/change/change_road.cpp", "manager/change/first_transfers.cpp"}


def test_the_core_of_a_draft_stays_in_its_folder():
    """DraftCore knows no rules: others use the steps of zone/draft/."""
    users = {room_of(relative(path)) for path in SOURCES if re.search(r"\bDraftCore\b|\bdraft\w*(\(\))?\.core\(", path.read_text())}
    assert users == {("zone", "draft"), ("zone", "read")}  # the second for its friends


def test_one_replay_applies_records_of_the_journal():
    """StoreReplay makes the versions of a replay, and applies their changesets."""
    replays = {relative(path) for path in SOURCES if "Step::kRecovery" in path.read_text()}
    assert replays == {"manager/checkpoint/store_replay.cpp", "manager/commit/next_version.cpp"}
    changes = {relative(path) for path in SOURCES if relative(path).startswith("manager/checkpoint/")
               and re.search(r"\bdraft\w*(\(\))?(\.|->)apply\(", path.read_text())}
    assert changes == {"manager/checkpoint/store_replay.cpp"}


@pytest.mark.parametrize("call, publishes", [
    ("store.publish(std::move(transaction), draft.root(), 0)", True),
    ("data_->store->publish(\n      std::move(*transaction_), root, last)", True),
    ("store_.publish(store_.begin_private(), root, 1)", True),
    ("publish(parts.store().begin(), root, 1)", True),
    ("next.publish(position)", False),
    ("publish(*group, position)", False),
    ("on_published(std::move(hook))", False),
])
def test_a_publication_is_recognised(call, publishes):
    assert bool(A_PUBLICATION.search(call)) == publishes


def test_every_fuzz_target_has_seeds():
    for path in (ROOT / "tests/fuzz").glob("*.cpp"):
        corpus = ROOT / "tests/fuzz/corpus" / path.stem
        assert corpus.is_dir() and any(corpus.iterdir()), f"{relative(path)} has no seeds"
