#include "config/settings/open_text.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pando::config {
namespace open_text_test {

std::string open_of(std::string_view text) {
  const OpenText open = find_open_text(text);
  return open.line == 0 ? "" : fmt::format("{}: {}", open.line, open.message);
}

TEST(OpenText, IsWhatDoesNotEnd) {
  EXPECT_EQ(open_of("a: 1\nzones:\n  - {name: a.test, file: x\nserver: {}\n"),
            "3: the { that begins here is not closed");
  EXPECT_EQ(open_of("server:\n  listen: [192.0.2.1,\n    192.0.2.2\n"),
            "2: the [ that begins here is not closed");
  EXPECT_EQ(open_of("a: {b: [1, 2}\n"), "1: the [ that begins here is closed by the } of line 1");
  EXPECT_EQ(open_of("a: 1\nb: 'it''s\nc: 2\n"), "2: the ' that begins here is not closed");
  EXPECT_EQ(open_of("b: \"a \\\" b\nc: 2\n"), "1: the \" that begins here is not closed");
}

TEST(OpenText, IsNoneInTextsThatEnd) {
  for (const char* text :
       {"", "a: 1\n", "a: it's {not} a [bracket\n", "a: {b: [1, 'x]', \"}\"], c: {}}\n",
        "# {\na: 1 # [\n", "- [a]\n- {b: c}\n- 'd'\n", "a: b]\n", "a: 192.0.2.1@53\nb: x-[y\n",
        "a: 'it''s'\nb: \"q\\\"\"\n"})
    EXPECT_EQ(open_of(text), "") << text;
}

TEST(OpenText, IsNotLookedForWithBlockScalars) { EXPECT_EQ(open_of("a: |\n  'x [\nb: {\n"), ""); }

}  // namespace open_text_test
}  // namespace pando::config
