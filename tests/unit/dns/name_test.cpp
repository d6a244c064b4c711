#include "dns/name.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "dns/folded_key.h"

namespace pando::dns {
namespace name_test {

Name name(std::string_view text) {
  auto result = Name::from_text(text);
  EXPECT_TRUE(result) << text;
  return result ? *result : Name();
}

std::string error_of(std::string_view text, NameView origin = NameView()) {
  auto result = Name::from_text(text, origin);
  return result ? "no error" : result.error().text;
}

TEST(NameText, AbsoluteNamesAreAsWritten) {
  EXPECT_EQ(to_text(name("www.Example.COM.")), "www.Example.COM.");
  EXPECT_EQ(to_text(name(".")), ".");
  EXPECT_EQ(name("a.b.").size(), 5U);
}

TEST(NameText, RelativeNamesGetTheOrigin) {
  const Name origin = name("example.");
  EXPECT_EQ(to_text(*Name::from_text("www", origin)), "www.example.");
  EXPECT_EQ(to_text(*Name::from_text("a.b", origin)), "a.b.example.");
  EXPECT_EQ(to_text(*Name::from_text("@", origin)), "example.");
  EXPECT_EQ(to_text(*Name::from_text("\\@", origin)), "\\@.example.") << "an escaped @ is a label";
  EXPECT_EQ(to_text(*Name::from_text("www.", origin)), "www.");
}

TEST(NameText, EscapesAreResolvedAndPrintedAgain) {
  EXPECT_EQ(to_text(name("a\\.b\\032c\\000\\255.")), "a\\.b\\032c\\000\\255.");
  EXPECT_EQ(to_text(name("\\097\\A.")), "aA.");
  EXPECT_EQ(to_text(name("\\\"\\(\\)\\;\\$\\\\.")), "\\\"\\(\\)\\;\\$\\\\.");
  EXPECT_EQ(name("a\\.b.").view().label_count(), 1U);
}

TEST(NameText, BadNamesAreRefused) {
  EXPECT_EQ(error_of(""), "empty name");
  EXPECT_EQ(error_of("a..b."), "empty label in name 'a..b.'");
  EXPECT_EQ(error_of(".a."), "empty label in name '.a.'");
  EXPECT_EQ(error_of(".."), "empty label in name '..'");
  for (const char* text : {"a\\", "a\\2", "a\\25", "a\\256", "a\\2x5"})
    EXPECT_NE(error_of(text).find("bad escape"), std::string::npos) << text;
}

TEST(NameText, LabelsEndAt63Octets) {
  const std::string most(63, 'x');
  EXPECT_EQ(name(most + ".").size(), 65U);
  EXPECT_NE(error_of(most + "x.").find("label above 63"), std::string::npos);
  EXPECT_NE(error_of(most + "x").find("label above 63"), std::string::npos);
}

TEST(NameText, NamesEndAt255Octets) {
  const std::string label = std::string(49, 'x') + ".";  // 50 octets
  std::string most;
  for (int i = 0; i < 5; ++i) most += label;
  EXPECT_EQ(name(most + "abc.").size(), 255U);
  EXPECT_NE(error_of(most + "abcd.").find("above 255"), std::string::npos);
  EXPECT_EQ(name(most + "abc").size(), 255U);
  EXPECT_NE(error_of(most + "abcd").find("above 255"), std::string::npos);
  EXPECT_EQ(Name::from_text(most + "a", name("b."))->size(), 255U);
  EXPECT_NE(error_of(most + "ab", name("b.")).find("above 255"), std::string::npos);
  EXPECT_NE(error_of(std::string(100000, 'a')).find("name"), std::string::npos);
}

TEST(NameText, ManyLabelsAreFine) {
  std::string text;
  for (int i = 0; i < 127; ++i) text += "a.";
  EXPECT_EQ(name(text).view().label_count(), kMaxLabels);
  EXPECT_FALSE(Name::from_text(text + "a."));
}

TEST(NameFromWire, WantsExactlyOneName) {
  EXPECT_TRUE(Name::from_wire(Bytes{1, 'a', 0}));
  for (const Bytes& wire :
       {Bytes{}, Bytes{1, 'a'}, Bytes{1, 'a', 0, 0}, Bytes{0xC0, 0}, Bytes{64, 0}})
    EXPECT_FALSE(Name::from_wire(wire));
}

TEST(WireNameLength, NeverReadsBehindTheOctets) {
  EXPECT_EQ(wire_name_length({}), 0U);
  EXPECT_EQ(wire_name_length(Bytes{0, 1, 2}), 1U);
  EXPECT_EQ(wire_name_length(Bytes{3, 'a', 'b'}), 0U);
  EXPECT_EQ(wire_name_length(Bytes{1, 'a', 0, 9}), 3U);
  EXPECT_EQ(wire_name_length(Bytes(300, 1)), 0U) << "no root label within 255 octets";
}

TEST(NameView, AncestorsAndLabels) {
  const Name www = name("www.example.com.");
  EXPECT_EQ(www.view().label_count(), 3U);
  EXPECT_EQ(to_text(www.view().parent()), "example.com.");
  EXPECT_EQ(to_text(www.view().ancestor(2)), "com.");
  EXPECT_EQ(to_text(www.view().ancestor(9)), ".");
  EXPECT_TRUE(NameView().parent().is_root());
  EXPECT_TRUE(name("*.a.").view().is_wildcard());
  EXPECT_FALSE(name("a.*.").view().is_wildcard());
  EXPECT_FALSE(name("**.").view().is_wildcard());
}

TEST(NameView, IsAtOrBelowLooksAtLabelsNotOctets) {
  EXPECT_TRUE(name("a.example.").view().is_at_or_below(name("EXAMPLE.")));
  EXPECT_TRUE(name("example.").view().is_at_or_below(name("example.")));
  EXPECT_TRUE(name("a.").view().is_at_or_below(NameView()));
  EXPECT_FALSE(name("example.").view().is_at_or_below(name("a.example.")));
  EXPECT_FALSE(name("xexample.").view().is_at_or_below(name("example.")));
  EXPECT_FALSE(name("x\\007example.").view().is_at_or_below(name("example.")))
      << "octets that look like a label inside of one";
}

TEST(NameEquality, FoldsAsciiCaseOnly) {
  EXPECT_EQ(name("A.b.").view(), name("a.B.").view());
  EXPECT_FALSE(name("\\193.").view() == name("\\225.").view()) << "RFC 4343 §3: no other letters";
  EXPECT_FALSE(name("[.").view() == name("{.").view());
  EXPECT_EQ(hash_name(name("A.b.")), hash_name(name("a.B.")));
  EXPECT_NE(hash_name(name("a.b.")), hash_name(name("ab.")));
  EXPECT_EQ(to_text(name("A.\\197b.").folded()), "a.\\197b.");
}

/// Names are compared and hashed eight octets at a time, so each place of a word counts.
TEST(NameEquality, ComparesEachOctetOfEachLength) {
  for (std::size_t length = 1; length <= 20; ++length) {
    for (std::size_t at = 1; at <= length; ++at) {
      for (unsigned pair = 0; pair < 0x10000; pair += at == length ? 1 : 251) {
        const auto a = static_cast<std::uint8_t>(pair >> 8);
        const auto b = static_cast<std::uint8_t>(pair);
        std::array<std::uint8_t, 22> one{};
        one[0] = static_cast<std::uint8_t>(length);
        std::array<std::uint8_t, 22> other = one;
        one[at] = a;
        other[at] = b;
        const NameView first(one.data(), length + 2);
        const NameView second(other.data(), length + 2);
        const bool same = kFoldCase[a] == kFoldCase[b];
        ASSERT_EQ(first == second, same) << length << " " << at << " " << +a << " " << +b;
        ASSERT_TRUE(!same || hash_name(first) == hash_name(second)) << length << " " << at;
      }
    }
  }
}

TEST(NameEquality, IsThatOfFoldedKeys) {
  EXPECT_EQ(folded_key(name("A.\\197b.")), folded_key(name("a.\\197B.")));
  EXPECT_NE(folded_key(name("\\193.")), folded_key(name("\\225.")));
  EXPECT_NE(folded_key(name("ab.")), folded_key(name("a.b.")));
  EXPECT_EQ(folded_key(NameView()), std::string(1, '\0'));
  const std::string key = folded_key(name("WWW.Example."));
  EXPECT_EQ(to_text(name_of_key(key)), "www.example.");
}

TEST(CanonicalNameOrder, IsThatOfRfc4034) {
  // RFC 4034 §6.1
  const char* const sorted[] = {"example.",         "a.example.",      "yljkjljk.a.example.",
                                "Z.a.example.",     "zABC.a.EXAMPLE.", "z.example.",
                                "\\001.z.example.", "*.z.example.",    "\\200.z.example."};
  for (std::size_t i = 0; i < std::size(sorted); ++i)
    for (std::size_t j = 0; j < std::size(sorted); ++j) {
      const int order = compare_canonical(name(sorted[i]), name(sorted[j]));
      EXPECT_EQ(order < 0, i < j) << sorted[i] << ' ' << sorted[j];
      EXPECT_EQ(order == 0, i == j) << sorted[i] << ' ' << sorted[j];
    }
}

TEST(NameJoin, BoundsTheResult) {
  const Bytes label{1, 'a'};
  EXPECT_EQ(to_text(*Name::join(label, name("b."))), "a.b.");
  std::string text;
  for (int i = 0; i < 126; ++i) text += "a.";
  EXPECT_EQ(Name::join(label, name(text))->size(), 255U);
  EXPECT_FALSE(Name::join(label, name(text + "a.")));
}

}  // namespace name_test
}  // namespace pando::dns
