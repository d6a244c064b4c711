#include "shm/map/victim_set.h"

#include <algorithm>

namespace pando::shm {

VictimSet::VictimSet(std::uint32_t limit)
    : limit_(limit), words_(std::make_unique<std::atomic<std::uint64_t>[]>((limit + 63) / 64)) {}

void VictimSet::add(std::uint32_t chunk) noexcept {
  words_[chunk / 64].fetch_or(std::uint64_t{1} << (chunk % 64), std::memory_order_relaxed);
}

void VictimSet::remove(std::uint32_t chunk) noexcept {
  words_[chunk / 64].fetch_and(~(std::uint64_t{1} << (chunk % 64)), std::memory_order_relaxed);
}

void VictimSet::clear() noexcept {
  for (std::uint32_t word = 0; word < (limit_ + 63) / 64; ++word)
    words_[word].store(0, std::memory_order_relaxed);
}

bool VictimSet::must_narrow(std::uint64_t room) noexcept {
  if (room != 0 && room >= walk_room_ / 2) return false;
  walk_room_ = room;
  return true;
}

void EmptiestChunks::select(std::size_t most, std::uint64_t room) noexcept {
  for (std::uint32_t units = 1; units < chunks_with_.size(); ++units) {
    const std::uint32_t bytes = units * static_cast<std::uint32_t>(kUnit);
    const std::size_t fit = std::min<std::uint64_t>((room / 2 - copied_) / bytes, most - selected_);
    const std::size_t chosen = std::min<std::size_t>(chunks_with_[units], fit);
    selected_ += chosen;
    copied_ += std::uint64_t{chosen} * bytes;
    bytes_ = bytes;
    at_ = chosen;
    if (chosen < chunks_with_[units]) return;
  }
}

bool EmptiestChunks::take(std::uint32_t live) noexcept {
  if (live != bytes_) return live < bytes_;
  if (at_ == 0) return false;
  --at_;
  return true;
}

}  // namespace pando::shm
