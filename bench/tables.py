"""Tables and plots of one run of the laboratory (bench/laboratory.py), as Markdown and SVG.

A figure of a server is the median of its turns. A claim against Pando is the median ratio of pairs of turns, and it is
only made if the two are told apart (pairs.py)."""

import textwrap

import charts
import pairs

NAMES = {"pando": "Pando", "nsd": "NSD", "knot": "Knot", "bind": "BIND"}
TITLES = {
    "root": "root zone", "root-real": "root zone, real questions", "root-random": "root zone, random questions", "ten": "one zone of ten records",
    "1m": "addresses", "delegations": "delegations", "tld": "registry", "tld-nsec": "registry with NSEC", "tld-nsec3": "registry with NSEC3",
    "zones": "zones of five records", "updates": "a zone of 10,000 names"}
UNTOLD = "not told apart"
SHORT_UNTOLD = "≈ Pando"


def figure(value):
    """Three digits that count, and no more than the value has."""
    if value >= 1e6:
        return f"{value / 1e6:.1f} M"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.{1 if value >= 10 else 2 if value >= 1 else 3}f}"


def sums(first, second):
    return {kind: [a + b if a is not None and b is not None else None for a, b in zip(turns, second.get(kind, []))]
            for kind, turns in first.items()}


class Results:
    """The rows of a run: {server: turns} by profile and measure."""

    def __init__(self, run):
        self.run, self.rows = run, {}
        for row in run["rows"]:
            self.rows[row["profile"], row["measure"]] = row["turns"]
        for (profile, measure), turns in list(self.rows.items()):
            mode, _, kind = measure.partition(" ")
            if kind == "user":
                self.rows[profile, f"{mode} all"] = sums(turns, self.rows[profile, f"{mode} system"])

    def of(self, measure):
        """{profile: {server: turns that were measured}} of a measure, in the order of TITLES."""
        found = {}
        for profile in TITLES:
            turns = self.rows.get((profile, measure), {})
            measured = {kind: values for kind, values in turns.items() if any(v is not None for v in values)}
            if measured:
                found[profile] = measured
        return found

    def title(self, profile):
        about = self.run["profiles"][profile]
        count = f"{about['count']:,} {about['unit']}s"
        return TITLES[profile] if profile in ("ten", "updates") else f"{TITLES[profile]} ({count})"


def told(turns, kind):
    """How a server stands to Pando: text for a table's cell."""
    if kind == "pando" or "pando" not in turns:
        return ""
    found = pairs.compare(turns["pando"], turns[kind])
    if found is None or not found.apart:
        return f", {UNTOLD}"
    return f", × {figure(found.ratio.median)}"


def cell(turns, kind):
    values = [value for value in turns.get(kind, []) if value is not None]
    if not values:
        return "–"
    found = pairs.spread(values)
    median, low, high = map(figure, found)
    ends = f" ({low} to {high})" if low != high else ""
    return f"{median}{ends}{told(turns, kind)}"


def table(results, title, measures):
    """A row for each profile and measure; `measures`: {measure: what is written behind the profile}."""
    kinds = list(results.run["servers"])
    found = {measure: results.of(measure) for measure in measures}
    rows = [f"| {results.title(profile)}{behind} | " + " | ".join(cell(found[measure][profile], kind) for kind in kinds) +
            " |" for profile in TITLES for measure, behind in measures.items() if profile in found[measure]]
    if not rows:
        return ""
    head = f"| {title} | " + " | ".join(NAMES[kind] for kind in kinds) + " |\n|---|" + "---:|" * len(kinds)
    return "\n".join([head, *rows]) + "\n"


TABLES = (
    ("own (user) CPU µs per query", {"plain user": "", "DO user": ", DO"}),
    ("all CPU µs per query, the kernel's included", {"plain all": "", "DO all": ", DO"}),
    ("bytes of memory per record or zone, all processes", {"memory": ""}),
    ("CPU seconds from start to the first answer", {"load": ""}),
    ("seconds to the first answer after `kill -9` of all processes", {"restart": ""}),
    ("CPU seconds of one AXFR, the sender's", {"axfr cpu": ""}),
    ("octets of one AXFR", {"axfr octets": ""}),
    ("durable updates per second", {"rate 1": ", one client", "rate 64": ", 64 clients"}),
    ("CPU µs per update", {"cpu 1": ", one client", "cpu 64": ", 64 clients"}),
)


def server_text(kind, about):
    if kind == "pando":
        return f"Pando {about['version']}" + (f" (commit {about['commit']})" if about.get("commit") else "")
    if about["from"] == "distribution":
        return f"{NAMES[kind]} {about['version']} **of the distribution, not the newest**"
    return f"{NAMES[kind]} {about['version']}"


def head(run):
    """When, where and with which versions: the paragraph over the tables."""
    lowest, highest = run["load_average"]
    asked = [f"{NAMES[kind]} ({profile}: {why})" if kind in NAMES else f"{profile} ({why})"
             for profile, kinds in run["skipped"].items() for kind, why in kinds.items()]
    text = (f"{run['date']}, {run['machine']['processors']} processors ({run['machine']['model']}), Linux "
            f"{run['machine']['kernel']}; load average {lowest:.1f} to {highest:.1f}. "
            f"{', '.join(server_text(kind, about) for kind, about in run['servers'].items())}. {run['note']}").strip()
    if asked:
        text += f" Not measured: {', '.join(asked)}."
    return "\n".join(textwrap.wrap(text, 116, break_long_words=False, break_on_hyphens=False))


def markdown(run):
    results = Results(run)
    return "\n".join([head(run) + "\n", *filter(None, (table(results, *each) for each in TABLES))])


# -- Plots ---------------------------------------------------------------------------------------------------------

PLOTS = {  # file: title, unit, measures with what stands behind the profile; a second measure's bar follows the first's
    "bench-memory.svg": ("Memory", "bytes per record or zone, all processes; less is better", {("memory",): ""}),
    "bench-load.svg": ("Load", "CPU seconds from start to the first answer; less is better", {("load",): ""}),
    "bench-restart.svg": ("Restart", "seconds to the first answer after kill -9; less is better", {("restart",): ""}),
    "bench-queries.svg": ("CPU per query", "µs, own + the kernel's (paler); less is better",
                          {("plain user", "plain system"): ""}),
    "bench-queries-dnssec.svg": ("CPU per query with DO", "µs, own + the kernel's (paler); less is better",
                                 {("DO user", "DO system"): ""}),
    "bench-updates.svg": ("Durable updates", "per second; more is better",
                          {("rate 1",): ", one client", ("rate 64",): ", 64 clients"}),
}


def bar(kind, layers):
    """`layers`: {server: turns} of each part of the bar. The parts divide the median of their sum as all turns together
    do, since the division of one short turn is rough."""
    whole = layers[0] if len(layers) == 1 else sums(*layers)
    values = [value for value in whole[kind] if value is not None]
    found = pairs.spread(values)
    first = sum(value for value, all_parts in zip(layers[0][kind], whole[kind]) if all_parts is not None)
    share = first / sum(values) if sum(values) else 1
    parts = [found.median * share, found.median * (1 - share)][:len(layers)]
    text = " + ".join(map(figure, parts))
    if told(whole, kind).endswith(UNTOLD):
        text += f"  {SHORT_UNTOLD}"
    return charts.Bar(NAMES[kind], tuple(parts), found.low, found.high, text, kind == "pando")


def plot(results, title, unit, measures):
    groups = []
    for parts, behind in measures.items():
        for profile, turns in results.of(parts[0]).items():
            layers = [results.rows[profile, part] for part in parts]
            groups.append(charts.Group(results.title(profile) + behind, [bar(kind, layers) for kind in turns]))
    if not groups:
        return None
    return charts.draw(title, f"{unit}. Lines: middle 80 % of turns. {SHORT_UNTOLD}: {UNTOLD}.", groups)


def plots(run):
    """{file: SVG} of all plots that the run has figures for."""
    results = Results(run)
    drawn = {file: plot(results, *each) for file, each in PLOTS.items()}
    return {file: text for file, text in drawn.items() if text}
