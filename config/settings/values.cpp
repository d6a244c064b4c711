#include "config/settings/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "base/whole_number.h"
#include "dns/encoding_tables.h"

namespace pando::config {

namespace {

struct Unit {
  std::string_view word;
  std::uint64_t factor;
};

constexpr std::array<Unit, 10> kSizeUnits{{
    {"", 1},
    {"B", 1},
    {"kB", 1000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"TB", 1'000'000'000'000},
    {"KiB", 1ULL << 10},
    {"MiB", 1ULL << 20},
    {"GiB", 1ULL << 30},
    {"TiB", 1ULL << 40},
}};

// In milliseconds.
constexpr std::uint64_t kSecond = 1000;
constexpr std::uint64_t kMinute = 60 * kSecond;
constexpr std::uint64_t kHour = 60 * kMinute;
constexpr std::uint64_t kDay = 24 * kHour;
constexpr std::uint64_t kWeek = 7 * kDay;
constexpr std::array<Unit, 17> kDurationUnits{{
    {"", kSecond},
    {"ms", 1},
    {"s", kSecond},
    {"second", kSecond},
    {"seconds", kSecond},
    {"min", kMinute},
    {"minute", kMinute},
    {"minutes", kMinute},
    {"h", kHour},
    {"hour", kHour},
    {"hours", kHour},
    {"d", kDay},
    {"day", kDay},
    {"days", kDay},
    {"w", kWeek},
    {"week", kWeek},
    {"weeks", kWeek},
}};

/// Longest duration; sums of a few durations cannot overflow.
constexpr std::uint64_t kMaxDuration = 100 * 366 * kDay;

bool is_space(char c) noexcept { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

/// Reads a number, optional spaces and a unit. False when the text has another shape or the product
/// is too large.
template <std::size_t N>
bool parse_quantity(std::string_view text, const std::array<Unit, N>& units, std::uint64_t& out) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  const auto unit = std::find_if(units.begin(), units.end(),
                                 [&](const Unit& candidate) { return candidate.word == text; });
  if (unit == units.end()) return false;
  if (number > std::numeric_limits<std::uint64_t>::max() / unit->factor) return false;
  out = number * unit->factor;
  return true;
}

}  // namespace

Result<bool> parse_bool(std::string_view text) {
  for (const std::string_view word : {"true", "yes", "on"})
    if (text == word) return true;
  for (const std::string_view word : {"false", "no", "off"})
    if (text == word) return false;
  return fail(Errc::kInvalid, "'{}' is neither true nor false", text);
}

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t min, std::uint64_t max) {
  const auto value = whole_number<std::uint64_t>(text);
  if (!value || *value < min || *value > max)
    return fail(Errc::kInvalid, "'{}' is not a whole number from {} to {}", text, min, max);
  return *value;
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::uint64_t bytes = 0;
  if (!parse_quantity(text, kSizeUnits, bytes))
    return fail(Errc::kInvalid, "'{}' is not a size such as 4096, 16MiB or 1GiB", text);
  return bytes;
}

Result<SizeOrShare> parse_size_or_share(std::string_view text) {
  if (text.empty() || text.back() != '%') {
    auto bytes = parse_size(text);
    if (!bytes) return pass(bytes);
    return SizeOrShare{*bytes, 0};
  }
  auto percent = parse_number(text.substr(0, text.size() - 1), 1, 100);
  if (!percent) return fail(Errc::kInvalid, "'{}' is not a share from 1% to 100%", text);
  return SizeOrShare{0, static_cast<std::uint32_t>(*percent)};
}

Result<Duration> parse_duration(std::string_view text) {
  std::uint64_t milliseconds = 0;
  if (!parse_quantity(text, kDurationUnits, milliseconds) || milliseconds > kMaxDuration)
    return fail(Errc::kInvalid, "'{}' is not a duration such as 500ms, 10s, 5min or 4weeks", text);
  return Duration(static_cast<Duration::rep>(milliseconds));
}

Result<Bytes> decode_base64(std::string_view text) {
  Bytes out;
  std::uint32_t bits = 0;
  std::size_t digits = 0;
  std::size_t padding = 0;
  for (const char c : text) {
    if (is_space(c)) continue;
    const std::uint32_t digit = dns::kBase64Values[static_cast<std::uint8_t>(c)];
    if (c == '=') ++padding;
    if (c != '=' && (digit == dns::kNoSymbol || padding != 0))
      return fail(Errc::kInvalid, "not base64");
    bits = (bits << 6) | (c == '=' ? 0U : digit);
    if (++digits % 4 != 0) continue;
    for (const unsigned shift : {16U, 8U, 0U})
      out.push_back(static_cast<std::uint8_t>(bits >> shift));
  }
  if (digits % 4 != 0 || padding > 2) return fail(Errc::kInvalid, "not base64: wrong length");
  out.resize(out.size() - padding);
  return out;
}

Result<dns::Name> parse_name(std::string_view text) {
  for (const char c : text)
    if (static_cast<unsigned char>(c) >= 0x80)
      return fail(Errc::kInvalid, "'{}' is not ASCII: write the xn-- form", text);
  return dns::Name::from_text(text);
}

Result<LogLevel> parse_log_level(std::string_view text) {
  std::string known;
  for (const auto& [word, level] : kLogLevels) {
    if (text == word) return level;
    known += (known.empty() ? "" : ", ") + std::string(word);
  }
  return fail(Errc::kInvalid, "level '{}' is none of {}", text, known);
}

std::string_view to_text(LogLevel level) noexcept {
  for (const auto& [word, meaning] : kLogLevels)
    if (meaning == level) return word;
  return "";
}

Result<Endpoint> parse_endpoint(std::string_view text, std::uint16_t default_port) {
  auto endpoint = Endpoint::from_text(text);
  if (endpoint && text.find('@') == std::string_view::npos) endpoint->port = default_port;
  return endpoint;
}

}  // namespace pando::config
