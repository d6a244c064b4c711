"""Certificates while the server runs: files that change, alarms, own keys, and their change-over under load."""

import hashlib
import base64
import os
import signal
import ssl
import subprocess
import threading

import servers
import tls_clients
from tls_certificates import Authority, openssl, self_signed

NAME = "www.tls.test"


def shown(port):
    """The certificate that clients see, in DER."""
    with tls_clients.TlsStream(port) as stream:
        return stream.socket.getpeercert(binary_form=True)


def der(pair):
    return ssl.PEM_cert_to_DER_cert(pair.certificate.read_text())


def pin_of(certificate):
    key = openssl("x509", "-inform", "der", "-pubkey", "-noout", octets=certificate)
    return base64.b64encode(hashlib.sha256(openssl("pkey", "-pubin", "-outform", "der", octets=key)).digest()).decode()


def pin(server):
    """The pin of the certificate in use, whatever is wrong with the files."""
    return server.control("tls", "status", check=False)["certificate"]["pin"]


def put(new, pair, kinds):
    """Files take others' places by rename, as certbot's links do."""
    for kind in kinds:
        target = getattr(pair, kind)
        fresh = target.with_suffix(".new")
        fresh.write_bytes(getattr(new, kind).read_bytes())
        fresh.chmod(0o600)
        fresh.rename(target)


class Handshakes:
    """Clients that connect all the time, each asking one question. Each has an address of its own, and fewer
    handshakes a second than one address may have."""

    def __init__(self, port, clients=3):
        self.port, self.ends, self.good, self.bad = port, threading.Event(), 0, []
        self.threads = [threading.Thread(target=self.run, args=(f"127.0.0.{i + 2}",)) for i in range(clients)]

    def run(self, address):
        while not self.ends.wait(0.06):
            try:
                with tls_clients.TlsStream(self.port, source=address) as stream:
                    assert stream.ask(NAME).answer
                    self.good += 1
            except Exception as error:  # all of them are told at the end
                self.bad.append(repr(error))

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ends.set()
        for thread in self.threads:
            thread.join()


def test_files_that_change_under_load_cost_no_handshake(secure, pair, tmp_path):
    server = secure(workers=2)
    with Handshakes(server.tls_port) as load:
        for turn, order in enumerate((("certificate", "key"), ("key", "certificate"))):
            new = Authority(tmp_path / f"new{turn}").sign("server", "ns1.tls.test")
            for kind in order:
                put(new, pair, [kind])
                assert shown(server.tls_port)
            servers.wait_until("the new pair was read", lambda: pin(server) == new.pin(), 60)
            servers.wait_until("it is shown", lambda: shown(server.tls_port) == der(new))
    assert load.good > 10 and not load.bad, load.bad[:3]
    status = server.control("tls", "status")
    assert status["served"] and not status["certificate"]["problem"]


def test_a_fault_of_the_files_is_told_and_the_old_pair_stays(secure, pair, tmp_path):
    server = secure()
    good, old_key = der(pair), pair.key.read_bytes()
    for content, reason in ((b"", f"{pair.key} is empty"), (b"no key\n", f"{pair.key}: there is no private key in it"),
                            (Authority(tmp_path / "other").pair.key.read_bytes(), "is not that of the certificate")):
        pair.key.write_bytes(content)

        def told():
            done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "tls",
                                   "status"], capture_output=True, text=True, timeout=120)
            return reason in done.stdout and done.returncode == 1
        servers.wait_until(reason, told, 60)
        assert reason in server.log() and shown(server.tls_port) == good
    for pid in tls_clients.tls_pids(server).values():
        os.kill(pid, signal.SIGKILL)
    servers.wait_until("another process serves", lambda: tls_clients.ask(server.tls_port, NAME))
    assert shown(server.tls_port) == good, "the pair before is in a file in memory"
    pair.key.write_bytes(old_key)
    servers.wait_until("the fault has gone", lambda: not server.control(
        "tls", "status", check=False)["certificate"]["problem"], 60)


def test_a_certificate_that_ends_soon_is_told_once(secure, pair, tmp_path):
    server = secure()
    put(self_signed(tmp_path, "ending", days=5), pair, ("certificate", "key"))
    servers.wait_until("the alarm", lambda: "days=7" in server.log(), 60)
    server.control("reload")
    servers.wait_until("it is shown", lambda: shown(server.tls_port) == der(pair))
    [line] = [line for line in server.log().splitlines() if line.endswith("days=7")]
    assert f"tls_certificate_ends file={pair.certificate} " in line


def test_own_keys_are_rolled_by_command(secure, tmp_path):
    server = secure(start=False)
    server.extra = f"  listen-tls: [127.0.0.1@{server.tls_port}]"
    server.write_config()
    server.start("tls.test")
    servers.wait_until("TLS is served", lambda: tls_clients.ask(server.tls_port, NAME))
    first = server.control("tls", "status")
    assert first["certificate"]["file"] == "" and first["certificate"]["pin"] == pin_of(shown(server.tls_port))
    server.stop()
    server.start("tls.test")
    servers.wait_until("TLS is served", lambda: tls_clients.ask(server.tls_port, NAME))
    assert server.control("tls", "status") == first, "keys stay over a restart"
    with Handshakes(server.tls_port) as load:
        rolled = server.control("tls", "roll")
        assert rolled["certificate"]["pin"] == first["next_pin"] != rolled["next_pin"]
        servers.wait_until("the next key is shown", lambda: pin_of(shown(server.tls_port)) == first["next_pin"])
    assert not load.bad, load.bad[:3]
    assert (server.folder / "journal" / "tls" / "current.pem").stat().st_mode & 0o777 == 0o600
