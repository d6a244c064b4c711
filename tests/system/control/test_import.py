"""Configurations of other servers as ours: what the importer writes passes the check and serves the same answers."""

import json
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

import dns.rcode
import dns.tsigkeyring
import pytest

import compare
import servers

ROOT = pathlib.Path(__file__).resolve().parents[3]
ZONES = ["example.com", "example.net", "2.0.192.in-addr.arpa", "signed.example"]
SECRET = "MTIzNDU2Nzg5MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTI="


def pandoctl(*words):
    return subprocess.run([str(servers.build_folder() / "pandoctl"), *map(str, words)], capture_output=True, text=True,
                          timeout=120, stdin=subprocess.DEVNULL)


def check(config):
    return pandoctl("--config", config, "config", "check")


class ImportedPando(servers.Pando):
    """A server whose configuration is an imported one, but for its own ports and places."""

    def __init__(self, folder, text):
        self.text = text
        super().__init__(folder, [])

    def write_config(self):
        super().write_config()
        sections = re.sub(r"(?m)^server:\n(?:  .*\n)*", "", self.text)
        self.config.write_text(self.config.read_text() + sections)


@pytest.fixture
def bind(tmp_path):
    zones = {}
    for zone in ZONES:
        shutil.copy(ROOT / f"config/zones/{zone}.zone", tmp_path / f"{zone}.zone")
        zones[zone] = f'type primary; file "{tmp_path}/{zone}.zone"; allow-transfer {{ peers; }};'
    server = servers.Bind(tmp_path / "bind", zones, keys=f"""
key "xfr.example" {{ algorithm hmac-sha256; secret "{SECRET}"; }};
acl peers {{ !{{ !127.0.0.0/8; any; }}; key xfr.example; }};
zone "." {{ type hint; file "/usr/share/dns/root.hints"; }};
""")
    yield server
    server.stop()


def questions_of(zone):
    """Each owner of the zone with each type, and names that do not exist. Not CNAME loops: BIND says SERVFAIL there."""
    types = ["A", "AAAA", "MX", "NS", "SOA", "TXT", "CNAME"]
    names = {zone, f"nothing.{zone}", f"a.b.c.{zone}"}
    for line in (ROOT / f"config/zones/{zone}.zone").read_text().splitlines():
        owner = line.split()[0] if line and not line[0].isspace() else ""
        if re.fullmatch(r"[\w*-][\w*.-]*", owner):
            names.add(owner.rstrip(".") if owner.endswith(".") else f"{owner}.{zone}")
    return [(name, rdtype) for name in sorted(names) if "loop" not in name for rdtype in types]


def test_a_server_of_an_imported_named_conf_answers_as_bind(bind, tmp_path):
    bind.start(ZONES[0])
    folder = tmp_path / "pando"
    folder.mkdir()
    made = pandoctl("import", bind.folder / "named.conf", "--to", folder / "imported.yaml")
    assert made.returncode == 0, made.stderr
    assert made.stderr.startswith("Clients get the same answers:\n")
    assert made.stdout == f"{folder}/imported.yaml: 4 zones, 1 key, 0 remotes\n"
    assert "zone .: zones of type hint are not served" in made.stderr
    assert oct((folder / "xfr.example.key").stat().st_mode)[-3:] == "600"
    assert check(folder / "imported.yaml").stdout.endswith(": ok, 4 zones\n")
    text = (folder / "imported.yaml").read_text()
    assert f"- 127.0.0.1@{bind.port}\n" in text and SECRET not in text
    ours = ImportedPando(folder, text)
    try:
        ours.start(ZONES[-1])
        compared = compare.Comparison(ours, [bind])
        for zone in ZONES:
            compared.run(questions_of(zone), dnssec=False)
            compared.run(questions_of(zone), dnssec=True)
        assert compared.asked > 200 and not compared.unanswered
        assert not compared.found, compared.summary()
        ring = dns.tsigkeyring.from_text({"xfr.example": SECRET})
        assert ours.records(ZONES[0], keyring=ring) == bind.records(ZONES[0], keyring=ring)
        with pytest.raises(Exception):
            ours.records(ZONES[0])
    finally:
        ours.clean()


def test_a_zone_that_bind_signs_is_not_served_unsigned(tmp_path):
    """Behind a DS record that would be an outage. The other zone of the same server is taken."""
    zones = {}
    for zone in ZONES[:2]:
        shutil.copy(ROOT / f"config/zones/{zone}.zone", tmp_path / f"{zone}.zone")
        zones[zone] = f'type primary; file "{tmp_path}/{zone}.zone"; allow-transfer {{ 127.0.0.1; }};'
    zones[ZONES[0]] += " dnssec-policy default; inline-signing yes;"
    server = servers.Bind(tmp_path / "bind", zones)
    folder = tmp_path / "pando"
    folder.mkdir()
    try:
        server.start(ZONES[1])
        made = pandoctl("import", server.folder / "named.conf", "--to", folder / "imported.yaml")
        assert made.returncode == 3, made.stderr
        first, second, *_ = made.stderr.splitlines()
        assert first == "Clients get other answers than before:"
        assert f"zone {ZONES[0]}: BIND signs it (dnssec-policy default): it is not served before" in second, made.stderr
        assert made.stderr.endswith(f"pandoctl dnssec import {ZONES[0]}. {server.folder}/K{ZONES[0]}.+*.private\n")
        ours = ImportedPando(folder, (folder / "imported.yaml").read_text())
        try:
            ours.start(ZONES[1])
            assert ours.ask(ZONES[0], "SOA").rcode() == dns.rcode.SERVFAIL
            assert server.ask(ZONES[0], "DNSKEY").answer, "BIND signs it"
            ours.control("compare", "--with", f"127.0.0.1@{server.port}", ZONES[1])
        finally:
            ours.clean()
    finally:
        server.stop()


def test_zones_that_nsd_control_added_are_served_as_nsd_does(tmp_path):
    """NSD has them in its zone list, with the pattern that says how."""
    for zone in ZONES[:2]:
        shutil.copy(ROOT / f"config/zones/{zone}.zone", tmp_path / f"{zone}.zone")
    server = servers.Nsd(tmp_path / "nsd", {ZONES[0]: tmp_path / f"{ZONES[0]}.zone"})
    config = server.folder / "nsd.conf"
    pattern = f'pattern:\n  name: served\n  zonefile: "{tmp_path}/%s.zone"\n  provide-xfr: 127.0.0.1 NOKEY\n'
    config.write_text(config.read_text() + pattern)
    (server.folder / "zone.list").write_text(f"# NSD zone list\n# name pattern\nadd {ZONES[1]} served\n")
    folder = tmp_path / "pando"
    folder.mkdir()
    try:
        server.start(ZONES[1])
        made = pandoctl("import", config, "--to", folder / "imported.yaml")
        assert made.returncode in (0, 3) and "2 zones" in made.stdout, made.stderr
        ours = ImportedPando(folder, (folder / "imported.yaml").read_text())
        try:
            ours.start(ZONES[1])
            ours.control("compare", "--with", f"127.0.0.1@{server.port}", ZONES[1])
        finally:
            ours.clean()
    finally:
        server.stop()


CONFIGURATIONS = {
    "nsd.conf": f'key:\n name: k\n algorithm: hmac-sha256\n secret: "{SECRET}"\n'
                "zone:\n name: a.example\n zonefile: /z/a\n provide-xfr: 192.0.2.1 k\n",
    "knot.conf": f"key:\n  - id: k\n    algorithm: hmac-sha256\n    secret: {SECRET}\n"
                 "zone:\n  - domain: a.example\n    file: /z/a\n",
    "pdns.conf": "launch=bind\nbind-config=zones\n",
}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_an_imported_configuration_passes_the_check(name, tmp_path):
    (tmp_path / name).write_text(CONFIGURATIONS[name])
    (tmp_path / "zones").write_text('zone a.example { type primary; file "/z/a"; };\n')
    made = pandoctl("import", tmp_path / name, "--with-secrets")
    assert made.returncode == 0, made.stderr
    config = tmp_path / "pando.yaml"
    config.touch(mode=0o600)
    config.write_text(made.stdout)
    checked = check(config)
    assert checked.returncode == 0 and checked.stdout.endswith(": ok, 1 zone\n"), checked.stderr
    told = json.loads(pandoctl("--json", "import", tmp_path / name).stdout)
    assert told["from"] == name.removesuffix(".conf") and told["zones"] == 1
    assert all(set(line) == {"file", "line", "statement", "reason", "changes_answers"} for line in told["omissions"])


def test_a_file_that_is_there_is_not_replaced(tmp_path):
    (tmp_path / "nsd.conf").write_text(CONFIGURATIONS["nsd.conf"])
    (tmp_path / "pando.yaml").write_text("precious")
    made = pandoctl("import", tmp_path / "nsd.conf", "--to", tmp_path / "pando.yaml", "--with-secrets")
    assert made.returncode == 1 and "is there already" in made.stderr
    assert (tmp_path / "pando.yaml").read_text() == "precious"


def test_a_folder_is_no_name_of_a_result(tmp_path):
    (tmp_path / "nsd.conf").write_text(CONFIGURATIONS["nsd.conf"])
    for to in (tmp_path, f"{tmp_path}/", f"{tmp_path}/missing/"):
        made = pandoctl("import", tmp_path / "nsd.conf", "--to", to)
        assert made.returncode == 1 and f"is a folder: --to names the new configuration, such as {tmp_path}/" in made.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["nsd.conf"]


def test_a_fault_is_one_line_with_its_place(tmp_path):
    (tmp_path / "named.conf").write_text("options {\n")
    made = pandoctl("import", tmp_path / "named.conf")
    assert made.returncode == 1 and made.stdout == ""
    assert made.stderr == f"pandoctl: {tmp_path}/named.conf:1: a block that begins here has no end\n"
    (tmp_path / "other").write_text("hello\n")
    made = pandoctl("import", tmp_path / "other")
    assert made.returncode == 1 and "use --from" in made.stderr
    assert pandoctl("import", tmp_path / "missing").returncode == 1


LISTING = """\
one.test
two.test
gone.test
$ORIGIN .
www.one.test\t300\tIN\tA\t192.0.2.80
one.test\t300\tIN\tSOA\tns.one.test admin.one.test 7 3600 600 86400 300
one.test\t300\tIN\tNS\tns.one.test.
ns.one.test\t300\tIN\tA\t192.0.2.1
one.test\t300\tIN\tALIAS\twww.elsewhere.test.
text.one.test\t300\tIN\tTXT\t"a; \\"b\\"" "c"
$ORIGIN .
two.test\t300\tIN\tSOA\tns.one.test admin.one.test 8 3600 600 86400 300
two.test\t300\tIN\tNS\tns.one.test.
$ORIGIN .
bad.test\t300\tIN\tSOA\tns.one.test admin.one.test 9 3600 600 86400 300
www.bad.test\t300\tIN\tA\t192.0.2.999
"""


def test_a_listing_of_powerdns_is_served(tmp_path):
    listing, config = tmp_path / "listing.txt", tmp_path / "made" / "imported.yaml"
    listing.write_text(LISTING)
    config.parent.mkdir()
    assert pandoctl("import", listing).returncode == 1, "zone files need a place"
    done = pandoctl("import", listing, "--to", config)
    assert done.returncode == 3, done.stderr
    assert done.stdout == f"{config}: 2 zones, 0 keys, 0 remotes\n"
    first, *lines = done.stderr.splitlines()
    assert first == "Clients get other answers than before:"
    places = [re.match(r".*listing.txt:(\d+): ", line)[1] for line in lines]
    assert places == ["9", "16", "15", "3", "1"], done.stderr
    assert check(config).returncode == 0
    assert sorted(path.name for path in (config.parent / "zones").iterdir()) == ["one.test.zone", "two.test.zone"]
    again = pandoctl("import", listing, "--to", config.with_name("other.yaml"))
    assert again.returncode == 1 and "there already" in again.stderr and not config.with_name("other.yaml").exists()
    text = re.sub("file: zones/", f"file: {config.parent}/zones/", config.read_text())
    server = ImportedPando(tmp_path / "pando", text)
    try:
        server.start("one.test")
        assert server.ask("www.one.test").answer[0][0].address == "192.0.2.80"
        assert server.ask("text.one.test", "TXT").answer[0][0].strings == (b'a; "b"', b"c")
        assert server.ask("two.test", "SOA").answer[0][0].serial == 8
    finally:
        server.clean()


# The tables of PowerDNS's own schema for SQLite that an import reads.
SCHEMA = """
CREATE TABLE domains (id INTEGER PRIMARY KEY, name VARCHAR(255) NOT NULL COLLATE NOCASE, master VARCHAR(65535) DEFAULT NULL,
  last_check INTEGER DEFAULT NULL, type VARCHAR(8) NOT NULL, notified_serial INTEGER DEFAULT NULL, account VARCHAR(40));
CREATE TABLE records (id INTEGER PRIMARY KEY, domain_id INTEGER DEFAULT NULL, name VARCHAR(255), type VARCHAR(10),
  content VARCHAR(65535), ttl INTEGER, prio INTEGER, disabled BOOLEAN DEFAULT 0, ordername VARCHAR(255), auth BOOL DEFAULT 1);
CREATE TABLE cryptokeys (id INTEGER PRIMARY KEY, domain_id INT NOT NULL, flags INT, active BOOL, published BOOL, content TEXT);
"""
KEY = "v=DKIM1; k=rsa; p=" + "A" * 300


def test_a_dump_of_powerdns_is_served(tmp_path):
    database = sqlite3.connect(":memory:")
    database.executescript(SCHEMA)
    database.executemany("INSERT INTO domains (id, name, type) VALUES (?, ?, 'NATIVE')", [(1, "one.test"), (2, "two.test")])
    rows = [("one.test", "SOA", "ns1.one.test host.one.test 7 1 2 3 4", 60, None), ("one.test", "NS", "ns1.one.test", 60, None),
            ("ns1.one.test", "A", "192.0.2.1", 60, None), ("one.test", "MX", "mail.one.test", 60, 10),
            ("key.one.test", "TXT", f'"{KEY}"', 60, None), ("text.one.test", "TXT", '"a; \\"b\\""', 60, None)]
    database.executemany("INSERT INTO records (domain_id, name, type, content, ttl, prio) VALUES (1, ?, ?, ?, ?, ?)", rows)
    database.execute("INSERT INTO records (domain_id, name, type, content, ttl) VALUES (2, 'two.test', 'SOA', '. . 8 1 2 3 4', 60)")
    database.execute("INSERT INTO cryptokeys VALUES (1, 2, 257, 1, 1, 'Private-key-format: v1.2\nAlgorithm: 13\n')")
    dump, config = tmp_path / "dump.sql", tmp_path / "made" / "imported.yaml"
    dump.write_text("\n".join(database.iterdump()) + "\n")
    config.parent.mkdir()
    done = pandoctl("import", dump, "--to", config)
    assert done.returncode == 3 and done.stdout == f"{config}: 1 zone, 0 keys, 0 remotes\n", done.stderr
    assert done.stderr.count("\n") == 2 and "zone two.test: is left out: PowerDNS signs it" in done.stderr
    assert check(config).returncode == 0
    text = re.sub("file: zones/", f"file: {config.parent}/zones/", config.read_text())
    server = ImportedPando(tmp_path / "pando", text)
    try:
        server.start("one.test")
        assert b"".join(server.ask("key.one.test", "TXT").answer[0][0].strings) == KEY.encode()
        assert server.ask("text.one.test", "TXT").answer[0][0].strings == (b'a; "b"',)
        assert server.ask("one.test", "MX").answer[0][0].preference == 10
    finally:
        server.clean()


DUMP = f"""\
insert into domains values (1,'one.test',NULL,NULL,'NATIVE',NULL,NULL),(2,'two.test',NULL,NULL,'NATIVE',NULL,NULL);
insert into records values (1,1,'one.test','SOA','ns1.one.test a.b@one.test 7 1 2 3 4',60,NULL,0,NULL,1);
insert into records values (2,1,'one.test','TXT','"{'x' * 6000}"',60,NULL,0,NULL,1);
insert into records values (3,2,'two.test','SOA','. . 8 1 2 3 4',60,NULL,0,NULL,1);
insert into tsigkeys values (1,'transfer','hmac-sha256','{SECRET}');
"""


def names_below(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_an_import_that_is_refused_leaves_no_file(tmp_path):
    """Whichever of its files is in the way."""
    dump, folder = tmp_path / "dump.txt", tmp_path / "to"
    dump.write_text(DUMP)
    for there in ("zones/two.test.zone", "zones", "transfer.key", "pando.yaml"):
        (folder / there).parent.mkdir(parents=True)
        (folder / there).write_text("precious")
        before = names_below(folder)
        done = pandoctl("import", dump, "--to", folder / "pando.yaml")
        assert done.returncode == 1 and there in done.stderr, done.stderr
        assert names_below(folder) == before and (folder / there).read_text() == "precious"
        shutil.rmtree(folder)
    folder.mkdir()
    done = pandoctl("import", dump, "--to", folder / "pando.yaml")
    assert done.returncode == 3 and "a.b@one.test is written as a\\.b.one.test" in done.stderr, done.stderr
    assert names_below(folder) == ["pando.yaml", "transfer.key", "zones", "zones/one.test.zone", "zones/two.test.zone"]


@servers.needs_root("mounts")
def test_a_full_disk_leaves_nothing_of_an_import(tmp_path):
    """One page more for each attempt, until the disk suffices."""
    dump, small = tmp_path / "dump.txt", tmp_path / "small"
    dump.write_text(DUMP)
    small.mkdir()
    refused = 0
    for pages in range(1, 100):
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={pages * 4096}", "tmpfs", str(small)], check=True)
        try:
            done = pandoctl("import", dump, "--to", small / "pando.yaml")
            if done.returncode == 3:  # a name of a mailbox is written otherwise
                assert check(small / "pando.yaml").returncode == 0
                break
            assert "No space left on device" in done.stderr and names_below(small) == [], done.stderr
            refused += 1
        finally:
            subprocess.run(["umount", str(small)], check=True)
    assert done.returncode == 3 and refused >= 4, "at least one for each file"


def test_the_folder_of_zones_may_be_elsewhere(tmp_path):
    """A link to another file system, which no file can be moved to."""
    dump, folder = tmp_path / "dump.txt", tmp_path / "to"
    dump.write_text(DUMP)
    folder.mkdir()
    elsewhere = pathlib.Path("/dev/shm") / f"pando-zones-{os.getpid()}"
    elsewhere.mkdir()
    try:
        (folder / "zones").symlink_to(elsewhere)
        assert folder.stat().st_dev != elsewhere.stat().st_dev
        done = pandoctl("import", dump, "--to", folder / "pando.yaml")
        assert done.returncode == 3 and names_below(elsewhere) == ["one.test.zone", "two.test.zone"], done.stderr
    finally:
        shutil.rmtree(elsewhere)


def git(folder, *words):
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    return subprocess.run(["git", "-C", folder, *identity, *words], capture_output=True, text=True, check=True).stdout.strip()


def try_imports(folder, build):
    return subprocess.run([ROOT / "scripts/try-imports", folder / "clones", "--list", folder / "list", "--work", folder / "work",
                           "--build", build], capture_output=True, text=True, timeout=120, stdin=subprocess.DEVNULL)


def test_the_trial_of_public_configurations_finds_a_lost_zone(tmp_path):
    clone = tmp_path / "clones/owner+name"
    (clone / "etc/bind").mkdir(parents=True)
    (clone / "etc/bind/named.conf").write_text('options { directory "/z"; };\ninclude "/etc/bind/named.conf.zones";\n')
    (clone / "etc/bind/named.conf.zones").write_text(
        '// zone "c" { type primary; };\nzone "a" { type master; file "a"; };\n'
        'zone "b" { type primary; file "b"; };\nzone "." { type hint; file "root"; };\n')
    git(clone, "init", "-q")
    git(clone, "add", ".")
    git(clone, "commit", "-q", "-m", "x")
    (tmp_path / "list").write_text(f"bind owner/name {git(clone, 'rev-parse', 'HEAD')} etc/bind/named.conf\n")
    tried = try_imports(tmp_path, servers.build_folder())
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "| `named.conf` | 1 | 0 | 0 | 1 | 3 | 2 | 0 |" in tried.stdout
    assert "named.conf: 1 repositories; zones left out: 1 type hint" in tried.stdout
    listed = (tmp_path / "list").read_text()
    (tmp_path / "list").write_text(listed.replace("bind ", "bind-refused ", 1))
    tried = try_imports(tmp_path, servers.build_folder())
    assert tried.returncode == 1 and "is not refused, unlike the list has it" in tried.stdout, tried.stdout + tried.stderr
    (tmp_path / "list").write_text(listed)
    forgetful = tmp_path / "build/pandoctl"
    forgetful.parent.mkdir()
    forgetful.write_text(f"""#!/bin/sh
{servers.build_folder()}/pandoctl "$@"
code=$?
[ $code = 0 ] || [ $code = 3 ] || exit $code
for word; do case $word in */imported.yaml) sed -i '/name: b$/,+1d' "$word";; esac; done
exit $code
""")
    forgetful.chmod(0o755)
    tried = try_imports(tmp_path, forgetful.parent)
    assert tried.returncode == 1 and "zone b has not arrived" in tried.stdout, tried.stdout + tried.stderr
    forgetful.write_text("#!/bin/sh\necho named.conf:1: a fault\nexit 1\n")
    tried = try_imports(tmp_path, forgetful.parent)
    assert tried.returncode == 1 and "is refused, unlike the list has it" in tried.stdout, tried.stdout + tried.stderr
    forgetful.write_text(f"""#!/bin/sh
test "$4" = check && exit 1
exec {servers.build_folder()}/pandoctl "$@"
""")
    tried = try_imports(tmp_path, forgetful.parent)
    assert tried.returncode == 1 and "config check:" in tried.stdout, tried.stdout + tried.stderr
