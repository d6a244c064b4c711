#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "zone/dump/dump_format.h"

namespace pando::zone {

/// Reads a dump front to back and trusts none of its fields. Each item that the reader returns
/// comes in a writer's order, is valid by itself, and belongs to the open zone. Memory is bounded
/// by one record, and a record by the bytes that the file really has.
class DumpReader {
 public:
  /// Fills a stretch from where the last call ended; fewer bytes only at the end.
  using Source = std::function<Result<std::size_t>(std::span<std::uint8_t>)>;

  /// `name`: the file's name for errors, which read "NAME: byte N: reason".
  static Result<DumpReader> open(Source source, std::string name);

  [[nodiscard]] const DumpHeader& header() const noexcept { return header_; }

  /// The next item. DumpCounts is the last one, after which the file has ended; a file that ends
  /// earlier, or has more bytes, is kCorrupt.
  Result<DumpItem> next();
  /// Offset of the last item.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// An error about the item that next() returned last.
  [[nodiscard]] tl::unexpected<Error> wrong(const Error& why) const;

 private:
  DumpReader(Source source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}
  Status read(Bytes& into, std::size_t count);
  Status take(DumpItem& item);
  Status take_zone(DumpZone& zone);
  Status take_part(const DumpPart& part);
  Status take_changeset(const DumpChangeset& changeset);
  Status take_snapshot(const ZoneSnapshot& version);
  Status take_archive(const DumpArchive& archive);
  Status check_data(dns::Serial serial, std::uint64_t records) const;
  Status end_zone();
  Status end(const DumpCounts& counts);

  Source source_;
  std::string name_;
  DumpHeader header_;
  std::uint64_t offset_ = 0;
  std::uint64_t next_ = 0;  // offset of the next record
  std::uint64_t number_ = 0;
  // The order of records.
  enum class Stage : std::uint8_t { kBetween, kRecords, kHistory, kNotes, kEnd };
  Stage stage_ = Stage::kBetween;
  DumpZone zone_;                    // the open zone, or the last one
  std::vector<std::string> labels_;  // labels of the zone's snapshots so far
  /// Of the zone, or of archived data, so far.
  struct Data {
    std::uint64_t records = 0;
    std::optional<DumpChangeset> changeset;  // the last part; without its records
    std::optional<dns::Serial> reached;      // by the changesets, or of a snapshot
    bool has_snapshot = false;               // whether a held snapshot came
  };
  Data data_;
  DumpCounts counts_;
};

/// Reads the whole dump, to check it.
Result<DumpCounts> check_dump(DumpReader& reader);

}  // namespace pando::zone
