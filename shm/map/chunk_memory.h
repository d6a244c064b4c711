#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "shm/map/bitmap.h"
#include "shm/map/huge_page_regions.h"
#include "shm/map/space_policy.h"

namespace pando::shm {

/// The file that gives memory to chunks, and takes it away.
class ChunkBacking {
 public:
  ChunkBacking() = default;
  ChunkBacking(const ChunkBacking&) = default;
  ChunkBacking(ChunkBacking&&) = default;
  ChunkBacking& operator=(const ChunkBacking&) = default;
  ChunkBacking& operator=(ChunkBacking&&) = default;
  virtual ~ChunkBacking() = default;

  /// Gives memory to chunks; kFull when the machine, the mount or the file size limit has none.
  /// Before this call has returned, touching the chunks would be SIGBUS.
  virtual Status back(std::uint32_t first, std::uint32_t count) = 0;
  /// Returns the chunks' memory; false when the kernel refused (the chunks still have it).
  virtual bool punch(std::uint32_t first, std::uint32_t count) noexcept = 0;
  /// Number of further chunks for which the file system says that it has memory.
  [[nodiscard]] virtual std::uint32_t room() const noexcept = 0;
};

/// The free chunks, and the chunks that have memory: free chunks get memory before they are
/// written, and lose it when there is more than later steps need. Not thread-safe.
class ChunkMemory {
 public:
  /// All chunks are free, without memory. `limit`: bound of the chunk numbers.
  ChunkMemory(ChunkBacking& backing, HugePageRegions& regions, std::uint32_t limit);

  [[nodiscard]] const Bitmap& free_chunks() const noexcept { return free_; }
  [[nodiscard]] bool is_free(std::uint32_t chunk) const noexcept { return free_.test(chunk); }
  [[nodiscard]] bool has_memory(std::uint32_t chunk) const noexcept { return backed_.test(chunk); }
  /// Number of free chunks with memory.
  [[nodiscard]] std::uint32_t spare() const noexcept { return spare_; }

  void take(std::uint32_t chunk) noexcept;
  /// The chunk becomes free. When its memory is not known, punch_unknown() returns it.
  void give(std::uint32_t chunk);
  /// The chunk becomes free and has the memory that is known.
  void give_known(std::uint32_t chunk) noexcept;
  /// A chunk that is not free has memory.
  void note_memory(std::uint32_t chunk) noexcept { backed_.set(chunk); }

  /// Gives memory to free chunks, lowest first, until `wanted` free chunks have memory. The steps
  /// observe the limit of `space`.
  Status grow(std::uint32_t wanted, const SpacePolicy& space);
  /// The first of `count` consecutive free chunks, with memory if there is a choice of one chunk;
  /// Bitmap::kNone when there are none.
  [[nodiscard]] std::uint32_t find(std::uint32_t count) const noexcept;
  /// Gives memory to the free chunks in the range that have none.
  Status back(std::uint32_t first, std::uint32_t count);

  /// Takes the memory of chunks that were given back with unknown memory. After attaching, the
  /// writer does not know which empty chunks have memory.
  void punch_unknown();
  /// The most chunks that one trim() punches: 8 MiB, less than a millisecond of the commit thread.
  static constexpr std::uint32_t kMaxTrimmed = 128;
  /// Gives memory of free chunks beyond `keep` back to the machine, highest first. Of many chunks
  /// only a part goes; the next call continues.
  void trim(std::uint32_t keep);

 private:
  bool punch(std::uint32_t first, std::uint32_t count) noexcept;

  ChunkBacking& backing_;
  HugePageRegions& regions_;
  Bitmap free_;
  Bitmap backed_;  // the chunk certainly has memory
  std::uint32_t spare_ = 0;
  std::vector<std::uint32_t> unknown_;  // given back just now; their memory is not known
};

}  // namespace pando::shm
