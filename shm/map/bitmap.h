#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace pando::shm {

/// A set of small numbers with fast search in both directions.
class Bitmap {
 public:
  static constexpr std::uint32_t kNone = UINT32_MAX;

  explicit Bitmap(std::uint32_t bits = 0) : bits_(bits), words_((bits + 63) / 64) {}

  void set_all() noexcept {
    for (std::uint64_t& word : words_) word = ~std::uint64_t{0};
    if (bits_ % 64 != 0) words_.back() = (std::uint64_t{1} << (bits_ % 64)) - 1;
  }
  [[nodiscard]] std::uint32_t size() const noexcept { return bits_; }
  [[nodiscard]] bool test(std::uint32_t bit) const noexcept {
    return (words_[bit / 64] >> (bit % 64) & 1) != 0;
  }
  void set(std::uint32_t bit) noexcept { words_[bit / 64] |= std::uint64_t{1} << (bit % 64); }
  void reset(std::uint32_t bit) noexcept { words_[bit / 64] &= ~(std::uint64_t{1} << (bit % 64)); }

  /// First member at or after `from` of the combined set. `combine` maps each word of `*this` and
  /// its index to the combined word.
  template <class Combine>
  [[nodiscard]] std::uint32_t find(std::uint32_t from, Combine&& combine) const noexcept {
    for (std::uint32_t at = from / 64; at < words_.size(); ++at) {
      std::uint64_t word = combine(words_[at], at);
      if (at == from / 64) word &= ~std::uint64_t{0} << (from % 64);
      if (word == 0) continue;
      const auto bit = at * 64 + static_cast<std::uint32_t>(std::countr_zero(word));
      return bit < bits_ ? bit : kNone;
    }
    return kNone;
  }
  [[nodiscard]] std::uint32_t find_set(std::uint32_t from) const noexcept {
    return find(from, [](std::uint64_t word, std::uint32_t) { return word; });
  }
  [[nodiscard]] std::uint32_t find_clear(std::uint32_t from) const noexcept {
    return find(from, [](std::uint64_t word, std::uint32_t) { return ~word; });
  }
  /// First member of both sets at or after `from`.
  [[nodiscard]] std::uint32_t find_both(const Bitmap& other, std::uint32_t from) const noexcept {
    return find(from,
                [&](std::uint64_t word, std::uint32_t at) { return word & other.words_[at]; });
  }
  /// First member of this set, not of the other.
  [[nodiscard]] std::uint32_t find_only(const Bitmap& other, std::uint32_t from) const noexcept {
    return find(from,
                [&](std::uint64_t word, std::uint32_t at) { return word & ~other.words_[at]; });
  }
  /// Last member of both sets before `end`.
  [[nodiscard]] std::uint32_t find_last_both(const Bitmap& other,
                                             std::uint32_t end) const noexcept {
    for (std::uint32_t at = (end + 63) / 64; at-- > 0;) {
      std::uint64_t word = words_[at] & other.words_[at];
      if (end < (at + 1) * 64) word &= (std::uint64_t{1} << (end % 64)) - 1;
      if (word != 0) return at * 64 + 63 - static_cast<std::uint32_t>(std::countl_zero(word));
    }
    return kNone;
  }
  /// First of `count` consecutive members.
  [[nodiscard]] std::uint32_t find_run(std::uint32_t count) const noexcept {
    for (std::uint32_t first = find_set(0); first != kNone;) {
      const std::uint32_t after = find_clear(first);
      const std::uint32_t end = after == kNone ? bits_ : after;
      if (end - first >= count) return first;
      first = find_set(end);
    }
    return kNone;
  }

 private:
  std::uint32_t bits_;
  std::vector<std::uint64_t> words_;
};

}  // namespace pando::shm
