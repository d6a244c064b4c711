"""Pauses, paces and limits of time have a steady clock: a host's clock that is put back must not stretch them.

Each file that reads the host's time is listed with the reason why it is the right one there. The list may only shrink: an
entry that is not needed any more has to leave, and a new file needs a reason that is one of the kinds below."""

import re

import tree

READS = re.compile(r"\bunix_(?:milli)?seconds\b|\bsystem_clock\b|\bstd::time\b|\bCLOCK_REALTIME\w*|::gettimeofday\b"
                   r"|\butc_clock\b|\bfile_clock\b|\btimespec_get\b")

SIGNED = "signatures are valid between times of the host's clock (RFC 8945, RFC 4034)"
SHOWN = "people and programs read it as a date"
STORED = "the time outlives the process, whose steady clock begins anew"
SERIAL = "serials of the policies date and unixtime (RFC 1912)"
FILE = "compared with the times of files"

MOST_READERS = 40
MAY_READ = {
    "base/unix_time.h": "defines the functions",
    "ctl/backup/backup_command.cpp": SHOWN,
    "ctl/commands/check_commands.cpp": SIGNED,
    "ctl/compare/transfer_client.cpp": SIGNED,
    "ctl/signing/sign_command.cpp": f"{SIGNED}; {SERIAL}",
    "http/api/api_routes.cpp": SERIAL,
    "http/api/pdns_json.cpp": SHOWN,
    "http/page/overview_json.cpp": SHOWN,
    "http/page/zone_rows.cpp": f"{SHOWN}; beside times of expiry, which are {STORED}",
    "manager/checkpoint/image.cpp": SHOWN,
    "manager/checkpoint/store_dump.cpp": SHOWN,
    "manager/commit/next_version.cpp": f"{SHOWN}: when a version was made",
    "manager/commit/zone_table_sync.cpp": f"{STORED}: when a zone left the configuration",
    "manager/catalog/catalogs.cpp": f"{SHOWN}: when members leave",
    "manager/control/record_control.cpp": f"{STORED}: whether a zone has expired",
    "manager/control/zone_control.cpp": f"{SERIAL}; snapshots: {SHOWN}",
    "manager/control/zone_report.cpp": f"{STORED}: whether a zone has expired",
    "manager/journal/journal_snapshot.cpp": SHOWN,
    "manager/notify/notifier.cpp": f"{SHOWN}: of the last answer",
    "manager/notify/notify_out.cpp": SIGNED,
    "manager/change/change_judgement.cpp": SIGNED,
    "manager/secondary/refresher.cpp": f"{STORED}: refresh and expiry; a clock that is put back is noticed",
    "manager/secondary/transfer_in.cpp": SIGNED,
    "manager/server/server.cpp": f"{STORED}: since when a zone is not configured",
    "manager/server/service_start.cpp": SHOWN,
    "manager/server/server_setup.cpp": f"{SIGNED}; the start: {SHOWN}",
    "manager/start/reloader.cpp": SHOWN,
    "manager/start/removed_zones.cpp": f"{STORED}: since when a zone is not configured",
    "manager/start/removed_zones.h": f"{STORED}: since when a zone is not configured",
    "manager/support/found_damage.cpp": SHOWN,
    "manager/support/withheld_data.cpp": SHOWN,
    "manager/update/zone_transactions.cpp": f"{SERIAL}; when a transaction ends: {SHOWN}",
    "manager/verifier/program_places.cpp": SHOWN,
    "manager/workers/worker_processes.cpp": f"{SHOWN}: when a process has begun",
    "manager/workers/worker_link.cpp": SIGNED,
    "manager/merge/merge_base.cpp": FILE,
    "manager/zonefile/zone_file_check.cpp": f"{SIGNED}; {SERIAL}",
    "shm/reader.cpp": f"{SHOWN}: the worker's start",
    "worker/net/core.cpp": f"{SIGNED}; cookies (RFC 9018); expiry: {STORED}. Limits compare it for equality alone",
    "worker/tap/taps.cpp": f"{SHOWN}: of a query",
}


def readers():
    """Comments and the declarations of a clock's type do not count."""
    found = set()
    for path in tree.SOURCES:
        code = re.sub(r"//[^\n]*", "", path.read_text())
        if READS.search(code):
            found.add(tree.relative(path))
    return found


def test_only_listed_files_read_the_hosts_time():
    new = readers() - MAY_READ.keys()
    assert not new, f"pauses need base/steady_time.h; dates of people and signatures a reason in this list: {sorted(new)}"


def test_the_list_only_shrinks():
    assert len(MAY_READ) <= MOST_READERS


def test_the_list_has_no_others():
    gone = MAY_READ.keys() - readers()
    assert not gone, f"these read it no more, and can leave the list: {sorted(gone)}"
