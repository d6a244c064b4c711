#include "tls/session/server_context.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <algorithm>
#include <string_view>

#include "base/secret.h"

namespace pando::tls {

namespace {

constexpr std::string_view kDot = "dot";
/// Octets of a client's certificates in a handshake. Three of RSA with 4,096 bits take 6 KiB.
constexpr long kMaxCertificateOctets = 32L << 10;
/// Tickets are good for as long as their keys are: the manager makes a new one each 12 hours.
constexpr long kTicketSeconds = 12L * 3600;

/// A key with a passphrase is refused: nobody is there to type it.
int no_passphrase(char*, int, int, void*) { return -1; }

Status use_key(SSL_CTX* context, BIO* pem) {
  const KeyPointer key(::PEM_read_bio_PrivateKey(pem, nullptr, &no_passphrase, nullptr));
  if (!key) return fail(Errc::kInvalid, "private key: {}", take_openssl_error("none"));
  if (::SSL_CTX_use_PrivateKey(context, key.get()) != 1)
    return fail(Errc::kInvalid, "private key: {}", take_openssl_error("refused"));
  return {};
}

Status use_certificates(SSL_CTX* context, BIO* pem) {
  const CertificatePointer own(::PEM_read_bio_X509(pem, nullptr, nullptr, nullptr));
  if (!own) return fail(Errc::kInvalid, "certificate: {}", take_openssl_error("none"));
  if (::SSL_CTX_use_certificate(context, own.get()) != 1)
    return fail(Errc::kInvalid, "certificate: {}", take_openssl_error("refused"));
  while (const CertificatePointer one{::PEM_read_bio_X509(pem, nullptr, nullptr, nullptr)})
    if (::SSL_CTX_add1_chain_cert(context, one.get()) != 1)
      return fail(Errc::kInvalid, "certificate: {}", take_openssl_error("refused"));
  ::ERR_clear_error();  // the end of the text
  return {};
}

/// Key and certificates may stand in any order.
Status use_pair(SSL_CTX* context, const Bytes& text) {
  const auto size = static_cast<int>(text.size());
  const BioPointer for_certificates(::BIO_new_mem_buf(text.data(), size));
  const BioPointer for_key(::BIO_new_mem_buf(text.data(), size));
  if (!for_certificates || !for_key) return fail(Errc::kIo, "no memory");
  if (auto used = use_certificates(context, for_certificates.get()); !used) return used;
  if (auto used = use_key(context, for_key.get()); !used) return used;
  if (::SSL_CTX_check_private_key(context) != 1)
    return fail(Errc::kInvalid, "key and certificate: {}", take_openssl_error("no pair"));
  return {};
}

}  // namespace

Result<SslContextPointer> ServerContext::make_context() {
  SslContextPointer context(::SSL_CTX_new(::TLS_server_method()));
  if (!context) return fail(Errc::kIo, "SSL_CTX_new: {}", take_openssl_error("no memory"));
  SSL_CTX* const raw = context.get();
  ::SSL_CTX_set_min_proto_version(raw, TLS1_3_VERSION);
  // Each message of DNS has its length, so that an end without close_notify deceives nobody.
  ::SSL_CTX_set_options(raw, SSL_OP_IGNORE_UNEXPECTED_EOF | SSL_OP_NO_RENEGOTIATION);
  ::SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  ::SSL_CTX_set_read_ahead(raw, 1);
  ::SSL_CTX_set_session_cache_mode(raw, SSL_SESS_CACHE_OFF);  // tickets have the state
  ::SSL_CTX_set_timeout(raw, kTicketSeconds);
  ::SSL_CTX_set_num_tickets(raw, 1);
  ::SSL_CTX_set_max_early_data(raw, 0);
  ::SSL_CTX_set_max_cert_list(raw, kMaxCertificateOctets);
  ::SSL_CTX_set_alpn_select_cb(raw, &ServerContext::choose_alpn, nullptr);
  return context;
}

Status ServerContext::set_certificate(Bytes pem) {
  auto context = make_context();
  const Status used = context ? use_pair(context->get(), pem) : Status(pass(context));
  wipe(pem);
  if (!used) return used;
  tickets_.serve(context->get());
  ask_for_certificates(context->get());
  context_ = std::move(*context);
  return {};
}

void ServerContext::set_identities(ClientIdentities identities) {
  identities_ = std::move(identities);
  ++generation_;
  if (context_) ask_for_certificates(context_.get());
}

/// Clients without a certificate are served as well: rules decide what they get.
void ServerContext::ask_for_certificates(SSL_CTX* context) const {
  // RFC 8446 §4.6.1: a client that resumes a session shows no certificate. So a session of other
  // demands is not resumed.
  ::SSL_CTX_set_session_id_context(context,
                                   reinterpret_cast<const unsigned char*>(&generation_),
                                   sizeof generation_);
  ::SSL_CTX_set_verify(context, identities_.empty() ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, nullptr);
  ::SSL_CTX_set_cert_verify_callback(context, &ServerContext::take_certificate, nullptr);
}

/// RFC 7301 §3.2: a client that offers protocols, but not this one, is refused.
int ServerContext::choose_alpn(SSL*, const unsigned char** out, unsigned char* out_length,
                               const unsigned char* offered, unsigned length, void*) {
  for (unsigned at = 0; at < length; at += 1U + offered[at]) {
    const unsigned size = offered[at];
    if (at + 1 + size > length) break;
    const std::string_view name(reinterpret_cast<const char*>(offered + at + 1), size);
    if (name != kDot) continue;
    *out = offered + at + 1;
    *out_length = static_cast<unsigned char>(size);
    return SSL_TLSEXT_ERR_OK;
  }
  return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/// Takes any certificate: ClientIdentities looks at it after the handshake, once for each remote.
/// Whoever shows one gets no ticket, so that a pin that was withdrawn counts at once.
int ServerContext::take_certificate(X509_STORE_CTX* context, void*) {
  auto* const ssl = static_cast<SSL*>(::X509_STORE_CTX_get_ex_data(
      context, ::SSL_get_ex_data_X509_STORE_CTX_idx()));
  if (ssl != nullptr) ::SSL_set_num_tickets(ssl, 0);
  return 1;
}

SslPointer ServerContext::make_session() const {
  SslPointer session(context_ ? ::SSL_new(context_.get()) : nullptr);
  if (session && tickets_.empty()) ::SSL_set_num_tickets(session.get(), 0);
  if (!session) ::ERR_clear_error();
  return session;
}

}  // namespace pando::tls
