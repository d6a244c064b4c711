#include "tls/session/socket_bio.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace pando::tls {

BIO* SocketBio::make_bio() {
  BIO* const bio = ::BIO_new(method());
  if (bio == nullptr) return nullptr;
  ::BIO_set_data(bio, this);
  ::BIO_set_init(bio, 1);
  return bio;
}

const BIO_METHOD* SocketBio::method() {
  static BIO_METHOD* const kMethod = [] {
    BIO_METHOD* const made = ::BIO_meth_new(::BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "client");
    ::BIO_meth_set_read(made, &SocketBio::read);
    ::BIO_meth_set_write(made, &SocketBio::write);
    ::BIO_meth_set_ctrl(made, &SocketBio::control);
    return made;
  }();
  return kMethod;
}

int SocketBio::read(BIO* bio, char* data, int size) {
  auto& self = *static_cast<SocketBio*>(::BIO_get_data(bio));
  ::BIO_clear_retry_flags(bio);
  const std::size_t wanted = std::min(static_cast<std::size_t>(std::max(size, 0)), self.left_);
  if (wanted == 0) {
    ::BIO_set_retry_read(bio);
    return -1;
  }
  if (!self.read_before_.empty()) {
    const std::size_t taken = std::min(wanted, self.read_before_.size());
    std::copy_n(self.read_before_.begin(), taken, data);
    self.read_before_.erase(self.read_before_.begin(),
                            self.read_before_.begin() + static_cast<std::ptrdiff_t>(taken));
    if (self.read_before_.empty()) self.read_before_.shrink_to_fit();
    self.left_ -= taken;
    return static_cast<int>(taken);
  }
  const ssize_t got = ::recv(self.socket_, data, wanted, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) ::BIO_set_retry_read(bio);
  if (got > 0) self.left_ -= static_cast<std::size_t>(got);
  self.ended_ = got == 0;
  return static_cast<int>(got);
}

int SocketBio::write(BIO* bio, const char* data, int size) {
  const auto& self = *static_cast<const SocketBio*>(::BIO_get_data(bio));
  ::BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(self.socket_, data, static_cast<std::size_t>(std::max(size, 0)),
                              MSG_DONTWAIT | MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) ::BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

/// Every octet is sent immediately, so that there is nothing to flush. OpenSSL asks for the end to
/// tell it from a fault (SSL_OP_IGNORE_UNEXPECTED_EOF). All other commands concern BIOs of other
/// kinds.
long SocketBio::control(BIO* bio, int command, long, void*) {
  if (command == BIO_CTRL_EOF) return static_cast<const SocketBio*>(::BIO_get_data(bio))->ended_;
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

}  // namespace pando::tls
