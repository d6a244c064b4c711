#include "manager/tls/certificate_pair.h"

#include <fmt/format.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <limits>
#include <vector>

#include "base/random.h"
#include "base/secret.h"
#include "dns/dnssec/openssl_owned.h"
#include "dns/encoding.h"

namespace pando::manager {

namespace {

using dns::OpensslOwned;
using MemoryBio = OpensslOwned<BIO, BIO_free_all>;
using OwnedCertificate = OpensslOwned<X509, X509_free>;
using OwnedKey = OpensslOwned<EVP_PKEY, EVP_PKEY_free>;

/// What OpenSSL asks of a key at its usual security level: RSA of 2,048 bits, or better.
constexpr int kLeastSecurityBits = 112;
/// A chain is a few certificates; a list of authorities has some 150.
constexpr std::size_t kMaxCertificates = 10'000;
constexpr const char* kFirstSecond = "19700101000000Z";
constexpr const char* kLastSecond = "99991231235959Z";

MemoryBio reader_of(ByteView text) {
  if (text.size() > std::numeric_limits<int>::max()) return nullptr;
  return MemoryBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

/// Nobody is asked for a passphrase: a terminal would be the manager's.
int no_passphrase(char*, int, int, void*) { return -1; }

Result<std::vector<OwnedCertificate>> read_certificates(ByteView text) {
  const MemoryBio bio = reader_of(text);
  std::vector<OwnedCertificate> found;
  ERR_clear_error();
  while (bio && found.size() < kMaxCertificates) {
    OwnedCertificate one(PEM_read_bio_X509(bio.get(), nullptr, no_passphrase, nullptr));
    if (!one) break;
    found.push_back(std::move(one));
  }
  const bool is_whole = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!is_whole)
    return fail(Errc::kInvalid, "certificate {} is damaged", found.size() + 1);
  if (found.empty()) return fail(Errc::kInvalid, "there is no certificate in it (PEM)");
  return found;
}

std::uint64_t seconds_of(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  const std::time_t seconds = ::timegm(&parts);
  return seconds < 0 ? 0 : static_cast<std::uint64_t>(seconds);
}

std::string subject_of(X509* certificate) {
  const MemoryBio out(BIO_new(BIO_s_mem()));
  if (!out || X509_NAME_print_ex(out.get(), X509_get_subject_name(certificate), 0,
                                 XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB) < 0)
    return {};
  char* text = nullptr;
  const long size = BIO_get_mem_data(out.get(), &text);
  return size > 0 ? std::string(text, static_cast<std::size_t>(size)) : std::string();
}

Bytes pin_of(X509* certificate) {
  unsigned char* der = nullptr;
  const int size = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &der);
  if (size <= 0) return {};
  Bytes pin(SHA256_DIGEST_LENGTH);
  SHA256(der, static_cast<std::size_t>(size), pin.data());
  OPENSSL_free(der);
  return pin;
}

Result<CertificateFacts> facts_of(X509* certificate, std::uint64_t now) {
  CertificateFacts facts;
  facts.subject = subject_of(certificate);
  facts.not_before = seconds_of(X509_get0_notBefore(certificate));
  facts.not_after = seconds_of(X509_get0_notAfter(certificate));
  facts.pin = pin_of(certificate);
  if (facts.not_after < now)
    return fail(Errc::kInvalid, "the certificate has expired at {}", time_text(facts.not_after));
  if (facts.not_before > now)
    return fail(Errc::kInvalid, "the certificate is not valid before {}",
                time_text(facts.not_before));
  return facts;
}

Result<OwnedKey> read_key(ByteView text) {
  const MemoryBio bio = reader_of(text);
  OwnedKey key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr) : nullptr);
  const int reason = ERR_GET_REASON(ERR_peek_last_error());
  ERR_clear_error();
  if (!key && reason == PEM_R_BAD_PASSWORD_READ)
    return fail(Errc::kInvalid, "the private key has a passphrase");
  if (!key) return fail(Errc::kInvalid, "there is no private key in it (PEM)");
  if (EVP_PKEY_get_security_bits(key.get()) < kLeastSecurityBits)
    return fail(Errc::kInvalid, "the private key is too short: {} bits",
                EVP_PKEY_get_bits(key.get()));
  return key;
}

/// What was written to `bio`, which OpenSSL wipes when it is freed.
void append_text(Bytes& out, BIO* bio) {
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  if (size > 0) out.insert(out.end(), text, text + size);
}

Result<Bytes> pem_of(EVP_PKEY* key, const std::vector<OwnedCertificate>& certificates) {
  const MemoryBio bio(BIO_new(BIO_s_secmem()));
  bool written = bio != nullptr && PEM_write_bio_PKCS8PrivateKey(bio.get(), key, nullptr, nullptr,
                                                                 0, nullptr, nullptr) == 1;
  for (const OwnedCertificate& one : certificates)
    written = written && PEM_write_bio_X509(bio.get(), one.get()) == 1;
  Bytes pem;
  if (written) append_text(pem, bio.get());
  if (pem.empty()) return fail(Errc::kInvalid, "OpenSSL cannot write the private key");
  return pem;
}

/// A name for people, a serial number, all times, and nothing that is anybody else's.
bool fill_own(X509* certificate, EVP_PKEY* key) {
  const auto serial = random_number<std::uint64_t>();
  X509_NAME* const name = X509_get_subject_name(certificate);
  return X509_set_version(certificate, X509_VERSION_3) == 1 &&
         ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1U) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notBefore(certificate), kFirstSecond) == 1 &&
         ASN1_TIME_set_string_X509(X509_getm_notAfter(certificate), kLastSecond) == 1 &&
         X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                                    reinterpret_cast<const unsigned char*>("pando"), -1, -1,
                                    0) == 1 &&
         X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
         X509_sign(certificate, key, EVP_sha256()) > 0;
}

}  // namespace

Result<CertificateFacts> read_certificate(ByteView certificates, std::uint64_t now) {
  auto found = read_certificates(certificates);
  if (!found) return pass(found);
  return facts_of(found->front().get(), now);
}

Result<CertificatePair> check_pair(ByteView certificates, ByteView key, std::uint64_t now) {
  const WipeFreed wipe_freed;
  auto found = read_certificates(certificates);
  if (!found) return pass(found);
  auto facts = facts_of(found->front().get(), now);
  if (!facts) return pass(facts);
  auto own = read_key(key);
  if (!own) return pass(own);
  if (X509_check_private_key(found->front().get(), own->get()) != 1) {
    ERR_clear_error();
    return fail(Errc::kInvalid, "the private key is not that of the certificate");
  }
  auto pem = pem_of(own->get(), *found);
  if (!pem) return pass(pem);
  return CertificatePair{std::move(*pem), std::move(*facts)};
}

Status check_authorities(ByteView certificates) {
  auto found = read_certificates(certificates);
  if (!found) return pass(found);
  return {};
}

Result<CertificatePair> make_own_pair() {
  const WipeFreed wipe_freed;
  const OwnedKey key(EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256"));
  std::vector<OwnedCertificate> own;
  own.emplace_back(X509_new());
  if (!key || !own.front() || !fill_own(own.front().get(), key.get())) {
    ERR_clear_error();
    return fail(Errc::kIo, "OpenSSL cannot make a certificate");
  }
  auto pem = pem_of(key.get(), own);
  if (!pem) return pass(pem);
  auto facts = facts_of(own.front().get(), 0);
  if (!facts) return pass(facts);
  return CertificatePair{std::move(*pem), std::move(*facts)};
}

std::string pin_text(ByteView pin) { return dns::base64_encode(pin); }

std::string time_text(std::uint64_t seconds) {
  const auto time = static_cast<std::time_t>(seconds);
  std::tm parts{};
  if (::gmtime_r(&time, &parts) == nullptr) return "an unknown time";
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", parts.tm_year + 1900,
                     parts.tm_mon + 1, parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace pando::manager
