#pragma once

#include <openssl/bio.h>

#include <cstddef>

#include "base/bytes.h"

namespace pando::tls {

/// The octets between OpenSSL and one socket. One turn reads a limited number, so that a client
/// whose octets carry no data (key updates, empty records) cannot keep the process from others.
class SocketBio {
 public:
  /// Octets of one turn: four records.
  static constexpr std::size_t kTurnOctets = std::size_t{64} << 10;

  /// `read_before`: octets of the connection that were read already. The socket must outlive this.
  SocketBio(int socket, Bytes read_before) noexcept
      : socket_(socket), read_before_(std::move(read_before)) {}
  SocketBio(const SocketBio&) = delete;
  SocketBio& operator=(const SocketBio&) = delete;

  /// A BIO for an SSL object, which takes it over; null: no memory. This must outlive it.
  [[nodiscard]] BIO* make_bio();
  void begin_turn() noexcept { left_ = kTurnOctets; }

 private:
  static const BIO_METHOD* method();
  static int read(BIO* bio, char* data, int size);
  static int write(BIO* bio, const char* data, int size);
  static long control(BIO* bio, int command, long number, void* pointer);

  int socket_;
  Bytes read_before_;
  std::size_t left_ = kTurnOctets;
  bool ended_ = false;  ///< the client has closed its side
};

}  // namespace pando::tls
