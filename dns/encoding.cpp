#include "dns/encoding.h"

#include "dns/encoding_tables.h"

namespace pando::dns {

namespace {

/// Decodes whole groups of four symbols without padding; returns the number of characters decoded.
std::size_t decode_groups(std::string_view text, Bytes& out) {
  const auto* in = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::size_t groups = text.size() / 4;
  const std::size_t start = out.size();
  out.resize(start + groups * 3);
  std::uint8_t* to = out.data() + start;
  std::size_t done = 0;
  for (; done < groups; ++done, in += 4, to += 3) {
    const std::uint32_t bits = kBase64Places[0][in[0]] | kBase64Places[1][in[1]] |
                               kBase64Places[2][in[2]] | kBase64Places[3][in[3]];
    if ((bits & kNoGroup) != 0) break;
    to[0] = static_cast<std::uint8_t>(bits >> 16U);
    to[1] = static_cast<std::uint8_t>(bits >> 8U);
    to[2] = static_cast<std::uint8_t>(bits);
  }
  out.resize(start + done * 3);
  return done * 4;
}

/// Decodes pairs of hex digits; returns the number of characters decoded.
std::size_t decode_pairs(std::string_view text, Bytes& out) {
  const auto* in = reinterpret_cast<const std::uint8_t*>(text.data());
  const std::size_t pairs = text.size() / 2;
  const std::size_t start = out.size();
  out.resize(start + pairs);
  std::uint8_t* to = out.data() + start;
  std::size_t done = 0;
  for (; done < pairs; ++done, in += 2) {
    const std::uint8_t high = kHexValues[in[0]], low = kHexValues[in[1]];
    if (((high | low) & 0x80U) != 0) break;
    to[done] = static_cast<std::uint8_t>(high << 4U | low);
  }
  out.resize(start + done);
  return done * 2;
}

}  // namespace

bool Base64Decoder::feed(std::string_view text, Bytes& out) {
  if (pending_ == 0 && padding_ == 0) text.remove_prefix(decode_groups(text, out));
  for (const char c : text)
    if (!feed_one(static_cast<std::uint8_t>(c), out)) return false;
  return true;
}

bool Base64Decoder::feed_one(std::uint8_t c, Bytes& out) {
  if (c == '=') {
    if (pending_ < 2) return false;  // nothing to pad, or a lone symbol
    ++padding_;
    bits_ <<= 6U;
  } else {
    if (padding_ != 0 || kBase64Values[c] == kNoSymbol) return false;
    bits_ = bits_ << 6U | kBase64Values[c];
  }
  if (++pending_ < 4) return true;
  const std::uint32_t unused = padding_ == 0 ? 0 : padding_ == 1 ? 0xFFU : 0xFFFFU;
  if ((bits_ & unused) != 0) return false;  // RFC 4648 §3.5: pad bits are zero
  for (int i = 0; i < 3 - padding_; ++i)
    out.push_back(static_cast<std::uint8_t>(bits_ >> (16 - 8 * i)));
  pending_ = 0;
  bits_ = 0;
  return true;
}

int hex_value(char c) noexcept {
  const std::uint8_t value = kHexValues[static_cast<std::uint8_t>(c)];
  return value == kNoSymbol ? -1 : value;
}

bool HexDecoder::feed(std::string_view text, Bytes& out) {
  if (!half_) text.remove_prefix(decode_pairs(text, out));
  for (const char c : text) {
    const int value = hex_value(c);
    if (value < 0) return false;
    if (half_) out.push_back(static_cast<std::uint8_t>(high_ << 4U | static_cast<unsigned>(value)));
    high_ = static_cast<std::uint8_t>(value);
    half_ = !half_;
  }
  return true;
}

Result<Bytes> base64_decode(std::string_view text) {
  Bytes out;
  Base64Decoder decoder;
  if (!decoder.feed(text, out) || !decoder.finish()) return fail(Errc::kInvalid, "bad base 64");
  return out;
}

Result<Bytes> hex_decode(std::string_view text) {
  Bytes out;
  HexDecoder decoder;
  if (text.size() % 2 != 0) return fail(Errc::kInvalid, "odd number of hexadecimal digits");
  if (!decoder.feed(text, out)) return fail(Errc::kInvalid, "not hexadecimal");
  return out;
}

bool append_base32hex_decoded(std::string_view text, Bytes& out) {
  // RFC 4648 §6: a last group of 1, 3 or 6 symbols is not a whole number of octets.
  const std::size_t tail = text.size() % 8;
  if (tail == 1 || tail == 3 || tail == 6) return false;
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::uint8_t value = kBase32HexValues[static_cast<std::uint8_t>(c)];
    if (value == kNoSymbol) return false;
    bits = bits << 5U | value;
    count += 5;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<std::uint8_t>(bits >> count));
  }
  return (bits & ((1U << count) - 1U)) == 0;
}

void append_base64(std::string& text, ByteView octets) {
  std::size_t i = 0;
  std::size_t at = text.size();
  text.resize(at + octets.size() / 3 * 4);
  for (; i + 3 <= octets.size(); i += 3) {
    const std::uint32_t bits = static_cast<std::uint32_t>(octets[i]) << 16U |
                               static_cast<std::uint32_t>(octets[i + 1]) << 8U | octets[i + 2];
    for (int shift = 18; shift >= 0; shift -= 6) text[at++] = kBase64Symbols[bits >> shift & 63U];
  }
  const std::size_t left = octets.size() - i;
  if (left == 0) return;
  const std::uint32_t bits = static_cast<std::uint32_t>(octets[i]) << 16U |
                             (left == 2 ? static_cast<std::uint32_t>(octets[i + 1]) << 8U : 0U);
  text += kBase64Symbols[bits >> 18U & 63U];
  text += kBase64Symbols[bits >> 12U & 63U];
  text += left == 2 ? kBase64Symbols[bits >> 6U & 63U] : '=';
  text += '=';
}

void append_hex(std::string& text, ByteView octets) {
  for (const std::uint8_t octet : octets) {
    text += kHexSymbols[octet >> 4U];
    text += kHexSymbols[octet & 15U];
  }
}

void append_base32hex(std::string& text, ByteView octets) {
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const std::uint8_t octet : octets) {
    bits = bits << 8U | octet;
    for (count += 8; count >= 5; count -= 5) text += kBase32HexSymbols[bits >> (count - 5) & 31U];
  }
  if (count != 0) text += kBase32HexSymbols[bits << (5 - count) & 31U];
}

std::string base64_encode(ByteView octets) {
  std::string text;
  append_base64(text, octets);
  return text;
}

std::string hex_encode(ByteView octets) {
  std::string text;
  append_hex(text, octets);
  return text;
}

}  // namespace pando::dns
