#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "dns/dnssec/rrsig.h"
#include "dns/rdata/rdata.h"
#include "tests/fuzz/served_zone.h"
#include "zone/dnssec/zone_signing.h"
#include "zone/dnssec/zone_verification.h"
#include "zone/read/each_record.h"

namespace pando::zone::signed_zone_support {

using dns::RRType;

inline constexpr std::uint64_t kNow = 1'780'000'000;
inline constexpr std::string_view kHead =
    "@ 600 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n";

inline dns::SigningKey ed25519(std::uint8_t seed, std::uint16_t flags = 257) {
  dns::PrivateNumbers numbers;
  numbers.algorithm = 15;
  numbers.secret = Bytes(32, seed);
  return dns::SigningKey::make(numbers, flags).value();
}

inline ZoneSigningOptions usual() { return {.times = usual_times(kNow)}; }

/// A zone of text, and the same zone signed, in a store each.
class SignedZone {
 public:
  explicit SignedZone(const std::string& text, ZoneSigningOptions options = usual(),
                      std::vector<dns::SigningKey> keys = {ed25519(1)})
      : source_(text), transaction_(source_.store().begin()), draft_(transaction_, {}, 9) {
    ZoneBuilder builder(source_.apex(), transaction_);
    auto signing = SigningKeys::make(std::move(keys));
    auto done = sign_zone(source_.zone(), *signing, options, builder);
    EXPECT_TRUE(done) << done.error().text;
    report_ = *done;
    auto built = builder.finish();
    EXPECT_TRUE(built) << built.error().text;
    EXPECT_TRUE(draft_.put_zone_settings(source_.apex(), ZoneSettings(), 0));
    EXPECT_TRUE(draft_.put_zone(source_.apex(), **built, {}));
  }
  [[nodiscard]] ZoneView zone() const { return draft_.view().zone_at(source_.apex()); }
  [[nodiscard]] const ZoneSigningReport& report() const { return report_; }

  /// Records of a type as text, each as "owner TTL data".
  [[nodiscard]] std::vector<std::string> records(RRType type) const {
    return lines_of([type](RRType one) { return one == type; });
  }
  [[nodiscard]] std::vector<std::string> all_records() const {
    return lines_of([](RRType) { return true; });
  }
  /// The types that have signatures, by owner in lower case.
  [[nodiscard]] std::map<std::string, std::set<RRType>> signed_types() const {
    std::map<std::string, std::set<RRType>> found;
    EXPECT_TRUE(for_each_record(
        zone(), [&](dns::NameView owner, RRType type, dns::Ttl, ByteView rdata) -> Status {
          if (type == RRType::kRRSIG)
            found[dns::to_text(dns::Name(owner).folded())].insert(dns::rrsig_covered(rdata));
          return {};
        }));
    return found;
  }

 private:
  [[nodiscard]] std::vector<std::string> lines_of(
      const std::function<bool(RRType)>& is_wanted) const {
    std::vector<std::string> lines;
    EXPECT_TRUE(for_each_record(
        zone(), [&](dns::NameView owner, RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          if (is_wanted(type))
            lines.push_back(fmt::format("{} {} {}", dns::to_text(owner), ttl.seconds,
                                        dns::rdata_to_text(type, rdata)));
          return {};
        }));
    return lines;
  }

  fuzz::ServedZone source_;
  shm::Transaction transaction_;
  Draft draft_;
  ZoneSigningReport report_;
};

inline void expect_valid(const SignedZone& signed_zone) {
  const Verification verified = verify_zone(signed_zone.zone(), {kNow, 0});
  EXPECT_THAT(verified.faults, ::testing::IsEmpty());
  EXPECT_TRUE(verified.is_signed);
  ASSERT_TRUE(verified.first_end);
  EXPECT_GT(verified.first_end->at, kNow + 6 * 86400);
}

}  // namespace pando::zone::signed_zone_support
