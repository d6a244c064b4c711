#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pando::dns {

/// Rule for pointers to earlier names: equal names (RFC 4343 §3) or, where the reader needs the
/// spelling, identically spelt names (RFC 5936 §3.4).
enum class NameCase : bool { kIgnored, kKept };

// Stretches of names, eight octets at a time. They are inline: a comparison is some ten
// instructions, so that calls would be measurable.

namespace words {

inline constexpr std::uint64_t kEachOctet = 0x0101010101010101U;

template <class Word>
Word load(const std::uint8_t* p) noexcept {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/// 1..7 octets as one word; the loads overlap and stay inside.
inline std::uint64_t load_short(const std::uint8_t* p, std::size_t octets) noexcept {
  if (octets >= 4)
    return load<std::uint32_t>(p) | std::uint64_t{load<std::uint32_t>(p + octets - 4)} << 32;
  if (octets == 1) return *p;
  return load<std::uint16_t>(p) | std::uint64_t{load<std::uint16_t>(p + octets - 2)} << 16;
}

/// Lower case of A-Z in all eight octets; other octets, including length octets (≤ 63), stay.
constexpr std::uint64_t fold(std::uint64_t word) noexcept {
  const std::uint64_t low = word & (kEachOctet * 0x7F);
  const std::uint64_t from_a = low + kEachOctet * (0x80 - 'A');    // bit 7: octet ≥ 'A'
  const std::uint64_t behind_z = low + kEachOctet * (0x7F - 'Z');  // bit 7: octet > 'Z'
  const std::uint64_t upper = (from_a ^ behind_z) & ~word & (kEachOctet * 0x80);
  return word | (upper >> 2);
}

template <NameCase kCase>
bool same_word(std::uint64_t a, std::uint64_t b) noexcept {
  if constexpr (kCase == NameCase::kKept) return a == b;
  if (((a ^ b) & ~(kEachOctet * 0x20)) != 0) return false;  // differ by more than case
  return a == b || fold(a) == fold(b);
}

/// `word` is folded roughly: setting bit 5 everywhere maps both cases of a letter to one value. A
/// collision of other octets costs a comparison at worst. A product moves bits only upwards; the
/// rotation moves them down for the next product.
inline std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  return std::rotl((hash ^ (word | kEachOctet * 0x20)) * 0x9E3779B97F4A7C15U, 32);
}

}  // namespace words

/// Compares stretches of names; `octets` is at least 1.
template <NameCase kCase>
[[nodiscard]] bool same_octets(const std::uint8_t* a, const std::uint8_t* b,
                               std::size_t octets) noexcept {
  using namespace words;
  if (octets < 8) return same_word<kCase>(load_short(a, octets), load_short(b, octets));
  const std::size_t tail = octets - 8;
  for (std::size_t i = 0; i < tail; i += 8)
    if (!same_word<kCase>(load<std::uint64_t>(a + i), load<std::uint64_t>(b + i))) return false;
  return same_word<kCase>(load<std::uint64_t>(a + tail), load<std::uint64_t>(b + tail));
}

/// Copies a stretch of a name, which is short: a call of memcpy, or the instruction that compilers
/// put in its place, costs more than the octets. The stretches do not overlap.
inline void copy_octets(std::uint8_t* out, const std::uint8_t* in, std::size_t octets) noexcept {
  const auto copy_ends = [&]<class Word>(Word first) {
    const Word last = words::load<Word>(in + octets - sizeof(Word));
    std::memcpy(out, &first, sizeof first);
    std::memcpy(out + octets - sizeof last, &last, sizeof last);
  };
  if (octets >= 8) {
    for (std::size_t i = 8; i + 8 < octets; i += 8)
      std::memcpy(out + i, in + i, sizeof(std::uint64_t));
    copy_ends(words::load<std::uint64_t>(in));
  } else if (octets >= 4) {
    copy_ends(words::load<std::uint32_t>(in));
  } else {
    for (std::size_t i = 0; i < octets; ++i) out[i] = in[i];
  }
}

/// Hash of a stretch of a name, independent of case; `octets` is at least 1. Not keyed: a client
/// can find names with one hash.
[[nodiscard]] inline std::uint64_t hash_octets(const std::uint8_t* p, std::size_t octets) noexcept {
  using namespace words;
  if (octets < 8) return mix(octets, load_short(p, octets));
  const std::size_t tail = octets - 8;
  std::uint64_t hash = octets;
  for (std::size_t i = 0; i < tail; i += 8) hash = mix(hash, load<std::uint64_t>(p + i));
  return mix(hash, load<std::uint64_t>(p + tail));
}

}  // namespace pando::dns
