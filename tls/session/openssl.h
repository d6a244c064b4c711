#pragma once

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>

#include <memory>
#include <string>

/// OpenSSL's objects as C++ owns them.
namespace pando::tls {

template <auto kFree>
struct Freed {
  template <class Object>
  void operator()(Object* object) const noexcept {
    kFree(object);
  }
};

using BioPointer = std::unique_ptr<BIO, Freed<&::BIO_free>>;
using SslPointer = std::unique_ptr<SSL, Freed<&::SSL_free>>;
using SslContextPointer = std::unique_ptr<SSL_CTX, Freed<&::SSL_CTX_free>>;
using CertificatePointer = std::unique_ptr<X509, Freed<&::X509_free>>;
using KeyPointer = std::unique_ptr<EVP_PKEY, Freed<&::EVP_PKEY_free>>;
using StorePointer = std::unique_ptr<X509_STORE, Freed<&::X509_STORE_free>>;
using StoreContextPointer = std::unique_ptr<X509_STORE_CTX, Freed<&::X509_STORE_CTX_free>>;

/// Why the last call failed, in OpenSSL's words; empties its queue of errors. `otherwise`: the text
/// if it names no reason.
[[nodiscard]] std::string take_openssl_error(const char* otherwise);

}  // namespace pando::tls
