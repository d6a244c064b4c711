"""The root as a zone: its apex has no label, and no name is outside it."""

import serving
import signing
import test_differential


def test_the_root_answers_as_the_peers_do(tmp_path):
    source = signing.HERE / "root.zone"
    findings = test_differential.Findings()
    _, path = signing.make_zone(source, "o", tmp_path, ".")
    zone = serving.Zone(".", path, signing.source_text(source, "o", "."), "root", "o")
    suite = serving.Suite(tmp_path, [zone])
    try:
        suite.start()
        test_differential.check_zone(suite, zone, zone.all_questions(), findings)
    finally:
        suite.stop()
    print(findings.text())
    assert not findings.unexplained
