#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

constexpr std::size_t kMaxStringOctets = 255;  // RFC 1035 §3.3: one length octet

Status read_string(TextReader& text) {
  auto token = text.token();
  if (!token) return pass(token);
  return append_character_string(token->text, text.out());
}

Status check_string(WireReader& wire) { return wire.skip_counted(); }

bool print_string(WireReader& wire, std::string& text) {
  print_quoted(wire.take(wire.take_u8()), text);
  return true;
}

/// One or more (RFC 1035 §3.3.14).
Status read_strings(TextReader& text) {
  do {
    if (auto status = read_string(text); !status) return status;
  } while (!text.at_end());
  return {};
}

Status check_strings(WireReader& wire) {
  do {
    if (auto status = wire.skip_counted(); !status) return status;
  } while (wire.left() != 0);
  return {};
}

bool print_strings(WireReader& wire, std::string& text) {
  for (print_string(wire, text); wire.left() != 0; print_string(wire, text)) text += ' ';
  return true;
}

Status read_optional_string(TextReader& text) {
  return text.at_end() ? Status() : read_string(text);
}

Status check_optional_string(WireReader& wire) {
  return wire.left() == 0 ? Status() : wire.skip_counted();
}

bool print_optional_string(WireReader& wire, std::string& text) {
  return wire.left() == 0 || print_string(wire, text);
}

/// RFC 1183 §3.1: an X.121 address has four digits or more, its country code.
Status check_digits(WireReader& wire) {
  const std::size_t start = wire.at;
  if (auto status = wire.skip_counted(4); !status) return fail(Errc::kInvalid, "too short");
  for (const std::uint8_t octet : wire.data.subspan(start + 1, wire.at - start - 1))
    if (octet < '0' || octet > '9') return fail(Errc::kInvalid, "not all digits");
  return {};
}

Status read_digits(TextReader& text) {
  const std::size_t start = text.out().size();
  if (auto status = read_string(text); !status) return status;
  WireReader wire{text.out(), start};
  return check_digits(wire);
}

/// One word without a length octet.
Status read_quoted_rest(TextReader& text) {
  auto token = text.token();
  if (!token) return pass(token);
  return append_unescaped(token->text, kMaxRdataOctets, text.out());
}

Status check_quoted_rest(WireReader& wire) { return wire.skip_rest(); }

bool print_quoted_rest(WireReader& wire, std::string& text) {
  print_quoted(wire.take_rest(), text);
  return true;
}

bool is_alphanumeric(std::uint8_t octet) noexcept {
  const char upper = ascii_upper(static_cast<char>(octet));
  return (upper >= 'A' && upper <= 'Z') || (upper >= '0' && upper <= '9');
}

/// RFC 8659 §4.1: one or more of a-z, A-Z, 0-9.
Status check_caa_tag(WireReader& wire) {
  const std::size_t start = wire.at;
  if (auto status = wire.skip_counted(1); !status) return status;
  for (const std::uint8_t octet : wire.data.subspan(start + 1, wire.at - start - 1))
    if (!is_alphanumeric(octet)) return fail(Errc::kInvalid, "not alphanumeric");
  return {};
}

Status take_caa_tag(std::string_view word, Bytes& out) {
  const std::size_t start = out.size();
  if (auto status = append_character_string(word, out); !status) return status;
  WireReader wire{out, start};
  return check_caa_tag(wire);
}

bool print_caa_tag(WireReader& wire, std::string& text) {
  for (const std::uint8_t octet : wire.take(wire.take_u8())) text += static_cast<char>(octet);
  return true;
}

}  // namespace

Status append_unescaped(std::string_view text, std::size_t max, Bytes& out) {
  const std::size_t start = out.size();
  if (text.find('\\') == std::string_view::npos) {
    if (text.size() > max) return fail(Errc::kInvalid, "above {} octets", max);
    out.insert(out.end(), text.begin(), text.end());
    return {};
  }
  for (std::size_t at = 0; at < text.size();) {
    const int octet = take_octet(text, at);
    if (octet < 0) return fail(Errc::kInvalid, "bad escape");
    if (out.size() - start == max) return fail(Errc::kInvalid, "above {} octets", max);
    out.push_back(static_cast<std::uint8_t>(octet));
  }
  return {};
}

Status append_character_string(std::string_view text, Bytes& out) {
  const std::size_t length_at = out.size();
  out.push_back(0);
  if (auto status = append_unescaped(text, kMaxStringOctets, out); !status) return status;
  return set_length(out, length_at);
}

Status set_length(Bytes& out, std::size_t length_at) {
  const std::size_t octets = out.size() - length_at - 1;
  if (octets > kMaxStringOctets) return fail(Errc::kInvalid, "above {} octets", kMaxStringOctets);
  out[length_at] = static_cast<std::uint8_t>(octets);
  return {};
}

void print_quoted(ByteView octets, std::string& text) {
  text += '"';
  for (const std::uint8_t octet : octets) {
    if (octet < 0x20 || octet >= 0x7F) {
      fmt::format_to(std::back_inserter(text), "\\{:03}", octet);
      continue;
    }
    if (octet == '"' || octet == '\\') text += '\\';
    text += static_cast<char>(octet);
  }
  text += '"';
}

namespace field {

const FieldCodec kString{read_string, check_string, print_string};
const FieldCodec kStrings{read_strings, check_strings, print_strings};
const FieldCodec kOptionalString{read_optional_string, check_optional_string,
                                 print_optional_string};
const FieldCodec kDigits{read_digits, check_digits, print_string};
const FieldCodec kQuotedRest{read_quoted_rest, check_quoted_rest, print_quoted_rest};
const FieldCodec kCaaTag{read_word<take_caa_tag>, check_caa_tag, print_caa_tag};

}  // namespace field
}  // namespace pando::dns
