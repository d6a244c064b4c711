#include "dns/compression_table.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"

namespace pando::dns {

namespace {

constexpr std::uint64_t kEachOctet = 0x0101010101010101U;

template <class Word>
Word load(const std::uint8_t* p) noexcept {
  Word word;
  std::memcpy(&word, p, sizeof word);
  return word;
}

/// Lower case of A-Z in all eight octets (RFC 4343 §3); other octets, length octets included, stay.
constexpr std::uint64_t fold_octets(std::uint64_t word) noexcept {
  const std::uint64_t low = word & (kEachOctet * 0x7F);
  const std::uint64_t from_a = low + kEachOctet * (0x80 - 'A');    // bit 7: octet ≥ 'A'
  const std::uint64_t behind_z = low + kEachOctet * (0x7F - 'Z');  // bit 7: octet > 'Z'
  const std::uint64_t upper = (from_a ^ behind_z) & ~word & (kEachOctet * 0x80);
  return word | (upper >> 2);
}

/// A label of 2..7 octets (with its length octet) as one word, overlapping loads inside it.
std::uint64_t load_short_label(const std::uint8_t* label, std::size_t octets) noexcept {
  if (octets >= 4) {
    return load<std::uint32_t>(label) | std::uint64_t{load<std::uint32_t>(label + octets - 4)}
                                            << 32;
  }
  return load<std::uint16_t>(label) | std::uint64_t{load<std::uint16_t>(label + octets - 2)} << 16;
}

/// `word` is folded roughly: setting bit 5 everywhere maps both cases of a letter to one value, and
/// that other octets may meet costs a comparison at worst.
std::uint64_t mix(std::uint64_t hash, std::uint64_t word) noexcept {
  hash = (hash ^ (word | kEachOctet * 0x20)) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 32);
}

bool same_octets(std::uint64_t a, std::uint64_t b) noexcept {
  return a == b || fold_octets(a) == fold_octets(b);
}

/// Equality of two labels with their length octets, which are at most 63 and so never fold.
bool same_label(const std::uint8_t* a, const std::uint8_t* b) noexcept {
  if (a[0] != b[0]) return false;
  const std::size_t octets = a[0] + 1U;
  if (octets < 8) return same_octets(load_short_label(a, octets), load_short_label(b, octets));
  for (std::size_t i = 0; i + 8 <= octets; i += 8)
    if (!same_octets(load<std::uint64_t>(a + i), load<std::uint64_t>(b + i))) return false;
  const std::size_t tail = octets - 8;
  return same_octets(load<std::uint64_t>(a + tail), load<std::uint64_t>(b + tail));
}

/// True when the name written at `at` is the one at offset `parent` (0 = the root): it starts
/// there, or is a pointer to there, since every name is compressed as far as can be.
bool continues_at(const std::uint8_t* message, std::size_t at, std::uint16_t parent) noexcept {
  if (parent == 0) return message[at] == 0;
  if (at == parent) return true;
  return message[at] >= 0xC0 && load_be16(message + at) == (0xC000 | parent);
}

constexpr std::uint16_t short_hash(std::uint64_t hash) noexcept {
  return static_cast<std::uint16_t>(hash >> 48);  // the product's best bits
}

}  // namespace

std::uint64_t hash_label(std::uint64_t parent, const std::uint8_t* label) noexcept {
  const std::size_t octets = label[0] + 1U;
  if (octets < 8) return mix(parent, load_short_label(label, octets));
  std::uint64_t hash = parent;
  for (std::size_t i = 0; i + 8 <= octets; i += 8) hash = mix(hash, load<std::uint64_t>(label + i));
  return mix(hash, load<std::uint64_t>(label + octets - 8));
}

void CompressionTable::clear(std::size_t message_limit) noexcept {
  const std::size_t slots = message_limit <= kFewSlotsLimit ? kFewSlots : kMaxSlots;
  mask_ = slots - 1;
  load_limit_ = slots / 8 * 5;  // above that, unsuccessful probing gets long
  used_ = 0;
  std::fill_n(occupied_.begin(), slots / 64, 0);
}

CompressionTable::Place CompressionTable::find(const std::uint8_t* message, std::uint64_t hash,
                                               const std::uint8_t* label,
                                               std::uint16_t parent) const noexcept {
  const std::uint16_t wanted = short_hash(hash);
  std::size_t slot = wanted & mask_;
  for (unsigned probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask_) {
    if (!occupied(slot)) return {0, static_cast<std::uint16_t>(slot)};
    const Entry entry = entries_[slot];
    if (entry.hash != wanted || !same_label(message + entry.offset, label)) continue;
    if (continues_at(message, entry.offset + label[0] + 1U, parent))
      return {entry.offset, static_cast<std::uint16_t>(slot)};
  }
  return {0, kNoSlot};
}

std::uint16_t CompressionTable::free_slot(std::uint64_t hash) const noexcept {
  std::size_t slot = short_hash(hash) & mask_;
  for (unsigned probe = 0; probe < kMaxProbes; ++probe, slot = (slot + 1) & mask_)
    if (!occupied(slot)) return static_cast<std::uint16_t>(slot);
  return kNoSlot;
}

bool CompressionTable::enter(std::uint16_t slot, std::uint64_t hash, std::size_t offset) noexcept {
  if (slot == kNoSlot || used_ >= load_limit_ || offset > 0x3FFF) return false;
  entries_[slot] = {short_hash(hash), static_cast<std::uint16_t>(offset)};
  occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  ++used_;
  return true;
}

void CompressionTable::forget_from(std::size_t offset) noexcept {
  for (std::size_t word = 0; word <= mask_ / 64; ++word) {
    for (std::uint64_t bits = occupied_[word]; bits != 0; bits &= bits - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
      if (entries_[word * 64 + bit].offset < offset) continue;
      occupied_[word] &= ~(std::uint64_t{1} << bit);
      --used_;
    }
  }
}

}  // namespace pando::dns
