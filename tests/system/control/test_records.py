"""Records by commands: read page by page, compared, edited in transactions that are published as one version."""

import json
import os
import pwd
import socket
import subprocess
import sys
import threading

import dns.query
import dns.rcode
import dns.update
import pytest

import servers

ZONE = "records.test"
OTHER = "other.test"

TEXT = """$TTL 300
@ SOA ns1 admin 10 3600 600 864000 60
@ NS ns1
ns1 A 192.0.2.1
www 600 A 192.0.2.10
www 600 A 192.0.2.11
alias CNAME www
text TXT "two words" "a;b"
"""


@pytest.fixture
def server(pando, tmp_path):
    zones = []
    for zone in (ZONE, OTHER):
        file = tmp_path / f"{zone}.zone"
        file.write_text(TEXT)
        zones.append({"name": zone, "file": str(file), "allow-update": [{"address": "127.0.0.1"}],
                      "allow-transfer": [{"address": "127.0.0.1"}]})
    made = pando(zones)
    return made.start(ZONE)


def ctl(server, *words):
    """pandoctl for people: exit code, output, errors."""
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), *words],
                          capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


def lines(server, *words):
    code, out, err = ctl(server, "zone", "read", *words)
    assert code == 0, err
    return out.splitlines()


def refused(server, reason, *words):
    code, out, err = ctl(server, "zone", *words)
    assert code == 1 and reason in err, f"{words}: {code} {out} {err}"


def update(server, name, address, zone=ZONE):
    change = dns.update.Update(zone)
    change.add(name, 60, "A", address)
    assert dns.query.tcp(change, "127.0.0.1", port=server.port, timeout=20).rcode() == dns.rcode.NOERROR


def test_all_records_are_read_and_a_selection(server):
    all_lines = lines(server, ZONE)
    assert all_lines[0] == f"{ZONE}. 300 IN SOA ns1.{ZONE}. admin.{ZONE}. 10 3600 600 864000 60"
    assert len(all_lines) == 7
    assert lines(server, ZONE, "www") == [f"www.{ZONE}. 600 IN A 192.0.2.10", f"www.{ZONE}. 600 IN A 192.0.2.11"]
    assert lines(server, ZONE, f"text.{ZONE}.", "TXT") == [f'text.{ZONE}. 300 IN TXT "two words" "a;b"']
    assert len(lines(server, ZONE, "@")) == 2
    assert server.control("zone", "read", ZONE, "alias")["records"] == [
        {"owner": f"alias.{ZONE}.", "ttl": 300, "type": "CNAME", "rdata": f"www.{ZONE}."}]
    refused(server, "has no record", "read", ZONE, "nothing")
    refused(server, "has no MX record", "read", ZONE, "www", "MX")
    refused(server, "is not in", "read", ZONE, "www.example.com.")
    refused(server, "no zone", "read", "absent.test")
    refused(server, "FOO", "read", ZONE, "www", "FOO")


def test_a_large_zone_is_read_page_by_page(server, tmp_path):
    (tmp_path / f"{ZONE}.zone").write_text(TEXT.replace(" 10 ", " 11 ") + "".join(
        f"h{number} A 10.0.{number // 250}.{number % 250}\n" for number in range(2600)))
    server.control("reload")
    read = server.control("zone", "read", ZONE)
    assert len(read["records"]) == 2607 and read["next"] == ""
    assert {row["owner"] for row in read["records"]} >= {f"h{number}.{ZONE}." for number in range(2600)}
    assert len(lines(server, ZONE)) == 2607


def test_a_transaction_is_published_as_one_version_and_told(server):
    assert ctl(server, "zone", "begin", ZONE)[0] == 0
    assert ctl(server, "zone", "set", ZONE, "mail", "3600", "MX", "10", "www")[0] == 0
    assert ctl(server, "zone", "set", ZONE, "text", "TXT", "two words", "x;y")[0] == 0
    assert ctl(server, "zone", "unset", ZONE, "www", "A", "192.0.2.10")[0] == 0
    assert ctl(server, "zone", "unset", ZONE, "alias")[0] == 0
    assert server.serial(ZONE) == 10, "nothing is seen before the commit"
    code, out, err = ctl(server, "zone", "diff", ZONE)
    assert code == 0, err
    assert out.splitlines()[0] == f"; {ZONE}. serial 10 to 11"
    assert f"+ mail.{ZONE}. 3600 IN MX 10 www.{ZONE}." in out.splitlines()
    assert f"- www.{ZONE}. 600 IN A 192.0.2.10" in out.splitlines()
    code, out, err = ctl(server, "zone", "commit", ZONE)
    assert (code, out) == (0, f"{ZONE}.: serial 10 to 11, 3 records removed, 3 added\n"), err
    assert server.serial(ZONE) == 11
    assert lines(server, ZONE, "www") == [f"www.{ZONE}. 600 IN A 192.0.2.11"]
    assert f'text.{ZONE}. 300 IN TXT "two words" "x;y"' in lines(server, ZONE, "text")
    user = pwd.getpwuid(os.getuid()).pw_name
    history = server.control("zone", "history", ZONE)["changesets"]
    assert history == [{"from": 10, "to": 11, "removed": 2, "added": 2, "by": f"user {user}", "client": ""}]
    assert f'by="user {user}" client=-' in server.log()
    assert ctl(server, "zone", "history", ZONE)[1].splitlines()[1].split()[-2:] == ["user", user]
    assert f"changeset 10 -> 11 by user {user}\n" in ctl(server, "journal", "print", ZONE)[1]
    sent = [rrset for message in dns.query.xfr("127.0.0.1", ZONE, rdtype="IXFR", serial=10, relativize=False,
                                               port=server.port, lifetime=30) for rrset in message.answer]
    assert sum(len(rrset) for rrset in sent) == 4 + 4
    server.control("zone", "rollback", ZONE, "10")
    assert ctl(server, "zone", "diff", ZONE, "10", "12")[1].count("\n") == 3, "the SOA alone"


def test_several_zones_are_one_version_or_none(server):
    server.control("zone", "begin", ZONE, OTHER)
    server.control("zone", "set", ZONE, "new", "A", "192.0.2.77")
    server.control("zone", "set", OTHER, "www", "CNAME", "new")
    before = server.control("status")["store_version"]
    refused(server, "www", "commit", ZONE, OTHER)  # a CNAME beside addresses
    assert (server.serial(ZONE), server.serial(OTHER)) == (10, 10)
    server.control("zone", "unset", OTHER, "www", "CNAME")
    server.control("zone", "set", OTHER, "www", "AAAA", "2001:db8::1")
    done = server.control("zone", "commit", ZONE, OTHER)["committed"]
    assert [(row["zone"], row["from"], row["to"]) for row in done] == [(f"{ZONE}.", 10, 11), (f"{OTHER}.", 10, 11)]
    assert server.control("status")["store_version"] == before + 1
    server.kill()
    server.start(ZONE)
    assert (server.serial(ZONE), server.serial(OTHER)) == (11, 11), "durable before the answer"


def test_updates_go_on_and_a_serial_can_be_required(server):
    server.control("zone", "begin", ZONE)
    server.control("zone", "set", ZONE, "mine", "A", "192.0.2.78")
    update(server, "theirs", "192.0.2.79")
    refused(server, "has serial 11, not 10", "commit", ZONE, "--if-serial", "10")
    assert server.control("zone", "commit", ZONE, "--if-serial", "11")["committed"][0]["to"] == 12
    assert lines(server, ZONE, "theirs") and lines(server, ZONE, "mine")
    refused(server, "has serial 12, not 4", "begin", ZONE, "--if-serial", "4")
    for number in ("4294967296", "18446744073709551615", "-1"):
        code, _, err = ctl(server, "zone", "begin", ZONE, "--if-serial", number)
        assert code == 2 and f"--if-serial: Value {number} not in range 0 to 4294967295" in err
    for serial in (4294967296, 18446744073709551615, -1):
        with pytest.raises(servers.pando_control.ControlError, match=f"if_serial: {serial} is no serial"):
            with servers.pando_control.Control(server.folder / "run") as connection:
                connection.call("zone-begin", names=[ZONE], if_serial=serial)
    server.control("zone", "begin", ZONE, "--if-serial", "12")
    server.control("zone", "set", ZONE, "late", "A", "192.0.2.80")
    update(server, "later", "192.0.2.81")
    refused(server, "has serial 13, not 12", "commit", ZONE)
    server.control("zone", "abort", ZONE)


@pytest.mark.parametrize("words", [("verify", "refuse"), ("verify-time", "30s"), ("notify", "A", "192.0.2.1"),
                                   ("allow-query", '["192.0.2.1"]')])
def test_a_setting_in_place_of_a_record_names_the_other_verb(server, words):
    refused(server, f"the setting {words[0]} is changed by: zone configure {ZONE}. {words[0]} VALUE",
            "set", ZONE, *words)
    server.control("zone", "begin", ZONE)
    code, _, err = ctl(server, "zone", "set", ZONE, *words)
    assert "zone configure" not in err and (code == 0) == (words[0] == "notify")
    refused(server, "has no open transaction", "set", OTHER, "www", "A", "192.0.2.1")
    assert "zone configure" not in ctl(server, "zone", "set", OTHER, "www", "A", "192.0.2.1")[2]


def test_two_clients_and_updates_in_one_zone_lose_no_change(server):
    """Each begins as soon as the other has committed; the updates go beside both."""
    failed, rounds = [], 15

    def edit(client):
        try:
            with servers.pando_control.Control(server.folder / "run") as control:
                for number in range(rounds):
                    while True:
                        try:
                            with control.transaction(ZONE) as change:
                                change.set(f"{client}{number}", "A", f"192.0.2.{number}")
                                assert [row["owner"] for row in change.diff()["added"] if row["type"] == "A"] == [
                                    f"{client}{number}.{ZONE}."], "nothing of the other client"
                            break
                        except servers.pando_control.ControlError as error:
                            assert error.code == "exists" and "has an open transaction" in str(error), error
        except BaseException as error:  # told by the thread of the test
            failed.append(error)

    clients = [threading.Thread(target=edit, args=(name,)) for name in ("left", "right")]
    for client in clients:
        client.start()
    for number in range(rounds):
        update(server, f"update{number}", "192.0.2.200")
    for client in clients:
        client.join()
    assert failed == []
    owners = {row["owner"] for row in server.control("zone", "read", ZONE)["records"]}
    assert owners >= {f"{kind}{number}.{ZONE}." for kind in ("left", "right", "update") for number in range(rounds)}
    assert server.serial(ZONE) == 10 + 3 * rounds, "each was one version"
    server.control("store", "check")


def test_two_people_at_one_transaction_have_one_commit(server):
    """It belongs to the zone. Who comes second is told so, and may go on with it."""
    server.control("zone", "begin", ZONE)
    server.control("zone", "set", ZONE, "first", "A", "192.0.2.1")
    refused(server, "has an open transaction: commit or abort it", "begin", ZONE)
    server.control("zone", "set", ZONE, "second", "A", "192.0.2.2")
    assert server.control("zone", "commit", ZONE)["committed"] == [
        {"zone": f"{ZONE}.", "from": 10, "to": 11, "removed": 1, "added": 3}]
    refused(server, "has no open transaction", "commit", ZONE)
    refused(server, "has no open transaction", "set", ZONE, "third", "A", "192.0.2.3")
    assert lines(server, ZONE, "first") and lines(server, ZONE, "second")


def test_a_transaction_has_limits_and_what_it_has_can_be_committed(server):
    with servers.pando_control.Control(server.folder / "run") as control:
        control.call("zone-begin", names=[ZONE])
        change = {"name": ZONE, "type": "A", "rdata": "192.0.2.1"}
        count = 0
        with pytest.raises(servers.pando_control.ControlError) as error:
            while count <= 20_000:
                control.call("zone-set", owner=f"h{count}", **change)
                count += 1
        assert error.value.code == "full" and "commit it" in str(error.value) and count > 10_000
        assert server.serial(ZONE) == 10
        [done] = control.call("zone-commit", names=[ZONE])["committed"]
        assert (done["from"], done["to"], done["added"]) == (10, 11, count + 1)
        control.call("zone-begin", names=[ZONE])
        with pytest.raises(servers.pando_control.ControlError, match="above 65535|too long|octets"):
            control.call("zone-set", name=ZONE, owner="big", type="TXT", rdata=" ".join(['"' + "x" * 255 + '"'] * 300))
        control.call("zone-abort", names=[ZONE])
    assert server.ask(f"h{count - 1}.{ZONE}").answer and not server.ask(f"h{count}.{ZONE}").answer
    assert server.ask(f"big.{ZONE}", "TXT").answer == []
    server.kill()
    server.start(ZONE)
    assert server.ask(f"h{count - 1}.{ZONE}").answer, "durable before the answer"


def test_a_client_that_dies_leaves_a_transaction_that_can_be_aborted(server):
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(server.folder / "run/control.sock"))
        client.send(b"." + json.dumps({"verb": "zone-begin", "args": {"names": [ZONE]}}).encode())
        assert json.loads(client.recv(1 << 17)[1:])["ok"]
        client.send(b"." + json.dumps({"verb": "zone-set", "args": {
            "name": ZONE, "owner": "dead", "type": "A", "rdata": "192.0.2.9"}}).encode())
        # It dies before the answer, and in the middle of a request.
        client.send(b"+{\"verb\": \"zone-com")
    servers.wait_until("the command was taken", lambda: "dead" in ctl(server, "zone", "diff", ZONE)[1])
    refused(server, "has an open transaction", "begin", ZONE)
    refused(server, "has an open transaction", "begin", OTHER, ZONE)
    refused(server, "no open transaction", "set", OTHER, "x", "A", "192.0.2.1")
    server.control("zone", "abort", ZONE)
    refused(server, "no open transaction", "commit", ZONE)
    assert server.serial(ZONE) == 10
    server.control("zone", "begin", ZONE)
    server.control("zone", "abort", ZONE)


def test_nothing_stays_of_a_program_that_is_killed_in_a_transaction(server):
    program = subprocess.Popen([sys.executable, "-c", f"""
import sys, time
sys.path.insert(0, {str(servers.SOURCE / "contrib")!r})
from pando_control import Control
with Control({str(server.folder / "run")!r}) as control, control.transaction({ZONE!r}, {OTHER!r}) as edit:
    edit.set("dead", "A", "192.0.2.9", zone={ZONE!r})
    print("begun", flush=True)
    time.sleep(600)
"""], stdout=subprocess.PIPE, text=True)
    try:
        assert program.stdout.readline() == "begun\n"
        refused(server, "has an open transaction", "begin", OTHER)
        assert "dead" in ctl(server, "zone", "diff", ZONE)[1]
    finally:
        program.kill()
        program.wait()
        program.stdout.close()
    servers.wait_until("the transactions are gone", lambda: ctl(server, "zone", "begin", ZONE, OTHER)[0] == 0)
    assert ctl(server, "zone", "diff", ZONE)[1].splitlines()[1:] == []
    server.control("zone", "abort", ZONE, OTHER)
    assert server.serial(ZONE) == 10


def test_wrong_words_are_refused_with_the_reason(server):
    for reason, words in [("no open transaction", ("set", ZONE, "x", "A", "192.0.2.1")),
                          ("no open transaction", ("unset", ZONE, "x")),
                          ("no open transaction", ("diff", ZONE)),
                          ("no open transaction", ("abort", ZONE)),
                          ("no zone absent.test.", ("begin", "absent.test")),
                          ("named twice", ("begin", ZONE, ZONE)),
                          ("no serial 4", ("diff", ZONE, "4")),
                          ("no zone absent.test.", ("history", "absent.test"))]:
        refused(server, reason, *words)
    server.control("zone", "begin", ZONE)
    for reason, words in [("192.0.2", ("set", ZONE, "x", "A", "192.0.2")),
                          ("FOO", ("set", ZONE, "x", "FOO", "1")),
                          ("type and data", ("set", ZONE, "x", "A")),
                          ("is no type", ("set", ZONE, "x", "AXFR", "\\#", "0")),
                          ("is not in", ("set", ZONE, "www.example.com.", "A", "192.0.2.1")),
                          ("apex", ("set", ZONE, "x", "SOA", "a", "b", "1", "2", "3", "4", "5")),
                          ("above", ("set", ZONE, "x", "4294967295", "A", "192.0.2.1")),
                          ("has no record A 192.0.2.9", ("unset", ZONE, "www", "A", "192.0.2.9")),
                          ("has no MX record", ("unset", ZONE, "www", "MX")),
                          ("has no records", ("unset", ZONE, "nothing")),
                          ("one SOA", ("unset", ZONE, "@", "SOA"))]:
        refused(server, reason, *words)
    assert server.control("zone", "commit", ZONE)["committed"] == [
        {"zone": f"{ZONE}.", "from": 10, "to": 10, "removed": 0, "added": 0}]
    assert ctl(server, "zone", "set", ZONE)[0] == 2
    assert ctl(server, "zone", "diff", ZONE, "ten")[0] == 2
    server.control("zone", "begin", ZONE)
    server.control("zone", "unset", ZONE, "@", "NS")
    refused(server, "NS", "commit", ZONE)
    server.control("zone", "set", ZONE, "@", "NS", "ns1")
    server.control("zone", "set", ZONE, "@", "SOA", "ns1", "admin", "9", "1", "2", "3", "4")
    refused(server, "serial 9 is not ahead of 10", "commit", ZONE)
    server.control("zone", "set", ZONE, "@", "SOA", "ns1", "admin", "2026", "1", "2", "3", "4")
    server.control("zone", "commit", ZONE)
    assert server.serial(ZONE) == 2026
    server.control("zone", "begin", ZONE)
    server.control("zone", "set", ZONE, "class", "60", "IN", "A", "192.0.2.60")
    server.control("zone", "set", ZONE, "class", "in", "AAAA", "2001:db8::60")
    server.control("zone", "set", ZONE, "loc", "--", "TXT", "-5")
    server.control("zone", "commit", ZONE)
    assert {line.split(" ", 1)[1] for line in lines(server, ZONE, "class")} == {
        "60 IN A 192.0.2.60", "300 IN AAAA 2001:db8::60"}
    assert lines(server, ZONE, "loc") == [f'loc.{ZONE}. 300 IN TXT "-5"']


def test_the_python_client_does_the_same(server):
    sys.path.insert(0, str(servers.SOURCE / "contrib"))
    from pando_control import Control, ControlError
    with Control(server.folder / "run") as control:
        assert control.status()["pid"] == server.process.pid
        with control.transaction(ZONE) as edit:
            edit.set("www", "A", "192.0.2.30", ttl=60)
            edit.unset("alias")
            assert [row["rdata"] for row in edit.diff()["added"] if row["type"] == "A"] == [
                "192.0.2.10", "192.0.2.11", "192.0.2.30"], "a new TTL is that of the whole set"
        with pytest.raises(ControlError, match="192.0.2") as error:
            with control.transaction(ZONE) as edit:
                edit.set("x", "A", "192.0.2")
        assert error.value.code == "invalid"
        assert {row["ttl"] for row in control.read(ZONE, "www")} == {60}
        assert [(row["from"], row["to"]) for row in control.history(ZONE)] == [(10, 11)]
    refused(server, "no open transaction", "abort", ZONE)
