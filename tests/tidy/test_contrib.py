"""Alert rules and dashboard use metrics that exist; container image and Kubernetes example agree with the tree."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from tree import ROOT

RULES = ROOT / "contrib/prometheus/pando.rules.yml"
DASHBOARD = ROOT / "contrib/grafana/pando.json"
CONTAINERFILE = ROOT / "contrib/container/Containerfile"
KUBERNETES = ROOT / "contrib/kubernetes/pando.yaml"
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


def firing(samples, folder):
    """Names of the alerts that fire an hour after these samples began; each has the same value all the time."""
    series = [{"series": sample, "values": f"{value}x240"} for sample, value in samples.items()]
    test = {"interval": "15s", "input_series": series, "promql_expr_test": [
        {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "59m", "exp_samples": []}]}
    (folder / "test.yml").write_text(yaml.dump({"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": [test]}))
    done = subprocess.run(["promtool", "test", "rules", folder / "test.yml"], capture_output=True, text=True)
    names = set(re.findall(r'alertname="(\w+)"', done.stdout + done.stderr))
    assert (done.returncode == 0) == (not names), done.stdout + done.stderr  # it was told that none fires
    return names


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
@pytest.mark.parametrize("samples, expected", [
    ({"pando_zones": 3, "pando_zones_loaded": 3, "pando_manager_up": 1, "pando_worker_up": 1}, set()),
    ({"pando_zones": 3, "pando_zones_loaded": 2, "pando_manager_up": 1}, {"PandoZonesMissing"}),
    ({"pando_manager_up": 0, "pando_worker_up": 0}, {"PandoManagerDown", "PandoNoWorker"}),
    ({'pando_zone_expiry_timestamp_seconds{zone="a."}': 5000}, {"PandoZoneExpires"}),
], ids=["sound", "zones-without-data", "nobody-there", "expiry"])
def test_alerts_fire_when_they_should_and_are_quiet_else(samples, expected, tmp_path):
    assert firing(samples, tmp_path) == expected


def test_the_image_is_made_of_files_and_programs_that_exist():
    text = CONTAINERFILE.read_text().replace("\\\n", "")
    stages = re.findall(r"(?m)^FROM (\S+)(?: AS (\w+))?$", text)
    assert len(stages) == 2 and all(image.startswith("debian:12") for image, _ in stages)
    for source in re.findall(r"(?m)^COPY (?!--from)(\S+) \S+$", text):
        assert (ROOT / source).exists(), source
    built = re.search(r"(?m)^COPY --from=(\w+) /src/(\S+)/\*\.deb (\S+)$", text)
    assert built[1] == stages[0][1] and built[3] in text.split("apt-get install")[1]
    assert f"ls -1 {built[2]}/*.deb" in (ROOT / "scripts/package").read_text(), "where the first stage leaves them"
    entry = json.loads(re.search(r"(?m)^ENTRYPOINT (.*)$", text)[1])
    assert entry[0] == "/usr/sbin/pando-manager" and entry[2] in re.findall(r"(?m)^COPY \S+ (\S+)$", text)
    configuration = yaml.safe_load((ROOT / "contrib/container/pando.yaml").read_text())
    volume = re.search(r"(?m)^VOLUME (.*)$", text)[1]
    assert all(configuration["store"][key].startswith(volume + "/") for key in ("journal", "image"))
    ignored = (ROOT / ".dockerignore").read_text().splitlines()
    assert {"build", ".git"} <= set(ignored)


def test_the_kubernetes_example_agrees_with_itself_and_with_the_image():
    parts = {part["kind"]: part for part in yaml.safe_load_all(KUBERNETES.read_text())}
    assert set(parts) == {"ConfigMap", "Service", "StatefulSet"}
    pods = parts["StatefulSet"]["spec"]
    pod = pods["template"]["spec"]
    container, = pod["containers"]
    labels = pods["template"]["metadata"]["labels"]
    assert pods["selector"]["matchLabels"] == labels == parts["Service"]["spec"]["selector"]
    assert pods["serviceName"] == parts["Service"]["metadata"]["name"]
    opened = {(port["protocol"], port["containerPort"]) for port in container["ports"]}
    assert {(port["protocol"], port["targetPort"]) for port in parts["Service"]["spec"]["ports"]} == opened
    assert opened == {("UDP", 53), ("TCP", 53)}
    volumes = {volume["name"] for volume in pod["volumes"] + [{"name": claim["metadata"]["name"]}
                                                              for claim in pods["volumeClaimTemplates"]]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == volumes
    assert pod["volumes"][0]["configMap"]["name"] == parts["ConfigMap"]["metadata"]["name"]
    files = parts["ConfigMap"]["data"]
    configuration = yaml.safe_load(files["pando.yaml"])
    writable = [path for name, path in mounts.items() if name != "configuration"]
    for key in ("path", "journal", "image"):
        assert any(configuration["store"][key].startswith(path + "/") for path in writable), key
    for zone in configuration["zones"]:
        folder, name = zone["file"].rsplit("/", 1)
        assert folder == mounts["configuration"] and name in files
    group = re.search(r"groupadd --system --gid (\d+) pando", CONTAINERFILE.read_text())[1]
    assert pod["securityContext"]["fsGroup"] == int(group)
    assert container["securityContext"]["readOnlyRootFilesystem"] is True


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_reads_the_example(tmp_path):
    (tmp_path / "kustomization.yaml").write_text("resources: [pando.yaml]\n")
    shutil.copy(KUBERNETES, tmp_path)
    done = subprocess.run(["kubectl", "kustomize", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0 and "kind: StatefulSet" in done.stdout, done.stderr
