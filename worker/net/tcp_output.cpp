#include "worker/net/tcp_output.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace pando::worker {

void TcpOutput::push(ByteView message) {
  Bytes framed;
  framed.reserve(2 + message.size());
  append_be16(framed, static_cast<std::uint16_t>(message.size()));
  append(framed, message);
  octets_ += framed.size();
  messages_.push_back(std::move(framed));
}

TcpOutput::Sent TcpOutput::send(int socket) {
  Sent result;
  while (!messages_.empty()) {
    std::array<iovec, kTogether> parts;
    const std::size_t count = std::min(messages_.size(), parts.size());
    for (std::size_t i = 0; i < count; ++i) parts[i] = {messages_[i].data(), messages_[i].size()};
    parts[0].iov_base = messages_.front().data() + front_sent_;
    parts[0].iov_len -= front_sent_;
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const int more = messages_.size() > count ? MSG_MORE : 0;
    const ssize_t sent = ::sendmsg(socket, &message, MSG_DONTWAIT | MSG_NOSIGNAL | more);
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

/// Forgets `octets` at the front, which the socket has taken.
void TcpOutput::drop(std::size_t octets) {
  front_sent_ += octets;
  while (!messages_.empty() && front_sent_ >= messages_.front().size()) {
    front_sent_ -= messages_.front().size();
    octets_ -= messages_.front().size();
    messages_.pop_front();
  }
}

}  // namespace pando::worker
