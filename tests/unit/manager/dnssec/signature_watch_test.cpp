#include "manager/dnssec/signature_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "shm/side_table.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/update/signed_store.h"

namespace pando::manager {
namespace signature_watch_test {

using testing::edited;
using testing::kSigningTime;
using testing::kZone;
using testing::Lines;
using testing::name;
using testing::Parts;
using testing::RecordTexts;
using testing::Signing;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kEnd = 1'800'000'000;  // of what Signing makes
constexpr std::uint32_t kDay = 86'400;

/// "example." in a store: NSEC, NSEC3 and NSEC3 with opt-out.
class Watch : public ::testing::TestWithParam<int> {
 protected:
  Watch() {
    how_.nsec3 = GetParam() > 0;
    how_.opt_out = GetParam() > 1;
  }
  ~Watch() override { watch_.stop(); }

  /// Makes the zone's data these, by one changeset.
  void put(const RecordTexts& records) {
    const RecordTexts before = testing::all_records(parts_.zone.zone());
    zone::Changeset changes{name("@"), {}, {}};
    for (const auto& [text, one] : before)
      if (!records.contains(text)) changes.removed.push_back(one);
    for (const auto& [text, one] : records)
      if (!before.contains(text)) changes.added.push_back(one);
    parts_.zone.apply(changes);
  }
  RecordTexts signed_zone(const Lines& lines) const { return testing::sign(lines, how_); }
  void serve() {
    now_ += 3600;  // behind the pause after a verification, which is as long as the machine is slow
    watch_.served(name("@"));
    settle();
  }
  void settle() {
    // The queue is looked at in a later turn of the loop.
    parts_.io.restart();
    parts_.io.poll();
    EXPECT_TRUE(parts_.run_until([this] { return watch_.idle(); }));
  }
  void sweep() {
    watch_.sweep();
    settle();
  }
  SignatureWatch::Clock steady() {
    return [this] { return now_ + put_back_; };
  }
  std::uint64_t end_in_store() {
    const auto* side =
        shm::known_side(parts_.zone.store().window(), parts_.zone.zone().side_index());
    return side == nullptr ? 0 : shm::signatures_end(*side);
  }
  /// A record that its old signature covers still; the SOA's signature is right.
  RecordTexts with_a_changed_record() {
    RecordTexts records = signed_zone(edited(kZone, {}, {}));
    zone::Record record = testing::first_of(records, "www.example. A ");
    std::erase_if(records, [](const auto& one) { return one.first.starts_with("www.example. A "); });
    record.rdata.back() ^= 1;
    testing::put(records, record);
    return records;
  }

  Signing how_;
  Parts parts_;
  config::SignaturePolicy policy_ = config::SignaturePolicy::kWarn;
  std::uint64_t now_ = kSigningTime;
  std::uint64_t put_back_ = 0;  // seconds by which the host's clock was put back
  SignatureWatch watch_{parts_.io,
                        parts_.zone.store(),
                        parts_.slots,
                        parts_.committer,
                        [this](const dns::Name&) { return policy_; },
                        {.threads = 2, .now = [this] { return now_; }, .steady = steady()}};
};

TEST_P(Watch, AValidZoneHasNoFaultAndItsEndIsInTheStore) {
  put(signed_zone(kZone));
  serve();
  EXPECT_TRUE(watch_.is_verified(parts_.zone.zone()));
  EXPECT_EQ(watch_.problem(name("@")), "");
  EXPECT_EQ(end_in_store(), kEnd);
  EXPECT_EQ(watch_.counters().whole, 1U);
  serve();
  EXPECT_EQ(watch_.counters().whole, 1U) << "the same data";
}

TEST_P(Watch, AChangedRecordUnderItsOldSignatureIsAFault) {
  put(with_a_changed_record());
  serve();
  EXPECT_FALSE(watch_.is_verified(parts_.zone.zone()));
  EXPECT_THAT(watch_.problem(name("@")), StartsWith("not valid: www.example. A: RRSIG by key "));
  EXPECT_EQ(watch_.faults(name("@")), 1U);
  EXPECT_EQ(watch_.zones_with_faults(), 1U);
  put(signed_zone(kZone));
  serve();
  EXPECT_EQ(watch_.problem(name("@")), "");
  EXPECT_EQ(watch_.zones_with_faults(), 0U);
}

TEST_P(Watch, ChangesOfAValidZoneAreVerifiedAlone) {
  put(signed_zone(kZone));
  serve();
  how_.expiration -= kDay;
  put(signed_zone(edited(kZone, {"www 300 A 192.0.2.10"},
                         {"www 300 A 192.0.2.11", "new 300 A 192.0.2.9"})));
  serve();
  EXPECT_TRUE(watch_.is_verified(parts_.zone.zone()));
  EXPECT_EQ(watch_.counters().whole, 1U);
  EXPECT_EQ(watch_.counters().changes, 1U);
  EXPECT_EQ(end_in_store(), kEnd - kDay) << "of the new signatures";
}

TEST_P(Watch, AChangeThatBreaksAValidZoneIsFound) {
  put(signed_zone(kZone));
  serve();
  put(with_a_changed_record());
  serve();
  EXPECT_THAT(watch_.problem(name("@")), HasSubstr("www.example. A: RRSIG"));
  EXPECT_EQ(watch_.counters().whole, 2U);
  EXPECT_EQ(watch_.counters().changes, 0U);
}

TEST_P(Watch, ABrokenChainIsFound) {
  put(signed_zone(kZone));
  serve();
  RecordTexts records = signed_zone(edited(kZone, {"alias 300 CNAME www"}, {}));
  const RecordTexts whole = signed_zone(edited(kZone, {}, {}));
  for (const auto& [text, one] : whole)  // the name, but not its place in the chain
    if (text.starts_with("alias.example. CNAME") || text.starts_with("alias.example. RRSIG CNAME"))
      records.emplace(text, one);
  put(records);
  serve();
  EXPECT_THAT(watch_.problem(name("@")), HasSubstr(how_.nsec3 ? "NSEC3" : "NSEC"));
}

TEST_P(Watch, WhenTheFirstSignatureEndsTheZoneIsVerifiedAgain) {
  put(signed_zone(kZone));
  serve();
  now_ = kEnd - kDay;
  sweep();
  EXPECT_EQ(watch_.counters().whole, 1U) << "nothing has changed";
  EXPECT_EQ(watch_.counters().warnings, 1U);
  sweep();
  EXPECT_EQ(watch_.counters().warnings, 1U) << "once a day";
  now_ = kEnd + 1;
  sweep();
  EXPECT_THAT(watch_.problem(name("@")), HasSubstr("expired at "));
  EXPECT_EQ(watch_.counters().whole, 2U);
  sweep();
  EXPECT_EQ(watch_.counters().whole, 2U) << "there is no more to find";
}

TEST_P(Watch, TheSignatureThatEndsLastCountsForItsSet) {
  Signing earlier = how_;
  earlier.expiration -= kDay;
  RecordTexts records = testing::sign(kZone, earlier);
  for (const auto& [text, one] : signed_zone(kZone)) records.emplace(text, one);
  put(records);
  serve();
  EXPECT_EQ(watch_.problem(name("@")), "");
  EXPECT_EQ(end_in_store(), kEnd);
}

TEST_P(Watch, UpdatesAreLookedAtOnceADay) {
  put(signed_zone(kZone));
  serve();
  put(with_a_changed_record());  // nobody says so
  sweep();
  EXPECT_EQ(watch_.problem(name("@")), "");
  now_ += kDay;
  sweep();
  EXPECT_THAT(watch_.problem(name("@")), HasSubstr("www.example. A: RRSIG"));
}

TEST_P(Watch, AVerdictOfOthersIsTaken) {
  put(signed_zone(kZone));
  Verdict verdict;
  verdict.found.first_end = zone::SignatureEnd{name("@"), dns::RRType::kSOA, kEnd - 1};
  watch_.served(name("@"), &verdict);
  settle();
  EXPECT_TRUE(watch_.is_verified(parts_.zone.zone()));
  EXPECT_EQ(end_in_store(), kEnd - 1);
  EXPECT_EQ(watch_.counters().whole, 0U);
}

TEST_P(Watch, NothingIsVerifiedWhileItIsHeld) {
  put(with_a_changed_record());
  watch_.hold();
  watch_.served(name("@"));
  parts_.io.restart();
  parts_.io.poll();
  EXPECT_FALSE(watch_.idle());
  EXPECT_EQ(watch_.problem(name("@")), "");
  watch_.release();
  settle();
  EXPECT_NE(watch_.problem(name("@")), "");
}

TEST_P(Watch, AZoneThatIsNotToBeVerifiedIsForgotten) {
  put(with_a_changed_record());
  serve();
  EXPECT_NE(watch_.problem(name("@")), "");
  EXPECT_NE(end_in_store(), 0U);
  policy_ = config::SignaturePolicy::kOff;
  serve();
  EXPECT_EQ(watch_.problem(name("@")), "");
  EXPECT_EQ(end_in_store(), 0U);
  EXPECT_EQ(watch_.zones_with_faults(), 0U);
}

TEST_P(Watch, AVerificationUnderWayIsGivenUpWhenItIsNotWantedAnyMore) {
  put(with_a_changed_record());
  watch_.served(name("@"));
  while (watch_.counters().begun == 0) {
    parts_.io.restart();
    parts_.io.poll_one();
  }
  policy_ = config::SignaturePolicy::kOff;
  watch_.configured();
  settle();
  EXPECT_EQ(watch_.problem(name("@")), "") << "no verdict, or of a zone that is not wanted";
}

/// A zone that changes within the pause waits for its end, and not for the next sweep.
TEST_P(Watch, AChangeWithinThePauseIsVerifiedBehindIt) {
  put(signed_zone(kZone));
  SignatureWatch watch{parts_.io,
                       parts_.zone.store(),
                       parts_.slots,
                       parts_.committer,
                       [](const dns::Name&) { return config::SignaturePolicy::kWarn; },
                       {2, [this] { return now_; }, 1'000'000, steady()}};
  watch.served(name("@"));
  EXPECT_TRUE(parts_.run_until([&] { return watch.counters().whole == 1; }));
  put(with_a_changed_record());
  watch.served(name("@"));
  settle();
  EXPECT_EQ(watch.counters().begun, 1U);
  now_ += 10U * 365 * kDay;
  EXPECT_TRUE(parts_.run_until([&] { return watch.counters().whole == 2; }));
  EXPECT_NE(watch.faults(name("@")), 0U);
  watch.stop();
}

TEST_P(Watch, APauseEndsThoughTheClockWasPutBack) {
  put(signed_zone(kZone));
  serve();
  EXPECT_EQ(watch_.counters().begun, 1U);
  put(with_a_changed_record());
  now_ -= kDay;
  put_back_ += kDay;
  serve();
  EXPECT_EQ(watch_.counters().begun, 2U);
}

TEST_P(Watch, AtTheEndOfTheProcessNothingBegins) {
  put(signed_zone(kZone));
  watch_.served(name("@"));
  watch_.stop();
  settle();
  EXPECT_EQ(watch_.counters().begun, 0U);
}

INSTANTIATE_TEST_SUITE_P(Denial, Watch, ::testing::Values(0, 1, 2));

class UnsignedWatch : public Watch {};

TEST_P(UnsignedWatch, AZoneWithoutSignaturesCostsNothing) {
  serve();
  EXPECT_EQ(watch_.counters().begun, 0U);
  EXPECT_EQ(end_in_store(), 0U);
  EXPECT_FALSE(watch_.is_verified(parts_.zone.zone()));
}

INSTANTIATE_TEST_SUITE_P(Denial, UnsignedWatch, ::testing::Values(0));

}  // namespace signature_watch_test
}  // namespace pando::manager
