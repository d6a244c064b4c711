#include "dns/rdata/path_template.h"

#include <array>
#include <cstdint>

namespace pando::dns {

namespace {

bool is_one_of(char c, std::string_view list) noexcept {
  return list.find(c) != std::string_view::npos;
}

constexpr std::string_view kDecimalDigits = "0123456789";
constexpr std::string_view kHexDigits = "0123456789ABCDEFabcdef";
constexpr std::string_view kNameCharacters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_";
constexpr std::string_view kOperators = "+#./;?&";  // RFC 6570 §2.2; the reserved ones are errors

/// One pass over a template.
class Template {
 public:
  explicit Template(std::string_view text) noexcept : text_(text) {}

  [[nodiscard]] bool has_dns() noexcept {
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if ((c == '{' && !take_expression()) || (c == '%' && !take_octet())) return false;
    }
    return has_dns_;
  }

 private:
  bool take(char c) noexcept {
    const bool is_next = at_ < text_.size() && text_[at_] == c;
    if (is_next) ++at_;
    return is_next;
  }

  /// Behind "%".
  bool take_octet() noexcept {
    for (int i = 0; i < 2; ++i, ++at_)
      if (at_ >= text_.size() || !is_one_of(text_[at_], kHexDigits)) return false;
    return true;
  }

  /// Behind "{", up to "}".
  bool take_expression() noexcept {
    if (at_ < text_.size() && is_one_of(text_[at_], kOperators)) ++at_;
    do {
      if (!take_name() || !take_modifier()) return false;
    } while (take(','));
    return take('}');
  }

  bool take_name() noexcept {
    const std::size_t start = at_;
    while (at_ < text_.size()) {
      if (take('%')) {
        if (!take_octet()) return false;
      } else if (is_one_of(text_[at_], kNameCharacters)) {
        ++at_;
      } else {
        break;
      }
    }
    if (text_.substr(start, at_ - start) == "dns") has_dns_ = true;
    return at_ > start;
  }

  /// RFC 6570 §2.4: "*", or ":" and a number from 1 to 9999.
  bool take_modifier() noexcept {
    if (take('*') || !take(':')) return true;
    const std::size_t start = at_;
    while (at_ < text_.size() && is_one_of(text_[at_], kDecimalDigits)) ++at_;
    const std::size_t digits = at_ - start;
    return digits >= 1 && digits <= 4 && text_[start] != '0';
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool has_dns_ = false;
};

/// RFC 3629 §3, §4: no other form of a character than the shortest, and no surrogates.
bool is_utf8(std::string_view text) noexcept {
  static constexpr std::array<std::uint32_t, 5> kFirstOfLength{0, 0, 0x80, 0x800, 0x1'0000};
  while (!text.empty()) {
    const auto first = static_cast<std::uint8_t>(text.front());
    const std::size_t length = first < 0x80 ? 1 : first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    if (first >= 0x80 && (first < 0xC0 || first >= 0xF8 || text.size() < length)) return false;
    std::uint32_t code = length == 1 ? first : first & (0x7FU >> length);
    for (const char next : text.substr(1, length - 1)) {
      if ((static_cast<std::uint8_t>(next) & 0xC0U) != 0x80) return false;
      code = code << 6 | (static_cast<std::uint8_t>(next) & 0x3FU);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (code < kFirstOfLength[length] || code >= 0x11'0000 || is_surrogate) return false;
    text.remove_prefix(length);
  }
  return true;
}

}  // namespace

bool is_doh_path(std::string_view text) noexcept {
  return text.starts_with('/') && is_utf8(text) && Template(text).has_dns();
}

}  // namespace pando::dns
