#include "manager/request/recent_replies.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "base/result.h"
#include "dns/tsig/tsig_mac.h"

namespace pando::manager {

namespace {

/// Limit of replies waiting for one unfinished request: a client retries a handful of times.
constexpr std::size_t kMaxWaiting = 8;

/// Bytes of an answered request beside its answer. Table node 64, malloc's share included; place in
/// the order 24; bucket 8 to 16; malloc's share of the answer 8 to 16.
constexpr std::size_t kEntryOctets = 112;

/// A digest keyed with a secret of this process. With a digest that anybody can compute, a client
/// could search for colliding requests, or fill one bucket of the table.
const dns::HmacContext& keyed_digest() {
  static const dns::HmacContext digest = [] {
    std::array<std::uint8_t, 32> secret{};
    fill_random(secret);
    dns::HmacContext made("SHA256", secret);
    PANDO_ASSERT(static_cast<bool>(made));
    return made;
  }();
  return digest;
}

}  // namespace

RecentReplies::Key RecentReplies::key_of(const Endpoint& client, ByteView message) {
  // fixed length, so the boundary to the message is unambiguous
  std::array<std::uint8_t, 18> origin{};
  std::copy(client.address.octets.begin(), client.address.octets.end(), origin.begin());
  store_be16(origin.data() + 16, client.port);
  dns::HmacContext digest = keyed_digest().duplicate();
  digest.update(origin);
  digest.update(message);
  Key key{};
  const dns::TsigMac mac = digest.finish(sizeof key);
  std::memcpy(key.data(), mac.octets.data(), sizeof key);
  return key;
}

bool RecentReplies::join(const Key& key, Reply& reply, std::uint64_t now_ms) {
  while (!answered_.empty() && now_ms >= answered_.front().since_ms + life_ms_) drop_oldest();
  const auto found = entries_.find(key);
  if (found == entries_.end()) return false;
  const Entry& entry = found->second;
  if (!entry.waiting)
    reply(entry.response);
  else if (entry.waiting->size() < kMaxWaiting)
    entry.waiting->push_back(std::move(reply));
  else
    reply({});  // an empty reply sends nothing, but releases the caller
  return true;
}

void RecentReplies::begin(const Key& key, Reply reply) {
  auto waiting = std::make_unique<std::vector<Reply>>();
  waiting->push_back(std::move(reply));
  entries_[key].waiting = std::move(waiting);
}

void RecentReplies::finish(const Key& key, const Bytes& response, std::uint64_t now_ms) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.waiting) return;
  const auto waiting = std::move(found->second.waiting);
  found->second.response = response;
  answered_.push_back({key, now_ms});
  octets_ += octets_of(response);
  while (answered_.size() > max_entries_ || octets_ > max_octets_) drop_oldest();
  for (const Reply& reply : *waiting) reply(response);
}

void RecentReplies::fail(const Key& key, const Bytes& response) {
  const auto found = entries_.find(key);
  if (found == entries_.end() || !found->second.waiting) return;
  const auto waiting = std::move(found->second.waiting);
  entries_.erase(found);
  for (const Reply& reply : *waiting) reply(response);
}

std::size_t RecentReplies::octets_of(const Bytes& response) noexcept {
  return kEntryOctets + response.size();
}

void RecentReplies::drop_oldest() {
  const auto oldest = entries_.find(answered_.front().key);
  octets_ -= octets_of(oldest->second.response);
  entries_.erase(oldest);
  answered_.pop_front();
}

}  // namespace pando::manager
