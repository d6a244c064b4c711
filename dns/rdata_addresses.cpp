#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "dns/encoding.h"
#include "dns/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

/// Up to four hex digits from `at` on, which is moved behind them; -1 when there is none.
int take_group(std::string_view text, std::size_t& at) noexcept {
  const std::size_t start = at;
  int value = 0;
  for (; at < text.size() && at < start + 4; ++at) {
    const int digit = hex_value(text[at]);
    if (digit < 0) break;
    value = value << 4 | digit;
  }
  return at == start ? -1 : value;
}

template <std::size_t Octets>
Status check_octets(WireReader& wire) {
  return wire.skip(Octets);
}

Status read_ipv4(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  std::uint8_t octets[4];
  if (!parse_ipv4(*word, octets))
    return fail(Errc::kInvalid, "{} is no IPv4 address", quote_for_message(*word));
  append(text.out(), octets);
  return {};
}

bool print_ipv4_field(WireReader& wire, std::string& text) {
  print_ipv4(wire.take(4).data(), text);
  return true;
}

Status read_ipv6(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  std::uint8_t octets[16];
  if (!parse_ipv6(*word, octets))
    return fail(Errc::kInvalid, "{} is no IPv6 address", quote_for_message(*word));
  append(text.out(), octets);
  return {};
}

bool print_ipv6_field(WireReader& wire, std::string& text) {
  print_ipv6(wire.take(16).data(), text);
  return true;
}

/// RFC 7043 §3.2, §4.2: pairs of hex digits joined by '-'.
template <std::size_t Octets>
Status read_eui(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  bool right = word->size() == Octets * 3 - 1;
  for (std::size_t i = 0; right && i < Octets; ++i) {
    const int high = hex_value((*word)[3 * i]);
    const int low = hex_value((*word)[3 * i + 1]);
    right = high >= 0 && low >= 0 && (i + 1 == Octets || (*word)[3 * i + 2] == '-');
    text.out().push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  if (!right) return fail(Errc::kInvalid, "{} is no EUI address", quote_for_message(*word));
  return {};
}

template <std::size_t Octets>
bool print_eui(WireReader& wire, std::string& text) {
  const ByteView octets = wire.take(Octets);
  for (std::size_t i = 0; i < Octets; ++i)
    fmt::format_to(std::back_inserter(text), "{}{:02x}", i == 0 ? "" : "-", octets[i]);
  return true;
}

/// RFC 6742 §2.1.2: four groups of up to four hex digits, as in half an IPv6 address.
Status read_locator64(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  std::size_t at = 0;
  for (int group = 0; group < 4; ++group) {
    const int value = take_group(*word, at);
    const bool ends = group == 3 ? at == word->size() : at < word->size() && (*word)[at++] == ':';
    if (value < 0 || !ends)
      return fail(Errc::kInvalid, "{} is no 64-bit locator", quote_for_message(*word));
    append_be16(text.out(), static_cast<std::uint16_t>(value));
  }
  return {};
}

bool print_locator64(WireReader& wire, std::string& text) {
  const std::uint8_t* p = wire.take(8).data();
  fmt::format_to(std::back_inserter(text), "{:x}:{:x}:{:x}:{:x}", load_be16(p), load_be16(p + 2),
                 load_be16(p + 4), load_be16(p + 6));
  return true;
}

void print_lower_hex(ByteView octets, std::string& text) {
  for (const std::uint8_t octet : octets) fmt::format_to(std::back_inserter(text), "{:02x}", octet);
}

/// RFC 1706 §7: 0x, then hex with dots anywhere.
Status read_nsap(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  if (word->size() < 2 || (*word)[0] != '0' || ascii_upper((*word)[1]) != 'X')
    return fail(Errc::kInvalid, "does not start with 0x");
  const std::size_t start = text.out().size();
  HexDecoder decoder;
  for (const char& c : word->substr(2))
    if (c != '.' && !decoder.feed({&c, 1}, text.out())) return fail(Errc::kInvalid, "bad hex");
  if (!decoder.finish() || text.out().size() == start) return fail(Errc::kInvalid, "hex cut short");
  return {};
}

bool print_nsap(WireReader& wire, std::string& text) {
  text += "0x";
  print_lower_hex(wire.take_rest(), text);
  return true;
}

Status check_some(WireReader& wire) { return wire.skip_rest(1); }

// ATM Forum af-saa-0069: format 0 is an AESA address in hex, format 1 an E.164 number.

/// Appends the characters behind the '+' or of the hex form; single dots may part them.
template <class Append>
bool read_dotted(std::string_view word, Append&& append_one) {
  bool dot_allowed = false;
  for (const char c : word) {
    if (c == '.' ? !dot_allowed : !append_one(c)) return false;
    dot_allowed = c != '.';
  }
  return dot_allowed;  // neither empty nor ending in a dot
}

Status read_atma(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  Bytes& out = text.out();
  const bool number = word->starts_with('+');
  out.push_back(number ? 1 : 0);
  HexDecoder decoder;
  const auto append_one = [&](char c) {
    if (!number) return decoder.feed({&c, 1}, out);
    out.push_back(static_cast<std::uint8_t>(c));
    return c >= '0' && c <= '9';
  };
  if (!read_dotted(word->substr(number ? 1 : 0), append_one) || !decoder.finish())
    return fail(Errc::kInvalid, "{} is no ATM address", quote_for_message(*word));
  return {};
}

Status check_atma(WireReader& wire) {
  if (wire.left() < 2) return fail(Errc::kTruncated, "cut short");
  const std::uint8_t format = wire.take_u8();
  if (format > 1) return fail(Errc::kInvalid, "format {} is unknown", format);
  for (const std::uint8_t octet : wire.take_rest())
    if (format == 1 && (octet < '0' || octet > '9')) return fail(Errc::kInvalid, "not all digits");
  return {};
}

bool print_atma(WireReader& wire, std::string& text) {
  const bool number = wire.take_u8() == 1;
  const ByteView address = wire.take_rest();
  if (!number) {
    print_lower_hex(address, text);
    return true;
  }
  text += '+';
  text.append(address.begin(), address.end());
  return true;
}

/// Octets of a prefix that RFC 2874 §3.1.1 leaves to the prefix name; the address begins in the
/// last of them when the length is no multiple of 8.
std::uint8_t suffix_mask(std::size_t prefix) noexcept {
  return static_cast<std::uint8_t>(0xFFU >> (prefix % 8));
}

Status read_a6_suffix(TextReader& text) {
  auto prefix = read_number(text, 128);
  if (!prefix) return pass(prefix);
  text.out().push_back(static_cast<std::uint8_t>(*prefix));
  if (*prefix == 128) return {};
  auto word = text.word();
  if (!word) return pass(word);
  std::uint8_t octets[16];
  if (!parse_ipv6(*word, octets))
    return fail(Errc::kInvalid, "{} is no IPv6 address", quote_for_message(*word));
  octets[*prefix / 8] &= suffix_mask(*prefix);
  append(text.out(), ByteView(octets).subspan(*prefix / 8));
  return {};
}

Status check_a6_suffix(WireReader& wire) {
  if (wire.left() == 0) return fail(Errc::kTruncated, "missing");
  const std::uint8_t prefix = wire.take_u8();
  if (prefix > 128) return fail(Errc::kInvalid, "prefix length {} is above 128", prefix);
  return wire.skip(16U - prefix / 8U);
}

bool print_a6_suffix(WireReader& wire, std::string& text) {
  const std::size_t prefix = wire.take_u8();
  print_number(prefix, text);
  if (prefix == 128) return true;
  std::array<std::uint8_t, 16> address{};
  const ByteView suffix = wire.take(16 - prefix / 8);
  std::copy(suffix.begin(), suffix.end(),
            address.end() - static_cast<std::ptrdiff_t>(suffix.size()));
  text += ' ';
  print_ipv6(address.data(), text);
  return (suffix[0] & ~suffix_mask(prefix)) == 0;  // text cannot show bits of the prefix
}

// RFC 3123 §4: address family, prefix length, negation and length octet, address without the zero
// octets at its end.

constexpr std::uint16_t kFamilyIpv4 = 1, kFamilyIpv6 = 2;
constexpr std::uint8_t kNegated = 0x80;

Status bad_apl_item(std::string_view word) {
  return fail(Errc::kInvalid, "{} is no [!]FAMILY:ADDRESS/PREFIX", quote_for_message(word));
}

Status append_apl_item(std::string_view word, Bytes& out) {
  std::string_view item = word;
  const bool negated = item.starts_with('!');
  if (negated) item.remove_prefix(1);
  const bool v6 = item.starts_with("2:");
  const std::size_t slash = item.rfind('/');
  if ((!v6 && !item.starts_with("1:")) || slash == std::string_view::npos)
    return bad_apl_item(word);
  const std::string_view address = item.substr(2, slash - 2);
  std::array<std::uint8_t, 16> octets{};
  const bool valid = v6 ? parse_ipv6(address, octets.data()) : parse_ipv4(address, octets.data());
  const auto prefix = parse_decimal(item.substr(slash + 1), v6 ? 128 : 32);
  if (!valid || !prefix) return bad_apl_item(word);
  std::size_t used = octets.size();
  while (used > 0 && octets[used - 1] == 0) --used;
  append_be16(out, v6 ? kFamilyIpv6 : kFamilyIpv4);
  out.push_back(static_cast<std::uint8_t>(*prefix));
  out.push_back(static_cast<std::uint8_t>((negated ? kNegated : 0) | used));
  append(out, ByteView(octets).first(used));
  return {};
}

Status read_apl(TextReader& text) {
  while (!text.at_end()) {
    auto word = text.word();
    if (!word) return pass(word);
    if (auto status = append_apl_item(*word, text.out()); !status) return status;
  }
  return {};
}

Status check_apl_item(WireReader& wire) {
  if (wire.left() < 4) return fail(Errc::kTruncated, "cut short");
  const std::uint16_t family = wire.take_u16();
  const std::uint8_t prefix = wire.take_u8();
  const std::size_t octets = wire.take_u8() & ~kNegated;
  if (auto status = wire.skip(octets); !status) return status;
  if (family != kFamilyIpv4 && family != kFamilyIpv6) return {};
  const std::size_t most = family == kFamilyIpv4 ? 4 : 16;
  if (octets > most || prefix > most * 8) return fail(Errc::kInvalid, "prefix too long");
  if (octets != 0 && wire.data[wire.at - 1] == 0)
    return fail(Errc::kInvalid, "zero octet ends an address");
  return {};
}

Status check_apl(WireReader& wire) {
  while (wire.left() != 0)
    if (auto status = check_apl_item(wire); !status) return status;
  return {};
}

/// False for families without a text form.
bool print_apl_item(WireReader& wire, std::string& text) {
  const std::uint16_t family = wire.take_u16();
  if (family != kFamilyIpv4 && family != kFamilyIpv6) return false;
  const std::uint8_t prefix = wire.take_u8();
  const std::uint8_t length = wire.take_u8();
  const ByteView used = wire.take(length & ~kNegated);
  std::array<std::uint8_t, 16> octets{};
  std::copy(used.begin(), used.end(), octets.begin());
  text += (length & kNegated) != 0 ? "!" : "";
  text += family == kFamilyIpv4 ? "1:" : "2:";
  if (family == kFamilyIpv4)
    print_ipv4(octets.data(), text);
  else
    print_ipv6(octets.data(), text);
  text += '/';
  print_number(prefix, text);
  return true;
}

bool print_apl(WireReader& wire, std::string& text) {
  for (bool first = true; wire.left() != 0; first = false) {
    if (!first) text += ' ';
    if (!print_apl_item(wire, text)) return false;
  }
  return true;
}

}  // namespace

bool parse_ipv4(std::string_view text, std::uint8_t out[4]) noexcept {
  std::size_t at = 0;
  for (std::size_t octet = 0; octet < 4; ++octet) {
    unsigned value = 0;
    const std::size_t start = at;
    for (; at < text.size() && at < start + 3 && text[at] >= '0' && text[at] <= '9'; ++at)
      value = value * 10 + static_cast<unsigned>(text[at] - '0');
    // A leading zero could mean octal to somebody else.
    if (at == start || value > 255 || (text[start] == '0' && at != start + 1)) return false;
    out[octet] = static_cast<std::uint8_t>(value);
    if (octet < 3 && (at >= text.size() || text[at++] != '.')) return false;
  }
  return at == text.size();
}

namespace {

/// Moves what stands behind the "::" to the end and fills the gap with zeros (RFC 4291 §2.2).
void open_gap(std::uint8_t* octets, std::size_t gap, std::size_t used) noexcept {
  std::memmove(octets + 16 - (used - gap), octets + gap, used - gap);
  std::memset(octets + gap, 0, 16 - used);
}

}  // namespace

bool parse_ipv6(std::string_view text, std::uint8_t out[16]) noexcept {
  constexpr std::size_t kNoGap = 17;
  const bool leading = text.starts_with("::");
  std::size_t gap = leading ? 0 : kNoGap;
  std::size_t used = 0;
  for (std::size_t at = leading ? 2 : 0; at < text.size() || used == 0;) {
    if (at == text.size()) {
      if (!leading) return false;
      break;  // "::" alone
    }
    const std::size_t start = at;
    const int group = take_group(text, at);
    if (group < 0 || used > 14) return false;
    if (at < text.size() && text[at] == '.') {  // RFC 4291 §2.2 (3): the last 32 bits as IPv4
      if (used > 12 || !parse_ipv4(text.substr(start), out + used)) return false;
      used += 4;
      break;
    }
    store_be16(out + used, static_cast<std::uint16_t>(group));
    used += 2;
    if (at == text.size()) break;
    if (text[at++] != ':' || at == text.size()) return false;
    if (text[at] != ':') continue;
    if (gap != kNoGap) return false;
    gap = used;
    ++at;
  }
  if (gap == kNoGap) return used == 16;
  if (used > 14) return false;  // "::" stands for one group at least
  open_gap(out, gap, used);
  return true;
}

void print_ipv4(const std::uint8_t* octets, std::string& text) {
  for (int i = 0; i < 4; ++i) {
    if (i != 0) text += '.';
    print_number(octets[i], text);
  }
}

void print_ipv6(const std::uint8_t* octets, std::string& text) {
  char buffer[INET6_ADDRSTRLEN];
  text += ::inet_ntop(AF_INET6, octets, buffer, sizeof buffer);
}

namespace field {

const FieldCodec kIpv4{read_ipv4, check_octets<4>, print_ipv4_field};
const FieldCodec kIpv6{read_ipv6, check_octets<16>, print_ipv6_field};
const FieldCodec kEui48{read_eui<6>, check_octets<6>, print_eui<6>};
const FieldCodec kEui64{read_eui<8>, check_octets<8>, print_eui<8>};
const FieldCodec kLocator64{read_locator64, check_octets<8>, print_locator64};
const FieldCodec kNsap{read_nsap, check_some, print_nsap};
const FieldCodec kAtma{read_atma, check_atma, print_atma};
const FieldCodec kA6Suffix{read_a6_suffix, check_a6_suffix, print_a6_suffix};
const FieldCodec kApl{read_apl, check_apl, print_apl};

}  // namespace field
}  // namespace pando::dns
