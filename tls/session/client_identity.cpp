#include "tls/session/client_identity.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <algorithm>

namespace pando::tls {

namespace {

/// Certificates between that of a client and an authority's. Each costs a signature's check.
constexpr int kMaxIntermediates = 5;

std::string fault_of_chain(X509_STORE* authorities, const std::string& hostname,
                           X509* certificate, STACK_OF(X509) * chain) {
  const StoreContextPointer context(::X509_STORE_CTX_new());
  if (!context || ::X509_STORE_CTX_init(context.get(), authorities, certificate, chain) != 1)
    return take_openssl_error("no memory");
  X509_VERIFY_PARAM* const demands = ::X509_STORE_CTX_get0_param(context.get());
  ::X509_VERIFY_PARAM_set_depth(demands, kMaxIntermediates);
  ::X509_VERIFY_PARAM_set_purpose(demands, X509_PURPOSE_SSL_CLIENT);
  // RFC 8310 §8.1: names stand in subjectAltName, and "*.example" is for one label.
  ::X509_VERIFY_PARAM_set_hostflags(
      demands, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
  if (::X509_VERIFY_PARAM_set1_host(demands, hostname.data(), hostname.size()) != 1)
    return "its name cannot be checked";
  if (::X509_verify_cert(context.get()) == 1) return {};
  return ::X509_verify_cert_error_string(::X509_STORE_CTX_get_error(context.get()));
}

}  // namespace

Bytes pin_of(const X509* certificate) {
  std::uint8_t* octets = nullptr;
  const int size = ::i2d_X509_PUBKEY(::X509_get_X509_PUBKEY(certificate), &octets);
  if (size <= 0) return {};
  Bytes pin(EVP_MAX_MD_SIZE);
  unsigned length = 0;
  const bool hashed = ::EVP_Digest(octets, static_cast<std::size_t>(size), pin.data(), &length,
                                   ::EVP_sha256(), nullptr) == 1;
  ::OPENSSL_free(octets);
  pin.resize(hashed ? length : 0);
  return pin;
}

Result<StorePointer> ClientIdentities::authorities_of(const ipc::TlsDemand& demand) {
  StorePointer store(::X509_STORE_new());
  if (store && demand.hostname.empty()) return store;  // pins alone: there is no authority
  const BioPointer pem(::BIO_new_mem_buf(demand.ca.data(), static_cast<int>(demand.ca.size())));
  if (!store || !pem) return fail(Errc::kIo, "no memory");
  int read = 0;
  while (const CertificatePointer one{::PEM_read_bio_X509(pem.get(), nullptr, nullptr, nullptr)}) {
    ::X509_STORE_add_cert(store.get(), one.get());
    ++read;
  }
  const std::string fault = take_openssl_error("no certificate");  // always: the end of the text
  if (read == 0)
    return fail(Errc::kInvalid, "authorities of remote {}: {}", demand.remote, fault);
  return store;
}

Result<ClientIdentities> ClientIdentities::of(const std::vector<ipc::TlsDemand>& demands) {
  ClientIdentities identities;
  for (const ipc::TlsDemand& demand : demands) {
    auto authorities = authorities_of(demand);
    if (!authorities) return pass(authorities);
    identities.remotes_.push_back(
        {demand.remote, demand.hostname, demand.pins, std::move(*authorities)});
  }
  return identities;
}

std::string ClientIdentities::fault_of(const Remote& remote, X509* certificate,
                                       STACK_OF(X509) * chain) {
  if (remote.hostname.empty() && remote.pins.empty()) return "nothing is demanded of it";
  if (!remote.pins.empty()) {
    const Bytes pin = pin_of(certificate);
    const bool known = std::find(remote.pins.begin(), remote.pins.end(), pin) != remote.pins.end();
    if (!known) return "its public key is not pinned";
  }
  if (remote.hostname.empty()) return {};
  return fault_of_chain(remote.authorities.get(), remote.hostname, certificate, chain);
}

ClientIdentities::Proof ClientIdentities::prove(X509* certificate, STACK_OF(X509) * chain) const {
  Proof proof;
  for (const Remote& remote : remotes_) {
    std::string fault = fault_of(remote, certificate, chain);
    if (fault.empty())
      proof.remotes.push_back(remote.name);
    else
      proof.fault = std::move(fault);
  }
  if (!proof.remotes.empty()) proof.fault.clear();
  return proof;
}

}  // namespace pando::tls
