#pragma once

#include <asio/io_context.hpp>
#include <asio/thread_pool.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/zonefile/zone_writing.h"
#include "shm/slots.h"

namespace pando::manager {

/// The file name of a zone's copy: its name in lower case with every byte that could mean
/// something to a file system as %XX; names too long for one get a hash.
std::string copy_name(dns::NameView zone);

/// Keeps the copies on disk of secondary zones, in their `file` or in a folder beside the journal:
/// with one, and the journal's differences after it, a zone is served at once after a host restart,
/// when its primary may be away. Lives on the commit thread, writes in the pool from a pinned
/// version.
class ZoneCopies {
 public:
  /// `folder`: for the zones without a `file`.
  ZoneCopies(asio::io_context& io, asio::thread_pool& pool, Files& files, Committer& committer,
             shm::SlotTable& slots, std::string folder);

  /// Where the copy of a secondary zone is.
  [[nodiscard]] std::string path_of(const config::ZoneTable& zones, std::size_t index) const;
  /// Writes the zone's newest version to `path`, and notes that file as the zone's. While a copy
  /// of it is being written, one more follows at the end, however many were asked for.
  /// `in_journal`: the zone may have records there, so the note goes there, too; else it does with
  /// the first difference.
  void write(const dns::Name& zone, std::string path, bool in_journal);
  /// Removes the copies of zones that are gone from the folder.
  void keep_only(const RuntimePtr& runtime);
  [[nodiscard]] std::uint64_t written() const noexcept { return written_; }
  [[nodiscard]] std::uint64_t failures() const noexcept { return failures_; }

 private:
  struct Copy {
    std::string path;
    bool in_journal = false;
    bool again = false;
  };
  struct CanonicalLess {
    bool operator()(const dns::Name& a, const dns::Name& b) const noexcept {
      return dns::compare_canonical(a, b) < 0;
    }
  };

  void begin(const dns::Name& zone, const Copy& copy);
  struct Written {
    dns::Name zone;
    dns::Serial serial;
    zone::ZoneFileInfo source;
    bool in_journal = false;
  };
  using Copied = Result<std::optional<zone::ZoneFileInfo>>;
  void end(const dns::Name& zone, dns::Serial serial, const Copied& written);
  void note(const Written& copy);
  Status stage_note(Stage& stage, const Written& copy) const;

  asio::io_context& io_;
  asio::thread_pool& pool_;
  Files& files_;
  Committer& committer_;
  shm::SlotTable& slots_;
  std::string folder_;
  std::map<dns::Name, Copy, CanonicalLess> running_;
  std::uint64_t written_ = 0;
  std::uint64_t failures_ = 0;
};

}  // namespace pando::manager
