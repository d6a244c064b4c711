#include "worker/rate_limit.h"

#include <sys/random.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace pando::worker {

namespace {

/// The first `length` bits of an address, the others zero.
IpAddress prefix_of(const IpAddress& address, std::size_t length) noexcept {
  IpAddress prefix = address;
  for (std::size_t i = 0; i < prefix.octets.size(); ++i) {
    const std::size_t kept = length > 8 * i ? std::min<std::size_t>(length - 8 * i, 8) : 0;
    prefix.octets[i] &= static_cast<std::uint8_t>(0xFF00U >> kept);
  }
  return prefix;
}

const void* identity_of(const Entry& entry) noexcept { return entry.rrset.first_rdata().data(); }

}  // namespace

ResponseKind kind_of(const Answer& answer) noexcept {
  if (answer.cut)
    return {ResponseClass::kReferral, answer.cut.find(dns::RRType::kNS).first_rdata().data()};
  // Behind an alias the authority section may begin with a wildcard's proof, which is another for
  // each name.
  if (answer.rcode == dns::Rcode::kNXDomain && !answer.authority.empty())
    return {ResponseClass::kNameError,
            identity_of(answer.answer.empty() ? answer.authority[0] : answer.answer[0])};
  if (answer.rcode != dns::Rcode::kNoError && answer.rcode != dns::Rcode::kYXDomain)
    return {ResponseClass::kError, nullptr};
  if (!answer.answer.empty()) return {ResponseClass::kAnswer, identity_of(answer.answer[0])};
  if (answer.authority.empty()) return {ResponseClass::kNoData, nullptr};
  const Entry& first = answer.authority[0];
  const bool referral = first.rrset.type() == dns::RRType::kNS;
  return {referral ? ResponseClass::kReferral : ResponseClass::kNoData, identity_of(first)};
}

RateLimiter::RateLimiter() noexcept : seed_(0) {
  static_cast<void>(::getrandom(&seed_, sizeof seed_, 0));
}

std::uint64_t RateLimiter::hash(const zone::RateLimit& settings, const IpAddress& client,
                                const ResponseKind& kind) const noexcept {
  constexpr std::size_t kMapped = 96;  // bits before an IPv4 address in its mapped form
  const std::size_t length =
      client.is_v4() ? kMapped + settings.ipv4_prefix : std::size_t{settings.ipv6_prefix};
  const IpAddress prefix = prefix_of(client, length);
  std::array<std::uint8_t, 16 + sizeof(void*) + 1> facts;
  std::memcpy(facts.data(), prefix.octets.data(), 16);
  std::memcpy(facts.data() + 16, &kind.source, sizeof(void*));
  facts.back() = static_cast<std::uint8_t>(kind.response_class);
  return XXH3_64bits_withSeed(facts.data(), facts.size(), seed_);
}

RateLimiter::Verdict RateLimiter::judge(const zone::RateLimit& settings, const IpAddress& client,
                                        const ResponseKind& kind, std::uint64_t now) {
  if (!table_) table_ = std::make_unique<std::array<Set, kSets>>();
  const std::uint64_t key = hash(settings, client, kind);
  const auto tag = static_cast<std::uint32_t>(key >> 32);
  const auto second = static_cast<std::uint32_t>(now);
  Set& set = (*table_)[key % kSets];
  const auto weight = [second](const Account& a) { return a.second == second ? a.responses : 0; };
  auto account = std::find_if(set.begin(), set.end(),
                              [&](const Account& a) { return a.tag == tag && a.second == second; });
  if (account == set.end()) {
    account = std::min_element(set.begin(), set.end(), [&](const Account& a, const Account& b) {
      return weight(a) < weight(b);
    });
    *account = {tag, second, 0};
  }
  if (account->responses < std::numeric_limits<std::uint32_t>::max()) ++account->responses;
  if (account->responses <= settings.responses) return Verdict::kSend;
  const std::uint32_t over = account->responses - settings.responses;
  return settings.slip != 0 && over % settings.slip == 0 ? Verdict::kSlip : Verdict::kDrop;
}

bool is_exempt(const zone::RateLimit& settings, const IpAddress& client) noexcept {
  return std::any_of(settings.exempt.begin(), settings.exempt.end(),
                     [&](const IpPrefix& prefix) { return prefix.contains(client); });
}

}  // namespace pando::worker
