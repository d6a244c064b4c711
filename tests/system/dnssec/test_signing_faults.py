"""Faults of the host beside zones that are signed here: a manager that was away for long, a folder of keys that cannot be
written, and a store at its limit."""

import shutil
import subprocess
import time

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_served_signed import TEXT, ZONE, check, ends, key_folder, looks, send, sets_of, zone_of
from test_signing_stages import configure, status

SHORT = "{name: short, validity: 60s, refresh: 20s, propagation: 1s, parent-ds-ttl: 1s, cds: false}"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zone").write_text(TEXT.replace(" 600 ", " 1 ").replace(" 300 ", " 1 "))
    return tmp_path


@pytest.fixture
def options(folder):
    return {"name": ZONE, "file": str(folder / "zone"), "dnssec": "short", "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


@pytest.fixture
def make(pando):
    def make(zones, policies=SHORT, **more):
        server = pando(zones, workers=1, **more)
        configure(server, policies)
        return server
    return make


def test_a_manager_that_was_away_for_longer_than_refresh_renews_at_once(make, options):
    server = make([options]).start(ZONE)
    serial = server.serial(ZONE)
    server.kill()  # its workers serve on
    servers.wait_until("less than refresh is left", lambda: min(ends(server)) < 15, 60)
    server.start(ZONE)
    servers.wait_until("all is renewed", lambda: min(ends(server)) > 18, 30)
    assert server.serial(ZONE) > serial
    send(server, ("add", "new", 1, "A", "192.0.2.9"))
    assert looks(server, "new").answer


def test_a_folder_of_keys_that_is_read_only_keeps_a_zone_from_being_signed_until_it_is_not(make, options):
    server = make([options], policies=SHORT)
    keys = server.folder / "journal" / "dnssec"
    keys.mkdir(parents=True)
    keys.parent.chmod(0o700)
    keys.chmod(0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,mode=0700", "tmpfs", str(keys)]).returncode != 0:
        pytest.skip("needs to mount a disk")
    try:
        server.start()
        servers.wait_until("the reason is told", lambda: "Read-only" in status(server).get("problem", ""), 30)
        assert server.ask(ZONE).rcode() == dns.rcode.SERVFAIL, "it is not served unsigned"
        subprocess.run(["mount", "-o", "remount,rw", str(keys)], check=True)
        servers.wait_until("it is signed", lambda: server.ask(ZONE, "DNSKEY").answer, 40)
        check(server)
        server.kill()
    finally:
        subprocess.run(["umount", "-l", str(keys)], check=False)


def test_a_full_disk_of_keys_loses_no_fact(make, options):
    """Facts that cannot be written are tried again at the next look."""
    server = make([options], policies=SHORT)
    keys = server.folder / "journal" / "dnssec"
    keys.mkdir(parents=True)
    keys.parent.chmod(0o700)
    keys.chmod(0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0700,size=64k", "tmpfs", str(keys)]).returncode != 0:
        pytest.skip("needs to mount a disk")
    try:
        with open(keys / "filler", "wb", buffering=0) as filler:
            with pytest.raises(OSError, match="No space left"):
                while True:
                    filler.write(bytes(4096))
            server.start()
            servers.wait_until("the reason is told", lambda: "No space left" in status(server).get("problem", ""), 30)
        (keys / "filler").unlink()
        servers.wait_until("it is signed", lambda: server.ask(ZONE, "DNSKEY").answer, 40)
        servers.wait_until("it goes on", lambda: status(server).get("stage") == "ds-wanted", 60)
        check(server)
        server.kill()
    finally:
        subprocess.run(["umount", "-l", str(keys)], check=False)


@pytest.mark.skip(reason="a fault that is known: renewals end when they have used up the store's reserve")
def test_renewals_go_on_in_a_store_at_its_limit(make, options):
    server = make([options], size_limit="4MiB", limits="{history: 0}").start(ZONE)
    large = ['"' + f"{number:03}" * 80 + '"' for number in range(90)]
    for number in range(5_000):
        update = dns.update.UpdateMessage(ZONE)
        update.add(f"name{number}", 60, "TXT", *large)
        if dns.query.tcp(update, "127.0.0.1", port=server.port, timeout=30).rcode() != dns.rcode.NOERROR:
            break
    else:
        raise AssertionError("it never got full")
    full_at = time.time()
    servers.wait_until("all signatures were made since", lambda: time.time() + min(ends(server)) > full_at + 61, 180)


def test_a_policy_whose_definition_is_gone_changes_nothing_until_it_is_back(make, options):
    server = make([options]).start(ZONE)
    before = sets_of(zone_of(server))
    server.write_config()  # without `dnssec-policies`
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode != 0 and "no policy is named 'short'" in done.stderr, done
    send(server, ("add", "still", 60, "A", "192.0.2.9"))
    send(server, ("delete", "still"))
    assert sets_of(zone_of(server)).keys() == before.keys()
    configure(server, SHORT)
    server.control("reload")
    send(server, ("add", "new", 60, "A", "192.0.2.9"))
    check(server)


def test_a_key_folder_that_is_lost_with_its_journal_is_a_backup_without_keys(make, options):
    """Files and list alone: the zone waits for its keys, and is never signed by another one."""
    server = make([options]).start(ZONE)
    kept = server.folder / "kept"
    shutil.copytree(key_folder(server), kept)
    server.kill()
    server.lose_memory()
    shutil.rmtree(key_folder(server))
    server.start()
    servers.wait_until("the reason is told", lambda: "put them back" in status(server).get("problem", ""), 30)
    assert server.ask(ZONE).rcode() == dns.rcode.SERVFAIL and not key_folder(server).exists()
    shutil.copytree(kept, key_folder(server))
    servers.wait_until("it is served", lambda: server.ask(ZONE, "DNSKEY").answer, 40)
    check(server)
