"""Zones of the shapes that servers are compared with: the profiles of ISC's performance laboratory, at any scale.
Names and data are random and the same in each run."""

import base64
import hashlib
import random

APEX = "$ORIGIN {origin}.\n$TTL {ttl}\n@ SOA ns1.{origin}. admin.{origin}. 1 3600 600 1209600 300\n"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
OPERATORS = 40_000  # how many name server sets the delegations of a large zone share


def words(count, seed):
    """Distinct labels of 6 to 16 letters."""
    source, found = random.Random(seed), set()
    while len(found) < count:
        found.add("".join(source.choices(LETTERS[:26], k=1) + source.choices(LETTERS, k=source.randint(5, 15))))
    ordered = sorted(found)
    source.shuffle(ordered)
    return ordered


def addresses(file, count, ordered=False):
    """`1m-rrs`: one A a name."""
    file.write(APEX.format(origin="example", ttl=3600) + "@ NS ns1\nns1 A 192.0.2.1\n")
    names = words(count, 1)
    for i, name in enumerate(sorted(names) if ordered else names):
        file.write(f"{name} A 10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}\n")
    return count + 3


def delegations(file, count):
    """`1m-delegations`: two name servers of its own, with addresses, for each."""
    file.write(APEX.format(origin="example", ttl=3600) + "@ NS ns1\nns1 A 192.0.2.1\n")
    for i, name in enumerate(words(count, 2)):
        address = f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}"
        file.write(f"{name} NS ns1.{name}\n NS ns2.{name}\nns1.{name} A {address}\nns2.{name} A {address}\n")
    return 4 * count + 3


def operators(source):
    """Sets of two to four name servers that many delegations share; a few of them have most."""
    sets = []
    for name in words(OPERATORS, 3):
        domain = f"{name}.{source.choice(['com', 'net', 'org', 'test'])}."
        sets.append([f"ns{i + 1}.{domain}" for i in range(source.choice([2, 2, 2, 3, 4]))])
    return sets


BASE32HEX = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")


def nsec3_hash(name):
    """RFC 5155 §5 without salt and additional iterations."""
    wire = b"".join(bytes([len(label)]) + label for label in name.lower().encode().split(b".") if label) + b"\0"
    return base64.b32encode(hashlib.sha1(wire).digest()).translate(BASE32HEX).decode()


def registry(file, count, denial=None):
    """`tld`, and signed `tld-nsec` and `tld-nsec3`: delegations to shared name servers, every tenth with DS, every
    fiftieth with glue. The chain of NSEC3 leaves insecure delegations out (opt-out), as registries have it."""
    source = random.Random(4)
    sets = operators(source)
    file.write(APEX.format(origin="tld", ttl=86400) + "@ NS ns1\nns1 A 192.0.2.1\n")
    records = 3
    names = sorted(words(count, 5))

    def signature(types, owner, ttl, labels):
        text = base64.b64encode(source.randbytes(64)).decode()
        for rdtype in types:
            file.write(f"{owner} {ttl} RRSIG {rdtype} 13 {labels} {ttl} 20261231000000 20261101000000 12345 tld. {text}\n")

    if denial:
        key = base64.b64encode(source.randbytes(64)).decode()
        file.write(f"@ 86400 DNSKEY 256 3 13 {key}\n")
        signature(["SOA", "NS", "DNSKEY"], "@", 86400, 1)
        records += 4
    if denial == "nsec":
        file.write(f"@ 3600 NSEC {names[0]} NS SOA RRSIG NSEC DNSKEY\n")
        signature(["NSEC"], "@", 3600, 1)
        records += 2
    types_by_hash = {}
    if denial == "nsec3":
        file.write("@ 0 NSEC3PARAM 1 0 0 -\n")
        signature(["NSEC3PARAM"], "@", 0, 1)
        records += 2
        types_by_hash = {nsec3_hash("tld"): "NS SOA RRSIG DNSKEY NSEC3PARAM", nsec3_hash("ns1.tld"): "A RRSIG"}
    if denial:
        signature(["A"], "ns1", 86400, 2)
        records += 1
    for i, name in enumerate(names):
        servers = sets[min(int(source.paretovariate(0.6)) - 1, OPERATORS - 1)]
        if i % 50 == 0:
            servers = [f"ns1.{name}", f"ns2.{name}"]
            file.write(f"ns1.{name} A 192.0.2.{i % 250}\nns2.{name} A 192.0.2.{i % 249}\n")
            records += 2
        for server in servers:
            file.write(f"{name} NS {server}\n")
        records += len(servers)
        secure = i % 10 == 0
        if secure:
            file.write(f"{name} DS {i % 65536} 13 2 {source.randbytes(32).hex()}\n")
            records += 1
        if denial and secure:
            signature(["DS"], name, 86400, 2)
            records += 1
        if denial == "nsec3" and secure:
            types_by_hash[nsec3_hash(f"{name}.tld")] = "NS DS RRSIG"
        if denial != "nsec":
            continue
        types = "NS DS RRSIG NSEC" if secure else "NS RRSIG NSEC"
        file.write(f"{name} 3600 NSEC {names[i + 1] if i + 1 < count else '@'} {types}\n")
        signature(["NSEC"], name, 3600, 2)
        records += 2
    chain = sorted(types_by_hash)
    for owner, following in zip(chain, chain[1:] + chain[:1]):
        file.write(f"{owner} 300 NSEC3 1 1 0 - {following} {types_by_hash[owner]}\n")
        signature(["NSEC3"], owner, 300, 2)
        records += 2
    return records


PROFILES = {
    "addresses": ("example", 1_000_000, addresses),
    "sorted": ("example", 1_000_000, lambda file, count: addresses(file, count, True)),
    "delegations": ("example", 1_000_000, delegations),
    "tld": ("tld", 1_500_000, registry),
    "tld-nsec": ("tld", 1_500_000, lambda file, count: registry(file, count, "nsec")),
    "tld-nsec3": ("tld", 1_500_000, lambda file, count: registry(file, count, "nsec3")),
}


def write(profile, path, scale=1.0):
    """Writes the zone file; gives the zone's name and the number of its records."""
    origin, count, make = PROFILES[profile]
    with open(path, "w") as file:
        return origin, make(file, int(count * scale))


def ten(path):
    """What most users have: one zone of ten records."""
    path.write_text("""$ORIGIN example.
$TTL 3600
@ SOA ns1 admin 1 3600 600 1209600 300
@ NS ns1
@ NS ns2
@ A 192.0.2.10
@ MX 10 mail
@ TXT "v=spf1 mx -all"
ns1 A 192.0.2.1
ns2 A 192.0.2.2
mail A 192.0.2.25
www CNAME @
""")
    return "example", 10


def many(folder, count):
    """So many zones of five records, each in a file of its own: {zone: file}."""
    folder.mkdir()
    files = {f"z{number}.example": folder / f"z{number}.example.zone" for number in range(count)}
    for number, file in enumerate(files.values()):
        file.write_text(
            f"@ 3600 SOA ns1 admin 1 3600 600 86400 300\n@ 3600 NS ns1\n@ 3600 A 10.{number >> 16 & 255}."
            f"{number >> 8 & 255}.{number & 255}\nwww 3600 A 192.0.2.1\nns1 3600 A 192.0.2.2\n")
    return files
