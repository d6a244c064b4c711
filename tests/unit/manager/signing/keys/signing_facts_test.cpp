#include "manager/signing/keys/signing_facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace signing_facts_test {

using ::testing::HasSubstr;

TEST(SigningFactsTest, AreReadAsTheyWereWritten) {
  const shm::test::Folder folder;
  EXPECT_EQ(read_signing_facts(native_files(), folder.path()).value(), SigningFacts());
  const KeyRoll roll{RollStep::kSwap, {{13, 7}, {8, 65535}}, {{15, 0}}, 1, 2, 3, true, true};
  const SigningFacts all{1, 2, 3, 4, 5, 6, 7, 8, std::uint64_t{1} << 48U, roll};
  SigningFacts begun;
  begun.roll = {RollStep::kSign, {}, {{13, 8}}};
  for (const SigningFacts& facts : {all, begun, SigningFacts{.signed_since = 9}, SigningFacts()}) {
    ASSERT_TRUE(write_signing_facts(native_files(), folder.path(), facts));
    EXPECT_EQ(read_signing_facts(native_files(), folder.path()).value(), facts);
  }
}

TEST(SigningFactsTest, WrongLinesAreErrorsWithTheirNumber) {
  for (const char* line : {"signed", "signed x", "signed 1 2", "signed -1", "sined 1", "signed  1",
                           "signed 99999999999999999999", "roll-step", "roll-step none",
                           "roll-new-key 13", "roll-new-key 256/1", "roll-new-key 13/65536",
                           "roll-held no"})
    EXPECT_THAT(parse_signing_facts(std::string("# head\n\n") + line + "\n", "/f").error().text,
                HasSubstr("/f:3: "))
        << line;
  EXPECT_EQ(parse_signing_facts("x-later words\nmax-ttl 7", "/f").value().max_ttl, 7U);
}

TEST(SigningFactsTest, ALowerTtlCountsWhenCachesHaveForgottenTheHigherOne) {
  SigningFacts facts;
  note_longest_ttl(facts, 100, 5, 1'000);
  note_longest_ttl(facts, 20, 5, 2'000);
  note_longest_ttl(facts, 30, 5, 2'050);
  note_longest_ttl(facts, 10, 5, 2'104);
  EXPECT_EQ(facts.max_ttl, 100U);
  note_longest_ttl(facts, 10, 5, 2'105);
  EXPECT_EQ(facts.max_ttl, 30U) << "a record of 30 s came after that of 20 s";
  note_longest_ttl(facts, 40, 5, 2'106);
  EXPECT_EQ(facts.max_ttl, 40U);
}

TEST(SigningFactsTest, AZoneThatWasUnsignedNeedsNoOldKeys) {
  SigningFacts facts{.signed_since = 5, .ds_seen = 6, .unsign_since = 7, .unsigned_since = 7};
  EXPECT_EQ(facts_of_new_start(facts), SigningFacts());
  facts.roll = {RollStep::kPublish, {{13, 7}}, {{13, 8}}, 9};
  SigningFacts expected;
  expected.roll = {RollStep::kRemove, {{13, 7}}, {{13, 8}}};
  EXPECT_EQ(facts_of_new_start(facts), expected);
}

TEST(SigningFactsTest, AZoneThatReturnsKeepsTheStepOfItsRoll) {
  SigningFacts facts{.signed_since = 5, .max_ttl = 60, .ds_seen = 6};
  facts.roll = {RollStep::kSwap, {{13, 7}}, {{13, 8}}, 9, 10, 11, true, true};
  SigningFacts expected{.max_ttl = 60};
  expected.roll = {RollStep::kSwap, {{13, 7}}, {{13, 8}}};
  EXPECT_EQ(facts_of_new_start(facts), expected) << "its parent may have the old DS record";
}

TEST(SigningFactsTest, AFileThatCannotBeReadIsNoEmptyOne) {
  const shm::test::Folder folder;
  std::ofstream(folder.path() + "/facts") << "signed 1\nrubbish\n";
  EXPECT_EQ(read_signing_facts(native_files(), folder.path()).error().code, Errc::kCorrupt);
}

}  // namespace signing_facts_test
}  // namespace pando::manager
