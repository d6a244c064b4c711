"""Queries beside other work: what a query costs the thread that answers it, and how long updates take. Run it as

  PANDO_BUILD=build/release bench/updates.py isolation [--records N] [--pairs N] [--window S] [--rows ROW,...] [--peers bind,knot]

Each row takes windows in turn, one without and one with the other work, so that a slow minute hits both; figures are medians of
windows, ratios are medians of pairs. The thread that answers the queries is alone on the first processor, all else (manager, the
worker that passes updates on, generators, the primary, burners) is on the second. Rows:

  idle        nothing, twice: what ratios mean nothing
  200, 1000, 10000    so many updates per second, through another worker
  through     10,000 updates per second through the worker that answers the queries
  compaction  a zone was just changed so much that compaction walks; 200 updates per second
  axfr        a zone of N records arrives; 200 updates per second
  again       it arrives once more with other data, while the old one is served
  checkpoints one after another, with that zone in the store; 1,000 updates per second
  copies      whole copies of the store to disk, each followed by a checkpoint that checks all chunks; 1,000 updates per second
  controls    a process that takes as much of the second processor as the 10,000 updates and the transfer did, in registers only,
              and at random places of 64 MiB: this much is the machine's
  disk        a program that syncs 400 octets in a file 200 times a second, and nothing else: so much of the times of updates is
              the disk's
  peers       other servers beside the updates
"""

import argparse
import array
import contextlib
import ctypes
import mmap
import os
import pathlib
import random
import re
import resource
import signal
import statistics
import struct
import subprocess
import time

import servers
import updates
from primary import Primary

ROWS = ["idle", "200", "1000", "10000", "through", "compaction", "axfr", "again", "checkpoints", "copies", "controls", "disk", "peers"]
NAMES = 100_000  # of the zone that is asked
CHURN = 1_000_000  # names, at most, of the zone that compaction walks
QUERY_PORTS, UPDATE_PORTS = 8, 64
ANSWERING, OTHERS = 0, 1  # processors
PERIOD = 200_003  # ns of processor time from one sample to the next: each costs microseconds itself. No multiple of anything else here
PAGES = 4096  # of samples: some minutes


class Samples:
    """Samples of a thread's own processor time: how much of it was user time. The kernel itself looks only at its ticks, 250 in a
    second, which is too seldom for a thread that is at work a tenth of the time."""

    def __init__(self, tid):
        attributes = bytearray(128)
        struct.pack_into("=IIQQ", attributes, 0, 1, len(attributes), 0, PERIOD)  # PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK
        raw = (ctypes.c_char * len(attributes)).from_buffer(attributes)
        self.descriptor = ctypes.CDLL(None, use_errno=True).syscall(298, raw, tid, -1, -1, 8)  # perf_event_open, close on exec
        if self.descriptor < 0:
            raise OSError(ctypes.get_errno(), "perf_event_open: " + os.strerror(ctypes.get_errno()))
        self.ring = mmap.mmap(self.descriptor, (PAGES + 1) * mmap.PAGESIZE)

    def stop(self):
        """Samples in the kernel and in user space."""
        ctypes.CDLL(None).ioctl(self.descriptor, 0x2400 + 1, 0)  # PERF_EVENT_IOC_DISABLE
        head = struct.unpack_from("=Q", self.ring, 1024)[0]
        counts, at = {}, mmap.PAGESIZE
        while at < mmap.PAGESIZE + head:
            kind, mode, length = struct.unpack_from("=IHH", self.ring, at)
            if kind == 9:  # PERF_RECORD_SAMPLE
                counts[mode & 7] = counts.get(mode & 7, 0) + 1
            at += length
        self.ring.close()
        os.close(self.descriptor)
        return counts.get(1, 0), counts.get(2, 0)


def run_time(pid, tid):
    """Nanoseconds that a thread ran so far."""
    return int(pathlib.Path(f"/proc/{pid}/task/{tid}/schedstat").read_text().split()[0])


def processors():
    """Ticks so far of the second processor at work, and stolen ticks of all processors, of how many each."""
    rows = {line.split()[0]: [int(field) for field in line.split()[1:9]]
            for line in pathlib.Path("/proc/stat").read_text().splitlines() if line.startswith("cpu")}
    other, whole = rows[f"cpu{OTHERS}"], rows["cpu"]
    return sum(other) - other[3] - other[4], sum(other), whole[7], sum(whole)


def threads(pid):
    return [int(path.name) for path in pathlib.Path(f"/proc/{pid}/task").iterdir()]


def at_once(priority):
    return lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(priority))


def percentile(values, share):
    return values[min(len(values) - 1, int(share * len(values)))] if values else 0.0


def taken(path):
    """The times that a generator's runs have left in a file, sorted."""
    values = array.array("d")
    if path.exists():
        with path.open("rb") as file:
            values.frombytes(file.read())
    return sorted(values)


class Subject:
    """A server, and which thread of it answers the queries."""

    def __init__(self, server, queries, options):
        self.server, self.queries, self.options = server, queries, options
        self.folder = pathlib.Path(server.folder)
        self.query_ports, self.update_ports, self.same_ports = [], [], []

    def choose(self, pid, tid):
        self.pid, self.tid = pid, tid
        os.sched_setaffinity(tid, {ANSWERING})
        os.sched_setscheduler(tid, os.SCHED_FIFO, os.sched_param(1))

    def batches(self):
        """Responses of the worker so far by the bound in microseconds that they stayed below."""
        if not isinstance(self.server, servers.Pando):
            return {}
        counters = next(row for row in self.server.workers().values() if row["pid"] == self.pid)["counters"]
        return {int(name.rsplit("_", 1)[1]): count for name, count in counters.items() if name.startswith("responses_below")}

    def program(self, name, words, latencies, priority, **more):
        return subprocess.Popen([str(servers.build_folder() / "bench" / name), *map(str, words)], stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, text=True, env=dict(os.environ, LATENCIES=str(latencies), **more),
                                preexec_fn=at_once(priority))

    def generate(self, latencies):
        """Begins with start(): before it reads its questions, which takes the processor from all others for 40 ms."""
        generator = self.program("bench_query_load", [self.server.port, self.queries, self.options.rate, self.options.burst, 0,
                                                      *self.query_ports], latencies, 3, WAIT="1")
        generator.stdout.readline()
        return generator

    def update(self, rate, latencies, through=False):
        key = updates.KEY
        return self.program("bench_update_load", [
            self.server.port, "example", key["name"], key["secret"], 0, UPDATE_PORTS, updates.NAMES, rate,
            *(self.same_ports if through else self.update_ports)], latencies, 2)


def start(generator):
    generator.stdin.write("\n")
    generator.stdin.flush()


def told(process):
    process.send_signal(signal.SIGTERM)
    output = process.communicate(timeout=60)[0]
    return {name: float(value) for name, value in re.findall(r"(\w+) (-?[\d.]+)", output)}


class Window:
    """What happened while queries came for some seconds, beside `work` or nothing."""

    def __init__(self, subject, work, folder, kind):
        loader = None
        generator = subject.generate(folder / kind)
        if work:
            work.prepare()
            loader = work.updates and subject.update(work.updates, folder / "updates", work.through)
        time.sleep(0 if work and work.hasty else 0.5)
        before, batches = processors(), subject.batches()
        run, samples = run_time(subject.pid, subject.tid), Samples(subject.tid)
        start(generator)
        if work:
            work.run(subject.options.window)
        else:
            time.sleep(subject.options.window)
        generator.send_signal(signal.SIGTERM)
        time.sleep(0.02)  # the last answers; then the generator only waits for what will not come
        run = run_time(subject.pid, subject.tid) - run
        kernel, user = samples.stop()
        after = processors()
        result = told(generator)
        self.batches = {bound: count - batches[bound] for bound, count in subject.batches().items()}
        outcome = told(loader) if loader else {}
        self.updates, self.resent, self.refused = (outcome.get(name, 0) for name in ("rate", "resent", "refused"))
        if work:
            work.tidy()
        self.answered, self.lost, self.seconds = result["answered"], result["lost"] + result["bad"], result["seconds"]
        self.late = result["late"]
        each = run / 1000 / max(1, self.answered) / max(1, user + kernel)
        self.user, self.system = each * user, each * kernel
        self.busy = (after[0] - before[0]) / max(1, after[1] - before[1])
        self.stolen = (after[2] - before[2]) / max(1, after[3] - before[3])


class Work:
    """Other work: updates, and what a subclass does."""

    hasty = False  # it has begun when prepare() returns

    def __init__(self, rate=0, through=False):
        self.updates, self.through = rate, through

    def prepare(self):
        pass

    def run(self, seconds):
        time.sleep(seconds)

    def tidy(self):
        pass


class Burner(Work):
    def __init__(self, kind, share):
        super().__init__()
        self.kind, self.share = kind, share

    def prepare(self):
        self.process = subprocess.Popen([str(servers.build_folder() / "bench/bench_burner"), self.kind, f"{self.share:.3f}"],
                                        stdout=subprocess.PIPE)
        self.process.stdout.readline()

    def tidy(self):
        self.process.kill()
        self.process.communicate()


class Syncs(Work):
    """What an update does to the disk, without the update."""

    EACH = 0.005  # s

    def __init__(self, folder):
        super().__init__()
        self.folder = folder

    def run(self, seconds):
        waits = array.array("d")
        path = self.folder / "synced"
        file = os.open(path, os.O_RDWR | os.O_CREAT)
        os.posix_fallocate(file, 0, 16 << 20)
        os.fsync(file)
        begin = due = time.monotonic()
        at = 0
        while due < begin + seconds:
            time.sleep(max(0, due - time.monotonic()))
            at += os.pwrite(file, bytes(400), at)
            os.fdatasync(file)
            waits.append(1000 * (time.monotonic() - due))
            due += self.EACH
        os.close(file)
        path.unlink()
        with (self.folder / "updates").open("ab") as kept:
            waits.tofile(kept)


class Checkpoints(Work):
    """With `copies`, whole copies of the store between them, after each of which all chunks are checked."""

    def __init__(self, server, copies):
        super().__init__(1000)
        self.server, self.copies = server, copies

    def run(self, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.copies:
                self.server.control("--timeout", "600", "store", "copy", str(self.server.folder / "copy"))
                for path in self.server.folder.glob("copy*"):
                    path.unlink()
            self.server.control("--timeout", "600", "store", "checkpoint")


class Arrival(Work):
    """An AXFR of the zone: anew each time, or with other data while the old ones are served."""

    def __init__(self, server, primary, again):
        super().__init__(200)
        self.server, self.primary, self.again = server, primary, again

    def add(self):
        self.server.zones.append({"name": "big", "file": "big.copy", "primaries": ["upstream"]})
        self.server.write_config()
        self.server.control("--timeout", "600", "reload")

    def remove(self):
        self.server.zones.pop()
        self.server.write_config()
        self.server.control("--timeout", "600", "reload")
        settle(self.server)
        (self.server.folder / "big.copy").unlink(missing_ok=True)

    def is_there(self):
        return self.server.zones[-1]["name"] == "big"

    def prepare(self):
        if not self.again and self.is_there():
            self.remove()
        if self.again:
            if not self.is_there():
                self.add()
                updates.wait_for(self.server_zone(), self.primary.serial)
            settle(self.server)
            self.primary.renew()

    def server_zone(self):
        """As wait_for() asks: for the zone that arrives."""
        server = self.server

        class Asked:
            name, log = server.name, server.log

            @staticmethod
            def serial(_):
                return server.serial("big")
        return Asked

    def run(self, seconds):
        if self.again:
            self.primary.notify(self.server.port)
        else:
            self.add()
        updates.wait_for(self.server_zone(), self.primary.serial, 0.05, 3600)

    def tidy(self):
        time.sleep(1)
        settle(self.server)  # the copy on disk, what is given back


class Compaction(Work):
    """Compaction of a zone of which 30 of 100 names were just replaced."""

    hasty = True

    def __init__(self, server, primary):
        super().__init__(200)
        self.server, self.primary, self.walks = server, primary, 0

    def walked(self):
        return self.server.control("status")["counters"]["upkeep_walks"]

    def prepare(self):
        settle(self.server)
        self.before = self.walked()
        self.primary.change(self.primary.size * 6 // 10)
        self.primary.notify(self.server.port)
        while self.server.serial("churn") != self.primary.serial:
            time.sleep(0.005)

    def run(self, seconds):
        begin = time.monotonic()
        while self.walked() == self.before and time.monotonic() - begin < 60:  # updates keep the chunks from settling
            time.sleep(0.3)
        time.sleep(max(0, begin + seconds - time.monotonic()))
        self.walks += self.walked() - self.before


class Alternating(Primary):
    """A primary with two sets of data, made once, so that the next version costs nothing."""

    def prepare(self):
        self.bodies = []
        for _ in range(2):
            self.bodies.append(list(self.whole_zone())[1:-1])
            self.base += 1 << 20
        self.show()

    def show(self):
        size, self.size = self.size, 0
        first, last = self.whole_zone()
        self.size = size
        self.whole = [first, *self.bodies[self.serial % 2], last]

    def renew(self):
        self.serial += 1
        self.first = self.serial
        self.show()


def settle(server, seconds=1.5):
    """Until the store's chunks have not changed for so long."""
    last, since = None, time.monotonic()
    while time.monotonic() - since < seconds:
        now = server.control("status")["store"]["chunks_in_use"]
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.15)


def probe_ports(server, wanted):
    """Local ports by the worker that gets what they send: the kernel chooses it by the addresses and ports of both sides. `wanted`:
    how many by slot."""
    import socket
    import dns.message
    query = dns.message.make_query("steady", "SOA").to_wire()
    found = {slot: [] for slot in wanted}
    before = {slot: row["counters"]["queries_udp"] for slot, row in server.workers().items()}
    while any(len(found[slot]) < count for slot, count in wanted.items()):
        port = servers.free_port()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.bind(("127.0.0.1", port))
            client.settimeout(5)
            for _ in range(4):
                client.sendto(query, ("127.0.0.1", server.port))
                client.recv(512)
        after = {slot: row["counters"]["queries_udp"] for slot, row in server.workers().items()}
        chosen = [slot for slot in wanted if after[slot] - before[slot] >= 4]
        if len(chosen) != 1:
            raise SystemExit("queries of one port come to several workers")
        if port not in found[chosen[0]]:
            found[chosen[0]].append(port)
        before = after
    return found


class Table:
    def __init__(self, folder, options):
        self.folder, self.options, self.share = folder, options, {}
        print("| beside | user µs per query | × idle (lowest to highest pair) | system µs | × idle | queries/s | lost | "
              "99.9 % of responses below µs | longest below µs | above 256 µs | queries: p99.9, max µs | idle: p99.9, max µs | updates/s | "
              "UPDATE p50, p99, max ms | second processor at work: idle, loaded | stolen |")
        print("|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)

    def folder_of(self, name):
        return self.folder / re.sub(r"\W+", "-", name)

    def row(self, name, subject, work):
        folder = self.folder_of(name)
        folder.mkdir()
        pairs = []
        for _ in range(self.options.pairs):
            idle = Window(subject, None, folder, "idle")
            pairs.append((idle, Window(subject, work, folder, "loaded")))
        loaded = [pair[1] for pair in pairs]
        user = sorted(b.user / a.user for a, b in pairs if a.user)
        middle = statistics.median
        batches = {}
        for window in loaded:
            for bound, count in window.batches.items():
                batches[bound] = batches.get(bound, 0) + count
        waits, quiet, update = (taken(folder / kind) for kind in ("loaded", "idle", "updates"))
        self.share[name] = middle(b.busy for _, b in pairs) - middle(a.busy for a, _ in pairs)
        seconds = sum(window.seconds for window in loaded)
        cells = [
            name, f"{middle(w.user for w in loaded):.2f}", f"{middle(user):.2f} ({user[0]:.2f} to {user[-1]:.2f})",
            f"{middle(w.system for w in loaded):.2f}", f"{middle(b.system / a.system for a, b in pairs):.2f}",
            f"{sum(w.answered for w in loaded) / seconds:,.0f}", f"{sum(w.lost for w in loaded):,.0f}",
            *self.of_batches(batches), f"{percentile(waits, 0.999):,.0f}, {percentile(waits, 1):,.0f}",
            f"{percentile(quiet, 0.999):,.0f}, {percentile(quiet, 1):,.0f}",
            f"{middle(w.updates for w in loaded):,.0f}" if any(w.updates for w in loaded) else "",
            ", ".join(f"{percentile(update, share):.2f}" for share in (0.5, 0.99, 1)) if update else "",
            f"{middle(a.busy for a, _ in pairs):.0%}, {middle(b.busy for _, b in pairs):.0%}",
            f"{max(w.stolen for pair in pairs for w in pair):.1%}"]
        print(f"| {' | '.join(cells)} |", flush=True)
        late = max(w.late for pair in pairs for w in pair)
        notes = [f"{name}: the generator itself was late by {late / 1000:.1f} ms once"] if late > 1000 else []
        for what in ("resent", "refused"):
            if count := sum(getattr(window, what) for window in loaded):
                notes.append(f"{name}: {count:.0f} updates {what}")
        return notes

    @staticmethod
    def of_batches(batches):
        whole = sum(batches.values())
        if whole == 0:
            return ["", "", ""]
        below, most = 0, 0
        for bound, count in sorted(batches.items()):
            below += count
            most = bound
            if below >= 0.999 * whole:
                break
        late = sum(count for bound, count in batches.items() if bound > 256)
        return [str(most), str(max(bound for bound, count in batches.items() if count)), f"{late} of {whole:,}"]


def write_inputs(folder):
    steady, queries = folder / "steady.zone", folder / "queries"
    with steady.open("w") as out:
        out.write("$ORIGIN steady.\n$TTL 300\n@ SOA ns admin 1 3600 600 1209600 300\n@ NS ns\nns A 192.0.2.1\n")
        out.writelines(f"n{i} 60 A 192.0.2.1\n" for i in range(NAMES))
    order = list(range(NAMES))
    random.Random(1).shuffle(order)
    queries.write_text("".join(f"n{i}.steady. A\n" for i in order))
    return steady, queries


def start_pando(folder, steady, queries, options, primaries):
    remotes = [{"name": name, "address": [f"127.0.0.1@{primary.port}"]} for name, primary in primaries.items()]
    zones = [{"name": "steady", "file": str(steady)},
             {"name": "example", "file": str(updates.zone_file(folder)), "allow-update": [{"key": updates.KEY["name"]}]}]
    if "churn" in primaries:
        zones.append({"name": "churn", "primaries": ["churn"]})
    server = servers.Pando(folder / "pando", zones, keys=[updates.KEY], workers=2, size_limit="16GiB", remotes=remotes,
                           store_extra="  image: zones.image\n  checkpoint: {interval: 24h, journal: 32GiB}")
    server.start("example")
    subject = Subject(server, queries, options)
    rows = server.workers()
    first, second = sorted(rows)
    subject.choose(rows[first]["pid"], rows[first]["pid"])
    os.sched_setscheduler(rows[second]["pid"], os.SCHED_FIFO, os.sched_param(1))
    ports = probe_ports(server, {first: QUERY_PORTS + UPDATE_PORTS, second: UPDATE_PORTS})
    subject.query_ports, subject.same_ports = ports[first][:QUERY_PORTS], ports[first][QUERY_PORTS:]
    subject.update_ports = ports[second]
    server.control("--timeout", "600", "store", "checkpoint")
    return subject


def start_peer(kind, folder, steady, queries, options):
    """One that takes the updates, too; the thread that worked most while queries came is the one that answers them."""
    (folder / kind).mkdir()
    example = updates.zone_file(folder / kind)
    server = updates.updated(kind, folder / kind / "server", example, more={"steady": steady}).start("example")
    servers.wait_until("both zones serve", lambda: server.serves("steady"), 120)
    subject = Subject(server, queries, options)
    pid = server.process.pid
    before = {tid: run_time(pid, tid) for tid in threads(pid)}
    generator = subject.generate(folder / "ignored")
    time.sleep(1)
    told(generator)
    subject.choose(pid, max(before, key=lambda tid: run_time(pid, tid) - before[tid]))
    return subject


def pando_rows(table, subject, options, primaries):
    rows, server, notes = options.rows, subject.server, []
    plain = {"idle": ("nothing", None), "200": ("200 updates/s", Work(200)), "1000": ("1,000 updates/s", Work(1000)),
             "10000": ("10,000 updates/s", Work(10_000)), "through": ("10,000 updates/s through the same worker", Work(10_000, True))}
    for key, (name, work) in plain.items():
        if key in rows:
            notes += table.row(name, subject, work)
    if "compaction" in rows:
        updates.wait_for_zone(server, "churn")
        work = Compaction(server, primaries["churn"])
        notes += table.row(f"compaction of {primaries['churn'].size:,} names", subject, work)
        notes.append(f"compaction: {work.walks} walks in {options.pairs} windows" + ("" if work.walks else ", so this row says nothing"))
    if "upstream" in primaries:
        for key, name in (("axfr", "AXFR of {:,} records"), ("again", "AXFR of {:,} records in place of others")):
            if key in rows:
                notes += table.row(name.format(options.records), subject, Arrival(server, primaries["upstream"], key == "again"))
    for key, name in (("checkpoints", "checkpoints"), ("copies", "copies of the store and checkpoints")):
        if key in rows:
            image = server.control("status")["image"]
            notes += table.row(name, subject, Checkpoints(server, key == "copies"))
            after = server.control("status")["image"]
            notes.append(f"{name}: {after['checkpoints'] - image['checkpoints']} with "
                         f"{(after['bytes_written'] - image['bytes_written']) / 1e6:,.1f} MB, longest capture "
                         f"{after['longest_capture_us']} µs, {server.control('status')['store']['live'] / 1e6:,.0f} MB live")
    if "controls" in rows:
        shares = [options.share] if options.share else sorted({round(min(0.95, max(0.05, share)), 2) for name, share in table.share.items()
                         if name in ("10,000 updates/s", f"AXFR of {options.records:,} records")}) or [0.5]
        for share in shares:
            notes += table.row(f"control: registers, {share:.0%}", subject, Burner("spin", share))
            notes += table.row(f"control: 64 MiB at random, {share:.0%}", subject, Burner("memory", share))
    if "disk" in rows:
        name = "control: a file, synced 200 times per second"
        notes += table.row(name, subject, Syncs(table.folder_of(name)))
    return notes


def arguments(words):
    parser = argparse.ArgumentParser(prog="bench/updates.py isolation", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("size", nargs="?", type=float, help="the same as --records")
    parser.add_argument("--records", type=float, default=1_000_000, help="of the zone that arrives")
    parser.add_argument("--pairs", type=int, default=5, help="windows without and with the work, for each row")
    parser.add_argument("--window", type=float, default=6, help="seconds of a window, where the work does not say")
    parser.add_argument("--rate", type=int, default=20_000, help="queries per second")
    parser.add_argument("--burst", type=int, default=16, help="queries that are sent together")
    parser.add_argument("--share", type=float, help="of a processor that the controls take; without, as much as the work did")
    parser.add_argument("--rows", default=",".join(ROWS), type=lambda text: text.split(","))
    parser.add_argument("--peers", default="bind,knot", type=lambda text: [kind for kind in text.split(",") if kind])
    options = parser.parse_args(words)
    options.records = int(options.size or options.records)
    if unknown := set(options.rows) - set(ROWS):
        parser.error(f"no such rows: {', '.join(unknown)}")
    return options


def pace_of(processor):
    """Nanoseconds of processor time of a fixed loop on a processor: whether two of them are alike."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {processor})
    begin = time.process_time_ns()
    sum(range(3_000_000))
    spent = time.process_time_ns() - begin
    os.sched_setaffinity(0, own)
    return spent / 1e6


def run(folder, words):
    options = arguments(words)
    if (os.cpu_count() or 1) < 2 or os.getuid() != 0:
        raise SystemExit("needs two processors, and root for real-time priority and samples")
    print(f"Processor {ANSWERING}: the thread that answers queries, alone, SCHED_FIFO 1. Processor {OTHERS}: manager, the worker that "
          "passes updates on (SCHED_FIFO 1), generators of queries (3) and updates (2), primaries, burners.")
    print(f"{options.rate:,} queries per second in bursts of {options.burst} at random times over {NAMES:,} names; {options.pairs} pairs "
          f"of windows of {options.window:g} s. A fixed loop takes {pace_of(0):.0f} ms on one, {pace_of(1):.0f} ms on the other.\n")
    os.sched_setaffinity(0, {OTHERS})
    steady, queries = write_inputs(folder)
    primaries = {}
    if {"axfr", "again"} & set(options.rows):
        primaries["upstream"] = Alternating(options.records, "big")
        primaries["upstream"].prepare()
    if "compaction" in options.rows:
        primaries["churn"] = Primary(min(CHURN, max(200_000, options.records)), "churn")
    table, notes = Table(folder, options), []
    with contextlib.ExitStack() as stack:
        if set(options.rows) - {"peers"}:
            subject = start_pando(folder, steady, queries, options, primaries)
            stack.callback(subject.server.clean)
            notes += pando_rows(table, subject, options, primaries)
    for kind in options.peers if "peers" in options.rows else []:
        subject = start_peer(kind, folder, steady, queries, options)
        try:
            notes += table.row(f"{kind}: nothing", subject, None)
            for rate in (1000, 10_000):
                notes += table.row(f"{kind}: {rate:,} updates/s", subject, Work(rate))
        finally:
            subject.server.stop()
    print("\n" + "\n".join(notes))
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(f"Generators, controls and servers took {used.ru_utime + used.ru_stime:,.0f} s of processor time in all.")
