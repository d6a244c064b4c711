#include "dns/message/compression_table.h"

#include <algorithm>
#include <bit>

namespace pando::dns {

void CompressionTable::clear(std::size_t message_limit) noexcept {
  const std::size_t slots = message_limit <= kFewSlotsLimit ? kFewSlots : kMaxSlots;
  mask_ = slots - 1;
  load_limit_ = slots / 8 * 5;  // above that, failing searches get long
  used_ = 0;
  std::fill_n(occupied_.begin(), slots / 64, 0);
}

void CompressionTable::forget_from(std::size_t offset) noexcept {
  for (std::size_t word = 0; word <= mask_ / 64; ++word) {
    for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      if (entries_[word * 64 + bit].offset() < offset) continue;
      occupied_[word] &= ~(std::uint64_t{1} << bit);
      --used_;
    }
  }
}

}  // namespace pando::dns
