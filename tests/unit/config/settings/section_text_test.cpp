#include "config/settings/section_text.h"

#include <gtest/gtest.h>

namespace pando::config {
namespace section_text_test {

TEST(SectionText, HasTheSectionAlone) {
  const std::string text =
      "# head\nstore:\n  path: a\nserver:\n  # a comment\n  run-directory: r\n\nzones:\n- name: a\n";
  EXPECT_EQ(section_text(text, "server"), "server:\n  # a comment\n  run-directory: r\n\n");
  EXPECT_EQ(section_text(text, "zones"), "zones:\n- name: a\n");
  EXPECT_EQ(section_text(text, "store"), "store:\n  path: a\n");
  EXPECT_EQ(section_text("server: {run-directory: r}", "server"), "server: {run-directory: r}");
}

TEST(SectionText, BracketsMayEndAtTheBeginningOfALine) {
  const std::string text = "server: {\n  run-directory: r\n}\nzones: []\n";
  EXPECT_EQ(section_text(text, "server"), "server: {\n  run-directory: r\n}\n");
}

TEST(SectionText, IsEmptyWhereOnlyAParserCanTell) {
  EXPECT_EQ(section_text("", "server"), "");
  EXPECT_EQ(section_text("zones: []\n", "server"), "");
  EXPECT_EQ(section_text("{server: {run-directory: r}}\n", "server"), "");
  EXPECT_EQ(section_text("server:\n  a: 1\nzones: []\nserver:\n  b: 1\n", "server"), "");
  EXPECT_EQ(section_text("server:\n  <<: *shared\n", "server"), "");
  EXPECT_EQ(section_text("server: &here\n  a: 1\n", "server"), "");
  EXPECT_EQ(section_text("server: {a: [1,\nzones: 2]}\n", "server"), "");
  EXPECT_EQ(section_text("servers:\n  a: 1\n", "server"), "");
}

}  // namespace section_text_test
}  // namespace pando::config
