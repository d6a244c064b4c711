// Updates of a signed zone that concern its keys: how they roll over, and which count.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "manager/dnssec/signature_check.h"
#include "tests/unit/manager/update/signed_store.h"

namespace pando::manager {
namespace signed_keys_test {

using dns::Rcode;
using dns::RRType;
using testing::difference;
using testing::edited;
using testing::first_of;
using ::testing::HasSubstr;
using testing::kZone;
using testing::Lines;
using testing::name;
using testing::RecordTexts;
using testing::sign;
using testing::SignedStore;
using testing::SignedUpdate;
using testing::Signing;
using testing::TestKey;

TEST_P(SignedUpdate, KeysRollOver) {
  const TestKey old(1), fresh(2, 256);
  Signing published = how_, both = how_, swapped = how_, gone = how_;
  published.published = {old, fresh};
  both.published = {old, fresh};
  both.signing = {old, fresh};
  gone.published = {fresh};
  gone.signing = {fresh};
  const RecordTexts zero = signed_zone(kZone);
  const Lines next = edited(kZone, {}, {});
  const auto at = [&](const Signing& how, int serial) {
    Lines lines = next;
    lines.back() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    return sign(lines, how);
  };
  SignedStore store(zero);
  EXPECT_EQ(store.run(difference(zero, at(gone, 11))), Rcode::kRefused) << "all at once";
  EXPECT_THAT(store.reason(), HasSubstr("no DNSKEY would be left that signed"));
  EXPECT_EQ(store.run(difference(zero, at(published, 11))), Rcode::kNoError) << store.reason();
  EXPECT_EQ(store.run(difference(at(published, 11), at(gone, 12))), Rcode::kRefused);
  EXPECT_EQ(store.run(difference(at(published, 11), at(both, 12))), Rcode::kNoError)
      << store.reason();
  EXPECT_EQ(store.run(difference(at(both, 12), at(gone, 13))), Rcode::kNoError) << store.reason();
}

/// RFC 6781 §4.1.4: the signatures of an algorithm come before its keys and go after them.
TEST_P(SignedUpdate, AlgorithmsRollOver) {
  const TestKey old(1), fresh(2, 257, 16);
  const auto at = [&](int serial, std::vector<TestKey> published, std::vector<TestKey> signing) {
    Signing how = how_;
    how.published = std::move(published);
    how.signing = std::move(signing);
    Lines lines = edited(kZone, {}, {fmt::format("www 300 TXT {}", serial)});
    lines.back() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    return sign(lines, how);
  };
  RecordTexts now = at(11, {old}, {old});
  SignedStore store(now);
  EXPECT_EQ(store.run(difference(now, at(12, {old}, {fresh}))), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("has no RRSIG of algorithm 15"));
  const std::vector<RecordTexts> steps = {at(12, {old}, {old, fresh}),
                                          at(13, {old, fresh}, {old, fresh}),
                                          at(14, {fresh}, {old, fresh}), at(15, {fresh}, {fresh})};
  for (const RecordTexts& next : steps) {
    EXPECT_EQ(store.run(difference(now, next)), Rcode::kNoError) << store.reason();
    EXPECT_EQ(store.records().size(), next.size());
    now = next;
  }
}

TEST_P(SignedUpdate, ADigestOfTheZoneIsOfItsSerial) {
  const std::string digest(96, 'A');
  const Lines with = [&] {
    Lines lines = kZone;
    lines.push_back("@ 3600 ZONEMD 10 1 1 " + digest);
    return lines;
  }();
  const auto answer = [&](const Lines& after) {
    SignedStore store(signed_zone(with));
    return store.run(difference(signed_zone(with), signed_zone(after))) == Rcode::kNoError
               ? "accepted"
               : store.reason();
  };
  EXPECT_THAT(answer(edited(with, {}, {})), HasSubstr("no ZONEMD would be of serial 11"));
  EXPECT_EQ(answer(edited(with, {with.back()}, {"@ 3600 ZONEMD 11 1 1 " + digest})), "accepted");
  EXPECT_EQ(answer(edited(with, {with.back()}, {})), "accepted");
}

/// Validators come to the keys by one that the parent names.
TEST_P(SignedUpdate, AKeyThatSignedTheKeysHasToSignThemStill) {
  const TestKey entry(1), working(2, 256);
  Signing both = how_;
  both.published = both.signing = {entry, working};
  const auto at = [&](int serial, const TestKey& signer_of_keys) {
    Lines lines = kZone;
    lines.front() = fmt::format("@ 3600 SOA ns1 admin {} 3600 600 86400 300", serial);
    RecordTexts records = sign(lines, both);
    std::erase_if(records, [&](const auto& entry_of) {
      const zone::Record& one = entry_of.second;
      return one.type == RRType::kRRSIG && dns::rrsig_covered(one.rdata) == RRType::kDNSKEY &&
             dns::parse_rrsig(one.rdata)->key_tag != dns::key_tag(signer_of_keys.dnskey());
    });
    return records;
  };
  SignedStore store(at(10, entry));
  EXPECT_EQ(store.run(difference(at(10, entry), at(11, working))), Rcode::kRefused);
  EXPECT_THAT(store.reason(), HasSubstr("no key that signed example. DNSKEY before"));
  EXPECT_EQ(store.run(difference(at(10, entry), at(11, entry))), Rcode::kNoError) << store.reason();
}

TEST_P(SignedUpdate, ARevokedKeyCountsForNothing) {
  const TestKey revoked(1, 257 | 0x80), fresh(2);
  Signing both = how_, after = how_;
  both.published = both.signing = {TestKey(1), fresh};
  after.published = {revoked, fresh};
  after.signing = {revoked};
  const RecordTexts before = sign(kZone, both);
  SignedStore store(before);
  EXPECT_EQ(store.run(difference(before, sign(edited(kZone, {}, {}), after))), Rcode::kRefused);
}

TEST_P(SignedUpdate, AKeyOfAnUnknownAlgorithmDemandsNothing) {
  SignedStore store(signed_zone(kZone));
  Lines lines = edited(kZone, {}, {"@ 3600 DNSKEY 256 3 200 AAAA"});
  EXPECT_EQ(store.run(difference(signed_zone(kZone), signed_zone(lines))), Rcode::kNoError)
      << store.reason();
}

TEST_P(SignedUpdate, MalformedKeysAreNoKeys) {
  for (const char* key : {"@ 3600 DNSKEY 256 3 15 AAAA", "@ 3600 DNSKEY 256 3 8 AAAA",
                          "@ 3600 DNSKEY 256 3 13 AAAA", "@ 3600 DNSKEY 256 3 5 AQ=="}) {
    SignedStore store(signed_zone(kZone));
    EXPECT_EQ(store.run(difference(signed_zone(kZone), signed_zone(edited(kZone, {}, {key})))),
              Rcode::kNoError)
        << key << store.reason();
  }
}

TEST(ZoneKeys, VerifiesNoMoreThanItMay) {
  const RecordTexts records = sign(kZone, Signing());
  const TouchedNames::RRset dnskey{{3600}, {TestKey(1).dnskey()}};
  const TouchedNames::RRset soa{{3600}, {first_of(records, "example. SOA").rdata}};
  const Bytes signature = first_of(records, "example. RRSIG SOA").rdata;
  ZoneKeys keys(&dnskey);
  for (std::size_t i = 0; i < ZoneKeys::kMaxVerifications; ++i)
    ASSERT_EQ(keys.verify(*dns::parse_rrsig(signature), name("@"), soa),
              ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*dns::parse_rrsig(signature), name("@"), soa), ZoneKeys::Verdict::kTooMany);
}

TEST(ZoneKeys, HashesNoMoreThanItMay) {
  const RecordTexts records = sign(kZone, Signing());
  const TouchedNames::RRset dnskey{{3600}, {TestKey(1).dnskey()}};
  const TouchedNames::RRset soa{{3600}, {first_of(records, "example. SOA").rdata}};
  const Bytes rdata = first_of(records, "example. RRSIG SOA").rdata;
  const auto signature = dns::parse_rrsig(rdata);
  const std::size_t octets = dns::signed_octets(*signature, name("@"), soa.rdatas).size();
  ZoneKeys keys(&dnskey, {ZoneKeys::kMaxVerifications, 2 * octets + 1});
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kVerified);
  EXPECT_EQ(keys.verify(*signature, name("@"), soa), ZoneKeys::Verdict::kTooMany);
}

}  // namespace signed_keys_test
}  // namespace pando::manager
