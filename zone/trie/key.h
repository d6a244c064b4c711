#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::zone {

/// Number of symbols of a trie key: 48, so that one 64-bit word holds a branch's bitmap and offset.
inline constexpr unsigned kSymbols = 48;
/// Ends each label, and is the symbol behind the end of every key. The smallest symbol, so that a
/// name sorts before every name below it (RFC 4034 §6.1).
inline constexpr std::uint8_t kLabelEnd = 0;
/// 250 octets of labels, each two symbols at most, and an end for each label: below 512.
inline constexpr std::size_t kMaxKeySymbols = 512;

/// A name in the form by which the tries are ordered: labels from the top down, octets in lower
/// case, each label closed by kLabelEnd. An octet is one symbol (letters, digits, '-', '_', '*') or
/// two (an escape and a value 1..47). Comparing keys symbol by symbol gives canonical order for all
/// 256 octets, octet 0 included, because escapes stand where their octets sort.
class TrieKey {
 public:
  TrieKey() noexcept = default;
  /// `labels`: wire labels, first label first, without the root octet (empty for the apex).
  explicit TrieKey(ByteView labels) noexcept { assign(labels); }
  void assign(ByteView labels) noexcept;

  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// Symbol at `at`, kLabelEnd behind the end.
  [[nodiscard]] std::uint8_t operator[](std::size_t at) const noexcept {
    return at < length_ ? symbols_[at] : kLabelEnd;
  }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return symbols_.data(); }
  /// True when a whole number of labels ends just before `at`.
  [[nodiscard]] bool is_label_border(std::size_t at) const noexcept {
    return at == 0 || (at <= length_ && symbols_[at - 1] == kLabelEnd);
  }
  /// Whole labels in the first `symbols` symbols.
  [[nodiscard]] std::size_t labels_within(std::size_t symbols) const noexcept;
  /// Length of the longest common prefix of two keys.
  [[nodiscard]] std::size_t common_prefix(const TrieKey& other) const noexcept;
  /// Canonical order: <0, 0, >0.
  [[nodiscard]] int compare(const TrieKey& other) const noexcept;

 private:
  std::uint16_t length_ = 0;
  std::array<std::uint8_t, kMaxKeySymbols> symbols_;
};

/// True when the octets are whole labels, none of them the root's: then a walk from label to label
/// ends with the last octet. Stored octets are taken for labels only after this check.
[[nodiscard]] inline bool are_labels(ByteView octets) noexcept {
  std::size_t at = 0;
  while (at < octets.size()) {
    if (octets[at] == 0 || octets[at] > dns::kMaxLabelOctets) [[unlikely]]
      return false;
    at += octets[at] + std::size_t{1};
  }
  return at == octets.size();
}

/// `name` without `apex` at its end and without the root octet: the key of a name in a zone. The
/// name must be at or below the apex.
[[nodiscard]] inline ByteView relative_labels(dns::NameView name, dns::NameView apex) noexcept {
  return name.bytes().first(name.size() - apex.size());
}

}  // namespace pando::zone
