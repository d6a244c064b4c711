#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "zone/dump/dump_format.h"

namespace pando::zone {

/// Reads a dump front to back and trusts nothing of it: what comes out is in the order that a
/// writer has, valid by itself, and belongs to the zone that is open. Memory is bounded by one
/// record, and that by what the file really has.
class DumpReader {
 public:
  /// Fills a stretch from where the last call ended; fewer octets only at the end.
  using Source = std::function<Result<std::size_t>(std::span<std::uint8_t>)>;

  /// `name`: of the file, for errors, which say "NAME: byte N: why".
  static Result<DumpReader> open(Source source, std::string name);

  [[nodiscard]] const DumpHeader& header() const noexcept { return header_; }

  /// The next item. DumpCounts is the last one, after which the file has ended; a file that ends
  /// earlier, or goes on, is kCorrupt.
  Result<DumpItem> next();
  /// Where the last item stood.
  [[nodiscard]] std::uint64_t offset() const noexcept { return offset_; }
  /// An error in what next() gave last.
  [[nodiscard]] tl::unexpected<Error> wrong(const Error& why) const;

 private:
  DumpReader(Source source, std::string name)
      : source_(std::move(source)), name_(std::move(name)) {}
  Status read(Bytes& into, std::size_t octets);
  Status take(DumpItem& item);
  Status take_zone(DumpZone& zone);
  Status take_part(const DumpPart& part);
  Status take_difference(const DumpDifference& difference);
  Status take_saved(const ZoneSnapshot& version);
  Status take_aside(const DumpAside& aside);
  Status check_data(dns::Serial serial, std::uint64_t records) const;
  Status end_zone();
  Status end(const DumpCounts& counts);

  Source source_;
  std::string name_;
  DumpHeader header_;
  std::uint64_t offset_ = 0;
  std::uint64_t next_ = 0;  // offset of the next record
  std::uint64_t number_ = 0;
  // The order of things.
  enum class Stage : std::uint8_t { kBetween, kRecords, kHistory, kNotes, kEnd };
  Stage stage_ = Stage::kBetween;
  DumpZone zone_;                    // open, or the last one
  std::vector<std::string> labels_;  // of its saved versions so far
  /// Of it, or of what was set aside, so far.
  struct Data {
    std::uint64_t records = 0;
    std::optional<DumpDifference> difference;  // the last part; without its records
    std::optional<dns::Serial> reached;        // by the differences, or said by a saved version
    bool saved = false;                        // a version that is held
  };
  Data data_;
  DumpCounts counts_;
};

/// Reads all of a dump, to see whether it is sound.
Result<DumpCounts> check_dump(DumpReader& reader);

}  // namespace pando::zone
