"""Alert rules and dashboard use metrics that exist."""

import json
import re
import shutil
import subprocess

import pytest

from tree import ROOT

RULES = ROOT / "contrib/prometheus/pando.rules.yml"
DASHBOARD = ROOT / "contrib/grafana/pando.json"
SUFFIXES = ("_bucket", "_sum", "_count")


def documented():
    """Names of samples by docs/reference/metrics.md, which unit_http compares with the code, and their labels."""
    names = {}
    for line in (ROOT / "docs/reference/metrics.md").read_text().splitlines():
        if line.startswith("| `pando_"):
            name, kind, labels, _ = [cell.strip() for cell in line.strip("|").split("|")]
            labels = set(re.findall(r"`(\w+)`", labels)) | {"instance", "job"}
            for suffix in SUFFIXES if kind == "histogram" else ("",):
                names[name.strip("`") + suffix] = labels
    return names


def expressions():
    yield from re.findall(r"^ +expr: (?:>-\n)?((?:.|\n(?= {10}\S))+)", RULES.read_text(), re.M)
    board = json.loads(DASHBOARD.read_text())
    for panel in board["panels"]:
        for target in panel["targets"]:
            yield target["expr"]


def test_expressions_use_metrics_that_exist():
    names, used = documented(), []
    assert len(names) > 90
    for expression in expressions():
        for name, selector in re.findall(r"\b(pando_\w+)(\{[^}]*\})?", expression):
            assert name in names, expression
            for label in re.findall(r"[{,](\w+)=", selector):
                assert label in names[name], expression
            used.append(name)
        for labels in re.findall(r"\bby \(([^)]*)\)", expression):
            known = set().union(*(names[name] for name in re.findall(r"\bpando_\w+", expression)))
            assert set(labels.split(", ")) <= known, expression
    assert len(used) > 50


def test_every_alert_tells_its_severity_and_says_what_is_wrong():
    alerts = RULES.read_text().split("- alert: ")[1:]
    assert len(alerts) > 10
    for alert in alerts:
        assert re.search(r"severity: (warning|critical)", alert) and "summary: " in alert, alert


def test_panels_have_ids_of_their_own_and_do_not_overlap():
    panels = json.loads(DASHBOARD.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert len({(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}) == len(panels)


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_prometheus_understands_rules_and_configuration():
    for words in (("check", "rules", RULES), ("check", "config", ROOT / "contrib/prometheus/prometheus.yml")):
        done = subprocess.run(["promtool", *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
