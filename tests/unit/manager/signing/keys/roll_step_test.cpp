#include "manager/signing/keys/roll_step.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::manager {
namespace roll_step_test {

using ::testing::ElementsAre;
using zone::KeyUse;

constexpr std::uint64_t kNow = 1'780'000'000;
constexpr RollWaits kWaits{100, 10, 1'000, true};
constexpr FolderKey kOldKsk{{13, 1}, true}, kZsk{{13, 2}, false}, kNewKsk{{13, 3}, true},
    kNewZsk{{13, 4}, false}, kCsk{{13, 5}, true}, kNewCsk{{13, 6}, true}, kOther{{15, 7}, true};

/// Letters of a use: published, signs keys, signs data, DS, keeps signatures.
std::string text_of(const KeyUse& use) {
  std::string text;
  text += use.is_published ? 'p' : '-';
  text += use.signs_keys ? 'k' : '-';
  text += use.signs_data ? 'd' : '-';
  text += use.has_ds ? 's' : '-';
  text += use.keeps_signatures ? 'o' : '-';
  return text;
}

std::vector<std::string> uses(std::vector<FolderKey> keys, RollStep step) {
  KeyRoll roll{step};
  for (const FolderKey& key : keys) {
    const bool is_new = key.id == kNewKsk.id || key.id == kNewZsk.id || key.id == kNewCsk.id ||
                        key.id == kOther.id;
    if (is_new) roll.new_keys.push_back(key.id);
  }
  const bool is_zsk_alone = roll.new_keys == std::vector<KeyId>{kNewZsk.id};
  for (const FolderKey& key : keys) {
    const bool is_old = std::ranges::find(roll.new_keys, key.id) == roll.new_keys.end();
    const bool stays = is_zsk_alone ? key.is_sep : key.id == kZsk.id;
    if (is_old && !stays) roll.old_keys.push_back(key.id);
  }
  std::vector<std::string> texts;
  for (const KeyUse& use : uses_of(keys, roll)) texts.push_back(text_of(use));
  return texts;
}

TEST(RollStepTest, AKskIsPublishedBesideTheOldOneUntilTheParentHasIt) {
  const std::vector<FolderKey> keys{kOldKsk, kZsk, kNewKsk};
  EXPECT_THAT(uses(keys, RollStep::kPublish), ElementsAre("pk-s-", "p-d--", "pk---"));
  EXPECT_THAT(uses(keys, RollStep::kSwap), ElementsAre("pk---", "p-d--", "pk-s-"));
  EXPECT_THAT(uses(keys, RollStep::kRemove), ElementsAre("-----", "p-d--", "pk-s-"));
}

TEST(RollStepTest, AZskIsPublishedBeforeItSigns) {
  const std::vector<FolderKey> keys{kOldKsk, kZsk, kNewZsk};
  EXPECT_THAT(uses(keys, RollStep::kPublish), ElementsAre("pk-s-", "p-d--", "p----"));
  EXPECT_THAT(uses(keys, RollStep::kSwap), ElementsAre("pk-s-", "p---o", "p-d--"));
  EXPECT_THAT(uses(keys, RollStep::kRemove), ElementsAre("pk-s-", "-----", "p-d--"));
}

TEST(RollStepTest, ACskIsBoth) {
  const std::vector<FolderKey> keys{kCsk, kNewCsk};
  EXPECT_THAT(uses(keys, RollStep::kPublish), ElementsAre("pkds-", "pk---"));
  EXPECT_THAT(uses(keys, RollStep::kSwap), ElementsAre("pk--o", "pkds-"));
  EXPECT_THAT(uses(keys, RollStep::kRemove), ElementsAre("-----", "pkds-"));
}

TEST(RollStepTest, AnotherAlgorithmSignsBeforeAndAfterItsKeys) {
  const std::vector<FolderKey> keys{kCsk, kOther};
  EXPECT_THAT(uses(keys, RollStep::kSign), ElementsAre("pkds-", "--d--"));
  EXPECT_THAT(uses(keys, RollStep::kPublish), ElementsAre("pkds-", "pkd--"));
  EXPECT_THAT(uses(keys, RollStep::kSwap), ElementsAre("pkd--", "pkds-"));
  EXPECT_THAT(uses(keys, RollStep::kWithdraw), ElementsAre("--d--", "pkds-"));
  EXPECT_THAT(uses(keys, RollStep::kRemove), ElementsAre("-----", "pkds-"));
}

TEST(RollStepTest, WithoutARollKeysHaveTheirUsualUses) {
  EXPECT_THAT(uses({kOldKsk, kZsk}, RollStep::kNone), ElementsAre("pk-s-", "p-d--"));
  EXPECT_THAT(uses({kCsk}, RollStep::kNone), ElementsAre("pkds-"));
}

RollState state(const KeyRoll& roll, const RollShape& shape, std::uint64_t now = kNow,
                bool goes_by_itself = true) {
  RollWaits waits = kWaits;
  waits.goes_by_itself = goes_by_itself;
  return roll_state(roll, shape, waits, now);
}

TEST(RollStepTest, NothingFollowsBeforeTheZoneShowsAStep) {
  for (const RollStep step : {RollStep::kSign, RollStep::kPublish, RollStep::kSwap,
                              RollStep::kWithdraw, RollStep::kRemove})
    EXPECT_EQ(state({step}, {true, true, true}).wait, RollWait::kZone) << to_text(step);
  EXPECT_TRUE(state({RollStep::kRemove, {}, {}, kNow}, {}).is_done);
}

TEST(RollStepTest, CachesForgetTheStepBefore) {
  const KeyRoll roll{RollStep::kPublish, {}, {}, kNow};
  const RollState early = state(roll, {false, true, true}, kNow + 109);
  EXPECT_EQ(early.wait, RollWait::kCaches);
  EXPECT_EQ(early.until, kNow + 110);
  EXPECT_EQ(early.next, RollStep::kNone);
  EXPECT_EQ(state(roll, {false, true, true}, kNow + 110).next, RollStep::kSwap);
}

TEST(RollStepTest, OldKeysStayForTheirSignaturesAndDsRecords) {
  KeyRoll roll{RollStep::kSwap, {}, {}, kNow};
  const RollShape csk{false, true, true}, zsk{false, false, true}, ksk{false, true, false};
  EXPECT_EQ(state(roll, csk).wait, RollWait::kParent);
  EXPECT_EQ(state(roll, zsk).wait, RollWait::kSignatures);
  roll.ds_seen = kNow;
  EXPECT_EQ(state(roll, csk).wait, RollWait::kSignatures);
  EXPECT_EQ(state(roll, ksk).until, kNow + 1'010);
  roll.signatures_gone = kNow + 5'000;
  EXPECT_EQ(state(roll, csk).until, kNow + 5'110);
  EXPECT_EQ(state(roll, csk, kNow + 5'110).next, RollStep::kRemove);
  EXPECT_EQ(state(roll, {true, true, true}, kNow + 5'110).next, RollStep::kWithdraw);
}

TEST(RollStepTest, TheOperatorAgreesOrHolds) {
  KeyRoll roll{RollStep::kPublish, {}, {}, kNow};
  const std::uint64_t late = kNow + 1'000;
  EXPECT_EQ(state(roll, {}, late, false).wait, RollWait::kOperator);
  roll.is_agreed = true;
  EXPECT_EQ(state(roll, {}, late, false).next, RollStep::kSwap);
  EXPECT_EQ(state(roll, {}, kNow, false).next, RollStep::kNone) << "no word makes a wait shorter";
  roll.is_held = true;
  EXPECT_EQ(state(roll, {}, late).wait, RollWait::kOperator);
  begin_step(roll, RollStep::kSwap);
  EXPECT_FALSE(roll.is_agreed) << "each step needs a word of its own";
  EXPECT_EQ(roll.since, 0U);
}

}  // namespace roll_step_test
}  // namespace pando::manager
