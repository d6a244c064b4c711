#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "base/address.h"
#include "dns/message/message_header.h"
#include "worker/answer/answer.h"
#include "zone/settings/compiled_settings.h"

namespace pando::worker {

/// Kinds of response that rate limiting counts separately.
enum class ResponseClass : std::uint8_t {
  kAnswer,
  kReferral,
  kNoData,
  kNameError,  ///< NXDOMAIN
  kError,
};

/// Class of an answer and its origin: the owner of the answering record, the cut of a referral, the
/// zone alone for names that do not exist. All names that one wildcard or DNAME answers count as
/// one, as do all names that a zone lacks. Changing the question therefore evades nothing. An
/// update resets nothing either, since the name stays when its record is rewritten.
struct ResponseKind {
  ResponseClass response_class = ResponseClass::kError;
  std::uint32_t zone = 0;  ///< ZoneView::side_index()
  ByteView owner{};        ///< RecordView::relative_owner()
  dns::RRType type{};
};
[[nodiscard]] ResponseKind kind_of(const zone::ZoneView& zone, const Answer& answer) noexcept;
/// The same for a response without records of a zone. All errors are one kind. Other responses are
/// distinguished by the question; without one, name and type are null. `name` stays in place while
/// the kind is used.
[[nodiscard]] ResponseKind kind_without_records(
    dns::Rcode rcode, const dns::Question* question,
    std::array<std::uint8_t, dns::kMaxNameOctets>& name) noexcept;

/// Response rate limiting: a flood of questions with a forged source address must not become a
/// flood of responses to that address. Responses of one kind to one client prefix are counted for a
/// second at a time.
/// Each worker has one limiter; its table has a fixed size and is allocated at first use. A full
/// table forgets the accounts with the fewest responses, which sends responses rather than
/// withholds them.
class RateLimiter {
 public:
  enum class Verdict : std::uint8_t {
    kSend,
    kSlip,  ///< over the limit: send the response truncated, so that a real client retries by TCP
    kDrop,
  };

  /// Uses a random seed, so that no client can choose addresses whose accounts collide.
  RateLimiter() noexcept;
  explicit RateLimiter(std::uint64_t seed) noexcept : seed_(seed) {}

  /// Counts one UDP response of `kind` to `client` in second `now` and returns the verdict.
  /// `settings.responses` must not be 0.
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

/// True for addresses that are never limited.
[[nodiscard]] bool is_exempt(const zone::RateLimit& settings, const IpAddress& client) noexcept;

}  // namespace pando::worker
