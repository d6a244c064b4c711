#pragma once

#include <cstddef>
#include <cstdint>

namespace pando::shm {

/// Store format: 64 KiB chunks; a block larger than a chunk takes a run of consecutive chunks.
inline constexpr std::size_t kChunkBytes = std::size_t{64} << 10;
inline constexpr std::uint32_t kNoChunk = UINT32_MAX;

/// Chunks come in regions that one huge page of the machine can hold.
inline constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
inline constexpr std::uint32_t kChunksPerRegion = kHugePage / kChunkBytes;

/// A chunk that may be written, and the bytes of it in use already. The part before `from` belongs
/// to published versions; no reader ever saw the part after.
struct Span {
  std::uint32_t chunk = kNoChunk;
  std::uint32_t from = 0;
};

}  // namespace pando::shm
