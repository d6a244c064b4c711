"""Signatures and the host's clock: one that jumps while the manager runs, or is wrong at its start. A library in front of the
C library moves the manager's wall clock alone."""

import struct
import subprocess
import time

import dns.rcode
import dns.rdatatype
import pytest

import servers
from test_served_signed import ZONE, TEXT, send, zone_of

pytestmark = pytest.mark.release  # no library may come before that of a sanitizer

DAY = 86400
MOVED_CLOCK = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>

static const volatile long *state;  /* seconds that the clock is ahead; whether it is synchronised */

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("MOVED_CLOCK");
  if (!path || strcmp(program_invocation_short_name, "pando-manager") != 0) return;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  const void *const found = mmap(0, 2 * sizeof(long), PROT_READ, MAP_SHARED, fd, 0);
  if (found != MAP_FAILED) state = found;
}
int clock_gettime(clockid_t clock, struct timespec *now) {
  static int (*next)(clockid_t, struct timespec *);
  if (!next) next = dlsym(RTLD_NEXT, "clock_gettime");
  const int done = next(clock, now);
  if (state && clock == CLOCK_REALTIME) now->tv_sec += state[0];
  return done;
}
time_t time(time_t *into) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (into) *into = now.tv_sec;
  return now.tv_sec;
}
int adjtimex(struct timex *into) {
  memset(into, 0, sizeof *into);
  return state && state[1] ? TIME_OK : TIME_ERROR;
}
"""


class Clock:
    def __init__(self, folder):
        self.path = folder / "clock"
        self.set(0)

    def set(self, ahead, synchronised=False):
        octets = struct.pack("@ll", ahead, synchronised)
        if self.path.exists():
            with open(self.path, "r+b") as file:
                file.write(octets)
        else:
            self.path.write_bytes(octets)


@pytest.fixture
def clock(tmp_path, monkeypatch):
    (tmp_path / "moved.c").write_text(MOVED_CLOCK)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "moved.so", tmp_path / "moved.c", "-ldl"], check=True)
    made = Clock(tmp_path)
    monkeypatch.setenv("LD_PRELOAD", str(tmp_path / "moved.so"))
    monkeypatch.setenv("MOVED_CLOCK", str(made.path))
    return made


@pytest.fixture
def server(pando, clock, tmp_path):
    (tmp_path / "zone").write_text(TEXT)
    return pando([{"name": ZONE, "file": str(tmp_path / "zone"), "dnssec": "default", "allow-update": [{"address": "127.0.0.0/8"}],
                   "allow-transfer": [{"address": "127.0.0.0/8"}]}], workers=1).start(ZONE)


def status(server):
    return server.control("dnssec", "status", ZONE, check=False)


def all_are_valid_now(server):
    now = time.time()
    return all(rdata.inception <= now <= rdata.expiration and rdata.expiration < now + 15 * DAY
               for _, _, rdata in zone_of(server).iterate_rdatas() if rdata.rdtype == dns.rdatatype.RRSIG)


@pytest.mark.parametrize("ahead", [DAY, -DAY, 24 * 365 * DAY, -50 * 365 * DAY])
def test_a_clock_that_jumps_changes_no_signature(server, clock, ahead):
    send(server, ("add", "before", 60, "A", "192.0.2.1"))
    clock.set(ahead)
    servers.wait_until("it is seen", lambda: status(server)["clock"])
    send(server, ("add", "after", 60, "A", "192.0.2.1"))
    time.sleep(2)
    assert all_are_valid_now(server) and "signing_clock_jumped" in server.log()
    clock.set(0)
    servers.wait_until("it is right again", lambda: not status(server)["clock"])
    send(server, ("add", "later", 60, "A", "192.0.2.1"))
    assert all_are_valid_now(server)


@pytest.mark.parametrize("ahead", [-DAY, -50 * 365 * DAY, 24 * 365 * DAY])
@pytest.mark.parametrize("end", ["clock-ok", "synchronised"])
def test_a_clock_that_is_wrong_at_a_start_signs_nothing(server, clock, ahead, end):
    server.kill()
    clock.set(ahead)
    server.start(ZONE)
    servers.wait_until("it is in doubt", lambda: "clock" in status(server)["problem"])
    send(server, ("add", "new", 60, "A", "192.0.2.1"), rcode=dns.rcode.SERVFAIL)
    time.sleep(2)
    assert all_are_valid_now(server)
    clock.set(0, synchronised=end == "synchronised")
    if end == "clock-ok":
        server.control("dnssec", "clock-ok")
    servers.wait_until("it is believed", lambda: not status(server)["problem"])
    send(server, ("add", "new", 60, "A", "192.0.2.1"))
    assert all_are_valid_now(server)


def test_a_zone_that_was_away_for_long_is_signed_again_by_a_synchronised_clock(server, clock):
    server.kill()
    clock.set(60 * DAY, synchronised=True)
    server.start(ZONE)

    def is_renewed():
        return all(rdata.expiration > time.time() + 65 * DAY for _, _, rdata in zone_of(server).iterate_rdatas()
                   if rdata.rdtype == dns.rdatatype.RRSIG)

    servers.wait_until("all signatures are new", is_renewed)
