#include "shm/borrowing.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "shm/chunk_pool.h"

namespace pando::shm {

Status copy_chunk(LiveFile& file, ImageSource& source, std::uint32_t number,
                  const ImageChunk& chunk, std::array<std::uint8_t, kChunkBytes>& room) {
  if (auto read = source.read(number, std::span(room).first(chunk.used), chunk.checksum); !read)
    return read;
  // The rest of the chunk is written, too: all of it has memory from now on.
  std::fill(room.begin() + chunk.used, room.end(), std::uint8_t{0});
  return file.write_chunk(number, room);
}

Borrowing::Borrowing(LiveFile& file, ChunkPool& pool, std::vector<ImageChunk> chunks)
    : file_(file), pool_(pool), chunks_(std::move(chunks)) {
  for (const ImageChunk& chunk : chunks_)
    if (chunk.count != 0) bytes_ += kChunkBytes;
}

Status Borrowing::copy(ImageSource& source, const std::function<bool()>& may_continue) {
  const auto room = std::make_unique<std::array<std::uint8_t, kChunkBytes>>();
  for (; next_ < chunks_.size(); ++next_) {
    const ImageChunk& chunk = chunks_[next_];
    if (chunk.count == 0) continue;
    if (!may_continue()) return fail(Errc::kDenied, "the copy was given up");
    if (auto copied = copy_chunk(file_, source, next_, chunk, *room); !copied) return copied;
    copied_.fetch_add(kChunkBytes, std::memory_order_relaxed);
    crash_point("borrowed-chunk-copied");
  }
  return {};
}

Status Borrowing::settle() {
  if (auto home = file_.settle(); !home) return home;
  crash_point("borrowed-settled");
  pool_.settle_borrowed();
  return {};
}

}  // namespace pando::shm
