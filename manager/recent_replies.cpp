#include "manager/recent_replies.h"

#include <xxhash.h>

#include <algorithm>
#include <utility>

namespace pando::manager {

namespace {

/// Replies that wait for one unfinished request: a client retries a handful of times.
constexpr std::size_t kMaxWaiting = 8;

std::array<std::uint64_t, 2> digest_of(const Endpoint& client, ByteView message) {
  std::array<std::uint8_t, 18> origin;
  std::copy(client.address.octets.begin(), client.address.octets.end(), origin.begin());
  store_be16(origin.data() + 16, client.port);
  const std::uint64_t seed = XXH3_64bits(origin.data(), origin.size());
  const XXH128_hash_t hash = XXH3_128bits_withSeed(message.data(), message.size(), seed);
  return {hash.low64, hash.high64};
}

}  // namespace

RecentReplies::Admission RecentReplies::admit(const Endpoint& client, ByteView message,
                                              std::uint64_t now_ms, Reply reply) {
  drop_old(now_ms);
  const Digest digest = digest_of(client, message);
  if (const auto known = index_.find(digest[0]); known != index_.end()) {
    Entry& entry = entries_.at(known->second);
    if (entry.digest == digest) {
      if (entry.finished)
        reply(entry.response);
      else if (entry.waiting.size() < kMaxWaiting)
        entry.waiting.push_back(std::move(reply));
      else
        reply({});  // nothing is sent, but nobody goes on waiting
      return {Verdict::kAnswered, known->second};
    }
  }
  const std::uint64_t number = next_++;
  Entry entry{digest, now_ms, false, {}, {}};
  entry.waiting.push_back(std::move(reply));
  entries_.emplace(number, std::move(entry));
  index_[digest[0]] = number;
  order_.push_back(number);
  return {Verdict::kNew, number};
}

void RecentReplies::finish(std::uint64_t number, const Bytes& response) {
  const auto found = entries_.find(number);
  if (found == entries_.end()) return;
  found->second.finished = true;
  found->second.response = response;
  const std::vector<Reply> waiting = std::exchange(found->second.waiting, {});
  for (const Reply& reply : waiting) reply(response);
}

/// From the oldest on. Unfinished ones stay: their answer is owed, and the queue of updates is
/// bounded by the workers.
void RecentReplies::drop_old(std::uint64_t now_ms) {
  while (!order_.empty()) {
    const auto oldest = entries_.find(order_.front());
    const bool expired = now_ms - oldest->second.since_ms >= life_ms_;
    if (!oldest->second.finished || (!expired && entries_.size() < max_entries_)) return;
    const auto indexed = index_.find(oldest->second.digest[0]);
    if (indexed != index_.end() && indexed->second == oldest->first) index_.erase(indexed);
    entries_.erase(oldest);
    order_.pop_front();
  }
}

}  // namespace pando::manager
