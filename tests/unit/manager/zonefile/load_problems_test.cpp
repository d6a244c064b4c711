#include "manager/zonefile/load_problems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::manager {
namespace load_problems_test {

using ::testing::HasSubstr;

const dns::Name kZone = dns::Name::from_text("example.com.").value();
const dns::Name kOther = dns::Name::from_text("example.net.").value();

TEST(LoadProblems, AreThereUntilTheFileCouldBeLoaded) {
  LoadProblems problems;
  EXPECT_EQ(problems.text(kZone, 7), "");
  problems.put(kZone, 7, "file:3: no such type");
  EXPECT_TRUE(problems.has(kZone, 7));
  EXPECT_EQ(problems.text(dns::Name::from_text("EXAMPLE.com.").value(), 7), "file:3: no such type");
  EXPECT_EQ(problems.text(kOther, 6), "");
  problems.put(kZone, 7, "file:4: bad TTL");
  EXPECT_EQ(problems.text(kZone, 7), "file:4: bad TTL");
  problems.remove(kZone, 7);
  EXPECT_FALSE(problems.has(kZone, 7));
  EXPECT_EQ(problems.text(kZone, 7), "");
}

TEST(LoadProblems, AreNotThoseOfAZoneThatComesInThePlaceOfOneThatLeft) {
  LoadProblems problems;
  problems.put(kZone, 1, "of the first");
  EXPECT_FALSE(problems.has(kOther, 1));
  EXPECT_EQ(problems.text(kOther, 1), "");
  problems.remove(kOther, 1);
  EXPECT_TRUE(problems.has(kZone, 1));
  problems.put(kOther, 1, "");
  EXPECT_FALSE(problems.has(kZone, 1));
  EXPECT_THAT(problems.text(kOther, 1), HasSubstr("zone check")) << "not the first one's text";
}

TEST(LoadProblems, BeyondTheTextsThatAreKeptAreKnownAllTheSame) {
  LoadProblems problems(2);
  for (const std::uint32_t place : {0U, 1U, 2U}) problems.put(kZone, place, "told");
  EXPECT_EQ(problems.text(kZone, 1), "told");
  EXPECT_THAT(problems.text(kZone, 2), HasSubstr("zone check"));
  problems.remove(kZone, 0);
  problems.put(kZone, 2, "told now");
  EXPECT_EQ(problems.text(kZone, 2), "told now");
}

}  // namespace load_problems_test
}  // namespace pando::manager
