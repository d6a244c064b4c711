"""Zones that real signers sign, and changes to these that leave the signatures as they are."""

import shutil
import subprocess

import dns.name
import dns.rdataclass
import dns.rdataset
import dns.rdatatype
import dns.zone
import pytest

ZONE = """$TTL 300
@ SOA ns1 admin 7 3600 600 86400 60
@ NS ns1
@ MX 10 mail
@ TXT "one" "two"
ns1 A 192.0.2.1
ns1 AAAA 2001:db8::1
mail A 192.0.2.25
Web A 192.0.2.80
web A 192.0.2.81
a.b.c TXT "below an empty non-terminal"
*.wild TXT "wild"
secure NS ns.secure
secure DS 12345 8 2 0123456789012345678901234567890123456789012345678901234567890123
ns.secure A 192.0.2.53
insecure NS ns.insecure
ns.insecure A 192.0.2.54
deep.insecure2 NS ns1
alias CNAME web
dn DNAME other.test.
"""

NEEDS_SIGNERS = pytest.mark.skipif(
    not (shutil.which("ldns-signzone") and shutil.which("dnssec-signzone")), reason="needs ldnsutils and bind9-utils")

LDNS = {"RSASHA256": ["-b", "2048"], "RSASHA512": ["-b", "2048"], "ECDSAP256SHA256": [], "ECDSAP384SHA384": [],
        "ED25519": [], "ED448": []}


def run(*command, folder):
    done = subprocess.run([str(word) for word in command], cwd=folder, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout.strip()


def ldns_signed(folder, algorithm="ECDSAP256SHA256", options=(), text=ZONE, dates=()):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plain").write_text(text)
    keys = [run("ldns-keygen", "-r", "/dev/urandom", "-a", algorithm, *LDNS[algorithm], *ksk, "one.test", folder=folder)
            for ksk in (["-k"], [])]
    run("ldns-signzone", "-o", "one.test", "-f", "signed", *options, *dates, "plain", *keys, folder=folder)
    return folder / "signed"


def sign_again(folder, text):
    """Another version of the zone in `folder`, by the same keys."""
    (folder / "plain").write_text(text)
    keys = sorted(path.stem for path in folder.glob("K*.private"))
    run("ldns-signzone", "-o", "one.test", "-f", "signed", "plain", *keys, folder=folder)
    return folder / "signed"


def bind_signed(folder, options=()):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "plain").write_text(ZONE)
    for ksk in (["-f", "KSK"], []):
        run("dnssec-keygen", "-q", "-a", "ECDSAP256SHA256", *ksk, "one.test", folder=folder)
    run("dnssec-signzone", "-q", "-S", "-x", "-o", "one.test", "-f", "signed", "-O", "full", *options, "plain",
        folder=folder)
    return folder / "signed"


def changed(path, change):
    """A copy of a signed zone in which `change(zone)` has changed something; signatures stay as they are."""
    zone = dns.zone.from_file(str(path), origin="one.test", relativize=False, check_origin=False)
    change(zone)
    copy = path.with_name("changed")
    zone.to_file(str(copy), relativize=False)
    return copy


def name(text):
    return dns.name.from_text(text, dns.name.from_text("one.test."))


def drop(zone, owner, rdtype, covers="TYPE0"):
    zone[name(owner)].delete_rdataset(dns.rdataclass.IN, dns.rdatatype.from_text(rdtype),
                                      dns.rdatatype.from_text(covers))


def replace(zone, owner, rdtype, *texts):
    node = zone[name(owner)]
    rdataset = node.get_rdataset(dns.rdataclass.IN, dns.rdatatype.from_text(rdtype))
    new = dns.rdataset.from_text("IN", rdtype, rdataset.ttl, *texts)
    node.replace_rdataset(new)
