#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/address.h"
#include "base/bytes.h"

namespace pando::manager {

/// Remembers the latest requests and their answers, so that a retransmitted UPDATE (same client,
/// port and octets, hence same ID and MAC) gets the first one's answer instead of a second
/// execution (RFC 2136 §7.18 leaves that to the server). Bounded in number and time.
class RecentReplies {
 public:
  using Reply = std::function<void(Bytes)>;

  explicit RecentReplies(std::size_t max_entries = 1024, std::uint64_t life_ms = 8000)
      : max_entries_(max_entries), life_ms_(life_ms) {}

  enum class Verdict {
    kNew,       ///< process it, then call finish() with the number that came with it
    kAnswered,  ///< `reply` was called with the first one's answer, or will be; with nothing when
                ///< too many wait for that already
  };
  struct Admission {
    Verdict verdict = Verdict::kNew;
    std::uint64_t number = 0;
  };
  Admission admit(const Endpoint& client, ByteView message, std::uint64_t now_ms, Reply reply);
  /// The answer of request `number`: goes to everybody who asked for it, and is kept.
  void finish(std::uint64_t number, const Bytes& response);

  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  using Digest = std::array<std::uint64_t, 2>;
  struct Entry {
    Digest digest{};
    std::uint64_t since_ms = 0;
    bool finished = false;
    Bytes response;
    std::vector<Reply> waiting;
  };
  void drop_old(std::uint64_t now_ms);

  std::size_t max_entries_;
  std::uint64_t life_ms_;
  std::uint64_t next_ = 1;
  std::unordered_map<std::uint64_t, Entry> entries_;        // by number
  std::unordered_map<std::uint64_t, std::uint64_t> index_;  // first half of the digest → number
  std::deque<std::uint64_t> order_;
};

}  // namespace pando::manager
