"""Rules with `tls`: whom they match, over TLS and else."""

import json
import socket
import ssl
import struct
import subprocess

import dns.flags
import dns.message
import dns.query
import dns.rcode
import dns.rdatatype
import dns.tsigkeyring
import dns.update
import dns.xfr
import pytest

import servers
from test_protocol import proxied

KEY = {"name": "ours", "algorithm": "hmac-sha256", "secret": "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="}
KEYRING = dns.tsigkeyring.from_text({KEY["name"]: KEY["secret"]})
ZONE = "$ORIGIN z.test.\n$TTL 60\n@ SOA ns admin 1 3600 600 86400 60\n@ NS ns\nns A 192.0.2.1\nwww A 192.0.2.80\n"


def openssl(*words):
    return subprocess.run(["openssl", *map(str, words)], check=True, capture_output=True).stdout


class Certificates:
    """An authority, and certificates for clients that it signs; others sign themselves."""

    def __init__(self, folder):
        self.folder = folder
        self.own("ca")

    def own(self, name):
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
                "-keyout", self.folder / f"{name}.key", "-out", self.folder / f"{name}.pem", "-subj", f"/CN={name}",
                "-addext", f"subjectAltName=DNS:{name}.test")
        return self.files(name)

    def signed(self, name):
        extensions = self.folder / f"{name}.ext"
        extensions.write_text(f"subjectAltName=DNS:{name}.test\n")
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                self.folder / f"{name}.key", "-out", self.folder / f"{name}.csr", "-subj", f"/CN={name}")
        openssl("x509", "-req", "-in", self.folder / f"{name}.csr", "-CA", self.folder / "ca.pem", "-CAkey",
                self.folder / "ca.key", "-days", "30", "-extfile", extensions, "-out", self.folder / f"{name}.pem")
        return self.files(name)

    def files(self, name):
        return self.folder / f"{name}.pem", self.folder / f"{name}.key"

    def pin(self, name):
        key = openssl("x509", "-in", self.folder / f"{name}.pem", "-pubkey", "-noout")
        done = subprocess.run("openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | openssl base64 -A",
                              shell=True, check=True, input=key, capture_output=True)
        return done.stdout.decode()


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    made = Certificates(tmp_path_factory.mktemp("certificates"))
    for name in ("second", "third"):
        made.signed(name)
    made.own("pinned")
    made.own("server")
    return made


def remotes(certificates):
    ca = str(certificates.folder / "ca.pem")
    return [{"name": "second", "address": ["127.0.0.1"], "tls": {"hostname": "second.test", "ca": ca}},
            {"name": "pinned", "address": ["127.0.0.1"], "tls": {"pins": [certificates.pin("pinned")]}},
            {"name": "both", "address": ["127.0.0.1"],
             "tls": {"hostname": "third.test", "ca": ca, "pins": [certificates.pin("third")]}},
            {"name": "never", "address": ["127.0.0.1"],
             "tls": {"hostname": "third.test", "ca": ca, "pins": [certificates.pin("pinned")]}},
            {"name": "primary", "address": ["127.0.0.9@9"]}]


def zone(tmp_path, name, **rules):
    path = tmp_path / f"{name}.zone"
    path.write_text(ZONE)
    return {"name": name, "file": str(path), **rules}


def ask(port, message, transport, head=b""):
    """The RCODE of the answer to a message over UDP, TCP, or a context of TLS."""
    if transport == "udp":
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
            udp.settimeout(20)
            udp.sendto(head + message, ("127.0.0.1", port))
            return udp.recv(65535)[3] & 15
    with socket.create_connection(("127.0.0.1", port), timeout=20) as tcp:
        tcp.sendall(head)
        stream = tcp if transport == "tcp" else transport.wrap_socket(tcp)
        stream.sendall(struct.pack(">H", len(message)) + message)
        with stream.makefile("rb") as answers:
            return answers.read(struct.unpack(">H", answers.read(2))[0])[3] & 15


def context(certificate=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    made.set_alpn_protocols(["dot"])
    if certificate:
        made.load_cert_chain(*map(str, certificate))
    return made


def requests(name, keyring=None):
    """One of each kind: a query, AXFR, IXFR, UPDATE and NOTIFY."""
    made = {"query": dns.message.make_query(f"www.{name}", "A"),
            "axfr": dns.message.make_query(name, "AXFR")}
    made["ixfr"], _ = dns.xfr.make_query(IxfrZone(name), serial=7)
    made["update"] = dns.update.Update(name)
    made["update"].add("new", 60, "A", "192.0.2.9")
    made["notify"] = dns.message.make_query(f"s{name}", "SOA", flags=dns.flags.AA)
    made["notify"].set_opcode(dns.opcode.NOTIFY)
    for message in made.values():
        if keyring:
            message.use_tsig(keyring)
    return {kind: message.to_wire() for kind, message in made.items()}


class IxfrZone:
    """As much of a zone as dns.xfr.make_query() asks for."""

    def __init__(self, name):
        self.origin, self.rdclass = dns.name.from_text(name), dns.rdataclass.IN


RULES = ("allow-query", "allow-transfer", "allow-update")


@pytest.mark.parametrize("rule", [{"tls": "any"}, {"tls": "second"}, {"tls": "any", "key": "ours"},
                                  {"tls": "pinned", "address": "127.0.0.0/8"}])
def test_no_request_over_udp_or_plain_tcp_matches(tmp_path, pando, certificates, rule):
    served = zone(tmp_path, "z.test", **{key: [rule] for key in RULES})
    secondary = {"name": "sz.test", "primaries": ["primary"], "allow-notify": [rule]}
    server = pando([served, secondary], keys=[KEY], remotes=remotes(certificates), workers=1,
                   extra="  proxy-protocol-from: [127.0.0.0/8]")
    server.start()
    servers.wait_until("the zone is there", lambda: server.control("status")["zones_loaded"] == 1)
    for keyring in (None, KEYRING):
        for kind, message in requests("z.test", keyring).items():
            for transport in ("udp", "tcp"):
                for head in (b"", proxied("127.0.0.1", protocol=2 if transport == "udp" else 1)):
                    if kind == "axfr" and transport == "udp":
                        continue  # RFC 5936 §4.2: not over UDP
                    answer = ask(server.port, message, transport, head)
                    assert answer == dns.rcode.REFUSED, (kind, transport, keyring is not None, bool(head))
    assert server.control("zone", "status", "z.test")["serial"] == 1


def test_a_rule_that_denies_tls_leaves_others_alone(tmp_path, pando, certificates):
    rules = [{"tls": "any", "deny": True}, {"address": "127.0.0.0/8"}]
    server = pando([zone(tmp_path, "z.test", **{key: rules for key in RULES})], remotes=remotes(certificates))
    server.start("z.test")
    made = requests("z.test")
    for kind, transport in (("query", "udp"), ("axfr", "tcp"), ("update", "tcp")):
        assert ask(server.port, made[kind], transport) == dns.rcode.NOERROR, kind


def test_a_reload_that_takes_an_identity_away_is_refused_while_rules_name_it(tmp_path, pando, certificates):
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})],
                   remotes=remotes(certificates))
    server.start("z.test")
    server.remotes[0].pop("tls")
    server.write_config()
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "reload"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "remote 'second' has no 'tls'" in done.stderr, done.stderr
    assert ask(server.port, requests("z.test")["axfr"], "tcp") == dns.rcode.REFUSED


def test_status_tells_what_certificates_have_to_prove(tmp_path, pando, certificates):
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})],
                   remotes=remotes(certificates))
    server.start("z.test")
    status = server.control("tls", "status")
    rows = {row["remote"]: row for row in status["remotes"]}
    assert not status["served"] and sorted(rows) == ["both", "never", "pinned", "second"]
    assert rows["second"]["hostname"] == "second.test" and not rows["second"]["problem"]
    assert rows["pinned"]["pins"] == [certificates.pin("pinned")] and rows["pinned"]["authenticated"]
    done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "tls", "roll"],
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and "server.listen-tls names no address" in done.stderr


def test_authorities_are_read_again_when_their_file_changes(tmp_path, pando, certificates):
    ca = tmp_path / "ca.pem"
    ca.write_text("nothing\n")
    made = remotes(certificates)
    made[0]["tls"]["ca"] = str(ca)
    server = pando([zone(tmp_path, "z.test", **{"allow-transfer": [{"tls": "second"}]})], remotes=made)
    server.start("z.test")

    def problem():
        done = subprocess.run([str(servers.build_folder() / "pandoctl"), "--config", str(server.config), "--json",
                               "tls", "status"], capture_output=True, text=True, timeout=120)
        rows = json.loads(done.stdout)["remotes"]
        assert done.returncode == (1 if rows[0]["problem"] else 0)
        return rows[0]["problem"]
    assert problem() == f"{ca}: there is no certificate in it (PEM)"
    assert f"tls_authorities_refused error=\"{ca}: there is no certificate" in server.log()
    ca.write_text((certificates.folder / "ca.pem").read_text())
    servers.wait_until("the file was read again", lambda: not problem(), 60)
