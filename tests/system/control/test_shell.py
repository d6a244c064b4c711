"""pandoctl for people: words that the shell completes, colour on a terminal, the state of zones in one command."""

import os
import pty
import re
import subprocess

import dns.rcode
import pytest

import servers
from test_records import ctl

TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "good").write_text(TEXT)
    zones = [{"name": f"{name}.test", "file": str(tmp_path / "good")} for name in ("alpha", "beta", "better")]
    return pando(zones, workers=1).start("alpha.test")


def offered(server, words):
    """What the shell offers in place of the last word."""
    script = f"""
export PATH={servers.build_folder()}:$PATH
eval "$(pandoctl completion bash)"
COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _pandoctl; printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, cwd=server.folder)
    assert done.stderr == "", done.stderr
    return sorted(done.stdout.split())


def test_the_shell_completes_verbs_options_and_zones(server):
    mine = f"pandoctl -c {server.config}"
    assert offered(server, "pandoctl zone s") == ["set", "sign", "snapshot", "snapshots", "status"]
    assert offered(server, "pandoctl zone begin --if") == ["--if-serial"]
    for verb in ("zone status", "zone set", "config show", "journal print", "store stats", "zone purge"):
        assert offered(server, f"{mine} {verb} be") == ["beta.test.", "better.test."], verb
        assert "beta.test." not in offered(server, f"{mine} {verb} alpha.test. be"), verb
    for verb in ("zone begin", "zone commit", "zone reload", "zone remove"):
        assert offered(server, f"{mine} {verb} alpha.test. bet") == ["beta.test.", "better.test."], verb
    assert offered(server, f"pandoctl --run-directory {server.folder}/run zone status al") == ["alpha.test."]
    assert offered(server, f"{mine} zone status zzz") == [], "no such zone, and no file of that name"
    ctl(server, "zone", "add", "bernard.test", "--file", server.zones[0]["file"])
    assert "bernard.test." in offered(server, f"{mine} zone status ber"), "as it is now"


def test_names_of_zones_are_no_commands(server):
    """Whoever may add a zone chooses its name, and an administrator presses Tab."""
    for name in ("`{touch,spoilt}`.test", "$(id).test", "{a,b}.test", "~root.test", "a&b.test", "c>spoilt.test"):
        ctl(server, "zone", "add", name, "--file", server.zones[0]["file"])
    names = offered(server, f"pandoctl -c {server.config} zone status ''")
    assert "alpha.test." in names and all(re.fullmatch(r"[\w.-]+", name) for name in names), names
    assert not (server.folder / "spoilt").exists()


def on_a_terminal(*command, **environment):
    """What the command writes to a terminal."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(list(map(str, command)), stdout=follower, stderr=follower, stdin=subprocess.DEVNULL,
                               env={**os.environ, **environment})
    os.close(follower)
    written = b""
    try:
        while part := os.read(leader, 65536):
            written += part
    except OSError:  # EIO: the other end has been closed
        pass
    os.close(leader)
    assert process.wait(60) == 0
    return written.decode()


def test_problems_are_red_on_a_terminal_alone(server):
    command = (servers.build_folder() / "pandoctl", "--config", server.config, "status")
    red = on_a_terminal(*command)
    # The tests' workers run as the manager's user.
    assert re.search("\x1b\\[31mWARNING: +workers run as the manager's user.*\x1b\\[0m", red), red
    assert "\x1b" not in on_a_terminal(*command, NO_COLOR="1")
    assert "\x1b" not in ctl(server, "status")[1]
    assert "\x1b" not in on_a_terminal(*command[:3], "--json", "status")


def test_one_command_tells_which_zones_are_not_served_and_why(server, tmp_path):
    assert ctl(server, "zone", "status") == (0, "3 of 3 zones ok\n", "")
    (tmp_path / "bad").write_text(TEXT + "www 300 A 192.0.2.256\n")
    server.zones += [{"name": "broken.test", "file": str(tmp_path / "bad")}, {"name": "away.test", "primaries": ["up"]}]
    server.remotes = [{"name": "up", "address": [f"127.0.0.1@{servers.free_port()}"]}]
    server.write_config()
    assert ctl(server, "reload")[0] == 1
    servers.wait_until("the primary was asked", lambda: server.control("zone", "status", "away.test")["problem"])
    code, out, err = ctl(server, "zone", "status")
    assert code == 1 and err == "" and out.splitlines()[-1] == "3 of 5 zones ok, 2 with problems"
    assert re.search(rf"broken\.test\..*{tmp_path}/bad:4: ", out) and "away.test." in out
    assert "alpha.test" not in out, "those that are ok need no line"
    code, out, _ = ctl(server, "zone", "status", "broken.test")
    assert code == 1 and re.search(r"^state: +not-loaded$", out, re.M) and f"{tmp_path}/bad:4: " in out
    assert server.ask("broken.test", "SOA").rcode() == dns.rcode.SERVFAIL
    (tmp_path / "bad").write_text(TEXT)
    ctl(server, "zone", "reload", "broken.test")
    assert ctl(server, "zone", "status", "broken.test")[0] == 0
    assert ctl(server, "zone", "status")[1].splitlines()[-1] == "4 of 5 zones ok, 1 with problems"
    rows = {row["name"]: row["state"] for row in server.control("zone", "list")}
    assert rows == {**{f"{name}.test.": "ok" for name in ("alpha", "beta", "better", "broken")}, "away.test.": "not-loaded"}
