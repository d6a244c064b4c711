#pragma once

#include <string>
#include <vector>

#include "base/bytes.h"
#include "ipc/tls_messages.h"
#include "tls/session/openssl.h"

namespace pando::tls {

/// SHA-256 of the certificate's SubjectPublicKeyInfo: the form of pins (RFC 7858 §4.2).
[[nodiscard]] Bytes pin_of(const X509* certificate);

/// The demands of the remotes that rules name (RFC 9103 §9.3), ready to be compared with clients'
/// certificates.
class ClientIdentities {
 public:
  ClientIdentities() = default;
  /// kInvalid, with the remote's name: its authorities cannot be read.
  static Result<ClientIdentities> of(const std::vector<ipc::TlsDemand>& demands);

  /// Whether clients should be asked for a certificate.
  [[nodiscard]] bool empty() const noexcept { return remotes_.empty(); }

  struct Proof {
    std::vector<std::string> remotes;  ///< whose demands the certificate meets
    std::string fault;  ///< of a certificate that meets none: why the last demand is not met
  };
  /// `chain`: what the client sent; it may be null.
  [[nodiscard]] Proof prove(X509* certificate, STACK_OF(X509) * chain) const;

 private:
  struct Remote {
    std::string name;
    std::string hostname;
    std::vector<Bytes> pins;
    StorePointer authorities;
  };
  static Result<StorePointer> authorities_of(const ipc::TlsDemand& demand);
  [[nodiscard]] static std::string fault_of(const Remote& remote, X509* certificate,
                                            STACK_OF(X509) * chain);

  std::vector<Remote> remotes_;
};

}  // namespace pando::tls
