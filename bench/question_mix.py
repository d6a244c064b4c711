"""Questions for load generators, as lines of `NAME TYPE`. Each function takes its own dice, so that a seed gives the
same questions in each run."""

from profiles import LETTERS


def label(dice, shortest, longest):
    return "".join(dice.choices(LETTERS, k=dice.randint(shortest, longest)))


def owners(zone):
    """The owners of a zone file that are written at the beginning of a line, sorted."""
    found = set()
    with open(zone) as file:
        for line in file:
            if line[0] not in " $@\n":
                found.add(line.split(None, 1)[0])
    return sorted(found)


def of_owners(names, origin, dice, count):
    """Owners in random order; every twentieth question is for a name that is not there."""
    for i, owner in enumerate(dice.sample(names, min(count, len(names)))):
        name = owner if owner.endswith(".") else f"{owner}.{origin}"
        yield f"{owner}0x.{origin} A\n" if i % 20 == 7 and name != owner else f"{name} A\n"


def delegations_of(zone):
    """The delegations of a zone file whose lines are whole (owner, TTL, class, type)."""
    with open(zone) as file:
        lines = [fields for fields in map(str.split, file) if fields[3:4] == ["NS"]]
    return sorted({fields[0] for fields in lines if fields[0] != "."})


def root_shaped(tlds, dice, count):
    """No question is like an earlier one: 60 % are for names below no TLD, the others below one of the TLDs."""
    for _ in range(count):
        name = f"{label(dice, 3, 12)}.{label(dice, 6, 14)}." + (dice.choice(tlds) if dice.random() >= 0.6 else "")
        yield f"{name} {dice.choice(['A', 'AAAA'])}\n"


def below_delegations(names, origin, dice, count):
    """Referrals, and as many names that are not there, with random suffixes."""
    for _ in range(count):
        suffix = label(dice, 3, 6) if dice.random() < 0.5 else ""
        yield f"www.{dice.choice(names)}{suffix}.{origin} A\n"


def of_zones(names, dice, count):
    """`www` of zones at random; every twentieth question is for a name that is not there."""
    for i in range(count):
        yield f"{label(dice, 4, 8) if i % 20 == 7 else 'www'}.{dice.choice(names)} A\n"


TEN = ("example A", "example MX", "example NS", "example TXT", "www.example A", "www.example AAAA", "mail.example A",
       "ns1.example A")


def of_ten(dice, count):
    """What the zone of ten records is asked for; every tenth question is for a name that is not there."""
    for i in range(count):
        yield f"{label(dice, 4, 8)}.example A\n" if i % 10 == 7 else f"{dice.choice(TEN)}\n"
