#include "dns/nsec3_hash.h"

#include <openssl/evp.h>

namespace pando::dns {

void Nsec3Hasher::FreeDigest::operator()(EVP_MD* digest) const noexcept { EVP_MD_free(digest); }
void Nsec3Hasher::FreeContext::operator()(EVP_MD_CTX* context) const noexcept {
  EVP_MD_CTX_free(context);
}

Nsec3Hasher::Nsec3Hasher() noexcept
    : sha1_(EVP_MD_fetch(nullptr, "SHA1", nullptr)), context_(EVP_MD_CTX_new()) {}
Nsec3Hasher::~Nsec3Hasher() = default;
Nsec3Hasher::Nsec3Hasher(Nsec3Hasher&&) noexcept = default;
Nsec3Hasher& Nsec3Hasher::operator=(Nsec3Hasher&&) noexcept = default;

bool Nsec3Hasher::digest_once(ByteView data, ByteView salt, Nsec3Hash& out) noexcept {
  return EVP_DigestInit_ex2(context_.get(), sha1_.get(), nullptr) == 1 &&
         EVP_DigestUpdate(context_.get(), data.data(), data.size()) == 1 &&
         EVP_DigestUpdate(context_.get(), salt.data(), salt.size()) == 1 &&
         EVP_DigestFinal_ex(context_.get(), out.data(), nullptr) == 1;
}

bool Nsec3Hasher::hash(NameView name, std::uint16_t iterations, ByteView salt,
                       Nsec3Hash& out) noexcept {
  if (!sha1_ || !context_ || iterations > kMaxNsec3Iterations || salt.size() > kMaxSaltOctets)
    return false;
  const Name folded = Name(name).folded();  // RFC 5155 §5: the owner name in canonical form
  if (!digest_once(folded.view().bytes(), salt, out)) return false;
  for (std::uint16_t i = 0; i < iterations; ++i)
    if (!digest_once(out, salt, out)) return false;
  return true;
}

}  // namespace pando::dns
