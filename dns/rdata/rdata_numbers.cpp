#include <array>
#include <charconv>
#include <chrono>

#include "dns/mnemonics.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"
#include "dns/ttl_text.h"

namespace pando::dns {

namespace {

template <std::size_t Octets>
constexpr std::uint64_t kLargest =
    Octets == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * Octets % 64)) - 1;

template <std::size_t Octets>
void append_number(std::uint64_t value, Bytes& out) {
  std::uint8_t wire[8];
  store_be64(wire, value);
  out.insert(out.end(), wire + 8 - Octets, wire + 8);
}

template <std::size_t Octets>
std::uint64_t take_number(WireReader& wire) noexcept {
  std::uint64_t value = 0;
  for (const std::uint8_t octet : wire.take(Octets)) value = value << 8U | octet;
  return value;
}

template <std::size_t Octets>
Status read_uint(TextReader& text) {
  auto value = read_number(text, kLargest<Octets>);
  if (!value) return pass(value);
  append_number<Octets>(*value, text.out());
  return {};
}

template <std::size_t Octets>
bool print_uint(WireReader& wire, std::string& text) {
  print_number(take_number<Octets>(wire), text);
  return true;
}

Status take_ttl(std::string_view word, Bytes& out) {
  auto ttl = ttl_from_text(word);
  if (!ttl) return pass(ttl);
  append_be32(out, *ttl);
  return {};
}

/// Reads YYYYMMDDHHMMSS as seconds since 1970 modulo 2^32: times are serial numbers (RFC 4034
/// §3.1.5). Therefore 2106 and 1970 share their octets, and BIND prints far times as years before
/// 1970.
std::optional<std::uint32_t> parse_calendar_time(std::string_view text) noexcept {
  using namespace std::chrono;
  if (text.size() != 14) return std::nullopt;
  const auto whole = parse_decimal(text, 99'999'999'999'999);
  if (!whole) return std::nullopt;
  const auto number = static_cast<std::uint32_t>(*whole / 1'000'000);  // YYYYMMDD
  const auto clock = static_cast<std::uint32_t>(*whole % 1'000'000);   // HHMMSS
  const year_month_day date{year(static_cast<int>(number / 10'000)), month(number / 100 % 100),
                            day(number % 100)};
  const std::uint32_t hours = clock / 10'000, minutes = clock / 100 % 100, seconds = clock % 100;
  // A leap second (60) counts as the next second, as in BIND.
  if (!date.ok() || hours > 23 || minutes > 59 || seconds > 60) return std::nullopt;
  const std::int64_t days = sys_days(date).time_since_epoch().count();
  return static_cast<std::uint32_t>(days * 86'400 + hours * 3600 + minutes * 60 + seconds);
}

Status take_time(std::string_view word, Bytes& out) {
  // RFC 4034 §3.2: the length distinguishes both forms, since a number has at most ten digits.
  if (const auto time = parse_calendar_time(word)) {
    append_be32(out, *time);
    return {};
  }
  const auto seconds = word.size() <= 10 ? parse_decimal(word, 0xFFFFFFFFU) : std::nullopt;
  if (!seconds) return fail(Errc::kInvalid, "{} is no time", quote_for_message(word));
  append_be32(out, static_cast<std::uint32_t>(*seconds));
  return {};
}

/// Each signature has two times: a format string took more time than all else of its text.
void append_digits(std::string& text, std::size_t digits, std::uint32_t value) {
  text.append(digits, '0');
  for (std::size_t i = text.size(); value != 0; value /= 10)
    text[--i] = static_cast<char>('0' + value % 10);
}

bool print_time(WireReader& wire, std::string& text) {
  using namespace std::chrono;
  const std::uint32_t value = wire.take_u32();
  const year_month_day date{sys_days(days(value / 86400))};
  const std::uint32_t second = value % 86400;
  append_digits(text, 4, static_cast<std::uint32_t>(static_cast<int>(date.year())));  // to 2106
  append_digits(text, 2, static_cast<unsigned>(date.month()));
  append_digits(text, 2, static_cast<unsigned>(date.day()));
  append_digits(text, 2, second / 3600);
  append_digits(text, 2, second / 60 % 60);
  append_digits(text, 2, second % 60);
  return true;
}

Status read_zero16(TextReader& text) {
  auto value = read_number(text, 65535);
  if (!value) return pass(value);
  if (*value != 0) return fail(Errc::kInvalid, "must be 0");
  append_be16(text.out(), 0);
  return {};
}

Status check_zero16(WireReader& wire) {
  if (wire.left() >= 2 && load_be16(wire.rest().data()) != 0)
    return fail(Errc::kInvalid, "must be 0");
  return wire.skip(2);
}

Status take_type(std::string_view word, Bytes& out) {
  auto type = rrtype_from_text(word);
  if (!type) {
    const auto number = parse_decimal(word, 65535);  // BIND takes a bare number too
    if (!number) return pass(type);
    type = static_cast<RRType>(*number);
  }
  append_be16(out, static_cast<std::uint16_t>(*type));
  return {};
}

bool print_type(WireReader& wire, std::string& text) {
  text += to_text(static_cast<RRType>(wire.take_u16()));
  return true;
}

bool starts_with_digit(std::string_view text) noexcept {
  return !text.empty() && text[0] >= '0' && text[0] <= '9';
}

template <const auto& table, std::size_t Octets>
Status read_mnemonic(TextReader& text) {
  const Token* token = text.peek();
  if (token == nullptr || token->quoted || starts_with_digit(token->text))
    return read_uint<Octets>(text);
  const auto value = find_mnemonic(table, token->text);
  if (!value) return read_uint<Octets>(text);
  text.step();
  append_number<Octets>(*value, text.out());
  return {};
}

template <const auto& table, std::size_t Octets>
bool print_mnemonic(WireReader& wire, std::string& text) {
  const auto value = static_cast<std::uint16_t>(take_number<Octets>(wire));
  const std::string_view word = mnemonic_of(table, value);
  if (word.empty())
    print_number(value, text);
  else
    text += word;
  return true;
}

/// A number or mnemonics joined by '|'.
std::optional<std::uint16_t> parse_key_flags(std::string_view text) noexcept {
  if (const auto number = parse_decimal(text, 65535)) return static_cast<std::uint16_t>(*number);
  std::uint16_t flags = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('|', at), text.size());
    const auto flag = find_mnemonic(kKeyFlagNames, text.substr(at, end - at));
    if (!flag) return std::nullopt;
    flags |= *flag;
    at = end + 1;
  }
  return flags;
}

Status take_key_flags(std::string_view word, Bytes& out) {
  const auto flags = parse_key_flags(word);
  if (!flags) return fail(Errc::kInvalid, "{} is no key flag", quote_for_message(word));
  append_be16(out, *flags);
  return {};
}

}  // namespace

Result<std::uint64_t> read_number(TextReader& text, std::uint64_t max) {
  auto word = text.word();
  if (!word) return pass(word);
  const auto value = parse_decimal(*word, max);
  if (!value)
    return fail(Errc::kInvalid, "{} is not a number from 0 to {}", quote_for_message(*word), max);
  return *value;
}

void print_number(std::uint64_t value, std::string& text) {
  char digits[20];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  text.append(digits, end);
}

namespace field {

const FieldCodec kU8{read_uint<1>, check_octets<1>, print_uint<1>};
const FieldCodec kU16{read_uint<2>, check_octets<2>, print_uint<2>};
const FieldCodec kU32{read_uint<4>, check_octets<4>, print_uint<4>};
const FieldCodec kU64{read_uint<8>, check_octets<8>, print_uint<8>};
const FieldCodec kTtl{read_word<take_ttl>, check_octets<4>, print_uint<4>};
const FieldCodec kTime{read_word<take_time>, check_octets<4>, print_time};
const FieldCodec kZero16{read_zero16, check_zero16, print_uint<2>};
const FieldCodec kType{read_word<take_type>, check_octets<2>, print_type};
const FieldCodec kAlgorithm{read_mnemonic<kDnssecAlgorithms, 1>, check_octets<1>, print_uint<1>};
const FieldCodec kAlgorithmName{read_mnemonic<kDnssecAlgorithms, 1>, check_octets<1>,
                                print_mnemonic<kDnssecAlgorithms, 1>};
const FieldCodec kDigestType{read_mnemonic<kDigestTypes, 1>, check_octets<1>, print_uint<1>};
const FieldCodec kCertType{read_mnemonic<kCertificateTypes, 2>, check_octets<2>,
                           print_mnemonic<kCertificateTypes, 2>};
const FieldCodec kKeyFlags{read_word<take_key_flags>, check_octets<2>, print_uint<2>};
const FieldCodec kKeyProtocol{read_mnemonic<kKeyProtocols, 1>, check_octets<1>, print_uint<1>};
const FieldCodec kNsec3Hash{read_mnemonic<kNsec3Hashes, 1>, check_octets<1>, print_uint<1>};
const FieldCodec kDsyncScheme{read_mnemonic<kDsyncSchemes, 1>, check_octets<1>,
                              print_mnemonic<kDsyncSchemes, 1>};

}  // namespace field
}  // namespace pando::dns
