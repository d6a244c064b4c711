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
#include "shm/slots.h"

namespace pando::manager {

/// Exports primary zones that updates have changed to their files, every `export-interval` and on
/// request. The exported file becomes the merge base, recorded in the journal; later edits are
/// merged as in any other file (file_merge.h).
///
/// An unchanged zone costs nothing here; a changed zone costs one entry until the export. Lives on
/// the commit thread; files are written in the pool from pinned versions.
class ZoneExports {
 public:
  struct Options {
    /// limit for exports by interval; the pool also serves reloads and transfers
    std::size_t at_once = 2;
    std::size_t slice = 500;  ///< changed zones that a start marks per turn of the event loop
  };
  using HistoryMaker = std::function<std::shared_ptr<HistorySource>()>;
  struct Exported {
    dns::Serial serial;
    std::uint64_t records = 0;
    std::string path;
    bool written = true;  ///< false: the file was already up to date
  };
  using Done = std::function<void(const Result<Exported>&)>;
  struct Counters {
    std::uint64_t exports = 0;
    std::uint64_t failures = 0;
  };

  /// All references outlive the object. `history` returns the journal as of the call.
  ZoneExports(asio::io_context& io, asio::thread_pool& pool, Files& files, Committer& committer,
              shm::SlotTable& slots, HistoryMaker history, Options options);
  ~ZoneExports();

  /// Takes over a configuration whose zones have been loaded. For zones that newly have an
  /// interval, the journal is searched for earlier changes. `may_differ`: such zones may have some.
  void configure(const RuntimePtr& runtime, bool may_differ = true);
  /// Called for each journal entry that has just been published.
  void journalled(const JournalEntry& entry);
  /// Exports a zone unless its file is up to date. kExists: the file was edited, and no reload has
  /// merged the edit yet.
  void write_own(const dns::Name& zone, Done done);
  /// Writes a zone of any kind to another file; `path` must be absolute. The merge base stays as it
  /// is.
  void write_to(const dns::Name& zone, std::string path, Done done);
  /// The same into an empty file that somebody else has opened; `path` is a name for messages.
  void write_into(const dns::Name& zone, std::string path, std::shared_ptr<StoreFile> file,
                  Done done);
  /// Reason of the last failed export of the zone; empty if the last export succeeded.
  [[nodiscard]] std::string problem(dns::NameView zone) const;
  [[nodiscard]] Counters counters() const noexcept { return counters_; }
  /// Starts no further exports.
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
  void confirm_merge_base(const RunPtr& run);
  void write(const RunPtr& run);
  Status write_in_pool(Run& run) const;
  Status check_file(const Run& run) const;
  [[nodiscard]] bool is_current(const Run& run) const;
  void record_merge_base(const RunPtr& run);
  void take_name(const RunPtr& run);
  void end(const RunPtr& run, const Status& status);
  void report(const Run& run, const Status& status);
  void write_apart(const dns::Name& zone, const std::string& path,
                   std::function<Status(const zone::ZoneView&)> write, Done done);

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
  // Zones (folded names) that differ from their file, also ordered by the due time.
  std::unordered_map<std::string, Clock::time_point> changed_;
  std::set<std::pair<Clock::time_point, std::string>> due_;
  std::unordered_map<std::string, RunPtr> running_;
  /// Zones whose new merge base may or may not be in the journal after a failed write. After a
  /// restart, the failed record may reappear.
  std::unordered_set<std::string> unconfirmed_;
  std::map<std::string, std::string> problems_;  // bounded
  Counters counters_;
};

}  // namespace pando::manager
