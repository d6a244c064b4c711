"""The page of pando-http: its data, what each key sees of them, and the page itself in Chromium."""

import html.parser
import json
import re
import urllib.parse

import dns.name
import dns.rcode
import pytest

import browser
import servers
from test_http import READ, ZONE, add, beside  # noqa: F401: a fixture

SECRET = "secret-of-a-customer-of-a-test"
# A name may have any octet: what is markup elsewhere is text here. These would run, as markup.
SCRIPT = "<script>document.title=1</script>.test"
IMAGE = "<img/src=x/onerror=alert`1`>'\\\".test"

needs_browser = pytest.mark.skipif(browser.program() is None, reason="needs chromium")


def read(program, path, **headers):
    status, fields, text = program.get(path, **headers)
    assert fields["Content-Type"] == "application/json", (path, fields, text)
    return status, json.loads(text)


def zones_of(program, query="", **headers):
    status, page = read(program, f"/page/zones?{query}", **headers)
    assert status == 200, page
    return page


def names_of(page):
    return [zone["name"] for zone in page["zones"]]


def zone_of(program, name, **headers):
    return read(program, f"/page/zone?name={urllib.parse.quote(name, safe='')}", **headers)


# -- Files and data ------------------------------------------------------------------------------------------------

class Addresses(html.parser.HTMLParser):
    """Addresses that a document refers to, and code that stands in it."""

    def __init__(self):
        super().__init__()
        self.found, self.code = [], []

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("src", "href", "action", "srcset"):
                self.found.append(value)
            if name.startswith("on") or name == "style":
                self.code.append((tag, name))
        if tag == "style" or (tag == "script" and not dict(attrs).get("src")):
            self.code.append((tag, ""))


def test_the_page_is_self_contained_and_needs_no_key(beside):
    _, program = beside(section=f"keys: [{{name: a, secret: {READ}}}]")
    for path, kind in (("/", "text/html"), ("/page.css", "text/css"), ("/page.js", "text/javascript")):
        status, fields, text = program.get(path)
        assert status == 200 and fields["Content-Type"] == f"{kind}; charset=utf-8"
        policy = dict(part.strip().split(" ", 1) for part in fields["Content-Security-Policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
        assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
        assert fields["X-Content-Type-Options"] == "nosniff" and fields["Referrer-Policy"] == "no-referrer"
        assert fields["Cache-Control"] == "no-store"
        assert READ not in text
        length = int(fields["Content-Length"])
        status, fields, text = program.get(path, method="HEAD")
        assert status == 200 and text == "" and int(fields["Content-Length"]) == length
        status, fields, _ = program.get(path, method="POST")
        assert status == 405 and fields["Allow"] == "GET, HEAD"
    page = Addresses()
    page.feed(program.get("/")[2])
    assert all(one.startswith(("/", "#", "data:")) and not one.startswith("//") for one in page.found), page.found
    assert not page.code, "the policy would not run it"


def test_data_need_a_key_that_reads(beside):
    section = (f"keys: [{{name: a, secret: {READ}}}, {{name: customer, secret: {SECRET}, role: write, "
               "zones: [b.test, '*.c.test']}]")
    _, program = beside(zones=("a.test", "b.test", "c.test", "d.c.test"), section=section)
    for path in ("/page/overview", "/page/zones", "/page/zone?name=b.test", "/page/nothing"):
        assert program.get(path)[0] == 401 and program.get(path, X_API_Key="wrong")[0] == 401
    status, overview = read(program, "/page/overview", X_API_Key=READ)
    assert status == 200 and overview["whole"] and overview["store"]["zones"] == 4
    assert names_of(zones_of(program, X_API_Key=READ)) == ["a.test.", "b.test.", "c.test.", "d.c.test."]

    assert read(program, "/page/overview", X_API_Key=SECRET) == (200, {"whole": False})
    for query in ("", "search=test", "after=a.test."):
        assert names_of(zones_of(program, query, X_API_Key=SECRET)) == ["b.test.", "d.c.test."]
    assert zone_of(program, "b.test", Authorization=f"Bearer {SECRET}")[0] == 200
    assert "file" not in zone_of(program, "b.test", X_API_Key=SECRET)[1]["zone"]
    for hidden in ("a.test", "c.test", "absent.test"):
        assert zone_of(program, hidden, X_API_Key=SECRET) == (404, {"error": "Not Found"})
    assert read(program, "/page/nothing", X_API_Key=SECRET)[0] == 404
    for method in ("POST", "PUT", "DELETE"):
        assert program.get("/page/zones", method=method, X_API_Key=READ)[0] == 405


def test_numbers_are_those_of_the_server(beside):
    server, program = beside()
    before = read(program, "/page/overview")[1]
    for name in ("www", "missing", "missing"):
        server.ask(f"{name}.example.test")
    assert add(server, "new") == dns.rcode.NOERROR
    total = lambda look, key: sum(worker["counters"][key] for worker in look["workers"])
    after = servers.wait_until("a fresh look", lambda: (look := read(program, "/page/overview")[1])["at_ms"] >
                               before["at_ms"] + 500 and look)
    assert total(after, "queries_udp") - total(before, "queries_udp") == 4
    assert after["rcodes"]["NXDOMAIN"] - before["rcodes"].get("NXDOMAIN", 0) == 2
    assert sum(after["latency"]) - sum(before["latency"]) == 3
    assert after["manager"]["counters"]["updates_accepted"] == 1 and after["store"]["version"] > before["store"]["version"]
    assert len(after["workers"]) == 2 and all(worker["alive"] and worker["memory"] > 0 for worker in after["workers"])
    assert "pando.yaml" not in json.dumps(after)


def test_a_zone_has_its_history_and_snapshots(beside):
    server, program = beside()
    server.control("zone", "snapshot", "example.test", "before")
    for number in range(40):
        assert add(server, f"n{number}") == dns.rcode.NOERROR
    status, details = zone_of(program, "EXAMPLE.test")
    assert status == 200 and details["manager"] and details["zone"]["serial"] == 47
    assert details["zone"]["records"] == 44 and details["zone"]["file"].endswith("/zone")
    changes = details["changesets"]
    assert [change["to"] for change in changes] == list(range(47, 17, -1)) and details["older_changesets"] == 10
    assert all(change["from"] == change["to"] - 1 for change in changes)
    assert all((change["added"], change["removed"]) == (1, 0) for change in changes)
    theirs = server.control("zone", "history", "example.test")["changesets"]
    assert all(theirs[-1][key] == changes[0][key] for key in ("from", "to", "added", "removed")) and len(theirs) == 40
    assert [(one["label"], one["serial"], one["lost"]) for one in details["snapshots"]] == [("before", 7, "")]
    assert zone_of(program, "absent.test")[0] == 404 and zone_of(program, "a..b")[0] == 422
    assert read(program, "/page/zone")[0] == 422


def broken_zones(tmp_path):
    """A zone whose file is no zone, and one whose primary does not answer."""
    (tmp_path / "broken").write_text("@ SOA this is none\n")
    return [{"name": "broken.test", "file": str(tmp_path / "broken")},
            {"name": "stale.test", "primaries": ["nobody"]}]


def add_broken_zones(server, tmp_path):
    server.zones += broken_zones(tmp_path)
    server.remotes = [{"name": "nobody", "address": [f"127.0.0.1@{servers.free_port()}"]}]
    http = server.config.read_text().splitlines()[-1]
    server.write_config()
    server.config.write_text(server.config.read_text() + http + "\n")
    server.control("reload", check=False)


@pytest.mark.release
def test_problems_are_found_behind_more_zones_than_the_manager_lists_at_once(beside, tmp_path):
    """The manager lists 1,000 zones at a time; the zones with problems come behind three such pages. How many of these
    one request goes through is a matter of time: tests/unit/http/page/zone_rows_test.cpp."""
    count = 3500
    server, program = beside(zones=("a.test",))
    server.zones += [{"name": f"a{number:05}.test", "file": str(tmp_path / "zone")} for number in range(count)]
    add_broken_zones(server, tmp_path)

    def found():
        zones, looked, after = [], 0, ""
        while True:
            page = zones_of(program, f"problems=1&search=.test&after={after}")
            if not page["manager"]:
                return None  # it was busy, and the store's own list is none of thousands
            zones, looked, after = zones + page["zones"], looked + page["looked"], page["next"]
            if not after:
                return (zones, looked) if all(zone["problem"] for zone in zones) and len(zones) == 2 else None
    zones, looked = servers.wait_until("both reasons are known", found, 120)
    assert [zone["name"] for zone in zones] == ["broken.test.", "stale.test."]
    assert looked == count + 3


def test_zones_with_problems_are_found(beside, tmp_path):
    server, program = beside(zones=("a.test", "b.test"))
    assert names_of(zones_of(program, "problems=1")) == []
    add_broken_zones(server, tmp_path)
    with_reasons = lambda: [zone for zone in zones_of(program, "problems=1")["zones"] if zone["problem"]]
    zones = servers.wait_until("both reasons are known", lambda: len(found := with_reasons()) == 2 and found)
    assert [(zone["name"], zone["state"]) for zone in zones] == [("broken.test.", "not-loaded"), ("stale.test.", "not-loaded")]
    assert names_of(zones_of(program, "problems=1&search=ale")) == ["stale.test."]
    assert names_of(zones_of(program, "problems=1&after=broken.test.")) == ["stale.test."]
    assert zone_of(program, "stale.test")[1]["zone"]["problem"]
    server.kill()
    page = zones_of(program, "problems=1")
    assert names_of(page) == ["broken.test.", "stale.test."] and not page["manager"]
    page = zones_of(program)
    assert [zone["state"] for zone in page["zones"]] == ["ok", "ok", "not-loaded", "not-loaded"]
    details = zone_of(program, "a.test")[1]
    assert not details["manager"] and details["zone"]["serial"] == 7
    assert read(program, "/page/overview")[1]["workers"][0]["alive"]


def test_pages_and_searches_have_bounds(beside):
    zones = [f"z{number:03}.test" for number in range(120)]
    _, program = beside(zones=zones)
    found, after, requests = [], "", 0
    while True:
        page = zones_of(program, f"after={after}")
        assert len(page["zones"]) <= 50
        found += names_of(page)
        after, requests = page["next"], requests + 1
        if not after:
            break
    assert found == [zone + "." for zone in zones] and requests == 3
    assert names_of(zones_of(program, "search=Z11")) == [f"z{number}.test." for number in range(110, 120)]
    assert names_of(zones_of(program, "search=z%3F%3F9")) == [f"z{number:03}.test." for number in range(9, 120, 10)]
    assert names_of(zones_of(program, "search=absent")) == []
    assert read(program, "/page/zones?search=" + "a" * 1025)[0] == 422
    assert read(program, "/page/zones?after=a..b")[0] == 422
    assert names_of(zones_of(program, "after=zzz.test")) == []


def test_hostile_names_are_data(beside):
    _, program = beside(zones=("example.test", SCRIPT, IMAGE))
    names = names_of(zones_of(program))
    assert {dns.name.from_text(name) for name in names} == {dns.name.from_text(one) for one in ("example.test", SCRIPT, IMAGE)}
    for name in names:
        status, details = zone_of(program, name)
        assert status == 200 and details["zone"]["name"] == name
    assert names_of(zones_of(program, "search=" + urllib.parse.quote("<script>"))) == [
        name for name in names if "<script>" in name]
    status, fields, text = program.get("/page/zone?name=" + urllib.parse.quote("<b>absent</b>.test"))
    assert status == 404 and fields["X-Content-Type-Options"] == "nosniff" and "<b>" not in text


# -- The page in a browser -----------------------------------------------------------------------------------------

@pytest.fixture
def tab():
    """A tab of Chromium; nothing may go wrong in it."""
    made = browser.Browser()
    yield made
    faults = made.faults
    made.close()
    assert not faults


def address(program, fragment=""):
    return f"http://127.0.0.1:{program.port}/{fragment}"


def show(tab, program, zones):
    """Opens the page and waits for its zones, and for two looks."""
    tab.open(address(program))
    tab.wait(f"document.querySelectorAll('#zone-rows a').length === {zones}")
    tab.wait("document.querySelector('#plot-queries path')?.getAttribute('d')")


FOCUSED = "document.activeElement.innerText || document.activeElement.id"


@needs_browser
def test_people_see_numbers_and_zones(beside, tab):
    server, program = beside(zones=("a.test", "b.test", "c.test"))
    for _ in range(20):
        server.ask("www.a.test")
    show(tab, program, 3)
    assert tab.texts("#zone-rows a") == ["a.test.", "b.test.", "c.test."]
    assert tab.texts("#zone-rows td.state") == ["ok", "ok", "ok"]
    assert tab.texts("#worker-rows th") == ["0", "1"] and tab.texts("#worker-rows td.state") == ["serving"] * 2
    assert tab.texts("#state") == ["live"] and tab.texts("#notices li") == []
    assert "3 zones" in tab.texts("#versions")[0]
    labels = tab.run("[...document.querySelectorAll('svg.plot')].map(one => one.getAttribute('aria-label'))")
    assert len(labels) == 4 and all("last five minutes" in label for label in labels)
    assert re.search(r"store now [\d.]+ .iB", labels[2])
    for _ in range(100):
        server.ask("www.a.test")
    tab.wait("/highest [1-9]/.test(document.querySelector('#plot-queries svg').getAttribute('aria-label'))")
    tab.wait("/median now \\d+/.test(document.querySelector('#plot-latency svg').getAttribute('aria-label'))")
    assert tab.requests and all(one.startswith((address(program), "data:")) for one in tab.requests), tab.requests
    assert tab.run("performance.getEntriesByType('resource').length") > 2


@needs_browser
def test_hostile_names_stay_text(beside, tab):
    _, program = beside(zones=("example.test", SCRIPT, IMAGE))
    names = names_of(zones_of(program))
    show(tab, program, 3)
    assert tab.texts("#zone-rows a") == names
    assert tab.run("document.querySelectorAll('script').length") == 1
    assert tab.run("document.querySelectorAll('img, main script').length") == 0
    assert tab.run("document.title") == "Pando"
    for name in names:
        tab.open(address(program, "#zone=" + urllib.parse.quote(name, safe="")))
        tab.wait(f"document.querySelector('#zone-title').textContent === {json.dumps(name)} && "
                 "document.querySelectorAll('#zone-facts dt').length > 3")
        assert tab.run("document.title") == f"{name} – Pando"
        assert tab.run("document.querySelectorAll('img, main script').length") == 0
    tab.open(address(program, "#zone=%E0%A4%A"))  # not even text
    tab.wait("document.querySelector('#overview').checkVisibility()")
    # Even a mistake of the script could not make markup of a text.
    assert tab.run("(() => { try { document.body.innerHTML = '<b>x</b>'; } catch { return 'refused'; } })()") == "refused"
    tab.faults = [fault for fault in tab.faults if "TrustedHTML" not in fault]


@needs_browser
def test_all_is_done_by_keys(beside, tab):
    server, program = beside(zones=("a.test", "b.test", "c.test"))
    assert add(server, "new", "b.test") == dns.rcode.NOERROR
    show(tab, program, 3)
    tab.press("/")
    tab.wait("document.activeElement.id === 'search'")
    tab.type("B.te")
    tab.wait("document.querySelectorAll('#zone-rows a').length === 1")
    tab.press("Enter")
    tab.wait("document.activeElement.innerText === 'b.test.'")
    assert tab.run("getComputedStyle(document.activeElement).outlineStyle") == "solid", "the focus can be seen"
    tab.press("Enter")
    tab.wait("document.querySelectorAll('#history-rows tr').length === 1")
    assert tab.run(FOCUSED) == "b.test." and tab.texts("#history-rows td") == ["7", "8", "0", "1"]
    facts = dict(zip(tab.texts("#zone-facts dt"), tab.texts("#zone-facts dd")))
    assert facts["Serial"] == "8" and facts["State"] == "ok" and facts["Records"] == "5 at 4 names"
    tab.press("Escape")
    tab.wait("document.activeElement.innerText === 'b.test.' && document.querySelector('#overview').checkVisibility()")
    tab.press("/")
    tab.press("Escape")
    tab.wait("document.querySelectorAll('#zone-rows a').length === 3")
    tab.press("ArrowDown")
    tab.press("ArrowDown")
    assert tab.run(FOCUSED) == "b.test."
    tab.press("ArrowUp")
    assert tab.run(FOCUSED) == "a.test."
    tab.run("document.querySelector('.skip').focus()")
    seen = set()
    for _ in range(16):
        tab.press("Tab")
        seen.add(tab.run("document.activeElement.id || document.activeElement.parentElement.id || "
                         "document.activeElement.innerText"))
    assert {"plot-queries", "plot-versions", "search", "problems", "a.test.", "c.test."} <= seen
    tab.run("document.querySelector('#plot-queries svg').focus()")
    tab.press("ArrowLeft")
    assert tab.texts("#spoken")[0].startswith("Requests per second")


@needs_browser
def test_the_key_is_asked_for_and_forgotten_with_the_tab(beside, tab):
    section = f"keys: [{{name: a, secret: {READ}}}, {{name: customer, secret: {SECRET}, zones: [b.test]}}]"
    _, program = beside(zones=("a.test", "b.test"), section=section)
    tab.open(address(program))
    tab.wait("document.activeElement.id === 'key'")
    assert "a.test" not in tab.run("document.documentElement.outerHTML")
    tab.type("wrong")
    tab.press("Enter")
    tab.wait("document.querySelector('#key-problem').innerText.includes('does not know')")
    tab.type(READ)
    tab.press("Enter")
    tab.wait("document.querySelectorAll('#zone-rows a').length === 2")
    assert tab.run("JSON.stringify([Object.values(sessionStorage), Object.keys(localStorage), document.cookie])") == \
        json.dumps([[READ], [], ""], separators=(",", ":"))
    assert not any(READ in one for one in tab.requests), "a key is no part of an address"
    tab.open(address(program))
    tab.wait("document.querySelectorAll('#zone-rows a').length === 2")
    tab.run("document.querySelector('#forget').click()")
    tab.wait("document.activeElement.id === 'key' && !document.querySelector('#overview').checkVisibility()")
    assert tab.run("sessionStorage.length") == 0
    tab.type(SECRET)
    tab.press("Enter")
    tab.wait("document.querySelectorAll('#zone-rows a').length === 1")
    assert tab.texts("#zone-rows a") == ["b.test."] and tab.texts("figure") == []
    tab.faults = [fault for fault in tab.faults if "401" not in fault]


@needs_browser
def test_an_absent_manager_and_problems_are_told(beside, tab, tmp_path):
    server, program = beside(zones=("a.test",))
    show(tab, program, 1)
    add_broken_zones(server, tmp_path)
    tab.wait("document.querySelector('#notices').innerText.includes('2 zones are not served')")
    tab.run("document.querySelector('#problems').click()")
    tab.wait("document.querySelectorAll('#zone-rows .why').length === 2")
    server.kill()
    tab.wait("document.querySelector('#notices').innerText.includes('The manager does not answer')")
    tab.open(address(program, "#zone=a.test."))
    tab.wait("document.querySelector('#zone-problem').innerText.includes('what the store has')")
    program.stop()
    tab.wait("document.querySelector('#state').innerText.includes('pando-http does not answer')")
    program.start()
    server.start("a.test")
    tab.wait("document.querySelector('#state').innerText === 'live'", 60)
    tab.faults = [fault for fault in tab.faults if "ERR_" not in fault]


# Answers to the page's requests for zones with problems: there is none among the first 30.
MANY_PAGES = """
window.asked = [];
const real = window.fetch;
window.fetch = (path, ...rest) => {
  if (!path.includes("problems=1")) return real(path, ...rest);
  const after = Number(new URLSearchParams(path.split("?")[1]).get("after") || 0);
  window.asked.push(after);
  const zones = after < 30 ? [] : [{name: "last.test.", kind: "primary", state: "not-loaded", serial: 0, records: 0,
                                    frozen: false, problem: "broken"}];
  const body = {zones, next: after < 30 ? `${after + 1}` : "", looked: 20000, manager: true};
  return Promise.resolve(new Response(JSON.stringify(body), {headers: {"Content-Type": "application/json"}}));
};
"""


@needs_browser
def test_a_long_search_for_problems_goes_on_where_it_stopped(beside, tab):
    _, program = beside(zones=("a.test",))
    show(tab, program, 1)
    tab.run(MANY_PAGES)
    tab.run("document.querySelector('#problems').click()")
    tab.wait("document.querySelector('#zone-count').innerText.includes('a look at 500,000')")
    assert tab.run("document.querySelector('#more').checkVisibility()")
    assert tab.run("JSON.stringify(window.asked)") == json.dumps(list(range(25)), separators=(",", ":"))
    tab.run("document.querySelector('#more').click()")
    tab.wait("document.querySelectorAll('#zone-rows a').length === 1")
    assert tab.texts("#zone-rows a") == ["last.test."]
    assert tab.run("JSON.stringify(window.asked)") == json.dumps(list(range(31)), separators=(",", ":"))
    assert not tab.run("document.querySelector('#more').checkVisibility()")


@needs_browser
def test_a_server_without_zones_says_so(beside, tab, tmp_path):
    server, program = beside()
    server.zones = []
    http = server.config.read_text().splitlines()[-1]
    server.write_config()
    server.config.write_text(server.config.read_text() + http + "\n")
    server.control("reload")
    tab.open(address(program))
    tab.wait("document.querySelector('#zone-rows').innerText.includes('There are no zones yet')")


def luminance(colour):
    """Relative luminance of an "rgb(r, g, b)", as in WCAG 2."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@needs_browser
def test_dark_and_narrow_screens_and_quiet_ones(beside, tab):
    server, program = beside(zones=("a.test", "b.test", "x" * 60 + "." + "y" * 60 + ".test"))
    assert add(server, "new", "a.test") == dns.rcode.NOERROR
    tab.prefer(prefers_color_scheme="dark", prefers_reduced_motion="reduce")
    show(tab, program, 3)
    colours = "(selector) => { const style = getComputedStyle(document.querySelector(selector)); return style.color }"
    for scheme, is_dark in (("dark", True), ("light", False)):
        tab.prefer(prefers_color_scheme=scheme, prefers_reduced_motion="reduce")
        ground = luminance(tab.run("getComputedStyle(document.body).backgroundColor"))
        assert (ground < 0.1) == is_dark
        for selector in ("body", ".quiet", "#zone-rows a", "th", "figcaption .value", "#state"):
            ink = luminance(tab.run(f"({colours})({json.dumps(selector)})"))
            contrast = (max(ink, ground) + 0.05) / (min(ink, ground) + 0.05)
            assert contrast >= 4.5, f"WCAG 2 AA: {selector} in {scheme} has {contrast:.2f}"
    assert tab.run("getComputedStyle(document.querySelector('button')).transitionDuration") == "0s"
    tab.resize(360, 740)
    tab.wait("document.querySelector('#plot-queries svg').clientWidth < 340")
    assert tab.run("document.documentElement.scrollWidth") <= 360
    for zone in ("x" * 60 + "." + "y" * 60 + ".test.", "a.test."):
        tab.open(address(program, f"#zone={zone}"))
        tab.wait(f"document.title.startsWith('{zone}') && document.querySelectorAll('#zone-facts dt').length > 3")
        assert tab.run("document.documentElement.scrollWidth") <= 360
    assert len(tab.texts("#history-rows tr")) == 1
    assert tab.screenshot().startswith(b"\x89PNG")
