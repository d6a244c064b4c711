"use strict";

// The page of pando-http. Names of zones, and errors about them, are text of strangers: all text enters the document by
// append() and textContent, never as markup. Rates are differences between two looks at the server's counters.

const POLL_MS = 2000;
const LIST_MS = 10000;             // the list of zones is read this often
const SPAN_MS = 5 * 60 * 1000;     // of the plots, which begin with one minute
const MINUTE_MS = 60 * 1000;
const GAP_MS = 5 * POLL_MS;        // looks further apart are not joined: the page was hidden
const LATENCY_MS = 8000;           // percentiles are of the responses of so long
const ROWS = 50;                   // of a page of zones, as the server has it
const MOST_REQUESTS = 25;          // for one search: half a million zones, and as many again by "more"
const MOST_REPEATED = 2000;        // zones whose problems are looked for again and again
const KEY = "pando-key";

const at = (id) => document.getElementById(id);

// Elements ---------------------------------------------------------------------------------------------------------

function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawing(name, attributes, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

/** Sets a text only when it changes, since screen readers speak changes. */
function say(where, text) {
  if (where.textContent !== text) where.textContent = text;
}

// Numbers and times ------------------------------------------------------------------------------------------------

const whole = new Intl.NumberFormat("en");
const count = (value) => whole.format(value);

function short(value) {
  const units = ["", "k", "M", "G", "T"];
  let unit = 0;
  while (value >= 999.5 && unit < units.length - 1) { value /= 1000; ++unit; }
  const digits = value < 9.95 && value % 1 !== 0 ? 1 : 0;
  return value.toFixed(digits) + units[unit];
}

function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) { value /= 1024; ++unit; }
  const digits = value < 9.95 && value % 1 !== 0 ? 1 : 0;
  return `${value.toFixed(digits)} ${units[unit]}`;
}

function duration(microseconds) {
  if (microseconds < 999.5) return `${Math.max(1, Math.round(microseconds))} µs`;
  const milliseconds = microseconds / 1000;
  const fraction = (value) => value.toFixed(value < 9.95 && value % 1 !== 0 ? 1 : 0);
  return milliseconds < 999.5 ? `${fraction(milliseconds)} ms` : `${fraction(milliseconds / 1000)} s`;
}

function span(seconds) {
  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const first = units.findIndex(([, size]) => seconds >= size);
  if (first < 0) return "0 s";
  const [name, size] = units[first];
  let text = `${Math.floor(seconds / size)} ${name}`;
  const next = units[first + 1];
  const rest = next ? Math.floor((seconds % size) / next[1]) : 0;
  if (rest > 0 && seconds / size < 10) text += ` ${rest} ${next[0]}`;
  return text;
}

function moment(seconds, now) {
  const stamp = new Date(seconds * 1000).toISOString().replace("T", " ").slice(0, 19) + " UTC";
  const away = seconds > now ? `in ${span(seconds - now)}` : `${span(now - seconds)} ago`;
  return element("time", {datetime: new Date(seconds * 1000).toISOString()}, `${stamp} (${away})`);
}

// Requests ---------------------------------------------------------------------------------------------------------

class KeyNeeded extends Error {}
class Missing extends Error {}

let keyInMemory = "";  // for browsers that refuse sessionStorage

function readKey() {
  try { return sessionStorage.getItem(KEY) || keyInMemory; } catch { return keyInMemory; }
}

function keepKey(value) {
  keyInMemory = value;
  try {
    if (value) sessionStorage.setItem(KEY, value);
    else sessionStorage.removeItem(KEY);
  } catch { /* it is in memory */ }
}

async function ask(path) {
  const headers = new Headers();
  const key = readKey();
  if (key) {
    try { headers.set("X-API-Key", key); } catch { throw new KeyNeeded("This cannot be a key."); }
  }
  const response = await fetch(path, {
    headers, cache: "no-store", credentials: "omit", redirect: "error", signal: AbortSignal.timeout(15000)});
  if (response.status === 401)
    throw new KeyNeeded(key ? "The server does not know this key." : "");
  if (response.status === 429) throw new Error("the server has too many requests");
  if (!(response.headers.get("Content-Type") || "").startsWith("application/json"))
    throw new Error(`the server's response is ${response.status}`);
  const value = await response.json();
  if (response.status === 404) throw new Missing(value.error);
  if (!response.ok) throw new Error(value.error);
  return value;
}

// Samples ----------------------------------------------------------------------------------------------------------

const samples = [];  // looks at the counters, oldest first
const points = [];   // the values of the plots, one for each sample

const sum = (values) => values.reduce((total, value) => total + value, 0);

function requestsOf(worker) {
  return worker.counters.queries_udp + worker.counters.queries_tcp + worker.counters.queries_tls;
}

function sampleOf(look) {
  const manager = look.manager;
  return {
    at: look.at_ms,
    requests: sum(look.workers.map(requestsOf)),
    missing: look.rcodes.NXDOMAIN || 0,
    failed: look.rcodes.SERVFAIL || 0,
    latency: look.latency,
    version: look.store ? look.store.version : null,
    updates: manager ? manager.counters.updates_accepted : null,
    drops: sum(look.udp.map((address) => address.drops)),
    workers: new Map(look.workers.map((worker) => [worker.slot, {requests: requestsOf(worker), cpu: worker.cpu}])),
  };
}

/** The growth per second; null when it is unknown, as after a restart of the process that counts. */
function rate(before, after, milliseconds) {
  if (before === null || after === null || before === undefined || after < before) return null;
  return (after - before) / milliseconds * 1000;
}

/** A quantile of the responses between two histograms, in microseconds. */
function quantile(before, after, part) {
  const counts = after.map((value, i) => value - before[i]);
  const total = sum(counts);
  if (total <= 0 || counts.some((value) => value < 0)) return null;
  let left = part * total;
  for (let i = 0; i < counts.length; ++i) {
    if (left <= counts[i] && counts[i] > 0) {
      const from = i === 0 ? 0 : 2 ** (i - 1);
      return i === counts.length - 1 ? from : from + (2 ** i - from) * left / counts[i];
    }
    left -= counts[i];
  }
  return null;
}

function pointOf(look, sample) {
  const last = samples[samples.length - 1];
  const joined = last && sample.at - last.at <= GAP_MS ? last : null;
  const growth = (key) => joined ? rate(joined[key], sample[key], sample.at - joined.at) : null;
  const base = joined && (samples.find((one) => sample.at - one.at <= LATENCY_MS) || joined);
  return {
    at: sample.at,
    requests: growth("requests"),
    missing: growth("missing"),
    failed: growth("failed"),
    p50: base ? quantile(base.latency, sample.latency, 0.5) : null,
    p99: base ? quantile(base.latency, sample.latency, 0.99) : null,
    memory: look.store ? look.store.memory : null,
    live: look.manager ? look.manager.store.live : null,
    processes: look.processes.length ? sum(look.processes.map((process) => process.memory)) : null,
    versions: growth("version"),
    updates: growth("updates"),
  };
}

/** False: this look is no later one, such as one that several requests share. */
function takeSample(look) {
  const sample = sampleOf(look);
  const last = samples[samples.length - 1];
  if (last && sample.at === last.at) return false;
  if (last && sample.at < last.at) samples.length = points.length = 0;  // another host, or it began anew
  points.push(pointOf(look, sample));
  samples.push(sample);
  while (sample.at - samples[0].at > SPAN_MS) { samples.shift(); points.shift(); }
  return true;
}

/** Minutes that the plots show: those that the page has seen, up to five. */
function minutesShown() {
  const seen = points[points.length - 1].at - points[0].at;
  return Math.min(SPAN_MS / MINUTE_MS, Math.max(1, Math.ceil(seen / MINUTE_MS)));
}

// Plots ------------------------------------------------------------------------------------------------------------

function niceTop(value, unit) {
  const scaled = value / unit;
  const power = 10 ** Math.floor(Math.log10(scaled));
  const step = [1, 2, 5, 10].find((one) => one * power >= scaled * 0.999) || 10;
  return step * power * unit;
}

function linearScale(most, isBytes) {
  let unit = 1;
  while (isBytes && most / unit >= 1000) unit *= 1024;
  const top = most > 0 ? niceTop(most, unit) : 1;
  return {place: (value) => value / top, ticks: [0, top / 2, top]};
}

function logScale(least, most) {
  const low = Math.floor(Math.log10(Math.max(least, 1)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(most, 1))));
  const ticks = [];
  for (let power = low; power <= high; ++power) ticks.push(10 ** power);
  return {place: (value) => (Math.log10(Math.max(value, 1)) - low) / (high - low), ticks};
}

const LEFT = 58, RIGHT = 6, TOP = 8, BOTTOM = 20;

/** Lines over the last five minutes. The pointer, or the arrow keys, choose a moment to read. */
class Plot {
  constructor(id, title, format, series, kind) {
    Object.assign(this, {title, format, series, kind, cursor: null});
    this.caption = element("figcaption");
    this.svg = drawing("svg", {class: "plot", role: "img", tabindex: "0"});
    at(id).append(this.caption, this.svg);
    this.values = series.map(({name, line}) => {
      const value = element("b", {}, "–");
      const label = element("span", {class: "value"}, element("span", {class: `swatch ${line}`}), `${name} `, value);
      return {label, value};
    });
    this.heading = element("span", {class: "title"}, title);
    this.caption.append(this.heading, ...this.values.map(({label}) => label));
    this.svg.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.svg.addEventListener("pointerleave", () => this.choose(null));
    this.svg.addEventListener("blur", () => this.choose(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => this.draw()).observe(this.svg);
  }

  x(moment) {
    const now = points[points.length - 1].at;
    return LEFT + (1 - (now - moment) / (minutesShown() * MINUTE_MS)) * (this.width - LEFT - RIGHT);
  }

  point(x) {
    if (points.length === 0) return;
    const distance = (one) => Math.abs(this.x(one.at) - x);
    this.choose(points.reduce((best, one) => distance(one) < distance(best) ? one : best).at);
  }

  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1};
    if (event.key === "Escape" && this.cursor !== null) {
      event.stopPropagation();
      this.choose(null);
    }
    if (!(event.key in steps) || points.length === 0) return;
    event.preventDefault();
    const index = this.cursor === null ? points.length - 1 : points.findIndex((one) => one.at === this.cursor);
    const next = points[Math.min(points.length - 1, Math.max(0, index + steps[event.key]))];
    this.choose(next.at);
    say(at("spoken"), `${this.heading.textContent}: ${this.texts(next).join(", ")}`);
  }

  choose(moment) {
    this.cursor = moment;
    this.draw();
  }

  text(value) { return value === null ? "–" : this.format(value); }
  texts(point) { return this.series.map(({name, key}) => `${name} ${this.text(point[key])}`); }

  scale() {
    const all = points.flatMap((one) => this.series.map(({key}) => one[key])).filter((value) => value !== null);
    if (this.kind === "log") return logScale(all.length ? Math.min(...all) : 1, Math.max(1, ...all));
    return linearScale(Math.max(0, ...all), this.kind === "bytes");
  }

  draw() {
    this.width = this.svg.clientWidth;
    this.height = this.svg.clientHeight;
    if (points.length === 0 || this.width === 0) return;
    const {place, ticks} = this.scale();
    const y = (value) => this.height - BOTTOM - place(value) * (this.height - TOP - BOTTOM);
    const parts = [];
    for (const tick of ticks) {
      parts.push(drawing("line", {class: "grid", x1: LEFT, x2: this.width - RIGHT, y1: y(tick), y2: y(tick)}));
      parts.push(drawing("text", {x: LEFT - 8, y: y(tick) + 4, "text-anchor": "end"}, this.format(tick)));
    }
    const foot = this.height - 4;
    parts.push(drawing("text", {x: LEFT, y: foot}, `${minutesShown()} min ago`));
    parts.push(drawing("text", {x: this.width - RIGHT, y: foot, "text-anchor": "end"}, "now"));
    for (const {key, line} of this.series)  // broken lines over whole ones
      parts.push(drawing("path", {class: line, d: this.line(key, y)}));
    const chosen = points.find((one) => one.at === this.cursor);
    if (chosen)
      parts.push(drawing("line", {
        class: "cursor", x1: this.x(chosen.at), x2: this.x(chosen.at), y1: TOP, y2: this.height - BOTTOM}));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.svg.replaceChildren(...parts);
    this.tell(chosen || points[points.length - 1], chosen);
  }

  line(key, y) {
    let path = "", pen = "M";
    for (const one of points) {
      if (one[key] === null) { pen = "M"; continue; }
      const end = `${this.x(one.at).toFixed(1)} ${y(one[key]).toFixed(1)}`;
      path += pen === "M" ? `M${end}h0` : `L${end}`;  // h0: a single point is a dot
      pen = "L";
    }
    return path;
  }

  tell(point, chosen) {
    const ago = Math.round((points[points.length - 1].at - point.at) / 1000);
    say(this.heading, chosen && ago > 0 ? `${this.title}, ${span(ago)} ago` : this.title);
    this.series.forEach(({key}, i) => say(this.values[i].value, this.text(point[key])));
    const ranges = this.series.map(({name, key}) => {
      const known = points.map((one) => one[key]).filter((value) => value !== null);
      if (known.length === 0) return `${name} unknown`;
      return `${name} now ${this.text(points[points.length - 1][key])}, lowest ${this.format(Math.min(...known))}, ` +
          `highest ${this.format(Math.max(...known))}`;
    });
    this.svg.setAttribute("aria-label", `${this.title}, last five minutes: ${ranges.join("; ")}`);
  }
}

const perSecond = (value) => short(value);
const plots = [
  new Plot("plot-queries", "Requests per second", perSecond, [
    {name: "all", key: "requests", line: "line-1"},
    {name: "NXDOMAIN", key: "missing", line: "line-2"},
    {name: "SERVFAIL", key: "failed", line: "line-3"}]),
  new Plot("plot-latency", "Response time", duration, [
    {name: "median", key: "p50", line: "line-1"},
    {name: "99th percentile", key: "p99", line: "line-2"}], "log"),
  new Plot("plot-memory", "Memory", bytes, [
    {name: "store", key: "memory", line: "line-1"},
    {name: "in use", key: "live", line: "line-2"},
    {name: "processes", key: "processes", line: "line-4"}], "bytes"),
  new Plot("plot-versions", "Versions per second", perSecond, [
    {name: "versions", key: "versions", line: "line-1"},
    {name: "updates", key: "updates", line: "line-2"}]),
];

// Notices ----------------------------------------------------------------------------------------------------------

const plural = (number, one, many) => `${count(number)} ${number === 1 ? one : many}`;

function managerNotices(manager, add) {
  const store = manager.store, {updates_failed: failed} = manager.counters;
  if (manager.problem) add(true, `The manager has a problem: ${manager.problem}`);
  if (manager.zone_lists === "failed") add(true, "Zone lists cannot be read. Zones are served as they were.");
  for (const [address, problem] of Object.entries(manager.addresses))
    if (problem) add(true, `${address} is not open: ${problem}`);
  const absent = manager.workers_wanted - manager.workers_running;
  if (absent > 0) add(true, `${plural(absent, "worker is", "workers are")} not running.`);
  const silent = manager.zones - manager.zones_loaded;
  if (silent > 0) add(true, `${plural(silent, "zone is", "zones are")} not served.`, true);
  if (manager.counters.zones_not_valid > 0)
    add(true, `${plural(manager.counters.zones_not_valid, "signed zone has", "signed zones have")} faults.`);
  if (store.effective_limit > 0 && store.live > 0.9 * store.effective_limit)
    add(true, `Less than a tenth of the store is free: ${bytes(store.live)} of ${bytes(store.effective_limit)} are in use.`);
  if (failed > 0) add(false, `${plural(failed, "update has", "updates have")} failed since the manager started.`);
  if (manager.image_not_used) add(false, `An image was not used: ${manager.image_not_used}`);
  if (manager.image_quarantined) add(false, `An image is quarantined: ${manager.image_quarantined}`);
  if (manager.journal.in_memory) add(false, "The journal is in memory: a restart of the host loses updates.");
}

function showNotices(look) {
  const notices = [];
  const add = (bad, text, zones = false) => notices.push({bad, text, zones});
  if (!look.manager)
    add(true, "The manager does not answer. Workers go on answering queries; updates, transfers and reloads wait.");
  else
    managerNotices(look.manager, add);
  if (!look.store) add(true, `The store cannot be read: ${look.problems[0] || "there is none"}`);
  if (look.store && !look.workers.some((worker) => worker.alive)) add(true, "No worker is running: nobody answers.");
  const last = samples[samples.length - 1];
  const before = samples.find((one) => last.at - one.at <= 60000);
  if (last.drops > before.drops)
    add(true, `The kernel has dropped ${plural(last.drops - before.drops, "datagram", "datagrams")} within a minute.`);
  const text = JSON.stringify(notices);
  if (showNotices.last === text) return;
  showNotices.last = text;
  at("notices").replaceChildren(...notices.map((one) => {
    const item = element("li", one.bad ? {class: "bad"} : {}, one.text);
    if (one.zones) {
      const button = element("button", {type: "button"}, "Show them");
      button.addEventListener("click", showProblems);
      item.append(" ", button);
    }
    return item;
  }));
}

// Workers ----------------------------------------------------------------------------------------------------------

function showWorkers(look) {
  const last = samples[samples.length - 1], before = samples[samples.length - 2];
  const joined = before && last.at - before.at <= GAP_MS;
  const rows = look.workers.map((worker) => {
    const then = joined && before.workers.get(worker.slot), now = last.workers.get(worker.slot);
    const growth = (key) => then ? rate(then[key], now[key], last.at - before.at) : null;
    const requests = growth("requests"), cpu = growth("cpu");
    const state = worker.alive ? "serving" : "not running";
    const held = worker.leases > 0 ? `${count(worker.leases)} (${plural(worker.lag, "version", "versions")} behind)` : "0";
    return element("tr", {},
      element("th", {scope: "row"}, `${worker.slot}`),
      element("td", {class: worker.alive ? "state" : "state bad"}, state),
      element("td", {class: "wide"}, worker.alive && worker.started ? span(Math.max(0, look.now - worker.started)) : "–"),
      element("td", {class: "number"}, requests === null ? "–" : short(requests)),
      element("td", {class: "number"}, cpu === null ? "–" : `${(cpu * 100).toFixed(0)} %`),
      element("td", {class: "number wide"}, worker.memory === null ? "–" : bytes(worker.memory)),
      element("td", {class: "number wide"}, count(worker.counters.tcp_open)),
      element("td", {class: "number wide"}, held));
  });
  if (rows.length === 0) rows.push(element("tr", {}, element("td", {class: "empty", colspan: "8"}, "There are no workers.")));
  at("worker-rows").replaceChildren(...rows);
}

// The list of zones ------------------------------------------------------------------------------------------------

const list = {wanted: ROWS, rows: [], next: "", looked: 0, requests: 0, manager: true, load: 0, at: 0, shown: ""};
let lastLook = null;

function stateOf(row) {
  const names = {"ok": "ok", "loading": "loading", "not-loaded": "not loaded", "expired": "expired", "removed": "removed"};
  const text = (names[row.state] || row.state) + (row.frozen ? ", frozen" : "");
  if (row.state === "not-loaded" || row.state === "expired") return {text, kind: "bad"};
  return {text, kind: row.state === "ok" && !row.problem ? "" : "warn"};
}

const zoneLink = (name) => `#zone=${encodeURIComponent(name)}`;

function zoneRow(row) {
  const state = stateOf(row);
  const name = element("td", {class: "name"}, element("a", {href: zoneLink(row.name)}, row.name));
  if (row.problem) name.append(element("span", {class: "why"}, row.problem));
  const served = row.state !== "not-loaded" && row.state !== "loading";
  return element("tr", {}, name,
    element("td", {class: `state ${state.kind}`}, state.text),
    element("td", {class: "wide"}, row.kind),
    element("td", {class: "number wide"}, served ? `${row.serial}` : "–"),
    element("td", {class: "number"}, count(row.records)));
}

function noZonesText() {
  const search = at("search").value.trim();
  if (list.next) return "Nothing was found among the zones so far.";
  if (lastLook && !lastLook.whole && !search && !at("problems").checked) return "There is no zone that this key sees.";
  if (search) return `No zone has “${search}” in its name${at("problems").checked ? ", and a problem" : ""}.`;
  if (at("problems").checked) return "No zone has a problem.";
  return "There are no zones yet. They come from “zones” in the configuration, or from pandoctl zone add.";
}

function countText() {
  const total = lastLook && lastLook.store ? lastLook.store.zones : null;
  const filtered = at("search").value.trim() !== "" || at("problems").checked;
  let text = plural(list.rows.length, "zone", "zones");
  if (!filtered && total !== null && total > list.rows.length)
    text = `${count(list.rows.length)} of ${plural(total, "zone", "zones")}`;
  if (filtered && list.next)
    text += `, after a look at ${count(list.looked)}`;
  if (!list.manager) text += ". The manager does not answer: states are as the store has them.";
  return text;
}

/** Rows are replaced only when they change, and the focus stays on its zone. */
function showList() {
  const text = JSON.stringify([list.rows, list.next, list.rows.length === 0 ? noZonesText() : ""]);
  if (list.shown !== text) {
    list.shown = text;
    const focused = document.activeElement && document.activeElement.closest("#zone-rows a");
    const rows = list.rows.map(zoneRow);
    if (rows.length === 0) rows.push(element("tr", {}, element("td", {class: "empty", colspan: "5"}, noZonesText())));
    at("zone-rows").replaceChildren(...rows);
    if (focused) focusZone(focused.getAttribute("href"));
  }
  at("more").hidden = list.next === "";
  say(at("zone-count"), list.rows.length === 0 && !list.next ? "" : countText());
}

function focusZone(href) {
  const link = [...document.querySelectorAll("#zone-rows a")].find((one) => one.getAttribute("href") === href);
  if (link) link.focus();
}

function listPath(after) {
  const words = [];
  if (after) words.push(`after=${encodeURIComponent(after)}`);
  if (at("search").value.trim()) words.push(`search=${encodeURIComponent(at("search").value.trim())}`);
  if (at("problems").checked) words.push("problems=1");
  return `/page/zones?${words.join("&")}`;
}

/**
 * Reads pages until there are as many rows as are wanted, from the beginning or behind the last zone looked at. A later
 * call ends an earlier one.
 */
async function loadList(goesOn) {
  const load = ++list.load;
  const found = {rows: [], next: "", looked: 0, requests: 0, manager: true};
  if (goesOn) {
    const {rows, next, looked, requests, manager} = list;
    Object.assign(found, {rows: [...rows], next, looked, requests, manager});
  }
  const most = found.requests + MOST_REQUESTS;
  do {
    const page = await ask(listPath(found.next));
    if (load !== list.load) return;
    found.rows.push(...page.zones);
    found.next = page.next;
    found.looked += page.looked;
    found.manager = found.manager && page.manager;
    ++found.requests;
  } while (found.next && found.rows.length < list.wanted && found.requests < most);
  Object.assign(list, found, {at: performance.now()});
  showList();
}

function searchSoon() {
  clearTimeout(searchSoon.timer);
  searchSoon.timer = setTimeout(searchNow, 250);
}

async function searchNow() {
  clearTimeout(searchSoon.timer);
  list.wanted = ROWS;
  await loadList().catch(showFailure);
}

// One zone ---------------------------------------------------------------------------------------------------------

/** The zone of the address, or null. */
function zoneOfAddress() {
  if (!location.hash.startsWith("#zone=")) return null;
  try { return decodeURIComponent(location.hash.slice(6)); } catch { return null; }
}

function factsOf(row, now) {
  const time = (seconds) => seconds > 0 ? moment(seconds, now) : "";
  const state = stateOf(row);
  const done = row.load_total > 0 ? `, ${Math.floor(100 * row.load_done / row.load_total)} %` : "";
  const removed = row.state === "removed";
  return [
    ["State", state.text],
    ["Loading", row.load_phase + done],
    ["Kind", row.kind + (row.added ? ", added at run time" : "")],
    ["Serial", row.state === "ok" || row.state === "expired" || removed ? `${row.serial}` : ""],
    ["Records", removed ? "" : `${count(row.records)} at ${plural(row.names, "name", "names")}`],
    ["Change history", removed ? "" : bytes(row.history)],
    ["File", row.file || ""],
    ["Primaries", row.primaries.join(", ")],
    ["Last check", time(row.last_ok)],
    ["Next refresh", time(row.refresh_at)],
    ["Expires", time(row.expires_at)],
    ["First signature ends", time(row.signatures_end)],
    ["Signature faults", row.signature_faults > 0 ? count(row.signature_faults) : ""],
    ...Object.entries(row.notified).map(([address, outcome]) => [`NOTIFY to ${address}`, outcome || "none yet"]),
    ["Removed", time(row.removed_at)],
    ["Kept until", removed ? time(row.kept_until) || "it is purged" : ""],
    ["Updates kept", row.updates_kept],
  ].filter(([, value]) => value !== "");
}

function changesetRow(changeset) {
  const number = (value) => element("td", {class: "number"}, value);
  const known = "added" in changeset;
  return element("tr", {}, number(`${changeset.from}`), number(`${changeset.to}`),
    ...(known ? [number(count(changeset.removed)), number(count(changeset.added))]
              : [element("td", {class: "number", colspan: "2"}, `${count(changeset.records)} records`)]));
}

function historyNote(details) {
  if (details.past_problem) return `The history cannot be read: ${details.past_problem}`;
  if (!("changesets" in details)) return "";
  if (!details.changesets_known) return "There are too many changes to show: pandoctl zone history lists them.";
  if (details.changesets.length === 0) return "The server has no change history of this zone.";
  if (details.older_changesets === 0) return "";
  return `${plural(details.older_changesets, "older change is", "older changes are")} not shown.`;
}

function showSnapshots(details) {
  const snapshots = details.snapshots || [];
  at("snapshots").hidden = snapshots.length === 0;
  at("snapshot-rows").replaceChildren(...snapshots.map((one) => element("tr", {},
    element("td", {class: "name"}, one.label),
    element("td", {class: "number"}, `${one.serial}`),
    element("td", {class: "number"}, count(one.records)),
    element("td", {}, moment(one.taken, details.now)),
    element("td", {class: one.lost ? "state bad" : "state"}, one.lost ? `lost: ${one.lost}` : "held"))));
}

function showZone(name, details) {
  const row = details.zone;
  let problem = row.problem;
  if (!details.manager) problem = "The manager does not answer: this is what the store has.";
  at("zone-problem").hidden = problem === "";
  say(at("zone-problem"), problem);
  at("zone-facts").replaceChildren(...factsOf(row, details.now).flatMap(([term, value]) =>
    [element("dt", {}, term), element("dd", {}, value)]));
  const changesets = details.changesets || [];
  at("history-table").hidden = changesets.length === 0;
  at("history-rows").replaceChildren(...changesets.map(changesetRow));
  say(at("history-note"), historyNote(details));
  showSnapshots(details);
}

async function loadZone(name) {
  try {
    const details = await ask(`/page/zone?name=${encodeURIComponent(name)}`);
    if (zoneOfAddress() === name) showZone(name, details);
  } catch (error) {
    if (error instanceof KeyNeeded || zoneOfAddress() !== name) throw error;
    if (!(error instanceof Missing)) throw error;
    at("zone-problem").hidden = false;
    say(at("zone-problem"), "There is no such zone, or this key does not see it.");
    for (const id of ["zone-facts", "history-rows", "snapshot-rows"]) at(id).replaceChildren();
    at("history-table").hidden = at("snapshots").hidden = true;
    say(at("history-note"), "");
  }
}

let zoneShown = null;

/** Shows what the address says: one zone, or the overview. */
function route() {
  const name = zoneOfAddress();
  const before = zoneShown;
  zoneShown = name;
  at("zone").hidden = name === null;
  at("overview").hidden = name !== null || lastLook === null;
  document.title = name === null ? "Pando" : `${name} – Pando`;
  if (name !== null && name !== before) {
    for (const id of ["zone-facts", "history-rows", "snapshot-rows"]) at(id).replaceChildren();
    at("zone-problem").hidden = true;
    say(at("history-note"), "");
    at("zone-title").textContent = name;
    at("zone-title").focus();
    scrollTo(0, 0);
  }
  if (name === null && before !== null) focusZone(zoneLink(before));
  if (name !== before) poll();
}

// The loop ---------------------------------------------------------------------------------------------------------

let timer = 0, polling = false, again = false, failures = 0;

function showState(kind, text) {
  at("state").className = kind;
  say(at("state"), text);
}

function showHead(look) {
  const parts = [`version ${look.program || ""}`];
  if (look.store) parts.push(plural(look.store.zones, "zone", "zones"), `store version ${count(look.store.version)}`);
  if (look.manager && look.manager.started) parts.push(`manager up ${span(Math.max(0, look.now - look.manager.started))}`);
  say(at("versions"), look.whole ? parts.join(" · ") : "This key sees some zones only.");
}

function showLook(look) {
  const first = lastLook === null;
  lastLook = look;
  at("login").hidden = true;
  at("forget").hidden = readKey() === "";
  at("metrics").hidden = readKey() !== "";  // a link shows no key
  at("numbers").hidden = at("workers").hidden = !look.whole;
  if (first) route();
  showHead(look);
  if (!look.whole || !takeSample(look)) return;
  for (const plot of plots) plot.draw();
  showNotices(look);
  showWorkers(look);
}

function showLogin(text) {
  lastLook = null;
  for (const id of ["overview", "zone", "forget", "metrics"]) at(id).hidden = true;
  at("login").hidden = false;
  at("notices").replaceChildren();
  showNotices.last = "";
  say(at("versions"), "");
  say(at("key-problem"), text);
  showState("", "a key is needed");
  at("key").focus();
}

function showFailure(error) {
  if (error instanceof KeyNeeded) return showLogin(error.message);
  const network = error instanceof TypeError || error.name === "TimeoutError";
  showState("bad", network ? "pando-http does not answer; trying again" : `${error.message}; trying again`);
}

/** A long search is not repeated by itself; looking for problems takes the manager's time. */
function isRepeated() {
  return list.requests <= 2 && (!at("problems").checked || list.looked <= MOST_REPEATED);
}

async function look() {
  showLook(await ask("/page/overview"));
  if (zoneShown !== null) await loadZone(zoneShown);
  else if (list.at === 0 || (isRepeated() && performance.now() - list.at >= LIST_MS)) await loadList();
  showState("good", "live");
}

async function poll() {
  clearTimeout(timer);
  if (document.hidden) return;  // until it is shown again
  if (polling) { again = true; return; }
  polling = true;
  let pause = POLL_MS;
  try {
    await look();
    failures = 0;
  } catch (error) {
    showFailure(error);
    pause = Math.min(30000, POLL_MS * 2 ** failures++);
  }
  polling = false;
  if (!at("login").hidden) { again = false; return; }  // until there is a key
  timer = setTimeout(poll, again ? 0 : pause);
  again = false;
}

// People -----------------------------------------------------------------------------------------------------------

function moveFocus(event, step) {
  const links = [...document.querySelectorAll("#zone-rows a")];
  const next = links.indexOf(document.activeElement) + step;
  if (next < 0) at("search").focus();
  else if (next < links.length) links[next].focus();
  event.preventDefault();
}

/** Back to the list, without the focus on the zone's row. */
function leaveZone() {
  if (zoneShown === null) return;
  zoneShown = null;
  location.hash = "";
  route();
}

function goToSearch(event) {
  event.preventDefault();
  leaveZone();
  at("search").focus();
  at("search").select();
}

async function showProblems() {
  leaveZone();
  at("search").value = "";
  at("problems").checked = true;
  at("zones-title").focus();
  at("zones-title").scrollIntoView();
  await searchNow();
}

function escape() {
  if (document.activeElement === at("search")) {
    if (at("search").value === "") return at("zones-title").focus();
    at("search").value = "";
    searchNow();
  } else if (zoneShown !== null) {
    location.hash = "";
  }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing) return;
  const field = event.target instanceof HTMLInputElement && event.target.type !== "checkbox";
  if (event.key === "Escape") return escape();
  if (lastLook === null) return;
  if (event.key === "/" && !field) return goToSearch(event);
  const inRows = event.target instanceof Element && event.target.closest("#zone-rows a");
  if (event.key === "ArrowDown" && (inRows || event.target === at("search"))) moveFocus(event, 1);
  if (event.key === "ArrowUp" && inRows) moveFocus(event, -1);
});

at("search").addEventListener("input", searchSoon);
at("problems").addEventListener("change", searchNow);
at("search-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  await searchNow();
  const first = document.querySelector("#zone-rows a");
  if (first) first.focus();
});
at("more").addEventListener("click", () => {
  list.wanted = list.rows.length + ROWS;
  loadList(true).catch(showFailure);
});
at("key-form").addEventListener("submit", (event) => {
  event.preventDefault();
  keepKey(at("key").value.trim());
  at("key").value = "";
  list.at = 0;
  poll();
});
at("forget").addEventListener("click", () => {
  keepKey("");
  samples.length = points.length = 0;
  clearTimeout(timer);
  showLogin("");
});
document.addEventListener("visibilitychange", () => {
  if (document.hidden) showState("", "paused");
  poll();
});
addEventListener("hashchange", route);

route();
poll();
