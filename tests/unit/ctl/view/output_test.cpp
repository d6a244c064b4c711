#include "ctl/view/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace pando::ctl {
namespace output_test {

TEST(Errors, AreTextForPeopleAndJsonForPrograms) {
  std::ostringstream out;
  std::ostringstream err;
  print_error({out, err, false}, "no \"zone\"");
  EXPECT_EQ(err.str(), "pandoctl: no \"zone\"\n");
  err.str("");
  print_error({out, err, true}, "no \"zone\"");
  EXPECT_EQ(err.str(), "{\"error\":\"no \\\"zone\\\"\"}\n");
  EXPECT_EQ(out.str(), "");
}

TEST(Errors, LeaveTheMiddleOfALongLineOut) {
  std::ostringstream err;
  print_error({err, err, false}, "short\n'" + std::string(100'000, 'x') + "' is no address\nlast");
  EXPECT_THAT(err.str(), ::testing::StartsWith("pandoctl: short\n'xxx"));
  EXPECT_THAT(err.str(), ::testing::EndsWith("xxx' is no address\nlast\n"));
  EXPECT_THAT(err.str(), ::testing::HasSubstr("xxx...xxx"));
  EXPECT_LT(err.str().size(), 1'000U);
}

TEST(TableOutput, AlignsWordsLeftAndNumbersRight) {
  std::ostringstream out;
  Table table({{"NAME"}, {"COUNT", true}, {"X"}});
  table.add({"a", "10000000", "y"});
  table.add({"longer", "1", ""});
  table.flush(out);
  EXPECT_EQ(out.str(),
            "NAME       COUNT  X\n"
            "a       10000000  y\n"
            "longer         1\n");
}

TEST(TableOutput, WritesItsHeaderOnce) {
  std::ostringstream out;
  Table table({{"A"}});
  table.add({"1"});
  table.flush(out);
  table.add({"2"});
  table.flush(out);
  EXPECT_EQ(out.str(), "A\n1\n2\n");
}

TEST(FactsOutput, LeavesOutEmptyValues) {
  std::ostringstream out;
  Facts facts;
  facts.add("a", "1");
  facts.add("empty", "");
  facts.add("long", "2");
  facts.print(out);
  EXPECT_EQ(out.str(), "a:     1\nlong:  2\n");
}

TEST(TimeText, IsUtc) {
  EXPECT_EQ(time_text(0), "never");
  EXPECT_EQ(time_text(1), "1970-01-01T00:00:01Z");
  EXPECT_EQ(time_text(1785844800), "2026-08-04T12:00:00Z");
  EXPECT_EQ(time_text(~0ULL), "18446744073709551615") << "beyond all calendars";
}

TEST(OctetsText, HasThreeDigits) {
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1024), "1.00 KiB");
  EXPECT_EQ(bytes_text(512ULL << 20), "512 MiB");
  EXPECT_EQ(bytes_text(~0ULL), "16.0 EiB");
}

TEST(Counted, KnowsThePlural) {
  EXPECT_EQ(counted(0, "zone"), "0 zones");
  EXPECT_EQ(counted(1, "zone"), "1 zone");
  EXPECT_EQ(counted(2, "zone"), "2 zones");
}

}  // namespace output_test
}  // namespace pando::ctl
