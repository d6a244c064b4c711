#include "manager/checkpoint/store_dump.h"

#include <asio/post.hpp>
#include <filesystem>

#include "base/crash_point.h"
#include "base/unix_time.h"
#include "manager/io/throttled_file.h"
#include "manager/journal/journal.h"
#include "manager/journal/journal_snapshot.h"
#include "manager/journal/snapshot_file.h"
#include "manager/zonefile/zone_writing.h"
#include "shm/side_table.h"
#include "zone/dump/dump_writer.h"

namespace pando::manager {

namespace {

/// A file that takes bytes in order, at a limited rate.
class PacedFile {
 public:
  PacedFile(StoreFile& file, const DumpRequest& request)
      : file_(file), pace_(request.bytes_per_second), ended_(*request.ended) {}

  Status write(ByteView bytes) {
    if (auto written = file_.write_at(bytes_, bytes); !written) return written;
    bytes_ += bytes.size();
    crash_point("dump-written");
    pace_.keep(bytes.size(), [this] { return ended_.load(); });
    return ended_ ? Status(fail(Errc::kDenied, "the manager is ending")) : Status();
  }
  Status sync() { return file_.sync(); }

 private:
  ThrottledFile file_;
  WriteRateLimiter pace_;
  const std::atomic<bool>& ended_;
  std::uint64_t bytes_ = 0;
};

/// The merge base's file, with its stamp. Without the stamp a loading server has to read each
/// zone's file to see that the file is unchanged.
zone::DumpNote file_note(const zone::ZoneView& zone, const zone::ZoneFileInfo& source) {
  JournalEntry entry = source_entry(dns::Name(zone.apex()), zone.serial(), source);
  entry.payload = encode_stamped(source);
  return note_of(std::move(entry));
}

/// The records that a journal snapshot would have after the zone (journal_snapshot.cpp). For a
/// zone unknown to the journal, at most the merge base's file.
std::vector<zone::DumpNote> notes_of_zone(const JournalHistory& history, const zone::ZoneView& zone,
                                          std::uint64_t position) {
  std::vector<zone::DumpNote> notes;
  if (!zone.loaded()) return notes;
  const MergeBase state = served_merge_base(history, zone, position);
  const zone::ZoneFileInfo base = zone.source();
  if (!history.knows(zone.apex()) && state.dynamic_changes.known()) {
    if (base.stamp != 0) notes.push_back(file_note(zone, base));
    return notes;
  }
  notes = notes_of(dns::Name(zone.apex()), zone.serial(), state);
  auto source = state.source;
  if (zone.source().file_mtime_ns != 0) source = base;
  if (source) notes.push_back(file_note(zone, *source));
  return notes;
}

Result<WrittenDump> write_dump(StoreFile& file, shm::Store& store, const zone::StoreView& version,
                               std::uint64_t position, const DumpRequest& request) {
  const auto history = request.history->get(position);
  if (!history->problem().empty()) return fail(Errc::kIo, "{}", history->problem());
  PacedFile out(file, request);
  zone::DumpWriter writer(
      [&](ByteView bytes) { return out.write(bytes); },
      {request.owner, unix_seconds(), version.version(), position, 0, store.lineage()});
  Status done;
  zone::ZoneWalk walk(version);
  while (const zone::ZoneView zone = walk.next()) {
    done = writer.put_zone(zone, shm::known_side(store.window(), zone.side_index()),
                           notes_of_zone(*history, zone, position));
    if (!done) return pass(done);
  }
  done = writer.finish();
  if (done) done = out.sync();
  if (!done) return pass(done);
  return WrittenDump{writer.counts(), writer.bytes(), position};
}

Result<WrittenDump> write_file(Files& files, shm::Store& store, const zone::StoreView& version,
                               std::uint64_t position, const DumpRequest& request) {
  if (request.into) {
    auto written = write_dump(*request.into, store, version, position, request);
    crash_point("dump-synced");
    if (written) return written;
    return fail(written.error().code, "{}: {}", request.path, written.error().text);
  }
  const std::string partial = request.path + kPartial;
  auto file = files.open(partial, OpenMode::kSecret);
  if (!file) return pass(file);
  auto written = write_dump(**file, store, version, position, request);
  crash_point("dump-synced");
  Status named = written ? files.rename(partial, request.path) : Status();
  if (named && written)
    named = files.sync_directory(std::filesystem::path(request.path).parent_path().string());
  if (written && named) return written;
  static_cast<void>(files.remove(partial));
  const Error& why = written ? named.error() : written.error();
  return fail(why.code, "{}: {}", request.path, why.text);
}

}  // namespace

void dump_store(shm::Store& store, shm::SlotTable& slots, const Journal& journal,
                asio::io_context& io, asio::thread_pool& pool, Files& files, DumpRequest request,
                std::function<void(const Result<WrittenDump>&)> done) {
  if (auto durable = check_end(journal); !durable) return done(pass(durable));
  const shm::VersionInfo now = store.current();
  auto pin = std::make_shared<shm::SlotTable::OwnPin>(slots.pin_own(now.number));
  const zone::StoreView version(store.window(), now.root, now.number);
  asio::post(pool, [=, &store, &io, &files, position = now.journal_position,
                    request = std::move(request), done = std::move(done)]() mutable {
    auto written = write_file(files, store, version, position, request);
    asio::post(io, [pin = std::move(pin), written = std::move(written), done = std::move(done)] {
      done(written);
    });
  });
}

}  // namespace pando::manager
