#include "dns/ttl_text.h"

namespace pando::dns {

namespace {

constexpr std::uint64_t kMaxSeconds = 0xFFFFFFFFU;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Seconds in one unit; 0 for an unknown unit.
std::uint32_t unit_seconds(char unit) noexcept {
  switch (unit | 0x20) {
    case 's':
      return 1;
    case 'm':
      return 60;
    case 'h':
      return 3600;
    case 'd':
      return 86400;
    case 'w':
      return 604800;
    default:
      return 0;
  }
}

/// Reads and removes the number at the front of `text`; a number above 2^32 - 1 stays above,
/// without overflow.
std::uint64_t take_number(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  for (; !text.empty() && is_digit(text.front()); text.remove_prefix(1))
    if (value <= kMaxSeconds) value = value * 10 + static_cast<std::uint64_t>(text.front() - '0');
  return value;
}

}  // namespace

Result<std::uint32_t> ttl_from_text(std::string_view text) {
  std::uint64_t total = 0;
  std::string_view rest = text;
  do {
    if (rest.empty() || !is_digit(rest.front())) return fail(Errc::kInvalid, "bad time '{}'", text);
    const bool first = rest.size() == text.size();
    const std::uint64_t number = take_number(rest);
    const std::uint64_t unit = rest.empty() && first ? 1
                               : rest.empty()        ? 0
                                                     : unit_seconds(rest.front());
    if (unit == 0) return fail(Errc::kInvalid, "bad time '{}'", text);
    if (!rest.empty()) rest.remove_prefix(1);
    total += number * unit;
    if (total > kMaxSeconds) return fail(Errc::kInvalid, "time '{}' is above 2^32 - 1", text);
  } while (!rest.empty());
  return static_cast<std::uint32_t>(total);
}

}  // namespace pando::dns
