"""Records of the journal in words: by the manager, and from files without one."""

import shutil

import dns.query
import dns.update
import pytest

from test_records import ctl

ZONE = "printed.test"


@pytest.fixture
def server(pando, tmp_path):
    file = tmp_path / "zone"
    file.write_text("$TTL 300\n@ SOA ns1 admin 10 3600 600 864000 60\n@ NS ns1\nns1 A 192.0.2.1\n")
    made = pando([{"name": name, "file": str(file), "allow-update": [{"address": "127.0.0.1"}]}
                  for name in (ZONE, "other.test")])
    made.start(ZONE)
    for zone, address in ((ZONE, "192.0.2.7"), ("other.test", "192.0.2.8"), (ZONE, "192.0.2.9")):
        update = dns.update.Update(zone)
        update.replace("www", 600, "A", address)
        assert dns.query.tcp(update, "127.0.0.1", port=made.port, timeout=30).rcode() == 0
    return made


def changesets(result):
    return [(row["zone"], row["from"], row["to"]) for row in result["records"] if row["kind"] == "changeset"]


def test_the_manager_prints_its_journal(server):
    result = server.control("journal", "print")
    assert changesets(result) == [(f"{ZONE}.", 10, 11), ("other.test.", 10, 11), (f"{ZONE}.", 11, 12)]
    assert result["damage"] == [] and result["next"] == 0
    last = result["records"][-1]
    assert {"owner": f"www.{ZONE}.", "ttl": 600, "type": "A", "rdata": "192.0.2.9"} in last["added"]
    assert {"owner": f"www.{ZONE}.", "ttl": 600, "type": "A", "rdata": "192.0.2.7"} in last["removed"]
    of_zone = server.control("journal", "print", "other.test")
    assert changesets(of_zone) == [("other.test.", 10, 11)]
    assert {row["zone"] for row in of_zone["records"]} == {"other.test."}
    code, out, err = ctl(server, "journal", "print", ZONE, "--from", str(last["position"]))
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == f"{last['position']} {ZONE}. changeset 11 -> 12 by 127.0.0.1"
    assert f"  + www.{ZONE}. 600 IN A 192.0.2.9" in out.splitlines()
    code, out, _ = ctl(server, "journal", "print", "--limit", "1")
    assert code == 0 and out.splitlines()[-1].startswith("more: --from ")


def test_files_are_printed_without_a_manager_and_stay_as_they_are(server, tmp_path):
    folder = server.folder / "journal"
    code, _, err = ctl(server, "journal", "print", "--file", str(folder))
    assert code == 1 and "a manager works in" in err
    whole = server.control("journal", "print")
    server.stop()
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()}
    assert server.control("journal", "print", "--file", str(folder))["records"] == whole["records"]
    code, _, err = ctl(server, "journal", "print")
    assert code == 3 or "control.sock" in err, "nobody answers"
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    segment = max((path for path in copy.glob("*.journal") if b"www" in path.read_bytes()), key=lambda p: p.name)
    data = bytearray(segment.read_bytes())
    data[data.index(b"www")] ^= 0xFF  # in the first update of the zone
    segment.write_bytes(data)
    code, out, err = ctl(server, "journal", "print", "--file", str(copy))
    assert code == 1 and "missing" in err, f"{out}{err}"
    assert f"{ZONE}. changeset 11 -> 12 by 127.0.0.1" in out, "what is sound behind the damage is printed"
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in folder.iterdir()} == before


@pytest.mark.parametrize("words, reason", [
    (("nobody..test",), "label"), (("--file", "/nowhere"), "/nowhere"), (("--file", "/etc/passwd"), "/etc/passwd")])
def test_what_is_no_zone_and_no_journal_is_refused(server, words, reason):
    code, _, err = ctl(server, "journal", "print", *words)
    assert code == 1 and reason in err, err
