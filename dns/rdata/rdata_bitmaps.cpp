#include <algorithm>
#include <array>
#include <vector>

#include "dns/mnemonics.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

constexpr std::size_t kMaxWindowOctets = 32;  // RFC 4034 §4.1.2: 256 types a window

/// Sets bit `bit`, counted from the most significant one of the first octet (all bitmaps here).
void set_bit(std::span<std::uint8_t> bitmap, std::size_t bit) noexcept {
  bitmap[bit / 8] |= static_cast<std::uint8_t>(0x80U >> (bit % 8));
}

bool has_bit(ByteView bitmap, std::size_t bit) noexcept {
  return (bitmap[bit / 8] & (0x80U >> (bit % 8))) != 0;
}

/// One window of types and the number of its octets in use.
struct Window {
  std::array<std::uint8_t, kMaxWindowOctets> bits{};
  std::size_t used = 0;

  void set(std::uint8_t bit) noexcept {
    set_bit(bits, bit);
    used = std::max<std::size_t>(used, bit / 8 + 1U);
  }
  void append_to(Bytes& out, std::uint8_t number) const {
    if (used == 0) return;
    out.push_back(number);
    out.push_back(static_cast<std::uint8_t>(used));
    append(out, ByteView(bits).first(used));
  }
};

/// Types above window 0 (CAA, TA and private ones), sorted for grouping into windows.
void append_windows(std::vector<std::uint16_t>& types, Bytes& out) {
  std::sort(types.begin(), types.end());
  for (std::size_t i = 0; i < types.size();) {
    const auto number = static_cast<std::uint8_t>(types[i] >> 8U);
    Window window;
    for (; i < types.size() && types[i] >> 8U == number; ++i)
      window.set(static_cast<std::uint8_t>(types[i]));
    window.append_to(out, number);
  }
}

Status read_type_bitmap_or_empty(TextReader& text) {
  Window first;                      // holds nearly all existing types
  std::vector<std::uint16_t> later;  // empty, hence without heap, in nearly all zones
  while (!text.at_end()) {
    auto word = text.word();
    if (!word) return pass(word);
    auto type = rrtype_from_text(*word);
    if (!type) return pass(type);
    const auto value = static_cast<std::uint16_t>(*type);
    if (value < 256)
      first.set(static_cast<std::uint8_t>(value));
    else
      later.push_back(value);
  }
  first.append_to(text.out(), 0);
  append_windows(later, text.out());
  return {};
}

Status read_type_bitmap(TextReader& text) {
  if (text.at_end()) return fail(Errc::kTruncated, "missing");
  return read_type_bitmap_or_empty(text);
}

/// RFC 4034 §4.1.2: windows ascend, none is empty, none ends in a zero octet.
Status check_window(WireReader& wire, int& last) {
  if (wire.left() < 2) return fail(Errc::kTruncated, "cut short");
  const std::uint8_t number = wire.take_u8();
  const std::uint8_t octets = wire.take_u8();
  if (number <= last) return fail(Errc::kInvalid, "windows out of order");
  if (octets == 0 || octets > kMaxWindowOctets) return fail(Errc::kInvalid, "bad window length");
  if (auto status = wire.skip(octets); !status) return status;
  if (wire.data[wire.at - 1] == 0) return fail(Errc::kInvalid, "zero octet ends a window");
  last = number;
  return {};
}

Status check_type_bitmap_or_empty(WireReader& wire) {
  int last = -1;
  while (wire.left() != 0)
    if (auto status = check_window(wire, last); !status) return status;
  return {};
}

Status check_type_bitmap(WireReader& wire) {
  if (wire.left() == 0) return fail(Errc::kTruncated, "missing");
  return check_type_bitmap_or_empty(wire);
}

void print_types(ByteView bitmap, std::size_t first_type, std::string& text) {
  for (std::size_t bit = 0; bit < bitmap.size() * 8; ++bit) {
    if (!has_bit(bitmap, bit)) continue;
    if (!text.empty() && text.back() != ' ') text += ' ';
    text += to_text(static_cast<RRType>(first_type + bit));
  }
}

bool print_type_bitmap(WireReader& wire, std::string& text) {
  while (wire.left() != 0) {
    const std::size_t number = wire.take_u8();
    print_types(wire.take(wire.take_u8()), number * 256, text);
  }
  return true;
}

/// RFC 2535 §5.2: one bitmap over the types below 128.
Status read_nxt_bitmap(TextReader& text) {
  Window window;
  while (!text.at_end()) {
    auto word = text.word();
    if (!word) return pass(word);
    const auto number = parse_decimal(*word, 127);  // BIND prints unknown types so
    auto type = number ? Result<RRType>(static_cast<RRType>(*number)) : rrtype_from_text(*word);
    if (!type) return pass(type);
    const auto value = static_cast<std::uint16_t>(*type);
    if (value == 0 || value > 127)
      return fail(Errc::kInvalid, "{} is not from 1 to 127", quote_for_message(*word));
    window.set(static_cast<std::uint8_t>(value));
  }
  append(text.out(), ByteView(window.bits).first(window.used));
  return {};
}

/// RFC 2535 §5.2: bit 0 announces a format that was never defined, so that bit is refused.
Status check_nxt_bitmap(WireReader& wire) {
  const ByteView bitmap = wire.rest();
  if (bitmap.empty()) return {};
  if (bitmap.size() > 16 || (bitmap[0] & 0x80U) != 0 || bitmap.back() == 0)
    return fail(Errc::kInvalid, "bad bitmap");
  return wire.skip_rest();
}

bool print_nxt_bitmap(WireReader& wire, std::string& text) {
  print_types(wire.take_rest(), 0, text);
  return true;
}

Result<std::uint16_t> read_port(TextReader& text) {
  const Token* token = text.peek();
  const auto known = token->quoted ? std::nullopt : find_mnemonic(kPorts, token->text);
  if (known) {
    text.step();
    return *known;
  }
  auto number = read_number(text, 65535);
  if (!number) return pass(number);
  return static_cast<std::uint16_t>(*number);
}

/// RFC 1035 §3.4.2: the protocol, then one bit a port.
Status read_wks_ports(TextReader& text) {
  const Token* token = text.peek();
  if (token == nullptr) return fail(Errc::kTruncated, "missing");
  const auto known = token->quoted ? std::nullopt : find_mnemonic(kIpProtocols, token->text);
  if (known) text.step();
  auto protocol = known ? Result<std::uint64_t>(*known) : read_number(text, 255);
  if (!protocol) return pass(protocol);
  Bytes& out = text.out();
  out.push_back(static_cast<std::uint8_t>(*protocol));
  const std::size_t start = out.size();
  while (!text.at_end()) {
    auto port = read_port(text);
    if (!port) return pass(port);
    out.resize(std::max(out.size(), start + *port / 8U + 1));
    set_bit(std::span(out).subspan(start), *port);
  }
  return {};
}

Status check_wks_ports(WireReader& wire) {
  if (wire.left() > 1 + 65536 / 8) return fail(Errc::kInvalid, "more than 65536 ports");
  if (!wire.is_stored && wire.left() > 1 && wire.data.back() == 0)
    return fail(Errc::kInvalid, "zero octet ends the ports");
  return wire.skip_rest(1);
}

bool print_wks_ports(WireReader& wire, std::string& text) {
  print_number(wire.take_u8(), text);
  const ByteView ports = wire.take_rest();
  for (std::size_t port = 0; port < ports.size() * 8; ++port) {
    if (!has_bit(ports, port)) continue;
    text += ' ';
    print_number(port, text);
  }
  return ports.empty() || ports.back() != 0;  // text cannot show zero octets at the end
}

}  // namespace

namespace field {

const FieldCodec kTypeBitmap{read_type_bitmap, check_type_bitmap, print_type_bitmap};
const FieldCodec kTypeBitmapOrEmpty{read_type_bitmap_or_empty, check_type_bitmap_or_empty,
                                    print_type_bitmap};
const FieldCodec kNxtBitmap{read_nxt_bitmap, check_nxt_bitmap, print_nxt_bitmap};
const FieldCodec kWksPorts{read_wks_ports, check_wks_ports, print_wks_ports};

}  // namespace field
}  // namespace pando::dns
