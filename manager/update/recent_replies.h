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

/// Remembers the latest requests and their answers, so that a retransmitted UPDATE (same client,
/// port and octets, hence same ID and MAC) gets the first one's answer instead of a second
/// execution (RFC 2136 §7.18 leaves that to the server).
///
/// Of a request only a digest is kept: an answered one takes about 100 octets beside its answer, 30
/// MiB for 12 s of 10,000 small signed updates a second. The bounds hold for those that are
/// answered. The others are never dropped, for their answer is owed: whoever calls begin() bounds
/// them.
class RecentReplies {
 public:
  using Reply = std::function<void(Bytes)>;
  /// What tells requests apart. Made with a secret of this process (see key_of()): nobody outside
  /// can find two requests that have the same one, or that meet in the table.
  using Key = std::array<std::uint64_t, 2>;

  /// 12 s of 10,000 updates a second, and some more.
  static constexpr std::size_t kMaxEntries = 131'072;
  /// With the answers. Small ones come nowhere near it; long error texts and forwarded answers may.
  static constexpr std::size_t kMaxOctets = std::size_t{64} << 20;
  /// From the answer on. nsupdate sends after 0, 3, 6 and 9 s, and gives up after 12.
  static constexpr std::uint64_t kLifeMs = 12'000;

  explicit RecentReplies(std::size_t max_entries = kMaxEntries, std::size_t max_octets = kMaxOctets,
                         std::uint64_t life_ms = kLifeMs)
      : max_entries_(max_entries), max_octets_(max_octets), life_ms_(life_ms) {}

  /// HMAC-SHA-256, cut to 128 bits, over the client's address and port and the whole message. It
  /// takes a microsecond or less for a small message, as much as verifying its TSIG does.
  static Key key_of(const Endpoint& client, ByteView message);

  /// True: the request came before. `reply` is taken: it was called with the first one's answer, or
  /// will be; with nothing when too many wait for that already. False: it is new, and `reply` is as
  /// it was.
  bool join(const Key& key, Reply& reply, std::uint64_t now_ms);
  /// The request that join() did not know is going to be executed; finish() must follow.
  void begin(const Key& key, Reply reply);
  /// Its answer: goes to everybody who asked for it, and is kept.
  void finish(const Key& key, const Bytes& response, std::uint64_t now_ms);
  /// The same of a request that was not executed: `response` is not kept, and the next one like it
  /// is new.
  void fail(const Key& key, const Bytes& response);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::unique_ptr<std::vector<Reply>> waiting;  ///< null once it is answered
    Bytes response;
  };
  struct Kept {
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
  /// The answered ones in the order of their answers. One that is not answered for long, behind a
  /// primary that is away, say, does not keep those after it from being dropped.
  std::deque<Kept> kept_;
  std::size_t octets_ = 0;  ///< of the answered ones
};

}  // namespace pando::manager
