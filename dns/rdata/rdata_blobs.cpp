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

constexpr std::uint8_t kPrivateDns = 253, kPrivateOid = 254;

/// A length octet and an OBJECT IDENTIFIER of that length in BER: tag 6, length, the numbers in
/// groups of seven bits.
bool begins_with_oid(ByteView octets) noexcept {
  if (octets.size() < 4 || octets[0] < 3 || octets[0] >= octets.size()) return false;
  const ByteView oid = octets.subspan(1, octets[0]);
  if (oid[0] != 6 || oid[1] != oid.size() - 2 || (oid.back() & 0x80U) != 0) return false;
  for (std::size_t i = 2; i < oid.size(); ++i)  // no number begins with zeros
    if (oid[i] == 0x80 && (oid[i - 1] & 0x80U) == 0) return false;
  return true;
}

/// RFC 4034 §A.1.1: keys and signatures of private algorithms begin with the algorithm's own name
/// or identifier.
Status check_private_algorithm(const WireReader& wire, std::uint8_t algorithm) {
  if (wire.is_stored || wire.left() == 0) return {};
  const bool is_wrong = (algorithm == kPrivateDns && wire_name_length(wire.rest()) == 0) ||
                        (algorithm == kPrivateOid && !begins_with_oid(wire.rest()));
  if (is_wrong) return fail(Errc::kInvalid, "no private algorithm at its beginning");
  return {};
}

/// KEY: nothing where the flags say NOKEY.
Status check_key_data(WireReader& wire) {
  const bool no_key = says_no_key(wire.octet(0));
  if (no_key && !wire.is_stored && wire.left() != 0)
    return fail(Errc::kInvalid, "the flags say that there is none");
  if (auto status = check_private_algorithm(wire, wire.octet(3)); !status) return status;
  return wire.skip_rest(no_key ? 0 : 1);
}

/// DNSKEY and its like know no NOKEY (RFC 4034 §2.1.1).
Status check_public_key(WireReader& wire) {
  if (auto status = check_private_algorithm(wire, wire.octet(3)); !status) return status;
  return wire.skip_rest(wire.is_stored && says_no_key(wire.octet(0)) ? 0 : 1);
}

template <Status (*check)(WireReader&)>
Status read_checked_base64(TextReader& text, std::size_t least) {
  const std::size_t at = text.written().size();
  if (auto status = read_base64_rest(text, least); !status) return status;
  WireReader wire{text.written(), 0, at};
  return check(wire);
}

Status read_key_data(TextReader& text) {
  return read_checked_base64<check_key_data>(text, says_no_key(text.written()[0]) ? 0 : 1);
}

Status read_public_key(TextReader& text) { return read_checked_base64<check_public_key>(text, 1); }

Status check_signature(WireReader& wire) {
  if (!wire.is_stored && load_be16(wire.data.data() + wire.start) == 0)
    return fail(Errc::kInvalid, "covers no type");
  if (auto status = check_private_algorithm(wire, wire.octet(2)); !status) return status;
  return wire.skip_rest(1);
}

/// RFC 4034 §3.1.3: the labels, the fourth octet, are those of an owner at or below the signer.
Status check_rrsig_signature(WireReader& wire) {
  constexpr std::size_t kSignerAt = 18;
  const std::size_t signer = wire.start + kSignerAt;
  const std::size_t labels = NameView(wire.data.data() + signer, wire.at - signer).label_count();
  if (!wire.is_stored && wire.octet(3) < labels)
    return fail(Errc::kInvalid, "the signer has more labels than the owner");
  return check_signature(wire);
}

template <Status (*check)(WireReader&)>
Status read_signature(TextReader& text) {
  return read_checked_base64<check>(text, 1);
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

/// Octets of a fingerprint of a known type; 0 for other types, whose fingerprint may have any
/// length.
std::size_t fingerprint_octets(std::uint8_t type) noexcept {
  switch (type) {
    case 1:
      return 20;  // SHA-1, RFC 4255 §3.1.2
    case 2:
      return 32;  // SHA-256, RFC 6594 §4
    default:
      return 0;
  }
}

/// All that is left is a digest of `wanted` octets, or of one or more if 0.
Status check_digest_octets(WireReader& wire, std::size_t wanted) {
  if (wanted != 0 && wire.left() != wanted)
    return fail(Errc::kInvalid, "{} octets, not {}", wire.left(), wanted);
  return wire.skip_rest(1);
}

Status check_digest(WireReader& wire) {
  return check_digest_octets(wire, digest_octets(wire.octet(3)));
}

Status check_fingerprint(WireReader& wire) {
  return check_digest_octets(wire, wire.is_stored ? 0 : fingerprint_octets(wire.octet(1)));
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

constexpr std::size_t kMaxNextHash = 39;  // a label of 63 octets in base 32 has no more
constexpr std::size_t kSha1Octets = 20;

/// RFC 5155 §11: hash algorithm 1, the first octet, is SHA-1.
Status check_next_hash(WireReader& wire) {
  const std::size_t at = wire.at;
  if (auto status = wire.skip_counted(1); !status) return status;
  const std::size_t octets = wire.at - at - 1;
  if (wire.is_stored) return {};
  const bool is_sha1 = wire.octet(0) == 1;
  if (is_sha1 ? octets != kSha1Octets : octets > kMaxNextHash)
    return fail(Errc::kInvalid, "{} octets are no hash of this kind", octets);
  return {};
}

Status take_next_hash(std::string_view word, Bytes& out) {
  const std::size_t length_at = out.size();
  out.push_back(0);
  if (word.empty() || !append_base32hex_decoded(word, out))
    return fail(Errc::kInvalid, "bad base 32 (extended hex)");
  return set_length(out, length_at);
}

Status read_next_hash(TextReader& text) {
  const std::size_t at = text.written().size();
  if (auto status = read_word<take_next_hash>(text); !status) return status;
  WireReader wire{text.written(), 0, at};
  return check_next_hash(wire);
}

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
const FieldCodec kPublicKey{read_public_key, check_public_key, print_base64};
const FieldCodec kSignature{read_signature<check_signature>, check_signature, print_base64};
const FieldCodec kRrsigSignature{read_signature<check_rrsig_signature>, check_rrsig_signature,
                                 print_base64};
const FieldCodec kIpsecKey{read_ipsec_key, check_ipsec_key, print_base64};
const FieldCodec kDigest{read_checked_hex<check_digest>, check_digest, print_hex};
const FieldCodec kFingerprint{read_checked_hex<check_fingerprint>, check_fingerprint, print_hex};
const FieldCodec kZonemdDigest{read_checked_hex<check_zonemd_digest>, check_zonemd_digest,
                               print_hex};
const FieldCodec kSalt{read_word<take_salt>, check_counted, print_salt};
const FieldCodec kNextHash{read_next_hash, check_next_hash, print_next_hash};
const FieldCodec kDoaData{read_doa_data, check_rest<0>, print_doa_data};
const FieldCodec kOpaque{read_opaque, check_rest<0>, print_opaque};

}  // namespace field
}  // namespace pando::dns
