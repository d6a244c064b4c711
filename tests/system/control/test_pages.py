"""Pages of the documents, with the commands that people copy: each is run in the order of its page, and prints what the
page says (pages.py). The page about a day's work has a test of its own, and so has the one about backups."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

import pages
import servers

SECRET = "cGFuZG8gdGVzdCBrZXk="
ZONE = """$ORIGIN example.org.
$TTL 3600
@    SOA  ns1 hostmaster 1 3600 600 604800 300
     NS   ns1
     NS   ns2
ns1  A    192.0.2.1
ns2  A    192.0.2.2
www  A    192.0.2.80
"""
# Of a server that is started by whoever runs the tests: root would become the user `pando`.
OWN = ("user: '{0}', worker-user: '{0}', control-group: '{1}'".format(os.getuid() or "root", os.getgid() or "root"))


@pytest.fixture
def shell(tmp_path):
    """Makes a shell that is closed at the end, after all that it has started."""
    made, stores = [], []

    def make(here=(), tools=(), store=None, folder=None):
        """`tools`: (name of a program, line of a script that stands for it)."""
        programs = tmp_path / "bin"
        programs.mkdir()
        for name, line in tools:
            (programs / name).write_text(f"#!/bin/sh\n{line}\n")
            (programs / name).chmod(0o755)
        if store:
            stores.append(store)
        made.append(pages.Shell(folder or tmp_path / "folder", here, [programs, servers.build_folder()]))
        return made[-1]

    yield make
    for one in made:
        one.type("jobs -p | xargs -r kill 2>/dev/null; wait")
        one.close()
    for store in stores:
        shutil.rmtree(store, ignore_errors=True)


def tools_of(server):
    """pandoctl and dig of a page whose server has the default paths and port."""
    return [("pandoctl", f'exec {servers.build_folder()}/pandoctl --config {server.config} "$@"'),
            ("dig", f'exec {shutil.which("dig")} -p {server.port} "$@"')]


def test_the_tutorial(shell, tmp_path):
    store = pathlib.Path(f"/dev/shm/pando-page-{os.getpid()}")
    ports = servers.free_port(), servers.free_port()
    here = [("/dev/shm/pando-tutorial", str(store)), ("/tmp/pando-tutorial", str(tmp_path / "t")),
            ("$PWD/build/run", str(servers.build_folder())), ("5301", str(ports[0])), ("5302", str(ports[1])),
            ("run-directory: run,", f"run-directory: run, {OWN},")]
    typed = shell(here, store=store)
    try:
        pages.follow(typed, pages.commands("docs/tutorial.md"),
                     codes={"pandoctl -c primary/pando.yaml status": 3})
    finally:
        for log in (tmp_path / "t").glob("*/log"):
            print(log, log.read_text()[-4000:])
    assert not store.exists() and not (tmp_path / "t").exists(), "the page leaves nothing"


def test_the_tour_of_the_readme(shell):
    """As scripts/run would have it, which builds the programs."""
    tree = pathlib.Path(tempfile.mkdtemp(prefix="pando-tour-"))  # paths of sockets are short
    shutil.copytree(servers.SOURCE / "config/zones", tree / "config/zones")
    store, port, http = pathlib.Path(f"/dev/shm/pando-page-{os.getpid()}"), servers.free_port(), servers.free_port()
    store.mkdir()
    (tree / "build/example").mkdir(parents=True)
    (tree / "build/example/store").symlink_to(store)
    configuration = (servers.SOURCE / "config/pando.yaml").read_text().replace("5300", str(port)).replace("8053", str(http))
    if os.getuid() != 0:
        configuration = configuration.replace(": root ", f": '{os.getuid()}' ").replace("control-group: root\n", f"control-group: '{os.getgid()}'\n")
    (tree / "config/pando.yaml").write_text(configuration)
    (tree / "config/pando.yaml").chmod(0o600)
    typed = shell([("5300", str(port)), ("build/run/", f"{servers.build_folder()}/")], [("ninja", "exit 0")], store, tree)
    typed.type("pando-manager --config config/pando.yaml 2>log &")
    typed.type("build/run/pandoctl --config config/pando.yaml ready --zones --wait 100")
    found = pages.commands("README.md")
    assert found[-1].text.startswith("build/run/pando-http ")
    pages.follow(typed, found[:-1], strict=False)
    typed.type(found[-1].text + " 2>http.log &")
    page = f"curl --silent --fail --retry 100 --retry-connrefused --retry-delay 1 http://127.0.0.1:{http}"
    assert typed.type(page + "/")[0][0].startswith("<!doctype html>")
    assert "signed3.example" in typed.type(page + "/page/zones")[0][0], (tree / "http.log").read_text()
    assert typed.type("grep -c store_not_shared log")[0] == ["0"], (tree / "log").read_text()
    typed.type("pandoctl stop")
    shutil.rmtree(tree)


def test_programs_of_a_page_are_built_by_it():
    """A page that starts build/run/PROGRAM has it built, by scripts/run or by a command of its own."""
    built = set(re.search(r"^ninja -C build/run .*?((?: pando\S*)+)$", (servers.SOURCE / "scripts/run").read_text(), re.M)[1].split())
    assert built >= {"pando-manager", "pandoctl"}
    documents = [servers.SOURCE / "README.md", *(servers.SOURCE / "docs").rglob("*.md")]
    for path in documents:
        text = path.read_text()
        here = built | set(re.findall(r"ninja -C build/run (\S+)", text))
        assert set(re.findall(r"build/run/([a-z-]+)", text)) <= here, path


def changed(path, old, new):
    text = path.read_text()
    assert old in text, (path, old)
    path.write_text(text.replace(old, new))


@pytest.mark.skipif(shutil.which("dnssec-keygen") is None, reason="needs bind9-utils")
def test_signed_zones(served, shell):
    """The keys of the page sign its zone; a signature is broken; an update brings what a signer has changed."""
    server, folder = served([], keys=UPDATED)
    typed = shell([*here_of(server), ("echo server 127.0.0.1;", f"echo server 127.0.0.1 {server.port};")], tools_of(server))
    # The first four are about zones that the server signs: dnssec/test_signing_stages.py.
    made, broken, ours, status, signed = (
        lambda found: (found[:4], found[4], found[5:8], found[8], found[9:]))(pages.commands("docs/howto/dnssec.md")[4:])
    pages.follow(typed, ours)
    assert " DNSKEY 257 3 13 " in (folder / "example.org.signed").read_text()
    pages.follow(typed, made)
    good = (folder / "example.org.signed").read_text()
    server.zones = [{"name": "example.org", "file": str(folder / "example.org.signed"),
                     **{rule: [{"key": "update-key"}] for rule in ("allow-update", "allow-transfer")}}]
    server.write_config()
    typed.type("pandoctl reload")
    # A new version of the zone, by the update of the page.
    changed(folder / "example.org.zone", "192.0.2.80\n", "192.0.2.80\nmail A 192.0.2.25\n")
    serial = server.serial("example.org")
    (folder / "next.zone").write_text((folder / "example.org.zone").read_text().replace("hostmaster 1 ", f"hostmaster {serial + 1} "))
    typed.type(f"KEY=hmac-sha256:update-key:{SECRET}")
    pages.follow(typed, signed, strict=False)
    assert server.serial("example.org") == serial + 1 and server.ask("mail.example.org").answer
    # The A record of www without its signature's consent.
    (folder / "example.org.signed").write_text(re.sub(r"192\.0\.2\.80", "192.0.2.99", good))
    key = re.search(r"RRSIG\s+A 13 .*?(\d+) example\.org\.", good, re.S)[1]
    numbers = [(re.compile(r"\b(4711|%s)\b" % key), "KEY"), *pages.VARYING]
    pages.follow(typed, [broken], numbers, codes={"pandoctl zone check": 1})
    zones, server.zones = server.zones, []
    server.write_config()
    typed.type("pandoctl reload; pandoctl zone purge example.org")
    server.zones = zones
    server.write_config()
    typed.type("pandoctl reload")
    pages.follow(typed, [pages.Command("", "sleep 1", []), status], numbers, codes={"pandoctl zone status": 1})


@pytest.fixture
def served(pando, tmp_path):
    """A server with example.org, for pages that begin with one."""
    def make(zones=(), text=ZONE, **options):
        folder = tmp_path / "folder"
        folder.mkdir(exist_ok=True)
        (folder / "example.org.zone").write_text(text)
        server = pando(list(zones), workers=1, **options)
        server.start(zones[0]["name"] if zones else None)
        return server, folder
    return make


def here_of(server):
    return [("server 192.0.2.1\n", f"server 127.0.0.1 {server.port}\n"), ("server 127.0.0.1;", f"server 127.0.0.1 {server.port};"),
            ("hmac-sha256:update-key:SECRET", f"hmac-sha256:update-key:{SECRET}")]


UPDATED = [{"name": "update-key", "algorithm": "hmac-sha256", "secret": SECRET}]


def test_dynamic_updates(served, shell):
    server, folder = served([], keys=UPDATED)
    server.zones = [{"name": "example.org", "file": str(folder / "example.org.zone"), "allow-update": [{"key": "update-key"}]}]
    server.write_config()
    typed = shell(here_of(server), tools_of(server))
    typed.type("pandoctl reload")
    found = [command for command in pages.commands("docs/howto/dynamic-updates.md") if not command.text.startswith("nsupdate -l")]
    pages.follow(typed, found)
    assert server.ask("mail.example.org").answer and server.ask("www.example.org").answer, "an update, and a rollback"


def test_a_session_key(pando, tmp_path):
    """`nsupdate -l` with the key that the manager makes. The page's lines are typed at its prompt."""
    page = (servers.SOURCE / "docs/howto/dynamic-updates.md").read_text()
    block = re.search(r"^# (nsupdate -l .*)\n((?:> .*\n)+)", page, re.M)
    key = tmp_path / "session.key"
    (tmp_path / "zone").write_text(ZONE)
    server = pando([{"name": "example.org", "file": str(tmp_path / "zone"), "allow-update": [{"key": "local-ddns"}]}],
                   keys=[{"name": "local-ddns", "session-file": str(key)}], workers=1)
    # nsupdate -l asks ::1 first, as the page says.
    changed(server.config, f"[127.0.0.1@{server.port}]", f"[127.0.0.1@{server.port}, '::1@{server.port}']")
    server.start("example.org")
    command = block[1].replace("/run/pando/session.key", str(key)) + f" -p {server.port}"
    done = subprocess.run(command.split(), input=block[2].replace("> ", ""), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0 and server.ask("mail.example.org").answer, done.stderr


def test_keys(served, shell, tmp_path):
    """The secret of the page's file is the one by which updates are signed."""
    page = (servers.SOURCE / "docs/howto/keys.md").read_text()
    make = re.search(r"^```\n(openssl rand .*?)\n```$", page, re.M)[1]
    section = re.search(r"^```yaml\n(.*?)^```$", page, re.M | re.S)[1]
    key = tmp_path / "update.key"
    server, folder = served([])
    typed = shell([("/etc/pando/update.key", str(key)), ("-g pando", f"-g {os.getgid()}"),
                   ("file: example.org.zone", f"file: {folder}/example.org.zone")], tools_of(server))
    assert typed.type(make) == ([], 0)
    assert key.stat().st_mode & 0o777 == 0o640 and len(key.read_text()) == 45
    typed.type(f"cat >> {server.config} <<'EOF'\n{section}EOF")
    assert typed.type("pandoctl config check")[1] == 0
    assert "1 added" in " ".join(typed.type("pandoctl reload")[0]) or server.ask("www.example.org").answer
    update = f"nsupdate -y hmac-sha256:update-key:$(cat {key}) <<'EOF'\nserver 127.0.0.1 {server.port}\nzone example.org\n" \
             "update add mail.example.org 300 A 192.0.2.25\nsend\nEOF"
    assert typed.type(update) == ([], 0)
    assert server.ask("mail.example.org").answer
    found = re.search(r"`(pandoctl zone configure example\.org allow-update .*?)`", page)[1]
    (folder / "run-time.zone").write_text(ZONE.replace("example.org", "example.net"))
    typed.type(f"pandoctl zone add example.net --file {folder}/run-time.zone")
    assert typed.type(found.replace("example.org", "example.net")) == (["1 zone configured"], 0)


def test_zones_at_run_time(served, shell, tmp_path):
    server, folder = served([], keys=[{"name": "panel", "algorithm": "hmac-sha256", "secret": SECRET}],
                            remotes=[{"name": "ns2", "address": ["192.0.2.2"]}],
                            extra="")
    section = re.search(r"^templates:\n(?:  .*\n)+", (servers.SOURCE / "docs/howto/zones-at-run-time.md").read_text(), re.M)[0]
    server.config.write_text(server.config.read_text() + section)
    zones = tmp_path / "zones"
    zones.mkdir()
    for name in ("example.org", "a", "b"):
        (zones / f"{name}.zone").write_text("$TTL 3600\n@ SOA ns1.example.net. admin.example.net. 1 3600 600 604800 300\n"
                                            "@ NS ns1.example.net.\n" if name == "example.org" else ZONE.replace("$ORIGIN example.org.\n", ""))
    typed = shell([("/srv/zones", str(zones))], tools_of(server))
    typed.type("pandoctl reload")
    pages.follow(typed, pages.commands("docs/howto/zones-at-run-time.md"))
    assert typed.type("pandoctl zone purge example.org")[1] == 1, "as the page says"


def test_catalog_zones(served, shell, pando, tmp_path):
    """The producer of the page and its consumer, each with the page's configuration."""
    page = (servers.SOURCE / "docs/howto/catalog-zones.md").read_text()
    consumer_section, producer_section = (
        re.search(r"^```yaml\n(.*?)^```$", pages.section_of(page, heading), re.M | re.S)[1]
        for heading in ("Consume a catalog", "Produce a catalog"))
    producer, folder = served([])
    consumer = pando([], workers=1, keys=[{"name": "transfer-key", "algorithm": "hmac-sha256", "secret": SECRET}])
    for name in ("customer.example", "other.example"):
        (folder / f"{name}.zone").write_text(ZONE.replace("$ORIGIN example.org.\n", ""))

    def add(server, text, pairs):
        for page_text, here in pairs:
            assert page_text in text, page_text
            text = text.replace(page_text, here)
        server.config.write_text(server.config.read_text() + text)

    add(producer, producer_section, [("file: ", f"file: {folder}/"), ("address: [192.0.2.2]", f"address: [127.0.0.1@{consumer.port}]"),
                                     ("allow-transfer: [192.0.2.2]", "allow-transfer: [127.0.0.1]")])
    add(consumer, consumer_section, [("[192.0.2.1], key: transfer-key", f"[127.0.0.1@{producer.port}]")])
    typed = shell(tools=tools_of(producer))
    assert typed.type("pandoctl reload")[1] == 0
    consumer.start()
    servers.wait_until("the consumer has the members", lambda: consumer.serial("other.example") == 1, 100)
    pages.follow(typed, pages.commands("docs/howto/catalog-zones.md", "Produce a catalog"), strict=False)
