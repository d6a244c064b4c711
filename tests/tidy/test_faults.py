"""The page of faults names tests and places that exist."""

import functools
import re

import pytest

from tree import ROOT

PAGE = ROOT / "docs/contributing/faults.md"
TOKENS = re.findall(r"`([^`\s]+)`", PAGE.read_text())
NATIVE = sorted({token for token in TOKENS if re.fullmatch(r"[A-Z]\w+\.[A-Z]\w+", token)})
SCRIPTED = sorted({token for token in TOKENS if "::" in token})
PLACES = sorted({token for token in TOKENS if ("/" in token or token.endswith(".json")) and "::" not in token})


@functools.cache
def native_tests():
    found = set()
    for path in (ROOT / "tests").rglob("*.cpp"):
        found |= {".".join(names) for names in re.findall(r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)\)", path.read_text(), re.M)}
    return found


@functools.cache
def scripted_tests():
    return {f"{path.name}::{name}" for path in (ROOT / "tests").rglob("test_*.py")
            for name in re.findall(r"^def (test_\w+)\(", path.read_text(), re.M)}


def test_the_page_has_all_kinds():
    assert len(NATIVE) > 40 and len(SCRIPTED) > 40 and len(PLACES) > 25


@pytest.mark.parametrize("name", NATIVE)
def test_a_native_test_exists(name):
    assert name in native_tests()


@pytest.mark.parametrize("name", SCRIPTED)
def test_a_scripted_test_exists(name):
    assert name in scripted_tests()


@pytest.mark.parametrize("place", PLACES)
def test_a_place_exists(place):
    assert (ROOT / place).exists() or (ROOT / f"{place}.h").exists()


def test_each_row_has_a_rule_a_place_and_a_test():
    rows = [line.strip("|").split("|") for line in PAGE.read_text().splitlines() if re.match(r"\| [A-Z]", line)]
    assert len(rows) >= 25
    for row in rows:
        assert len(row) == 4 and all(cell.strip() for cell in row), row
        assert set(re.findall(r"`([^`\s]+)`", row[2])) & set(PLACES), row
        assert set(re.findall(r"`([^`\s]+)`", row[3])) & {*NATIVE, *SCRIPTED}, row
