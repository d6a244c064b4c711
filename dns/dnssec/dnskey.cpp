#include "dns/dnssec/dnskey.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <algorithm>
#include <array>

namespace pando::dns {

namespace {

template <class T, void (*kFree)(T*)>
struct Freer {
  void operator()(T* object) const noexcept { kFree(object); }
};
template <class T, void (*kFree)(T*)>
using Owned = std::unique_ptr<T, Freer<T, kFree>>;

using Number = Owned<BIGNUM, BN_free>;
using KeyContext = Owned<EVP_PKEY_CTX, EVP_PKEY_CTX_free>;
using DigestContext = Owned<EVP_MD_CTX, EVP_MD_CTX_free>;
using Parameters = Owned<OSSL_PARAM, OSSL_PARAM_free>;
using ParameterBuilder = Owned<OSSL_PARAM_BLD, OSSL_PARAM_BLD_free>;
using EcdsaSignature = Owned<ECDSA_SIG, ECDSA_SIG_free>;

enum class Family : std::uint8_t { kRsa, kEcdsa, kEddsa };

struct AlgorithmRow {
  std::uint8_t number;
  Family family;
  const char* name;           // group of the curve, or the type of an EdDSA key
  const EVP_MD* (*digest)();  // null: the algorithm has its own
  std::size_t octets;         // of a coordinate (ECDSA) or of a key (EdDSA)
};

constexpr std::array<AlgorithmRow, 8> kAlgorithms = {{
    {5, Family::kRsa, nullptr, &EVP_sha1, 0},
    {7, Family::kRsa, nullptr, &EVP_sha1, 0},
    {8, Family::kRsa, nullptr, &EVP_sha256, 0},
    {10, Family::kRsa, nullptr, &EVP_sha512, 0},
    {13, Family::kEcdsa, "P-256", &EVP_sha256, 32},
    {14, Family::kEcdsa, "P-384", &EVP_sha384, 48},
    {15, Family::kEddsa, "ED25519", nullptr, 32},
    {16, Family::kEddsa, "ED448", nullptr, 57},
}};

const AlgorithmRow* find_algorithm(std::uint8_t number) noexcept {
  const auto found = std::find_if(kAlgorithms.begin(), kAlgorithms.end(),
                                  [&](const AlgorithmRow& row) { return row.number == number; });
  return found == kAlgorithms.end() ? nullptr : &*found;
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

/// RFC 6605 §4: an RRSIG has the two numbers side by side; OpenSSL needs DER.
Bytes ecdsa_der(ByteView signature, std::size_t octets) {
  if (signature.size() != 2 * octets) return {};
  const EcdsaSignature pair(ECDSA_SIG_new());
  Number r = number_of(signature.first(octets));
  Number s = number_of(signature.subspan(octets));
  if (!pair || !r || !s || ECDSA_SIG_set0(pair.get(), r.get(), s.get()) != 1) return {};
  static_cast<void>(r.release());
  static_cast<void>(s.release());
  const int size = i2d_ECDSA_SIG(pair.get(), nullptr);
  if (size <= 0) return {};
  Bytes der(static_cast<std::size_t>(size));
  std::uint8_t* out = der.data();
  i2d_ECDSA_SIG(pair.get(), &out);
  return der;
}

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

bool is_supported_algorithm(std::uint8_t algorithm) noexcept {
  return find_algorithm(algorithm) != nullptr;
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
  const AlgorithmRow* row = find_algorithm(key.algorithm);
  if (row == nullptr) return std::nullopt;
  Key made;
  switch (row->family) {
    case Family::kRsa:
      made = make_rsa(key.key);
      break;
    case Family::kEcdsa:
      made = make_ecdsa(row->name, row->octets, key.key);
      break;
    case Family::kEddsa:
      if (key.key.size() == row->octets)
        made.reset(EVP_PKEY_new_raw_public_key_ex(nullptr, row->name, nullptr, key.key.data(),
                                                  key.key.size()));
      break;
  }
  if (!made) return std::nullopt;
  return SignatureVerifier(key.algorithm, std::move(made));
}

bool SignatureVerifier::verify(ByteView data, ByteView signature) const {
  const AlgorithmRow& row = *find_algorithm(algorithm_);
  const bool is_ecdsa = row.family == Family::kEcdsa;
  const Bytes der = is_ecdsa ? ecdsa_der(signature, row.octets) : Bytes();
  const ByteView form = is_ecdsa ? ByteView(der) : signature;
  if (form.empty()) return false;
  const DigestContext context(EVP_MD_CTX_new());
  const EVP_MD* digest = row.digest == nullptr ? nullptr : row.digest();
  return context &&
         EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key_.get()) == 1 &&
         EVP_DigestVerify(context.get(), form.data(), form.size(), data.data(), data.size()) == 1;
}

}  // namespace pando::dns
