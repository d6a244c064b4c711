#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "manager/io/store_file.h"
#include "manager/journal/record/journal_format.h"
#include "zone/dump/dump_index.h"

namespace pando::manager {

/// Reads a journal snapshot, zone by zone: a dump with an index after it. One damaged or
/// unreadable place costs at most the zone in which it lies: the header stands twice, each record
/// has a checksum, and zones can be found without the index. Threads may share one object.
class SnapshotFile {
 public:
  using Place = zone::DumpPlace;
  using ItemVisit = std::function<Status(zone::DumpItem&&)>;

  /// kLayout: an intact file of another format, which the error names. kCorrupt: damaged.
  static Result<SnapshotFile> open(Files& files, const std::string& path);

  [[nodiscard]] const zone::DumpHeader& header() const noexcept { return header_; }

  /// The zones that could be found.
  struct Zones {
    std::vector<Place> places;
    Status others;  ///< an error: the list may be incomplete, and why
  };
  [[nodiscard]] Zones zones() const;
  /// Visits the items of a zone, from its beginning to its end.
  Status for_each_item(const Place& place, const ItemVisit& visit) const;
  /// The same without the zone's data.
  Status for_each_note(const Place& place, const ItemVisit& visit) const;

 private:
  /// Where the next record begins.
  struct Cursor {
    std::uint64_t offset = 0;
    std::uint64_t number = 0;
  };
  SnapshotFile(std::unique_ptr<StoreFile> file, std::string path, std::uint64_t bytes)
      : file_(std::move(file)), path_(std::move(path)), bytes_(bytes) {}
  Result<Bytes> read(std::uint64_t offset, std::uint64_t bytes) const;
  Result<zone::DumpHeader> read_header() const;
  Result<std::vector<Place>> read_index() const;
  Result<zone::DumpItem> next(Cursor& cursor, const dns::Name& zone) const;
  Status walk(Cursor cursor, const dns::Name& zone, const ItemVisit& visit) const;
  [[nodiscard]] Zones search() const;
  Result<Cursor> find_zone(std::uint64_t offset) const;

  std::unique_ptr<StoreFile> file_;
  std::string path_;
  std::uint64_t bytes_;
  zone::DumpHeader header_;
};

/// A journal record as a dump's item, and back. The position is lost.
template <class Record>
[[nodiscard]] zone::DumpNote note_of(Record&& record) {
  return {static_cast<std::uint8_t>(record.kind), record.from, record.to,
          std::forward<Record>(record).payload};
}
[[nodiscard]] JournalRecord record_of(const dns::Name& zone, zone::DumpNote&& note);

}  // namespace pando::manager
