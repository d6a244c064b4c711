#include "config/yaml/joined_documents.h"

#include <gtest/gtest.h>

#include <string>

namespace pando::config::joined_documents_test {

YamlDocument parsed(std::string_view text) {
  auto document = YamlDocument::parse(text, YamlDocument::Behind::kFind);
  EXPECT_TRUE(document) << text;
  return std::move(*document);
}

/// A node as text, with the line of each scalar: {a: [x@1, y@3]}.
std::string show(YamlNode node) {
  if (node.is_null()) return "~";
  if (node.is_scalar()) return std::string(node.text()) + "@" + std::to_string(node.line());
  std::string text;
  for (std::size_t i = 0; i < node.size(); ++i) {
    if (i > 0) text += ", ";
    if (node.is_mapping()) text += std::string(node.key(i).text()) + ": ";
    text += show(node.is_mapping() ? node.value(i) : node.element(i));
  }
  return node.is_mapping() ? "{" + text + "}" : "[" + text + "]";
}

/// The documents joined, each with ten lines.
std::string joined(std::initializer_list<std::string_view> texts) {
  YamlDocument document = parsed(*texts.begin());
  JoinedDocuments all(document);
  int lines = 0;
  for (auto text = texts.begin() + 1; text != texts.end(); ++text)
    all.add(parsed(*text), lines += 10);
  all.merge("left");
  return show(document.root());
}

TEST(JoinedDocuments, ListsOfTheRootAreJoinedInTheOrderOfFiles) {
  EXPECT_EQ(joined({"a: [x]\nb: [y]", "b: [z]", "a: [v, w]"}),
            "{a: [x@1, v@21, w@21], b: [y@2, z@11]}");
}

TEST(JoinedDocuments, MappingsAreMergedAtAnyDepthOfASection) {
  EXPECT_EQ(joined({"s: {a: 1, n: {x: 1}}", "s: {b: 2, n: {y: 2}}"}),
            "{s: {a: 1@1, n: {x: 1@1, y: 2@11}, b: 2@11}}");
}

TEST(JoinedDocuments, OtherPairsStayTwice) {
  EXPECT_EQ(joined({"a: 1\ns: {l: [x]}", "a: 2\ns: {l: [y]}"}),
            "{a: 1@1, a: 2@11, s: {l: [x@2], l: [y@12]}}");
  EXPECT_EQ(joined({"a: [x]", "a: {b: c}"}), "{a: [x@1], a: {b: c@11}}");
  EXPECT_EQ(joined({"a: [x]\na: [y]", "a: [z]"}), "{a: [x@1], a: [y@2], a: [z@11]}")
      << "twice in one file is a mistake of that file";
}

TEST(JoinedDocuments, NullsOfTheRootGiveWay) {
  EXPECT_EQ(joined({"a:\nb:", "a: [x]"}), "{a: [x@11], b: ~}");
  EXPECT_EQ(joined({"a: [x]", "# nothing"}), "{a: [x@1]}");
  EXPECT_EQ(joined({"a:", "a:"}), "{a: ~}");
  EXPECT_EQ(joined({"a:\na: [x]", "b: [y]"}), "{a: ~, a: [x@2], b: [y@11]}") << "of one file";
}

TEST(JoinedDocuments, AKeyIsLeftOutOfLaterFiles) {
  EXPECT_EQ(joined({"left: 1", "left: 2\na: 3"}), "{left: 1@1, a: 3@12}");
}

TEST(JoinedDocuments, TaggedValuesAreNotMerged) {
  EXPECT_EQ(joined({"a: !other [x]", "a: [y]"}), "{a: [x@1], a: [y@11]}");
}

}  // namespace pando::config::joined_documents_test
