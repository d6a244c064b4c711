// Any octets as a dump: never a crash, never an endless read, memory that the input itself accounts
// for, and what comes out lies in its zone.
//
// Input: one octet of mode; then a dump as it is, or the bodies of records that get right frames
// and checksums: one octet of kind, two of length, the body.

#include <xxhash.h>

#include <algorithm>

#include "zone/dump/dump_reader.h"

namespace {

using namespace pando;
using namespace pando::zone;

constexpr std::uint8_t kFramed = 1;
constexpr std::uint64_t kNonce = 42;

/// As append_dump_record() would have it, with any body.
void append_framed(Bytes& out, std::uint8_t kind, ByteView body, std::uint64_t number) {
  const std::size_t start = out.size();
  append_dump_record(out, DumpZoneEnd{}, number, kNonce);
  std::uint8_t* const frame = out.data() + start;
  store_be32(frame + 4, static_cast<std::uint32_t>(body.size()));
  frame[16] = static_cast<std::uint8_t>(kind % 9);
  const std::uint64_t head = XXH3_64bits_withSeed(frame, kDumpFrameBytes - 8, kNonce);
  store_be64(frame + kDumpFrameBytes - 8, XXH3_64bits_withSeed(body.data(), body.size(), head));
  append(out, body);
}

Bytes framed(ByteView input) {
  Bytes dump = encode(DumpHeader{{1, 2}, 3, 4, 5, kNonce});
  for (std::uint64_t number = 1; input.size() >= 3; ++number) {
    const std::size_t size = std::min<std::size_t>(load_be16(input.data() + 1), input.size() - 3);
    append_framed(dump, input[0], input.subspan(3, size), number);
    input = input.subspan(3 + size);
  }
  return dump;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const ByteView rest(data + 1, size - 1);
  const Bytes dump = (data[0] & kFramed) != 0 ? framed(rest) : Bytes(rest.begin(), rest.end());
  std::size_t at = 0;
  auto reader = DumpReader::open(
      [&](std::span<std::uint8_t> into) {
        const std::size_t got = std::min(into.size(), dump.size() - at);
        std::copy_n(dump.begin() + static_cast<std::ptrdiff_t>(at), got, into.begin());
        at += got;
        return Result<std::size_t>(got);
      },
      "input");
  if (!reader) return 0;
  dns::Name zone;
  for (;;) {
    const auto item = reader->next();
    if (!item || std::holds_alternative<DumpCounts>(*item)) return 0;
    if (const auto* head = std::get_if<DumpZone>(&*item)) zone = head->name;
    if (const auto* part = std::get_if<DumpPart>(&*item))
      for (const Record& record : part->records.added)
        PANDO_ASSERT(record.owner.view().is_at_or_below(zone.view()));
  }
}
