#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/address.h"
#include "worker/answer/answer.h"
#include "zone/settings/compiled_settings.h"

namespace pando::worker {

/// What a response says, as far as rate limiting tells responses apart.
enum class ResponseClass : std::uint8_t {
  kAnswer,
  kReferral,
  kNoData,
  kNameError,  ///< NXDOMAIN
  kError,
};

/// Class of an answer and where it comes from: the owner of what answers, the cut of a referral,
/// the zone alone for what does not exist. All names that one wildcard or one DNAME answers, and
/// all names that a zone does not have, count as one, so changing the question is no way around;
/// nor is an update, since a name stays when its record is written anew.
struct ResponseKind {
  ResponseClass response_class = ResponseClass::kError;
  std::uint32_t zone = 0;  ///< ZoneView::side_index()
  ByteView owner{};        ///< RecordView::relative_owner()
  dns::RRType type{};
};
[[nodiscard]] ResponseKind kind_of(const zone::ZoneView& zone, const Answer& answer) noexcept;

/// Response rate limiting: a flood of questions with a forged source address must not become a
/// flood of responses to that address. Responses of one kind to one client prefix are counted for a
/// second at a time. One per worker, its table of fixed size and made when first needed; when more
/// accounts are open than it holds, those with the fewest responses are forgotten, which lets
/// responses out rather than holds them back.
class RateLimiter {
 public:
  enum class Verdict : std::uint8_t {
    kSend,
    kSlip,  ///< over the limit: send it truncated, so that a real client comes back by TCP
    kDrop,
  };

  /// With a random seed, so that nobody can choose addresses whose accounts collide.
  RateLimiter() noexcept;
  explicit RateLimiter(std::uint64_t seed) noexcept : seed_(seed) {}

  /// Counts one UDP response of `kind` to `client` in second `now` and says what becomes of it.
  /// `settings.responses` is not 0.
  Verdict judge(const zone::RateLimit& settings, const IpAddress& client, const ResponseKind& kind,
                std::uint64_t now);

  static constexpr std::size_t kSets = 16384;
  static constexpr std::size_t kWays = 4;

 private:
  struct Account {
    std::uint32_t tag = 0;
    std::uint32_t second = 0;
    std::uint32_t responses = 0;
  };
  using Set = std::array<Account, kWays>;
  [[nodiscard]] std::uint64_t hash(const zone::RateLimit& settings, const IpAddress& client,
                                   const ResponseKind& kind) const noexcept;

  std::uint64_t seed_;
  std::unique_ptr<std::array<Set, kSets>> table_;
};

/// Addresses that are never limited.
[[nodiscard]] bool is_exempt(const zone::RateLimit& settings, const IpAddress& client) noexcept;

}  // namespace pando::worker
