#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "manager/commit/pending_records.h"

namespace pando::manager {

/// The committer's knowledge of single zones' records in the journal: the zones whose merge base is
/// there, and the records that could not be written yet. Lives on the commit thread.
class ZoneRecords {
 public:
  /// See PendingRecords.
  ZoneRecords(asio::io_context& io, std::chrono::milliseconds interval,
              PendingRecords::Submit submit)
      : pending_(io, interval, std::move(submit)) {}

  /// Whether the journal has the zone's merge base. From that the next host restart sees whether
  /// the file was edited, so a zone's first record follows it.
  [[nodiscard]] bool has_merge_base(const dns::Name& zone) const;
  /// A zone that was sent whole begins anew: its earlier records count no more.
  void forget(const dns::Name& zone);
  /// Stores records of a zone that was put while the journal could not be written.
  void add_pending(const dns::Name& zone, std::vector<JournalEntry> records) {
    pending_.add(zone, std::move(records));
  }
  /// See PendingRecords::insert_into().
  void insert_pending(std::vector<JournalEntry>& group) const { pending_.insert_into(group); }
  /// The records of a published version.
  void published(const std::vector<JournalEntry>& group);
  /// Records so far of zones that left or were purged.
  [[nodiscard]] std::uint64_t gone() const noexcept { return gone_; }

 private:
  std::unordered_set<std::string> merge_bases_;  // by folded zone name
  PendingRecords pending_;
  std::uint64_t gone_ = 0;
};

}  // namespace pando::manager
