#include "dns/encoding.h"
#include "dns/ip_text.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

template <std::size_t Octets, bool (*parse)(std::string_view, std::uint8_t*) noexcept>
Status take_address(std::string_view word, Bytes& out) {
  std::uint8_t octets[Octets];
  if (!parse(word, octets))
    return fail(Errc::kInvalid, "{} is no {} address", quote_for_message(word),
                Octets == 4 ? "IPv4" : "IPv6");
  append(out, octets);
  return {};
}

template <std::size_t Octets, void (*print)(const std::uint8_t*, std::string&)>
bool print_address(WireReader& wire, std::string& text) {
  print(wire.take(Octets).data(), text);
  return true;
}

/// RFC 7043 §3.2, §4.2: pairs of hex digits joined by '-'.
template <std::size_t Octets>
Status take_eui(std::string_view word, Bytes& out) {
  bool right = word.size() == Octets * 3 - 1;
  for (std::size_t i = 0; right && i < Octets; ++i) {
    const int high = hex_value(word[3 * i]);
    const int low = hex_value(word[3 * i + 1]);
    right = high >= 0 && low >= 0 && (i + 1 == Octets || word[3 * i + 2] == '-');
    out.push_back(static_cast<std::uint8_t>(high << 4 | low));
  }
  if (!right) return fail(Errc::kInvalid, "{} is no EUI address", quote_for_message(word));
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
Status take_locator64(std::string_view word, Bytes& out) {
  std::size_t at = 0;
  for (int group = 0; group < 4; ++group) {
    const int value = take_ipv6_group(word, at);
    const bool ends = group == 3 ? at == word.size() : at < word.size() && word[at++] == ':';
    if (value < 0 || !ends)
      return fail(Errc::kInvalid, "{} is no 64-bit locator", quote_for_message(word));
    append_be16(out, static_cast<std::uint16_t>(value));
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
Status take_nsap(std::string_view word, Bytes& out) {
  if (word.size() < 2 || word[0] != '0' || ascii_upper(word[1]) != 'X')
    return fail(Errc::kInvalid, "does not start with 0x");
  const std::size_t start = out.size();
  HexDecoder decoder;
  for (const char& c : word.substr(2))
    if (c != '.' && !decoder.feed({&c, 1}, out)) return fail(Errc::kInvalid, "bad hex");
  if (!decoder.finish() || out.size() == start) return fail(Errc::kInvalid, "hex cut short");
  return {};
}

bool print_nsap(WireReader& wire, std::string& text) {
  text += "0x";
  print_lower_hex(wire.take_rest(), text);
  return true;
}

Status check_some(WireReader& wire) { return wire.skip_rest(1); }

// ATM Forum af-saa-0069: format 0 is an AESA address in hex, format 1 an E.164 number.

/// Appends the characters after the '+' or of the hex form; single dots may separate them.
template <class Append>
bool read_dotted(std::string_view word, Append&& append_one) {
  bool dot_allowed = false;
  for (const char c : word) {
    if (c == '.' ? !dot_allowed : !append_one(c)) return false;
    dot_allowed = c != '.';
  }
  return dot_allowed;  // neither empty nor ending in a dot
}

Status take_atma(std::string_view word, Bytes& out) {
  const bool number = word.starts_with('+');
  out.push_back(number ? 1 : 0);
  HexDecoder decoder;
  const auto append_one = [&](char c) {
    if (!number) return decoder.feed({&c, 1}, out);
    out.push_back(static_cast<std::uint8_t>(c));
    return c >= '0' && c <= '9';
  };
  if (!read_dotted(word.substr(number ? 1 : 0), append_one) || !decoder.finish())
    return fail(Errc::kInvalid, "{} is no ATM address", quote_for_message(word));
  return {};
}

Status check_atma(WireReader& wire) {
  if (wire.left() < 2) return fail(Errc::kTruncated, "cut short");
  const std::uint8_t format = wire.take_u8();
  for (const std::uint8_t octet : wire.take_rest())
    if (format == 1 && (octet < '0' || octet > '9')) return fail(Errc::kInvalid, "not all digits");
  return {};
}

bool print_atma(WireReader& wire, std::string& text) {
  const std::uint8_t format = wire.take_u8();
  if (format > 1) return false;  // no text form is known
  const bool number = format == 1;
  const ByteView address = wire.take_rest();
  if (!number) {
    print_lower_hex(address, text);
    return true;
  }
  text += '+';
  text.append(address.begin(), address.end());
  return true;
}

}  // namespace

namespace field {

const FieldCodec kIpv4{read_word<take_address<4, parse_ipv4>>, check_octets<4>,
                       print_address<4, print_ipv4>};
const FieldCodec kIpv6{read_word<take_address<16, parse_ipv6>>, check_octets<16>,
                       print_address<16, print_ipv6>};
const FieldCodec kEui48{read_word<take_eui<6>>, check_octets<6>, print_eui<6>};
const FieldCodec kEui64{read_word<take_eui<8>>, check_octets<8>, print_eui<8>};
const FieldCodec kLocator64{read_word<take_locator64>, check_octets<8>, print_locator64};
const FieldCodec kNsap{read_word<take_nsap>, check_some, print_nsap};
const FieldCodec kAtma{read_word<take_atma>, check_atma, print_atma};

}  // namespace field
}  // namespace pando::dns
