"""Requests that need the manager, while there is none: they wait for the next one, for two seconds."""

import base64
import concurrent.futures
import shutil
import subprocess
import time

import dns.exception
import dns.message
import dns.query
import dns.rcode
import dns.tsigkeyring
import dns.update
import pytest

import servers

SECRET = base64.b64encode(b"the secret of the update key, ok").decode()
KEY = {"name": "update-key", "algorithm": "hmac-sha256", "secret": SECRET}
KEYRING = dns.tsigkeyring.from_text({"update-key": SECRET})
ZONE = "$TTL 300\n@ SOA ns admin 1 3600 600 86400 300\n@ NS ns\nns A 192.0.2.1\n"


@pytest.fixture
def server(pando, tmp_path):
    (tmp_path / "zone").write_text(ZONE)
    zone = {"name": "one.test", "file": str(tmp_path / "zone"),
            "allow-update": [{"key": "update-key"}], "allow-transfer": [{"key": "update-key"}]}
    return pando([zone], keys=[KEY]).start("one.test")


def signed_query(server, rdtype="SOA"):
    query = dns.message.make_query("one.test", rdtype)
    query.use_tsig(KEYRING)
    return dns.query.udp(query, "127.0.0.1", port=server.port, timeout=10)


def nsupdate(server, name, *options, prerequisite=""):
    text = f"server 127.0.0.1 {server.port}\nzone one.test\n{prerequisite}update add {name}.one.test 60 A 192.0.2.9\nsend\n"
    return subprocess.run(["nsupdate", "-y", f"hmac-sha256:update-key:{SECRET}", *options], input=text, text=True,
                          capture_output=True, timeout=60)


def restart(server):
    """The next manager, as a service manager starts it. True: soon enough, which a busy machine does not allow."""
    started = time.monotonic()
    time.sleep(0.2)
    server.start("one.test")
    return time.monotonic() - started < 1.5


def repeated_until_soon(attempt):
    """Runs attempt(number), which gives what restart() gave, until its restart was soon enough."""
    for number in range(10):
        if attempt(number):
            return
    pytest.fail("no manager started within 1.5 s")


@pytest.mark.skipif(shutil.which("nsupdate") is None, reason="needs nsupdate")
def test_signed_requests_in_a_restart_are_answered_and_signed(server):
    def attempt(number):
        before = server.serial("one.test")
        names = [f"{kind}{number}" for kind in ("away", "again", "absent", "tcp")]
        server.kill()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            queries = [pool.submit(signed_query, server) for _ in range(4)]
            updates = [
                pool.submit(nsupdate, server, names[0]), pool.submit(nsupdate, server, names[1]),
                pool.submit(nsupdate, server, names[2], prerequisite=f"prereq nxdomain {names[2]}.one.test\n"),
                pool.submit(nsupdate, server, names[3], "-v")]
            if not restart(server):
                return False
            for query in queries:
                answer = query.result()
                assert answer.rcode() == dns.rcode.NOERROR and answer.had_tsig and answer.answer
            for update in updates:
                done = update.result()
                assert (done.returncode, done.stdout + done.stderr) == (0, "")
        for name in names:
            assert server.ask(f"{name}.one.test").answer, name
        assert server.serial("one.test") == before + 4, "each was executed once"
        return True
    repeated_until_soon(attempt)


def test_a_signed_transfer_in_a_restart_is_complete(server):
    def attempt(_):
        server.kill()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            records = pool.submit(server.records, "one.test", KEYRING)
            if not restart(server):
                return records.exception() and False
            assert len(records.result()) == 3
            return True
    repeated_until_soon(attempt)


@pytest.mark.parametrize("point", ["commit-staged", "journal-synced", "commit-published"])
def test_an_update_that_ended_the_manager_is_not_lost_when_its_client_repeats_it(server, point):
    server.stop()
    server.crash_at = f"{point}:9"  # beyond those of the start
    server.start("one.test")
    sent, process = [], server.process

    def repeated(update):  # as nsupdate does, for a next manager that is late
        for _ in range(10):
            try:
                return dns.query.udp(update, "127.0.0.1", port=server.port, timeout=3)
            except dns.exception.Timeout:
                continue

    def send_until_it_ends():
        while process.poll() is None:
            update = dns.update.UpdateMessage("one.test", keyring=KEYRING)
            sent.append(f"survivor{len(sent)}")
            update.add(sent[-1], 60, "A", "192.0.2.7")
            answer = repeated(update)
            assert answer.rcode() == dns.rcode.NOERROR and answer.had_tsig

    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        updates = pool.submit(send_until_it_ends)
        servers.wait_until("the manager has ended", lambda: process.poll() is not None)
        server.crash_at = None
        restart(server)
        updates.result()
    for name in sent:
        assert server.ask(f"{name}.one.test").answer, name


@pytest.mark.skipif(shutil.which("dig") is None, reason="needs dig")
def test_without_a_next_manager_a_signed_query_fails_and_an_update_is_not_answered(server):
    server.kill()
    query = ["dig", "@127.0.0.1", "-p", str(server.port), "-y", f"hmac-sha256:update-key:{SECRET}", "one.test", "SOA"]
    started = time.monotonic()
    done = subprocess.run(query, capture_output=True, text=True, timeout=30)
    assert "status: SERVFAIL" in done.stdout and 1 < time.monotonic() - started < 5
    started = time.monotonic()
    assert "status: SERVFAIL" in subprocess.run(query, capture_output=True, text=True, timeout=30).stdout
    assert time.monotonic() - started < 1, "at once"
    done = nsupdate(server, "never", "-u", "2", "-r", "1")
    assert done.returncode != 0 and "timed out" in done.stdout + done.stderr, done
    assert server.ask("ns.one.test").answer
