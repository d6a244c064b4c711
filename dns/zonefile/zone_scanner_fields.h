#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// A name in a buffer that may be read, and written, in whole blocks beyond the name's end.
class PaddedName {
 public:
  PaddedName() noexcept = default;
  explicit PaddedName(NameView name) noexcept { assign(name); }

  void assign(NameView name) noexcept {
    std::memcpy(octets_, name.data(), name.size());
    size_ = name.size();
  }
  [[nodiscard]] NameView view() const noexcept { return {octets_, size_}; }
  [[nodiscard]] const std::uint8_t* data() const noexcept { return octets_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] std::uint8_t* buffer() noexcept { return octets_; }
  void set_size(std::size_t size) noexcept { size_ = size; }

  static constexpr std::size_t kBufferOctets = kMaxNameOctets + 1 + 32;

 private:
  std::size_t size_ = 1;
  alignas(16) std::uint8_t octets_[kBufferOctets] = {};
};

/// The readers below read the plain forms that fill zone files. For any other text, right or wrong,
/// their result is 0 or false, and the general functions decide. Texts must be readable for
/// kLexerPadding octets after their end, like tokens of a RecordLexer.

/// Writes the wire form of a name without escapes to `out` (PaddedName::kBufferOctets); returns the
/// size of the wire form.
std::size_t read_plain_name(std::string_view text, const PaddedName& origin,
                            std::uint8_t* out) noexcept;

/// Reads a number of up to nine digits.
inline bool read_plain_number(std::string_view text, std::uint32_t& number) noexcept {
  if (text.empty() || text.size() > 9) return false;
  number = 0;
  for (const char c : text) {
    const auto digit = static_cast<std::uint32_t>(c - '0');
    if (digit > 9) return false;
    number = number * 10 + digit;
  }
  return true;
}

/// Reads mnemonics of the commonest types.
bool read_common_type(std::string_view text, RRType& type) noexcept;

/// `IN` in any case.
inline bool is_class_in(std::string_view text) noexcept {
  return text.size() == 2 && (text[0] | 0x20) == 'i' && (text[1] | 0x20) == 'n';
}

}  // namespace pando::dns
