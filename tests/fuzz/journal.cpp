// Any octets as a journal's files: never a crash, never an endless read, and the records that come
// out can be replayed or are refused.
//
// Input: one octet of mode; then a segment as it is, or the bodies of records that get a right
// frame and checksum: one octet of kind, two of length, the body.

#include "manager/journal/journal_history.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/journal/snapshot_maker.h"

namespace {

using namespace pando;
using namespace pando::manager;

constexpr std::uint8_t kFramed = 1;
constexpr std::uint8_t kSnapshot = 2;
constexpr std::uint64_t kNonce = 42;

const dns::Name& zone_name() {
  static const dns::Name name = dns::Name::from_text("example.").value();
  return name;
}

/// A file whose frames are right, whatever is in them.
Bytes framed(ByteView input, bool is_snapshot) {
  Bytes file = encode_segment_header({1, 1, kNonce});
  std::vector<zone::DumpItem> items{testing::whole_zone(zone_name(), 7)};
  for (std::uint64_t position = 1; input.size() >= 5; ++position) {
    JournalRecord record;
    record.position = record.group_first = position;
    record.kind = static_cast<RecordKind>(input[0] % 12);
    record.zone = zone_name();
    record.from = dns::Serial{input[1]};
    record.to = dns::Serial{input[2]};
    const std::size_t size = std::min<std::size_t>(load_be16(input.data() + 3), input.size() - 5);
    const ByteView payload = input.subspan(5, size);
    record.payload.assign(payload.begin(), payload.end());
    append_record(file, record, kNonce);
    items.emplace_back(note_of(std::move(record)));
    input = input.subspan(5 + size);
  }
  items.emplace_back(zone::DumpZoneEnd{});
  return is_snapshot ? testing::snapshot_of(1, items) : file;
}

void put(testing::FakeDisk& disk, const std::string& path, const Bytes& contents) {
  auto file = disk.open(path, OpenMode::kCreate);
  PANDO_ASSERT(file && (*file)->write_at(0, contents));
}

/// Everything that a start or a reload asks of the history.
void replay(const JournalHistory& history) {
  for (const auto& serial : {std::optional<dns::Serial>(), std::optional(dns::Serial{7})}) {
    const auto replayed = history.replay(zone_name(), serial, UINT64_MAX);
    if (!replayed) continue;
    PANDO_ASSERT(!serial || replayed->serial);
  }
  static_cast<void>(history.merge_base(zone_name(), UINT64_MAX));
  static_cast<void>(
      history.for_each_base_record(zone_name(), [](const zone::Record&) { return Status(); }));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const bool snapshot = (data[0] & kSnapshot) != 0;
  const ByteView rest(data + 1, size - 1);
  testing::FakeDisk disk;
  const std::string path = snapshot ? "j/1.snapshot" : "j/1.journal";
  put(disk, path, (data[0] & kFramed) != 0 ? framed(rest, snapshot) : Bytes(rest.begin(), rest.end()));
  JournalFiles files;
  if (snapshot)
    files.snapshot = path;
  else
    files.segments.push_back({path, {1, 1, kNonce}});
  const auto history = JournalHistory::read(disk, files, [](const JournalNote&) {});
  PANDO_ASSERT(history);
  replay(*history);
  return 0;
}
