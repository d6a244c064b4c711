#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"

namespace pando::manager {

/// Remembers recent requests and their answers. A retransmitted UPDATE (same client, port and
/// octets, hence same ID and MAC) gets the first answer instead of a second execution. RFC 2136
/// §7.18 leaves this to the server.
///
/// Only a digest of each request is stored. An answered request takes about 100 bytes beside its
/// answer: 30 MiB for 12 s of 10,000 small signed updates a second. The bounds cover answered
/// requests. Unanswered requests are never dropped, since their answer is owed, so callers of
/// begin() must bound their number.
class RecentReplies {
 public:
  using Reply = std::function<void(Bytes)>;
  /// Identifies a request. The key depends on a secret of this process (see key_of()), so nobody
  /// outside can construct requests with equal keys or the same bucket.
  using Key = std::array<std::uint64_t, 2>;

  /// Enough for 12 s of 10,000 updates a second, with some margin.
  static constexpr std::size_t kMaxEntries = 131'072;
  /// Bytes including the answers. Small answers stay far below the limit; long error texts and
  /// forwarded answers may reach it.
  static constexpr std::size_t kMaxOctets = std::size_t{64} << 20;
  /// Lifetime in ms, counted from the answer. nsupdate sends after 0, 3, 6 and 9 s, and gives up
  /// after 12.
  static constexpr std::uint64_t kLifeMs = 12'000;

  explicit RecentReplies(std::size_t max_entries = kMaxEntries, std::size_t max_octets = kMaxOctets,
                         std::uint64_t life_ms = kLifeMs)
      : max_entries_(max_entries), max_octets_(max_octets), life_ms_(life_ms) {}

  /// HMAC-SHA-256, cut to 128 bits, over the client's address and port and the whole message. The
  /// digest of a small message takes at most a microsecond, as much as verifying its TSIG.
  static Key key_of(const Endpoint& client, ByteView message);

  /// True: the request is a repetition, and `reply` is moved from. `reply` gets the first request's
  /// answer, now or later, or an empty reply if too many replies wait already. False: the request
  /// is new, and `reply` is unchanged.
  bool join(const Key& key, Reply& reply, std::uint64_t now_ms);
  /// Registers a new request before its execution. finish() or fail() must follow.
  void begin(const Key& key, Reply reply);
  /// Sends the answer to all waiting replies, and caches the answer.
  void finish(const Key& key, const Bytes& response, std::uint64_t now_ms);
  /// Same for a request that was not executed: `response` is not cached, and the next repetition
  /// counts as new.
  void fail(const Key& key, const Bytes& response);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::unique_ptr<std::vector<Reply>> waiting;  ///< null after the answer
    Bytes response;
  };
  struct Answered {
    Key key{};
    std::uint64_t since_ms = 0;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept { return key[0]; }
  };
  static std::size_t octets_of(const Bytes& response) noexcept;
  void drop_oldest();

  std::size_t max_entries_;
  std::size_t max_octets_;
  std::uint64_t life_ms_;
  std::unordered_map<Key, Entry, KeyHash> entries_;
  /// Answered requests in the order of their answers. A long unanswered request (to an absent
  /// primary, say) does not delay the expiry of later requests.
  std::deque<Answered> answered_;
  std::size_t octets_ = 0;  ///< bytes of the answered requests
};

}  // namespace pando::manager
