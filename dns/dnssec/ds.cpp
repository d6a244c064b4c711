#include "dns/dnssec/ds.h"

#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "dns/dnssec/dnskey.h"

namespace pando::dns {

namespace {

constexpr std::uint8_t kSha1 = 1;
constexpr std::uint8_t kSha256 = 2;
constexpr std::uint8_t kSha384 = 4;  // RFC 6605 §2; 3 is GOST, which nobody uses

}  // namespace

std::optional<DsFields> parse_ds(ByteView rdata) noexcept {
  constexpr std::size_t kFixedOctets = 4;
  if (rdata.size() <= kFixedOctets) return std::nullopt;
  return DsFields{static_cast<std::uint16_t>(rdata[0] << 8U | rdata[1]), rdata[2], rdata[3],
                  rdata.subspan(kFixedOctets)};
}

bool is_supported_digest(std::uint8_t digest_type) noexcept {
  return digest_type == kSha1 || digest_type == kSha256 || digest_type == kSha384;
}

bool matches(const DsFields& ds, NameView owner, ByteView dnskey_rdata) {
  const auto key = parse_dnskey(dnskey_rdata);
  if (!key || !key->is_zone_key() || key->is_revoked() || key->algorithm != ds.algorithm ||
      key_tag(dnskey_rdata) != ds.key_tag)
    return false;
  const Name folded = Name(owner).folded();
  Bytes octets(folded.view().bytes().begin(), folded.view().bytes().end());
  octets.insert(octets.end(), dnskey_rdata.begin(), dnskey_rdata.end());
  std::array<std::uint8_t, SHA384_DIGEST_LENGTH> digest{};
  std::size_t size = 0;
  switch (ds.digest_type) {
    case kSha1:
      SHA1(octets.data(), octets.size(), digest.data());
      size = SHA_DIGEST_LENGTH;
      break;
    case kSha256:
      SHA256(octets.data(), octets.size(), digest.data());
      size = SHA256_DIGEST_LENGTH;
      break;
    case kSha384:
      SHA384(octets.data(), octets.size(), digest.data());
      size = SHA384_DIGEST_LENGTH;
      break;
    default:
      return false;
  }
  return std::ranges::equal(ds.digest, ByteView(digest.data(), size));
}

}  // namespace pando::dns
