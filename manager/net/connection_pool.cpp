#include "manager/net/connection_pool.h"

#include <algorithm>
#include <utility>

namespace pando::manager {

std::unique_ptr<MessageStream> ConnectionPool::take(const Endpoint& primary,
                                                    const std::optional<IpAddress>& source) {
  for (auto at = connections_.rbegin(); at != connections_.rend();) {
    if (!(at->stream->peer() == primary) || at->stream->source() != source) {
      ++at;
      continue;
    }
    std::unique_ptr<MessageStream> stream = std::move(at->stream);
    at = std::make_reverse_iterator(connections_.erase(std::next(at).base()));
    if (stream->at_rest()) return stream;
  }
  return nullptr;
}

void ConnectionPool::put(std::unique_ptr<MessageStream> stream) {
  if (!stream || !wanted(*stream) || !stream->at_rest()) return;
  const auto of_primary =
      std::count_if(connections_.begin(), connections_.end(),
                    [&](const Kept& one) { return one.stream->peer() == stream->peer(); });
  if (static_cast<std::size_t>(of_primary) >= options_.per_primary) return;
  if (connections_.size() >= options_.most) connections_.pop_front();
  stream->shrink();
  connections_.push_back({std::move(stream), Clock::now() + options_.idle});
  if (!watching_) watch();
}

void ConnectionPool::configure(Primaries primaries, const std::optional<IpAddress>& source) {
  primaries_ = std::move(primaries);
  source_ = source;
  std::erase_if(connections_, [&](const Kept& one) { return !wanted(*one.stream); });
}

bool ConnectionPool::wanted(const MessageStream& stream) const {
  return primaries_.contains(stream.peer()) && stream.source() == source_;
}

/// Starts the timer for the oldest connection. A reused connection moves to the end, so the timer
/// is rarely set.
void ConnectionPool::watch() {
  watching_ = true;
  timer_.expires_at(connections_.front().until);
  timer_.async_wait([this](asio::error_code error) {
    if (error) return;
    watching_ = false;
    const Clock::time_point now = Clock::now();
    while (!connections_.empty() && connections_.front().until <= now) connections_.pop_front();
    if (!connections_.empty()) watch();
  });
}

}  // namespace pando::manager
