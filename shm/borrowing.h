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

/// Copies chunk `number` of an image to its place in the store; `room` is the buffer in which the
/// checksum is compared. kFull, or an error of the source.
Status copy_chunk(LiveFile& file, ImageSource& source, std::uint32_t number,
                  const ImageChunk& chunk, std::array<std::uint8_t, kChunkBytes>& room);

/// A store whose chunks are still in an image's file: every process maps that file in their place.
/// So the store is served and changed before it is in memory. New blocks go to chunks after the
/// borrowed ones. No borrowed chunk becomes free, because no reader would see a write into it: its
/// bytes are the image's until settle().
///
/// A writer that dies meanwhile leaves a store that cannot be attached to. The image and the
/// journal records after it rebuild that store. A Borrowing must end before its Store does.
class Borrowing {
 public:
  /// Called by Store::restore(): `file` has the first `chunks.size()` chunks mapped from the image.
  Borrowing(LiveFile& file, ChunkPool& pool, std::vector<ImageChunk> chunks);

  /// Copies the image's chunks to their places and compares each checksum. Any one thread; ends
  /// with kDenied once `may_continue` returns false. kFull: no memory; the next call continues from
  /// there. kCorrupt, kIo: the image is damaged, and answers so far may have been wrong.
  Status copy(ImageSource& source, const std::function<bool()>& may_continue);
  /// Called on the commit thread after copy() has succeeded. From their next pin on, readers read
  /// the store itself, and all chunks are like those of any other store.
  Status settle();

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// The part of bytes() that is copied. Any thread.
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
