#include "base/words.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando {
namespace words_test {

TEST(Nearest, FindsWhatWasMeant) {
  const std::vector<std::string_view> words{"listen", "workers", "user", "worker-user", "log"};
  EXPECT_EQ(nearest("lsiten", words), "listen");
  EXPECT_EQ(nearest("worker", words), "workers");
  EXPECT_EQ(nearest("worker_user", words), "worker-user");
  EXPECT_EQ(nearest("listne", words), "listen");
  EXPECT_EQ(nearest("usr", words), "user");
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  const std::vector<std::string_view> words{"listen", "log"};
  EXPECT_EQ(nearest("workers", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("x", words), "");
  EXPECT_EQ(nearest("listen", {}), "");
  EXPECT_EQ(nearest(std::string(65, 'l'), words), "");
}

TEST(Nearest, TheNearestOfSomeWins) {
  const std::vector<std::string_view> words{"allow-transfer", "allow-update", "allow-query"};
  EXPECT_EQ(nearest("allow-querys", words), "allow-query");
  EXPECT_EQ(nearest("alow-transfers", words), "allow-transfer");
}

TEST(Words, AreListedWholeAndNotEmpty) {
  constexpr std::string_view kList = " one two-three ";
  EXPECT_TRUE(is_listed(kList, "one"));
  EXPECT_TRUE(is_listed(kList, "two-three"));
  for (const char* word : {"", " ", "two", "three", "one two-three"})
    EXPECT_FALSE(is_listed(kList, word)) << word;
}

TEST(Words, CompareWithoutTheCaseOfAscii) {
  EXPECT_TRUE(equal_but_for_case("aZ-9", "Az-9"));
  EXPECT_FALSE(equal_but_for_case("a", "ab"));
  EXPECT_EQ(lower_case("A\xC4z["), "a\xC4z[");
}

}  // namespace words_test
}  // namespace pando
