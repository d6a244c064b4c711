#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/zonefile/zone_writing.h"
#include "shm/slots.h"

namespace pando::manager {

/// File name of a zone's copy: the name in lower case, with bytes that are special to file systems
/// as %XX. Names too long for a file name end in a hash.
std::string copy_name(dns::NameView zone);

/// Keeps copies of secondary zones on disk, in their `file` or in a folder beside the journal. A
/// copy and the later changesets of the journal let a zone be served right after a host restart.
/// The primary may be away then. Lives on the commit thread; copies are written in the pool from a
/// pinned version, in batches: zones that wait while others are written become one batch.
class ZoneCopies {
 public:
  /// Batches of copies that are written at a time, at most: a few large zones must not keep all
  /// others waiting.
  static constexpr std::size_t kMaxBatches = 4;
  /// `folder` holds the copies of zones without a `file`. `most_batches`: fewer than the pool has
  /// threads, for which other work waits.
  ZoneCopies(asio::io_context& io, asio::thread_pool& pool, Files& files, Committer& committer,
             shm::SlotTable& slots, std::string folder, std::size_t most_batches = kMaxBatches);

  /// Path of the copy of the secondary zone at `index`.
  [[nodiscard]] std::string path_of(const config::ZoneTable& zones, std::size_t index) const;
  /// Writes the zone's newest version to `path` and records that file as the zone's merge base.
  /// Requests for a zone that waits are one; requests while a zone is written are one more copy.
  /// `in_journal`: the zone may have journal records, so the merge base is recorded in the journal,
  /// too. Otherwise the first changeset does so.
  void write(const dns::Name& zone, std::string path, bool in_journal);
  /// Deletes all files in the folder except copies (also partial ones) of zones that are secondary
  /// in `runtime`, or in a later one of configure(), and except zones' own files. Returns immediately.
  void keep_only(const RuntimePtr& runtime);
  /// The configuration in force, before copies of its new zones are read or written.
  void configure(RuntimePtr runtime);
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }

 private:
  struct Copy {
    std::string path;
    bool in_journal = false;
    bool waits = true;  // in waiting_; else being written
    bool again = false;
  };

  struct Written {
    dns::Name zone;
    dns::Serial serial;
    zone::ZoneFileInfo source;
    bool in_journal = false;
  };
  using Copied = Result<std::optional<zone::ZoneFileInfo>>;
  struct Batch;
  void remove_others(std::vector<std::string> files);
  void remove_if_left(const dns::Name& zone, const std::string& path);
  [[nodiscard]] RuntimePtr in_force() const;
  void begin_batches();
  [[nodiscard]] std::shared_ptr<Batch> next_batch();
  void ended(const Batch& batch);
  void end(const dns::Name& zone, dns::Serial serial, const Copied& written);
  void record_merge_base(const Written& copy);
  Status stage_merge_base(Stage& stage, const Written& copy) const;

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  Committer& committer_;
  shm::SlotTable& slots_;
  std::string folder_;
  std::map<dns::Name, Copy, dns::CanonicalLess> running_;  // waiting or being written
  std::deque<dns::Name> waiting_;                     // oldest first
  std::size_t most_batches_;
  std::size_t batches_ = 0;                           // being written
  std::uint64_t written_ = 0;
  std::uint64_t failures_ = 0;
  /// Of runtime_, which the commit thread alone writes.
  mutable std::mutex mutex_;
  RuntimePtr runtime_;
};

}  // namespace pando::manager
