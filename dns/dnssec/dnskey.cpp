#include "dns/dnssec/dnskey.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>

#include "dns/dnssec/key_algorithm.h"
#include "dns/dnssec/openssl_owned.h"

namespace pando::dns {

namespace {

using Number = OpensslOwned<BIGNUM, BN_free>;
using Parameters = OpensslOwned<OSSL_PARAM, OSSL_PARAM_free>;
using ParameterBuilder = OpensslOwned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;

/// Null: an unknown type of a DS record's digest, or 3, which is GOST and which nobody uses.
const char* digest_name(std::uint8_t digest_type) noexcept {
  constexpr const char* kNames[] = {nullptr, "SHA1", "SHA256", nullptr, "SHA384"};  // RFC 6605 §2
  return digest_type < std::size(kNames) ? kNames[digest_type] : nullptr;
}

Number number_of(ByteView octets) {
  return Number(BN_bin2bn(octets.data(), static_cast<int>(octets.size()), nullptr));
}

/// The public key of `type` from its parameters; null for invalid ones.
EVP_PKEY* key_from(const char* type, OSSL_PARAM_BLD* builder) {
  const Parameters parameters(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) != 1) return nullptr;
  if (EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, parameters.get()) != 1)
    return nullptr;
  return key;
}

/// Most octets of an ECDSA signature in DER: P-384, with an octet 0 before both numbers.
constexpr std::size_t kMaxDerOctets = 2 + 2 * (2 + 1 + 48);
static_assert(kMaxDerOctets - 2 < 128, "a length below 128 has one octet (X.690 §8.1.3.4)");

/// An ECDSA signature in DER: a sequence of two integers. Nothing is allocated, as this is done for
/// each signature.
class EcdsaDer {
 public:
  /// RFC 6605 §4: an RRSIG has the two numbers side by side.
  EcdsaDer(ByteView signature, std::size_t octets) noexcept {
    put_integer(signature.first(octets));
    put_integer(signature.subspan(octets));
    octets_[0] = 0x30;
    octets_[1] = static_cast<std::uint8_t>(size_ - 2);
  }
  [[nodiscard]] ByteView view() const noexcept { return ByteView(octets_).first(size_); }

 private:
  /// X.690 §8.3: as few octets as possible, and the first bit says that a number is negative.
  void put_integer(ByteView number) noexcept {
    while (number.size() > 1 && number[0] == 0) number = number.subspan(1);
    const bool is_padded = (number[0] & 0x80U) != 0;
    octets_[size_++] = 0x02;
    octets_[size_++] = static_cast<std::uint8_t>(number.size() + (is_padded ? 1 : 0));
    if (is_padded) octets_[size_++] = 0;
    std::ranges::copy(number, octets_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += number.size();
  }

  std::array<std::uint8_t, kMaxDerOctets> octets_{};
  std::size_t size_ = 2;
};

}  // namespace

std::optional<DnskeyFields> parse_dnskey(ByteView rdata) noexcept {
  constexpr std::size_t kFixedOctets = 4;
  if (rdata.size() < kFixedOctets) return std::nullopt;
  return DnskeyFields{load_be16(rdata.data()), rdata[2], rdata[3], rdata.subspan(kFixedOctets)};
}

std::uint16_t key_tag(ByteView dnskey_rdata) noexcept {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < dnskey_rdata.size(); ++i)
    sum += i % 2 == 0 ? static_cast<std::uint32_t>(dnskey_rdata[i]) << 8 : dnskey_rdata[i];
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

std::optional<DsFields> parse_ds(ByteView rdata) noexcept {
  constexpr std::size_t kFixedOctets = 4;
  if (rdata.size() <= kFixedOctets) return std::nullopt;
  return DsFields{static_cast<std::uint16_t>(rdata[0] << 8U | rdata[1]), rdata[2], rdata[3],
                  rdata.subspan(kFixedOctets)};
}

bool is_supported_digest(std::uint8_t digest_type) noexcept {
  return digest_name(digest_type) != nullptr;
}

std::optional<Bytes> make_ds(NameView owner, ByteView dnskey_rdata, std::uint8_t digest_type) {
  const char* const name = digest_name(digest_type);
  const auto key = parse_dnskey(dnskey_rdata);
  if (name == nullptr || !key) return std::nullopt;
  const Name folded = Name(owner).folded();
  Bytes octets(folded.view().bytes().begin(), folded.view().bytes().end());
  append(octets, dnskey_rdata);
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
  std::size_t size = 0;
  if (EVP_Q_digest(nullptr, name, nullptr, octets.data(), octets.size(), digest.data(), &size) != 1)
    return std::nullopt;
  Bytes rdata;
  append_be16(rdata, key_tag(dnskey_rdata));
  rdata.push_back(key->algorithm);
  rdata.push_back(digest_type);
  append(rdata, ByteView(digest.data(), size));
  return rdata;
}

bool matches(const DsFields& ds, NameView owner, ByteView dnskey_rdata) {
  const auto key = parse_dnskey(dnskey_rdata);
  if (!key || !key->is_zone_key() || key->is_revoked() || key->algorithm != ds.algorithm ||
      key_tag(dnskey_rdata) != ds.key_tag)
    return false;
  const auto made = make_ds(owner, dnskey_rdata, ds.digest_type);
  return made && std::ranges::equal(ds.digest, parse_ds(*made)->digest);
}

bool is_supported_algorithm(std::uint8_t algorithm) noexcept {
  return find_key_algorithm(algorithm) != nullptr;
}

void SignatureVerifier::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}
void SignatureVerifier::Free::operator()(evp_md_st* digest) const noexcept { EVP_MD_free(digest); }
void SignatureVerifier::Free::operator()(evp_pkey_ctx_st* context) const noexcept {
  EVP_PKEY_CTX_free(context);
}
void SignatureVerifier::Free::operator()(evp_pkey_st* key) const noexcept { EVP_PKEY_free(key); }

/// RFC 3110 §2: the exponent's length in one octet, or 0 and two octets; exponent; modulus.
SignatureVerifier::Key SignatureVerifier::make_rsa(ByteView octets) {
  constexpr std::size_t kMaxExponentOctets = 8, kMinModulusOctets = 64, kMaxModulusOctets = 512;
  if (octets.size() < 3) return nullptr;
  const bool is_long = octets[0] == 0;
  const std::size_t length = is_long ? load_be16(octets.data() + 1) : octets[0];
  const ByteView rest = octets.subspan(is_long ? 3 : 1);
  if (length == 0 || length > kMaxExponentOctets || rest.size() < length) return nullptr;
  const ByteView modulus = rest.subspan(length);
  if (modulus.size() < kMinModulusOctets || modulus.size() > kMaxModulusOctets) return nullptr;
  const Number e = number_of(rest.first(length)), n = number_of(modulus);
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (!e || !n || !builder ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1)
    return nullptr;
  return Key(key_from("RSA", builder.get()));
}

/// RFC 6605 §4: the two coordinates. OpenSSL needs the octet for "uncompressed" before them, and
/// refuses a point outside the curve.
SignatureVerifier::Key SignatureVerifier::make_ecdsa(const char* group, std::size_t field_octets,
                                                     ByteView octets) {
  if (octets.size() != 2 * field_octets) return nullptr;
  Bytes point = {0x04};
  append(point, octets);
  const ParameterBuilder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, group, 0) != 1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1)
    return nullptr;
  return Key(key_from("EC", builder.get()));
}

std::optional<SignatureVerifier> SignatureVerifier::make(const DnskeyFields& key) {
  const KeyAlgorithm* row = find_key_algorithm(key.algorithm);
  if (row == nullptr) return std::nullopt;
  Key made;
  switch (row->family) {
    case KeyFamily::kRsa:
      made = make_rsa(key.key);
      break;
    case KeyFamily::kEcdsa:
      made = make_ecdsa(row->name, row->octets, key.key);
      break;
    case KeyFamily::kEddsa:
      if (key.key.size() == row->octets)
        made.reset(EVP_PKEY_new_raw_public_key_ex(nullptr, row->name, nullptr, key.key.data(),
                                                  key.key.size()));
      break;
  }
  SignatureVerifier verifier;
  if (!made || !verifier.prepare(row->digest, made)) return std::nullopt;
  if (row->family == KeyFamily::kEcdsa) verifier.ecdsa_octets_ = row->octets;
  return verifier;
}

/// The contexts keep the key. RSA's padding is that of PKCS #1 v1.5 unless told otherwise.
bool SignatureVerifier::prepare(const char* digest, const Key& key) {
  hashing_.reset(EVP_MD_CTX_new());
  if (!hashing_) return false;
  if (digest == nullptr)
    return EVP_DigestVerifyInit(hashing_.get(), nullptr, nullptr, nullptr, key.get()) == 1;
  digest_.reset(EVP_MD_fetch(nullptr, digest, nullptr));
  verifying_.reset(EVP_PKEY_CTX_new_from_pkey(nullptr, key.get(), nullptr));
  return digest_ && verifying_ && EVP_PKEY_verify_init(verifying_.get()) == 1 &&
         EVP_PKEY_CTX_set_signature_md(verifying_.get(), digest_.get()) == 1;
}

bool SignatureVerifier::verify(ByteView data, ByteView signature) {
  if (signature.empty()) return false;
  if (ecdsa_octets_ != 0)
    return signature.size() == 2 * ecdsa_octets_ &&
           verify_digest(data, EcdsaDer(signature, ecdsa_octets_).view());
  if (verifying_) return verify_digest(data, signature);
  // Null stands for the key of the time before.
  return EVP_DigestVerifyInit(hashing_.get(), nullptr, nullptr, nullptr, nullptr) == 1 &&
         EVP_DigestVerify(hashing_.get(), signature.data(), signature.size(), data.data(),
                          data.size()) == 1;
}

bool SignatureVerifier::verify_digest(ByteView data, ByteView signature) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> hash{};
  unsigned size = 0;
  return EVP_DigestInit_ex2(hashing_.get(), digest_.get(), nullptr) == 1 &&
         EVP_DigestUpdate(hashing_.get(), data.data(), data.size()) == 1 &&
         EVP_DigestFinal_ex(hashing_.get(), hash.data(), &size) == 1 &&
         EVP_PKEY_verify(verifying_.get(), signature.data(), signature.size(), hash.data(), size) ==
             1;
}

}  // namespace pando::dns
