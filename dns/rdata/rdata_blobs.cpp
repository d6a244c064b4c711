#include "dns/encoding.h"
#include "dns/rdata/rdata_field.h"

namespace pando::dns {

namespace {

template <class Decoder>
Status read_rest(TextReader& text, std::size_t least, const char* kind) {
  const std::size_t start = text.out().size();
  Decoder decoder;
  while (!text.at_end()) {
    auto word = text.word();
    if (!word) return pass(word);
    if (!decoder.feed(*word, text.out())) return fail(Errc::kInvalid, "bad {}", kind);
  }
  if (!decoder.finish()) return fail(Errc::kInvalid, "{} cut short", kind);
  if (text.out().size() - start < least) return fail(Errc::kTruncated, "missing");
  return {};
}

template <std::size_t Least>
Status read_base64(TextReader& text) {
  return read_base64_rest(text, Least);
}

template <std::size_t Least>
Status check_rest(WireReader& wire) {
  return wire.skip_rest(Least);
}

bool print_base64(WireReader& wire, std::string& text) {
  append_base64(text, wire.take_rest());
  return true;
}

Status read_hex(TextReader& text) { return read_hex_rest(text, 1); }

bool print_hex(WireReader& wire, std::string& text) {
  append_hex(text, wire.take_rest());
  return true;
}

/// RFC 2535 §3.1.2: both top bits of the flags set mean that there is no key.
bool says_no_key(std::uint8_t high_flags) noexcept { return (high_flags & 0xC0U) == 0xC0U; }

Status read_key_data(TextReader& text) {
  return read_base64_rest(text, says_no_key(text.written()[0]) ? 0 : 1);
}

Status check_key_data(WireReader& wire) {
  return wire.skip_rest(says_no_key(wire.octet(0)) ? 0 : 1);
}

/// RFC 4025 §2.4: algorithm 0, the third octet, means that no key follows.
Status read_ipsec_key(TextReader& text) {
  return read_base64_rest(text, text.written()[2] == 0 ? 0 : 1);
}

Status check_ipsec_key(WireReader& wire) { return wire.skip_rest(wire.octet(2) == 0 ? 0 : 1); }

/// Octets of a digest of a known type; 0 for other types, whose digest may have any length.
std::size_t digest_octets(std::uint8_t type) noexcept {
  switch (type) {
    case 1:
      return 20;  // SHA-1, RFC 3658 §2.4
    case 2:
      return 32;  // SHA-256, RFC 4509 §2.1
    case 4:
      return 48;  // SHA-384, RFC 6605 §2
    default:
      return 0;
  }
}

Status check_digest(WireReader& wire) {
  const std::size_t wanted = digest_octets(wire.octet(3));
  if (wanted != 0 && wire.left() != wanted)
    return fail(Errc::kInvalid, "{} octets, not {}", wire.left(), wanted);
  return wire.skip_rest(1);
}

/// RFC 8976 §2.2.4: SHA-384 and SHA-512 have their length, no digest is below 12 octets.
Status check_zonemd_digest(WireReader& wire) {
  const std::uint8_t hash = wire.octet(5);
  const std::size_t wanted = hash == 1 ? 48 : hash == 2 ? 64 : 0;
  if (wanted != 0 ? wire.left() != wanted : wire.left() < 12)
    return fail(Errc::kInvalid, "{} octets are no digest of this kind", wire.left());
  return wire.skip_rest(1);
}

/// Reads hex and then applies the wire check, which has the valid lengths.
template <Status (*check)(WireReader&)>
Status read_checked_hex(TextReader& text) {
  const std::size_t at = text.written().size();
  if (auto status = read_hex_rest(text, 1); !status) return status;
  WireReader wire{text.written(), 0, at};
  return check(wire);
}

/// RFC 5155 §3.3: "-" for no salt, else hex without blanks.
Status take_salt(std::string_view word, Bytes& out) {
  const std::size_t length_at = out.size();
  out.push_back(0);
  if (word == "-") return {};
  HexDecoder decoder;
  if (word.empty() || !decoder.feed(word, out) || !decoder.finish())
    return fail(Errc::kInvalid, "neither hex nor '-'");
  return set_length(out, length_at);
}

Status check_counted(WireReader& wire) { return wire.skip_counted(); }

bool print_salt(WireReader& wire, std::string& text) {
  const ByteView salt = wire.take(wire.take_u8());
  if (salt.empty())
    text += '-';
  else
    append_hex(text, salt);
  return true;
}

Status take_next_hash(std::string_view word, Bytes& out) {
  const std::size_t length_at = out.size();
  out.push_back(0);
  if (word.empty() || !append_base32hex_decoded(word, out))
    return fail(Errc::kInvalid, "bad base 32 (extended hex)");
  return set_length(out, length_at);
}

Status check_next_hash(WireReader& wire) { return wire.skip_counted(1); }

bool print_next_hash(WireReader& wire, std::string& text) {
  append_base32hex(text, wire.take(wire.take_u8()));
  return true;
}

Status read_doa_data(TextReader& text) {
  const Token* token = text.peek();
  if (token == nullptr || token->quoted || token->text != "-") return read_base64_rest(text, 1);
  text.step();
  return {};
}

bool print_doa_data(WireReader& wire, std::string& text) {
  if (wire.left() != 0) return print_base64(wire, text);
  text += '-';
  return true;
}

Status read_opaque(TextReader&) {
  return fail(Errc::kInvalid, "must be in the form \\# LENGTH HEX");
}

bool print_opaque(WireReader&, std::string&) { return false; }

}  // namespace

Status read_base64_rest(TextReader& text, std::size_t least) {
  return read_rest<Base64Decoder>(text, least, "base 64");
}

Status read_hex_rest(TextReader& text, std::size_t least) {
  return read_rest<HexDecoder>(text, least, "hex");
}

namespace field {

const FieldCodec kBase64{read_base64<1>, check_rest<1>, print_base64};
const FieldCodec kBase64OrEmpty{read_base64<0>, check_rest<0>, print_base64};
const FieldCodec kHex{read_hex, check_rest<1>, print_hex};
const FieldCodec kKeyData{read_key_data, check_key_data, print_base64};
const FieldCodec kIpsecKey{read_ipsec_key, check_ipsec_key, print_base64};
const FieldCodec kDigest{read_checked_hex<check_digest>, check_digest, print_hex};
const FieldCodec kZonemdDigest{read_checked_hex<check_zonemd_digest>, check_zonemd_digest,
                               print_hex};
const FieldCodec kSalt{read_word<take_salt>, check_counted, print_salt};
const FieldCodec kNextHash{read_word<take_next_hash>, check_next_hash, print_next_hash};
const FieldCodec kDoaData{read_doa_data, check_rest<0>, print_doa_data};
const FieldCodec kOpaque{read_opaque, check_rest<0>, print_opaque};

}  // namespace field
}  // namespace pando::dns
