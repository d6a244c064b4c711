"""Policies that change while clients send updates, and sources that others sign: no update fails for that, and no key is made
in vain."""

import shutil
import threading

import dns.query
import dns.rcode
import dns.update
import pytest

import servers
from test_served_signed import (APEX, TEXT, ZONE, check, key_folder, looks, needs_bind, send, signed_by_others, with_policy,
                                zone_of)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "zone").write_text(TEXT)
    return tmp_path


@pytest.fixture
def options(folder):
    return {"name": ZONE, "file": str(folder / "zone"), "dnssec": "off", "allow-update": [{"address": "127.0.0.0/8"}],
            "allow-transfer": [{"address": "127.0.0.0/8"}]}


class Clients:
    """Send updates one after the other, and note each answer."""

    def __init__(self, server, count=4):
        self.server, self.sent, self.failed, self.stopped = server, [], [], False
        self.threads = [threading.Thread(target=self.run, args=(number,)) for number in range(count)]

    def run(self, number):
        serial = 0
        while not self.stopped:
            serial += 1
            name = f"c{number}-{serial}"
            update = dns.update.UpdateMessage(ZONE)
            update.add(name, 60, "A", "192.0.2.7")
            answer = dns.query.tcp(update, "127.0.0.1", port=self.server.port, timeout=30)
            (self.sent if answer.rcode() == dns.rcode.NOERROR else self.failed).append((name, answer.to_text()))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped = True
        for thread in self.threads:
            thread.join(60)


def test_no_update_fails_while_policies_change(pando, options, folder):
    (folder / "zone").write_text(TEXT + "".join(f"n{number} 300 A 192.0.2.3\n" for number in range(100)))
    server = pando([options], workers=2).start(ZONE)

    def reload(policy):
        server.zones = [{**options, "dnssec": policy}]
        server.write_config()
        with open(server.config, "a", encoding="utf-8") as config:
            config.write("dnssec-policies: [{name: hashed, nsec3: on}, {name: opted, nsec3: opt-out}]\n")
        server.control("reload")

    def chain():
        apex = zone_of(server).get_node(APEX)
        return "NSEC3PARAM" if apex.get_rdataset(1, 51) else "NSEC" if apex.get_rdataset(1, 47) else ""

    with Clients(server) as clients:
        servers.wait_until("updates come", lambda: len(clients.sent) > 20)
        for policy, wanted in (("default", "NSEC"), ("hashed", "NSEC3PARAM"), ("default", "NSEC"), ("opted", "NSEC3PARAM"),
                               ("hashed", "NSEC3PARAM"), ("default", "NSEC")):
            reload(policy)
            servers.wait_until(f"{policy} is followed", lambda: chain() == wanted, 60)
        before = len(clients.sent)
        servers.wait_until("updates come still", lambda: len(clients.sent) > before + 20)
    assert not clients.failed, clients.failed[:3]
    served = zone_of(server)
    assert all(served.get_node(f"{name}.{ZONE}.") for name, _ in clients.sent)
    check(server)


@needs_bind
def test_no_key_is_made_for_a_source_that_others_sign(pando, options, folder):
    stem = signed_by_others(folder)
    server = pando([{**options, "dnssec": "default"}], workers=1).start()
    servers.wait_until("it is told", lambda: "pandoctl dnssec import" in server.control(
        "dnssec", "status", ZONE, check=False).get("problem", ""))
    assert not key_folder(server).exists()
    assert "key_made" not in server.log() and server.ask(ZONE, "DNSKEY").rcode() == dns.rcode.SERVFAIL
    # The keys of the one who signed it make it served; nothing has to be taken away before.
    server.control("dnssec", "import", ZONE, f"{stem}.private")
    servers.wait_until("it is served", lambda: server.ask(ZONE, "DNSKEY").answer, 30)
    send(server, ("add", "new", 60, "A", "192.0.2.9"))
    assert looks(server, "new").answer and len(list(key_folder(server).glob("*.pem"))) == 1


@needs_bind
def test_a_source_that_is_mended_gets_its_key(pando, options, folder):
    signed_by_others(folder)
    server = pando([{**options, "dnssec": "default"}], workers=1).start()
    servers.wait_until("it is told", lambda: "pandoctl dnssec import" in server.control(
        "dnssec", "status", ZONE, check=False).get("problem", ""))
    (folder / "zone").write_text(TEXT)
    server.control("reload")
    servers.wait_until("it is served", lambda: server.ask(ZONE, "DNSKEY").answer, 30)
    check(server)


def test_a_zone_without_a_file_gets_its_key_with_its_data(pando, options, folder):
    shutil.move(folder / "zone", folder / "later")
    server = pando([{**options, "dnssec": "default"}], workers=1).start()
    state = server.control("dnssec", "status", ZONE, check=False)
    assert state["stage"] == "signing" and not state["keys"] and not key_folder(server).exists()
    shutil.move(folder / "later", folder / "zone")
    server.control("reload")
    servers.wait_until("it is served", lambda: server.ask(ZONE, "DNSKEY").answer, 30)
    check(server)
