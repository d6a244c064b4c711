"""Each documented way to build is one that CI builds whole, or one of which a few sources are built here.

To build all of each takes CI most of an hour. What differs are flags and the checks that they make: a way that cannot be
configured, or whose flags do not go with the sources, is found by one source. GCC's warnings of -O3 are not: the one
source that they concerned is built with it. Without precompiled headers, which take longer than a source.
"""

import json
import re
import subprocess

import pytest

from tree import ROOT

PRESETS = [preset["name"] for preset in json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
           if not preset.get("hidden")]
ONE = ["CMakeFiles/pando_base.dir/base/address.cpp.o"]
GROUP = ["CMakeFiles/pando_base.dir/groups/pando_base_0.cpp.o"]
WITH_O3 = ["CMakeFiles/pando_dns.dir/dns/ip_text.cpp.o"]
# Words for cmake, targets, and a word of the compiler's command line that proves the way.
HERE = {
    "debug": (["--preset", "debug"], ONE, "-g"),
    "coverage": (["--preset", "coverage"], ONE, "--coverage"),
    "fuzz": (["--preset", "fuzz"], GROUP, "-fsanitize=fuzzer-no-link"),
    "Release": (["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release"], ONE + WITH_O3, "-O3"),
}


def built_by_ci():
    """Presets that the script of `.ci/run` builds."""
    return set(re.findall(r"cmake --preset (\w+)", (ROOT / "scripts/test").read_text()))


def test_each_preset_is_built_somewhere():
    assert "scripts/test" in (ROOT / ".ci/run").read_text()
    assert "scripts/fuzz" in (ROOT / "scripts/test").read_text()
    assert set(PRESETS) == built_by_ci() | (set(HERE) & set(PRESETS))


def test_each_preset_is_documented_and_each_documented_one_is_there():
    line = next(line for line in (ROOT / "CONTRIBUTING.md").read_text().splitlines() if "cmake --preset" in line)
    named = re.search(r"--preset (\w+)", line)[1]
    assert sorted([named, *re.search(r"also: (.*)", line)[1].split(", ")]) == sorted(PRESETS)
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "scripts").iterdir()]
    used = {name for page in pages for name in re.findall(r"cmake --preset (\w+)", page.read_text())}
    assert used <= set(PRESETS)


@pytest.mark.parametrize("way", HERE)
def test_a_way_that_ci_does_not_build_whole_builds_a_source(tmp_path, way):
    words, targets, flag = HERE[way]
    subprocess.run(["cmake", *words, "-DPANDO_PRECOMPILE=OFF", "-B", str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    done = subprocess.run(["ninja", "-C", str(tmp_path), "-j2", *targets], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-4000:]
    commands = json.loads((tmp_path / "compile_commands.json").read_text())
    one = re.compile(r"/(base/address|groups/pando_base_0)\.cpp$")  # alone, or in a group
    command = next(entry["command"] for entry in commands if one.search(entry["file"]))
    assert flag in command.split(), command
