"""The laboratory's statistics, tables and plots, from fixed runs; and the documents have what bench/report makes of the
run that is kept."""

import importlib.machinery
import importlib.util
import json
import math
import random
import re
import sys
import xml.etree.ElementTree as xml

import pytest

from tree import ROOT

sys.path.insert(0, str(ROOT / "bench"))
import charts  # noqa: E402
import laboratory  # noqa: E402  (which finds the system tests)
import pairs  # noqa: E402
import profiles  # noqa: E402
import question_mix  # noqa: E402
import servers  # noqa: E402
import tables  # noqa: E402


def script(name):
    """A program of bench/ without a suffix, as a module."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "bench" / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


# -- Statistics ----------------------------------------------------------------------------------------------------

def test_a_spread_is_the_median_and_the_middle_of_the_values():
    assert pairs.spread([3.0]) == (3, 3, 3)
    assert pairs.spread([1, 2]).median == 1.5
    assert pairs.spread(range(11)) == (5, 1, 9)
    assert pairs.spread([7, 1, 3, 5, 100]) == pytest.approx((5, 1.8, 62.8))


@pytest.mark.parametrize("other, apart", [
    ([3.0, 3.1, 2.9, 3.0, 3.2], True),  # three times, give or take little
    ([1.0, 1.01, 0.99, 1.0, 1.0], False),  # the same
    ([1.2, 1.0, 1.4, 1.1, 1.3], False),  # a fifth more, and the pairs differ by more than that
    ([1.2, 1.21, 1.19, 1.2, 1.2], True),  # a fifth more in each pair
    ([0.5, 0.52, 0.48, 0.5, 0.5], True),  # half
    ([2.0, 9.0, 1.1, 4.0, 0.9], False),  # twice and more, but anything else as well
])
def test_servers_are_told_apart_if_the_difference_is_larger_than_the_spread(other, apart):
    assert pairs.compare([1.0] * 5, other).apart is apart


def test_it_does_not_matter_which_server_is_the_reference():
    dice = random.Random(1)
    for _ in range(200):
        a, b = ([dice.uniform(1, 3) for _ in range(7)] for _ in range(2))
        there, back = pairs.compare(a, b), pairs.compare(b, a)
        assert there.apart == back.apart
        assert there.ratio.median * back.ratio.median == pytest.approx(1)


def test_a_busy_minute_that_hits_both_is_no_spread():
    """Turns four times as long as others, in pairs of which each has the same ratio."""
    found = pairs.compare([1, 4, 1, 2, 4], [2, 8, 2, 4, 8])
    assert found.apart and found.ratio == (2, 2, 2)


def test_pairs_need_both_turns_and_two_pairs_say_nothing():
    assert pairs.compare([1, None, 1, 1], [2, 5, None, 2]).ratio.median == 2
    assert not pairs.compare([1, None, 1, 1], [2, 5, None, 2]).apart
    assert pairs.compare([1, 1, 1, None], [2, 2, 2]).apart
    assert pairs.compare([None], [1]) is None
    assert pairs.compare([0, 0], [1, 1]) is None
    assert not pairs.compare([1, 1, 1], [0, 0, 0]).apart


# -- Tables --------------------------------------------------------------------------------------------------------

RUN = {
    "date": "2026-01-02 03:04 UTC", "machine": {"processors": 2, "model": "A processor", "kernel": "6.1"},
    "note": "Compilers ran beside it.", "load_average": [1.04, 7.96],
    "servers": {"pando": {"version": "0.1.0", "from": "this tree", "commit": "abc1234"},
                "nsd": {"version": "4.15.0", "from": "given"}, "bind": {"version": "9.18.1", "from": "distribution"}},
    "profiles": {"1m": {"count": 1_000_003, "unit": "record"}, "updates": {"count": 10_000, "unit": "record"}},
    "skipped": {"root": {"all": "its data are not there"}, "tld": {"bind": "it has ended"}},
    "rows": [
        {"profile": "1m", "measure": "plain user",
         "turns": {"pando": [1.0, 1.1, 0.9], "nsd": [3.0, 3.3, 2.7], "bind": [1.1, 0.9, 1.3]}},
        {"profile": "1m", "measure": "plain system",
         "turns": {"pando": [4.0, 4.0, 4.0], "nsd": [4.0, None, 4.0], "bind": [9.0, 9.1, 9.2]}},
        {"profile": "1m", "measure": "memory",
         "turns": {"pando": [40.0] * 3, "nsd": [400.0] * 3, "bind": [2_340_000.0] * 3}},
        {"profile": "1m", "measure": "load", "turns": {"pando": [0.0123] * 3, "nsd": [], "bind": [12.34, None, 12.34]}},
        {"profile": "updates", "measure": "rate 64",
         "turns": {"pando": [20_000.0] * 3, "nsd": [], "bind": [1_000.0, 1_000.0, 1_000.0]}}],
}


def rows_of(text):
    return {line.split(" | ")[0].strip("| "): [cell.strip(" |") for cell in line.split(" | ")[1:]]
            for line in text.splitlines() if line.startswith("| ")}


def test_a_table_has_medians_spreads_and_claims_that_hold():
    rows = rows_of(tables.table(tables.Results(RUN), "own", {"plain user": ""}))
    assert rows["own"] == ["Pando", "NSD", "BIND"]
    assert rows["addresses (1,000,003 records)"] == [
        "1.00 (0.920 to 1.08)", "3.00 (2.76 to 3.24), × 3.00", "1.10 (0.940 to 1.26), not told apart"]


def test_a_figure_has_three_digits_that_count():
    assert [tables.figure(value) for value in (0.01234, 1.234, 12.34, 123.4, 12345, 2_340_000)] == [
        "0.012", "1.23", "12.3", "123", "12,345", "2.3 M"]


def test_failed_turns_and_servers_leave_gaps():
    rows = rows_of(tables.markdown(RUN))
    assert rows["CPU seconds from start to the first answer"]
    text = tables.table(tables.Results(RUN), "load", {"load": ""})
    assert rows_of(text)["addresses (1,000,003 records)"] == ["0.012", "–", "12.3, not told apart"]
    assert tables.table(tables.Results(RUN), "none", {"restart": ""}) == ""


def test_user_and_system_are_added_turn_by_turn():
    assert tables.Results(RUN).rows["1m", "plain all"] == {
        "pando": [5.0, 5.1, 4.9], "nsd": [7.0, None, 6.7], "bind": pytest.approx([10.1, 10.0, 10.5])}


def test_the_head_says_when_where_which_versions_and_what_is_missing():
    text = tables.head(RUN).replace("\n", " ")
    for words in ("2026-01-02 03:04 UTC, 2 processors (A processor), Linux 6.1", "load average 1.0 to 8.0",
                  "Pando 0.1.0 (commit abc1234)", "NSD 4.15.0,", "BIND 9.18.1 **of the distribution, not the newest**",
                  "Compilers ran beside it.", "Not measured: root (its data are not there), BIND (tld: it has ended)."):
        assert words in text
    assert max(map(len, tables.head(RUN).splitlines())) <= 120


# -- Plots ---------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"


def test_there_is_a_plot_for_each_thing_that_was_measured():
    assert sorted(tables.plots(RUN)) == ["bench-load.svg", "bench-memory.svg", "bench-queries.svg", "bench-updates.svg"]


def test_a_plot_has_a_bar_for_each_server_in_proportion():
    drawing = xml.fromstring(tables.plots(RUN)["bench-updates.svg"])
    bars = {rect.get("class"): float(rect.get("width")) for rect in drawing.iter(f"{SVG}rect") if rect.get("class") != "ground"}
    assert bars["ours"] == pytest.approx(20 * bars["theirs"], rel=0.02)
    texts = [text.text for text in drawing.iter(f"{SVG}text")]
    assert {"Pando", "BIND", "20,000", "1,000", "a zone of 10,000 names, 64 clients"} <= set(texts)


def test_parts_follow_each_other_and_what_is_not_told_apart_says_so():
    text = tables.plots(RUN)["bench-queries.svg"]
    drawing = xml.fromstring(text)
    own, kernel = [rect for rect in drawing.iter(f"{SVG}rect") if rect.get("class", "").startswith("ours")]
    assert float(own.get("x")) + float(own.get("width")) == pytest.approx(float(kernel.get("x")), abs=0.2)
    assert float(kernel.get("width")) == pytest.approx(4 * float(own.get("width")), rel=0.02)
    figures = [text.text for text in drawing.iter(f"{SVG}text") if " + " in text.text and "µs" not in text.text]
    assert figures == ["1.00 + 4.00", "2.85 + 4.00  ≈ Pando", "1.09 + 9.01"]  # of NSD there are two pairs


def test_everything_is_inside_of_the_plot():
    bars = [charts.Bar(name, (value,), value, value, f"{value}", name == "Pando")
            for name, value in (("Pando", 1.0), ("NSD", 1e9), ("Knot", 0.0))]
    for count in range(1, 9):
        drawing = xml.fromstring(charts.draw("Title", "about", [charts.Group(f"<g{i}> & more", bars) for i in range(count)]))
        width, height = float(drawing.get("width")), float(drawing.get("height"))
        for rect in drawing.iter(f"{SVG}rect"):
            x, y = float(rect.get("x", 0)), float(rect.get("y", 0))
            assert 0 <= x and x + float(rect.get("width")) <= width
            assert 0 <= y and y + float(rect.get("height")) <= height
        assert max(float(text.get("y")) for text in drawing.iter(f"{SVG}text")) < height
        assert len({(t.get("x"), t.get("y")) for t in drawing.iter(f"{SVG}text")}) == len(list(drawing.iter(f"{SVG}text")))


def test_a_plot_has_colours_for_light_and_dark():
    text = tables.plots(RUN)["bench-memory.svg"]
    light, dark = text.split("@media (prefers-color-scheme: dark)")
    classes = set(re.findall(r'class="([a-z ]+)"', text))
    for name in {word for words in classes for word in words.split()} - {"title", "group", "part"}:
        assert f".{name} {{" in light and f".{name} {{" in dark, name


# -- Documents -----------------------------------------------------------------------------------------------------

def test_only_the_part_between_the_marks_is_replaced():
    report = script("report")
    page = f"before\n{report.BEGIN}old\n{report.END}after\n"
    assert report.replaced(page, "new\n") == f"before\n{report.BEGIN}new\n{report.END}after\n"
    assert report.replaced(report.replaced(page, "new\n"), "old\n") == page
    assert report.replaced("", "new\n") == "new\n"


def test_the_documents_have_what_report_makes_of_the_kept_run():
    report = script("report")
    run = json.loads(report.RESULTS.read_text())
    page = (ROOT / "docs/performance.md").read_text()
    assert report.replaced(page, "\n" + tables.markdown(run) + "\n") == page
    made = tables.plots(run)
    kept = {path.name: path.read_text() for path in (ROOT / "docs/images").glob("bench-*.svg")}
    assert made == kept
    shown = re.findall(r"docs/images/(bench-[\w-]+\.svg)", (ROOT / "README.md").read_text())
    assert len(shown) >= 2 and set(shown) <= set(made)


# -- The laboratory ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind, place", [("nsd", "sbin/nsd"), ("nsd", "nsd"), ("knot", "sbin/knotd"), ("knot", "src/knotd"),
                                         ("bind", "sbin/named"), ("bind", "bin/named/named")])
def test_a_peer_is_found_where_it_was_installed_or_built(tmp_path, monkeypatch, kind, place):
    monkeypatch.setenv(f"PANDO_{kind.upper()}", str(tmp_path))
    with pytest.raises(RuntimeError):
        servers.peer_program(kind)
    program = tmp_path / place
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text("#!/bin/sh\necho version 12.34.5-beta >&2\n")
    with pytest.raises(RuntimeError):
        servers.peer_program(kind)  # nobody may execute it
    program.chmod(0o755)
    assert servers.peer_program(kind) == str(program)
    assert laboratory.described(kind) == {"version": "12.34.5-beta", "from": "given"}


def test_a_peer_without_a_folder_is_the_distribution_s(monkeypatch):
    monkeypatch.delenv("PANDO_NSD", raising=False)
    assert servers.peer_program("nsd").endswith("/nsd")


def test_profiles_have_scales():
    assert laboratory.options_of(["root", "1m:0.25"]).profiles == [("root", 1.0), ("1m", 0.25)]
    assert [name for name, _ in laboratory.options_of([]).profiles] == [*laboratory.PROFILES, "updates"]
    for words in (["2m"], ["--servers", "pando,djbdns"]):
        with pytest.raises(SystemExit):
            laboratory.options_of(words)


def test_a_turn_that_failed_is_a_gap(tmp_path, monkeypatch):
    monkeypatch.setattr(laboratory, "described", lambda kind: {"version": "1", "from": "given"})
    run = laboratory.Run(laboratory.options_of(["--servers", "pando,nsd", "--output", str(tmp_path / "run.json")]))
    for turn, kind, value in ((0, "pando", 1), (0, "nsd", 2), (1, "nsd", 3), (2, "pando", 4), (2, "nsd", 5)):
        run.add("1m", "load", kind, turn, value)
    run.fail("1m", "pando", RuntimeError("it has ended\nand more"))
    run.save()
    kept = json.loads((tmp_path / "run.json").read_text())
    assert kept["rows"] == [{"profile": "1m", "measure": "load", "turns": {"pando": [1, None, 4], "nsd": [2, 3, 5]}}]
    assert kept["skipped"] == {"1m": {"pando": "RuntimeError: it has ended"}}
    assert len(kept["load_average"]) == 2


def test_every_profile_of_the_laboratory_has_a_title():
    assert {*laboratory.PROFILES, "updates"} <= set(tables.TITLES)


# -- Profiles and questions ----------------------------------------------------------------------------------------

def test_nsec3_hashes_are_those_of_rfc_5155():
    """Appendix A has salt and iterations; without them the hash of a name is SHA-1 alone."""
    assert profiles.nsec3_hash("tld") == "8ipio7fafd752q13o60p4535u2u5lecv"
    assert profiles.nsec3_hash("TLD.") == profiles.nsec3_hash("tld")


def test_questions_have_their_shares_of_names_that_are_not_there():
    dice = random.Random(7)
    root = list(question_mix.root_shaped(["com.", "org."], dice, 4000))
    absent = sum(not line.split()[0].endswith((".com.", ".org.")) for line in root)
    assert math.isclose(absent / 4000, 0.6, abs_tol=0.04)
    assert len({line.split()[0] for line in root}) == 4000, "none is like another"
    names = [f"n{i}" for i in range(1000)]
    owners = list(question_mix.of_owners(names, "example", dice, 1000))
    assert sum("0x." in line for line in owners) == 50
    assert sum("www." not in line for line in question_mix.of_zones(names, dice, 1000)) == 50
    there = {f"www.{name}.tld" for name in names}
    assert 400 < sum(line.split()[0] in there for line in question_mix.below_delegations(names, "tld", dice, 1000)) < 600


def test_profiles_count_the_records_that_they_write(tmp_path):
    for profile in ("addresses", "delegations", "tld", "tld-nsec", "tld-nsec3"):
        path = tmp_path / profile
        _, records = profiles.write(profile, path, 0.0005)
        assert records == sum(not line.startswith("$") for line in path.read_text().splitlines()), profile
    _, records = profiles.ten(tmp_path / "ten")
    assert records == 10 == sum(not line.startswith("$") for line in (tmp_path / "ten").read_text().splitlines())
