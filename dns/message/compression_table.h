#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"
#include "dns/octet_words.h"

namespace pando::dns {

/// Hash of a name, independent of case. Not keyed: CompressionTable bounds its probes.
[[nodiscard]] std::uint16_t compression_hash(NameView name) noexcept;

/// True when the name at `offset` of the message being written, compressed or not, is `name`.
template <NameCase kCase>
[[nodiscard]] bool is_name_at(ByteView message, std::size_t offset, NameView name) noexcept;

/// Most pointers that a reader follows through a name in the table. RFC 1035 §4.1.4 sets no limit,
/// but readers do (Go's 10, dnspython's 16). Without a limit, aliases that grow by a label at each
/// step would make one long chain.
inline constexpr unsigned kMaxChainedPointers = 3;

/// Places of the names of one message, and of all their ancestors: an open-addressing table of
/// (hash, offset). Names are not copied: candidates are compared in the message itself.
///
/// Only forget_from() removes entries, newest first; with linear probing this restores the earlier
/// table exactly. Occupancy is a bitmap, so that clearing costs 32 octets for an ordinary answer,
/// whatever the entries' memory holds.
class CompressionTable {
 public:
  /// Empties the table; `message_limit` decides its number of slots.
  void clear(std::size_t message_limit) noexcept;

  /// Place of a name in the message.
  struct Place {
    std::uint16_t offset = 0;  ///< 0 = absent
    unsigned pointers = 0;     ///< pointers that a reader follows from there to the name's end
  };
  template <NameCase kCase>
  [[nodiscard]] Place find(ByteView message, std::uint16_t hash, NameView name) const noexcept;
  /// Enters a name known to be absent; `pointers` is at most kMaxChainedPointers. No effect when
  /// the table is full enough, or when `offset` exceeds a pointer's 14 bits (RFC 1035 §4.1.4).
  void enter(std::uint16_t hash, std::size_t offset, unsigned pointers) noexcept;
  /// find(), and enter() when the name is absent.
  template <NameCase kCase>
  Place find_or_enter(ByteView message, std::uint16_t hash, NameView name, std::size_t offset,
                      unsigned pointers) noexcept;
  /// Removes every name at `offset` or after it.
  void forget_from(std::size_t offset) noexcept;

 private:
  // A written name takes at least one octet of its own, and mostly ten more for a record. The 16
  // KiB within reach of pointers therefore hold about 1,200 names; an answer over UDP rarely has
  // 100.
  static constexpr std::size_t kMaxSlots = 2048;
  static constexpr std::size_t kFewSlots = 256;
  static constexpr std::size_t kFewSlotsLimit = 4096;  // octets of a message with few slots
  static constexpr unsigned kMaxProbes = 64;           // bounds the cost of chosen collisions

  static constexpr unsigned kOffsetBits = 14;
  static_assert(kMaxChainedPointers < 1U << (16 - kOffsetBits));

  struct Entry {
    std::uint16_t hash;
    std::uint16_t place;  // pointers in the upper bits, offset in the lower ones
    [[nodiscard]] std::uint16_t offset() const noexcept {
      return place & ((1U << kOffsetBits) - 1U);
    }
  };
  /// The slot of a name, and its place in `found`; when it is absent, a free slot, or a taken one
  /// after too many.
  template <NameCase kCase>
  [[nodiscard]] std::size_t probe(ByteView message, std::uint16_t hash, NameView name,
                                  Place& found) const noexcept;
  void fill(std::size_t slot, std::uint16_t hash, std::size_t offset, unsigned pointers) noexcept;
  [[nodiscard]] bool occupied(std::size_t slot) const noexcept {
    return (occupied_[slot / 64] >> (slot % 64) & 1) != 0;
  }

  std::size_t mask_;
  std::size_t used_;
  std::size_t load_limit_;
  std::array<std::uint64_t, kMaxSlots / 64> occupied_;
  std::array<Entry, kMaxSlots> entries_;  // meaningful where occupied
};

// Inline from here on: one search is some 60 instructions, so that calls would be measurable.

inline std::uint16_t compression_hash(NameView name) noexcept {
  // The last product's upper bits.
  return static_cast<std::uint16_t>(hash_octets(name.data(), name.size()) >> 16);
}

// A call of its own, so that the search around it has more registers: most find no equal hash.
template <NameCase kCase>
[[gnu::noinline, gnu::flatten]] bool is_name_at(ByteView message, std::size_t offset,
                                                NameView name) noexcept {
  while (true) {
    const std::uint8_t* theirs = message.data() + offset;
    // The rest of the name is mostly contiguous: in the question, or after the one pointer. It
    // ends with the root's octet then.
    if (offset + name.size() <= message.size() && theirs[name.size() - 1] == 0 &&
        same_octets<kCase>(theirs, name.data(), name.size()))
      return true;
    const std::size_t label = name.data()[0] + 1U;
    if (*theirs != name.data()[0] || label >= name.size() ||
        !same_octets<kCase>(theirs, name.data(), label))
      return false;
    name = NameView(name.data() + label, name.size() - label);
    offset += label;
    if (message[offset] >= 0xC0) offset = load_be16(&message[offset]) & 0x3FFF;
  }
}

template <NameCase kCase>
inline std::size_t CompressionTable::probe(ByteView message, std::uint16_t hash, NameView name,
                                           Place& found) const noexcept {
  std::size_t slot = hash & mask_;
  for (unsigned probe = 0; probe < kMaxProbes && occupied(slot); ++probe) {
    const Entry entry = entries_[slot];
    if (entry.hash == hash && is_name_at<kCase>(message, entry.offset(), name)) {
      found = {entry.offset(), static_cast<unsigned>(entry.place >> kOffsetBits)};
      break;
    }
    slot = (slot + 1) & mask_;
  }
  return slot;
}

template <NameCase kCase>
inline CompressionTable::Place CompressionTable::find(ByteView message, std::uint16_t hash,
                                                      NameView name) const noexcept {
  Place found;
  static_cast<void>(probe<kCase>(message, hash, name, found));
  return found;
}

template <NameCase kCase>
inline CompressionTable::Place CompressionTable::find_or_enter(ByteView message, std::uint16_t hash,
                                                               NameView name, std::size_t offset,
                                                               unsigned pointers) noexcept {
  Place found;
  const std::size_t slot = probe<kCase>(message, hash, name, found);
  if (!occupied(slot)) fill(slot, hash, offset, pointers);
  return found;
}

inline void CompressionTable::enter(std::uint16_t hash, std::size_t offset,
                                    unsigned pointers) noexcept {
  std::size_t slot = hash & mask_;
  for (unsigned probe = 0; occupied(slot); ++probe) {
    if (probe == kMaxProbes) return;
    slot = (slot + 1) & mask_;
  }
  fill(slot, hash, offset, pointers);
}

inline void CompressionTable::fill(std::size_t slot, std::uint16_t hash, std::size_t offset,
                                   unsigned pointers) noexcept {
  if (used_ >= load_limit_ || offset >> kOffsetBits != 0) return;
  entries_[slot] = {hash, static_cast<std::uint16_t>(pointers << kOffsetBits | offset)};
  occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  ++used_;
}

}  // namespace pando::dns
