#include "config/added_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::config {
namespace added_list_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string change(const std::string& lines) { return lines + commit_line(lines); }

/// Names of the zones, or the error.
std::vector<std::string> zones_of(const std::string& text) {
  const auto list = parse_added_list(text);
  if (!list) return {"error: " + list.error().text};
  std::vector<std::string> zones;
  for (const AddedLine& zone : list->zones) zones.emplace_back(zone.text);
  return zones;
}

TEST(AddedListText, LaterChangesCount) {
  const std::string text = change("# comment\n\na. x -\nb. y t {\"k\":1}\n") +
                           change("removed A.\nb. z t\n") + change("c. - t\n");
  EXPECT_THAT(zones_of(text), ElementsAre("b. z t", "c. - t"));
  const auto list = parse_added_list(text);
  ASSERT_TRUE(list);
  EXPECT_EQ(list->end, text.size());
  EXPECT_EQ(list->unfinished, 0);
  EXPECT_EQ(list->zones[0].number, 7);
}

TEST(AddedListText, AZoneMayComeBack) {
  EXPECT_THAT(zones_of(change("a. x -\n") + change("removed a.\n") + change("a. y -\n")),
              ElementsAre("a. y -"));
}

TEST(AddedListText, OfNoZonesIsFine) {
  EXPECT_TRUE(zones_of("commit\n").empty());
  EXPECT_TRUE(zones_of(change("")).empty());
}

/// The process or the host ends at any byte of the last change.
TEST(AddedListText, ALastChangeCountsAsAWholeOrNotAtAll) {
  const std::string first = change("a. x -\n");
  const std::string last = change("b. y -\nremoved a.\nc. z -\n");
  for (std::size_t bytes = 0; bytes < last.size(); ++bytes) {
    const auto list = parse_added_list(first + last.substr(0, bytes));
    ASSERT_TRUE(list) << bytes;
    EXPECT_EQ(list->zones.size(), 1U) << bytes;
    EXPECT_EQ(list->end, first.size()) << bytes;
    EXPECT_EQ(list->unfinished != 0, bytes > 0) << bytes;
  }
  EXPECT_THAT(zones_of(first + last), ElementsAre("b. y -", "c. z -"));
}

/// Its blocks may have reached the disk in another order.
TEST(AddedListText, ALastChangeWithHolesDoesNotCount) {
  const std::string first = change("a. x -\n");
  std::string last = change("b. y -\nc. z -\n");
  for (std::size_t i = 0; i < 6; ++i) last[i] = '\0';
  EXPECT_THAT(zones_of(first + last), ElementsAre("a. x -"));
}

TEST(AddedListText, AnotherChangeThatIsDamagedIsAnError) {
  std::string text = change("a. x -\n") + change("b. y -\n") + change("c. z -\n");
  for (const char* damaged : {"a. x", "b. y"}) {
    std::string other = text;
    other[other.find(damaged) + 3] = 'w';
    EXPECT_THAT(zones_of(other), ElementsAre(HasSubstr("checksum"))) << damaged;
  }
  EXPECT_THAT(zones_of(""), ElementsAre(HasSubstr("no change of the list is whole")));
  EXPECT_THAT(zones_of("a. x -\n"), ElementsAre(HasSubstr("no change of the list is whole")));
}

TEST(AddedListText, APersonEndsAChangeWithoutChecksum) {
  EXPECT_THAT(zones_of("a. x -\ncommit\n" + change("b. y -\n")), ElementsAre("a. x -", "b. y -"));
}

TEST(AddedListText, ZonesMayHaveTheNamesOfWords) {
  EXPECT_THAT(zones_of(change("commit. x -\nremoved. y -\n\\035a. z -\n")),
              ElementsAre("commit. x -", "removed. y -", "\\035a. z -"));
}

}  // namespace added_list_test
}  // namespace pando::config
