"""The programs of an optimised build are hardened, and those of users have no crash points."""

import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

from tree import ROOT

PROGRAMS = ("pando-manager", "pando-worker", "pandoctl", "pando-http", "pando-tls")
ENDBR64 = b"\xf3\x0f\x1e\xfa"
PROBED_PAGE = bytes.fromhex("4881ec00100000 48830c2400")  # subtract 4,096 from the stack pointer, and write there


def builds():
    """Optimised builds without sanitizers that have all programs."""
    named = os.environ.get("PANDO_BUILD")
    folders = [pathlib.Path(named).resolve()] if named else sorted(ROOT.glob("build/*"))
    for folder in folders:
        if not all((folder / name).exists() for name in PROGRAMS):
            continue
        cache = (folder / "CMakeCache.txt").read_text()
        value = {m[1]: m[2] for m in re.finditer(r"^(\w+):\w+=(.*)$", cache, re.M)}
        optimised = value.get("CMAKE_BUILD_TYPE") in ("Release", "RelWithDebInfo", "MinSizeRel")
        if optimised and not value.get("PANDO_SANITIZE") and value.get("PANDO_FUZZ") == "OFF":
            yield folder, value


BUILDS = list(builds())


def readelf(*words):
    if not shutil.which("readelf"):
        pytest.skip("no readelf")
    return subprocess.run(["readelf", "-W", *map(str, words)], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not BUILDS, reason="no optimised build")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_are_hardened(name):
    for folder, _ in BUILDS:
        program = folder / name
        dynamic, headers = readelf("-d", program), readelf("-l", program)
        assert re.search(r"\(FLAGS_1\).*NOW.*PIE", dynamic), f"{program}: bound at start, at any address"
        assert "GNU_RELRO" in headers, program
        assert re.search(r"GNU_STACK.*RW ", headers), f"{program}: no executable stack"
        symbols = readelf("--dyn-syms", program)
        assert "__stack_chk_fail" in symbols, program
        assert re.search(r"__\w+_chk\b", symbols.replace("__stack_chk_fail", "")), f"{program}: _FORTIFY_SOURCE"
        # Workers index vectors in the query path, and check what they map by other means (decision 048).
        assert ("__glibcxx_assert_fail" in symbols) == (name != "pando-worker"), f"{program}: _GLIBCXX_ASSERTIONS"
        if platform.machine() == "x86_64":
            code = program.read_bytes()
            assert code.count(ENDBR64) > 500, f"{program}: -fcf-protection, which marks targets of indirect jumps"
            assert code.count(PROBED_PAGE) > 2, f"{program}: -fstack-clash-protection"


@pytest.mark.skipif(not BUILDS, reason="no optimised build")
@pytest.mark.parametrize("name", PROGRAMS)
def test_manager_and_worker_are_linked_as_a_whole(name):
    """Without a word, GCC links without it when an option for another program is in the way (083 of the tuning log)."""
    for folder, value in BUILDS:
        symbols = readelf("-s", folder / name)
        if "'.symtab'" not in symbols or "clang" in readelf("-p", ".comment", folder / name):
            continue  # stripped, or of a compiler that links in its own way
        whole = value.get("PANDO_LTO", "").upper() in ("ON", "1", "TRUE", "YES") and name in PROGRAMS[:2]
        # The names of functions that the linker's compiler made local.
        assert (".lto_priv" in symbols) == whole, folder / name


@pytest.mark.skipif(not BUILDS, reason="no optimised build")
@pytest.mark.parametrize("name", PROGRAMS[:2])
def test_crash_points_are_in_builds_with_tests_alone(name):
    for folder, value in BUILDS:
        assert (b"PANDO_CRASH_AT" in (folder / name).read_bytes()) == (value["PANDO_CRASH_POINTS"] == "ON"), folder


def test_the_default_build_is_the_one_that_ci_makes():
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    release = next(preset for preset in presets if preset["name"] == "release")["cacheVariables"]
    text = (ROOT / "CMakeLists.txt").read_text()
    assert f"set(CMAKE_BUILD_TYPE {release['CMAKE_BUILD_TYPE']})" in text
    assert f"set(CMAKE_CXX_FLAGS_RELWITHDEBINFO \"{release['CMAKE_CXX_FLAGS_RELWITHDEBINFO']}\")" in text


@pytest.mark.skipif(not shutil.which("cmake"), reason="no cmake")
def test_builds_of_users_have_no_crash_points():
    """Builds without tests are those of users: scripts/run, and packages as the handbook makes them."""
    default = re.search(r"option\(PANDO_CRASH_POINTS .* (\S+)\)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert default == "${PANDO_TESTS}"
    for page in ("scripts/run", "docs/howto/install-under-systemd.md"):
        for line in (ROOT / page).read_text().splitlines():
            if "cmake --preset" in line:
                assert "PANDO_TESTS=OFF" in line, page
