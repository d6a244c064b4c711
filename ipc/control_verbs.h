#pragma once

#include <algorithm>
#include <string_view>

/// The verbs of the control socket (ipc/control.h), each with its arguments and a line of help. The
/// manager refuses requests by this table, and pandoctl's help and the reference follow it.
namespace pando::ipc {

namespace verb {
inline constexpr std::string_view kStatus = "status";
inline constexpr std::string_view kZoneList = "zone-list";
inline constexpr std::string_view kZoneStatus = "zone-status";
inline constexpr std::string_view kZoneExport = "zone-export";
inline constexpr std::string_view kStoreAudit = "store-audit";
inline constexpr std::string_view kStoreCheckpoint = "store-checkpoint";
inline constexpr std::string_view kZonePurge = "zone-purge";
inline constexpr std::string_view kZoneRefresh = "zone-refresh";
inline constexpr std::string_view kZoneRetransfer = "zone-retransfer";
inline constexpr std::string_view kZoneNotify = "zone-notify";
inline constexpr std::string_view kZoneRollback = "zone-rollback";
inline constexpr std::string_view kZoneSnapshot = "zone-snapshot";
inline constexpr std::string_view kZoneSnapshotDelete = "zone-snapshot-delete";
inline constexpr std::string_view kZoneSnapshots = "zone-snapshots";
inline constexpr std::string_view kZoneRead = "zone-read";
inline constexpr std::string_view kZoneDiff = "zone-diff";
inline constexpr std::string_view kZoneQueries = "zone-queries";
inline constexpr std::string_view kZoneHistory = "zone-history";
inline constexpr std::string_view kExplain = "explain";
inline constexpr std::string_view kZoneBegin = "zone-begin";
inline constexpr std::string_view kZoneSet = "zone-set";
inline constexpr std::string_view kZoneUnset = "zone-unset";
inline constexpr std::string_view kZoneCommit = "zone-commit";
inline constexpr std::string_view kZoneAbort = "zone-abort";
inline constexpr std::string_view kZoneAdd = "zone-add";
inline constexpr std::string_view kZoneRemove = "zone-remove";
inline constexpr std::string_view kZoneConfigure = "zone-configure";
inline constexpr std::string_view kZoneReload = "zone-reload";
inline constexpr std::string_view kZoneFreeze = "zone-freeze";
inline constexpr std::string_view kZoneThaw = "zone-thaw";
inline constexpr std::string_view kDnssecList = "dnssec-list";
inline constexpr std::string_view kDnssecStatus = "dnssec-status";
inline constexpr std::string_view kDnssecCheck = "dnssec-check";
inline constexpr std::string_view kDnssecImport = "dnssec-import";
inline constexpr std::string_view kDnssecDsSeen = "dnssec-ds-seen";
inline constexpr std::string_view kDnssecDsGone = "dnssec-ds-gone";
inline constexpr std::string_view kDnssecUnsign = "dnssec-unsign";
inline constexpr std::string_view kDnssecStaySigned = "dnssec-stay-signed";
inline constexpr std::string_view kDnssecRoll = "dnssec-roll";
inline constexpr std::string_view kDnssecContinue = "dnssec-continue";
inline constexpr std::string_view kDnssecHold = "dnssec-hold";
inline constexpr std::string_view kDnssecRestoreKey = "dnssec-restore-key";
inline constexpr std::string_view kDnssecClockOk = "dnssec-clock-ok";
inline constexpr std::string_view kTlsStatus = "tls-status";
inline constexpr std::string_view kTlsRoll = "tls-roll";
inline constexpr std::string_view kStoreCopy = "store-copy";
inline constexpr std::string_view kStoreDump = "store-dump";
inline constexpr std::string_view kWorkerList = "worker-list";
inline constexpr std::string_view kWorkerAdd = "worker-add";
inline constexpr std::string_view kWorkerRemove = "worker-remove";
inline constexpr std::string_view kWorkerRestart = "worker-restart";
inline constexpr std::string_view kConfigShow = "config-show";
inline constexpr std::string_view kConfigDiff = "config-diff";
inline constexpr std::string_view kHttpSettings = "http-settings";
inline constexpr std::string_view kLogLevel = "log-level";
inline constexpr std::string_view kJournalPrint = "journal-print";
inline constexpr std::string_view kReload = "reload";
inline constexpr std::string_view kHandOver = "hand-over";
inline constexpr std::string_view kStop = "stop";
}  // namespace verb

/// One verb of the control socket.
struct ControlVerb {
  std::string_view name;
  /// Members of `args` in their order. Those in brackets are optional. Those in parentheses are
  /// needed, but checked by the command itself, because its error can say more.
  std::string_view arguments;
  std::string_view help;
};

inline constexpr ControlVerb kControlVerbs[] = {
    {verb::kStatus, "", "state of the server"},
    {verb::kZoneList, "[after] [limit]", "all zones"},
    {verb::kZoneStatus, "name", "state of one zone"},
    {verb::kZoneExport, "name [to] [descriptor]", "write a zone to its file, or to another one"},
    {verb::kStoreAudit, "[name]", "where the store's bytes are; with a name, those of one zone"},
    {verb::kStoreCheckpoint, "", "write the image now, and wait for it"},
    {verb::kZonePurge, "name", "drop the updates of a zone that left the configuration"},
    {verb::kZoneRefresh, "name", "ask the primaries of a secondary zone now"},
    {verb::kZoneRetransfer, "name", "transfer a secondary zone whole, whatever its serial"},
    {verb::kZoneNotify, "name", "send NOTIFY to the remotes of a zone now"},
    {verb::kZoneRollback, "name (serial|label)", "make a zone again what it was, under a new serial"},
    {verb::kZoneSnapshot, "name label", "give a zone's present version a label"},
    {verb::kZoneSnapshotDelete, "name label", "delete a snapshot of a zone"},
    {verb::kZoneSnapshots, "[name] [after] [limit]",
     "all snapshots; with a name, those of one zone"},
    {verb::kZoneRead, "name [owner] [type] [after]", "records that are served"},
    {verb::kZoneDiff, "name [serials] [after]", "changes since a serial, or of the transaction"},
    {verb::kZoneQueries, "", "the zones that are asked for most"},
    {verb::kZoneHistory, "name [after]", "changesets that the store has of a zone"},
    {verb::kExplain, "name [type] [from] [key] [dnssec_ok]",
     "the answer to a query, and why it is so"},
    {verb::kZoneBegin, "names [if_serial] [while_connected]",
     "open a transaction on records of zones"},
    {verb::kZoneSet, "name owner (type rdata) [ttl]", "add a record in the transaction"},
    {verb::kZoneUnset, "name owner [type] [rdata]", "remove records in the transaction"},
    {verb::kZoneCommit, "names [if_serial] [by] [client]",
     "publish the transactions as one version"},
    {verb::kZoneAbort, "names", "forget the transactions"},
    {verb::kZoneAdd, "zones", "add zones, once their data are durable"},
    {verb::kZoneRemove, "names", "remove zones that were added"},
    {verb::kZoneConfigure, "name key [value]", "change a setting of a zone that was added"},
    {verb::kZoneReload, "names", "read the files of zones again"},
    {verb::kZoneFreeze, "name", "keep updates and transfers from changing a zone"},
    {verb::kZoneThaw, "name", "let updates and transfers change a zone again"},
    {verb::kDnssecList, "[after] [limit]", "zones that are signed here, and their stages"},
    {verb::kDnssecStatus, "name", "keys, stage and next step of a zone that is signed here"},
    {verb::kDnssecCheck, "name [label]",
     "what signing a zone would do; the label is a policy's name"},
    {verb::kDnssecImport, "name [descriptor]", "take a key into the folder of a zone's keys"},
    {verb::kDnssecDsSeen, "name", "the parent has the zone's DS records"},
    {verb::kDnssecDsGone, "name", "the parent has no DS records of the zone any more"},
    {verb::kDnssecUnsign, "name", "begin to take a zone's signatures away"},
    {verb::kDnssecStaySigned, "name", "end the unsigning of a zone, which stays signed"},
    {verb::kDnssecRoll, "name [label]",
     "make new keys, which follow the zone's; the label is 'all', 'ksk' or 'zsk'"},
    {verb::kDnssecContinue, "name", "agree to the next step of a zone's key roll"},
    {verb::kDnssecHold, "name", "begin no further step of a zone's key roll"},
    {verb::kDnssecRestoreKey, "name label",
     "take a key that was put away back; the label is its tag"},
    {verb::kDnssecClockOk, "", "the host's clock is right, although it jumped"},
    {verb::kTlsStatus, "", "certificates of TLS, until when, and their pins"},
    {verb::kTlsRoll, "", "put the next key of the server's own into use"},
    {verb::kStoreCopy, "to [descriptor]",
     "write an image on which a server with an empty journal can start"},
    {verb::kStoreDump, "to [descriptor]",
     "write all of it as a stream that builds of other layouts read"},
    {verb::kWorkerList, "", "all workers"},
    {verb::kWorkerAdd, "[count]", "start workers, until the next reload"},
    {verb::kWorkerRemove, "[count]", "end workers, highest slots first"},
    {verb::kWorkerRestart, "", "replace all workers, one after the other"},
    {verb::kConfigShow, "[name]", "settings in force; with a name, those of one zone"},
    {verb::kConfigDiff, "[limit]", "what a reload would change, without changing it"},
    {verb::kHttpSettings, "[label]", "the settings of pando-http"},
    {verb::kLogLevel, "[level]", "show or set the level, until a reload or a restart"},
    {verb::kJournalPrint, "[name] [position] [limit]", "records of the journal in words"},
    {verb::kReload, "", "read the configuration and changed zone files again"},
    {verb::kHandOver, "", "have the manager hand its work over to the next one"},
    {verb::kStop, "", "stop the manager and its workers"},
};

/// The row of a verb; null: unknown.
[[nodiscard]] constexpr const ControlVerb* find_verb(std::string_view name) noexcept {
  const auto* found = std::ranges::find(kControlVerbs, name, &ControlVerb::name);
  return found == std::end(kControlVerbs) ? nullptr : found;
}

}  // namespace pando::ipc
