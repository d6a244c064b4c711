#include "manager/commit/rollback.h"

#include <optional>

#include "manager/commit/zone_diff.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/journal/record/record_changes.h"
#include "manager/support/soa.h"
#include "zone/history/history.h"

namespace pando::manager {

namespace {

/// Folds history records, from an old version onwards, into the changeset that leads back. `after`
/// is a record's TTL at the old version, `before` its TTL now.
///
/// The history of a zone that is signed here has the signer's records, too. So the result brings
/// old RRSIG and NSEC records back. They do no harm in a rollback, because sign_change()
/// (manager/dnssec/change_signing.h) leaves them out and makes new ones.
class WayBack {
 public:
  void take(const zone::HistoryRecord& record) {
    if (record.type == dns::RRType::kSOA) return take_soa(record);
    const auto [at, fresh] =
        by_record_.try_emplace(RecordKey(record.owner, record.type, record.rdata), RecordChange{});
    RecordChange& change = at->second;
    // The first history record of a key shows whether the old version had that record.
    if (fresh && !record.added) change.after = record.ttl;
    change.before = record.added ? std::optional(record.ttl) : std::nullopt;
  }
  RecordChanges by_record() && {
    std::erase_if(by_record_,
                  [](const auto& entry) { return entry.second.before == entry.second.after; });
    return std::move(by_record_);
  }
  /// The SOA of the old version, and that of the last record.
  [[nodiscard]] const std::optional<zone::Record>& soa() const noexcept { return soa_; }
  [[nodiscard]] const std::optional<zone::Record>& last_soa() const noexcept { return last_soa_; }

 private:
  void take_soa(const zone::HistoryRecord& record) {
    if (soa_ && !record.added) return;
    (record.added ? last_soa_ : soa_) =
        zone::Record{dns::HeapName(record.owner), record.type, record.ttl,
                     Bytes(record.rdata.begin(), record.rdata.end())};
  }

  RecordChanges by_record_;
  std::optional<zone::Record> soa_;
  std::optional<zone::Record> last_soa_;
};

Error damaged_history(const zone::ZoneView& zone) {
  return {Errc::kCorrupt, fmt::format("the change history of {} is damaged", to_text(zone.apex()))};
}

/// Folds the changesets from `first` to `last`, a later serial. kNotFound, kFull, kCorrupt.
Status fold_between(const zone::ZoneView& zone, dns::Serial first, dns::Serial last,
                    std::uint64_t max_records, WayBack& way) {
  const auto absent = [&](dns::Serial serial) {
    return fail(Errc::kNotFound, "the change history of {} has no serial {}", to_text(zone.apex()),
                serial.value);
  };
  auto reader = zone::HistoryReader::from(zone, first);
  if (!reader) return absent(first);
  std::uint64_t records = 0;
  while (const zone::HistoryRecord* record = reader->next()) {
    if (reader->from() == last) return {};
    if (++records > max_records)
      return fail(Errc::kFull, "more than {} records changed: ask for smaller steps (zone history)",
                  max_records);
    way.take(*record);
  }
  if (reader->damaged()) return pass(damaged_history(zone));
  return zone.serial() == last ? Status() : Status(absent(last));
}

/// Folds the history of `data` back to `serial`. kNotFound, kCorrupt.
Status fold(const zone::ZoneView& data, dns::Serial serial, WayBack& way) {
  const std::string apex = to_text(data.apex());
  auto reader = zone::HistoryReader::from(data, serial);
  if (!reader)
    return fail(Errc::kNotFound, "the change history of {} does not reach back to serial {}", apex,
                serial.value);
  while (const zone::HistoryRecord* record = reader->next()) way.take(*record);
  if (reader->damaged() || !way.soa()) return pass(damaged_history(data));
  return {};
}

/// Appends the changes of `then` to those of `by_record`.
void append_changes(RecordChanges& by_record, RecordChanges&& then) {
  while (!then.empty()) {
    const auto moved = by_record.insert(then.extract(then.begin()));
    if (moved.inserted) continue;
    RecordChange& change = moved.position->second;
    change.after = moved.node.mapped().after;
    if (change.before == change.after) by_record.erase(moved.position);
  }
}

/// Adds the exchange of the present SOA for `soa`, under the next serial. kInvalid: somebody else
/// signed the earlier version. Its signature of the SOA covers the old serial, and nobody here can
/// make one for the next serial.
Result<zone::Changeset> with_serial(const zone::ZoneView& zone, zone::Changeset changes,
                                    zone::Record present, zone::Record soa, dns::Serial next) {
  const bool is_resigned = is_signed_here(zone);
  for (const zone::Record& record : changes.added)
    if (!is_resigned && record.type == dns::RRType::kRRSIG &&
        dns::rrsig_covered(record.rdata) == dns::RRType::kSOA)
      return fail(Errc::kInvalid, "{} was signed then: nobody here can sign a serial for it",
                  to_text(changes.zone));
  set_soa_serial(soa.rdata, next);
  changes.removed.push_back(std::move(present));
  changes.added.push_back(std::move(soa));
  return changes;
}

}  // namespace

Status check_rollback(const zone::ZoneView& zone) {
  if (is_signed_here(zone)) return {};
  if (zone.denial() == zone::Denial::kUnsigned && zone.soa().signature_count() == 0) return {};
  return fail(Errc::kInvalid, "{} is signed: nobody here can sign a serial for it",
              to_text(zone.apex()));
}

Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone, dns::Serial serial,
                                         config::SerialPolicy policy, std::uint64_t now) {
  const dns::Name apex(zone.apex());
  if (auto fine = check_rollback(zone); !fine) return pass(fine);
  if (zone.serial() == serial) return zone::Changeset{apex, {}, {}};
  WayBack way;
  if (auto folded = fold(zone, serial, way); !folded) return pass(folded);
  auto present = soa_record(zone);
  if (!present) return fail(Errc::kCorrupt, "{} has no SOA record", to_text(apex));
  zone::Record soa = *way.soa();
  RecordChanges by_record = std::move(way).by_record();
  if (is_signed_here(zone)) by_record = without_derived(std::move(by_record), apex);
  return with_serial(zone, changeset_of(apex, std::move(by_record)), std::move(*present),
                     std::move(soa), next_serial(zone.serial(), policy, now));
}

Result<zone::Changeset> rollback_changes(const zone::ZoneView& zone,
                                         const zone::ZoneSnapshot& version,
                                         config::SerialPolicy policy, std::uint64_t now) {
  const dns::Name apex(zone.apex());
  if (!version.held())
    return fail(Errc::kNotFound, "snapshot '{}' of {} was lost: {}", version.label, to_text(apex),
                zone::to_text(version.state));
  if (version.archive == 0) return rollback_changes(zone, version.serial, policy, now);
  if (auto fine = check_rollback(zone); !fine) return pass(fine);
  const zone::ZoneView data = zone::data_of(zone, version);
  auto soa = data ? soa_record(data) : std::nullopt;
  auto present = soa_record(zone);
  if (!soa || !present)
    return fail(Errc::kCorrupt, "snapshot '{}' of {} is damaged", version.label, to_text(apex));
  zone::Changeset changes = *diff_zones(zone, data, UINT64_MAX,
                                        is_signed_here(zone) ? Compared::kSource : Compared::kAll);
  if (!(data.serial() == version.serial)) {
    WayBack way;
    if (auto folded = fold(data, version.serial, way); !folded) return pass(folded);
    soa = way.soa();
    RecordChanges by_record = record_changes_of(std::move(changes));
    // Records of a signer are no part of the source, whether the zone has a signer now or not.
    RecordChanges folded = std::move(way).by_record();
    if (is_signed_here(zone)) folded = without_derived(std::move(folded), apex);
    append_changes(by_record, std::move(folded));
    changes = changeset_of(apex, std::move(by_record));
  }
  Bytes same = soa->rdata;
  set_soa_serial(same, zone.serial());
  if (changes.empty() && soa->ttl == present->ttl && same == present->rdata)
    return zone::Changeset{apex, {}, {}};
  return with_serial(zone, std::move(changes), std::move(*present), std::move(*soa),
                     next_serial(zone.serial(), policy, now));
}

Result<zone::Changeset> history_diff(const zone::ZoneView& zone, dns::Serial from, dns::Serial to,
                                     std::uint64_t max_records) {
  const dns::Name apex(zone.apex());
  if (from == to) return zone::Changeset{apex, {}, {}};
  const bool backwards = from.ahead_of(to);
  WayBack way;
  auto folded = backwards ? fold_between(zone, to, from, max_records, way)
                          : fold_between(zone, from, to, max_records, way);
  if (!folded) return pass(folded);
  const auto before = way.soa();
  const auto after = way.last_soa();
  if (!before || !after) return pass(damaged_history(zone));
  zone::Changeset changes = changeset_of(apex, std::move(way).by_record());  // leads back
  changes.removed.insert(changes.removed.begin(), *after);
  changes.added.insert(changes.added.begin(), *before);
  if (!backwards) std::swap(changes.removed, changes.added);
  return changes;
}

Result<zone::Changeset> RollbackTarget::changes(const zone::ZoneView& zone,
                                                config::SerialPolicy policy,
                                                std::uint64_t now) const {
  if (label.empty()) return rollback_changes(zone, serial, policy, now);
  const auto snapshots = zone::snapshots_of(zone);
  const zone::ZoneSnapshot* version = zone::find_snapshot(snapshots, label);
  if (version == nullptr)
    return fail(Errc::kNotFound, "{} has no snapshot '{}'", to_text(zone.apex()), label);
  return rollback_changes(zone, *version, policy, now);
}

std::uint64_t RollbackTarget::records(const zone::ZoneView& zone) const {
  if (!zone || !zone.loaded()) return 0;
  const auto snapshots = zone::snapshots_of(zone);
  const zone::ZoneSnapshot* version = zone::find_snapshot(snapshots, label);
  const zone::ZoneView data = version == nullptr ? zone : zone::data_of(zone, *version);
  if (!data) return 0;
  const dns::Serial from = version == nullptr ? serial : version->serial;
  const auto history = zone::HistoryReader::from(data, from);
  const bool archived = version != nullptr && version->archive != 0;
  return (history ? history->records() : 0) +
         (archived ? zone.record_count() + data.record_count() : 0);
}

Result<zone::Changeset> rollback_of(const zone::StoreView& version, const dns::Name& name,
                                    const RollbackTarget& target, config::SerialPolicy policy,
                                    std::uint64_t now) {
  const zone::ZoneView zone = version.zone_at(name);
  if (!zone || !zone.loaded()) return fail(Errc::kNotFound, "{} is not loaded", to_text(name));
  auto changes = target.changes(zone, policy, now);
  if (changes) changes->author = target.author;
  return changes;
}

}  // namespace pando::manager
