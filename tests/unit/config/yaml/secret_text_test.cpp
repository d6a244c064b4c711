#include "config/yaml/secret_text.h"

#include <gtest/gtest.h>

namespace pando::config {
namespace secret_text_test {

std::string placed(std::string_view before, std::string_view after) {
  return std::string(before) + std::string(kNoSecret) + std::string(after);
}

TEST(WithoutSecrets, KeepsAllButTheSecrets) {
  const auto result = without_secrets(
      "# keys\nkeys:\n  - name: a.  # first\n    secret: c2VjcmV0LW9uZQ==  # why\n"
      "server: {listen: [127.0.0.1]}\n");
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(result->text, placed("# keys\nkeys:\n  - name: a.  # first\n    secret: ",
                                 "  # why\nserver: {listen: [127.0.0.1]}\n"));
  EXPECT_EQ(result->names, std::vector<std::string>{"a."});
}

TEST(WithoutSecrets, TakesThemOutOfOneLineInAnyQuotes) {
  const auto result = without_secrets(
      "keys: [{name: a., secret: \"Zmlyc3Qta2V5\"}, {secret: 'c2Vjb25kLWtleQ==', name: b.}]\n"
      "http:\n  keys:\n    - {name: panel, secret: a-shown-secret, role: read}\n");
  ASSERT_TRUE(result) << result.error().text;
  const std::string none(kNoSecret);
  EXPECT_EQ(result->text, "keys: [{name: a., secret: " + none + "}, {secret: " + none +
                              ", name: b.}]\nhttp:\n  keys:\n    - {name: panel, secret: " + none +
                              ", role: read}\n");
  EXPECT_EQ(result->names, (std::vector<std::string>{"a.", "b.", "panel"}));
}

TEST(WithoutSecrets, LeavesFilesOfSecretsAndTextsWithoutAny) {
  for (const char* text : {"", "server: {}\n", "keys: []\n", "keys: [{name: a., secret-file: k}]\n",
                           "keys: 7\n", "- a list\n"}) {
    const auto result = without_secrets(text);
    ASSERT_TRUE(result) << text;
    EXPECT_EQ(result->text, text);
    EXPECT_TRUE(result->names.empty());
  }
}

TEST(WithoutSecrets, FindsASecretThatAlsoStandsEarlierInItsLine) {
  const auto result = without_secrets("keys: [{name: ab., secret: ab}]\n");
  ASSERT_TRUE(result) << result.error().text;
  EXPECT_EQ(result->text, placed("keys: [{name: ab., secret: ", "}]\n"));
}

TEST(WithoutSecrets, RefusesWhatItCannotTakeOut) {
  for (const char* text :
       {"keys: [{name: a., secret: \"c2Vjcm\\x56\"}]\n",        // an escape
        "keys:\n  - name: a.\n    secret: >-\n      c2Vj\n      cmV0\n",  // folded lines
        "# c2VjcmV0LW9uZQ==\nkeys: [{name: a., secret: c2VjcmV0LW9uZQ==}]\n",  // in a comment, too
        "keys: [\n"}) {
    EXPECT_FALSE(without_secrets(text)) << text;
  }
}

}  // namespace secret_text_test
}  // namespace pando::config
