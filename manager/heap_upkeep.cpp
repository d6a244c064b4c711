#include "manager/heap_upkeep.h"

#include <malloc.h>

#include <asio/post.hpp>

namespace pando::manager {

std::size_t HeapUpkeep::measure_heap() { return ::mallinfo2().fordblks; }

void HeapUpkeep::release_heap() { ::malloc_trim(0); }

void HeapUpkeep::check(std::chrono::steady_clock::time_point now) {
  if (busy_ || now < next_) return;
  busy_ = true;
  next_ = now + options_.interval;
  asio::post(pool_, [this] {
    const bool much = options_.measure() > options_.free_octets;
    if (much) options_.release();
    asio::post(io_, [this, much] {
      busy_ = false;
      if (much) ++releases_;
    });
  });
}

}  // namespace pando::manager
