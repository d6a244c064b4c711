#include "manager/upkeep/huge_pages.h"

#include <algorithm>
#include <asio/post.hpp>

#include "ipc/log.h"

namespace pando::manager {

bool HugePages::is_at_rest(std::uint64_t memory) {
  const auto [least, most] = std::minmax(memory, at_check_);
  const bool rests = most - least <= options_.rest_bytes;
  at_check_ = memory;
  return rests;
}

void HugePages::check() {
  const std::uint64_t memory = store_.stats().memory_bytes;
  if (!is_at_rest(memory) || busy_) return;
  if (memory < looked_at_) looked_at_ = memory;  // a shrunken store grows again from here
  if (memory - looked_at_ < std::max(options_.growth_bytes, memory / 8)) return;
  busy_ = true;
  looked_at_ = memory;
  asio::post(pool_, [this] {
    const std::size_t regions = store_.collapse(options_.regions);
    asio::post(io_, [this, regions] { finished(regions); });
  });
}

void HugePages::finished(std::size_t regions) {
  busy_ = false;
  done_ += regions;
  if (regions > 0) log::debug("huge_pages", "regions", regions, "total", done_);
  // More regions may follow: the next check continues until the kernel can do no more.
  if (regions > 0) looked_at_ = 0;
}

}  // namespace pando::manager
