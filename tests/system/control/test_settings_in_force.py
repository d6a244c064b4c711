"""The settings in force, the difference to the files, and the level of the logs."""

import re

import pytest
import yaml

from test_records import ctl

SECRET = "c2VjcmV0IHNlY3JldCBzZWNyZXQ="


@pytest.fixture
def server(pando, tmp_path):
    file = tmp_path / "zone"
    file.write_text("$TTL 300\n@ SOA ns1 admin 10 3600 600 864000 60\n@ NS ns1\nns1 A 192.0.2.1\n")
    made = pando([{"name": "a.test", "file": str(file)}, {"name": "b.test", "file": str(file)}],
                 keys=[{"name": "k.test", "secret": SECRET}])
    made.zone_file = str(file)
    return made.start("a.test")


def show(server, *zone):
    code, out, err = ctl(server, "config", "show", *zone)
    assert code == 0, err
    return out


def test_settings_in_force_are_a_configuration(server, tmp_path):
    """With the key's secret written back and the zones appended, the text is taken as a configuration, unchanged."""
    text = show(server)
    assert SECRET not in text and yaml.safe_load(text)["server"]["workers"] == 2
    zones = "zones:\n" + "".join(show(server, name).split("\n", 1)[1] for name in ("a.test", "b.test"))
    whole = text.replace("# secret: (not shown)", f"secret: {SECRET}") + zones
    server.config.write_text(whole)
    server.config.chmod(0o640)  # or a warning would tell of the secret
    assert ctl(server, "config", "check")[0] == 0
    assert ctl(server, "config", "diff") == (0, "a reload would change no setting\n", "")
    done = server.control("reload")
    assert (done["zones_added"], done["zones_removed"], done["zones_changed"]) == (0, 0, 0)
    assert done["restart_needed"] == []


def test_a_zone_that_was_added_is_shown_as_it_is_served(server):
    server.control("zone", "add", "new.test", "--file", server.zone_file, "notify-delay=3s")
    text = show(server, "NEW.test.")
    assert text.startswith("# in the list of added zones")
    (zone,) = yaml.safe_load(text)["zones"]
    assert zone["name"] == "new.test" and zone["notify-delay"] == "3s"
    code, _, err = ctl(server, "config", "show", "nobody.test")
    assert code == 1 and "no zone nobody.test. is configured" in err
    assert ctl(server, "config", "diff")[1] == "a reload would change no setting\n"


def test_a_difference_changes_nothing_and_comes_true_with_the_reload(server):
    server.zones = [{"name": "a.test", "file": server.zone_file, "notify-delay": "2s"},
                    *({"name": f"z{i}.test", "file": server.zone_file} for i in range(20))]
    server.extra = "  identity: told\n  cpu-affinity: true"
    server.write_config()
    told = server.control("config", "diff", "--limit", "5")
    assert told["settings"] == [
        {"key": "server.cpu-affinity", "before": "false", "after": "true", "restart": "pando-manager"},
        {"key": "server.identity", "before": "", "after": "told", "restart": ""}]
    assert told["removed"] == ["b.test."] and told["zones_added"] == 20 and len(told["added"]) == 5
    assert told["changed"] == [{"zone": "a.test.", "settings": [
        {"key": "notify-delay", "before": "0ms", "after": "2s", "restart": ""}]}]
    code, out, _ = ctl(server, "config", "diff", "--limit", "5")
    assert code == 0 and "... and 15 more zones\n" in out
    assert "server.cpu-affinity waits for a restart of pando-manager\n" in out
    assert server.ask("b.test", "SOA").answer, "nothing has changed yet"
    done = server.control("reload")
    assert (done["zones_added"], done["zones_removed"]) == (20, 1)
    assert done["restart_needed"] == ["server.cpu-affinity"]
    assert server.control("config", "diff")["settings"] == []


def test_a_broken_configuration_is_told_with_file_and_line(server):
    server.config.write_text(server.config.read_text() + "nonsense: true\n")
    line = len(server.config.read_text().splitlines())
    code, _, err = ctl(server, "config", "diff")
    assert code == 1 and f"pando.yaml:{line}: nonsense: unknown key" in err
    assert "nonsense" not in show(server), "what is in force is shown all the same"
    assert ctl(server, "config", "diff", "--limit", "0")[0] == 2


def events(server, start):
    return server.log_path.read_text()[start:]


def test_the_level_holds_for_manager_and_workers_until_a_reload(server):
    assert ctl(server, "log", "level") == (0, "info\n", "")
    assert ctl(server, "log", "level", "error") == (0, "error until a reload or a restart, then info\n", "")
    start = server.log_path.stat().st_size
    server.control("worker", "restart")  # which logs at info
    assert "info pando-manager" not in events(server, start)
    # A new worker's first lines come before it hears of the level.
    assert set(re.findall(r"info worker: (\w+)", events(server, start))) <= {"worker_running", "store_attached"}
    assert ctl(server, "log", "level", "debug")[0] == 0
    server.control("worker", "restart")
    assert "log_level_changed" in events(server, start) and "worker_started" in events(server, start)
    server.control("zone", "add", "new.test", "--file", server.zone_file)
    assert server.control("log", "level") == {"level": "debug", "configured": "info"}, "no reload has taken place"
    server.control("reload")
    assert server.control("log", "level") == {"level": "info", "configured": "info"}
    code, _, err = ctl(server, "log", "level", "loud")
    assert code == 1 and "level 'loud' is none of trace, debug, info, warning, error, off" in err
