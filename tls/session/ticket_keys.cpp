#include "tls/session/ticket_keys.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>

#include "base/secret.h"

namespace pando::tls {

namespace {

/// Number of the keys among the application's data of a context.
int keys_index() {
  static const int kIndex = ::SSL_CTX_get_ex_new_index(0, nullptr, nullptr, nullptr, nullptr);
  return kIndex;
}

// Results of the callback (SSL_CTX_set_tlsext_ticket_key_evp_cb(3)).
constexpr int kFailed = -1;
constexpr int kNoTicket = 0;
constexpr int kGood = 1;
constexpr int kGoodAndRenew = 2;

}  // namespace

void TicketKeys::set(std::vector<ipc::TlsTicketKey> keys) {
  wipe_keys();
  keys_ = std::move(keys);
}

void TicketKeys::wipe_keys() noexcept {
  for (ipc::TlsTicketKey& key : keys_) wipe(key);
}

void TicketKeys::serve(SSL_CTX* context) {
  ::SSL_CTX_set_ex_data(context, keys_index(), this);
  ::SSL_CTX_set_tlsext_ticket_key_evp_cb(context, &TicketKeys::choose);
}

int TicketKeys::choose(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                       EVP_MAC_CTX* mac, int encrypts) {
  const auto* self = static_cast<const TicketKeys*>(
      ::SSL_CTX_get_ex_data(::SSL_get_SSL_CTX(ssl), keys_index()));
  if (self == nullptr || self->keys_.empty()) return kNoTicket;
  if (encrypts != 0) {
    const ipc::TlsTicketKey& key = self->keys_.front();
    std::memcpy(name, key.data(), kNameOctets);
    if (::RAND_bytes(iv, ::EVP_CIPHER_get_iv_length(::EVP_aes_256_cbc())) != 1) return kFailed;
    return prepare(key, iv, cipher, mac, true);
  }
  const auto known = std::find_if(
      self->keys_.begin(), self->keys_.end(), [name](const ipc::TlsTicketKey& key) {
        return std::memcmp(key.data(), name, kNameOctets) == 0;
      });
  if (known == self->keys_.end()) return kNoTicket;
  if (prepare(*known, iv, cipher, mac, false) != kGood) return kFailed;
  return known == self->keys_.begin() ? kGood : kGoodAndRenew;
}

int TicketKeys::prepare(const ipc::TlsTicketKey& key, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                        EVP_MAC_CTX* mac, bool encrypts) {
  const unsigned char* const cipher_key = key.data() + kNameOctets;
  auto* const mac_key = const_cast<unsigned char*>(cipher_key + kCipherOctets);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      ::OSSL_PARAM_construct_octet_string(OSSL_MAC_PARAM_KEY, mac_key, kMacOctets),
      ::OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
      ::OSSL_PARAM_construct_end()};
  if (::EVP_MAC_CTX_set_params(mac, parameters) != 1) return kFailed;
  const int done = encrypts
                       ? ::EVP_EncryptInit_ex(cipher, ::EVP_aes_256_cbc(), nullptr, cipher_key, iv)
                       : ::EVP_DecryptInit_ex(cipher, ::EVP_aes_256_cbc(), nullptr, cipher_key, iv);
  return done == 1 ? kGood : kFailed;
}

}  // namespace pando::tls
