"""The tree checks itself: which folder may include which, third-party headers in their rooms, no switched-off
tests, headers that say what they are."""

import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

# docs/ARCHITECTURE.md, "Layout": a folder includes only what is below it.
MAY_INCLUDE = {
    "base": set(),
    "dns": {"base"},
    "shm": {"base"},
    "zone": {"base", "dns", "shm"},
    "config": {"base", "dns", "zone"},
    "ipc": {"base", "dns"},
    "worker": {"base", "dns", "shm", "zone", "ipc"},
    "manager": {"base", "dns", "shm", "zone", "ipc", "config"},
    "ctl": {"base", "dns", "shm", "zone", "ipc", "config"},
}
# From config only settings and their rules: a configuration knows rules, not bytes.
CONFIG_MAY_INCLUDE_OF_ZONE = {"zone/settings.h", "zone/acl.h"}

ROOMS = {  # third-party header → folders that may include it
    r"yaml-cpp/": {"config"},
    r"spdlog/": {"ipc"},
    r"boost/": {"shm"},
    r"openssl/": {"dns"},
    r"systemd/": {"manager"},
    r"seccomp\.h": {"worker"},
    r"nlohmann/": {"ipc", "ctl", "manager"},
    r"CLI/": {"ctl", "manager", "worker"},
    r"asio": {"ipc", "worker", "manager", "ctl"},
    r"xxhash\.h": {"base", "shm", "zone", "worker", "manager"},
}

SOURCES = [path for folder in MAY_INCLUDE for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".h", ".cpp")]


def relative(path):
    return str(path.relative_to(ROOT))


def includes(path):
    return re.findall(r'^\s*#\s*include\s+([<"])([^">]+)[">]', path.read_text(), re.M)


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_includes_point_down(path):
    folder = path.relative_to(ROOT).parts[0]
    for kind, target in includes(path):
        top = target.split("/")[0]
        if kind == '"' and top in MAY_INCLUDE and top != folder:
            assert top in MAY_INCLUDE[folder], f"{relative(path)} includes {target}"
            if folder == "config" and top == "zone":
                assert target in CONFIG_MAY_INCLUDE_OF_ZONE, f"{relative(path)} includes {target}"


@pytest.mark.parametrize("path", SOURCES, ids=relative)
def test_third_party_headers_stay_in_their_rooms(path):
    folder = path.relative_to(ROOT).parts[0]
    for kind, target in includes(path):
        if kind == "<":
            for pattern, rooms in ROOMS.items():
                if re.match(pattern, target):
                    assert folder in rooms, f"{relative(path)} includes <{target}>"


def test_headers_begin_with_pragma_once():
    for path in SOURCES:
        if path.suffix == ".h":
            assert path.read_text().lstrip().startswith("#pragma once"), relative(path)


def test_no_test_is_switched_off():
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix in (".cpp", ".h") and path.is_file():
            assert "DISABLED" + "_" not in path.read_text(), relative(path)


def test_files_stay_readable():
    """House style: few files above 800 lines."""
    long = [relative(path) for path in SOURCES if len(path.read_text().splitlines()) > 800]
    assert not long, long


def test_every_fuzz_target_has_seeds():
    for path in (ROOT / "tests/fuzz").glob("*.cpp"):
        corpus = ROOT / "tests/fuzz/corpus" / path.stem
        assert corpus.is_dir() and any(corpus.iterdir()), f"{relative(path)} has no seeds"
