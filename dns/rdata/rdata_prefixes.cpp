#include <algorithm>
#include <array>

#include "dns/ip_text.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

/// Parts of addresses: A6 and APL.
namespace pando::dns {

namespace {

/// Mask of the suffix bits in the octet where the prefix ends. RFC 2874 §3.1.1 leaves the prefix to
/// the prefix name; the address begins in its last octet unless the length is a multiple of 8.
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
  const std::size_t at = wire.at;
  if (auto status = wire.skip(16U - prefix / 8U); !status) return status;
  if (wire.is_stored || prefix == 128 || (wire.data[at] & ~suffix_mask(prefix)) == 0) return {};
  return fail(Errc::kInvalid, "bits of the prefix are not zero");
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
  const bool is_known = family == kFamilyIpv4 || family == kFamilyIpv6;
  // RFC 3123 §4: "trailing zero octets do not bear any information" and are left out.
  if (octets != 0 && wire.data[wire.at - 1] == 0 && (is_known || !wire.is_stored))
    return fail(Errc::kInvalid, "zero octet ends an address");
  if (!is_known) return {};
  const std::size_t most = family == kFamilyIpv4 ? 4 : 16;
  if (octets > most || prefix > most * 8) return fail(Errc::kInvalid, "prefix too long");
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

namespace field {

const FieldCodec kA6Suffix{read_a6_suffix, check_a6_suffix, print_a6_suffix};
const FieldCodec kApl{read_apl, check_apl, print_apl};

}  // namespace field
}  // namespace pando::dns
