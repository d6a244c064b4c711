#pragma once

#include <nlohmann/json.hpp>

#include "base/result.h"
#include "ipc/control_results.h"

/// The JSON form of the results of control requests: objects that have every member, also the empty
/// ones, by the member's name.
namespace pando::ipc {

// Absent members keep their defaults, so that programs of neighbouring versions understand each
// other. A list without its rows is an error.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CatalogRow, zone, role, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(FoundDamageRow, found_at, text)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(XdpQueueRow, queue, slot, zero_copy)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(XdpRow, interface, mode, problem, queues, served)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StatusResult, version, build, program, pid, started,
                                                configuration, configured, zone_lists, problem,
                                                restart_needed, worker_mode, worker_isolation,
                                                workers_wanted, workers_running, addresses, xdp,
                                                zones, zones_loaded, catalogs, store_version, store,
                                                journal, image, image_not_used, image_quarantined,
                                                damage_found, counters)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ZoneRow, name, kind, state, serial, records, names,
                                                history, added, frozen, catalog, catalog_role,
                                                catalog_members, file, primaries, notified,
                                                refresh_at, expires_at, last_ok, signatures_end,
                                                primary_serial, signature_faults, problem,
                                                load_phase, load_done, load_total, judged_by,
                                                judged_since, judged_until,
                                                dnssec, ds, change_from, change_step, change_since,
                                                removed_at, kept_until, updates_kept)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneListResult, zones, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SigningKeyRow, role, algorithm, tag, bits,
                                                part, uses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DnssecStatusResult, zone, policy, stage, next,
                                                until, serial, keys, ds, cds, signatures_end,
                                                roll, roll_wait, roll_until, roll_next, problem,
                                                clock, note)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DnssecRow, zone, stage, until, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(DnssecListResult, zones, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DnssecCheckResult, zone, policy, serial, keys,
                                                makes_key, signatures, left_out, max_ttl, problems,
                                                notes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TlsCertificateRow, file, subject, until, pin,
                                                problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TlsRemoteRow, remote, authenticated, hostname, pins,
                                                certificate, problem)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TlsStatusResult, served, certificate, next_pin,
                                                remotes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(WorkerRow, slot, pid, state, started, restarts,
                                                leases, counters, opcodes, rcodes, types,
                                                page_tables, build)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(WorkerListResult, mode, workers)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ZoneQueriesRow, slot, zone, queries)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneQueriesResult, rows)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ReloadResult, zones_added, zones_removed,
                                                zones_kept, zones_changed, restart_needed, warnings,
                                                zones_failed, problems, zones_being_judged)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ExportResult, zone, serial, records, file, written)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DumpResult, zones, records, changesets, bytes,
                                                position)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SnapshotResult, zone, label, serial, in_image)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SnapshotRow, zone, label, serial, taken, records,
                                                lost)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SnapshotListResult, snapshots, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RecordRow, owner, ttl, type, rdata)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneReadResult, zone, serial, records, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneDiffResult, zone, from, to, removed, added, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ChangesetRow, from, to, removed, added, by, client)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneHistoryResult, zone, serial, changesets, next)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ExplainResult, question, zone, serial, rcode,
                                                authoritative, steps, answer, authority, additional)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TransactionRow, zone, serial, changes, expires_at)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(TransactionList, transactions)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(CommittedZone, zone, from, to, removed, added)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneCommitResult, committed)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ConfigShowResult, zone, yaml)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SettingChangeRow, key, before, after, restart)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ZoneChangeRow, zone, settings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(ConfigDiffResult, settings_changed, zones_added,
                                                zones_removed, zones_changed, settings, added,
                                                removed, changed, warnings)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpKeyRow, name, digest, role, zones)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpRemoteRow, name, addresses)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(HttpTsigKeyRow, name, algorithm)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HttpSettingsResult, label, keys, hosts,
                                                template_name, remotes, tsig_keys)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(LogLevelResult, level, configured)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JournalRecordRow, position, time, zone, kind, from,
                                                to, note, removed_count, added_count, removed,
                                                added, by, client)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(JournalPrintResult, snapshot, last, next, records, damage)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(SnapshotUsage, zone, label, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StoreAudit, version, zones, names, records, bytes,
                                                faults_found, faults, snapshots)

/// Compares the members that both sides have, and the elements of lists. The library reads any
/// number into any type of number, so -1 and 2^32 come out as other numbers of 32 bits.
[[nodiscard]] bool same_where_given(const nlohmann::json& read, const nlohmann::json& given);
/// kInvalid with the library's reason, on one line.
[[nodiscard]] Error json_error(const nlohmann::json::exception& thrown);

/// Reads one of the types above, or another with a `from_json`. The only door for JSON of other
/// processes: kInvalid for a wrong type or a number out of range; never throws.
template <class T>
Result<T> read_json(const nlohmann::json& given) {
  try {
    T value = given.get<T>();
    if (same_where_given(value, given)) return value;
    return fail(Errc::kInvalid, "a member is no number of its range");
  } catch (const nlohmann::json::exception& thrown) {
    return tl::unexpected<Error>(json_error(thrown));
  }
}

}  // namespace pando::ipc
