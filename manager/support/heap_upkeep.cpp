#include "manager/support/heap_upkeep.h"

#include <malloc.h>

#include <algorithm>
#include <asio/post.hpp>

namespace pando::manager {

std::size_t HeapUpkeep::measure_heap() { return ::mallinfo2().fordblks; }

void HeapUpkeep::release_heap() { ::malloc_trim(0); }

void HeapUpkeep::bound_heap() {
  ::mallopt(M_TRIM_THRESHOLD, 2 << 20);
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
}

void HeapUpkeep::check(std::chrono::steady_clock::time_point now) {
  if (busy_ || now < next_) return;
  busy_ = true;
  next_ = now + options_.interval;
  asio::post(pool_, [this] {
    // Released memory still counts as free, so only bytes beyond `left_` are new.
    const std::size_t free = options_.measure();
    const bool much = free > left_ + options_.free_bytes;
    if (much) options_.release();
    left_ = much ? options_.measure() : std::min(left_, free);
    asio::post(io_, [this, much] {
      busy_ = false;
      if (much) ++releases_;
    });
  });
}

}  // namespace pando::manager
