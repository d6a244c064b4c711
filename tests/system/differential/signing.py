"""The zones of the differential suite, signed while the test runs.

Each zone exists in VARIANTS; its apex is "<zone>.<letter>.", so that one server serves them all.
BIND's dnssec-signzone (or ldns-signzone) signs with one Ed25519 key, made from a fixed seed, for all zones and a fixed
period: the same octets each time."""

import base64
import concurrent.futures
import hashlib
import pathlib
import re
import subprocess
import typing

import dns.dnssec
import dns.name
import dns.rdata
import dns.rrset
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

import sources
import wire

HERE = pathlib.Path(__file__).resolve().parent
KEY = ed25519.Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"a key of no worth").digest())
START, END = "20200101000000", "20370101000000"


class Nsec3(typing.NamedTuple):
    salt: str
    iterations: int
    opt_out: bool


# Letter of the variant → what each of its chains is made of; None is NSEC.
VARIANTS = {
    "u": [],
    "n": [None],
    "h": [Nsec3("-", 0, False)],
    "o": [Nsec3("aabb", 1, True)],
    # Parameters change (RFC 5155 §10.4): two whole chains, each with its NSEC3PARAM.
    "t": [Nsec3("-", 0, False), Nsec3("c0ffee", 2, True)],
    # The second chain is being built: part of it is there, and no NSEC3PARAM speaks of it.
    "p": [Nsec3("aabb", 1, True), Nsec3("-", 0, False)],
}

# dnssec-signzone makes no NSEC3 for names of 255 octets, and refuses NS at a wildcard.
SIGNED_BY_LDNS = {"ln", "wn"}


def public_key():
    return KEY.public_key().public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw)


def dnskey():
    return dns.rdata.from_text("IN", "DNSKEY", f"257 3 15 {base64.b64encode(public_key()).decode()}")


def write_key(folder, apex):
    """The key as files that BIND's tools read; gives the path of the public one."""
    seed = KEY.private_bytes(serialization.Encoding.Raw, serialization.PrivateFormat.Raw,
                             serialization.NoEncryption())
    stem = folder / f"K{apex}+015+{dns.dnssec.key_id(dnskey()):05}"
    public = stem.with_name(stem.name + ".key")
    public.write_text(f"{apex} 3600 IN DNSKEY {dnskey().to_text()}\n")
    stem.with_name(stem.name + ".private").write_text(
        "Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\n"
        f"PrivateKey: {base64.b64encode(seed).decode()}\n")
    return public


def source_text(path, variant, apex):
    """A zone's text for one variant: absolute names and TTLs come from $ORIGIN and $TTL."""
    text = path.read_text().replace("<v>", variant)

    def ds(match):
        child = dns.name.from_text(f"{match[1]}.{apex}")
        return dns.dnssec.make_ds(child, dnskey(), "SHA256").to_text()
    return f"$ORIGIN {apex}\n" + re.sub(r"<ds (\S+)>", ds, text)


def bind_command(apex, chain, key):
    nsec3 = [] if chain is None else ["-3", chain.salt, "-H", str(chain.iterations)]
    opt_out = ["-A"] if chain and chain.opt_out else []
    return ["dnssec-signzone", "-z", "-P", "-o", apex, "-O", "full", "-f", "signed",
            "-s", START, "-e", END, *nsec3, *opt_out, "plain", str(key)]


def ldns_command(apex, chain, key):
    nsec3 = [] if chain is None else ["-n", "-a", "1", "-t", str(chain.iterations)]
    salt = ["-s", chain.salt] if chain and chain.salt != "-" else []
    opt_out = ["-p"] if chain and chain.opt_out else []
    return ["ldns-signzone", "-o", apex, "-f", "signed", "-i", START, "-e", END,
            *nsec3, *salt, *opt_out, "plain", str(key.with_suffix(""))]


def sign(source, apex, chain, folder, by_ldns=False):
    """The records of the signed zone, one a line, in full."""
    folder.mkdir(parents=True)
    key = write_key(folder, apex)
    (folder / "plain").write_text(source + key.read_text())
    command = (ldns_command if by_ldns else bind_command)(apex, chain, key)
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    lines = (folder / "signed").read_text().splitlines()
    if by_ldns:
        lines = [line.split(" ;{")[0].rstrip() for line in lines]
    return [line for line in lines if line.strip() and not line.startswith(";")]


def fields(line):
    owner, ttl, _, rrtype, rdata = line.split(None, 4)
    return owner, ttl, rrtype, rdata


def with_numbered_types(source, lines):
    """Signed lines as all servers read them, whichever types they know: data as in the source, which
    has numbers, and types named by signatures and bitmaps as numbers too."""
    known = {"A", "NS", "SOA", "DNSKEY", "NSEC", "NSEC3", "NSEC3PARAM", "RRSIG", "TYPE65534"}

    def number(word):
        return word if word in known else f"TYPE{sources.type_number(word)}"
    out = [source]
    for line in lines:
        owner, ttl, rrtype, rdata = fields(line)
        words = rdata.split()
        first = {"RRSIG": 0, "NSEC": 1, "NSEC3": 5}.get(rrtype)
        if first is None and rrtype in known - {"TYPE65534"}:
            out.append(line)
        elif first is not None:
            last = 1 if rrtype == "RRSIG" else len(words)
            words[first:last] = map(number, words[first:last])
            out.append(f"{owner} {ttl} IN {rrtype} {' '.join(words)}")
    return out


def signed_parameters(apex, lines):
    """The apex's NSEC3PARAM records as one RRset, with the signature over the whole set."""
    rdatas = [fields(line)[3] for line in lines]
    rrset = dns.rrset.from_text(apex, 0, "IN", "NSEC3PARAM", *rdatas)
    rrsig = dns.dnssec.sign(rrset, KEY, rrset.name, dnskey(), inception=START, expiration=END)
    return [f"{apex} 0 IN NSEC3PARAM {rdata}" for rdata in rdatas] + [
        f"{apex} 0 IN RRSIG {rrsig.to_text()}"]


def merge(apex, chains, variant):
    """One zone with the NSEC3 chains of both."""
    def is_parameter(line):
        _, _, rrtype, rdata = fields(line)
        return rrtype == "NSEC3PARAM" or rdata.startswith("NSEC3PARAM ")

    def is_link(line):
        _, _, rrtype, rdata = fields(line)
        return rrtype == "NSEC3" or rdata.startswith("NSEC3 ")
    first, second = chains
    links = [line for line in second if is_link(line)]
    if variant == "p":
        # What a signer that walks the zone has made so far: owners with an even first octet.
        links = [line for line in links if int(line[0], 32) % 2 == 0]
        return first + links
    parameters = [line for line in first + second if is_parameter(line) and fields(line)[2] != "RRSIG"]
    rest = [line for line in first if not is_parameter(line)]
    return rest + links + signed_parameters(apex, parameters)


def nsec3_records(path):
    """All NSEC3 records of a signed zone and their signatures, as wire.Records."""
    found = []
    for line in path.read_text().splitlines():
        words = line.split(None, 4)
        if len(words) < 5 or not (words[3] == "NSEC3" or words[4].startswith("NSEC3 ")):
            continue
        rdata = dns.rdata.from_text("IN", words[3], words[4])
        found.append(wire.Record(wire.lower(wire.read_text_name(words[0])), int(rdata.rdtype),
                                 int(words[1]), rdata.to_wire()))
    return tuple(found)


def with_decimal_escapes(line):
    """Rare characters of names as all servers read them: Knot refuses some that BIND prints bare."""
    def escape(match):
        return f"\\{ord(match[1] or match[2]):03}"
    parts = re.sub(r'\\(")', escape, line).split('"')
    parts[::2] = [re.sub(r"\\([^0-9#])|([`\[{])", escape, part) for part in parts[::2]]
    return '"'.join(parts)


def make_zone(path, variant, folder, apex=None, serial=1):
    """Writes one variant; gives (apex, file). `apex`: another one than "<zone>.<letter>."."""
    apex = apex or f"{path.stem}.{variant}."
    source = source_text(path, variant, apex).replace(" 1 3600 900 ", f" {serial} 3600 900 ")
    out = folder / f"{path.stem}.{variant}.zone"
    chains = [sign(source, apex, chain, folder / f"{out.stem}-{number}", path.stem in SIGNED_BY_LDNS)
              for number, chain in enumerate(VARIANTS[variant])]
    if path.stem == "ty":
        data = "\n".join(line for line in source.splitlines() if " TYPE" in line)
        chains = [with_numbered_types(f"$ORIGIN {apex}\n$TTL 3600\n{data}", lines) for lines in chains]
    if not chains:
        lines = source.splitlines()
    else:
        lines = chains[0] if len(chains) == 1 else merge(apex, chains, variant)
    out.write_text("\n".join(map(with_decimal_escapes, lines)) + "\n")
    return apex, out


def make_all(paths, folder, only_unsigned=()):
    """All variants of all zones: apex → file."""
    folder.mkdir(parents=True, exist_ok=True)
    jobs = [(path, variant) for path in paths for variant in VARIANTS
            if variant == "u" or path.stem not in only_unsigned]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return dict(pool.map(lambda job: make_zone(*job, folder), jobs))
