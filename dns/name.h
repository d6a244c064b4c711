#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/octet_words.h"

namespace pando::dns {

inline constexpr std::size_t kMaxNameOctets = 255;  // RFC 1035 §3.1, with the root's length octet
inline constexpr std::size_t kMaxLabelOctets = 63;  // RFC 1035 §2.3.4
inline constexpr std::size_t kMaxLabels = 127;      // of one octet each, without the root

/// Lower case for A-Z only, as RFC 4343 §3 defines it; every other octet maps to itself.
extern const std::array<std::uint8_t, 256> kFoldCase;

/// A validated, uncompressed wire-format name, not owned: 1..255 octets ending in the root label.
/// Case is kept; comparison folds case (RFC 4343).
class NameView {
 public:
  constexpr NameView() noexcept : data_(kRootWire), size_(1) {}
  /// The caller guarantees that the octets are a valid name.
  constexpr NameView(const std::uint8_t* data, std::size_t size) noexcept
      : data_(data), size_(size) {}

  [[nodiscard]] const std::uint8_t* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] ByteView bytes() const noexcept { return {data_, size_}; }
  [[nodiscard]] bool is_root() const noexcept { return size_ == 1; }
  [[nodiscard]] bool is_wildcard() const noexcept {  // RFC 4592 §2.1.1
    return size_ >= 3 && data_[0] == 1 && data_[1] == '*';
  }
  /// Number of labels without the root: "." has 0, "example.com." has 2.
  [[nodiscard]] std::size_t label_count() const noexcept {
    std::size_t count = 0;
    for (std::size_t i = 0; data_[i] != 0; i += data_[i] + 1U) ++count;
    return count;
  }
  /// Name without its first label; the root's parent is the root.
  [[nodiscard]] NameView parent() const noexcept {
    return is_root() ? *this : NameView(data_ + data_[0] + 1, size_ - data_[0] - 1U);
  }
  /// Name without its first `labels` labels; the root when the name has no more labels than that.
  [[nodiscard]] NameView ancestor(std::size_t labels) const noexcept {
    std::size_t at = 0;
    while (labels-- > 0 && data_[at] != 0) at += data_[at] + 1U;
    return {data_ + at, size_ - at};
  }
  /// True when this name equals `other` or is below it.
  [[nodiscard]] bool is_at_or_below(NameView other) const noexcept;

 private:
  static constexpr std::uint8_t kRootWire[1] = {0};
  const std::uint8_t* data_;
  std::size_t size_;
};

/// Case-insensitive equality (RFC 4343 §3).
[[nodiscard]] bool operator==(NameView a, NameView b) noexcept;

/// Canonical DNS name order (RFC 4034 §6.1): <0, 0, >0.
[[nodiscard]] int compare_canonical(NameView a, NameView b) noexcept;
/// The same for sets and maps.
struct CanonicalLess {
  using is_transparent = void;
  bool operator()(NameView a, NameView b) const noexcept { return compare_canonical(a, b) < 0; }
};

/// Case-insensitive hash, not for untrusted unbounded tables: see hash_octets().
[[nodiscard]] std::uint64_t hash_name(NameView name) noexcept;

/// Presentation format with a final dot (RFC 1035 §5.1): escapes ". \\ \" ; ( ) @ $" and octets
/// outside 0x21..0x7E as \DDD.
[[nodiscard]] std::string to_text(NameView name);

/// Reads presentation format into `out` and returns its octets; Name::from_text for callers with
/// memory of their own. Allocates only for an error message.
Result<std::size_t> name_from_text(std::string_view text, NameView origin,
                                   std::uint8_t out[kMaxNameOctets]);

/// An owned name, ≤ 255 octets in place, no heap.
class Name {
 public:
  Name() noexcept : size_(1) { bytes_[0] = 0; }
  explicit Name(NameView view) noexcept : size_(static_cast<std::uint8_t>(view.size())) {
    copy_octets(bytes_.data(), view.data(), view.size());
  }
  Name(const Name& other) noexcept : size_(other.size_) {
    copy_octets(bytes_.data(), other.bytes_.data(), size_);
  }
  /// `view` is of other octets than this name's.
  Name& operator=(NameView view) noexcept {
    size_ = static_cast<std::uint8_t>(view.size());
    copy_octets(bytes_.data(), view.data(), view.size());
    return *this;
  }
  Name& operator=(const Name& other) noexcept {
    size_ = other.size_;
    std::memmove(bytes_.data(), other.bytes_.data(), size_);
    return *this;
  }

  /// Reads presentation format. A name without a final dot is completed with `origin`.
  /// Errors: empty label, label > 63, name > 255 octets, bad escape.
  static Result<Name> from_text(std::string_view text, NameView origin = NameView());
  /// Checks uncompressed wire octets that must be exactly one name.
  static Result<Name> from_wire(ByteView wire);
  /// prefix labels (wire, no root at the end) + suffix; kInvalid when longer than 255.
  static Result<Name> join(ByteView prefix, NameView suffix);

  operator NameView() const noexcept { return view(); }  // NOLINT: a Name is usable as its view
  [[nodiscard]] NameView view() const noexcept { return {bytes_.data(), size_}; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return bytes_.data(); }
  /// This name in lower case (RFC 4034 §6.2).
  [[nodiscard]] Name folded() const noexcept;

 private:
  std::uint8_t size_;
  std::array<std::uint8_t, kMaxNameOctets> bytes_;  // filled up to size_: clearing all would show
};

inline bool operator==(const Name& a, const Name& b) noexcept { return a.view() == b.view(); }
inline bool operator==(const Name& a, NameView b) noexcept { return a.view() == b; }

/// Length of the valid uncompressed name at the start of `wire`, or 0 for an invalid one. Inline,
/// because the query path checks the bounds of every name with it.
[[nodiscard]] inline std::size_t wire_name_length(ByteView wire) noexcept {
  std::size_t at = 0;
  while (at < wire.size() && at < kMaxNameOctets) {
    const std::uint8_t length = wire[at];
    if (length == 0) return at + 1;
    if (length > kMaxLabelOctets) return 0;
    at += length + 1U;
  }
  return 0;
}

/// True when the octets are one valid uncompressed name and nothing else.
[[nodiscard]] inline bool is_wire_name(ByteView wire) noexcept {
  return !wire.empty() && wire_name_length(wire) == wire.size();
}

}  // namespace pando::dns
