#include "zone/dump/dump_index.h"

#include <xxhash.h>

namespace pando::zone {

namespace {

constexpr std::size_t kChecksumBytes = 8;
constexpr std::size_t kPlaceBytes = 37;  // after the name
constexpr std::uint8_t kHasData = 1;

std::uint64_t checksum(ByteView bytes, std::uint64_t nonce) noexcept {
  return XXH3_64bits_withSeed(bytes.data(), bytes.size(), nonce);
}

void append_place(Bytes& out, const DumpPlace& place) {
  append(out, place.name.view().bytes());
  out.push_back(place.has_data ? kHasData : std::uint8_t{0});
  append_be32(out, place.serial.value);
  append_be64(out, place.offset);
  append_be64(out, place.number);
  append_be64(out, place.notes_offset);
  append_be64(out, place.notes_number);
}

}  // namespace

void raise_serial(DumpPlace& place, const DumpNote& note) noexcept {
  const bool is_first = !place.has_data && place.serial == dns::Serial{};
  if (is_first || note.to.ahead_of(place.serial)) place.serial = note.to;
}

//  | places … | checksum | offset | bytes | checksum | header |
Bytes encode_dump_index(const DumpHeader& header, std::span<const DumpPlace> places,
                        std::uint64_t offset) {
  Bytes out;
  for (const DumpPlace& place : places) append_place(out, place);
  append_be64(out, checksum(out, header.nonce));
  const std::size_t bytes = out.size();
  append_be64(out, offset);
  append_be64(out, bytes);
  append_be64(out, checksum(ByteView(out).subspan(bytes), header.nonce));
  append(out, encode(header));
  return out;
}

Result<DumpHeader> decode_dump_trailer_header(ByteView trailer) {
  if (trailer.size() != kDumpTrailerBytes) return fail(Errc::kCorrupt, "no trailer of a dump");
  return decode_dump_header(trailer.last(kDumpHeaderBytes));
}

Result<DumpIndexPlace> decode_dump_trailer(ByteView trailer, std::uint64_t nonce) {
  if (trailer.size() != kDumpTrailerBytes ||
      load_be64(trailer.data() + 16) != checksum(trailer.first(16), nonce))
    return fail(Errc::kCorrupt, "the trailer has a wrong checksum");
  return DumpIndexPlace{load_be64(trailer.data()), load_be64(trailer.data() + 8)};
}

Result<std::vector<DumpPlace>> decode_dump_index(ByteView index, std::uint64_t nonce) {
  const auto damaged = fail(Errc::kCorrupt, "the index is damaged");
  if (index.size() < kChecksumBytes) return damaged;
  ByteView left = index.first(index.size() - kChecksumBytes);
  if (load_be64(left.data() + left.size()) != checksum(left, nonce)) return damaged;
  std::vector<DumpPlace> places;
  while (!left.empty()) {
    const std::size_t name = dns::wire_name_length(left);
    if (name == 0 || left.size() < name + kPlaceBytes) return damaged;
    const std::uint8_t* const at = left.data() + name;
    places.push_back({dns::HeapName(dns::NameView(left.data(), name)),
                      (at[0] & kHasData) != 0,
                      {load_be32(at + 1)},
                      load_be64(at + 5),
                      load_be64(at + 13),
                      load_be64(at + 21),
                      load_be64(at + 29)});
    left = left.subspan(name + kPlaceBytes);
  }
  return places;
}

}  // namespace pando::zone
