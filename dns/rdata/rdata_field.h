#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/rdata/rdata.h"
#include "dns/types.h"

/// Internals of the RDATA codec: the interface of a field, and all fields. A record type is a row
/// of fields (rdata_table.cpp); a new form needs a new field here.
namespace pando::dns {

/// Walks the RDATA of one record, `data[start, data.size())`; the message may lie before `start`.
struct WireReader {
  ByteView data;
  std::size_t start = 0;
  std::size_t at = start;
  /// The RDATA is in a zone already: no rule applies that only keeps new records out. The layout
  /// of the fields is the same.
  bool is_stored = false;

  [[nodiscard]] std::size_t left() const noexcept { return data.size() - at; }
  [[nodiscard]] ByteView rest() const noexcept { return data.subspan(at); }
  /// The octet at `offset` of the RDATA, for fields whose form depends on an earlier octet.
  [[nodiscard]] std::uint8_t octet(std::size_t offset) const noexcept {
    return data[start + offset];
  }
  /// The next `octets` octets, which must be there.
  ByteView take(std::size_t octets) noexcept {
    const ByteView taken = data.subspan(at, octets);
    at += octets;
    return taken;
  }
  ByteView take_rest() noexcept { return take(left()); }
  std::uint8_t take_u8() noexcept { return take(1)[0]; }
  std::uint16_t take_u16() noexcept { return load_be16(take(2).data()); }
  std::uint32_t take_u32() noexcept { return load_be32(take(4).data()); }
  /// Moves over `octets` octets; kTruncated when there are fewer.
  Status skip(std::size_t octets);
  /// Moves over a length octet and that many octets, at least `least` of them.
  Status skip_counted(std::size_t least = 0);
  /// Moves over all that is left, at least `least` octets.
  Status skip_rest(std::size_t least = 0);
};

/// Walks the words of one record and collects its wire form at the end of `out`.
class TextReader {
 public:
  TextReader(std::span<const Token> tokens, NameView origin, Bytes& out) noexcept
      : tokens_(tokens), origin_(origin), out_(out), start_(out.size()) {}

  [[nodiscard]] bool at_end() const noexcept { return at_ == tokens_.size(); }
  /// The next word, which may not be quoted (only character-strings may; RFC 1035 §5.1).
  Result<std::string_view> word();
  /// The next word, quoted or not.
  Result<Token> token();
  [[nodiscard]] const Token* peek() const noexcept { return at_end() ? nullptr : &tokens_[at_]; }
  void step() noexcept { ++at_; }
  [[nodiscard]] NameView origin() const noexcept { return origin_; }
  [[nodiscard]] Bytes& out() noexcept { return out_; }
  /// The octets of this RDATA collected so far.
  [[nodiscard]] ByteView written() const noexcept { return ByteView(out_).subspan(start_); }

 private:
  std::span<const Token> tokens_;
  std::size_t at_ = 0;
  NameView origin_;
  Bytes& out_;
  std::size_t start_;
};

/// The operations of one kind of field.
struct FieldCodec {
  /// Reads the presentation format and appends the wire form. A field that takes "the rest" and may
  /// be empty accepts the end of the text.
  Status (*read)(TextReader& text);
  /// Checks the wire form and moves past it.
  Status (*check)(WireReader& wire);
  /// Appends checked octets in presentation format. False when they have none: the whole RDATA is
  /// then printed in the form of RFC 3597 §5.
  bool (*print)(WireReader& wire, std::string& text);
};

/// FieldCodec::read of a field that is one word: `take` appends its wire form.
template <Status (*take)(std::string_view word, Bytes& out)>
Status read_word(TextReader& text) {
  auto word = text.word();
  if (!word) return pass(word);
  return take(*word, text.out());
}

/// FieldCodec::check of a field that always has as many octets.
template <std::size_t Octets>
Status check_octets(WireReader& wire) {
  return wire.skip(Octets);
}

/// Treatment of the domain name in a field (RFC 3597 §4, RFC 4034 §6.2 with RFC 6840 §5.1).
enum class NameRule : std::uint8_t {
  kPlain,     ///< never compressed, case kept; also for fields that hold no name
  kFold,      ///< never compressed, lower case in canonical form
  kExpand,    ///< may arrive compressed, lower case in canonical form
  kCompress,  ///< compressed when sent, may arrive compressed, lower case in canonical form
};

struct Field {
  const char* name;
  const FieldCodec* codec;
  NameRule rule = NameRule::kPlain;

  [[nodiscard]] constexpr bool expands() const noexcept { return rule >= NameRule::kExpand; }
  [[nodiscard]] constexpr bool folds() const noexcept { return rule >= NameRule::kFold; }
};

/// The fields of one type's RDATA, in wire order.
struct RdataDescriptor {
  static constexpr std::size_t kMaxFields = 9;  // RRSIG
  RRType type;
  std::array<Field, kMaxFields> slots{};
  /// True if a name in the RDATA may arrive compressed (RFC 3597 §4).
  bool expands = false;
  /// True if canonical form has a name in lower case (RFC 4034 §6.2).
  bool folds = false;
  std::uint8_t count = 0;

  [[nodiscard]] std::span<const Field> fields() const noexcept { return {slots.data(), count}; }
};

/// The row of `type`; null for types that are opaque octets (RFC 3597).
[[nodiscard]] const RdataDescriptor* find_descriptor(RRType type) noexcept;
/// All rows, for tests that walk every type.
[[nodiscard]] std::span<const RdataDescriptor> all_descriptors() noexcept;

/// The kinds of field, each with the types that use it.
namespace field {

// rdata_numbers.cpp
extern const FieldCodec kU8, kU16, kU32, kU64;
extern const FieldCodec kTtl;            // SOA timers: 1h30m or seconds
extern const FieldCodec kTime;           // RRSIG: YYYYMMDDHHMMSS (RFC 4034 §3.2)
extern const FieldCodec kZero16;         // RKEY's flags
extern const FieldCodec kType;           // RRSIG, DSYNC: mnemonic of a type
extern const FieldCodec kAlgorithm;      // DNSSEC algorithm, printed as a number
extern const FieldCodec kAlgorithmName;  // CERT: the algorithm printed as a mnemonic
extern const FieldCodec kDigestType;     // DS
extern const FieldCodec kCertType;
extern const FieldCodec kKeyFlags;
extern const FieldCodec kKeyProtocol;
extern const FieldCodec kNsec3Hash;
extern const FieldCodec kDsyncScheme;

// rdata_addresses.cpp
extern const FieldCodec kIpv4, kIpv6;
extern const FieldCodec kEui48, kEui64;  // RFC 7043
extern const FieldCodec kLocator64;      // NID, L64 (RFC 6742)
extern const FieldCodec kNsap;           // RFC 1706
extern const FieldCodec kAtma;

// rdata_prefixes.cpp
extern const FieldCodec kA6Suffix;  // RFC 2874 §3.1.1
extern const FieldCodec kApl;       // RFC 3123

// rdata_names.cpp
extern const FieldCodec kName;
extern const FieldCodec kA6Name;  // absent when the prefix length is 0

// rdata_strings.cpp
extern const FieldCodec kString, kStrings;
extern const FieldCodec kOptionalString;  // ISDN's subaddress
extern const FieldCodec kDigits;          // X25
extern const FieldCodec kQuotedRest;      // URI's target, CAA's value: no length octet
extern const FieldCodec kCaaTag;

// rdata_naptr.cpp
extern const FieldCodec kNaptrRegexp;

// rdata_blobs.cpp
extern const FieldCodec kBase64, kBase64OrEmpty, kHex;
extern const FieldCodec kKeyData;    // KEY: absent when the flags say NOKEY
extern const FieldCodec kPublicKey;  // DNSKEY
extern const FieldCodec kSignature;  // SIG
extern const FieldCodec kRrsigSignature;
extern const FieldCodec kIpsecKey;      // may be absent when the algorithm is 0
extern const FieldCodec kDigest;        // DS: length by digest type
extern const FieldCodec kFingerprint;   // SSHFP: length by fingerprint type
extern const FieldCodec kZonemdDigest;  // length by hash algorithm
extern const FieldCodec kSalt;          // NSEC3: length octet, hex or "-"
extern const FieldCodec kNextHash;      // NSEC3: length octet, base32hex
extern const FieldCodec kDoaData;       // base 64 or "-"
extern const FieldCodec kOpaque;        // no presentation format of its own

// rdata_bitmaps.cpp
extern const FieldCodec kTypeBitmap, kTypeBitmapOrEmpty;
extern const FieldCodec kNxtBitmap;  // RFC 2535 §5.2
extern const FieldCodec kWksPorts;   // RFC 1035 §3.4.2: protocol and ports

// rdata_gateways.cpp
extern const FieldCodec kIpsecGateway;  // RFC 4025 §2.5: form by the gateway type before
extern const FieldCodec kAmtRelay;      // RFC 8777 §4.2: discovery bit, type, relay
extern const FieldCodec kHip;           // RFC 8005 §5

// rdata_loc.cpp, rdata_svcb.cpp
extern const FieldCodec kLoc;
extern const FieldCodec kSvcParams;

}  // namespace field

/// Building blocks that several fields use.
/// @{

/// Appends the name `text`; relative names get `origin`. No heap besides `out`.
Status append_name(std::string_view text, NameView origin, Bytes& out);
/// Checks and skips an uncompressed name.
Status check_name(WireReader& wire);
/// Takes a checked name.
NameView take_name(WireReader& wire) noexcept;

/// Appends the octets of a word with its escapes resolved, at most `max`.
Status append_unescaped(std::string_view text, std::size_t max, Bytes& out);
/// Appends a length octet and up to 255 octets of a word with escapes.
Status append_character_string(std::string_view text, Bytes& out);
/// Sets the length octet at `length_at` to the number of octets after it; at most 255.
Status set_length(Bytes& out, std::size_t length_at);
/// Appends `octets` in quotes, escaped as BIND does.
void print_quoted(ByteView octets, std::string& text);

/// Reads the word as a number of at most `max`.
Result<std::uint64_t> read_number(TextReader& text, std::uint64_t max);
void print_number(std::uint64_t value, std::string& text);

/// All words left as base 64 or hex. `least` is the smallest number of octets they may give.
Status read_base64_rest(TextReader& text, std::size_t least);
Status read_hex_rest(TextReader& text, std::size_t least);

/// @}

}  // namespace pando::dns
