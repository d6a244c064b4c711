#pragma once

#include <cstdint>
#include <string>

#include "base/bytes.h"
#include "base/result.h"

/// Certificates and their private keys, in PEM. Pure functions: no clock, no file.
namespace pando::manager {

/// What a certificate says.
struct CertificateFacts {
  std::string subject;           ///< for people: "CN=ns1.example.net"
  std::uint64_t not_before = 0;  ///< seconds since 1970
  std::uint64_t not_after = 0;   ///< the same: its last second
  Bytes pin;                     ///< SHA-256 of its public key (RFC 7858 §4.2), 32 octets
  bool operator==(const CertificateFacts&) const = default;
};

/// A private key and the certificate that fits it. The secret is for whoever ends TLS alone.
struct CertificatePair {
  Bytes pem;  ///< the key, the certificate and those behind it in its file
  CertificateFacts facts;
};

/// Checks that both are PEM, belong together, and can be used at `now`. The first certificate is
/// the server's own. kInvalid: a text for the operator, without a file's name. The key may not have
/// a passphrase, which nobody could type.
Result<CertificatePair> check_pair(ByteView certificates, ByteView key, std::uint64_t now);

/// What the first certificate says. kInvalid: there is none, or it is not valid at `now`. By this
/// an error of check_pair() is the certificate's, or the key's.
Result<CertificateFacts> read_certificate(ByteView certificates, std::uint64_t now);

/// kInvalid: the text is not a list of certificates in PEM.
Status check_authorities(ByteView certificates);

/// A new key (P-256) with a certificate that it signs itself. Such a certificate proves nothing but
/// the key, so partners pin the key. It is valid at all times: a wrong clock of the host must not
/// take it out of use (RFC 5280 §4.1.2.5 has its last second for that).
Result<CertificatePair> make_own_pair();

/// A pin as in the configuration: base64.
[[nodiscard]] std::string pin_text(ByteView pin);
/// A time in UTC for people: "2026-11-29 10:30:00 UTC".
[[nodiscard]] std::string time_text(std::uint64_t seconds);

}  // namespace pando::manager
