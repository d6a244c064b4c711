#include "manager/signing/signing_facts.h"

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
  const SigningFacts all{1, 2, 3, 4, 5, 6, UINT64_MAX};
  for (const SigningFacts& facts : {all, SigningFacts{.signed_since = 9}, SigningFacts()}) {
    ASSERT_TRUE(write_signing_facts(native_files(), folder.path(), facts));
    EXPECT_EQ(read_signing_facts(native_files(), folder.path()).value(), facts);
  }
}

TEST(SigningFactsTest, WrongLinesAreErrorsWithTheirNumber) {
  for (const char* line : {"signed", "signed x", "signed 1 2", "signed -1", "sined 1", "signed  1",
                           "signed 99999999999999999999"})
    EXPECT_THAT(parse_signing_facts(std::string("# head\n\n") + line + "\n", "/f").error().text,
                HasSubstr("/f:3: "))
        << line;
  EXPECT_EQ(parse_signing_facts("x-later words\nmax-ttl 7", "/f").value().max_ttl, 7U);
}

TEST(SigningFactsTest, AFileThatCannotBeReadIsNoEmptyOne) {
  const shm::test::Folder folder;
  std::ofstream(folder.path() + "/facts") << "signed 1\nrubbish\n";
  EXPECT_EQ(read_signing_facts(native_files(), folder.path()).error().code, Errc::kCorrupt);
}

}  // namespace signing_facts_test
}  // namespace pando::manager
