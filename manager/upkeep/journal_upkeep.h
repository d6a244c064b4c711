#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>

#include "manager/commit/committer.h"
#include "manager/journal/journal.h"
#include "shm/slots.h"

namespace pando::manager {

/// Keeps the journal below its limit, and heals a journal that lacks records: both by a snapshot.
/// Past the limit, a pool thread writes the zones with journal records from a pinned version to a
/// snapshot file. The segments up to that version are then dropped. Appending goes on meanwhile,
/// and after a failure. A journal that lacks records gets a snapshot of all zones at once, while
/// the live store has everything.
class JournalUpkeep {
 public:
  JournalUpkeep(asio::io_context& io, asio::thread_pool& pool, JournalThread& journal_thread,
                Files& files, Journal& journal, Committer& committer, shm::SlotTable& slots,
                std::uint64_t limit,
                std::chrono::milliseconds pause_before_healing = std::chrono::seconds(10));

  void set_limit(std::uint64_t bytes) noexcept { limit_ = bytes; }
  /// Begins a snapshot if the journal is too large. A part unreadable for a while is a reason, too,
  /// if the live store has its records (JournalHealth::has_gap_to_close). Call after commits.
  /// `blocked`: the old files are still being read.
  void check(bool blocked);
  /// `hook` is called on the commit thread after a snapshot is written. The journal's old files are
  /// dropped when the hook calls its argument.
  void before_dropping(std::function<void(std::function<void()> resume)> hook) {
    before_dropping_ = std::move(hook);
  }
  /// Has the next check() read the whole journal in a pool thread, to find damage while the live
  /// store has everything.
  void examine() noexcept { is_examination_due_ = true; }
  /// Why the journal takes no updates or lacks records, in one line for the operator, with a zone
  /// that keeps this so; empty: all is well, as far as is known.
  [[nodiscard]] std::string problem() const;
  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] std::uint64_t snapshots() const noexcept { return snapshots_; }

 private:
  struct Round;
  [[nodiscard]] bool can_close_gap(const zone::StoreView& version);
  void begin();
  void begin_examination();
  void write(const std::shared_ptr<Round>& round);
  void drop(const std::shared_ptr<Round>& round, const std::string& path);
  void end(const std::shared_ptr<Round>& round, const Status& status);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  JournalThread& journal_thread_;
  Files& files_;
  Journal& journal_;
  Committer& committer_;
  shm::SlotTable& slots_;
  std::uint64_t limit_;
  std::chrono::milliseconds pause_before_healing_;
  std::function<void(std::function<void()>)> before_dropping_;
  std::string waiting_;  // the zone without data because of which a gap stays open
  bool is_examination_due_ = false;
  bool running_ = false;
  std::uint64_t last_size_ = 0;  ///< after the last snapshot: the journal cannot be smaller
  std::uint64_t snapshots_ = 0;
  std::chrono::steady_clock::time_point pause_until_{};
};

}  // namespace pando::manager
