#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

/// The results of control requests; ipc/control_json.h gives their JSON form. A member's name is
/// its name in JSON; times are seconds since 1970, 0 = never.
namespace pando::ipc {

/// Named numbers for people and monitoring, e.g. {"queries": 12}.
using Counters = std::map<std::string, std::uint64_t>;

/// A catalog zone (RFC 9432) of the configuration.
struct CatalogRow {
  std::string zone{};
  std::string role{};     ///< "producer" or "consumer"
  std::string problem{};  ///< of the catalog or its members
  bool operator==(const CatalogRow&) const = default;
};

/// Damage of data that the manager found.
struct FoundDamageRow {
  std::uint64_t found_at = 0;
  std::string text{};  ///< the file or the data, and what is wrong
  bool operator==(const FoundDamageRow&) const = default;
};

/// A receive queue that a worker serves by an AF_XDP socket.
struct XdpQueueRow {
  std::uint32_t queue = 0;
  std::uint32_t slot = 0;
  bool zero_copy = false;  ///< the driver writes into the worker's memory itself
  bool operator==(const XdpQueueRow&) const = default;
};

/// An interface of `server.xdp`.
struct XdpRow {
  std::string interface{};
  std::string mode{};        ///< "native" or "generic"; empty: no program is attached
  std::string problem{};     ///< why sockets answer instead
  std::uint32_t queues = 0;  ///< receive queues that workers are to serve
  std::vector<XdpQueueRow> served{};
  bool operator==(const XdpRow&) const = default;
};

struct StatusResult {
  std::string version{};  ///< of the program
  std::string build{};    ///< its build ID, as hexadecimal digits
  std::string program{};  ///< its path
  std::uint32_t pid = 0;
  std::uint64_t started = 0;
  std::string configuration{};   ///< path of the file
  std::uint64_t configured = 0;  ///< time of the last load of the configuration
  std::string zone_lists{};      ///< "read", "reading", or "failed": the store's zones are served
  std::string problem{};         ///< why zone lists are not read, or updates refused
  /// Keys of the configuration in force whose change waits for a restart of the manager.
  std::vector<std::string> restart_needed{};
  std::string worker_mode{};  ///< "managed" or "external"
  /// "user": workers run as a user of their own; "none": as the manager's
  std::string worker_isolation{};
  std::uint32_t workers_wanted = 0;
  std::uint32_t workers_running = 0;
  /// ADDRESS@PORT of `server.listen` → empty, or why it is not open.
  std::map<std::string, std::string> addresses{};
  std::vector<XdpRow> xdp{};
  std::uint64_t zones = 0;
  std::uint64_t zones_loaded = 0;
  std::vector<CatalogRow> catalogs{};
  std::uint64_t store_version = 0;  ///< number of the published version
  Counters store{};    ///< bytes: "file", "live", "limit"; chunks: "in-use", "free", ...
  Counters journal{};  ///< "position", "bytes", ...
  Counters image{};    ///< "version", "position", ...; empty: none is configured, or written
  /// Path of the image that this start did not use, and the reason, while there is no newer one.
  std::string image_not_used{};
  std::string image_quarantined{};  ///< path of a quarantined image, and the reason
  /// Damage of journal, store and image that this process found; mended unless a problem tells.
  std::vector<FoundDamageRow> damage_found{};
  Counters counters{};              ///< all other counters: "updates", "transfers_in", ...
  bool operator==(const StatusResult&) const = default;
};

struct ZoneRow {
  std::string name{};   ///< with final dot
  std::string kind{};   ///< "primary" or "secondary"
  std::string state{};  ///< "ok", "loading", "not-loaded", "expired", "removed"
  std::uint32_t serial = 0;
  std::uint64_t records = 0;
  std::uint64_t names = 0;
  std::uint64_t history = 0;   ///< bytes of the changesets kept for IXFR
  bool added = false;          ///< by `pandoctl zone add`, not by configuration or catalog
  bool frozen = false;         ///< neither updates nor transfers change it
  std::string catalog{};       ///< the catalog zone of which it is a member
  std::string catalog_role{};  ///< of a catalog zone: "producer" or "consumer"
  // The following fields appear in zone-status only, except for the beginning of `problem`.
  std::uint64_t catalog_members = 0;  ///< of a catalog zone: number of its members here
  std::string file{};
  std::vector<std::string> primaries{};  ///< ADDRESS@PORT
  /// ADDRESS@PORT of each NOTIFY target → outcome of the last NOTIFY, as text for people.
  std::map<std::string, std::string> notified{};
  std::uint64_t refresh_at = 0;
  std::uint64_t expires_at = 0;
  std::uint64_t last_ok = 0;           ///< last successful check with a primary
  std::uint64_t signatures_end = 0;    ///< end of a signed zone's first signature; 0 = unknown
  /// Of a secondary zone that is signed here: the serial that its data have at the primary; else 0.
  std::uint32_t primary_serial = 0;
  std::uint64_t signature_faults = 0;  ///< found when the zone was verified last
  std::string problem{};               ///< why the last load, transfer or export failed
  /// While a large file is loaded: "preparing", "reading" (counts bytes), "sorting", "building"
  /// (records), "comparing" (names), "checking", "judging", "putting".
  std::string load_phase{};
  std::uint64_t load_done = 0;   ///< amount done in that phase
  std::uint64_t load_total = 0;  ///< 0 = not known
  /// Path of the program that judges a new version, or is to; empty: none.
  std::string judged_by{};
  std::uint64_t judged_since = 0;  ///< 0: the program has not begun
  std::uint64_t judged_until = 0;  ///< without a verdict by then the version is refused
  std::string dnssec{};          ///< policy by which the zone is signed here; empty: it is not
  std::vector<std::string> ds{};  ///< of its keys, for the parent: tag, algorithm, digest type, digest
  // The oldest change of the zone's data that is under way.
  /// "update", "edit", "file", "transfer", "rollback", "signing"; empty: none.
  std::string change_from{};
  /// "waiting", "computing", "signing", "judging", "staging", "journalling".
  std::string change_step{};
  std::uint64_t change_since = 0;  ///< time at which the step began
  // Of a zone that left the configuration:
  std::uint64_t removed_at = 0;
  std::uint64_t kept_until = 0;  ///< 0 = until it is purged
  std::string updates_kept{};    ///< records that updates made unlike the file, or "unknown"
  bool operator==(const ZoneRow&) const = default;
};

/// A key of a zone that is signed here.
struct SigningKeyRow {
  std::string role{};  ///< "CSK", "KSK" or "ZSK"
  std::uint8_t algorithm = 0;
  std::uint16_t tag = 0;
  std::uint32_t bits = 0;
  /// While keys follow others: "old", "new" or "stays", and the uses: "published", "signs keys",
  /// "signs data", "ds".
  std::string part{};
  std::vector<std::string> uses{};
  bool operator==(const SigningKeyRow&) const = default;
};

struct DnssecStatusResult {
  std::string zone{};
  std::string policy{};
  /// "keys-missing", "signing", "spreading", "ds-wanted", "secure", "no-ds-wanted", "ds-expiring",
  /// "unsigning", "unsigned".
  std::string stage{};
  std::string next{};          ///< what begins the next stage, for people
  std::uint64_t until = 0;     ///< when it begins by itself; 0: it does not
  std::uint32_t serial = 0;
  std::vector<SigningKeyRow> keys{};
  std::vector<std::string> ds{};  ///< RDATA, for the parent
  std::string cds{};              ///< "keys", "removal"; empty: the zone has no CDS records
  std::uint64_t signatures_end = 0;
  /// The step by which keys follow others: "sign", "publish", "swap", "withdraw", "remove"; empty:
  /// none do.
  std::string roll{};
  /// The event that begins the next step: "zone", "signatures", "parent", "caches", "operator".
  std::string roll_wait{};
  std::uint64_t roll_until = 0;  ///< the end of the wait for caches
  std::string roll_next{};       ///< what begins the next step, for people
  std::string problem{};
  std::string clock{};  ///< that the host's clock is not followed
  std::string note{};   ///< what the policy says and does not do to the zone
  bool operator==(const DnssecStatusResult&) const = default;
};

struct DnssecRow {
  std::string zone{};
  std::string stage{};
  std::uint64_t until = 0;
  std::string problem{};
  bool operator==(const DnssecRow&) const = default;
};

struct DnssecListResult {
  std::vector<DnssecRow> zones{};
  std::string next{};  ///< for `after`; empty at the end
};

struct DnssecCheckResult {
  std::string zone{};
  std::string policy{};
  std::uint32_t serial = 0;
  std::vector<SigningKeyRow> keys{};
  bool makes_key = false;
  std::uint64_t signatures = 0;
  std::uint64_t left_out = 0;  ///< records of other signers, and digests of the zone
  std::uint64_t max_ttl = 0;   ///< seconds
  std::vector<std::string> problems{};
  std::vector<std::string> notes{};
  bool operator==(const DnssecCheckResult&) const = default;
};

/// A certificate that this server shows.
struct TlsCertificateRow {
  std::string file{};     ///< empty: none of the configuration; with `pin`, one of an own key
  std::string subject{};  ///< empty: none that could be used
  std::uint64_t until = 0;
  std::string pin{};      ///< SHA-256 of its public key, in base64
  std::string problem{};  ///< why what the files have now is not in use
  bool operator==(const TlsCertificateRow&) const = default;
};

struct TlsRemoteRow {
  std::string remote{};
  bool authenticated = false;  ///< its certificate has to prove something
  std::string hostname{};
  std::vector<std::string> pins{};
  TlsCertificateRow certificate{};  ///< that it is shown; without a file, the server's
  std::string problem{};            ///< of the authorities' file
  bool operator==(const TlsRemoteRow&) const = default;
};

struct TlsStatusResult {
  bool served = false;  ///< server.listen-tls names an address
  TlsCertificateRow certificate{};
  std::string next_pin{};  ///< of the key that a roll puts into use; empty without own keys
  std::vector<TlsRemoteRow> remotes{};
  bool operator==(const TlsStatusResult&) const = default;
};

struct ZoneListResult {
  std::vector<ZoneRow> zones{};
  std::string next{};  ///< `after` for the next page; empty = this was the last one
  bool operator==(const ZoneListResult&) const = default;
};

struct WorkerRow {
  std::uint32_t slot = 0;
  std::uint32_t pid = 0;  ///< 0 = no process
  std::string state{};    ///< "starting", "serving", "draining", "dead"
  std::uint64_t started = 0;
  std::uint32_t restarts = 0;
  std::uint32_t leases = 0;  ///< transfers that pin a version
  Counters counters{};       ///< of the slot's page: "queries_udp", "tcp_open", ...
  Counters opcodes{};        ///< requests by opcode, "QUERY"; counters of 0 are left out
  Counters rcodes{};         ///< responses by RCODE, "NOERROR"; likewise
  Counters types{};          ///< queries by QTYPE, "AAAA"; likewise
  /// bytes of the kernel's page tables for all mappings of the process
  std::uint64_t page_tables = 0;
  std::string build{};  ///< build ID of its program; empty until it has said Hello
  bool operator==(const WorkerRow&) const = default;
};

struct WorkerListResult {
  std::string mode{};  ///< as StatusResult::worker_mode
  std::vector<WorkerRow> workers{};
  bool operator==(const WorkerListResult&) const = default;
};

/// Queries of one zone at one worker, estimated from a part of them.
struct ZoneQueriesRow {
  std::uint32_t slot = 0;
  std::string zone{};
  std::uint64_t queries = 0;  ///< grows; only its growth means anything
  bool operator==(const ZoneQueriesRow&) const = default;
};

/// The zones with the most queries at each worker.
struct ZoneQueriesResult {
  std::vector<ZoneQueriesRow> rows{};
  bool operator==(const ZoneQueriesResult&) const = default;
};

struct ReloadResult {
  std::uint64_t zones_added = 0;
  std::uint64_t zones_removed = 0;
  std::uint64_t zones_kept = 0;               ///< of these, zones whose updates are kept
  std::uint64_t zones_changed = 0;            ///< settings or file
  std::vector<std::string> restart_needed{};  ///< keys whose change waits for a restart
  std::vector<std::string> warnings{};
  std::uint64_t zones_failed = 0;  ///< zones whose file failed; their previous data is still served
  std::vector<std::string> problems{};   ///< "zone: reason" of the first failed zones
  std::uint64_t zones_being_judged = 0;  ///< zones whose programs have no verdict yet
  bool operator==(const ReloadResult&) const = default;
};

struct ExportResult {
  std::string zone{};
  std::uint32_t serial = 0;
  std::uint64_t records = 0;
  std::string file{};
  bool written = false;  ///< false: the file already had this content
  bool operator==(const ExportResult&) const = default;
};

/// A dump that is durable on disk.
struct DumpResult {
  std::uint64_t zones = 0;
  std::uint64_t records = 0;
  std::uint64_t changesets = 0;  ///< in the zones' histories
  std::uint64_t bytes = 0;
  std::uint64_t position = 0;  ///< position in the journal
  bool operator==(const DumpResult&) const = default;
};

/// The snapshot that a zone's present version became.
struct SnapshotResult {
  std::string zone{};
  std::string label{};
  std::uint32_t serial = 0;
  /// false: no image is configured, so a restart of the host loses the snapshot
  bool in_image = false;
  bool operator==(const SnapshotResult&) const = default;
};

struct SnapshotRow {
  std::string zone{};
  std::string label{};
  std::uint32_t serial = 0;
  std::uint64_t taken = 0;
  std::uint64_t records = 0;
  /// the reason why a rollback to the snapshot is impossible; empty = possible
  std::string lost{};
  bool operator==(const SnapshotRow&) const = default;
};

struct SnapshotListResult {
  std::vector<SnapshotRow> snapshots{};
  std::string next{};  ///< `after` for the next page; empty = this was the last one
  bool operator==(const SnapshotListResult&) const = default;
};

/// One resource record; all texts in presentation format (RFC 1035 §5.1).
struct RecordRow {
  std::string owner{};  ///< with final dot
  std::uint32_t ttl = 0;
  std::string type{};
  std::string rdata{};
  bool operator==(const RecordRow&) const = default;
};

/// A page of a zone's records.
struct ZoneReadResult {
  std::string zone{};
  std::uint32_t serial = 0;  ///< of the version that this page was read from
  std::vector<RecordRow> records{};
  std::string next{};  ///< `after` for the next page; empty = this was the last one
  bool operator==(const ZoneReadResult&) const = default;
};

/// A page of the difference between two versions of a zone.
struct ZoneDiffResult {
  std::string zone{};
  std::uint32_t from = 0;  ///< serial of the version before
  std::uint32_t to = 0;    ///< serial of the version after
  std::vector<RecordRow> removed{};
  std::vector<RecordRow> added{};
  std::string next{};  ///< `after` for the next page; empty = this was the last one
  bool operator==(const ZoneDiffResult&) const = default;
};

/// One changeset of a zone: its records without the SOA pair.
struct ChangesetRow {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint64_t removed = 0;
  std::uint64_t added = 0;
  std::string by{};      ///< "key NAME", "user NAME" or "API key NAME"; empty: not known
  std::string client{};  ///< address; empty: a local client, or not known
  bool operator==(const ChangesetRow&) const = default;
};

/// A page of a zone's change history, oldest first.
struct ZoneHistoryResult {
  std::string zone{};
  std::uint32_t serial = 0;  ///< that is served
  std::vector<ChangesetRow> changesets{};
  std::string next{};  ///< `after` for the next page; empty = this was the last one
  bool operator==(const ZoneHistoryResult&) const = default;
};

/// A query, its answer, and the reasons for it.
struct ExplainResult {
  std::string question{};  ///< "NAME TYPE"
  std::string zone{};      ///< empty: none answers
  std::uint32_t serial = 0;
  std::string rcode{};
  bool authoritative = false;        ///< AA bit
  std::vector<std::string> steps{};  ///< sentences for people
  std::vector<RecordRow> answer{};
  std::vector<RecordRow> authority{};
  std::vector<RecordRow> additional{};
  bool operator==(const ExplainResult&) const = default;
};

/// The open transaction of a zone.
struct TransactionRow {
  std::string zone{};
  std::uint32_t serial = 0;      ///< that is served
  std::uint64_t changes = 0;     ///< records to set or unset
  std::uint64_t expires_at = 0;  ///< time at which it is aborted, unless it is used before
  bool operator==(const TransactionRow&) const = default;
};

struct TransactionList {
  std::vector<TransactionRow> transactions{};
  bool operator==(const TransactionList&) const = default;
};

/// The effect of a committed transaction.
struct CommittedZone {
  std::string zone{};
  std::uint32_t from = 0;  ///< serial before
  std::uint32_t to = 0;    ///< serial after; equal if nothing changed
  std::uint64_t removed = 0;
  std::uint64_t added = 0;
  bool operator==(const CommittedZone&) const = default;
};

/// Transactions that were committed together, as one version of the store.
struct ZoneCommitResult {
  std::vector<CommittedZone> committed{};
  bool operator==(const ZoneCommitResult&) const = default;
};

/// Settings in force, of the server or of one zone.
struct ConfigShowResult {
  std::string zone{};  ///< empty: of the server
  std::string yaml{};  ///< text that a configuration could contain, without secrets
  bool operator==(const ConfigShowResult&) const = default;
};

/// A setting that a reload would change; values are YAML on one line, empty where it is absent.
struct SettingChangeRow {
  std::string key{};
  std::string before{};
  std::string after{};
  std::string restart{};  ///< program whose restart the key waits for; empty: a reload is enough
  bool operator==(const SettingChangeRow&) const = default;
};

/// A zone whose settings a reload would change.
struct ZoneChangeRow {
  std::string zone{};
  std::vector<SettingChangeRow> settings{};
  bool operator==(const ZoneChangeRow&) const = default;
};

/// The changes that a reload would make. The counts are of all; lists end at the limit.
struct ConfigDiffResult {
  std::uint64_t settings_changed = 0;
  std::uint64_t zones_added = 0;
  std::uint64_t zones_removed = 0;
  std::uint64_t zones_changed = 0;
  std::vector<SettingChangeRow> settings{};  ///< of all sections but zones
  std::vector<std::string> added{};          ///< zones
  std::vector<std::string> removed{};
  std::vector<ZoneChangeRow> changed{};
  std::vector<std::string> warnings{};
  bool operator==(const ConfigDiffResult&) const = default;
};

/// A client of pando-http.
struct HttpKeyRow {
  std::string name{};
  std::string digest{};  ///< secret_digest() of its secret
  std::string role{};    ///< a word of `http.keys[].role`
  std::vector<std::string> zones{};
  bool operator==(const HttpKeyRow&) const = default;
};

struct HttpRemoteRow {
  std::string name{};
  std::vector<std::string> addresses{};  ///< ADDRESS@PORT
  bool operator==(const HttpRemoteRow&) const = default;
};

struct HttpTsigKeyRow {
  std::string name{};
  std::string algorithm{};
  bool operator==(const HttpTsigKeyRow&) const = default;
};

/// The settings in force by which pando-http serves. With the label of the request the others are
/// absent: nothing has changed.
struct HttpSettingsResult {
  std::string label{};  ///< settings with the same label are the same
  std::vector<HttpKeyRow> keys{};
  std::vector<std::string> hosts{};
  std::string template_name{};
  std::vector<HttpRemoteRow> remotes{};
  std::vector<HttpTsigKeyRow> tsig_keys{};
  bool operator==(const HttpSettingsResult&) const = default;
};

/// The level of the manager's and the workers' logs.
struct LogLevelResult {
  std::string level{};       ///< in force
  std::string configured{};  ///< of `server.log`: in force again after a reload or a restart
  bool operator==(const LogLevelResult&) const = default;
};

/// One record of the journal in words.
struct JournalRecordRow {
  std::uint64_t position = 0;
  std::uint64_t time = 0;  ///< of removal from the configuration; other records have none
  std::string zone{};
  std::string kind{};  ///< "changeset", "file-edit", "base", "gone", ...
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::string note{};  ///< what the kind tells besides records
  std::string by{};    ///< as ChangesetRow
  std::string client{};
  std::uint64_t removed_count = 0;
  std::uint64_t added_count = 0;
  std::vector<RecordRow> removed{};  ///< the first ones, if there are many
  std::vector<RecordRow> added{};
  bool operator==(const JournalRecordRow&) const = default;
};

/// A page of the journal's records.
struct JournalPrintResult {
  std::uint64_t snapshot = 0;  ///< records up to this position are folded into a snapshot; 0: none
  std::uint64_t last = 0;      ///< position of the last record that was read
  std::uint64_t next = 0;      ///< `position` for the next page; 0 = this was the last one
  std::vector<JournalRecordRow> records{};
  std::vector<std::string> damage{};  ///< what is missing or cannot be read, a line each
  bool operator==(const JournalPrintResult&) const = default;
};

/// The bytes that one snapshot holds (zone/audit/audit.h).
struct SnapshotUsage {
  std::string zone{};
  std::string label{};
  std::uint64_t bytes = 0;
  bool operator==(const SnapshotUsage&) const = default;
};

/// The findings of a walk over the whole store, or over one zone (zone/audit/audit.h).
struct StoreAudit {
  std::uint64_t version = 0;
  std::uint64_t zones = 0;
  std::uint64_t names = 0;
  std::uint64_t records = 0;
  Counters bytes{};  ///< by use: "trie", "rdata", ...; their sum is the store's memory
  std::uint64_t faults_found = 0;
  std::vector<std::string> faults{};  ///< the first faults, a line each
  std::vector<SnapshotUsage> snapshots{};
  bool operator==(const StoreAudit&) const = default;
};

}  // namespace pando::ipc
