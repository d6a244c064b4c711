#include "dns/dnssec/signing_key.h"

#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>
#include <climits>

#include "base/secret.h"
#include "dns/dnssec/key_algorithm.h"
#include "dns/dnssec/openssl_owned.h"

namespace pando::dns {

namespace {

using SecretNumber = OpensslOwned<BIGNUM, BN_clear_free>;
using Curve = OpensslOwned<EC_GROUP, EC_GROUP_free>;
using CurvePoint = OpensslOwned<EC_POINT, EC_POINT_free>;
using MemoryBio = OpensslOwned<BIO, BIO_free_all>;

constexpr std::size_t kMaxRsaExponentOctets = 8;  // as SignatureVerifier takes it
constexpr std::uint8_t kDnskeyProtocol = 3;       // RFC 4034 §2.1.2

SecretNumber secret_number(ByteView octets) {
  SecretNumber number(BN_secure_new());
  if (number && BN_bin2bn(octets.data(), static_cast<int>(octets.size()), number.get()) == nullptr)
    number.reset();
  return number;
}

/// Parameters of a key for EVP_PKEY_fromdata(), in memory of ours: OpenSSL's builder would free its
/// copies as they are.
class KeyParameters {
 public:
  /// Numbers have the byte order of the host there.
  void add_number(const char* name, ByteView big_endian) {
    Bytes& octets = values_.emplace_back(big_endian.rbegin(), big_endian.rend());
    parameters_.push_back(OSSL_PARAM_construct_BN(name, octets.data(), octets.size()));
  }
  void add_octets(const char* name, ByteView value) {
    Bytes& octets = values_.emplace_back(value.begin(), value.end());
    parameters_.push_back(OSSL_PARAM_construct_octet_string(name, octets.data(), octets.size()));
  }
  void add_text(const char* name, const char* text) {
    parameters_.push_back(OSSL_PARAM_construct_utf8_string(name, const_cast<char*>(text), 0));
  }
  /// Null for invalid numbers.
  [[nodiscard]] EVP_PKEY* make(const char* type) {
    parameters_.push_back(OSSL_PARAM_construct_end());
    const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
    EVP_PKEY* key = nullptr;
    if (!context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
        EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_KEYPAIR, parameters_.data()) != 1)
      return nullptr;
    return key;
  }

 private:
  std::vector<Bytes> values_;
  std::vector<OSSL_PARAM> parameters_;
};
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "add_number() reverses the octets");

EVP_PKEY* rsa_from(const PrivateNumbers& numbers) {
  KeyParameters parameters;
  parameters.add_number(OSSL_PKEY_PARAM_RSA_N, numbers.modulus);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_E, numbers.public_exponent);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_D, numbers.private_exponent);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_FACTOR1, numbers.prime1);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_FACTOR2, numbers.prime2);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_EXPONENT1, numbers.exponent1);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_EXPONENT2, numbers.exponent2);
  parameters.add_number(OSSL_PKEY_PARAM_RSA_COEFFICIENT1, numbers.coefficient);
  return parameters.make("RSA");
}

/// The public point of a private number; empty for one outside the curve's range.
Bytes public_point(const char* curve_name, ByteView secret) {
  const Curve curve(EC_GROUP_new_by_curve_name(EC_curve_nist2nid(curve_name)));
  const SecretNumber number = secret_number(secret);
  if (!curve || !number || BN_is_zero(number.get()) ||
      BN_cmp(number.get(), EC_GROUP_get0_order(curve.get())) >= 0)
    return {};
  BN_set_flags(number.get(), BN_FLG_CONSTTIME);
  const CurvePoint point(EC_POINT_new(curve.get()));
  constexpr std::size_t kMaxPointOctets = 1 + 2 * 48;
  Bytes octets(kMaxPointOctets);
  if (!point ||
      EC_POINT_mul(curve.get(), point.get(), number.get(), nullptr, nullptr, nullptr) != 1)
    return {};
  octets.resize(EC_POINT_point2oct(curve.get(), point.get(), POINT_CONVERSION_UNCOMPRESSED,
                                   octets.data(), octets.size(), nullptr));
  return octets;
}

/// The number may have fewer octets than the curve's (older tools), or a leading octet of zero for
/// its sign (GnuTLS, hence Knot, for half of all keys).
EVP_PKEY* ecdsa_from(const KeyAlgorithm& row, ByteView secret) {
  if (secret.size() == row.octets + 1 && secret[0] == 0) secret = secret.subspan(1);
  if (secret.empty() || secret.size() > row.octets) return nullptr;
  const Bytes point = public_point(row.name, secret);
  if (point.empty()) return nullptr;
  KeyParameters parameters;
  parameters.add_text(OSSL_PKEY_PARAM_GROUP_NAME, row.name);
  parameters.add_octets(OSSL_PKEY_PARAM_PUB_KEY, point);
  parameters.add_number(OSSL_PKEY_PARAM_PRIV_KEY, secret);
  return parameters.make("EC");
}

EVP_PKEY* private_key_from(const KeyAlgorithm& row, const PrivateNumbers& numbers) {
  switch (row.family) {
    case KeyFamily::kRsa:
      return rsa_from(numbers);
    case KeyFamily::kEcdsa:
      return ecdsa_from(row, numbers.secret);
    case KeyFamily::kEddsa:
      if (numbers.secret.size() != row.octets) return nullptr;
      return EVP_PKEY_new_raw_private_key_ex(nullptr, row.name, nullptr, numbers.secret.data(),
                                             numbers.secret.size());
  }
  return nullptr;
}

/// RFC 3110 §2. Empty when the key has no such number.
Bytes rsa_public_octets(EVP_PKEY* key) {
  BIGNUM *n = nullptr, *e = nullptr;
  const bool found = EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_N, &n) == 1 &&
                     EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &e) == 1;
  const SecretNumber modulus(n), exponent(e);
  if (!found || static_cast<std::size_t>(BN_num_bytes(e)) > kMaxRsaExponentOctets) return {};
  Bytes octets(1 + static_cast<std::size_t>(BN_num_bytes(e) + BN_num_bytes(n)));
  octets[0] = static_cast<std::uint8_t>(BN_bn2bin(e, octets.data() + 1));
  BN_bn2bin(n, octets.data() + 1 + octets[0]);
  return octets;
}

/// The public key as a DNSKEY record has it.
Bytes public_octets(const KeyAlgorithm& row, EVP_PKEY* key) {
  std::size_t size = 0;
  Bytes octets(2 * row.octets + 1);
  switch (row.family) {
    case KeyFamily::kRsa:
      return rsa_public_octets(key);
    case KeyFamily::kEcdsa:  // RFC 6605 §4: without the octet for "uncompressed"
      if (EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_PUB_KEY, octets.data(),
                                          octets.size(), &size) != 1 ||
          size != octets.size() || octets[0] != 0x04)
        return {};
      octets.erase(octets.begin());
      return octets;
    case KeyFamily::kEddsa:
      size = row.octets;
      if (EVP_PKEY_get_raw_public_key(key, octets.data(), &size) != 1) return {};
      octets.resize(size);
      return octets;
  }
  return {};
}

std::string unsupported(std::uint8_t algorithm) {
  return fmt::format("algorithm {} cannot sign here: 8, 10, 13, 14, 15 and 16 can", algorithm);
}

Status check_rsa_bits(std::size_t bits) {
  if (bits < kMinRsaBits || bits > kMaxRsaBits)
    return fail(Errc::kInvalid, "an RSA key of {} bits: {} to {} are allowed", bits, kMinRsaBits,
                kMaxRsaBits);
  return {};
}

std::size_t bits_of(ByteView number) {
  while (!number.empty() && number[0] == 0) number = number.subspan(1);
  if (number.empty()) return 0;
  return 8 * number.size() - static_cast<std::size_t>(__builtin_clz(number[0])) + 24;
}

/// An ECDSA signature from DER, a sequence of two integers, as RFC 6605 §4 wants it: the numbers
/// side by side, each with leading zeros. False for other octets.
bool append_ecdsa(ByteView der, std::size_t octets, Bytes& out) {
  if (der.size() < 2 || der[0] != 0x30 || der[1] != der.size() - 2) return false;
  der = der.subspan(2);
  for (int i = 0; i < 2; ++i) {
    if (der.size() < 2 || der[0] != 0x02 || der[1] > der.size() - 2) return false;
    ByteView number = der.subspan(2, der[1]);
    der = der.subspan(2 + number.size());
    while (!number.empty() && number[0] == 0) number = number.subspan(1);
    if (number.size() > octets) return false;
    out.insert(out.end(), octets - number.size(), 0);
    append(out, number);
  }
  return der.empty();
}

}  // namespace

Result<SigningKey> SigningKey::generate(std::uint8_t algorithm, std::uint16_t flags,
                                        unsigned rsa_bits) {
  const KeyAlgorithm* row = find_key_algorithm(algorithm);
  if (row == nullptr || !row->may_sign)
    return fail(Errc::kUnsupported, "{}", unsupported(algorithm));
  if (row->family == KeyFamily::kRsa)
    if (auto fits = check_rsa_bits(rsa_bits); !fits) return pass(fits);
  EVP_PKEY* made = nullptr;
  switch (row->family) {
    case KeyFamily::kRsa:
      made = EVP_PKEY_Q_keygen(nullptr, nullptr, "RSA", static_cast<std::size_t>(rsa_bits));
      break;
    case KeyFamily::kEcdsa:
      made = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", row->name);
      break;
    case KeyFamily::kEddsa:
      made = EVP_PKEY_Q_keygen(nullptr, nullptr, row->name);
      break;
  }
  return finish(Key(made, EVP_PKEY_free), algorithm, flags);
}

Result<SigningKey> SigningKey::make(const PrivateNumbers& numbers, std::uint16_t flags) {
  const WipeFreed wipe_freed;
  const KeyAlgorithm* row = find_key_algorithm(numbers.algorithm);
  if (row == nullptr || !row->may_sign)
    return fail(Errc::kUnsupported, "{}", unsupported(numbers.algorithm));
  if (row->family == KeyFamily::kRsa)
    if (auto fits = check_rsa_bits(bits_of(numbers.modulus)); !fits) return pass(fits);
  return finish(Key(private_key_from(*row, numbers), EVP_PKEY_free), numbers.algorithm, flags);
}

/// A key that does not verify its own signature would make a zone that nobody can resolve.
Result<SigningKey> SigningKey::finish(Key key, std::uint8_t algorithm, std::uint16_t flags) {
  static constexpr std::string_view kProbe = "a signature that nobody keeps";
  const Bytes public_part =
      key ? public_octets(*find_key_algorithm(algorithm), key.get()) : Bytes();
  if (public_part.empty()) return fail(Errc::kInvalid, "the numbers are those of no key");
  Bytes dnskey;
  append_be16(dnskey, flags);
  dnskey.push_back(kDnskeyProtocol);
  dnskey.push_back(algorithm);
  append(dnskey, public_part);
  SigningKey made(std::move(key), std::move(dnskey));
  auto maker = SignatureMaker::make(made);
  if (!maker) return pass(maker);
  auto verifier = SignatureVerifier::make(*parse_dnskey(made.dnskey_));
  Bytes signature;
  if (!verifier || !maker->sign(bytes_of_text(kProbe), signature) ||
      !verifier->verify(bytes_of_text(kProbe), signature))
    return fail(Errc::kInvalid, "the private key does not belong to the public key");
  return made;
}

std::uint16_t SigningKey::revoked_tag() const {
  return with_flags(static_cast<std::uint16_t>(flags() | kRevokeFlag)).tag();
}

unsigned SigningKey::bits() const noexcept {
  return static_cast<unsigned>(EVP_PKEY_get_bits(key_.get()));
}

SigningKey SigningKey::with_flags(std::uint16_t flags) const {
  SigningKey other = *this;
  store_be16(other.dnskey_.data(), flags);
  return other;
}

Result<std::string> SigningKey::pkcs8_pem() const {
  const MemoryBio bio(BIO_new(BIO_s_mem()));  // overwritten when it is freed
  char* text = nullptr;
  if (!bio || PEM_write_bio_PKCS8PrivateKey(bio.get(), key_.get(), nullptr, nullptr, 0, nullptr,
                                            nullptr) != 1)
    return fail(Errc::kUnsupported, "OpenSSL does not write the key");
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

void SignatureMaker::Free::operator()(evp_md_ctx_st* context) const noexcept {
  EVP_MD_CTX_free(context);
}
void SignatureMaker::Free::operator()(evp_md_st* digest) const noexcept { EVP_MD_free(digest); }
void SignatureMaker::Free::operator()(evp_pkey_ctx_st* context) const noexcept {
  EVP_PKEY_CTX_free(context);
}

Result<SignatureMaker> SignatureMaker::make(const SigningKey& key) {
  const KeyAlgorithm& row = *find_key_algorithm(key.algorithm());
  SignatureMaker maker;
  if (!maker.prepare(row.digest, key.key_.get()))
    return fail(Errc::kUnsupported, "OpenSSL does not sign with algorithm {}", row.number);
  if (row.family == KeyFamily::kEcdsa) maker.ecdsa_octets_ = row.octets;
  maker.max_signature_ = static_cast<std::size_t>(EVP_PKEY_get_size(key.key_.get()));
  return maker;
}

/// RSA's padding is that of PKCS #1 v1.5 unless told otherwise.
bool SignatureMaker::prepare(const char* digest, evp_pkey_st* key) {
  hashing_.reset(EVP_MD_CTX_new());
  if (!hashing_) return false;
  if (digest == nullptr)
    return EVP_DigestSignInit(hashing_.get(), nullptr, nullptr, nullptr, key) == 1;
  digest_.reset(EVP_MD_fetch(nullptr, digest, nullptr));
  signing_.reset(EVP_PKEY_CTX_new_from_pkey(nullptr, key, nullptr));
  return digest_ && signing_ && EVP_PKEY_sign_init(signing_.get()) == 1 &&
         EVP_PKEY_CTX_set_signature_md(signing_.get(), digest_.get()) == 1;
}

bool SignatureMaker::sign(ByteView data, Bytes& out) {
  return signing_ ? sign_digest(data, out) : sign_whole(data, out);
}

bool SignatureMaker::sign_digest(ByteView data, Bytes& out) {
  std::array<std::uint8_t, EVP_MAX_MD_SIZE> hash{};
  std::array<std::uint8_t, kMaxRsaBits / CHAR_BIT> signature;
  unsigned hash_size = 0;
  std::size_t size = signature.size();
  if (max_signature_ > signature.size() ||
      EVP_DigestInit_ex2(hashing_.get(), digest_.get(), nullptr) != 1 ||
      EVP_DigestUpdate(hashing_.get(), data.data(), data.size()) != 1 ||
      EVP_DigestFinal_ex(hashing_.get(), hash.data(), &hash_size) != 1 ||
      EVP_PKEY_sign(signing_.get(), signature.data(), &size, hash.data(), hash_size) != 1)
    return false;
  const ByteView made = ByteView(signature).first(size);
  if (ecdsa_octets_ != 0) return append_ecdsa(made, ecdsa_octets_, out);
  append(out, made);
  return true;
}

bool SignatureMaker::sign_whole(ByteView data, Bytes& out) {
  const std::size_t before = out.size();
  std::size_t size = max_signature_;
  out.resize(before + size);
  // Null stands for the key of the time before.
  const bool done =
      EVP_DigestSignInit(hashing_.get(), nullptr, nullptr, nullptr, nullptr) == 1 &&
      EVP_DigestSign(hashing_.get(), out.data() + before, &size, data.data(), data.size()) == 1;
  out.resize(before + (done ? size : 0));
  return done;
}

}  // namespace pando::dns
