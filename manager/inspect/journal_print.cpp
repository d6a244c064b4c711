#include "manager/inspect/journal_print.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/fd.h"
#include "manager/inspect/journal_words.h"
#include "manager/journal/journal.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/segment_reader.h"
#include "shm/map/locks.h"

namespace pando::manager {

namespace {

constexpr std::size_t kMaxDamageLines = 100;

class JournalPrinter {
 public:
  JournalPrinter(Files& files, const JournalFiles& journal, const JournalPage& page)
      : files_(files), journal_(journal), page_(page) {}

  ipc::JournalPrintResult print() {
    tell_known_faults();
    const std::uint64_t after = page_.from == 0 ? 0 : page_.from - 1;
    result_.snapshot = journal_.snapshot_position;
    result_.last = std::max(after, journal_.snapshot_position);
    for (std::size_t i = 0; i < journal_.segments.size() && result_.next == 0; ++i) {
      const bool is_last = i + 1 == journal_.segments.size();
      if (!is_last && journal_.segments[i + 1].header.first <= after + 1) continue;
      print_segment(i, is_last);
    }
    return std::move(result_);
  }

 private:
  void tell(std::string text) {
    if (result_.damage.size() < kMaxDamageLines) result_.damage.push_back(std::move(text));
  }

  /// Faults of the whole journal, without a position, belong to the first page.
  void tell_known_faults() {
    if (page_.from > 1) return;
    const JournalHealth& health = journal_.health;
    if (health.is_unreadable()) tell(health.reason());
    if (health.lacks_records()) tell(health.lack());
    if (health.replaced().files != 0)
      tell(fmt::format("{} was replaced although it could not be read", health.replaced().last));
  }

  void tell_missing(const std::string& path, std::uint64_t from, std::uint64_t to) {
    tell(from == to ? fmt::format("{}: record {} is missing", path, from)
                    : fmt::format("{}: records {} to {} are missing", path, from, to));
  }

  void print_segment(std::size_t index, bool is_last) {
    const JournalFiles::Segment& segment = journal_.segments[index];
    // Positions between two segments are void, or a file is missing.
    const std::uint64_t next = std::min(segment.header.first, segment.header.void_from);
    if (next > result_.last + 1) tell_missing(segment.path, result_.last + 1, next - 1);
    auto reader =
        SegmentReader::open(files_, segment.path, segment.bytes, synced_end(journal_, index));
    if (!reader) return tell(fmt::format("{}: {}", segment.path, reader.error().text));
    std::uint64_t expected = segment.header.first;
    while (result_.next == 0) {
      auto record = reader->next();
      if (!record)
        return tell(fmt::format("{}: cannot be read behind record {}: {}", segment.path,
                                expected - 1, record.error().text));
      if (!*record) break;
      const std::uint64_t position = (*record)->position;
      if (position > expected && position > page_.from)
        tell_missing(segment.path, std::max(expected, page_.from), position - 1);
      expected = position + 1;
      take(**record);
    }
    if (!is_last || result_.next != 0) return;
    if (reader->ends_damaged())
      tell(fmt::format("{}: damaged behind record {}", segment.path, expected - 1));
    else if (reader->torn())
      tell(fmt::format("{}: behind record {} there is a group that was never finished, or damage",
                       segment.path, expected - 1));
  }

  void take(const JournalRecord& record) {
    if (record.position < page_.from || is_void(journal_, record.position)) return;
    if (is_full()) {
      result_.next = record.position;
      return;
    }
    read_ += record.payload.size() + kRecordHeaderBytes;
    result_.last = std::max(result_.last, record.position);
    if (page_.zone && !(record.zone.view() == page_.zone->view())) return;
    result_.records.push_back(words_of(record, page_.rows));
    text_ += text_bytes(result_.records.back());
  }

  [[nodiscard]] bool is_full() const {
    return result_.records.size() >= page_.records || text_ >= page_.text_bytes ||
           read_ >= page_.read_bytes;
  }

  Files& files_;
  const JournalFiles& journal_;
  const JournalPage& page_;
  ipc::JournalPrintResult result_;
  std::size_t text_ = 0;
  std::uint64_t read_ = 0;
};

/// The files of a folder that no manager has, as they are.
class FolderListing {
 public:
  explicit FolderListing(std::string folder) : folder_(std::move(folder)) {}

  Result<JournalFiles> list() {
    const auto names = native_files().list(folder_);
    if (!names) return pass(names);
    for (const std::string& name : *names) take(name);  // sorted, as positions are
    if (journal_.segments.empty() && journal_.snapshot.empty() &&
        !journal_.health.lacks_records())
      return fail(Errc::kNotFound, "{} has no files of a journal", folder_);
    return std::move(journal_);
  }

 private:
  void take(const std::string& name) {
    const std::string path = folder_ + "/" + name;
    if (const auto first = journal_file_number(name, kSegmentSuffix)) return take_segment(path);
    if (const auto position = journal_file_number(name, kSnapshotSuffix)) {
      journal_.snapshot = path;
      journal_.snapshot_position = *position;
    }
    if (damaged_file_number(name)) add_lack(path + ": left out for its damaged header");
  }

  void take_segment(const std::string& path) {
    auto reader = SegmentReader::open(native_files(), path);
    if (!reader) return add_lack(fmt::format("{}: {}", path, reader.error().text));
    journal_.segments.push_back({path, reader->header()});
  }

  void add_lack(const std::string& text) {
    const std::string& before = journal_.health.lack();
    journal_.health.report(JournalHealth::State::kBehind,
                           before.empty() ? text : before + "; " + text);
  }

  std::string folder_;
  JournalFiles journal_;
};

/// A manager that writes holds its lock. Checking this needs a descriptor for reading alone.
Status check_unused(const std::string& folder) {
  const std::string path = folder + "/journal.lock";
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file) return errno == ENOENT ? Status() : fail_errno("cannot read " + path);
  const auto locked = shm::try_lock(file.get(), shm::LockKind::kShared, 0);
  if (!locked) return pass(locked);
  if (!*locked)
    return fail(Errc::kExists, "a manager works in {}: ask it, without --file", folder);
  return {};
}

}  // namespace

ipc::JournalPrintResult print_journal(Files& files, JournalFiles journal,
                                      const JournalPage& page) {
  return JournalPrinter(files, journal, page).print();
}

Result<ipc::JournalPrintResult> print_journal_at(const std::string& path,
                                                 const JournalPage& page) {
  std::error_code unknown;
  if (!std::filesystem::is_directory(path, unknown)) {
    auto reader = SegmentReader::open(native_files(), path);
    if (!reader) return fail(reader.error().code, "{}: {}", path, reader.error().text);
    JournalFiles journal;
    journal.segments.push_back({path, reader->header()});
    journal.snapshot_position = 0;
    JournalPage from_first = page;
    from_first.from = std::max(page.from, reader->header().first);
    return print_journal(native_files(), std::move(journal), from_first);
  }
  if (auto unused = check_unused(path); !unused) return pass(unused);
  auto journal = FolderListing(path).list();
  if (!journal) return pass(journal);
  return print_journal(native_files(), std::move(*journal), page);
}

}  // namespace pando::manager
