"""What running programs say: refusals in the log, errors of pandoctl, addresses that are not open."""

import json
import re
import socket
import subprocess

import dns.query
import dns.rcode
import dns.tsig
import dns.tsigkeyring
import dns.update
import dns.xfr
import pytest
import yaml

import servers
from test_records import ctl

ZONE = "said.test"
SECRET = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAwMDE="
OTHER = "AAAAZXQtc2VjcmV0LXNlY3JldC1zZWNyZXQtMDAwMQ=="
TEXT = "@ 300 SOA ns1 admin 1 3600 600 86400 300\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"


@pytest.fixture
def make(pando, tmp_path):
    def made(rules, **options):
        file = tmp_path / "said.zone"
        file.write_text(TEXT)
        return pando([{"name": ZONE, "file": str(file), **rules}], workers=1,
                     keys=[{"name": "panel.", "secret": SECRET}], **options)
    return made


def update(server, key=None, secret=SECRET):
    options = {"keyring": dns.tsigkeyring.from_text({key: secret}), "keyalgorithm": dns.tsig.HMAC_SHA256} if key else {}
    message = dns.update.UpdateMessage(ZONE, **options)
    message.add("x", 300, "A", "192.0.2.3")
    return dns.query.udp(message, "127.0.0.1", port=server.port, timeout=20)


def line_of(server, event):
    """The last line of the log with this event, and its fields."""
    lines = servers.wait_until(f"{event} in the log",
                               lambda: [line for line in server.log().splitlines() if f" {event} " in line])
    return dict(re.findall(r'(\w+)=("[^"]*"|\S+)', lines[-1]))


def test_a_signature_by_another_secret_is_named_with_its_key(make):
    server = make({"allow-update": [{"key": "panel."}]}).start(ZONE)
    with pytest.raises(dns.tsig.PeerBadSignature):
        update(server, "panel.", OTHER)
    fields = line_of(server, "request_not_verified")
    assert (fields["error"], fields["key"], fields["zone"]) == ("BADSIG", "panel.", f"{ZONE}.")
    assert fields["client"].startswith("127.0.0.1@")


@pytest.mark.parametrize("refuse, kind, reason", [
    (lambda server: update(server), "UPDATE", "no rule of allow-update allows it"),
    (lambda server: update(server, "unknown."), "UPDATE", "BADKEY: no key of that name and algorithm"),
    (lambda server: list(dns.query.xfr("127.0.0.1", ZONE, port=server.port, lifetime=20)), "AXFR",
     "no rule of allow-transfer allows it")], ids=["update", "key", "transfer"])
def test_refusals_of_workers_leave_a_line_and_a_flood_few(make, refuse, kind, reason):
    server = make({"allow-update": [{"key": "panel.", "address": "192.0.2.1"}]}).start(ZONE)

    def refused():
        try:
            answer = refuse(server)
        except (dns.tsig.PeerBadKey, dns.xfr.TransferError):
            return True
        return answer.rcode() == dns.rcode.REFUSED

    assert refused()
    fields = line_of(server, "request_refused")
    assert (fields["kind"], fields["zone"], fields["reason"].strip('"')) == (kind, f"{ZONE}.", reason)
    for _ in range(100):
        assert refused()
    lines = [line for line in server.log_path.read_text().splitlines() if " request_refused " in line]
    seconds = {line[:19] for line in lines}
    assert len(lines) <= len(seconds) + 1, "one a second"


def pandoctl(*words):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), *map(str, words)], capture_output=True, text=True,
                          timeout=60, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("text, message", [
    ("zones:\n  - {name: a.test, file: x\nserver: {}\n", ":2: the { that begins here is not closed"),
    ("server: {}\nzones:\n  - name: 'a.test\n    file: x\n", ":3: the ' that begins here is not closed"),
    ("server:\n  listen: ['127.0.0.1:53']\n", "a port is written '127.0.0.1@53'"),
    ("server:\n  listen: ['[::1]:53']\n", "a port is written '::1@53'"),
    ("server: {listne: []}\n", "did you mean 'listen'?"),
    ("remotes: [{name: a, address: [127.0.0.1], tls: {}}]\n"
     "zones: [{name: z, file: z, allow-transfer: [{tls: a}]}]\n", "neither 'hostname' nor 'pins'")])
def test_a_mistake_of_the_configuration_is_told_with_its_remedy(tmp_path, text, message):
    path = tmp_path / "p.yaml"
    path.write_text(text)
    done = pandoctl("--config", path, "config", "check")
    assert done.returncode == 1 and message in done.stderr, done.stderr


@pytest.mark.parametrize("rule", ["127.0.0.1", ["127.0.0.1"], ["127.0.0.0/8", "192.0.2.7"], {"address": "127.0.0.1"}],
                         ids=json.dumps)
def test_a_bare_address_where_a_rule_is_wanted_is_one(make, rule):
    server = make({"allow-transfer": rule, "allow-update": rule}).start(ZONE)
    assert len(server.records(ZONE)) == 3
    assert update(server).rcode() == dns.rcode.NOERROR
    assert ctl(server, "config", "check")[0] == 0
    shown = yaml.safe_load(ctl(server, "config", "show", ZONE)[1])["zones"][0]["allow-transfer"]
    assert all(list(one) == ["address"] for one in shown), "written as rules"


@pytest.mark.parametrize("value, refusal", [
    ("127.0.0.1", None), ('["127.0.0.1"]', None), ('{"address": "127.0.0.1"}', None),
    ("192.0.2.1", "other"), ("[127.0.0.1]", "'[127.0.0.1]' is no JSON"),
    ("localhost", "allow-transfer: 'localhost' is not an IP address"),
    ("127.0.0.1/8", "has bits set behind its prefix length"), ("[]", "other"),
    ('{"deny": true}', "a rule needs 'key', 'address' or 'tls'")])
def test_a_bare_address_is_a_rule_in_commands_too(make, tmp_path, value, refusal):
    server = make({}).start(ZONE)
    assert ctl(server, "zone", "add", "added.test", "--file", str(tmp_path / "said.zone"))[0] == 0
    with pytest.raises(dns.xfr.TransferError):
        server.records("added.test")
    code, _, err = ctl(server, "zone", "configure", "added.test", "allow-transfer", value)
    if refusal in (None, "other"):
        assert code == 0, err
    else:
        assert code == 1 and refusal in err
    if refusal is None:
        assert len(server.records("added.test")) == 3
    else:
        with pytest.raises(dns.xfr.TransferError):
            server.records("added.test")


def test_a_check_of_the_configuration_reads_all_zones_if_asked_to(make, tmp_path):
    """Of files, lists of zones and zones that were added alike. A server that runs is not disturbed."""
    for name, text in (("good", TEXT), ("bad", TEXT + "www 300 A 192.0.2.256\n"), ("no-soa", "@ 300 NS ns1\n")):
        (tmp_path / name).write_text(text)
    (tmp_path / "list").write_text(f"listed.test {tmp_path}/bad\n")
    server = make({})
    server.config.write_text(server.config.read_text() + f"zone-lists: ['{tmp_path}/list']\n")
    server.start(ZONE)
    ctl(server, "zone", "add", "added.test", "--file", str(tmp_path / "no-soa"))
    ctl(server, "zone", "add", "fine.test", "--file", str(tmp_path / "good"))
    code, out, err = ctl(server, "config", "check")
    assert code == 0 and "ok, 4 zones" in out, err
    code, out, err = ctl(server, "config", "check", "--zones")
    assert code == 1 and "ok" not in out
    assert f"zone listed.test.: {tmp_path}/bad:4: " in err and f"zone added.test.: {tmp_path}/no-soa" in err
    assert "fine.test" not in err and ZONE not in err
    verdict = json.loads(ctl(server, "--json", "config", "check", "--zones")[1])
    assert verdict["ok"] is False and len(verdict["errors"]) == 2 and verdict["zones"] == 4
    (tmp_path / "bad").write_text(TEXT)
    (tmp_path / "no-soa").write_text(TEXT)
    assert ctl(server, "config", "check", "--zones")[0] == 0
    assert server.ask("listed.test", "SOA").rcode() == dns.rcode.SERVFAIL, "a check loads nothing"


@pytest.mark.parametrize("words, code", [
    (["zone", "statsu"], 2), (["zone", "add"], 2), (["zone", "status", "absent.test"], 1), (["zone", "read", "a..b"], 1),
    (["--timeout", "0", "status"], 2)])
def test_errors_for_programs_are_json(make, words, code):
    server = make({}).start(ZONE)
    done = pandoctl("--config", server.config, "--json", *words)
    assert done.returncode == code and done.stdout == ""
    assert list(json.loads(done.stderr)) == ["error"] and json.loads(done.stderr)["error"]


def test_a_request_that_is_too_large_is_told_with_its_bound(make):
    server = make({}).start(ZONE)
    names = [f"{'x' * 60}.{number}.test" for number in range(17000)]  # 1.2 MB; a command line has 2 MiB
    code, out, err = ctl(server, "zone", "reload", *names)
    assert code == 1 and out == ""
    assert re.fullmatch(r"pandoctl: the request is larger than 1 MiB, with \d+ bytes: give fewer zones at a time\n", err), err
    assert ctl(server, "zone", "reload", ZONE)[0] == 0


@pytest.mark.parametrize("words, message", [
    (["--jsn", "status"], "unknown option '--jsn'; did you mean '--json'?"),
    (["status", "--al"], "unknown option '--al'; did you mean '--all'?"),
    (["zone", "begin", "a.test", "--if-seral=5"], "unknown option '--if-seral'; did you mean '--if-serial'?"),
    (["zone", "list", "--frobnicate"], "unknown option '--frobnicate'"),
    (["zone", "lsit"], "unknown command 'zone lsit'; did you mean 'list'?"),
    (["zone", "list", "more"], "not expected: more")])
def test_an_unknown_word_is_told_with_the_one_that_was_meant(words, message):
    done = pandoctl(*words)
    assert done.returncode == 2 and message in done.stderr.splitlines()[0], done.stderr
    told = pandoctl("--json", *words)
    assert told.returncode == 2 and message in json.loads(told.stderr)["error"]


def test_a_port_that_another_process_has_is_told_and_opened_later(make):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
        server = make({}, port=servers.free_port())
        other.bind(("127.0.0.1", server.port))
        with open(server.log_path, "ab") as log:
            server.process = subprocess.Popen(server.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        servers.wait_until("the manager runs", server.manager_pid, seconds=60)
        servers.wait_until("a worker serves", lambda: server.control("status")["workers_running"] == 1)
        [reason] = server.control("status")["addresses"].values()
        assert "Address already in use" in reason and str(server.port) in reason
        code, out, _ = ctl(server, "ready")
        assert code == 1 and "no address is open" in out
        assert "NOT OPEN" in ctl(server, "status")[1]
        assert "Address already in use" in line_of(server, "no_address_open")["error"]
        server.control("reload")
        assert " manager_ready " not in server.log() and ctl(server, "ready")[0] == 1, "a reload opens no address"
    servers.wait_until("the address is open", lambda: ctl(server, "ready")[0] == 0)
    assert server.serial(ZONE) == 1
    line_of(server, "manager_ready")


def test_an_address_that_another_pando_serves_is_told_and_opened_later(make, pando, tmp_path):
    """The kernel would let both of one user share it, and each would have half of the queries."""
    first = make({}).start(ZONE)
    second = pando([{"name": "other.test", "file": str(tmp_path / "said.zone")}], workers=1)
    second.port = first.port
    second.write_config()
    with open(second.log_path, "ab") as log:
        second.process = subprocess.Popen(second.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    servers.wait_until("the second manager runs", second.manager_pid, seconds=60)
    assert f"(process {first.manager_pid()})" in line_of(second, "no_address_open")["error"]
    assert ctl(second, "ready")[0] == 1
    assert {first.serial(ZONE) for _ in range(50)} == {1}, "all queries go to the first"
    first.stop()
    servers.wait_until("the second serves", lambda: ctl(second, "ready")[0] == 0)
    assert second.serial("other.test") == 1
    line_of(second, "manager_ready")


def test_keys_that_wait_for_a_restart_are_told_until_it_happens(make):
    server = make({}).start(ZONE)
    assert server.control("status")["restart_needed"] == []
    server.extra = "  cpu-affinity: true"
    server.write_config()
    for _ in range(2):
        server.control("reload")
        assert server.control("status")["restart_needed"] == ["server.cpu-affinity"]
        assert "server.cpu-affinity" in ctl(server, "status")[1]
    server.stop()
    server.start(ZONE)
    assert server.control("status")["restart_needed"] == []


def test_a_server_without_a_zone_is_told_from_one_that_serves_all(pando):
    server = pando([], workers=1).start()
    assert ctl(server, "ready")[0] == 0
    assert ctl(server, "ready", "--zones")[:2] == (4, "not ready: no zone is configured: every query is refused\n")
    assert ctl(server, "--json", "ready", "--zones")[0] == 4


def test_the_manager_is_ready_with_the_zones_that_it_has(pando, tmp_path):
    (tmp_path / "said.zone").write_text(TEXT)
    zones = [{"name": name, "file": str(tmp_path / file)} for name, file in ((ZONE, "said.zone"), ("none.test", "none"))]
    server = pando(zones, workers=1).start(ZONE)
    assert line_of(server, "manager_ready")["reason"] == '"1 of 2 zones loaded"'
    whole = pando(zones[:1], workers=1).start(ZONE)
    assert line_of(whole, "manager_ready")["reason"] == '"all zones loaded"'
