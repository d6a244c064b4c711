#pragma once

#include <cstdint>
#include <deque>
#include <unordered_set>
#include <utility>

#include "base/bytes.h"

namespace pando::manager {

/// Remembers the signatures of executed updates for as long as they verify. A recorded update could
/// be sent again within the fudge otherwise, and undo what came after it (RFC 8945 §10.3).
///
/// At most kMaxSignatures, 30 MiB: all of five minutes of 1,700 updates a second. Beyond that the
/// oldest ones are forgotten. A start begins with none.
class UsedSignatures {
 public:
  static constexpr std::size_t kMaxSignatures = 524'288;
  /// The shortest MAC that verifies (RFC 8945 §5.2.2.1) has more octets than are remembered.
  using Signature = std::uint64_t;

  explicit UsedSignatures(std::size_t most = kMaxSignatures);

  [[nodiscard]] static Signature signature_of(ByteView mac) noexcept;
  [[nodiscard]] bool has(Signature signature) const noexcept { return used_.contains(signature); }
  /// `until`: the signature does not verify later, in seconds since 1970.
  void add(Signature signature, std::uint64_t until, std::uint64_t now);
  /// The update was not executed and may come again.
  void remove(Signature signature) { used_.erase(signature); }
  [[nodiscard]] std::size_t size() const noexcept { return used_.size(); }

 private:
  /// Mixed with a secret of this process: no client can fill one bucket of the table.
  struct Hash {
    std::uint64_t secret = 0;
    std::size_t operator()(Signature signature) const noexcept {
      const std::uint64_t mixed = (signature ^ secret) * 0x9E3779B97F4A7C15;
      return mixed ^ mixed >> 32;
    }
  };
  std::size_t most_;
  std::unordered_set<Signature, Hash> used_;
  std::deque<std::pair<Signature, std::uint64_t>> in_order_;  // with the end of each, oldest first
};

}  // namespace pando::manager
