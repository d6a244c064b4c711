#include <iterator>

#include "dns/encoding.h"
#include "dns/rdata/rdata_field.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

Status take_no_host(std::string_view word, Bytes&) {
  return word == "." ? Status() : fail(Errc::kInvalid, "type 0 wants '.'");
}

constexpr FieldCodec kNoHost{read_word<take_no_host>, check_octets<0>,
                             [](WireReader&, std::string& text) {
                               text += '.';
                               return true;
                             }};

/// RFC 4025 §2.3 and RFC 8777 §4.2.3 number the forms of a host alike.
constexpr const FieldCodec* kHostForms[] = {&kNoHost, &field::kIpv4, &field::kIpv6, &field::kName};

Status unknown_host(std::uint8_t form) { return fail(Errc::kInvalid, "type {} is unknown", form); }

Status read_host(TextReader& text, std::uint8_t form) {
  return form < std::size(kHostForms) ? kHostForms[form]->read(text) : unknown_host(form);
}

Status check_host(WireReader& wire, std::uint8_t form) {
  return form < std::size(kHostForms) ? kHostForms[form]->check(wire) : unknown_host(form);
}

bool print_host(WireReader& wire, std::uint8_t form, std::string& text) {
  return form < std::size(kHostForms) && kHostForms[form]->print(wire, text);
}

// IPSECKEY: the gateway type is the second octet (RFC 4025 §2.1).

Status read_ipsec_gateway(TextReader& text) { return read_host(text, text.written()[1]); }
Status check_ipsec_gateway(WireReader& wire) { return check_host(wire, wire.octet(1)); }
bool print_ipsec_gateway(WireReader& wire, std::string& text) {
  return print_host(wire, wire.octet(1), text);
}

// AMTRELAY: one octet holds the discovery bit and the type (RFC 8777 §4.2.2).

constexpr std::uint8_t kDiscovery = 0x80;

Status read_amt_relay(TextReader& text) {
  auto discovery = read_number(text, 1);
  if (!discovery) return pass(discovery);
  auto form = read_number(text, 127);
  if (!form) return pass(form);
  text.out().push_back(static_cast<std::uint8_t>((*discovery != 0 ? kDiscovery : 0) | *form));
  return read_host(text, static_cast<std::uint8_t>(*form));
}

/// Relay types of the future are opaque (RFC 8777 §4.2.3).
Status check_amt_relay(WireReader& wire) {
  if (wire.left() == 0) return fail(Errc::kTruncated, "missing");
  const std::uint8_t form = wire.take_u8() & 0x7FU;
  return form >= std::size(kHostForms) ? wire.skip_rest() : check_host(wire, form);
}

bool print_amt_relay(WireReader& wire, std::string& text) {
  const std::uint8_t octet = wire.take_u8();
  const auto form = static_cast<std::uint8_t>(octet & ~kDiscovery);
  text += (octet & kDiscovery) != 0 ? "1 " : "0 ";
  print_number(form, text);
  text += ' ';
  return print_host(wire, form, text);
}

// HIP: lengths of the tag and of the key come first on the wire, but not in text (RFC 8005 §5, §6).

constexpr std::size_t kHipHeader = 4;  // tag length, algorithm, key length (2)

Status take_hip_tag(std::string_view tag, Bytes& out) {
  HexDecoder decoder;
  if (!decoder.feed(tag, out) || !decoder.finish()) return fail(Errc::kInvalid, "tag: bad hex");
  if (tag.empty() || tag.size() > 510) return fail(Errc::kInvalid, "tag: not 1 to 255 octets");
  return {};
}

Status take_hip_key(std::string_view key, Bytes& out) {
  Base64Decoder decoder;
  if (!decoder.feed(key, out) || !decoder.finish())
    return fail(Errc::kInvalid, "public key: bad base 64");
  if (key.empty()) return fail(Errc::kInvalid, "public key: missing");
  return {};
}

Status read_hip(TextReader& text) {
  auto algorithm = read_number(text, 255);
  if (!algorithm) return pass(algorithm);
  Bytes& out = text.out();
  const std::size_t header = out.size();
  out.insert(out.end(), kHipHeader, 0);
  if (auto status = read_word<take_hip_tag>(text); !status) return status;
  const std::size_t key_at = out.size();
  if (auto status = read_word<take_hip_key>(text); !status) return status;
  const std::size_t key_octets = out.size() - key_at;
  if (key_octets > kMaxRdataOctets) return fail(Errc::kInvalid, "public key: too long");
  out[header] = static_cast<std::uint8_t>(key_at - header - kHipHeader);
  out[header + 1] = static_cast<std::uint8_t>(*algorithm);
  store_be16(out.data() + header + 2, static_cast<std::uint16_t>(key_octets));
  while (!text.at_end())
    if (auto status = field::kName.read(text); !status) return status;
  return {};
}

Status check_hip(WireReader& wire) {
  if (wire.left() < kHipHeader) return fail(Errc::kTruncated, "cut short");
  const std::size_t tag_octets = wire.take_u8();
  wire.take_u8();
  const std::size_t key_octets = wire.take_u16();
  if (tag_octets == 0 || key_octets == 0) return fail(Errc::kInvalid, "empty tag or key");
  if (auto status = wire.skip(tag_octets + key_octets); !status) return status;
  while (wire.left() != 0)
    if (auto status = check_name(wire); !status) return status;
  return {};
}

bool print_hip(WireReader& wire, std::string& text) {
  const std::size_t tag_octets = wire.take_u8();
  print_number(wire.take_u8(), text);
  const std::size_t key_octets = wire.take_u16();
  text += ' ';
  append_hex(text, wire.take(tag_octets));
  text += ' ';
  append_base64(text, wire.take(key_octets));
  while (wire.left() != 0) {
    text += ' ';
    text += to_text(take_name(wire));
  }
  return true;
}

}  // namespace

namespace field {

const FieldCodec kIpsecGateway{read_ipsec_gateway, check_ipsec_gateway, print_ipsec_gateway};
const FieldCodec kAmtRelay{read_amt_relay, check_amt_relay, print_amt_relay};
const FieldCodec kHip{read_hip, check_hip, print_hip};

}  // namespace field
}  // namespace pando::dns
