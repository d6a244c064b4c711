#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/result.h"
#include "shm/image_state.h"

namespace pando::shm {

class LiveFile;
class ChunkPool;

/// Brings chunk `number` of an image to where it belongs, its checksum compared on the way through
/// `room`. kFull, or an error of the source.
Status copy_chunk(LiveFile& file, ImageSource& source, std::uint32_t number,
                  const ImageChunk& chunk, std::array<std::uint8_t, kChunkBytes>& room);

/// A store whose chunks are still in an image's file: every process has that file mapped in their
/// place, so the store is served and changed before it is in memory. New blocks go to chunks behind
/// the borrowed ones; of these none becomes free, because what was written into one would be seen
/// by nobody. So their bytes are the image's until settle().
///
/// A writer that dies meanwhile leaves a store that cannot be attached to: the image and what came
/// behind it make it again. Must end before its Store does.
class Borrowing {
 public:
  /// Called by Store::restore(): `file` has the first `chunks.size()` of them mapped.
  Borrowing(LiveFile& file, ChunkPool& pool, std::vector<ImageChunk> chunks);

  /// Copies what the image has to where it belongs, each chunk with its checksum compared. One
  /// thread, any; while `go_on` says so (else kDenied). kFull: no memory, the next call goes on
  /// from there. kCorrupt, kIo: the image is damaged, and what was served so far may have been.
  Status copy(ImageSource& source, const std::function<bool()>& go_on);
  /// After copy() has ended well; commit thread. Readers look into the store itself from their next
  /// pin on, and all chunks are like those of any other store.
  Status settle();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Of these: copied. Any thread.
  [[nodiscard]] std::uint64_t copied() const noexcept {
    return copied_.load(std::memory_order_relaxed);
  }

 private:
  LiveFile& file_;
  ChunkPool& pool_;
  std::vector<ImageChunk> chunks_;
  std::uint32_t next_ = 0;
  std::uint64_t bytes_ = 0;
  std::atomic<std::uint64_t> copied_{0};
};

}  // namespace pando::shm
