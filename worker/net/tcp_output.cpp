#include "worker/net/tcp_output.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace pando::worker {

void TcpOutput::push(ByteView message) {
  const std::size_t needed = queue_.size() + 2 + message.size();
  if (needed > queue_.capacity()) queue_.reserve(std::max(needed, 2 * queue_.capacity()));
  append_be16(queue_, static_cast<std::uint16_t>(message.size()));
  append(queue_, message);
}

TcpOutput::Sent TcpOutput::send(int socket) {
  Sent result;
  while (!queue_.empty()) {
    const ssize_t sent =
        ::send(socket, queue_.data() + sent_, queue_.size() - sent_, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      result.state = errno == EAGAIN ? State::kBlocked : State::kFailed;
      return result;
    }
    result.progress = true;
    drop(static_cast<std::size_t>(sent));
  }
  return result;
}

void TcpOutput::release() noexcept {
  if (queue_.empty()) Bytes().swap(queue_);
}

/// Forgets `octets` at the front, which the socket has taken. The rest moves only once it is the
/// smaller part, because a client that reads little at a time would otherwise cost a long move each
/// time.
void TcpOutput::drop(std::size_t octets) {
  sent_ += octets;
  if (sent_ < queue_.size() - sent_) return;
  queue_.erase(queue_.begin(), queue_.begin() + static_cast<std::ptrdiff_t>(sent_));
  sent_ = 0;
}

}  // namespace pando::worker
