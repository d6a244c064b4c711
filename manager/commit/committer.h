#pragma once

#include <asio/io_context.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "manager/commit/commit_request.h"
#include "manager/commit/zone_records.h"
#include "manager/journal/journal.h"
#include "manager/support/loop_mailbox.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::manager {

/// The one door to the store; also keeps additions out of the store's reserve (shm/map/reserve.h).
///
/// Requests queue. A group of requests is staged into one draft, and its records are appended to
/// the journal and synced. Then the version is published, and only then are the requests answered.
/// While a group syncs in the journal's thread, the next one queues.
///
/// Everything but the sync runs on the commit thread, the one thread of `io`. Control and the
/// supervision of workers run there, too, so that thread never waits for the disk.
class Committer {
 public:
  struct Options {
    std::size_t max_group = 256;  ///< bounds the time for which a group occupies the commit thread
    std::chrono::milliseconds retry_pending{10'000};  ///< see PendingRecords
  };
  struct Counters {
    std::uint64_t versions = 0;
    std::uint64_t requests = 0;
    std::uint64_t failed = 0;
    std::uint64_t store_bytes = 0;  ///< fresh blocks of all versions
  };

  /// All references outlive the committer. `journal` is written in `journal_thread` alone.
  Committer(asio::io_context& io, shm::Store& store, Journal& journal,
            JournalThread& journal_thread, Options options);
  ~Committer();

  void submit(CommitRequest request);

  /// The journal that records go to, for checks of its state.
  [[nodiscard]] const Journal& journal() const noexcept { return journal_; }
  [[nodiscard]] ZoneRecords& zone_records() noexcept { return records_; }
  [[nodiscard]] const ZoneRecords& zone_records() const noexcept { return records_; }
  /// Tries again to make the journal's end durable, after a start that failed to
  /// (check_end()). To be called periodically. Each update tries again, too; no-op
  /// updates are refused until then.
  void secure_journal();
  using Finished = std::function<void(const Status&)>;
  /// Makes an edit that needs no journal record, since the zone files and the configuration repeat
  /// it: settings, removals and the like. An edit that adds nothing may `use` the store's reserve.
  void edit(std::function<Status(zone::Draft&)> step, Finished done,
            shm::Reserve use = shm::Reserve::kKept);

  /// Called after each publication, before the requests are answered.
  void on_published(std::function<void(const PublishedVersion& version)> follow_up) {
    follow_up_ = std::move(follow_up);
  }
  /// Called when a group is put together; may add one step of upkeep (compaction).
  void on_idle_room(std::function<std::optional<CommitRequest>()> hook) {
    upkeep_hook_ = std::move(hook);
  }

  [[nodiscard]] bool busy() const noexcept;  ///< a request is staged or queued
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// The version readers see now.
  [[nodiscard]] zone::StoreView current() const;
  /// Journal position up to which the published version contains everything.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

 private:
  struct Group;
  using GroupPtr = std::shared_ptr<Group>;
  void schedule();
  void run_next();
  std::vector<CommitRequest> take_group();
  void stage_group(Group& group);
  Status stage_one(Group& group, CommitRequest& request, bool alone);
  void write_journal(std::shared_ptr<Group> group);
  void journalled(const GroupPtr& group, Result<std::uint64_t> position);
  void publish(const GroupPtr& published, std::uint64_t position);
  void abandon(const GroupPtr& group, const Error& error);
  void fail_group(Group& group, const Error& error);
  void answer(Group& group, std::uint64_t version);
  void retry_singly(Group& group);
  void reach_end();

  asio::io_context& io_;
  LoopMailbox& mailbox_;
  shm::Store& store_;
  Journal& journal_;
  JournalThread& journal_thread_;
  Options options_;
  std::deque<CommitRequest> queue_;
  std::size_t singly_ = 0;  ///< this many requests at the front become groups of one
  bool scheduled_ = false;
  bool in_flight_ = false;
  bool securing_ = false;
  std::uint64_t position_;
  Counters counters_;
  ZoneRecords records_;
  std::function<void(const PublishedVersion&)> follow_up_;
  std::function<std::optional<CommitRequest>()> upkeep_hook_;
};

}  // namespace pando::manager
