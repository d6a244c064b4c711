#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "dns/dnssec/signing_key.h"
#include "dns/name.h"

/// Files with a zone's private key, as this project and other servers write them:
///
/// - PKCS #8 in PEM (RFC 7468 §10): ours and Knot's. Before the key, ours have the DNSKEY record.
/// - "Private-key-format: v1": BIND's and ldns's `K*.private`, whose DNSKEY record is in `K*.key`,
///   and the output of PowerDNS's `pdnsutil export-zone-key`.
///
/// Errors name file, line and cause. Neither they nor anything else here repeats a file's text.
namespace pando::dns {

/// Larger files are no key files: a key of RSA-4096 in PEM has 3.3 kB.
inline constexpr std::size_t kMaxKeyFileBytes = 64 * 1024;

/// The DNSKEY record that a file has beside its private key.
struct KeyRecord {
  Name zone;
  std::uint16_t flags = 0;
  Bytes rdata;
};

/// A key of a file.
struct ZoneKey {
  SigningKey key;  ///< with the flags of `record`; without a record, those of a key that signs all
  std::optional<KeyRecord> record;
};

/// One file's text and the name that messages have for it.
struct KeyFileText {
  std::string_view text;
  std::string_view path;
};

/// Flags of a key whose file does not tell them: zone key with SEP, which signs all by itself.
inline constexpr std::uint16_t kUsualKeyFlags = kZoneKeyFlag | kSepFlag;

/// Whether a key file of this mode (stat(2)) may be used. kDenied: its group may change it, or
/// others may do anything with it.
Status check_key_file_mode(std::uint32_t mode, std::string_view path);

/// Reads a private key's text; `record` is the text of its `.key` file, if there is one.
/// kInvalid: the texts are in no form above, have two keys, or do not belong together; the key is
/// revoked, no zone key, or RSA of other sizes than a SigningKey may have. kUnsupported: encrypted,
/// in a hardware module, or of an algorithm that does not sign here.
Result<ZoneKey> parse_key_file(const KeyFileText& file, const std::optional<KeyFileText>& record);

/// Reads a key file at `path` and, where its name is BIND's, the record beside it. Any of BIND's
/// three names does: `Kexample.org.+013+12345` with `.key`, with `.private`, or with neither.
/// Beyond the errors above: kIo, kDenied (see check_key_file_mode()).
Result<ZoneKey> read_key_file(const std::string& path);

/// The text of a key file of ours. The caller holds a WipeFreed.
Result<std::string> key_file_text(const SigningKey& key, NameView zone);

/// The name of a key's files: "Kexample.org.+013+12345", as BIND's tools make it. Octets that could
/// mislead in a file's name are escaped.
[[nodiscard]] std::string key_file_stem(const SigningKey& key, NameView zone);

}  // namespace pando::dns
