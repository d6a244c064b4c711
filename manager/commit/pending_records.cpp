#include "manager/commit/pending_records.h"

#include <unordered_set>
#include <utility>

#include "dns/folded_key.h"
#include "ipc/log.h"

namespace pando::manager {

namespace {

/// Such records begin the zone's records anew, or are the pending ones themselves.
bool needs_no_other(const JournalEntry& entry) noexcept {
  const bool is_purge = entry.kind == RecordKind::kGone && entry.payload.empty();
  return is_purge || entry.kind == RecordKind::kBase || entry.kind == RecordKind::kDynamicChanges;
}

}  // namespace

PendingRecords::PendingRecords(asio::io_context& io, std::chrono::milliseconds interval,
                               Submit submit)
    : interval_(interval), submit_(std::move(submit)), timer_(io) {}

void PendingRecords::add(const dns::Name& apex, std::vector<JournalEntry> records) {
  records_[dns::folded_key(apex)] = std::move(records);
  if (records_.size() == 1) retry_later();
}

void PendingRecords::drop(const dns::Name& apex) { records_.erase(dns::folded_key(apex)); }

void PendingRecords::drop_written(const std::vector<JournalEntry>& written) {
  if (records_.empty()) return;
  for (const JournalEntry& entry : written) drop(entry.zone);
}

void PendingRecords::insert_into(std::vector<JournalEntry>& group) const {
  if (records_.empty() || group.empty()) return;
  std::unordered_set<std::string> seen;
  std::vector<JournalEntry> entries;
  for (JournalEntry& entry : group) {
    const std::string key = dns::folded_key(entry.zone);
    const auto pending = records_.find(key);
    if (seen.insert(key).second && pending != records_.end() && !needs_no_other(entry))
      entries.insert(entries.end(), pending->second.begin(), pending->second.end());
    entries.push_back(std::move(entry));
  }
  group = std::move(entries);
}

void PendingRecords::retry_later() {
  timer_.expires_after(interval_);
  timer_.async_wait([this](asio::error_code error) {
    if (error || records_.empty()) return;
    CommitRequest request;
    request.stage = [this](Stage& step) { return stage(step); };
    request.done = [this, zones = records_.size()](const Result<std::uint64_t>& version) {
      if (version)
        log::info("pending_records_written", "zones", zones);
      else
        log::warning("pending_records_not_written", "zones", zones, "reason", version.error().text);
      if (!records_.empty()) retry_later();
    };
    submit_(std::move(request));
  });
}

/// Records at a serial that the zone no longer has are of no use.
Status PendingRecords::stage(Stage& stage) {
  const zone::StoreView view = stage.draft.view();
  std::erase_if(records_, [&](const auto& pending) {
    const JournalEntry& first = pending.second.front();
    const zone::ZoneView zone = view.zone_at(first.zone);
    return !zone || !zone.loaded() || !(zone.serial() == first.to);
  });
  for (const auto& [key, records] : records_)
    stage.journal.insert(stage.journal.end(), records.begin(), records.end());
  return {};
}

}  // namespace pando::manager
