#include "manager/checkpoint/placed_dump.h"

#include <chrono>

#include "base/crash_point.h"
#include "base/steady_time.h"
#include "ipc/log.h"
#include "manager/checkpoint/dump_loading.h"
#include "manager/checkpoint/image_replay.h"
#include "manager/commit/next_version.h"

namespace pando::manager {

std::string PlacedDump::path_in(const std::string& journal) {
  return fmt::format("{}/{}", journal, zone::kPlacedDumpName);
}

Result<std::unique_ptr<PlacedDump>> PlacedDump::find(Files& files, const std::string& journal,
                                                     const shm::StoreOwner& owner) {
  std::string path = path_in(journal);
  // Opened for writing, too, since the dump may become ours.
  auto file = files.open(path, OpenMode::kWrite);
  if (!file && file.error().code == Errc::kNotFound) return std::unique_ptr<PlacedDump>();
  if (!file) return pass(file);
  StoreFile* const source = file->get();
  auto reader = zone::DumpReader::open(
      [source, offset = std::uint64_t{0}](std::span<std::uint8_t> into) mutable {
        auto got = source->read_at(offset, into);
        if (got) offset += *got;
        return got;
      },
      path);
  if (!reader) return pass(reader);
  if (reader->header().owner != owner && has_segments(files, journal))
    return fail(Errc::kDenied, "{}: of another journal, and {} has records of its own", path,
                journal);
  return std::unique_ptr<PlacedDump>(
      new PlacedDump(files, std::move(path), std::move(*file), std::move(*reader), owner));
}

namespace {

/// Whether the journal has records: a start that was cut short may have left an empty segment.
bool has_records(Files& files, const Journal& journal) {
  const JournalFiles there = journal.files();
  if (!there.snapshot.empty()) return true;
  return !for_each_record(
              files, there, 0,
              [](const JournalRecord&) -> Status { return fail(Errc::kExists, "a record"); },
              [](const JournalNote&) {})
              .has_value();
}

}  // namespace

Status PlacedDump::bring_up(shm::Store& store, Journal& journal, const zone::DataLimits& limits,
                            const NoteSink& note, const TakingOver& taking_over) {
  const auto start = std::chrono::steady_clock::now();
  const bool empty = !has_records(files_, journal);
  auto loaded = load_dump(store, reader_, limits);
  if (!loaded) return pass(loaded);
  if (empty)
    journal.begin_behind(reader_.header().position);
  else
    journal.skip_to(reader_.header().position);
  if (auto done = replay_onto_image(store, journal, files_, limits, note); !done) return pass(done);
  if (taking_over && !is_own())
    if (auto ready = taking_over(); !ready) return ready;
  if (empty)
    if (auto noted = note_files(store, journal, loaded->notes); !noted) return noted;
  log::info("dump_loaded", "file", path_, "journal_position", reader_.header().position, "zones",
            loaded->counts.zones, "records", loaded->counts.records, "changesets",
            loaded->counts.changesets, "ms", milliseconds_since(start));
  return {};
}

/// Marks the dump as ours first, so that a start after a crash accepts the dump beside a journal
/// that is no longer empty. All records of merge bases then go to the journal as one group, there
/// or not.
Status PlacedDump::note_files(shm::Store& store, Journal& journal,
                              const std::vector<JournalEntry>& notes) {
  if (!is_own()) {
    zone::DumpHeader header = reader_.header();
    header.owner = owner_;
    auto written = file_->write_at(0, zone::encode(header));
    if (written) written = file_->sync();
    if (!written) {
      // A part of the new header may be there; with the old header the next start can use the dump.
      static_cast<void>(file_->write_at(0, zone::encode(reader_.header())).has_value());
      return fail(written.error().code, "{}: {}", path_, written.error().text);
    }
  }
  crash_point("dump-taken-over");
  if (notes.empty()) return journal.begin_segment();
  auto position = journal.append(notes);
  if (!position) return pass(position);
  crash_point("dump-noted");
  return recover_position(store, *position);
}

Status PlacedDump::remove() {
  if (auto removed = files_.remove(path_); !removed) return removed;
  return files_.sync_directory(path_.substr(0, path_.rfind('/')));
}

}  // namespace pando::manager
