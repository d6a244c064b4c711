#include "manager/rollback.h"

#include <optional>

#include "manager/record_steps.h"
#include "manager/soa.h"
#include "manager/zone_diff.h"
#include "zone/history.h"

namespace pando::manager {

namespace {

/// Differences folded from an old version on, turned round: `after` is what a record was then, and
/// `before` what it is now.
class WayBack {
 public:
  void take(const zone::HistoryRecord& record) {
    if (record.type == dns::RRType::kSOA) return take_soa(record);
    const auto [at, fresh] =
        steps_.try_emplace(RecordKey(record.owner, record.type, record.rdata), Step{});
    Step& step = at->second;
    // The first that is said of a record tells whether it was there.
    if (fresh && !record.added) step.after = record.ttl;
    step.before = record.added ? std::optional(record.ttl) : std::nullopt;
  }
  Steps steps() && {
    std::erase_if(steps_,
                  [](const auto& entry) { return entry.second.before == entry.second.after; });
    return std::move(steps_);
  }
  [[nodiscard]] const std::optional<zone::Record>& soa() const noexcept { return soa_; }

 private:
  void take_soa(const zone::HistoryRecord& record) {
    if (soa_ || record.added) return;
    soa_ = zone::Record{dns::Name(record.owner), record.type, record.ttl,
                        Bytes(record.rdata.begin(), record.rdata.end())};
  }

  Steps steps_;
  std::optional<zone::Record> soa_;
};

}  // namespace

Result<zone::Changes> rollback_changes(const zone::ZoneView& zone, dns::Serial serial,
                                       config::SerialPolicy policy, std::uint64_t now) {
  const dns::Name apex(zone.apex());
  if (zone.denial() != zone::Denial::kUnsigned || zone.soa().signature_count() != 0)
    return fail(Errc::kInvalid, "{} is signed: nobody here can sign a serial for it",
                to_text(apex));
  if (zone.serial() == serial) return zone::Changes{apex, {}, {}};
  auto reader = zone::HistoryReader::from(zone, serial);
  if (!reader)
    return fail(Errc::kNotFound, "the change history of {} does not reach back to serial {}",
                to_text(apex), serial.value);
  WayBack way;
  while (const zone::HistoryRecord* record = reader->next()) way.take(*record);
  auto present = soa_record(zone);
  if (reader->damaged() || !way.soa() || !present)
    return fail(Errc::kCorrupt, "the change history of {} is damaged", to_text(apex));
  zone::Record soa = *way.soa();
  set_soa_serial(soa.rdata, next_serial(zone.serial(), policy, now));
  zone::Changes changes = changes_of(apex, std::move(way).steps());
  changes.removed.push_back(std::move(*present));
  changes.added.push_back(std::move(soa));
  return changes;
}

}  // namespace pando::manager
