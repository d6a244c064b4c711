#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

namespace pando::dns {

/// Little-endian loads on any machine: the first octet of the text is the lowest.
inline std::uint32_t load_le32(const char* p) noexcept {
  std::uint32_t value;
  std::memcpy(&value, p, sizeof value);
  return std::endian::native == std::endian::little ? value : __builtin_bswap32(value);
}
inline std::uint64_t load_le64(const char* p) noexcept {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return std::endian::native == std::endian::little ? value : __builtin_bswap64(value);
}

/// Sixteen octets of zone text tested together: with SSE2, which every x86-64 has, or octet by
/// octet elsewhere. Bit i of a mask belongs to octet i.
class TextBlock {
 public:
  static constexpr std::size_t kOctets = 16;

#ifdef __SSE2__
  explicit TextBlock(const char* p) noexcept
      : octets_(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))) {}

  void store(std::uint8_t* out) const noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), octets_);
  }
  [[nodiscard]] std::uint32_t equal_to(char c) const noexcept {
    return mask(_mm_cmpeq_epi8(octets_, _mm_set1_epi8(c)));
  }
  [[nodiscard]] std::uint32_t digits() const noexcept {
    const __m128i value = _mm_sub_epi8(octets_, _mm_set1_epi8('0'));
    return mask(_mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value));
  }
  /// Octets that may end or complicate a token: up to 0x22 (controls, blank, ! and "), parentheses,
  /// semicolon and backslash. A superset of the needed octets, so that the test takes few
  /// instructions.
  [[nodiscard]] std::uint32_t special() const noexcept {
    const __m128i low = _mm_cmpeq_epi8(_mm_min_epu8(octets_, _mm_set1_epi8(0x22)), octets_);
    const __m128i without_bit0 = _mm_and_si128(octets_, _mm_set1_epi8(static_cast<char>(0xFE)));
    const __m128i parenthesis = _mm_cmpeq_epi8(without_bit0, _mm_set1_epi8('('));
    const __m128i semicolon = _mm_cmpeq_epi8(octets_, _mm_set1_epi8(';'));
    const __m128i backslash = _mm_cmpeq_epi8(octets_, _mm_set1_epi8('\\'));
    return mask(_mm_or_si128(_mm_or_si128(low, parenthesis), _mm_or_si128(semicolon, backslash)));
  }

 private:
  static std::uint32_t mask(__m128i octets) noexcept {
    return static_cast<std::uint32_t>(_mm_movemask_epi8(octets));
  }
  __m128i octets_;
#else
  explicit TextBlock(const char* p) noexcept { std::memcpy(octets_, p, kOctets); }

  void store(std::uint8_t* out) const noexcept { std::memcpy(out, octets_, kOctets); }
  [[nodiscard]] std::uint32_t equal_to(char c) const noexcept {
    return mask_of([c](char octet) { return octet == c; });
  }
  [[nodiscard]] std::uint32_t digits() const noexcept {
    return mask_of([](char octet) { return octet >= '0' && octet <= '9'; });
  }
  [[nodiscard]] std::uint32_t special() const noexcept {
    return mask_of([](char octet) {
      return static_cast<unsigned char>(octet) <= 0x22 || octet == '(' || octet == ')' ||
             octet == ';' || octet == '\\';
    });
  }

 private:
  template <class Test>
  std::uint32_t mask_of(Test test) const noexcept {
    std::uint32_t mask = 0;
    for (std::size_t i = 0; i < kOctets; ++i) mask |= std::uint32_t{test(octets_[i])} << i;
    return mask;
  }
  char octets_[kOctets];
#endif
};

}  // namespace pando::dns
