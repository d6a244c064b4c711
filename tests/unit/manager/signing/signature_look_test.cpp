#include "manager/signing/signature_look.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/fuzz/served_zone.h"
#include "zone/builder/zone_builder.h"
#include "zone/dnssec/zone_signing.h"

namespace pando::manager {
namespace signature_look_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::uint64_t kNow = 1'780'000'000;
constexpr std::uint64_t kDay = 86400;

/// A zone of four names whose signatures end in ten days.
class OldSignatures : public ::testing::Test {
 protected:
  OldSignatures()
      : source_(
            "@ 600 SOA ns1 admin 7 3600 600 86400 60\n@ 300 NS ns1\nns1 300 A 192.0.2.1\n"
            "a 300 A 192.0.2.2\nb 300 A 192.0.2.3\n"),
        transaction_(source_.store().begin()),
        draft_(transaction_, {}, 9) {
    zone::ZoneBuilder builder(source_.apex(), transaction_);
    const zone::ZoneSigningOptions options{.times = {kNow - 3600, kNow + 10 * kDay, 0},
                                           .threads = 0};
    EXPECT_TRUE(zone::sign_zone(source_.zone(), keys(), options, builder));
    auto built = builder.finish();
    EXPECT_TRUE(draft_.put_zone_settings(source_.apex(), zone::ZoneSettings(), 0));
    EXPECT_TRUE(built && draft_.put_zone(source_.apex(), **built, {}));
  }
  static zone::SigningKeys keys() {
    dns::PrivateNumbers numbers;
    numbers.algorithm = 15;
    numbers.secret = Bytes(32, 1);
    std::vector<dns::SigningKey> keys;
    keys.push_back(dns::SigningKey::make(numbers, 257).value());
    return zone::SigningKeys::make(std::move(keys)).value();
  }
  [[nodiscard]] SignatureLook look(const SignatureLookOptions& options,
                                   zone::ParentRequest request = zone::ParentRequest::kNone) const {
    const ZoneSigner signer(source_.apex(), keys(), {.parent_request = request});
    return look_at_signatures(draft_.view().zone_at(source_.apex()), signer, options);
  }
  [[nodiscard]] std::vector<dns::Name> found(std::uint64_t before, std::uint64_t now,
                                             std::size_t most = 100) const {
    return look({now, before, most}).due;
  }

  fuzz::ServedZone source_;
  shm::Transaction transaction_;
  zone::Draft draft_;
};

TEST_F(OldSignatures, EndBeforeTheTimeThatIsAskedFor) {
  EXPECT_THAT(found(kNow + 10 * kDay, kNow), IsEmpty());
  EXPECT_THAT(found(kNow + 10 * kDay + 1, kNow), SizeIs(4));
}

TEST_F(OldSignatures, AreFoundInPortions) {
  const auto first = found(kNow + 11 * kDay, kNow, 3);
  ASSERT_THAT(first, SizeIs(3));
  EXPECT_EQ(first.front(), source_.apex());
}

TEST_F(OldSignatures, FromTheFutureAreOld) {
  EXPECT_THAT(found(kNow, kNow - kDay), SizeIs(4)) << "the clock was ahead when they were made";
  EXPECT_THAT(found(kNow - kDay, kNow - 3600), IsEmpty());
}

TEST_F(OldSignatures, EndAndLongestTtlAreThoseOfTheSource) {
  const SignatureLook seen = look({kNow, kNow});
  EXPECT_EQ(seen.first_end, kNow + 10 * kDay);
  EXPECT_EQ(seen.max_ttl, 600U);
}

TEST_F(OldSignatures, AWishForTheParentMakesTheApexDueOnce) {
  EXPECT_THAT(look({kNow, kNow}, zone::ParentRequest::kKeys).due, ElementsAre(source_.apex()));
  EXPECT_THAT(look({kNow, kNow + 11 * kDay}, zone::ParentRequest::kRemoval).due, SizeIs(4));
}

TEST_F(OldSignatures, AnotherTtlOfNegativeAnswersMakesAllNamesDue) {
  const dns::Name apex = source_.apex();
  const auto soa = [&](std::uint32_t serial, std::uint32_t minimum) {
    Bytes rdata;
    EXPECT_TRUE(dns::rdata_from_text(dns::RRType::kSOA,
                                     fmt::format("ns1.{0} admin.{0} {1} 3600 600 86400 {2}",
                                                 dns::to_text(apex), serial, minimum),
                                     dns::NameView(), rdata));
    return zone::Record{apex, dns::RRType::kSOA, dns::Ttl{600}, std::move(rdata)};
  };
  ASSERT_TRUE(draft_.apply({apex, {soa(7, 60)}, {soa(8, 30)}}, zone::DataLimits::none()));
  EXPECT_THAT(found(kNow, kNow), SizeIs(4));
}

/// The same zone, looked at by a signer whose keys follow others.
class RolledSignatures : public OldSignatures {
 protected:
  static dns::SigningKey key(std::uint8_t octet, std::uint8_t algorithm = 15) {
    dns::PrivateNumbers numbers;
    numbers.algorithm = algorithm;
    numbers.secret = Bytes(32, octet);
    return dns::SigningKey::make(numbers, 257).value();
  }
  /// By the zone's key and another one.
  [[nodiscard]] SignatureLook look_with(const dns::SigningKey& other, zone::KeyUse of_old,
                                        zone::KeyUse of_other) const {
    std::vector<dns::SigningKey> both;
    both.push_back(key(1));
    both.push_back(other);
    const auto usual = zone::SigningKeys::make(std::move(both)).value();
    const ZoneSigner signer(source_.apex(), usual.rolling({of_old, of_other}), {});
    return look_at_signatures(draft_.view().zone_at(source_.apex()), signer, {kNow, kNow});
  }
  static constexpr zone::KeyUse kAll{true, true, true, true};
  static constexpr zone::KeyUse kNone{};
};

TEST_F(RolledSignatures, AreAllThereForAKeyWithoutUses) {
  const SignatureLook seen = look_with(key(2), kAll, kNone);
  EXPECT_THAT(seen.due, IsEmpty());
  EXPECT_TRUE(seen.shows_keys);
  EXPECT_FALSE(seen.has_old_signatures);
}

TEST_F(RolledSignatures, OfThePublishedKeysAreMissingAtTheApex) {
  const SignatureLook seen = look_with(key(2), kAll, {true, true, false, false});
  EXPECT_THAT(seen.due, ElementsAre(source_.apex()));
  EXPECT_FALSE(seen.shows_keys);
}

TEST_F(RolledSignatures, StayUntilTheyAreDueBesideAKeyOfTheirAlgorithm) {
  const SignatureLook seen =
      look_with(key(2), {true, true, false, false, true}, {false, false, true, false});
  EXPECT_THAT(seen.due, IsEmpty());
  EXPECT_TRUE(seen.shows_keys);
  EXPECT_TRUE(seen.has_old_signatures);
}

TEST_F(RolledSignatures, GoWithAKeyThatKeepsNone) {
  const SignatureLook seen =
      look_with(key(2), {true, true, false, false}, {false, false, true, false});
  EXPECT_THAT(seen.due, SizeIs(4));
  EXPECT_FALSE(seen.shows_keys);
}

TEST_F(RolledSignatures, OfAnotherAlgorithmAreMissingAtEachName) {
  const SignatureLook seen = look_with(key(2, 13), kAll, {false, false, true, false});
  EXPECT_THAT(seen.due, SizeIs(4));
  EXPECT_FALSE(seen.shows_keys);
  EXPECT_FALSE(seen.has_old_signatures);
}

}  // namespace signature_look_test
}  // namespace pando::manager
