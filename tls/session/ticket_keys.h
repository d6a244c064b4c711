#pragma once

#include <openssl/ssl.h>

#include <vector>

#include "ipc/tls_messages.h"

namespace pando::tls {

/// Keys of session tickets (RFC 8446 §4.6.1, RFC 5077 §4), for all processes of pando-tls. A ticket
/// is: name of the key (16), IV (16), state, HMAC (32).
class TicketKeys {
 public:
  TicketKeys() = default;
  ~TicketKeys() { wipe_keys(); }
  TicketKeys(const TicketKeys&) = delete;
  TicketKeys& operator=(const TicketKeys&) = delete;

  /// The first one encrypts. Without any, tickets are neither given nor taken.
  void set(std::vector<ipc::TlsTicketKey> keys);
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }
  /// Makes `context` use these keys, which must outlive it.
  void serve(SSL_CTX* context);

 private:
  /// Parts of a key.
  static constexpr std::size_t kNameOctets = 16;
  static constexpr std::size_t kCipherOctets = 32;  ///< AES-256
  static constexpr std::size_t kMacOctets = 32;     ///< HMAC with SHA-256
  static_assert(kNameOctets + kCipherOctets + kMacOctets == ipc::TlsTicketKey().size());

  static int choose(SSL* ssl, unsigned char* name, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                    EVP_MAC_CTX* mac, int encrypts);
  static int prepare(const ipc::TlsTicketKey& key, unsigned char* iv, EVP_CIPHER_CTX* cipher,
                     EVP_MAC_CTX* mac, bool encrypts);
  void wipe_keys() noexcept;

  std::vector<ipc::TlsTicketKey> keys_;
};

}  // namespace pando::tls
