// Any text is read without harm, the same whatever window it is read through; and what was read is
// valid, and survives being written and read again.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dns/rdata/rdata.h"
#include "dns/zonefile/zone_scanner.h"
#include "dns/zonefile/zone_text.h"

namespace {

using namespace pando;
using namespace pando::dns;

struct Record {
  Bytes owner;
  RRType type;
  Ttl ttl;
  Bytes rdata;
  bool operator==(const Record&) const = default;
};

struct Scan {
  std::vector<Record> records;
  ScanReport report;
};

Scan scan(std::string_view text, std::size_t window) {
  static const Name origin = Name::from_text("example.").value();
  ScanOptions options;
  options.origin = origin;
  options.allow_include = false;
  options.max_generated = 40;
  options.window_octets = window;
  Scan result;
  const auto sink = [&result](const ScannedRecord& record) -> Status {
    PANDO_ASSERT(wire_name_length(record.owner.bytes()) == record.owner.size());
    PANDO_ASSERT(check_rdata(record.type, record.rdata));
    PANDO_ASSERT(record.ttl.seconds <= 0x7FFFFFFF);
    const ByteView owner = record.owner.bytes();
    result.records.push_back({Bytes(owner.begin(), owner.end()), record.type, record.ttl,
                              Bytes(record.rdata.begin(), record.rdata.end())});
    return {};
  };
  result.report = scan_zone_text(text, "zone", options, sink);
  return result;
}

std::string write(const std::vector<Record>& records, bool relative) {
  std::string text;
  ZoneTextWriter writer(Name::from_text("example.").value(), {.relative_owners = relative},
                        [&text](std::string_view block) -> Status {
                          text += block;
                          return {};
                        });
  for (const Record& record : records)
    PANDO_ASSERT(writer.add(NameView(record.owner.data(), record.owner.size()), record.type,
                            record.ttl, record.rdata));
  PANDO_ASSERT(writer.finish());
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Scan whole = scan(text, 1 << 20);
  const Scan pieces = scan(text, 16);
  PANDO_ASSERT(whole.records == pieces.records);
  PANDO_ASSERT(whole.report.errors == pieces.report.errors);
  PANDO_ASSERT(whole.report.warnings == pieces.report.warnings);
  for (const bool relative : {false, true}) {
    const Scan again = scan(write(whole.records, relative), 1 << 16);
    PANDO_ASSERT(again.report.ok());
    PANDO_ASSERT(again.records == whole.records);
  }
  return 0;
}
