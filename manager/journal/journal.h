#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "manager/io/store_file.h"
#include "manager/journal/journal_health.h"
#include "manager/journal/record/journal_format.h"
#include "manager/support/task_thread.h"
#include "shm/store.h"

namespace pando::manager {

struct JournalOptions {
  std::string directory;
  std::uint64_t segment_bytes = std::uint64_t{16} << 20;  ///< preallocated at once
  /// Pause between two tries to read a journal that could not be read.
  std::chrono::milliseconds retry{10'000};
  /// journal_identity(), which each file gets a copy of.
  shm::StoreOwner identity{};
};

/// A message for the operator: `severe` when data that had been synced is missing.
struct JournalNote {
  bool severe = false;
  std::string text;
  // Positions of records that are missing; 0: none, or not known.
  std::uint64_t missing_from = 0;
  std::uint64_t missing_to = 0;
};
using NoteSink = std::function<void(const JournalNote&)>;

/// The journal's files at one moment, for readers in other threads.
struct JournalFiles {
  struct Segment {
    std::string path;
    SegmentHeader header;
    /// Bytes that were written and synced. The file may be growing, and readers must ignore the
    /// bytes after.
    std::uint64_t bytes = UINT64_MAX;
  };
  std::vector<Segment> segments;  ///< ascending
  std::string snapshot;           ///< empty = none
  std::uint64_t snapshot_position = 0;
  /// Positions from here on never took place; a failed group may have left them in the last
  /// segment. The next segment's header will say so, or does. 0 = none.
  std::uint64_t void_from = 0;
  /// While it is unreadable, records may be missing from the listing.
  JournalHealth health{};
  shm::StoreOwner identity{};  ///< JournalOptions::identity
};

/// Append-only log of all zones' changesets, in segments of a directory.
///
/// A position is a record's number, never used twice. A group is appended and synced as one. When a
/// write or sync fails, the segment is *poisoned*: it is never written or synced again, and the
/// next group opens a new segment. The new header voids the failed positions. A group that was
/// synced but could not be published is voided likewise.
///
/// A journal with a part that cannot be read for now is open, and refuses all groups. It is read
/// again at the next group after JournalOptions::retry. Once it could be read, groups are taken.
///
/// Appending calls belong to one thread (JournalThread); files() may be called by any.
class Journal {
 public:
  /// Opens or makes the directory. A torn tail of the last segment is cut off and reported to
  /// `note`. The rest of the segment is copied to fresh blocks and synced, since records of a
  /// killed process may be in the page cache only. While that fails (reported, too) groups are
  /// refused; each group tries again. Errors: a file is of another format (kLayout), or the folder
  /// cannot be made.
  static Result<Journal> open(const JournalOptions& options, Files& files, NoteSink note);
  Journal(Journal&&) noexcept;
  Journal& operator=(Journal&&) noexcept;
  ~Journal();

  /// The health of the journal as known at this moment. Any thread.
  [[nodiscard]] JournalHealth health() const;
  /// A fault was found after open(): see JournalHealth::report(). Any thread.
  void report(JournalHealth::State fault, const std::string& why);
  /// Appends a group and syncs it once. On success each entry is durable and the last one's
  /// position is returned. On error no entry counts. An empty group makes the end durable
  /// (JournalHealth::has_durable_end()), or fails.
  Result<std::uint64_t> append(std::span<const JournalEntry> group);
  /// Voids the group that began at `from`, which was synced but not published. As after an error of
  /// append(), the next process must not find the group: that is made durable immediately if
  /// possible.
  void abandon(std::uint64_t from) noexcept;
  /// Positions up to `position` count as used (the live store may be ahead of an emptied
  /// directory).
  void skip_to(std::uint64_t position) noexcept;
  /// The same for the position of a store, live or from the image. A journal that ends before it
  /// lacks the records between, which is reported. While a part cannot be read, that waits for the
  /// part. An empty journal lacks nothing: see begin_behind().
  ///
  /// `has_all`: a live store covers the position with each zone's data. Later records were never
  /// published, so an unreadable part has nothing that the store lacks.
  void store_is_at(std::uint64_t position, bool has_all = false);
  /// The same as skip_to() for a journal without records: there never were any up to that position, so none is
  /// missing.
  void begin_behind(std::uint64_t position) noexcept;
  /// The same with first records: the segment gets its name with `notes` in it, or not at all.
  /// After an error the journal has not begun, and a later group would have records missing before
  /// it.
  Status begin_with(std::uint64_t position, std::span<const JournalEntry> notes);
  /// Makes the segment of the next group, if there is none. Its header keeps the position of
  /// begin_behind(), which would otherwise be forgotten with the process.
  Status begin_segment();
  /// Ends the current segment, so that all segments so far can be dropped by a snapshot.
  void seal() noexcept;
  /// The treatment of files that a snapshot replaces.
  enum class Replaced : std::uint8_t {
    kRemoved,  ///< the snapshot has all that they have
    kKept,     ///< a part could not be read: they are renamed, and reported as severe
  };
  /// Takes over a finished snapshot file (journal_snapshot.h), and removes or keeps the segments
  /// and the older snapshot that it replaces. `sealed` = sealed_files() as the snapshot was made
  /// from.
  Status replace_by_snapshot(const std::string& partial_path, std::uint64_t position,
                             const JournalFiles& sealed,
                             Replaced treatment = Replaced::kRemoved);

  [[nodiscard]] JournalFiles files() const;
  /// After seal(): the files that can be read by name while the journal goes on. A last segment
  /// without records is left out, since the next one takes its name. The positions that it voids
  /// are in `void_from`.
  [[nodiscard]] JournalFiles sealed_files() const;
  [[nodiscard]] std::uint64_t last_position() const noexcept;
  /// Bytes of all files as written (the preallocated rest of the last segment not counted).
  [[nodiscard]] std::uint64_t total_bytes() const noexcept;
  [[nodiscard]] const std::string& directory() const noexcept;

 private:
  struct Impl;
  explicit Journal(std::unique_ptr<Impl> impl) noexcept;
  std::unique_ptr<Impl> impl_;
};

/// Whether the directory, which may be missing, has files with records.
[[nodiscard]] bool has_segments(Files& files, const std::string& directory);

/// More positions than a file can use: a record has 40 bytes or more.
inline constexpr std::uint64_t kPositionsOfAFile = std::uint64_t{1} << 32;

/// Whether the journal ends in damage, of the last segment's header or of its end, so that nobody
/// knows how many records are lost. False once a snapshot has the first of their positions.
[[nodiscard]] bool ends_in_damage(const JournalFiles& journal) noexcept;
/// For a start without the live store: the positions that a damaged last file may have used count
/// as used, and their records as missing.
void pass_over_damaged_end(Journal& journal) noexcept;

/// True when a later segment says that the record at `position` never took place.
[[nodiscard]] bool is_void(const JournalFiles& journal, std::uint64_t position) noexcept;

/// The last position of the segment of that index that is known to have been synced, since a later
/// segment was begun after it. 0: none is.
[[nodiscard]] std::uint64_t synced_end(const JournalFiles& journal, std::size_t index) noexcept;

/// Calls `visit` for each valid record with a position above `after`, in order, skipping void ones.
/// Missing records are reported to `note`, before the first record after them. An error of `visit`
/// ends the walk.
using RecordVisit = std::function<Status(JournalRecord&&)>;
Status for_each_record(Files& files, const JournalFiles& journal, std::uint64_t after,
                       const RecordVisit& visit, const NoteSink& note);

/// kIo while the journal's end is not durable (JournalHealth::has_durable_end): a host crash could
/// take back served data. To be checked before any promise that depends on the end. Any thread.
[[nodiscard]] inline Status check_end(const Journal& journal) {
  if (journal.health().has_durable_end()) return {};
  return fail(Errc::kIo, "the end of the journal could not be made durable again yet");
}

/// kIo while the journal is known to lack records (JournalHealth::lacks_records). To be checked
/// before an update: it would exist in the live store only, or after a gap. Any thread.
[[nodiscard]] inline Status check_whole(const Journal& journal) {
  if (!journal.health().lacks_records()) return {};
  return fail(Errc::kIo,
              "the journal lacks records: updates wait until a snapshot of all zones is written");
}

/// The thread that appends to the journal and removes its files.
///
/// Only the commit thread posts, so an idle thread stays idle until the commit thread posts again.
/// The commit thread never waits here: neither for a task nor for a lock.
class JournalThread : public TaskThread {};

}  // namespace pando::manager
