#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>

#include "manager/commit/committer.h"
#include "manager/journal/journal.h"
#include "shm/slots.h"

namespace pando::manager {

/// Keeps the journal below its limit: when it has grown past it, the zones it has records of are
/// written to a snapshot file from a pinned version, in a pool thread, and the segments up to that
/// version are dropped. While that runs, and when it fails, the journal simply goes on.
class JournalUpkeep {
 public:
  JournalUpkeep(asio::io_context& io, asio::thread_pool& pool, JournalThread& journal_thread,
                Files& files, Journal& journal, Committer& committer, shm::SlotTable& slots,
                std::uint64_t limit);

  void set_limit(std::uint64_t bytes) noexcept { limit_ = bytes; }
  /// Looks whether it is time; call after commits. `blocked`: somebody still reads the old files.
  void check(bool blocked);
  /// `hook` is called, on the commit thread, when a snapshot is written and the journal's files are
  /// about to go; they go when it calls what it is given.
  void before_dropping(std::function<void(std::function<void()> go_on)> hook) {
    before_dropping_ = std::move(hook);
  }
  [[nodiscard]] bool running() const noexcept { return running_; }
  [[nodiscard]] std::uint64_t snapshots() const noexcept { return snapshots_; }

 private:
  struct Round;
  void begin();
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
  std::function<void(std::function<void()>)> before_dropping_;
  bool running_ = false;
  std::uint64_t last_size_ = 0;  ///< after the last snapshot: the journal cannot be smaller
  std::uint64_t snapshots_ = 0;
  std::chrono::steady_clock::time_point pause_until_{};
};

}  // namespace pando::manager
