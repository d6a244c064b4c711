"""pandoctl without a manager: checks, exit codes, output for programs."""

import json
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("PANDO_BUILD", ROOT / "build/release"))
PANDOCTL = BUILD / "pandoctl"

DONE, FAILED, USAGE, UNREACHABLE = 0, 1, 2, 3

pytestmark = pytest.mark.skipif(not PANDOCTL.exists(), reason="needs a built pandoctl")


def pandoctl(*arguments):
    return subprocess.run([str(PANDOCTL), *map(str, arguments)], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


def test_the_example_configuration_passes():
    result = pandoctl("--config", ROOT / "config/pando.yaml", "config", "check")
    assert result.returncode == DONE, result.stderr
    assert result.stdout.endswith("config/pando.yaml: ok, 5 zones\n")


def test_problems_name_file_line_and_key(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("server:\n  udp-payload: 1\n  udp-payload: 2\nsever: {}\n")
    result = pandoctl("config", "check", "--config", path)
    assert result.returncode == FAILED
    assert result.stderr.splitlines() == [
        f"{path}:2: server.udp-payload: '1' is not a whole number from 512 to 4096",
        f"{path}:3: server.udp-payload: given twice, first in line 2",
        f"{path}:4: sever: unknown key; did you mean 'server'?"]
    verdict = json.loads(pandoctl("--json", "--config", path, "config", "check").stdout)
    assert verdict["ok"] is False and len(verdict["errors"]) == 3


@pytest.mark.parametrize("name", ["example.com", "example.net", "2.0.192.in-addr.arpa",
                                  "signed.example", "signed3.example"])
def test_the_example_zones_pass(name):
    result = pandoctl("zone", "check", name, ROOT / f"config/zones/{name}.zone")
    assert result.returncode == DONE, result.stderr
    assert result.stdout.startswith(f"{name}.: ok, serial ")


def test_a_broken_zone_fails_with_its_line(tmp_path):
    path = tmp_path / "zone"
    path.write_text("$TTL 1\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.256\n")
    result = pandoctl("zone", "check", "example.com", path)
    assert result.returncode == FAILED
    assert f"{path}:4: " in result.stderr


@pytest.mark.parametrize("arguments", [
    [], ["nonsense"], ["zone"], ["zone", "check", "example.com"], ["worker", "add", "0"],
    ["worker", "add", "many"], ["status", "too", "much"], ["--timeout", "0", "status"]])
def test_a_wrong_command_line_is_told_from_a_failure(arguments):
    result = pandoctl(*arguments)
    assert result.returncode == USAGE
    assert result.stderr


@pytest.mark.parametrize("arguments, meant", [
    (["stauts"], "status"), (["--json", "-c", "zone", "zoen", "list"], "zone"), (["zone", "statsu"], "status"),
    (["zone", "retransfre", "example.com"], "retransfer")])
def test_an_unknown_word_gets_the_nearest_one(arguments, meant):
    result = pandoctl(*arguments)
    assert result.returncode == USAGE
    reason = json.loads(result.stderr)["error"] if "--json" in arguments else result.stderr
    assert f"; did you mean '{meant}'?" in reason and "unknown command" in reason


@pytest.mark.parametrize("arguments", [
    ["status"], ["reload"], ["stop"], ["zone", "list"], ["zone", "status"],
    ["zone", "status", "example.com"], ["worker", "list"], ["worker", "add"],
    ["worker", "remove", "2"]])
def test_without_a_manager_commands_say_so(tmp_path, arguments):
    path = tmp_path / "p.yaml"
    path.write_text("server: {run-directory: run}\n")
    result = pandoctl("--config", path, *arguments)
    assert result.returncode == UNREACHABLE
    assert str(tmp_path / "run/control.sock") in result.stderr
    assert result.stdout == ""


def test_a_broken_configuration_still_leads_to_the_manager(tmp_path):
    path = tmp_path / "p.yaml"
    path.write_text("server: {run-directory: run}\nzones: [{name: a..b}]\n")
    result = pandoctl("--config", path, "status")
    assert result.returncode == UNREACHABLE
    assert "the configuration has errors" in result.stderr
    assert str(tmp_path / "run/control.sock") in result.stderr


def test_a_command_does_not_read_the_zones_of_a_large_configuration(tmp_path):
    """100,000 zones took it five seconds of processor time and 600 MB. The mistake behind them shows that it did."""
    path = tmp_path / "p.yaml"
    zones = "".join(f"  - {{name: z{number}.example, file: zone, allow-query: [192.0.2.1]}}\n" for number in range(20_000))
    path.write_text(f"server: {{run-directory: run}}\nzones:\n{zones}  - {{name: a..b}}\n")
    result = pandoctl("--config", path, "status")
    assert result.returncode == UNREACHABLE
    assert str(tmp_path / "run/control.sock") in result.stderr
    assert "the configuration has errors" not in result.stderr


def test_help_and_version_succeed():
    assert "zone check" not in pandoctl("--help").stderr
    assert pandoctl("--help").returncode == DONE
    assert pandoctl("--version").stdout.strip()


def test_words_of_an_option_are_told_as_words():
    for result, code in ((pandoctl("zone", "check", "--help"), DONE),
                         (pandoctl("zone", "check", "--verify", "odd", "a", "b"), USAGE)):
        text = result.stdout + result.stderr
        assert result.returncode == code and "{off,refuse,warn}" in text and "\0" not in text
