#include "manager/checkpoint/store_opening.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "base/crash_point.h"
#include "base/pause_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "manager/checkpoint/store_replay.h"
#include "manager/journal/record/journal_payload.h"
#include "manager/support/found_damage.h"
#include "shm/live_file.h"

namespace pando::manager {

namespace {

/// An image up to this size is copied and checked in less than a tenth of a second. Then all served
/// data have been checked.
constexpr std::uint64_t kCopiedFirst = std::uint64_t{64} << 20;
/// Chunk numbers reserved after the image's, for changes while the image is copied.
constexpr std::uint64_t kRoomBehind = (std::uint64_t{1} << 30) / shm::kChunkBytes;
constexpr std::uint64_t kLeastRoom = 64;

/// Whether the filesystem of `path` has memory for all of `bytes` now.
bool has_memory(const std::string& path, std::uint64_t bytes) {
  struct statvfs status{};
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (::statvfs(folder.c_str(), &status) != 0) return false;
  return status.f_blocks == 0 || status.f_bavail * status.f_frsize >= bytes;  // 0: no limit
}

/// Whether a store can be served before the image is copied to it. Until then nothing becomes free,
/// so changes need space beside the image.
bool may_borrow(const shm::StoreOptions& options, const shm::ImageState& state) {
  const auto used = static_cast<std::uint64_t>(
      std::count_if(state.chunks.begin(), state.chunks.end(),
                    [](const shm::ImageChunk& chunk) { return chunk.count != 0; }));
  const std::uint64_t bytes = used * shm::kChunkBytes;
  if (bytes <= kCopiedFirst && !is_pause_point_armed("image-copy")) return false;
  return options.size_limit / shm::kChunkBytes >= used + used / 4 + kLeastRoom &&
         state.chunks.size() + kRoomBehind <= shm::kMaxImageChunks &&
         has_memory(options.path, bytes + bytes / 8);
}

/// The image's chunks, and the journal's records after the image.
class Restoration final : public shm::ImageSource {
 public:
  /// `path`: of a file with the chunks that may be mapped; empty: the chunks are copied first.
  Restoration(shm::ImageSource& chunks, std::string path, const BringUp& bring_up)
      : chunks_(chunks), path_(std::move(path)), bring_up_(bring_up) {}
  Result<shm::ImageFile> file(std::uint32_t chunks) override {
    if (path_.empty()) return fail(Errc::kUnsupported, "the image is copied first");
    mapped_ = chunks;
    return lend_image(path_, chunks);
  }
  void lent(std::unique_ptr<shm::Borrowing> borrowing) override {
    borrowing_ = std::move(borrowing);
  }
  /// Null when the store has all chunks.
  std::unique_ptr<shm::Borrowing> take_borrowing() { return std::move(borrowing_); }
  void used_again() override { is_whole_ = false; }
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }
  [[nodiscard]] std::uint32_t mapped() const noexcept { return mapped_; }
  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t checksum) override {
    return chunks_.read(chunk, into, checksum);
  }
  Status complete(shm::Store& store) override { return bring_up_ ? bring_up_(store) : Status(); }

 private:
  shm::ImageSource& chunks_;
  std::string path_;
  const BringUp& bring_up_;
  std::uint32_t mapped_ = 0;
  bool is_whole_ = true;
  std::unique_ptr<shm::Borrowing> borrowing_;
};

Result<OpenedStore> restore_from(const shm::StoreOptions& options, const StoreSeeds& seeds,
                                 bool copy_first) {
  Image& image = *seeds.image;
  auto chunks = image.source();
  if (!chunks) return pass(chunks);
  const shm::ImageState& state = image.index()->state;
  const bool borrows = !copy_first && may_borrow(options, state);
  Restoration source(**chunks, borrows ? image.chunks() : "", seeds.bring_up);
  auto store = shm::Store::restore(options, state, source);
  if (!store) return pass(store);
  OpenedStore opened{std::move(*store), OpenedStore::From::kImage};
  opened.has_image_version = source.is_whole();
  if (auto borrowing = source.take_borrowing())
    opened.lent = LentImage{std::move(*chunks), std::move(borrowing), image.chunks(),
                            source.mapped(),    image.path(),         options.path};
  return opened;
}

/// Restores the store from the image. An unusable image is reported and left out. kExists: another
/// manager runs.
Result<std::optional<OpenedStore>> restore_image(const shm::StoreOptions& options,
                                                 const StoreSeeds& seeds, bool copy_first) {
  if (seeds.image == nullptr || seeds.image->index() == nullptr) return std::nullopt;
  Image& image = *seeds.image;
  const auto start = std::chrono::steady_clock::now();
  const shm::ImageState& state = image.index()->state;
  auto opened = restore_from(options, seeds, copy_first);
  // Blocks freed in the image's own chunks give no space for the journal's records.
  if (!opened && opened.error().code == Errc::kFull && !copy_first)
    opened = restore_from(options, seeds, true);
  if (!opened && opened.error().code == Errc::kExists) return pass(opened);
  if (!opened) {
    image.forget();
    if (seeds.image_not_used) seeds.image_not_used(opened.error());
    return std::nullopt;
  }
  log::info("image_restored", "version", state.version, "journal_position", state.journal_position,
            "bytes", opened->store.stats().memory_bytes, "bytes_to_copy",
            opened->lent ? opened->lent->borrowing->bytes() : 0, "ms", milliseconds_since(start));
  return std::optional<OpenedStore>(std::move(*opened));
}

}  // namespace

Result<OpenedStore> open_store(const shm::StoreOptions& options, const StoreSeeds& seeds) {
  // The last process may have died of the image that was not copied yet (SIGBUS). So this time the
  // whole image is read and compared before anything is served.
  const bool copy_first = seeds.copy_first || shm::died_borrowing(options);
  auto live = shm::Store::attach(options);
  if (live) return OpenedStore{std::move(*live), OpenedStore::From::kLive};
  const Errc why = live.error().code;
  if (why != Errc::kNotFound && why != Errc::kLayout && why != Errc::kCorrupt) return pass(live);
  if (seeds.not_live)
    if (auto ready = seeds.not_live(); !ready) return pass(ready);
  if (why != Errc::kNotFound)
    log::warning("store_replaced", "path", options.path, "reason", live.error().text);
  if (why == Errc::kCorrupt)
    found_damage().add(fmt::format("{}: {}", options.path, live.error().text));
  if (seeds.dump) {
    auto made = shm::Store::create(options, seeds.dump);
    if (made) return OpenedStore{std::move(*made), OpenedStore::From::kDump};
    if (made.error().code == Errc::kExists) return pass(made);
    if (seeds.without_dump)
      if (auto done = seeds.without_dump(); !done) return pass(done);
    log::error("dump_not_used", "reason", made.error().text);
  }
  auto restored = restore_image(options, seeds, copy_first);
  if (!restored) return pass(restored);
  if (*restored) return std::move(**restored);
  auto made = shm::Store::create(options, [&seeds](shm::Store&) {
    if (seeds.begins_empty) seeds.begins_empty();
    return Status();
  });
  if (!made) return pass(made);
  return OpenedStore{std::move(*made), OpenedStore::From::kEmpty};
}

namespace {

/// Applies the journal's records, one by one, to a live store that lacks them.
class JournalReplay {
 public:
  JournalReplay(shm::Store& store, const NoteSink& note)
      : store_(store),
        note_(note),
        replay_(store, RecordReplay::Data::kLiveStore, {0, 0, 0}) {}

  Status take(JournalRecord&& record) {
    last_ = record.position;
    if (gone_ && is_put_behind(*gone_, record)) {
      never_put_ = std::exchange(gone_, std::nullopt)->position;
      return {};
    }
    if (auto removed = remove_gone(); !removed) return removed;
    if (record.kind == RecordKind::kGone) {
      gone_ = std::move(record);
      return {};
    }
    return apply(record);
  }

  /// Called with the outcome of the walk over all records. Records that do not count are voided.
  Status finish(Status walked, Journal& journal) {
    if (walked) walked = remove_gone();
    // Records that cannot be applied were never acknowledged, and must not come back after later
    // updates.
    if (failed_at_ != 0) {
      note_({true, fmt::format("journal records from {} on could not be applied: {}", failed_at_,
                               walked.error().text)});
      journal.abandon(failed_at_);
      return {};
    }
    if (never_put_ != 0) journal.abandon(never_put_);
    if (applied_ > 0) log::info("journal_replayed", "records", applied_);
    if (!walked || never_put_ != 0 || last_ <= store_.current().journal_position) return walked;
    // The store's position must cover all records, also those that changed nothing.
    return replay_.publish(last_);
  }

 private:
  Status remove_gone() {
    const auto record = std::exchange(gone_, std::nullopt);
    return record ? carry_out(*record) : Status();
  }

  Status apply(const JournalRecord& record) {
    const bool changes = changes_zone(record);
    if (changes) never_put_ = 0;
    if (never_put_ != 0 && record.kind == RecordKind::kSource) return {};
    auto done = carry_out(record);
    if (!done && changes) failed_at_ = record.position;
    return done;
  }

  Status carry_out(const JournalRecord& record) {
    auto step = replay_.take(record);
    if (!step) return pass(step);
    switch (*step) {
      case ReplayStep::kApply:
      case ReplayStep::kNameFile:
      case ReplayStep::kRemove:
        applied_ += *step == ReplayStep::kApply ? 1 : 0;
        return publish(record.position);
      case ReplayStep::kNeverTookPlace:
        if (never_put_ == 0) never_put_ = record.position;
        return {};
      case ReplayStep::kSkip:
        note_({false, fmt::format("journal record {} of {} ({} to {}) does not fit and was skipped",
                                  record.position, to_text(record.zone), record.from.value,
                                  record.to.value)});
        return {};
      default:
        return {};
    }
  }

  Status publish(std::uint64_t position) {
    crash_point("replay-staged");
    if (auto published = replay_.publish(position); !published) return published;
    crash_point("replay-published");
    return {};
  }

  shm::Store& store_;
  const NoteSink& note_;
  StoreReplay replay_;
  std::optional<JournalRecord> gone_;  // a kGone, until the next record is known
  std::uint64_t last_ = 0;             // position of the last record
  std::uint64_t applied_ = 0;
  std::uint64_t failed_at_ = 0;  // position of a record that could not be applied; 0 = none
  std::uint64_t never_put_ = 0;  // from this position on a zone was to be put whole; 0 = none
};

}  // namespace

Status replay_journal(shm::Store& store, Journal& journal, Files& files, const NoteSink& note) {
  JournalReplay replay(store, note);
  const auto take = [&](JournalRecord&& record) { return replay.take(std::move(record)); };
  auto walked =
      for_each_record(files, journal.files(), store.current().journal_position, take, note);
  return replay.finish(std::move(walked), journal);
}

}  // namespace pando::manager
