#include "dns/dnssec/zone_digest.h"

#include <openssl/evp.h>

#include "base/result.h"

namespace pando::dns {

std::optional<ZonemdFields> parse_zonemd(ByteView rdata) noexcept {
  constexpr std::size_t kFixedOctets = 6, kShortestDigest = 12;
  if (rdata.size() < kFixedOctets + kShortestDigest) return std::nullopt;
  return ZonemdFields{load_be32(rdata.data()), rdata[4], rdata[5], rdata.subspan(kFixedOctets)};
}

void ZoneDigest::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}

std::optional<ZoneDigest> ZoneDigest::make(std::uint8_t hash) {
  const EVP_MD* const kinds[] = {EVP_sha384(), EVP_sha512()};
  if (hash < 1 || hash > 2) return std::nullopt;
  ZoneDigest digest(EVP_MD_CTX_new());
  PANDO_ASSERT(digest.context_ != nullptr &&
               EVP_DigestInit_ex(digest.context_.get(), kinds[hash - 1], nullptr) == 1);
  return digest;
}

void ZoneDigest::update(ByteView octets) {
  PANDO_ASSERT(EVP_DigestUpdate(context_.get(), octets.data(), octets.size()) == 1);
}

Bytes ZoneDigest::finish() {
  Bytes digest(EVP_MAX_MD_SIZE);
  unsigned size = 0;
  PANDO_ASSERT(EVP_DigestFinal_ex(context_.get(), digest.data(), &size) == 1);
  digest.resize(size);
  return digest;
}

}  // namespace pando::dns
