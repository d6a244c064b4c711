#include "shm/image_state.h"

#include <xxhash.h>

#include "shm/layout.h"

namespace pando::shm {

static_assert(kImageSideBytes == kSideGranuleBytes, "a part would be a granule's half");

std::uint32_t chunk_checksum(ByteView bytes) noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

ByteView chunk_bytes(const Window& window, std::uint32_t chunk, std::uint32_t from,
                     std::uint32_t to) noexcept {
  const auto* start = reinterpret_cast<const std::uint8_t*>(window.base() + chunk_offset(chunk));
  return {start + from, to - from};
}

std::vector<ImageSide> side_table(const Window& window) {
  const Header& header = *reinterpret_cast<const Header*>(window.base());
  std::vector<ImageSide> parts;
  for (std::uint32_t granule = 0; granule < kSideGranules; ++granule) {
    const std::uint64_t bits = header.side_backed[granule / 64].load(std::memory_order_acquire);
    if ((bits >> (granule % 64) & 1) == 0) continue;
    ImageSide part{granule, Bytes(kSideGranuleBytes)};
    std::uint64_t any = 0;
    const auto* words = reinterpret_cast<const std::atomic<std::uint64_t>*>(
        window.base() + kSideOffset + granule * kSideGranuleBytes);
    for (std::size_t i = 0; i < kSideGranuleBytes / sizeof *words; ++i) {
      const std::uint64_t word = words[i].load(std::memory_order_relaxed);
      any |= word;
      std::memcpy(part.bytes.data() + i * sizeof word, &word, sizeof word);
    }
    if (any != 0) parts.push_back(std::move(part));  // a part that is left out is all zero
  }
  return parts;
}

}  // namespace pando::shm
