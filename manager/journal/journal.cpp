#include "manager/journal/journal.h"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <utility>

#include "base/crash_point.h"
#include "base/pause_point.h"
#include "base/random.h"
#include "manager/journal/journal_recovery.h"
#include "manager/journal/journal_tail.h"
#include "manager/journal/record/journal_format.h"
#include "manager/journal/segment_reader.h"

namespace pando::manager {

bool has_segments(Files& files, const std::string& directory) {
  const auto names = files.list(directory);
  if (!names) return names.error().code != Errc::kNotFound;
  return std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return journal_file_number(name, kSegmentSuffix) ||
                  journal_file_number(name, kSnapshotSuffix);
         });
}

bool is_void(const JournalFiles& journal, std::uint64_t position) noexcept {
  if (journal.void_from != 0 && position >= journal.void_from) return true;
  return std::any_of(journal.segments.begin(), journal.segments.end(), [&](const auto& segment) {
    return position >= segment.header.void_from && position < segment.header.first;
  });
}

bool ends_in_damage(const JournalFiles& journal) noexcept {
  const std::uint64_t damaged = journal.health.lost().from;
  return damaged > journal.snapshot_position &&
         (journal.segments.empty() || journal.segments.back().header.first <= damaged);
}

void pass_over_damaged_end(Journal& journal) noexcept {
  const JournalFiles present = journal.files();
  if (ends_in_damage(present)) journal.skip_to(present.health.lost().from + kPositionsOfAFile);
}

std::uint64_t synced_end(const JournalFiles& journal, std::size_t index) noexcept {
  if (index + 1 >= journal.segments.size()) return 0;
  const SegmentHeader& next = journal.segments[index + 1].header;
  return std::min(next.first, next.void_from) - 1;
}

namespace {
/// A passing error ends within these; after that the records are taken for lost.
constexpr int kTriesBeforeSnapshot = 3;
}  // namespace

struct Journal::Impl {
  JournalOptions options;
  Files& disk;

  NoteSink note;

  mutable std::mutex mutex;  // guards the three members that follow
  JournalFiles listing;
  std::uint64_t store_position = 0;  // see store_is_at()
  std::chrono::steady_clock::time_point next_try{};

  JournalTail tail;

  std::unique_ptr<StoreFile> active;  // null: the next group opens a new segment
  std::uint64_t active_bytes = 0;     // preallocated size of `active`
  std::uint64_t written = 0;          // offset for the next group
  std::uint64_t nonce = 0;
  std::atomic<std::uint64_t> last{0};
  std::atomic<std::uint64_t> total{0};

  Impl(JournalOptions o, Files& f, NoteSink n)
      : options(std::move(o)), disk(f), note(std::move(n)), tail(disk, options.directory) {
    listing.health = JournalHealth(kTriesBeforeSnapshot * options.retry);
  }

  std::string path(std::uint64_t number, std::string_view suffix) const {
    return options.directory + "/" + journal_file_name(number, suffix);
  }
  void recount();
  void take(RecoveredJournal&& recovered);
  void note_missing_end(std::uint64_t end);
  Status read_again();
  Status be_ready();
  tl::unexpected<Error> refuse(const Error& why);
  Result<std::unique_ptr<StoreFile>> make_segment(const std::string& file, std::uint64_t room,
                                                  std::uint64_t& bytes);
  Status open_segment(std::uint64_t room, std::span<const JournalEntry> group = {});
  [[nodiscard]] Result<Bytes> encode_group(std::span<const JournalEntry> group,
                                           std::uint64_t segment_nonce) const;
  void poison(std::uint64_t group_first) noexcept;
  void void_now();
  Status mark_keeping();
  Status drop(const std::string& file, Replaced old);
};

/// Sizes as they are on disk; the segment being written counts as far as it is written.
void Journal::Impl::recount() {
  const auto size_of = [this](const std::string& file) -> std::uint64_t {
    auto opened = disk.open(file, OpenMode::kRead);
    if (!opened) return 0;
    return (*opened)->size().value_or(0);
  };
  std::uint64_t sum = listing.snapshot.empty() ? 0 : size_of(listing.snapshot);
  for (std::size_t i = 0; i < listing.segments.size(); ++i) {
    const bool writing = active && i + 1 == listing.segments.size();
    sum += writing ? written : size_of(listing.segments[i].path);
  }
  total = sum;
}

/// A process that was killed may have made a folder whose name is not durable. Without the sync a
/// power cut could take the folder, with all that was synced in it.
static void sync_parents(Files& files, const std::string& directory, const NoteSink& note) {
  std::filesystem::path folder(directory);
  while (folder.has_relative_path()) {
    const std::filesystem::path parent = folder.parent_path();
    auto synced = files.sync_directory(parent.empty() ? "." : parent.string());
    if (!synced) note({false, synced.error().text});
    folder = parent;
  }
}

Result<Journal> Journal::open(const JournalOptions& options, Files& files, NoteSink note) {
  auto impl = std::make_unique<Impl>(options, files, std::move(note));
  if (auto made = files.make_directory(options.directory); !made) return pass(made);
  auto recovered = recover_journal(files, options.directory, impl->tail, impl->note);
  if (!recovered) return pass(recovered);
  const JournalFiles& found = recovered->files;
  if (found.segments.empty() && found.snapshot.empty() && !found.health.is_unreadable())
    sync_parents(files, options.directory, impl->note);
  impl->take(std::move(*recovered));
  return Journal(std::move(impl));
}

void Journal::Impl::take(RecoveredJournal&& recovered) {
  {
    const std::lock_guard lock(mutex);
    recovered.files.health.continue_from(listing.health);
    listing = std::move(recovered.files);
    listing.identity = options.identity;
    next_try = std::chrono::steady_clock::now() + options.retry;
    last = std::max(last.load(), recovered.last);
    const JournalHealth& health = listing.health;
    // Never published, hence never acknowledged; the store has gone on without these records.
    if (!health.is_unreadable() && health.store_has_all() && last > store_position)
      listing.void_from = store_position + 1;
  }
  if (!listing.health.is_unreadable()) note_missing_end(recovered.last);
  recount();
}

/// The journal was restored from a backup, or has lost its end. Nothing in the files tells that
/// until the next segment begins, and a removed zone that comes back before that may have had
/// records there.
void Journal::Impl::note_missing_end(std::uint64_t end) {
  std::string why;
  {
    const std::lock_guard lock(mutex);
    if (end == 0 || end >= store_position || listing.health.lost().to >= store_position) return;
    why = fmt::format("it ends at position {}, and the store has {}", end, store_position);
    listing.health.extend_lost(store_position);
    listing.health.report(JournalHealth::State::kBehind, why);
  }
  note({true, why, end + 1, store_position});
}

/// For a journal that could not be read: tries again, once in a while.
Status Journal::Impl::read_again() {
  if (!listing.health.is_unreadable()) return {};
  if (std::chrono::steady_clock::now() < next_try)
    return fail(Errc::kIo, "{}", listing.health.reason());
  std::vector<JournalNote> notes;
  auto recovered = recover_journal(disk, options.directory, tail,
                                   [&](const JournalNote& one) { notes.push_back(one); });
  if (!recovered) return pass(recovered);
  take(std::move(*recovered));
  if (listing.health.is_unreadable()) return fail(Errc::kIo, "{}", listing.health.reason());
  for (const JournalNote& one : notes) note(one);
  note({false, "the journal could be read again"});
  return {};
}

/// Before anything is appended: the journal was read, and its end is durable.
Status Journal::Impl::be_ready() {
  auto done = read_again();
  return done ? tail.secure() : done;
}

/// Keeps the reason for people.
tl::unexpected<Error> Journal::Impl::refuse(const Error& why) {
  const std::lock_guard lock(mutex);
  listing.health.refuse(why.text);
  return pass(why);
}

/// A file with space reserved for at least one group: the usual segment size, or less on a full
/// disk.
Result<std::unique_ptr<StoreFile>> Journal::Impl::make_segment(const std::string& file,
                                                               std::uint64_t room,
                                                               std::uint64_t& bytes) {
  const std::uint64_t least = kSegmentHeaderBytes + room;
  bytes = std::max(options.segment_bytes, least);
  for (;;) {
    auto opened = disk.open(file, OpenMode::kCreate);
    if (!opened) return opened;
    auto grown = (*opened)->preallocate(bytes);
    if (grown) return opened;
    if (grown.error().code != Errc::kFull || bytes == least) return pass(grown);
    bytes = std::max(bytes / 4, least);
  }
}

/// The file gets its name only after its header is durable, and records only after its name is. A
/// killed process may have left an empty segment of this name; its voided positions stay void. A
/// first `group` is durable before the name.
Status Journal::Impl::open_segment(std::uint64_t room, std::span<const JournalEntry> group) {
  if (auto done = be_ready(); !done) return done;
  SegmentHeader header;
  header.first = last + 1;
  header.void_from = listing.void_from != 0 ? listing.void_from : header.first;
  const bool is_again =
      !listing.segments.empty() && listing.segments.back().header.first == header.first;
  // A segment whose records are all void takes the positions along that it voids itself. A snapshot
  // may drop the segment, and its header with it.
  for (auto old = listing.segments.rbegin();
       old != listing.segments.rend() && old->header.first >= header.void_from; ++old)
    header.void_from = std::min(header.void_from, old->header.void_from);
  header.nonce = random_number<std::uint64_t>();
  header.identity = options.identity;
  const std::string file = path(header.first, kSegmentSuffix);
  const std::string partial = file + std::string(kPartialSuffix);
  auto records = encode_group(group, header.nonce);
  if (!records) return pass(records);
  std::uint64_t bytes = 0;
  auto opened = make_segment(partial, room, bytes);
  Status made = opened ? (*opened)->write_at(0, encode_segment_header(header)) : pass(opened);
  if (made && !records->empty()) made = (*opened)->write_at(kSegmentHeaderBytes, *records);
  if (made) made = (*opened)->sync();
  if (!made) {
    static_cast<void>(disk.remove(partial));  // freed blocks may let the next try succeed
    return made;
  }
  crash_point("journal-segment-made");
  if (auto renamed = disk.rename(partial, file); !renamed) return renamed;
  crash_point("journal-segment-renamed");
  if (auto synced = disk.sync_directory(options.directory); !synced) return synced;
  crash_point("journal-segment-named");
  active = std::move(*opened);
  active_bytes = bytes;
  written = kSegmentHeaderBytes + records->size();
  total += written;
  last += group.size();
  nonce = header.nonce;
  const std::lock_guard lock(mutex);
  listing.void_from = 0;
  listing.health.accept();
  if (is_again) listing.segments.pop_back();
  listing.segments.push_back({file, header, written});
  return {};
}

void Journal::Impl::poison(std::uint64_t group_first) noexcept {
  active.reset();
  const std::lock_guard lock(mutex);
  if (listing.void_from == 0 || group_first < listing.void_from) listing.void_from = group_first;
}

/// Makes it durable that a refused group never took place. Its bytes may be on disk, and the next
/// process would take them for an acknowledged group. On a disk that refuses even this, the group
/// is cut off for the case that this process is killed.
void Journal::Impl::void_now() {
  if (open_segment(0) || listing.segments.empty()) return;
  auto file = disk.open(listing.segments.back().path, OpenMode::kWrite);
  if (file) static_cast<void>((*file)->truncate(written).has_value());
}

Status Journal::Impl::mark_keeping() {
  auto made = disk.open(options.directory + "/" + std::string(kKeepName), OpenMode::kCreate);
  return made ? disk.sync_directory(options.directory) : Status(pass(made));
}

/// For a file that a snapshot has replaced.
Status Journal::Impl::drop(const std::string& file, Replaced old) {
  if (old == Replaced::kRemoved) return disk.remove(file);
  auto kept = keep_unread(disk, file, note);
  if (!kept) return pass(kept);
  const std::lock_guard lock(mutex);
  listing.health.add_replaced(std::move(*kept));
  return {};
}

/// Upper bound of a group's bytes.
static std::uint64_t room_for(std::span<const JournalEntry> group) {
  std::uint64_t need = 0;
  for (const JournalEntry& entry : group)
    need += kRecordHeaderBytes + dns::kMaxNameOctets + 16 + entry.payload.size();
  return need;
}

/// The encoded records, at the next positions.
Result<Bytes> Journal::Impl::encode_group(std::span<const JournalEntry> group,
                                          std::uint64_t segment_nonce) const {
  const std::uint64_t first = last + 1;
  Bytes bytes;
  bytes.reserve(room_for(group));
  std::uint64_t position = first;
  for (const JournalEntry& entry : group) {
    if (entry.payload.size() + dns::kMaxNameOctets + 8 > kMaxRecordBody)
      return fail(Errc::kFull, "changeset of {} bytes is above the journal's record limit",
                  entry.payload.size());
    append_record(bytes,
                  {position++, first, entry.kind, entry.zone, entry.from, entry.to, entry.payload,
                   &entry == &group.back()},
                  segment_nonce);
  }
  return bytes;
}

JournalHealth Journal::health() const {
  const std::lock_guard lock(impl_->mutex);
  JournalHealth health = impl_->listing.health;
  health.set_secured(impl_->tail.is_secured());
  return health;
}

void Journal::report(JournalHealth::State fault, const std::string& why) {
  const std::lock_guard lock(impl_->mutex);
  const bool was_unreadable = impl_->listing.health.is_unreadable();
  impl_->listing.health.report(fault, why);
  if (!was_unreadable && impl_->listing.health.is_unreadable())
    impl_->next_try = std::chrono::steady_clock::now() + impl_->options.retry;
}

Result<std::uint64_t> Journal::append(std::span<const JournalEntry> group) {
  Impl& journal = *impl_;
  if (group.empty()) {
    if (auto done = journal.be_ready(); !done) return journal.refuse(done.error());
    const std::lock_guard lock(journal.mutex);
    journal.listing.health.accept();
    return journal.last.load();
  }
  const std::uint64_t need = room_for(group);
  if (journal.active && journal.written + need > journal.active_bytes) seal();
  if (!journal.active) {
    if (auto opened = journal.open_segment(need); !opened)
      return journal.refuse(opened.error());
  }
  const std::uint64_t first = journal.last + 1;
  auto bytes = journal.encode_group(group, journal.nonce);
  if (!bytes) return pass(bytes);
  // From here on the positions are used, whether or not the group reaches the disk.
  journal.last += group.size();
  crash_point("journal-before-write");
  auto done = journal.active->write_at(journal.written, *bytes);
  crash_point("journal-written");
  pause_point("journal-sync");
  if (done) done = journal.active->sync();
  crash_point("journal-synced");
  if (!done) {
    journal.poison(first);
    auto refused = journal.refuse(done.error());
    journal.void_now();  // a new segment ends the problem
    return refused;
  }
  journal.written += bytes->size();
  journal.total += bytes->size();
  const std::lock_guard lock(journal.mutex);
  journal.listing.segments.back().bytes = journal.written;
  return journal.last.load();
}

void Journal::abandon(std::uint64_t from) noexcept {
  impl_->poison(from);
  impl_->void_now();
}

void Journal::skip_to(std::uint64_t position) noexcept {
  if (position > impl_->last) impl_->last = position;
}

void Journal::store_is_at(std::uint64_t position, bool has_all) {
  bool is_unreadable = false;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->store_position = position;
    if (has_all) impl_->listing.health.set_store_has_all();
    is_unreadable = impl_->listing.health.is_unreadable();
  }
  if (!is_unreadable) impl_->note_missing_end(impl_->last);
  skip_to(position);
}

void Journal::begin_behind(std::uint64_t position) noexcept {
  skip_to(position);
  const std::lock_guard lock(impl_->mutex);
  impl_->listing.void_from = 1;
}

Status Journal::begin_with(std::uint64_t position, std::span<const JournalEntry> notes) {
  begin_behind(position);
  auto opened = impl_->open_segment(room_for(notes), notes);
  if (opened) return {};
  const std::lock_guard lock(impl_->mutex);
  impl_->listing.void_from = 0;
  return opened;
}

Status Journal::begin_segment() { return impl_->active ? Status() : impl_->open_segment(0); }

void Journal::seal() noexcept {
  if (!impl_->active) return;
  // Giving the rest back is a courtesy: the reader takes zeros as the end.
  static_cast<void>(impl_->active->truncate(impl_->written).has_value());
  impl_->active.reset();
}

Status Journal::replace_by_snapshot(const std::string& partial_path, std::uint64_t position,
                                    const JournalFiles& sealed, Replaced treatment) {
  Impl& journal = *impl_;
  // A snapshot that could not be read must stay, and may have the same position. The new one takes
  // the next position then, which no record has.
  const bool is_same = treatment == Replaced::kKept &&
                       sealed.snapshot == journal.path(position, kSnapshotSuffix);
  if (is_same && journal.last > position)
    return fail(Errc::kExists, "the journal went on behind its unread snapshot: tried again");
  if (is_same) skip_to(++position);
  const std::string file = journal.path(position, kSnapshotSuffix);
  // The next process has to know it, too, if this one is killed before the last file is renamed.
  if (treatment == Replaced::kKept)
    if (auto marked = journal.mark_keeping(); !marked) return marked;
  if (auto renamed = journal.disk.rename(partial_path, file); !renamed) return renamed;
  crash_point("journal-snapshot-renamed");
  if (auto synced = journal.disk.sync_directory(journal.options.directory); !synced) return synced;
  crash_point("journal-snapshot-named");
  {
    const std::lock_guard lock(journal.mutex);
    journal.listing.snapshot = file;
    journal.listing.snapshot_position = position;
    const bool had_unreadable_part = journal.listing.health.heal(sealed.health);
    std::erase_if(journal.listing.segments, [&](const JournalFiles::Segment& segment) {
      return std::any_of(
          sealed.segments.begin(), sealed.segments.end(), [&](const JournalFiles::Segment& old) {
            return old.path == segment.path && old.header.nonce == segment.header.nonce;
          });
    });
    if (had_unreadable_part) {
      // Unread files may have used positions. So these are passed over, as positions that never
      // took place.
      journal.listing.void_from = position + 1;
      journal.last = std::max(journal.last.load(), position) + kPositionsOfAFile;
    }
    const auto& left = journal.listing.segments;
    if (std::none_of(left.begin(), left.end(),
                     [&](const auto& segment) { return journal.tail.is_in(segment.path); }))
      journal.tail.forget();  // the snapshot has the tail
  }
  for (const JournalFiles::Segment& segment : sealed.segments) {
    if (auto dropped = journal.drop(segment.path, treatment); !dropped) return dropped;
    crash_point("journal-segment-dropped");
  }
  if (!sealed.snapshot.empty() && sealed.snapshot != file) {
    if (auto dropped = journal.drop(sealed.snapshot, treatment); !dropped) return dropped;
  }
  journal.recount();
  auto done = journal.disk.sync_directory(journal.options.directory);
  if (done && treatment == Replaced::kKept)
    done = journal.disk.remove(journal.options.directory + "/" + std::string(kKeepName));
  return done;
}

JournalFiles Journal::files() const {
  const std::lock_guard lock(impl_->mutex);
  JournalFiles files = impl_->listing;
  files.health.set_secured(impl_->tail.is_secured());
  return files;
}

JournalFiles Journal::sealed_files() const {
  JournalFiles files = this->files();
  if (files.segments.empty() || files.segments.back().header.first <= impl_->last) return files;
  const SegmentHeader empty = files.segments.back().header;
  files.segments.pop_back();
  if (empty.void_from < empty.first && (files.void_from == 0 || empty.void_from < files.void_from))
    files.void_from = empty.void_from;
  // Nothing else tells that records before it are missing.
  files.health.extend_lost(std::min(empty.void_from, empty.first) - 1);
  return files;
}

std::uint64_t Journal::last_position() const noexcept { return impl_->last; }
std::uint64_t Journal::total_bytes() const noexcept { return impl_->total; }
const std::string& Journal::directory() const noexcept { return impl_->options.directory; }

Journal::Journal(std::unique_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
Journal::Journal(Journal&&) noexcept = default;
Journal& Journal::operator=(Journal&&) noexcept = default;
Journal::~Journal() = default;

namespace {

/// `last` becomes the position of the segment's last record.
Status visit_segment(SegmentReader& reader, const JournalFiles& journal,
                     const JournalFiles::Segment& segment, std::uint64_t after,
                     const RecordVisit& visit, const NoteSink& note, std::uint64_t& last) {
  last = segment.header.first - 1;
  for (;;) {
    auto record = reader.next();
    if (!record)
      return fail(record.error().code, "journal file {}: {}", segment.path, record.error().text);
    if (!*record) return {};
    const std::uint64_t position = (*record)->position;
    if (position > last + 1)
      note({true,
            fmt::format("journal file {}: damaged, records {} to {} lost", segment.path, last + 1,
                        position - 1),
            last + 1, position - 1});
    last = position;
    if ((*record)->position <= after || is_void(journal, (*record)->position)) continue;
    if (auto visited = visit(std::move(**record)); !visited) return visited;
  }
}

}  // namespace

Status for_each_record(Files& files, const JournalFiles& journal, std::uint64_t after,
                       const RecordVisit& visit, const NoteSink& note) {
  std::uint64_t reached = std::max(after, journal.snapshot_position);
  for (std::size_t i = 0; i < journal.segments.size(); ++i) {
    const JournalFiles::Segment& segment = journal.segments[i];
    const bool last = i + 1 == journal.segments.size();
    if (!last && journal.segments[i + 1].header.first <= after + 1) continue;
    auto reader =
        SegmentReader::open(files, segment.path, segment.bytes, synced_end(journal, i));
    if (!reader)
      return fail(reader.error().code, "journal file {}: {}", segment.path, reader.error().text);
    // Positions between two segments are void, or a file is missing.
    if (const std::uint64_t next = std::min(segment.header.first, segment.header.void_from);
        next > reached + 1)
      note({true, fmt::format("journal records {} to {} are missing", reached + 1, next - 1),
            reached + 1, next - 1});
    std::uint64_t read = 0;
    if (auto visited = visit_segment(*reader, journal, segment, after, visit, note, read); !visited)
      return visited;
    reached = std::max(reached, read);
  }
  return {};
}

}  // namespace pando::manager
