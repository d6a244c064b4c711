#include "shm/map/chunk_tails.h"

#include <algorithm>

namespace pando::shm {

namespace {

constexpr std::size_t kTailsMax = 1024;
/// Number of partly used chunks that one allocation tries.
constexpr std::size_t kTailTries = 16;

}  // namespace

bool ChunkTails::add(Span tail) {
  if (tails_.size() >= kTailsMax || listed_.test(tail.chunk)) return false;
  listed_.set(tail.chunk);
  tails_.push_back(tail);
  return true;
}

std::optional<Span> ChunkTails::take(std::uint32_t bytes) {
  const std::size_t tries = std::min(tails_.size(), kTailTries);
  for (std::size_t i = tails_.size(); i > tails_.size() - tries; --i) {
    const Span tail = tails_[i - 1];
    if (kChunkBytes - tail.from < bytes) continue;
    tails_.erase(tails_.begin() + static_cast<std::ptrdiff_t>(i - 1));
    listed_.reset(tail.chunk);
    return tail;
  }
  return std::nullopt;
}

void ChunkTails::drop(std::uint32_t chunk) {
  if (!listed_.test(chunk)) return;
  listed_.reset(chunk);
  std::erase_if(tails_, [chunk](const Span& tail) { return tail.chunk == chunk; });
}

}  // namespace pando::shm
