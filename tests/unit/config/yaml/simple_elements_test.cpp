#include "config/yaml/simple_elements.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace pando::config {
namespace simple_elements_test {

TextWithoutElements read(std::string_view text) {
  YamlDocument document;
  DocumentBuilder builder(document);
  return read_simple_elements(text, builder);
}

/// A node with all places: "{1:2 a: 1:5 b}".
std::string shown(YamlNode node) {
  std::string text = fmt::format("{}:{} ", node.line(), node.column());
  if (node.is_null()) return text + "~";
  if (node.is_scalar()) return text + fmt::format("'{}'{}", node.text(), node.tag());
  for (std::size_t i = 0; i < node.size(); ++i)
    text += node.is_list() ? shown(node.element(i)) + ","
                           : shown(node.key(i)) + ":" + shown(node.value(i)) + ",";
  return node.is_list() ? "[" + text + "]" : "{" + text + "}";
}

/// The document, or the error, of a text.
std::string parsed(std::string_view text, YamlDocument::Elements elements) {
  const auto document = YamlDocument::parse(text, YamlDocument::Behind::kFind, elements);
  if (!document) return fmt::format("{}: {}", document.error().line, document.error().text);
  return fmt::format("{} {}", shown(document->root()), document->behind_line());
}

void expect_same(std::string_view text) {
  EXPECT_EQ(parsed(text, YamlDocument::Elements::kDirectly),
            parsed(text, YamlDocument::Elements::kByParser))
      << text;
}

TEST(SimpleElements, AreReplacedInTheirPlaces) {
  const TextWithoutElements rest = read(
      "a: b\n"
      "zones:  # all\n"
      "  - {name: a.test, file: \"a b\", allow-query: [192.0.2.0/24, {key: k, deny: true}]}\n"
      "\n"
      "  - name: b.test  # second\n"
      "    file: 'x'\n"
      "    allow-query:\n"
      "      - address: 2001:db8::1\n"
      "    # done\n"
      "  - word\n"
      "c: [1]\n");
  EXPECT_EQ(rest.text, "a: b\nzones:  # all\n  - []\n\n  - k: []\n\n\n\n\n  - word\nc: [1]\n");
  ASSERT_EQ(rest.elements.size(), 2U);
  EXPECT_EQ(rest.elements[1].place.line, 5);
  EXPECT_EQ(rest.elements[1].place.column, 4);
}

TEST(SimpleElements, AreWhatTheParserMakesOfThem) {
  for (const char* text : {
           "- {a: 1, b: [x, \"y z\", 'q', [], {}], c: {d: e}}\n- f\n",
           "-   {a: 1}\n-   b: 2\n    c: 3\n",
           "- a: null\n  null: Null\n- NULL\n- 'null'\n",
           "z:\n- a:\n  - 1\n  - b: 2\n    c:\n      d: 3\n  e: f\n- g\nh: i\n",
           "- a: 2001:db8::1\n  b: x@y:z+1=2\n- 1::2: 3\n",
           "- a: b   # c\n  # d\n\n  e: \"f # g\"\n- h\r\n- i: j\r\n  k: l\r\n",
           "- {a: b}",
           "- [x]\n- a: b\r",
           "- a: b",
           "- \"a\": b\n  'c': d\n",
           "- a: b\n  c:\n    - d\n   ",
           "?\n  - a: b\n: c\n",
           "a: &x\n- {b: c}\nd: *x\n",
           "- &a {b: c}\n- d: e\n- *a\n",
           "\xEF\xBB\xBF- a: b\n- c: d\n",
       }) {
    expect_same(text);
    EXPECT_FALSE(read(text).elements.empty()) << text;
  }
}

TEST(SimpleElements, InAnyOtherFormAreLeftToTheParser) {
  for (const char* text : {
           "- \"a\\x41\"\n", "- 'it''s'\n", "- a b\n", "- {a}\n", "- {a: , b: c}\n", "- [a: b]\n",
           "- {\"a\":1}\n", "- {a: 1,}\n", "- &x a\n", "- *x\n", "- !t a\n", "- |\n  a\n",
           "- >-\n  a\n", "- ~\n", "-\n", "- a\n  b\n", "- a: b\n  c\n", "- a: b\n   c: d\n",
           "- {a: b\n}\n", "- a: b: c\n", "- a:\n", "- - a\n", "- ? a\n", "- a\tb\n",
           "- {a: b}#c\n", "- {a: b} c\n", "- [a, b}\n", "- \"a\n", "- a: 'b\n", "- a\n\t- b\n",
           "- a : b\n", "- key:: v\n\t\n", "- \xC3\xBC\n", "- a\x04\n", "- {a: b} # \x01\n-\n",
       }) {
    expect_same(text);
  }
  EXPECT_TRUE(read("- a b\n- !t c\n- {d: e\n  }\n- |\n  x\n").elements.empty());
}

/// yaml-cpp refuses a key because of a line before it that is none.
TEST(SimpleElements, LeaveTheScannerAsTheParserWouldLeaveIt) {
  for (const char* text : {
           "- a: b\n  c\n- d: e\n",
           "- a: b\n  c\n- {d: e}\n- f: |\n    g\n",
           "- a: b\n  c\n- {d: e}\n- f: g\n",
           "- a: b\n  c\n- d\n- f: g\n",
           "- a: b\n  \"c\"\n- [d]\n- f: g\n",
       })
    expect_same(text);
}

/// Lines that only look like elements.
TEST(SimpleElements, OfOtherValuesAreFoundOut) {
  for (const char* text : {
           "a: |\n  - {b: c}\n  - d\n",
           "a: >\n  x\n\n  - b: c\n",
           "a: \"x\n  - {b: c}\n  y\"\n",
           "a: 'x\n  - b: c\n  y'\nc:\n- {d: e}\n",
           "a: b\n  - {c: d}\n",
           "[a,\n  - b: c\n]\n",
           "{a: \"\n- {b: c}\n\"}\n",
           "- a: b\n---\n- c: d\n",
           "--- |\n- a: b\n...\n",
           "- a: b\n...\n- [c]\n",
           "- a: b\nc: d\n",
       })
    expect_same(text);
}

TEST(SimpleElements, NestOnlyAsDeepAsConfigurationsDo) {
  const std::string deep = "- " + std::string(100, '[') + std::string(100, ']') + "\n";
  EXPECT_TRUE(read(deep).elements.empty());
  expect_same(deep);
  expect_same("- " + std::string(600, '[') + std::string(600, ']') + "\n- a\n");
  expect_same("- " + std::string(2000, 'k') + ": v\n");
  expect_same("- {" + std::string(2000, 'k') + ": v}\n");
}

}  // namespace simple_elements_test
}  // namespace pando::config
