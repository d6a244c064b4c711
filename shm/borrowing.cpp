#include "shm/borrowing.h"

#include <algorithm>
#include <utility>

#include "base/crash_point.h"
#include "shm/chunk_pool.h"

namespace pando::shm {

Borrowing::Borrowing(LiveFile& file, ChunkPool& pool, std::vector<ImageChunk> chunks)
    : file_(file), pool_(pool), chunks_(std::move(chunks)) {
  for (const ImageChunk& chunk : chunks_)
    if (chunk.count != 0) octets_ += kChunkOctets;
}

Status Borrowing::copy(ImageSource& source, const std::function<bool()>& go_on) {
  Bytes octets(kChunkOctets);
  for (; next_ < chunks_.size(); ++next_) {
    const ImageChunk& chunk = chunks_[next_];
    if (chunk.count == 0) continue;
    if (!go_on()) return fail(Errc::kDenied, "the copy was ended");
    if (auto read = source.read(next_, std::span(octets).first(chunk.used), chunk.checksum); !read)
      return read;
    // The rest of the chunk, too: all of it has memory from now on.
    std::fill(octets.begin() + chunk.used, octets.end(), std::uint8_t{0});
    if (auto written = file_.write_chunk(next_, octets); !written) return written;
    copied_.fetch_add(kChunkOctets, std::memory_order_relaxed);
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
