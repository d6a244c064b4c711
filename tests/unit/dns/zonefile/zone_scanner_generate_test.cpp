#include "dns/zonefile/zone_scanner_generate.h"

#include <gtest/gtest.h>

#include <string>

namespace pando::dns {
namespace zone_scanner_generate_test {

std::string owner(GeneratedSides& sides, std::string_view side, std::int64_t value) {
  const auto token = sides.owner(Token{side}, value);
  return token ? std::string(token->text) : token.error().text;
}

TEST(GeneratedSides, TheOwnerIsOneTokenForEachValue) {
  GeneratedSides sides;
  EXPECT_EQ(owner(sides, "host-$", 7), "host-7");
  EXPECT_EQ(owner(sides, "host-${0,3}", 123456), "host-123456");
  EXPECT_EQ(owner(sides, "${", 1), "'${' without '}' in $GENERATE");
}

TEST(GeneratedSides, AQuotedRdataSideIsCutIntoTokens) {
  GeneratedSides sides;
  const auto tokens = sides.rdata({"$ mail-$", true}, 10);
  ASSERT_TRUE(tokens && tokens->size() == 2);
  EXPECT_EQ((*tokens)[0].text, "10");
  EXPECT_EQ((*tokens)[1].text, "mail-10");
  EXPECT_TRUE(sides.plain());
}

TEST(GeneratedSides, QuotesWithinTheSideStayQuotes) {
  GeneratedSides sides;
  const auto tokens = sides.rdata({R"(\"a b $\")", true}, 3);
  ASSERT_TRUE(tokens && tokens->size() == 1);
  EXPECT_EQ((*tokens)[0].text, "a b 3");
  EXPECT_TRUE((*tokens)[0].quoted);
  EXPECT_FALSE(sides.plain());
}

TEST(GeneratedSides, OneSideLeavesTheOtherInPlace) {
  GeneratedSides sides;
  const auto name = sides.owner(Token{"a-$"}, 1);
  const auto rdata = sides.rdata(Token{"192.0.2.$"}, 1);
  ASSERT_TRUE(name && rdata);
  EXPECT_EQ(name->text, "a-1");
  EXPECT_EQ((*rdata)[0].text, "192.0.2.1");
}

TEST(GeneratedSides, ARdataSideIsOneLine) {
  GeneratedSides sides;
  const auto two_lines = sides.rdata({"a\nb", true}, 1);
  ASSERT_FALSE(two_lines);
  EXPECT_EQ(two_lines.error().text, "$GENERATE: RDATA is more than a line");
  EXPECT_FALSE(sides.rdata({"( a", true}, 1));
}

}  // namespace zone_scanner_generate_test
}  // namespace pando::dns
