#include "dns/tsig/tsig_mac.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include <algorithm>

#include "base/words.h"

namespace pando::dns {

namespace {

constexpr std::array<TsigAlgorithmRow, 9> kTsigAlgorithms = {{
    {TsigAlgorithm::kMd5, "hmac-md5", "hmac-md5.sig-alg.reg.int.", "MD5", 16, 16},
    {TsigAlgorithm::kSha1, "hmac-sha1", "hmac-sha1.", "SHA1", 20, 20},
    {TsigAlgorithm::kSha224, "hmac-sha224", "hmac-sha224.", "SHA224", 28, 28},
    {TsigAlgorithm::kSha256, "hmac-sha256", "hmac-sha256.", "SHA256", 32, 32},
    {TsigAlgorithm::kSha384, "hmac-sha384", "hmac-sha384.", "SHA384", 48, 48},
    {TsigAlgorithm::kSha512, "hmac-sha512", "hmac-sha512.", "SHA512", 64, 64},
    {TsigAlgorithm::kSha256_128, "hmac-sha256-128", "hmac-sha256.", "SHA256", 32, 16},
    {TsigAlgorithm::kSha384_192, "hmac-sha384-192", "hmac-sha384.", "SHA384", 48, 24},
    {TsigAlgorithm::kSha512_256, "hmac-sha512-256", "hmac-sha512.", "SHA512", 64, 32},
}};

EVP_MAC* hmac() {
  static EVP_MAC* const mac = EVP_MAC_fetch(nullptr, "HMAC", nullptr);  // never freed
  PANDO_ASSERT(mac != nullptr);
  return mac;
}

}  // namespace

const TsigAlgorithmRow& tsig_algorithm_row(TsigAlgorithm algorithm) noexcept {
  const auto index = static_cast<std::size_t>(algorithm);
  PANDO_ASSERT(index < kTsigAlgorithms.size() && kTsigAlgorithms[index].algorithm == algorithm);
  return kTsigAlgorithms[index];
}

Result<TsigAlgorithm> tsig_algorithm_from_text(std::string_view text) {
  std::string_view bare = text;
  if (bare.ends_with('.')) bare.remove_suffix(1);
  for (const TsigAlgorithmRow& row : kTsigAlgorithms) {
    const std::string_view wire(row.wire_text);
    if (equal_but_for_case(bare, row.text) ||
        equal_but_for_case(bare, wire.substr(0, wire.size() - 1)))
      return row.algorithm;
  }
  return fail(Errc::kInvalid, "unknown TSIG algorithm '{}'", text);
}

std::string to_text(TsigAlgorithm algorithm) { return tsig_algorithm_row(algorithm).text; }

void HmacContext::Free::operator()(EVP_MAC_CTX* context) const noexcept {
  EVP_MAC_CTX_free(context);
}

HmacContext::HmacContext(const char* digest, ByteView secret) : context_(EVP_MAC_CTX_new(hmac())) {
  const OSSL_PARAM params[] = {
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, const_cast<char*>(digest), 0),
      OSSL_PARAM_construct_end()};
  if (!context_ || EVP_MAC_init(context_.get(), secret.data(), secret.size(), params) != 1)
    context_.reset();
}

// The digest was accepted when the key was made; from here on OpenSSL can only run out of memory.
HmacContext HmacContext::duplicate() const {
  HmacContext copy;
  copy.context_.reset(EVP_MAC_CTX_dup(context_.get()));
  PANDO_ASSERT(copy.context_ != nullptr);
  return copy;
}

void HmacContext::update(ByteView octets) {
  PANDO_ASSERT(EVP_MAC_update(context_.get(), octets.data(), octets.size()) == 1);
}

TsigMac HmacContext::finish(std::size_t octets) {
  TsigMac mac;
  std::size_t size = 0;
  PANDO_ASSERT(EVP_MAC_final(context_.get(), mac.octets.data(), &size, mac.octets.size()) == 1);
  mac.size = std::min(octets, size);
  return mac;
}

}  // namespace pando::dns
