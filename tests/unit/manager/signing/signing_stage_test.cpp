#include "manager/signing/signing_stage.h"

#include <gtest/gtest.h>

namespace pando::manager {
namespace signing_stage_test {

using zone::ParentRequest;

constexpr std::uint64_t kNow = 1'780'000'000;
constexpr SigningWaits kWaits{3600, 86400, true};

SigningStage stage(const SigningFacts& facts, std::uint64_t now = kNow) {
  return signing_state(facts, {}, kWaits, now).stage;
}
ParentRequest request(const SigningFacts& facts, std::uint64_t now = kNow) {
  return signing_state(facts, {}, kWaits, now).parent_request;
}

TEST(SigningStage, TheParentIsAskedWhenNoCacheHasUnsignedRecords) {
  SigningFacts facts;
  EXPECT_EQ(stage(facts), SigningStage::kSigning);
  facts.signed_since = kNow;
  facts.max_ttl = 7200;
  const SigningState spreading = signing_state(facts, {}, kWaits, kNow + 10'799);
  EXPECT_EQ(spreading.stage, SigningStage::kSpreading);
  EXPECT_EQ(spreading.until, kNow + 10'800);
  EXPECT_EQ(spreading.parent_request, ParentRequest::kNone);
  EXPECT_EQ(stage(facts, kNow + 10'800), SigningStage::kDsWanted);
  EXPECT_EQ(request(facts, kNow + 10'800), ParentRequest::kKeys);
  facts.cds_since = kNow + 10'800;
  EXPECT_EQ(stage(facts, kNow), SigningStage::kDsWanted) << "the clock went back";
  facts.ds_seen = kNow + 20'000;
  EXPECT_EQ(stage(facts, kNow + 20'000), SigningStage::kSecure);
  EXPECT_EQ(request(facts, kNow + 20'000), ParentRequest::kKeys);
}

TEST(SigningStage, SignaturesStayWhileCachesMayHaveTheDs) {
  SigningFacts facts;
  facts.signed_since = facts.ds_seen = kNow - 100;
  facts.unsign_since = kNow;
  EXPECT_EQ(stage(facts, kNow + 100 * 86400), SigningStage::kNoDsWanted) << "the operator has to say";
  EXPECT_EQ(request(facts), ParentRequest::kRemoval);
  facts.ds_gone = kNow;
  const SigningState expiring = signing_state(facts, {}, kWaits, kNow + 89'999);
  EXPECT_EQ(expiring.stage, SigningStage::kDsExpiring);
  EXPECT_EQ(expiring.until, kNow + 90'000);
  EXPECT_TRUE(expiring.wants_signatures());
  EXPECT_EQ(stage(facts, kNow + 90'000), SigningStage::kUnsigning);
  EXPECT_FALSE(signing_state(facts, {}, kWaits, kNow + 90'000).wants_signatures());
  facts.unsigned_since = kNow + 90'001;
  EXPECT_EQ(stage(facts, kNow), SigningStage::kUnsigned) << "also by a clock that went back";
  EXPECT_EQ(request(facts), ParentRequest::kNone);
}

TEST(SigningStage, WithoutCdsNothingIsAskedInTheZone) {
  const SigningWaits waits{3600, 86400, false};
  SigningFacts facts;
  facts.ds_seen = kNow;
  EXPECT_EQ(signing_state(facts, {}, waits, kNow).parent_request, ParentRequest::kNone);
  facts.unsign_since = kNow;
  EXPECT_EQ(signing_state(facts, {}, waits, kNow).parent_request, ParentRequest::kNone);
}

}  // namespace signing_stage_test
}  // namespace pando::manager
