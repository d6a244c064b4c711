#include <array>

#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

/// LOC, RFC 1876. On the wire: version, size, two precisions, latitude, longitude, altitude.
namespace pando::dns {

namespace {

constexpr std::size_t kLocOctets = 16;
constexpr std::uint32_t kEquator = 0x80000000U;    // also the prime meridian, in 1/1000 seconds
constexpr std::uint32_t kMsPerDegree = 3'600'000;  // 1/1000 seconds of arc
constexpr std::uint32_t kSeaLevel = 10'000'000;    // centimetres above the lowest altitude
constexpr std::array<std::uint64_t, 10> kPowers = {
    1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000, 1'000'000'000};

/// Reads a decimal number with up to `places` decimal places, in units of the last place; nullopt
/// on bad text.
std::optional<std::uint64_t> parse_fixed(std::string_view text, std::size_t places,
                                         std::uint64_t max_whole) noexcept {
  const std::size_t dot = std::min(text.find('.'), text.size());
  const auto whole = parse_decimal(text.substr(0, dot), max_whole);
  if (!whole) return std::nullopt;
  if (dot == text.size()) return *whole * kPowers[places];
  const std::string_view decimals = text.substr(dot + 1);
  const auto part = parse_decimal(decimals, kPowers[places] - 1);
  if (!part || decimals.size() > places) return std::nullopt;
  return *whole * kPowers[places] + *part * kPowers[places - decimals.size()];
}

/// The letters of a coordinate's two directions and its most degrees.
struct Axis {
  char positive, negative;
  std::uint32_t max_degrees;
};
constexpr Axis kLatitude{'N', 'S', 90}, kLongitude{'E', 'W', 180};

bool is_direction(std::string_view word, const Axis& axis) noexcept {
  return word.size() == 1 &&
         (ascii_upper(word[0]) == axis.positive || ascii_upper(word[0]) == axis.negative);
}

/// DEGREES [MINUTES [SECONDS[.FRACTION]]] DIRECTION (RFC 1876 §3).
Status read_coordinate(TextReader& text, const Axis& axis) {
  std::uint64_t angle = 0;  // in 1/1000 seconds
  auto word = text.word();
  for (int part = 0; word && part < 3 && !(part != 0 && is_direction(*word, axis)); ++part) {
    const auto value = part == 2 ? parse_fixed(*word, 3, 59)
                                 : parse_decimal(*word, part == 0 ? axis.max_degrees : 59);
    if (!value) return fail(Errc::kInvalid, "bad coordinate {}", quote_for_message(*word));
    angle += *value * (part == 0 ? kMsPerDegree : part == 1 ? 60'000U : 1U);
    word = text.word();
  }
  if (!word) return pass(word);
  if (!is_direction(*word, axis))
    return fail(Errc::kInvalid, "{} is neither {} nor {}", quote_for_message(*word), axis.positive,
                axis.negative);
  if (angle > std::uint64_t{axis.max_degrees} * kMsPerDegree)
    return fail(Errc::kInvalid, "above {} degrees", axis.max_degrees);
  const auto offset = static_cast<std::uint32_t>(angle);
  const bool positive = ascii_upper((*word)[0]) == axis.positive;
  append_be32(text.out(), positive ? kEquator + offset : kEquator - offset);
  return {};
}

std::string_view without_unit(std::string_view word) noexcept {
  if (!word.empty() && ascii_upper(word.back()) == 'M') word.remove_suffix(1);
  return word;
}

Status read_altitude(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  std::string_view number = without_unit(*word);
  const bool below = number.starts_with('-');
  if (below || number.starts_with('+')) number.remove_prefix(1);
  const auto centimetres = parse_fixed(number, 2, 42'849'672);
  if (!centimetres || *centimetres > (below ? kSeaLevel : 0xFFFFFFFFU - kSeaLevel))
    return fail(Errc::kInvalid, "bad altitude {}", quote_for_message(*word));
  const auto offset = static_cast<std::uint32_t>(*centimetres);
  append_be32(text.out(), below ? kSeaLevel - offset : kSeaLevel + offset);
  return {};
}

/// RFC 1876 §2: a length as mantissa (high four bits) and power of ten, in centimetres.
std::optional<std::uint8_t> parse_precision(std::string_view word) noexcept {
  auto centimetres = parse_fixed(without_unit(word), 2, 90'000'000);
  if (!centimetres || *centimetres > 9'000'000'000) return std::nullopt;
  std::uint8_t exponent = 0;
  for (; *centimetres > 9; *centimetres /= 10) ++exponent;
  return static_cast<std::uint8_t>(*centimetres << 4U | exponent);
}

/// Reads SIZE, horizontal and vertical precision; trailing ones may be absent.
Status read_precisions(TextReader& text, std::uint8_t* out) {
  for (int i = 0; i < 3 && !text.at_end(); ++i) {
    auto word = text.word();
    if (!word) return pass(word);
    const auto value = parse_precision(*word);
    if (!value) return fail(Errc::kInvalid, "bad length {}", quote_for_message(*word));
    out[i] = *value;
  }
  return {};
}

Status read_loc(TextReader& text) {
  constexpr std::uint8_t kHead[] = {0, 0x12, 0x16, 0x13};  // RFC 1876 §3: 1 m, 10 km, 10 m
  const std::size_t start = text.out().size();
  append(text.out(), kHead);
  if (auto status = read_coordinate(text, kLatitude); !status) return status;
  if (auto status = read_coordinate(text, kLongitude); !status) return status;
  if (auto status = read_altitude(text); !status) return status;
  return read_precisions(text, text.out().data() + start + 1);
}

bool is_precision(std::uint8_t octet) noexcept {
  return octet == 0 || (octet >> 4U >= 1 && octet >> 4U <= 9 && (octet & 15U) <= 9);
}

bool is_angle(std::uint32_t value, const Axis& axis) noexcept {
  const std::uint32_t offset = value >= kEquator ? value - kEquator : kEquator - value;
  return offset <= axis.max_degrees * kMsPerDegree;
}

Status check_loc(WireReader& wire) {
  if (wire.left() == 0) return fail(Errc::kTruncated, "missing");
  if (wire.rest()[0] != 0) return wire.skip_rest();  // RFC 1876 §2: only version 0 is defined
  const ByteView loc = wire.rest();
  if (auto status = wire.skip(kLocOctets); !status) return status;
  if (!is_precision(loc[1]) || !is_precision(loc[2]) || !is_precision(loc[3]))
    return fail(Errc::kInvalid, "bad size or precision");
  if (!is_angle(load_be32(loc.data() + 4), kLatitude) ||
      !is_angle(load_be32(loc.data() + 8), kLongitude))
    return fail(Errc::kInvalid, "coordinate out of range");
  return {};
}

void print_coordinate(std::uint32_t value, const Axis& axis, std::string& text) {
  const bool positive = value >= kEquator;
  const std::uint32_t angle = positive ? value - kEquator : kEquator - value;
  fmt::format_to(std::back_inserter(text), "{} {} {}.{:03} {} ", angle / kMsPerDegree,
                 angle / 60'000 % 60, angle / 1000 % 60, angle % 1000,
                 positive ? axis.positive : axis.negative);
}

void print_altitude(std::uint32_t value, std::string& text) {
  const bool below = value < kSeaLevel;
  const std::uint32_t distance = below ? kSeaLevel - value : value - kSeaLevel;
  fmt::format_to(std::back_inserter(text), "{}{}.{:02}m", below ? "-" : "", distance / 100,
                 distance % 100);
}

void print_precision(std::uint8_t octet, std::string& text) {
  const std::uint64_t centimetres = (octet >> 4U) * kPowers[octet & 15U];
  if ((octet & 15U) > 1)
    fmt::format_to(std::back_inserter(text), " {}m", centimetres / 100);
  else
    fmt::format_to(std::back_inserter(text), " 0.{:02}m", centimetres);
}

bool print_loc(WireReader& wire, std::string& text) {
  if (wire.octet(0) != 0) return false;
  const ByteView loc = wire.take(kLocOctets);
  print_coordinate(load_be32(loc.data() + 4), kLatitude, text);
  print_coordinate(load_be32(loc.data() + 8), kLongitude, text);
  print_altitude(load_be32(loc.data() + 12), text);
  for (int i = 1; i <= 3; ++i) print_precision(loc[static_cast<std::size_t>(i)], text);
  return true;
}

}  // namespace

namespace field {
const FieldCodec kLoc{read_loc, check_loc, print_loc};
}  // namespace field

}  // namespace pando::dns
