#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace pando::dns {

/// Case-insensitive hash of one label (with its length octet) below a parent of hash `parent`; the
/// root's is 0. So the hash of a name comes from its last label to its first, one step each.
[[nodiscard]] std::uint64_t hash_label(std::uint64_t parent, const std::uint8_t* label) noexcept;

/// Where the names of one message, and all their ancestors, stand in it: an open-addressing table
/// of (hash, offset). No copies of names: a candidate is compared in the message itself, by its
/// first label only, because a name's parent has one place in the table and is found before it.
///
/// Entries are never removed but by forget_from(), newest first, which with linear probing leaves
/// exactly the table that was before. Occupancy is a bitmap, so that clearing costs 32 octets for
/// an ordinary answer, whatever the entries' memory holds.
class CompressionTable {
 public:
  /// Empties the table; `message_limit` decides how much of it is used.
  void clear(std::size_t message_limit) noexcept;

  struct Place {
    std::uint16_t offset;  ///< of the name in the message; 0 = not there
    std::uint16_t slot;    ///< where it was found, or where it may be entered
  };
  /// Looks for the name that is `label` below the name at offset `parent` (0 = the root).
  [[nodiscard]] Place find(const std::uint8_t* message, std::uint64_t hash,
                           const std::uint8_t* label, std::uint16_t parent) const noexcept;
  /// A free slot for a name known to be absent.
  [[nodiscard]] std::uint16_t free_slot(std::uint64_t hash) const noexcept;
  /// Enters a name; false, and nothing is entered, when the table is loaded, `slot` is kNoSlot, or
  /// a pointer cannot say `offset` (RFC 1035 §4.1.4: 14 bits).
  bool enter(std::uint16_t slot, std::uint64_t hash, std::size_t offset) noexcept;
  /// Removes every name at `offset` or behind it.
  void forget_from(std::size_t offset) noexcept;

  [[nodiscard]] std::size_t used() const noexcept { return used_; }

 private:
  // A name that is written has at least one octet of its own and mostly ten of a record, so 16 KiB,
  // all that pointers reach, hold about 1,200; an answer over UDP rarely has 100.
  static constexpr std::size_t kMaxSlots = 2048;
  static constexpr std::size_t kFewSlots = 256;
  static constexpr std::size_t kFewSlotsLimit = 4096;  // octets of a message that make do with few
  static constexpr unsigned kMaxProbes = 64;           // bounds what chosen collisions can cost
  static constexpr std::uint16_t kNoSlot = 0xFFFF;

  struct Entry {
    std::uint16_t hash;
    std::uint16_t offset;
  };
  [[nodiscard]] bool occupied(std::size_t slot) const noexcept {
    return (occupied_[slot / 64] >> (slot % 64) & 1) != 0;
  }

  std::size_t mask_;
  std::size_t used_;
  std::size_t load_limit_;
  std::array<std::uint64_t, kMaxSlots / 64> occupied_;
  std::array<Entry, kMaxSlots> entries_;  // meaningful where occupied
};

}  // namespace pando::dns
