#include "manager/journal/journal_recovery.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/segment_reader.h"
#include "manager/journal/snapshot_file.h"

namespace pando::manager {

namespace {

/// Records begin at multiples of this.
constexpr std::size_t kRecordPadding = 8;
/// Files kept under one name, before an operator has to remove some.
constexpr unsigned kMaxKept = 1000;

Result<std::string> name_to_keep(Files& disk, const std::string& first) {
  std::string name = first;
  for (unsigned i = 1; i < kMaxKept; name = fmt::format("{}.{}", first, i++)) {
    const auto there = disk.open(name, OpenMode::kRead);
    if (!there && there.error().code == Errc::kNotFound) return name;
  }
  return fail(Errc::kExists, "{} files of the name {} are kept: look into them, and remove them",
              kMaxKept, first);
}

/// For an intact file of another format. The file has data that another build can read, so nothing
/// may be appended after them.
Status refused(const Error& why) { return fail(why.code, "journal file {}", why.text); }

/// Of the last segment. The tail may prove that damaged records had been synced; readers skip the
/// tail each time.
std::uint64_t bytes_to_keep(const SegmentReader& reader) noexcept {
  return reader.damaged_places() != 0 ? reader.readable_bytes() : reader.valid_bytes();
}

/// One look through the folder, file by file in the order of their names.
class Recovery {
 public:
  Recovery(Files& disk, const std::string& directory, JournalTail& tail, const NoteSink& note)
      : disk_(disk), directory_(directory), tail_(tail), note_(note) {}

  Status scan_directory();
  void drop_replaced();
  void recover_last_segment();
  void end_keeping();
  RecoveredJournal take() {
    const std::uint64_t damaged = health().lost().from;
    if (!health().lacks_records() && damaged > files_.snapshot_position)
      health().report(
          JournalHealth::State::kBehind,
          fmt::format("a damaged journal file, from position {} on, was left out", damaged));
    return {std::move(files_), last_};
  }

 private:
  Status take_name(const std::string& name);
  Status take_segment(const std::string& name, std::uint64_t first);
  Status take_snapshot(const std::string& name, std::uint64_t position);
  Status put_aside(const std::string& file, std::uint64_t first);
  void cannot_read(const std::string& file, const Error& why);
  Status read_last_segment();
  Status recover_tail(const std::string& file, const SegmentReader& reader);
  void remove_replaced(const std::string& file);
  void tell_lack(const std::string& why) {
    note_({true, why});
    health().report(JournalHealth::State::kBehind, why);
  }
  JournalHealth& health() noexcept { return files_.health; }

  Files& disk_;
  const std::string& directory_;
  JournalTail& tail_;
  const NoteSink& note_;
  JournalFiles files_;
  std::uint64_t last_ = 0;
  bool names_synced_ = false;
  bool keeps_replaced_ = false;  // replaced files may have a part that nobody could read
  bool all_replaced_ = true;     // removed, or kept under another name
};

/// A segment gets its name after its header was synced, so a header unlike the name is damage. A
/// read error is not: to continue without the file's records would be to write over them. The
/// segment is listed, so that its records count as missing.
Status Recovery::take_segment(const std::string& name, std::uint64_t first) {
  const std::string file = directory_ + "/" + name;
  auto reader = SegmentReader::open(disk_, file);
  if (!reader && reader.error().code == Errc::kLayout) return refused(reader.error());
  if (!reader && reader.error().code != Errc::kCorrupt) {
    cannot_read(file, reader.error());
    SegmentHeader unknown;
    unknown.first = unknown.void_from = first;
    files_.segments.push_back({file, unknown});
    return {};
  }
  if (!reader || reader->header().first != first) return put_aside(file, first);
  files_.segments.push_back({file, reader->header()});
  return {};
}

/// Renames a damaged segment: the next segment may need the name, and an operator may want to
/// examine the file.
Status Recovery::put_aside(const std::string& file, std::uint64_t first) {
  health().leave_out(first);
  auto name = keep_file(disk_, file, kDamagedSuffix);
  if (!name && name.error().code == Errc::kExists) return pass(name);
  if (!name) {
    cannot_read(file, name.error());
    return {};
  }
  crash_point("journal-put-aside");
  tell_lack(
      fmt::format("journal file {} has a damaged header: left out, kept as {}", file, *name));
  if (auto synced = disk_.sync_directory(directory_); !synced) cannot_read(file, synced.error());
  return {};
}

void Recovery::cannot_read(const std::string& file, const Error& why) {
  const std::string text = fmt::format("journal file {}: {}", file, why.text);
  note_({true, text + "; updates are refused, and the journal is read again"});
  health().report(JournalHealth::State::kUnreadable, text);
}

Status Recovery::take_name(const std::string& name) {
  if (name.ends_with(kPartialSuffix)) {
    // A later writer truncates the file, so a failure here costs nothing.
    if (auto removed = disk_.remove(directory_ + "/" + name); !removed)
      note_({false, removed.error().text});
    return {};
  }
  if (name.find(kUnreadSuffix) != std::string::npos) health().add_replaced(directory_ + "/" + name);
  if (const auto first = journal_file_number(name, kSegmentSuffix))
    return take_segment(name, *first);
  if (const auto first = damaged_file_number(name))
    health().leave_out(*first);
  else if (const auto position = journal_file_number(name, kSnapshotSuffix))
    return take_snapshot(name, *position);
  return {};
}

/// Names come in ascending order: a second snapshot is newer, the first was being removed. A
/// snapshot of another format has data that only another build can read, so nothing may be put in
/// its place. Damage is found by the snapshot's readers.
Status Recovery::take_snapshot(const std::string& name, std::uint64_t position) {
  const std::string file = directory_ + "/" + name;
  const auto reader = SnapshotFile::open(disk_, file);
  if (!reader && reader.error().code == Errc::kLayout) return refused(reader.error());
  const std::string older = std::exchange(files_.snapshot, file);
  files_.snapshot_position = position;
  if (!older.empty()) remove_replaced(older);
  return {};
}

/// A process killed before the sync may have left the snapshot's name undurable. So the directory
/// is synced before the first replaced file is removed. A file that remains is removed by a later
/// start.
void Recovery::remove_replaced(const std::string& file) {
  Status done;
  if (!names_synced_) done = disk_.sync_directory(directory_);
  names_synced_ = names_synced_ || done;
  if (done && keeps_replaced_) {
    auto kept = keep_unread(disk_, file, note_);
    if (kept)
      health().add_replaced(std::move(*kept));
    else
      done = pass(kept);
  } else if (done) {
    done = disk_.remove(file);
  }
  if (!done) note_({false, done.error().text});
  all_replaced_ = all_replaced_ && done;
}

/// The last process may have been killed after a snapshot that took the place of unread files.
void Recovery::end_keeping() {
  if (!keeps_replaced_ || !all_replaced_ || health().is_unreadable()) return;
  Status done = disk_.sync_directory(directory_);
  if (done) done = disk_.remove(directory_ + "/" + std::string(kKeepName));
  if (!done) note_({false, done.error().text});
}

Status Recovery::scan_directory() {
  auto names = disk_.list(directory_);
  if (!names) {
    cannot_read(directory_, names.error());
    return {};
  }
  keeps_replaced_ = std::find(names->begin(), names->end(), kKeepName) != names->end();
  for (const std::string& name : *names) {
    if (auto taken = take_name(name); !taken) return taken;
  }
  return {};
}

/// Removes segments whose records the snapshot holds, left by a crash before their removal.
void Recovery::drop_replaced() {
  auto& segments = files_.segments;
  while (segments.size() > 1 && segments[1].header.void_from <= files_.snapshot_position + 1) {
    remove_replaced(segments.front().path);
    segments.erase(segments.begin());
  }
}

/// Zeros after the last record are the preallocated rest; anything else was never synced.
Status Recovery::recover_tail(const std::string& file, const SegmentReader& reader) {
  if (reader.torn())
    note_({false, fmt::format("journal file {}: torn tail cut off at byte {}", file,
                              reader.valid_bytes())});
  if (const auto& pages = reader.unread_reserve(); !pages.empty())
    note_({false, fmt::format("journal file {}: {} pages from byte {} on cannot be read; they lie "
                              "behind the last record, in space that was never used",
                              file, pages.size(), pages.front())});
  const std::uint64_t length = bytes_to_keep(reader);
  auto old = disk_.open(file, OpenMode::kRead);
  if (!old) return pass(old);
  Bytes bytes(length);
  auto got = (*old)->read_at(0, bytes);
  if (!got) return pass(got);
  // The file may lack the last record's padding.
  if (*got + kRecordPadding <= length)
    return fail(Errc::kIo, "journal file {}: cut off at byte {}", file, *got);
  tail_.found(file, std::move(bytes));
  crash_point("journal-recovering");
  auto done = tail_.secure();
  if (!done && done.error().code == Errc::kFull) {
    // The space reserved for more records may be what the copy lacks.
    old = disk_.open(file, OpenMode::kWrite);
    if (old && (*old)->truncate(length)) done = tail_.secure();
  }
  if (!done) note_({true, done.error().text + "; updates are refused until it is"});
  crash_point("journal-recovered");
  return {};
}

void Recovery::recover_last_segment() {
  last_ = files_.snapshot_position;
  if (files_.segments.empty()) return;
  last_ = std::max(last_, files_.segments.back().header.first - 1);
  if (health().is_unreadable()) return;  // its end is unknown, or its header
  const std::string file = files_.segments.back().path;
  if (auto read = read_last_segment(); !read) cannot_read(file, read.error());
}

Status Recovery::read_last_segment() {
  const JournalFiles::Segment& segment = files_.segments.back();
  auto reader = SegmentReader::open(disk_, segment.path);
  if (!reader) return pass(reader);
  bool is_replaced = segment.header.first <= files_.snapshot_position;
  for (;;) {
    auto record = reader->next();
    if (!record) return pass(record);
    if (!*record) break;
    last_ = std::max(last_, (*record)->position);
    is_replaced = (*record)->position <= files_.snapshot_position;
  }
  // The segment remains after a crash, if its removal was not durable and nothing was appended
  // since. No later segment says in that case that the snapshot has all its records.
  if (is_replaced) {
    remove_replaced(segment.path);
    files_.segments.pop_back();
    return {};
  }
  if (reader->ends_damaged()) health().leave_out(last_ + 1);
  if (reader->damaged_places() != 0)
    tell_lack(fmt::format("journal file {}: {} damaged places, records lost", segment.path,
                          reader->damaged_places()));
  if (auto recovered = recover_tail(segment.path, *reader); !recovered) return recovered;
  // Nothing more is written to the segment, but the next one may get the name of an empty one.
  files_.segments.back().bytes = bytes_to_keep(*reader);
  return {};
}

}  // namespace

Result<std::string> keep_file(Files& disk, const std::string& file, std::string_view suffix) {
  auto name = name_to_keep(disk, file + std::string(suffix));
  if (!name) return name;
  if (auto renamed = disk.rename(file, *name); !renamed) return pass(renamed);
  return name;
}

Result<std::string> keep_unread(Files& disk, const std::string& file, const NoteSink& note) {
  auto name = keep_file(disk, file, kUnreadSuffix);
  if (name)
    note({true, fmt::format("journal file {} could not be read and was replaced by the live store: "
                            "kept as {}, for updates of zones that were not served",
                            file, *name)});
  return name;
}

Result<RecoveredJournal> recover_journal(Files& disk, const std::string& directory,
                                         JournalTail& tail, const NoteSink& note) {
  Recovery recovery(disk, directory, tail, note);
  if (auto scanned = recovery.scan_directory(); !scanned) return pass(scanned);
  recovery.drop_replaced();
  recovery.recover_last_segment();
  recovery.end_keeping();
  return recovery.take();
}

}  // namespace pando::manager
