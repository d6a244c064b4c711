#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "dns/rdata/rdata.h"
#include "manager/dnssec/change_signing.h"
#include "tests/fuzz/served_zone.h"
#include "zone/builder/zone_builder.h"
#include "zone/dnssec/zone_signing.h"
#include "zone/dnssec/zone_verification.h"
#include "zone/read/each_record.h"

/// A zone and its signed form, for tests of signed changes.
namespace pando::manager::two_zones {

using dns::RRType;

inline constexpr std::uint64_t kNow = 1'780'000'000;
inline constexpr std::string_view kHead =
    "@ 600 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n";

inline dns::Name name(const std::string& text) {
  return dns::Name::from_text(text.ends_with('.') ? text : text + ".example.").value();
}

inline std::vector<dns::SigningKey> keys_of(const std::vector<std::uint16_t>& flags) {
  std::vector<dns::SigningKey> keys;
  for (const std::uint16_t one : flags) {
    dns::PrivateNumbers numbers;
    numbers.algorithm = 15;
    numbers.secret = Bytes(32, static_cast<std::uint8_t>(keys.size() + 1));
    keys.push_back(dns::SigningKey::make(numbers, one).value());
  }
  return keys;
}

/// A zone of text, and the same zone with signatures; changes go to both.
class TwoZones {
 public:
  explicit TwoZones(const std::string& text, const std::vector<std::uint16_t>& flags = {257},
                    const zone::SigningDenial& denial = {})
      : signer_(name("example."), zone::SigningKeys::make(keys_of(flags)).value(),
                {.denial = denial}),
        text_(text),
        transaction_(text_.store().begin()),
        source_(transaction_, text_.store().current().root, 8),
        signed_(transaction_, {}, 9) {
    sign_whole(signed_, kNow);
  }

  [[nodiscard]] zone::ZoneView source() const { return source_.view().zone_at(apex_); }
  [[nodiscard]] zone::ZoneView zone() const { return signed_.view().zone_at(apex_); }
  [[nodiscard]] const ZoneSigner& signer() const { return signer_; }

  /// Applies the change, with the next serial, to the source, and signed to the other zone.
  void change(zone::Changeset changes, ChangeSigningOptions options = {kNow}) {
    move_serial(changes);
    ASSERT_TRUE(signer_.has_signed(zone()));
    auto complete = sign_change(zone(), changes, signer_, options);
    ASSERT_TRUE(complete) << complete.error().text;
    ASSERT_TRUE(*complete);
    last_ = **complete;
    if (!changes.empty()) {
      auto applied = source_.apply(changes, zone::DataLimits::none());
      ASSERT_TRUE(applied) << applied.error().text;
    }
    auto applied = signed_.apply(last_, zone::DataLimits::none());
    ASSERT_TRUE(applied) << applied.error().text;
    EXPECT_EQ(applied->missing_removals, 0U);
    EXPECT_EQ(applied->redundant_additions, 0U);
  }
  /// The signed zone is that of signing the source as a whole, but for the signatures' octets.
  void compare(const std::string& what = "") {
    zone::Draft whole(transaction_, {}, 10);
    sign_whole(whole, kNow);
    EXPECT_EQ(lines_of(zone()), lines_of(whole.view().zone_at(apex_))) << what;
    const auto found = zone::verify_zone(zone(), {kNow, 0});
    EXPECT_THAT(found.faults, ::testing::IsEmpty()) << what;
  }
  /// Puts a record into the signed zone alone.
  void put_beside(const zone::Record& record) {
    auto applied = signed_.apply({apex_, {}, {record}}, zone::DataLimits::none());
    ASSERT_TRUE(applied) << applied.error().text;
  }
  /// The signed zone is a secondary one, whose data have this serial at the primary.
  void set_primary_serial(dns::Serial serial) {
    ASSERT_TRUE(signed_.put_primary_serial(apex_, serial));
  }
  /// The change with the next serial.
  [[nodiscard]] zone::Changeset with_serial(zone::Changeset changes) const {
    move_serial(changes);
    return changes;
  }
  [[nodiscard]] const zone::Changeset& last() const { return last_; }
  [[nodiscard]] std::size_t signatures_made() const {
    return static_cast<std::size_t>(
        std::ranges::count(last_.added, RRType::kRRSIG, &zone::Record::type));
  }

 private:
  void sign_whole(zone::Draft& into, std::uint64_t now) {
    zone::ZoneBuilder builder(apex_, transaction_);
    zone::ZoneSigningOptions options;
    options.times = {now - 3600, now + 86400, 0};
    options.threads = 0;
    options.denial = signer_.options().denial;
    auto done = zone::sign_zone(source(), signer_.keys(), options, builder);
    ASSERT_TRUE(done) << done.error().text;
    auto built = builder.finish();
    ASSERT_TRUE(built) << built.error().text;
    ASSERT_TRUE(into.put_zone_settings(apex_, zone::ZoneSettings(), 0));
    ASSERT_TRUE(into.put_zone(apex_, **built, {}));
  }

  void move_serial(zone::Changeset& changes) const {
    const zone::RRsetView soa = source().soa();
    const ByteView rdata = soa.first_rdata();
    zone::Record before{apex_, RRType::kSOA, soa.ttl(), Bytes(rdata.begin(), rdata.end())};
    zone::Record after = before;
    store_be32(after.rdata.data() + after.rdata.size() - 20, source().serial().value + 1);
    changes.removed.push_back(std::move(before));
    changes.added.push_back(std::move(after));
  }

  /// Records as text; of signatures only what does not depend on keys and times.
  static std::set<std::string> lines_of(const zone::ZoneView& zone) {
    constexpr std::size_t kLabelsAndTtl = 8;  // behind it are times, tag, signer, signature
    std::set<std::string> lines;
    EXPECT_TRUE(zone::for_each_record(
        zone, [&](dns::NameView owner, RRType type, dns::Ttl ttl, ByteView rdata) -> Status {
          std::string data = type == RRType::kRRSIG
                                 ? fmt::format("{:02x}", fmt::join(rdata.first(kLabelsAndTtl), ""))
                                 : dns::rdata_to_text(type, rdata);
          lines.insert(fmt::format("{} {} {} {}", dns::to_text(dns::Name(owner).folded()),
                                   ttl.seconds, dns::to_text(type), data));
          return {};
        }));
    return lines;
  }

  dns::Name apex_ = name("example.");
  ZoneSigner signer_;
  fuzz::ServedZone text_;
  shm::Transaction transaction_;
  zone::Draft source_;
  zone::Draft signed_;
  zone::Changeset last_;
};

/// Records from lines as a zone file has them.
inline std::vector<zone::Record> records(const std::string& text) {
  std::vector<zone::Record> out;
  dns::ScanOptions options;
  options.origin = name("example.");
  const auto report =
      dns::scan_zone_text(text, "text", options, [&](const dns::ScannedRecord& record) -> Status {
        out.push_back({dns::HeapName(record.owner), record.type, record.ttl,
                       Bytes(record.rdata.begin(), record.rdata.end())});
        return {};
      });
  EXPECT_TRUE(report.ok());
  return out;
}

inline zone::Changeset adding(const std::string& text) {
  return {name("example."), {}, records(text)};
}
inline zone::Changeset removing(const std::string& text) {
  return {name("example."), records(text), {}};
}

/// Random changes of random zones.
class RandomChanges {
 public:
  explicit RandomChanges(unsigned seed) : random_(seed) {}

  std::string owner() {
    static const std::vector<std::string> kLabels{"a", "b", "*", "sub", "dn", "c", "Z", "\\000"};
    std::string text = kLabels[below(kLabels.size())];
    while (below(3) == 0) text = kLabels[below(kLabels.size())] + "." + text;
    return text;
  }
  std::string line() {
    switch (below(9)) {
      case 0:
        return owner() + " 300 NS ns.elsewhere.test.\n";
      case 1:
        return owner() + " 300 DNAME elsewhere.test.\n";
      case 2: {
        const std::string cut = owner();
        return (below(2) == 0 ? cut + " 300 NS ns.elsewhere.test.\n" : "") + cut +
               " 300 DS 1 8 2 0123456789012345678901234567890123456789012345678901234567890123\n";
      }
      case 3:
        return owner() + " 300 TXT text\n";
      case 4:
        return owner() + " 300 TYPE65280 \\# 1 00\n";
      case 5:
        return fmt::format("@ 300 MX {} mail\n", below(3));
      default:
        return fmt::format("{} 300 A 192.0.2.{}\n", owner(), below(3));
    }
  }
  std::size_t below(std::size_t limit) { return random_() % limit; }

 private:
  std::mt19937 random_;
};

/// Sixty changes of an empty zone, each compared with signing the whole zone.
inline void change_at_random(unsigned seed, const zone::SigningDenial& denial,
                             const std::vector<std::uint16_t>& flags = {257}) {
  RandomChanges random(seed);
  TwoZones zones(std::string(kHead), flags, denial);
  std::vector<std::string> there;
  for (int step = 0; step < 60; ++step) {
    zone::Changeset changes{name("example."), {}, {}};
    std::string what = fmt::format("seed {} step {}:", seed, step);
    for (std::size_t i = 0; i <= random.below(4); ++i) {
      if (!there.empty() && random.below(3) == 0) {
        const std::size_t at = random.below(there.size());
        const auto out = records(there[at]);
        changes.removed.insert(changes.removed.end(), out.begin(), out.end());
        what += " -" + there[at];
        there.erase(there.begin() + static_cast<std::ptrdiff_t>(at));
        continue;
      }
      const std::string line = random.line();
      if (std::ranges::find(there, line) != there.end()) continue;
      const auto in = records(line);
      changes.added.insert(changes.added.end(), in.begin(), in.end());
      what += " +" + line;
      there.push_back(line);
    }
    zones.change(std::move(changes));
    ASSERT_FALSE(::testing::Test::HasFatalFailure()) << what;
    zones.compare(what);
    ASSERT_FALSE(::testing::Test::HasFailure()) << what;
  }
}

}  // namespace pando::manager::two_zones
