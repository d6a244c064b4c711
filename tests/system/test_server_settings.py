"""Settings of the server that show in answers and processes."""

import json
import os
import signal
import subprocess

import dns.message
import dns.query
import dns.rdatatype
import pytest

import servers

ZONE = ("$ORIGIN example.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\n@ NS ns2.other.\n"
        "ns A 192.0.2.1\nns AAAA 2001:db8::1\nwww A 192.0.2.10\n@ MX 5 mail\nmail A 192.0.2.25\n"
        "alias CNAME www\n*.wild A 192.0.2.30\nsub NS ns.sub\nns.sub A 192.0.2.53\n")
QUESTIONS = [("www.example", "A"), ("example", "MX"), ("example", "NS"), ("alias.example", "A"),
             ("x.wild.example", "A"), ("www.example", "TXT"), ("no.example", "A"), ("q.sub.example", "A"), ("example", "SOA")]


@pytest.fixture
def zone_file(tmp_path):
    path = tmp_path / "example.zone"
    path.write_text(ZONE)
    return path


def records(message):
    """Sections as sets of lines."""
    return [{line for rrset in section for line in rrset.to_text().lower().splitlines()}
            for section in (message.answer, message.authority, message.additional)]


def ask_all(server):
    return {question: records(server.ask(*question)) for question in QUESTIONS}


def test_full_responses_are_those_of_bind_and_the_switch_is_live(tmp_path, pando, peers, zone_file):
    bind = servers.Bind(tmp_path / "bind", {"example": f'type primary; file "{zone_file}";'},
                        minimal="no")
    peers(bind, "example")
    server = pando([{"name": "example", "file": str(zone_file)}])
    server.start("example")
    minimal = ask_all(server)
    assert minimal["www.example", "A"][1:] == [set(), set()]
    server.extra = "  minimal-responses: false"
    server.write_config()
    assert server.control("reload")["restart_needed"] == []
    servers.wait_until("the answer has an authority section", lambda: server.ask("www.example", "A").authority)
    full = ask_all(server)
    assert full == ask_all(bind)
    assert full["www.example", "A"][1] and full["example", "MX"][2]


def test_workers_are_bound_to_processors(pando, zone_file):
    usable = sorted(os.sched_getaffinity(0))
    server = pando([{"name": "example", "file": str(zone_file)}], extra="  cpu-affinity: true")
    server.start("example")
    bound = {slot: os.sched_getaffinity(row["pid"]) for slot, row in server.workers().items()}
    assert bound == {slot: {usable[slot % len(usable)]} for slot in bound}
    assert os.sched_getaffinity(server.manager_pid()) == set(usable)
    server.extra = ""
    server.write_config()
    assert server.control("reload")["restart_needed"] == ["server.cpu-affinity"]


def test_a_log_of_json_has_no_other_line_at_a_start(pando, zone_file):
    """Warnings of the configuration stand before the log's first line, errors are its last."""
    server = pando([{"name": "example", "file": str(zone_file)}], workers=1, extra="  log: {format: json}",
                   keys=[{"name": "key.", "secret": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE="}])
    server.config.chmod(0o644)
    server.start("example")
    lines = [json.loads(line) for line in server.log_path.read_text().splitlines()]
    [warned] = [line for line in lines if line["event"] == "configuration"]
    assert warned["level"] == "warning" and "other users can read or write this file" in warned["text"]

    server.stop()
    server.log_path.write_text("")
    server.config.write_text(server.config.read_text().replace("  log:", "  lisen: []\n  loc: {}\n  log:"))
    for program in ("pando-manager", "pando-http"):
        done = subprocess.run([str(servers.build_folder() / program), "--config", str(server.config)],
                              capture_output=True, text=True, timeout=60, cwd=server.folder)
        lines = [json.loads(line) for line in done.stderr.splitlines()]
        assert done.returncode == 78 and done.stdout == ""
        assert {line["process"] for line in lines} == {program}
        reasons = [line["reason"] for line in lines if line["level"] == "error"]
        assert len(reasons) == 2 and all(word in text for word, text in zip(("lisen", "loc"), reasons)), reasons


def test_manager_and_workers_log_as_the_configuration_says_also_after_a_reload(pando, zone_file):
    server = pando([{"name": "example", "file": str(zone_file)}], workers=2, extra="  log: {level: debug, format: json}")
    server.start("example")
    lines = [json.loads(line) for line in server.log_path.read_text().splitlines()]
    assert {line["process"] for line in lines} == {"pando-manager", "worker"}
    assert [type(line["slot"]) for line in lines if line["event"] == "worker_running"] == [int, int]

    server.extra = "  log: {level: 'off', format: text}"
    server.write_config()
    server.control("reload")
    size = server.log_path.stat().st_size
    pids = {row["pid"] for row in server.workers().values()}
    for pid in pids:  # with another level, the log tells of each end and start
        os.kill(pid, signal.SIGTERM)
    servers.wait_until("workers are replaced", lambda: all(
        row["state"] == "serving" and row["pid"] not in pids for row in server.workers().values()))
    lines = [json.loads(line) for line in server.log_path.read_text()[size:].splitlines()]
    # Said before the worker hears of the level.
    assert {line["event"] for line in lines} <= {"worker_running", "store_attached"}
