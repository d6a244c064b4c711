#include "worker/request/rate_limit.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/random.h"

namespace pando::worker {

namespace {

/// The first `length` bits of an address, the others zero.
IpAddress prefix_of(const IpAddress& address, std::size_t length) noexcept {
  IpAddress prefix = address;
  for (std::size_t i = 0; i < prefix.octets.size(); ++i) {
    const std::size_t bits = length > 8 * i ? std::min<std::size_t>(length - 8 * i, 8) : 0;
    prefix.octets[i] &= static_cast<std::uint8_t>(0xFF00U >> bits);
  }
  return prefix;
}

}  // namespace

ResponseKind kind_of(const zone::ZoneView& zone, const Answer& answer) noexcept {
  const std::uint32_t number = zone ? zone.side_index() : 0;
  if (answer.postponed.kind == AnswerPart::Kind::kReferral)
    return {ResponseClass::kReferral, number, answer.postponed.record.relative_owner(), {}};
  if (answer.rcode == dns::Rcode::kNXDomain) return {ResponseClass::kNameError, number, {}, {}};
  // An error's zone does not count, because the client chooses it.
  if (answer.rcode != dns::Rcode::kNoError && answer.rcode != dns::Rcode::kYXDomain) return {};
  if (answer.answer.empty()) return {ResponseClass::kNoData, number, {}, {}};
  return {ResponseClass::kAnswer, number, answer.first.relative_owner(),
          answer.answer[0].rrset.type()};
}

ResponseKind kind_without_records(dns::Rcode rcode, const dns::Question* question,
                                  std::array<std::uint8_t, dns::kMaxNameOctets>& name) noexcept {
  if (rcode != dns::Rcode::kNoError) return {};
  if (question == nullptr) return {ResponseClass::kAnswer, 0, {}, {}};
  // Another spelling is the same name, so it opens no account of its own.
  const ByteView octets = question->name.view().bytes();
  std::transform(octets.begin(), octets.end(), name.begin(), [](std::uint8_t octet) {
    return static_cast<std::uint8_t>(octet >= 'A' && octet <= 'Z' ? octet + ('a' - 'A') : octet);
  });
  return {ResponseClass::kAnswer, 0, ByteView(name).first(octets.size()), question->type};
}

RateLimiter::RateLimiter() noexcept : seed_(random_number<std::uint64_t>()) {}

std::uint64_t RateLimiter::hash(const zone::RateLimit& settings, const IpAddress& client,
                                const ResponseKind& kind) const noexcept {
  constexpr std::size_t kMapped = 96;  // bits before an IPv4 address in its mapped form
  const std::size_t length =
      client.is_v4() ? kMapped + settings.ipv4_prefix : std::size_t{settings.ipv6_prefix};
  const IpAddress prefix = prefix_of(client, length);
  constexpr std::size_t kFixed = 16 + 4 + 2 + 1;
  std::array<std::uint8_t, kFixed + dns::kMaxNameOctets> facts;
  std::memcpy(facts.data(), prefix.octets.data(), 16);
  store_be32(facts.data() + 16, kind.zone);
  store_be16(facts.data() + 20, static_cast<std::uint16_t>(kind.type));
  facts[22] = static_cast<std::uint8_t>(kind.response_class);
  const std::size_t octets = std::min(kind.owner.size(), dns::kMaxNameOctets);
  std::copy_n(kind.owner.begin(), octets, facts.begin() + kFixed);
  return XXH3_64bits_withSeed(facts.data(), kFixed + octets, seed_);
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
