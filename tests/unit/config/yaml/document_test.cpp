#include "config/yaml/document.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pando::config {
namespace document_test {

using Behind = YamlDocument::Behind;
using Kind = YamlNode::Kind;

YamlDocument parsed(std::string_view text) {
  auto document = YamlDocument::parse(text, Behind::kFind);
  EXPECT_TRUE(document) << text << ": " << document.error().text;
  return std::move(*document);
}

YamlError error_of(std::string_view text) {
  const auto document = YamlDocument::parse(text, Behind::kFind);
  EXPECT_FALSE(document) << text;
  return document ? YamlError() : document.error();
}

/// Kinds and texts of a node and those in it, to a depth: "{a: [1, ~]}".
std::string shown(YamlNode node, int depth = 4) {
  std::string text;
  if (depth == 0) return "...";
  if (node.is_scalar()) return std::string(node.text());
  if (node.is_null()) return "~";
  for (std::size_t i = 0; i < node.size(); ++i) {
    const YamlNode value = node.is_list() ? node.element(i) : node.value(i);
    const std::string key = node.is_list() ? "" : shown(node.key(i), depth - 1) + ": ";
    text += (i == 0 ? "" : ", ") + key + shown(value, depth - 1);
  }
  return node.is_list() ? "[" + text + "]" : "{" + text + "}";
}

TEST(YamlDocument, HasTheValuesOfATextInTheirOrder) {
  EXPECT_EQ(shown(parsed("b: [1, 'two', \"th\\x72ee\"]\na:\n  - {c: ~, d: \"\"}\n  - x\n").root()),
            "{b: [1, two, three], a: [{c: ~, d: }, x]}");
  EXPECT_EQ(shown(parsed("[[], {}, [[1], 2]]").root()), "[[], {}, [[1], 2]]");
  EXPECT_EQ(shown(parsed("a: 1\na: 2\n[x]: {y}\n").root()), "{a: 1, a: 2, [x]: {y: ~}}")
      << "a reader decides on keys that come twice or are no text";
}

TEST(YamlDocument, IsNullWithoutAnyText) {
  EXPECT_TRUE(YamlNode().is_null());
  EXPECT_EQ(YamlNode().line(), 0);
  for (const char* text : {"", "\n", "# nothing\n", "---\n", "~", "null"}) {
    const YamlDocument document = parsed(text);
    EXPECT_TRUE(document.root().is_null()) << text;
    EXPECT_EQ(document.root().size(), 0U);
    EXPECT_FALSE(document.root().find("a"));
  }
  const YamlDocument moved = parsed("[a]");
  EXPECT_EQ(shown(moved.root()), "[a]");
}

TEST(YamlDocument, NodesKnowTheirPlaces) {
  const YamlDocument document = parsed("a: 1\nbb:\n  - x\n  - {k: y}\n");
  const YamlNode list = *document.root().find("bb");
  EXPECT_EQ(document.root().key(1).line(), 2);
  EXPECT_EQ(list.line(), 3);
  EXPECT_EQ(list.element(1).line(), 4);
  EXPECT_EQ(list.element(1).column(), 4U);
  EXPECT_EQ(list.element(1).find("k")->column(), 8U);
}

TEST(YamlDocument, FindTakesTheFirstOfEqualKeys) {
  const YamlDocument document = parsed("{a: 1, b: 2, a: 3}");
  EXPECT_EQ(document.root().find("a")->text(), "1");
  EXPECT_FALSE(document.root().find("c"));
  EXPECT_FALSE(document.root().find("a")->find("a")) << "a scalar has no keys";
}

TEST(YamlDocument, OnlyTagsThatMeanSomethingStay) {
  const YamlDocument document = parsed("[!x 1, 2, '3', !!str 4, !y [], !z {}, ! 7]");
  const YamlNode root = document.root();
  const char* const tags[] = {"!x", "", "", "", "!y", "!z", ""};
  ASSERT_EQ(root.size(), std::size(tags));
  for (std::size_t i = 0; i < std::size(tags); ++i) EXPECT_EQ(root.element(i).tag(), tags[i]) << i;
}

TEST(YamlDocument, AliasesAreTheAnchoredNode) {
  const YamlDocument document = parsed("[&a {k: &b v}, *a, *b, &a x, *a]");
  EXPECT_EQ(shown(document.root()), "[{k: v}, {k: v}, v, x, x]");
  EXPECT_EQ(document.root().element(1).column(), document.root().element(0).column());
  EXPECT_EQ(error_of("[*a]").line, 1) << "no such anchor";
}

TEST(YamlDocument, ANodeMayBeInItself) {
  EXPECT_EQ(shown(parsed("&a [x, *a]").root()), "[x, [x, [x, [..., ...]]]]");
  EXPECT_EQ(shown(parsed("&a {k: *a}").root(), 3), "{k: {k: {...: ...}}}");
}

/// Each line doubles the values that a walk would meet: 2^64 of them, and 200 nodes.
TEST(YamlDocument, AliasesDoNotMakeATextGrow) {
  std::string text = "- &a0 [x, x]\n";
  for (int i = 1; i < 64; ++i) text += fmt::format("- &a{} [*a{}, *a{}]\n", i, i - 1, i - 1);
  const YamlDocument document = parsed(text);
  EXPECT_EQ(document.root().size(), 64U);
  EXPECT_EQ(document.root().element(63).size(), 2U);
}

TEST(YamlDocument, TextBehindTheFirstDocumentIsFound) {
  EXPECT_EQ(parsed("a: 1\n").behind_line(), 0);
  EXPECT_EQ(parsed("a: 1\n---\nb: 2\n").behind_line(), 2);
  EXPECT_EQ(parsed(",#").behind_line(), 1);
  EXPECT_EQ(error_of("a: 1\n---\n]\n").line, 3);
  const auto first = YamlDocument::parse("a: 1\n---\n]\n", Behind::kIgnore);
  ASSERT_TRUE(first);
  EXPECT_EQ(shown(first->root()), "{a: 1}");
  EXPECT_EQ(first->behind_line(), 0);
}

TEST(YamlDocument, ErrorsHaveALine) {
  EXPECT_EQ(error_of("a: 1\nb: c: d\n").line, 2);
  EXPECT_NE(error_of("a: [\n").text, "");
  EXPECT_EQ(error_of("a: 1\n" + std::string(2000, '[')).line, 2) << "far too deep";
}

}  // namespace document_test
}  // namespace pando::config
