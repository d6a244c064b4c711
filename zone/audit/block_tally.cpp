#include "zone/audit/block_tally.h"

#include <algorithm>
#include <utility>

#include "shm/map/chunk.h"

namespace pando::zone {

BlockTally::BlockTally(shm::Window window, AuditProgress progress)
    : window_(window),
      progress_(std::move(progress)),
      left_((std::max(window.limit(), shm::kFirstBlock) - shm::kFirstBlock) / shm::kUnit) {}

bool BlockTally::count(std::uint32_t ref, std::size_t octets, UsageField kind) {
  const std::size_t size = shm::block_bytes(octets);
  if (left_ == 0 || window_.at(shm::Ref<>{ref}, size) == nullptr) return false;
  --left_;
  usage_.*kind += octets;
  usage_.padding += size - octets;
  met_ += size;
  if (progress_ && met_ - told_ >= kTellEvery) progress_(told_ = met_);
  count_in_chunks(shm::Ref<>{ref}.offset() - shm::kFirstBlock, size);
  return true;
}

void BlockTally::count_in_chunks(std::uint64_t at, std::uint64_t bytes) {
  while (bytes > 0) {
    const std::uint64_t chunk = at / shm::kChunkBytes;
    const std::uint64_t part = std::min(bytes, (chunk + 1) * shm::kChunkBytes - at);
    if (chunks_.size() <= chunk) chunks_.resize(chunk + 1);
    chunks_[chunk] += static_cast<std::uint32_t>(part);
    at += part;
    bytes -= part;
  }
}

}  // namespace pando::zone
