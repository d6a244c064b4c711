#include "worker/net/tcp_output.h"

#include <sys/socket.h>

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
    const Bytes& front = messages_.front();
    const int more = messages_.size() > 1 ? MSG_MORE : 0;
    const ssize_t sent = ::send(socket, front.data() + front_sent_, front.size() - front_sent_,
                                MSG_DONTWAIT | MSG_NOSIGNAL | more);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      result.state = errno == EAGAIN ? State::kBlocked : State::kFailed;
      return result;
    }
    result.progress = true;
    front_sent_ += static_cast<std::size_t>(sent);
    if (front_sent_ < front.size()) continue;
    octets_ -= front.size();
    front_sent_ = 0;
    messages_.pop_front();
  }
  return result;
}

}  // namespace pando::worker
