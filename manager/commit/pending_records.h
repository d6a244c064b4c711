#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "manager/commit/commit_request.h"

namespace pando::manager {

/// Journal records of zones that were put while the journal could not be written. The records
/// precede the zone's next record, and are also retried in intervals. Belongs to the commit thread.
class PendingRecords {
 public:
  using Submit = std::function<void(CommitRequest)>;

  /// `submit` hands a retry to the committer.
  PendingRecords(asio::io_context& io, std::chrono::milliseconds interval, Submit submit);

  /// Replaces the zone's pending records.
  void add(const dns::Name& apex, std::vector<JournalEntry> records);
  /// To be called for a zone that is put anew, or removed.
  void drop(const dns::Name& apex);
  /// To be called with the records of a published group: their zones have no pending records left.
  void drop_written(const std::vector<JournalEntry>& written);
  /// Inserts pending records before each zone's first record of a group. Without them the zone's
  /// next changeset would not fit the journal's records.
  void insert_into(std::vector<JournalEntry>& group) const;

  [[nodiscard]] std::size_t zones() const noexcept { return records_.size(); }

 private:
  void retry_later();
  Status stage(Stage& stage);

  std::chrono::milliseconds interval_;
  Submit submit_;
  std::unordered_map<std::string, std::vector<JournalEntry>> records_;  // by folded zone name
  asio::steady_timer timer_;
};

}  // namespace pando::manager
