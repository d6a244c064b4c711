#include "manager/net/log_line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace pando::manager {
namespace log_line_splitter_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Split {
  LogLineSplitter splitter;
  std::vector<std::string> lines;
  std::size_t bad = 0;

  void take(std::string_view octets) {
    bad += splitter.take(octets, [this](std::string_view line) { lines.emplace_back(line); });
  }
};

TEST(LogLineSplitter, GivesWholeLinesHoweverTheyCome) {
  const std::string text = "{\"a\":1}\n{}\n{ }\n";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    Split split;
    for (std::size_t at = 0; at < text.size(); at += step) split.take(text.substr(at, step));
    EXPECT_THAT(split.lines, ElementsAre("{\"a\":1}\n", "{}\n", "{ }\n")) << step;
    EXPECT_EQ(split.bad, 0U);
  }
}

TEST(LogLineSplitter, RefusesWhatNoHonestWorkerSends) {
  for (const std::string bad :
       {"", "x", "{", "}", "{\x1b[2J}", "{\t}", "{\r}", "{\x7f}", "{\xc3\xa9}", " {}", "{} "}) {
    Split split;
    split.take(bad + "\n{}\n");
    EXPECT_THAT(split.lines, ElementsAre("{}\n")) << bad;
    EXPECT_EQ(split.bad, 1U) << bad;
  }
  Split split;
  split.take(std::string("{\0}\n", 4));
  EXPECT_EQ(split.bad, 1U);
}

TEST(LogLineSplitter, SkipsALineWithoutEndInBoundedMemory) {
  Split split;
  for (int i = 0; i < 1000; ++i) split.take("{" + std::string(1000, 'x'));
  EXPECT_THAT(split.lines, IsEmpty());
  split.take("}\n{}\n");
  EXPECT_THAT(split.lines, ElementsAre("{}\n"));
  EXPECT_EQ(split.bad, 1U);
}

TEST(LogLineSplitter, TheLongestLineIsTakenAndALongerOneIsNot) {
  Split split;
  split.take("{" + std::string(LogLineSplitter::kMaxLine - 2, 'x') + "}\n");
  EXPECT_EQ(split.lines.size(), 1U);
  split.take("{" + std::string(LogLineSplitter::kMaxLine - 1, 'x') + "}\n");
  EXPECT_EQ(split.lines.size(), 1U);
  EXPECT_EQ(split.bad, 1U);
}

}  // namespace log_line_splitter_test
}  // namespace pando::manager
