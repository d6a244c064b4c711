#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "tls/session/client_identity.h"
#include "tls/session/openssl.h"
#include "tls/session/ticket_keys.h"

namespace pando::tls {

/// All that the handshakes of this process share: certificate and key, tickets, the demands on
/// clients. TLS 1.3 alone (RFC 9103 §8.1), no early data, ALPN "dot" (RFC 7858 §3.2).
class ServerContext {
 public:
  ServerContext() = default;
  ServerContext(const ServerContext&) = delete;
  ServerContext& operator=(const ServerContext&) = delete;

  /// Uses this key with these certificates, the own one first, for later handshakes. kInvalid: they
  /// are no pair, or cannot be read; the pair before stays. `pem` is wiped.
  Status set_certificate(Bytes pem);
  void set_ticket_keys(std::vector<ipc::TlsTicketKey> keys) { tickets_.set(std::move(keys)); }
  /// Sessions of clients that met other demands are not resumed.
  void set_identities(ClientIdentities identities);
  [[nodiscard]] const ClientIdentities& identities() const noexcept { return identities_; }

  /// False: there is no certificate yet, so nobody can be served.
  [[nodiscard]] bool is_ready() const noexcept { return context_ != nullptr; }
  /// State of one connection; null: no memory.
  [[nodiscard]] SslPointer make_session() const;

 private:
  static Result<SslContextPointer> make_context();
  static int choose_alpn(SSL* ssl, const unsigned char** out, unsigned char* out_length,
                         const unsigned char* offered, unsigned length, void* self);
  static int take_certificate(X509_STORE_CTX* context, void* self);
  void ask_for_certificates(SSL_CTX* context) const;

  TicketKeys tickets_;
  ClientIdentities identities_;
  std::uint32_t generation_ = 0;  ///< of the demands
  SslContextPointer context_;     ///< after what it uses
};

}  // namespace pando::tls
