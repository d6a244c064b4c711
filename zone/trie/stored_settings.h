#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "shm/store.h"

/// Settings of zones in the store: each distinct set once, with the number of its zones. The sets
/// are leaves of a trie (RootData::settings) by their tags. So a change of one zone's settings
/// costs a path of that trie, however many sets there are, and so does a lookup.
namespace pando::zone {

struct SettingsEntry;

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

/// A label of hexadecimal digits. Numbers of so many digits sort like their labels.
template <std::size_t Digits>
class HexLabel {
 public:
  static constexpr std::size_t kOctets = 1 + Digits;

  explicit HexLabel(std::uint64_t value) noexcept {
    label_[0] = Digits;
    for (std::size_t i = Digits; i > 0; --i, value >>= 4)
      label_[i] = static_cast<std::uint8_t>(kHexDigits[value & 15]);
  }
  [[nodiscard]] ByteView labels() const noexcept { return label_; }

 private:
  std::array<std::uint8_t, kOctets> label_;
};

/// The label under which a set is found: its tag.
using SettingsKey = HexLabel<16>;

/// Blocks of settings' bytes, at least one byte each. move_bytes() copies a block in a victim chunk
/// and releases it, and gives the same reference for any other; kFull, kCorrupt.
Result<std::uint32_t> write_bytes(shm::Transaction& transaction, ByteView bytes);
Result<std::uint32_t> move_bytes(shm::Transaction& transaction, std::uint32_t ref,
                                 std::size_t octets);
void release_bytes(shm::Transaction& transaction, std::uint32_t ref, std::size_t octets);

/// The entry at `ref`, or nullptr when no entry can be there.
[[nodiscard]] const SettingsEntry* settings_entry(shm::Window window, std::uint32_t ref) noexcept;
/// The tag in an entry's key; 0 when the key is damaged.
[[nodiscard]] std::uint64_t settings_tag(const SettingsEntry& entry) noexcept;
/// The flat form of the set with this tag; empty when there is none.
[[nodiscard]] ByteView find_settings(shm::Window window, std::uint32_t root,
                                     std::uint64_t tag) noexcept;

/// Changes the trie of settings in a transaction; `root` is the trie's root.
class SettingsEditor {
 public:
  SettingsEditor(shm::Transaction& transaction, std::uint32_t root) noexcept
      : transaction_(transaction), root_(root) {}

  [[nodiscard]] std::uint32_t root() const noexcept { return root_; }
  /// Counts one more zone with these settings. kFull, kCorrupt.
  Status add_zone(ByteView octets, std::uint64_t tag);
  /// Counts one zone less; a set without zones goes. kFull, kCorrupt.
  Status drop_zone(std::uint64_t tag);

 private:
  Result<SettingsEntry*> writable_entry(std::uint32_t ref, const SettingsKey& key);
  Status put_leaf(std::uint32_t ref, const SettingsKey& key);

  shm::Transaction& transaction_;
  std::uint32_t root_;
};

/// The entry's new place after its blocks have left the victim chunks; for compaction.
Result<std::uint32_t> relocate_settings(shm::Transaction& transaction, std::uint32_t ref);

}  // namespace pando::zone
