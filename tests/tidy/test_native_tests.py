"""scripts/native-tests runs native tests as a user without rights, and as root those that this user skips."""

import os
import pathlib
import pwd
import re
import subprocess
import tempfile

import pytest

from tree import ROOT

# Like a program of googletest: it fails for root, unless root is asked for the test that root alone can run.
PROGRAM = """#!/bin/sh
case "$*" in
*--gtest_filter=Some.NeedsRoot:*) [ "$(id -u)" = 0 ] || exit 1; echo done >>{folder}/as-root ;;
*)
  [ "$(id -u)" != 0 ] && [ "$(id -G)" = "$(id -g)" ] || exit 1
  read line <{source}/file && [ "$line" = text ] && echo >own-file || exit 1
  echo '[  SKIPPED ] Some.NeedsRoot (0 ms)'
  echo '[  SKIPPED ] 1 test, listed below:'
  echo '[  SKIPPED ] Some.NeedsRoot'
  ;;
esac
"""


def is_user(name):
    try:
        return pwd.getpwnam(name).pw_uid != 0
    except KeyError:
        return False


needs_root = pytest.mark.skipif(os.getuid() != 0 or not is_user("nobody"), reason="needs root and the user nobody")


@pytest.fixture
def folder():
    """Others may go into it, unlike pytest's own folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        folder.chmod(0o755)
        yield folder


@pytest.fixture
def tree(folder):
    """Makes sources with a build: their mode, and that of the folder above."""
    def make(name, above=0o755, own=0o755, program=PROGRAM):
        source = folder / name / "sources"
        tests = source / "build/asan/tests"
        tests.mkdir(parents=True)
        (source / "file").write_text("text\n")
        (source / "build/asan/CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={source}\n")
        (tests / "unit_some").write_text(program.format(folder=folder, source=source))
        (tests / "unit_some").chmod(0o755)
        (tests / "CTestTestfile.cmake").write_text(f'add_test(unit_some "{tests}/unit_some")\n')
        (source / "build/asan/CTestTestfile.cmake").write_text('subdirs("tests")\n')
        source.chmod(own)
        (folder / name).chmod(above)
        return source
    return make


def run(source, user):
    return subprocess.run([ROOT / "scripts/native-tests", source / "build/asan", "--timeout", "60"], capture_output=True,
                          text=True, env={**os.environ, "PANDO_TEST_USER": user}, timeout=120)


@needs_root
@pytest.mark.parametrize("modes", [{}, {"above": 0o700}, {"own": 0o700}])
def test_root_has_the_tests_run_by_a_user_and_runs_those_that_this_user_skips(tree, folder, modes):
    source = tree("here", **modes)
    done = run(source, "nobody")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "as-root").read_text() == "done\n", done.stdout
    assert not list(source.rglob("own-file")) and not list(source.rglob("LastTest.log"))
    mounts = pathlib.Path("/proc/self/mounts").read_text()
    assert str(folder) not in mounts


@needs_root
@pytest.mark.parametrize("word", ["exit 1", "echo '[  SKIPPED ] Some.Other (0 ms)'"])
def test_a_failure_of_either_is_a_failure(tree, word):
    """The second program passes for the user, and fails when root asks for the test that was skipped."""
    program = f"#!/bin/sh\n[ \"$(id -u)\" != 0 ] || exit 1\n{word}\n"
    assert run(tree("here", program=program), "nobody").returncode == 1


def test_without_another_user_all_is_run_as_oneself(tree, folder):
    source = tree("here", program="#!/bin/sh\nid -u >{folder}/uid\n")
    assert run(source, "").returncode == 0
    assert (folder / "uid").read_text() == f"{os.getuid()}\n"


def test_ci_names_a_user():
    assert re.search(r"^  export PANDO_TEST_USER=\w", (ROOT / ".ci/run").read_text(), re.M)
    assert re.search(r"^  scripts/native-tests build/asan ", (ROOT / "scripts/test").read_text(), re.M)


