"""Zones of the shapes that servers are compared with: the profiles of ISC's performance laboratory, at any scale.
Names and data are random and the same in each run."""

import base64
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


def registry(file, count, signed=False):
    """`tld` and, signed with NSEC, `tld-nsec`: delegations to shared name servers, every tenth with DS, every fiftieth
    with glue."""
    source = random.Random(4)
    sets = operators(source)
    file.write(APEX.format(origin="tld", ttl=86400) + "@ NS ns1\nns1 A 192.0.2.1\n")
    records = 3
    names = sorted(words(count, 5))

    def signature(types, owner, ttl, labels):
        text = base64.b64encode(source.randbytes(64)).decode()
        for rdtype in types:
            file.write(f"{owner} {ttl} RRSIG {rdtype} 13 {labels} {ttl} 20261231000000 20261101000000 12345 tld. {text}\n")

    if signed:
        key = base64.b64encode(source.randbytes(64)).decode()
        file.write(f"@ 86400 DNSKEY 256 3 13 {key}\n@ 3600 NSEC {names[0]} NS SOA RRSIG NSEC DNSKEY\n")
        signature(["SOA", "NS", "DNSKEY"], "@", 86400, 1)
        signature(["NSEC"], "@", 3600, 1)
        signature(["A"], "ns1", 86400, 2)
        records += 7
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
        if not signed:
            continue
        if secure:
            signature(["DS"], name, 86400, 2)
        types = "NS DS RRSIG NSEC" if secure else "NS RRSIG NSEC"
        file.write(f"{name} 3600 NSEC {names[i + 1] if i + 1 < count else '@'} {types}\n")
        signature(["NSEC"], name, 3600, 2)
        records += 2 + secure
    return records


PROFILES = {
    "addresses": ("example", 1_000_000, addresses),
    "sorted": ("example", 1_000_000, lambda file, count: addresses(file, count, True)),
    "delegations": ("example", 1_000_000, delegations),
    "tld": ("tld", 1_500_000, registry),
    "tld-nsec": ("tld", 1_500_000, lambda file, count: registry(file, count, True)),
}


def write(profile, path, scale=1.0):
    """Writes the zone file; gives the zone's name and the number of its records."""
    origin, count, make = PROFILES[profile]
    with open(path, "w") as file:
        return origin, make(file, int(count * scale))
