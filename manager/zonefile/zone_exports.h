#pragma once

#include <asio/io_context.hpp>
#include <asio/steady_timer.hpp>
#include <asio/thread_pool.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/journal/journal_history.h"
#include "manager/zonefile/export_file.h"
#include "shm/slots.h"

namespace pando::manager {

/// Writes the files of primary zones anew that updates have changed: every `export-interval`, and
/// when it is asked for. From then on the file is what the updates before it came to: the journal
/// says so, and an edit of it is merged like that of any other file (file_merge.h).
///
/// A zone that was not changed costs nothing here; one that was, an entry until its file is
/// written. Lives on the commit thread, writes in the pool from pinned versions.
class ZoneExports {
 public:
  struct Options {
    std::size_t at_once = 2;  ///< by interval; the pool is also there for reloads and transfers
    std::size_t slice = 500;  ///< zones found changed at a start, per round of the loop
  };
  using HistoryMaker = std::function<std::shared_ptr<HistorySource>()>;
  struct Exported {
    dns::Serial serial;
    std::uint64_t records = 0;
    std::string path;
    bool written = true;  ///< false: the file held just that before
  };
  using Done = std::function<void(const Result<Exported>&)>;
  struct Counters {
    std::uint64_t exports = 0;
    std::uint64_t failures = 0;
  };

  /// All references outlive the object. `history`: the journal as it is when called.
  ZoneExports(asio::io_context& io, asio::thread_pool& pool, Files& files, Committer& committer,
              shm::SlotTable& slots, HistoryMaker history, Options options);
  ~ZoneExports();

  /// Takes over a configuration whose zones have been loaded. Zones that have an interval now, and
  /// had none, may have been changed before: the journal tells.
  void configure(const RuntimePtr& runtime);
  /// What has just been published.
  void journalled(const JournalEntry& entry);
  /// Writes a zone's file when it is not what is served. kExists: it was edited and a reload has
  /// not merged that yet.
  void write_own(const dns::Name& zone, Done done);
  /// Writes a zone of any kind to another file, an absolute path; nothing else changes.
  void write_to(const dns::Name& zone, std::string path, Done done);
  /// Why the last try to write the zone's file failed; empty = it did not.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Begins nothing more.
  void stop();

 private:
  using Clock = std::chrono::steady_clock;
  struct Run;
  using RunPtr = std::shared_ptr<Run>;
  struct SharedFiles;

  [[nodiscard]] std::chrono::milliseconds interval_of(dns::NameView zone) const;
  void mark(const std::string& key);
  void unmark(const std::string& key);
  void mark_slice(const std::shared_ptr<std::vector<std::string>>& keys, std::size_t from);
  void find_changed(const RuntimePtr& before);
  void arm_timer();
  void run_due();
  void begin(const std::string& key, std::vector<Done> done);
  Status prepare(const RunPtr& run) const;
  void clear_doubt(const RunPtr& run);
  void write(const RunPtr& run);
  Status write_in_pool(Run& run) const;
  Status check_file(const Run& run) const;
  [[nodiscard]] bool is_current(const Run& run) const;
  void note(const RunPtr& run);
  void take_name(const RunPtr& run);
  void end(const RunPtr& run, const Status& status);
  void tell(const Run& run, const Status& status);

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  Committer& committer_;
  shm::SlotTable& slots_;
  HistoryMaker history_;
  Options options_;
  RuntimePtr runtime_;
  std::shared_ptr<SharedFiles> shared_files_;  // of runtime_
  bool any_interval_ = false;
  bool stopped_ = false;
  asio::steady_timer timer_;
  // Zones (folded) that are not as their file, in the order in which they are due.
  std::unordered_map<std::string, Clock::time_point> changed_;
  std::set<std::pair<Clock::time_point, std::string>> due_;
  std::unordered_map<std::string, RunPtr> running_;
  /// Zones of which a note could not be written: it may still be on the disk, and come back.
  std::unordered_set<std::string> doubtful_;
  std::map<std::string, std::string> problems_;  // bounded
  Counters counters_;
};

}  // namespace pando::manager
