#pragma once

#include <array>
#include <cstdint>

#include "base/bytes.h"
#include "dns/name.h"

namespace pando::zone {

struct TrieDescent;

/// Number of symbols of a trie key: 48, so that one 64-bit word holds a branch's bitmap and offset.
inline constexpr unsigned kSymbols = 48;
/// Ends each label, and is the symbol past the end of every key. The smallest symbol, so that a
/// name sorts before every name below it (RFC 4034 §6.1).
inline constexpr std::uint8_t kLabelEnd = 0;
/// 250 octets of labels, each two symbols at most, and an end for each label: below 512.
inline constexpr std::size_t kMaxKeySymbols = 512;
/// Stands after a key in memory, and equals no symbol.
inline constexpr std::uint8_t kKeyEnd = 0xFF;

/// Symbols of a key that another object owns, which outlives the view. kKeyEnd stands after them,
/// and 15 more octets can be read.
class KeyView {
 public:
  KeyView(const std::uint8_t* symbols, std::size_t length) noexcept
      : symbols_(symbols), length_(static_cast<std::uint16_t>(length)) {}

  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// Symbol at `at`, kLabelEnd past the end.
  [[nodiscard]] std::uint8_t operator[](std::size_t at) const noexcept {
    return at < length_ ? symbols_[at] : kLabelEnd;
  }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return symbols_; }
  /// True when a whole number of labels ends just before `at`.
  [[nodiscard]] bool is_label_border(std::size_t at) const noexcept {
    return at == 0 || (at <= length_ && symbols_[at - 1] == kLabelEnd);
  }
  /// Whole labels in the first `symbols` symbols.
  [[nodiscard]] std::size_t labels_within(std::size_t symbols) const noexcept;

  /// Where this key and a name part.
  struct Parting {
    std::size_t common = 0;  ///< length of the longest common prefix in symbols
    bool name_ends = false;  ///< the name's key is that prefix
    std::uint8_t next = 0;   ///< the name's symbol after it, kLabelEnd after the name's end
  };
  /// Compares with the key of `labels` (see TrieKey::assign()), which is not made whole for it.
  /// `labels` are whole labels, are_labels() says. `readable`: octets that may be read from their
  /// first one on, at least all of them; more make it quicker.
  [[nodiscard]] Parting part_from(ByteView labels, std::size_t readable) const noexcept;

 private:
  const std::uint8_t* symbols_;
  std::uint16_t length_;
};

/// A name in the form by which the tries are ordered: labels from the top down, octets in lower
/// case, each label closed by kLabelEnd. An octet is one symbol (letters, digits, '-', '_', '*') or
/// two (an escape and a value 1..47). Comparing keys symbol by symbol gives canonical order for all
/// 256 octets, octet 0 included, because escapes stand where their octets sort.
class TrieKey {
 public:
  TrieKey() noexcept { symbols_[0] = kKeyEnd; }
  /// `labels`: wire labels, first label first, without the root octet (empty for the apex).
  explicit TrieKey(ByteView labels) noexcept { assign(labels); }
  void assign(ByteView labels) noexcept;

  operator KeyView() const noexcept { return view(); }  // NOLINT: a key is usable as its view
  [[nodiscard]] KeyView view() const noexcept { return {symbols_.data(), length_}; }
  [[nodiscard]] std::size_t length() const noexcept { return length_; }
  /// Symbol at `at`, kLabelEnd past the end.
  [[nodiscard]] std::uint8_t operator[](std::size_t at) const noexcept { return view()[at]; }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return symbols_.data(); }
  [[nodiscard]] std::size_t labels_within(std::size_t symbols) const noexcept {
    return view().labels_within(symbols);
  }
  /// Length of the longest common prefix of two keys.
  [[nodiscard]] std::size_t common_prefix(const TrieKey& other) const noexcept;
  /// Canonical order: <0, 0, >0.
  [[nodiscard]] int compare(const TrieKey& other) const noexcept;

 private:
  friend class NameKey;
  std::uint16_t length_ = 0;
  std::array<std::uint8_t, kMaxKeySymbols + 16>
      symbols_;  // labels may be written 16 octets at once
};

/// The key of a whole name, made once for all descents of its question: its end is the name's key
/// in any zone above it. The name must outlive the key.
class NameKey {
 public:
  explicit NameKey(const dns::Name& name) noexcept;

  [[nodiscard]] dns::NameView name() const noexcept { return name_; }
  /// Number of the name's labels, without the root.
  [[nodiscard]] std::size_t label_count() const noexcept { return label_count_; }
  [[nodiscard]] KeyView whole() const noexcept { return key_; }
  /// A descent that was made with this key, if any: a lookup with the key may take its result.
  /// remember(): the descent must stay in place while the key is used.
  [[nodiscard]] const TrieDescent* descent() const noexcept { return descent_; }
  void remember(const TrieDescent* descent) noexcept { descent_ = descent; }
  /// The key relative to the ancestor-or-self with so many labels.
  [[nodiscard]] KeyView below(std::size_t labels) const noexcept {
    const std::size_t start = ends_[labels < label_count_ ? labels : label_count_];
    return {key_.data() + start, key_.length() - start};
  }

 private:
  dns::NameView name_;
  const TrieDescent* descent_ = nullptr;
  std::size_t label_count_ = 0;
  std::array<std::uint16_t, dns::kMaxLabels + 2>
      ends_;  // of so many labels from the top, in symbols
  TrieKey key_;
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
