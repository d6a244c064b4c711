#include "dns/wire_name.h"

#include <gtest/gtest.h>

#include <string>

namespace pando::dns {
namespace wire_name_test {

struct Expanded {
  std::string text;
  std::size_t behind = 0;
  Errc error{};
};

Expanded expand(const Bytes& message, std::size_t at) {
  std::uint8_t out[kMaxNameOctets];
  std::size_t size = 0;
  auto behind = expand_name(message, at, out, size);
  if (!behind) return {"error", 0, behind.error().code};
  return {to_text(NameView(out, size)), *behind, {}};
}

Bytes octets(std::string_view text) { return {text.begin(), text.end()}; }

/// `count` pointers in a row, each to the one before; the first leads to the root label at 0.
Bytes pointer_chain(std::size_t count) {
  Bytes message{0};
  for (std::size_t i = 0; i < count; ++i)
    append_be16(message, static_cast<std::uint16_t>(0xC000 | (i == 0 ? 0 : 1 + 2 * (i - 1))));
  return message;
}

/// A name of exactly `octets` octets (≥ 3) as labels of up to 63.
Bytes long_name(std::size_t octets) {
  Bytes name;
  while (name.size() + 1 < octets) {
    const std::size_t label = std::min<std::size_t>(63, octets - name.size() - 2);
    name.push_back(static_cast<std::uint8_t>(label));
    name.insert(name.end(), label, 'x');
  }
  name.push_back(0);
  return name;
}

TEST(ExpandName, ReadsPlainNames) {
  const Bytes message = octets({"xx\3www\7example\0yy", 17});
  const auto got = expand(message, 2);
  EXPECT_EQ(got.text, "www.example.");
  EXPECT_EQ(got.behind, 15U);
}

TEST(ExpandName, FollowsPointersAndReturnsToBehindTheFirst) {
  const Bytes message = octets({"\7example\0\3www\xC0\0\1a\xC0\x9!", 20});
  EXPECT_EQ(expand(message, 9).text, "www.example.");
  EXPECT_EQ(expand(message, 9).behind, 15U);
  EXPECT_EQ(expand(message, 15).text, "a.www.example.");
  EXPECT_EQ(expand(message, 15).behind, 19U);
}

TEST(ExpandName, RefusesPointersThatDoNotGoBackwards) {
  EXPECT_EQ(expand(octets({"\xC0\0", 2}), 0).error, Errc::kInvalid) << "to itself";
  EXPECT_EQ(expand(octets({"\xC0\2\1a\0", 5}), 0).error, Errc::kInvalid) << "forward";
  EXPECT_EQ(expand(octets({"\1a\xC0\0", 4}), 0).error, Errc::kInvalid) << "to its own name";
  EXPECT_EQ(expand(octets({"\1a\xC0\4\1b\xC0\0", 8}), 4).error, Errc::kInvalid) << "two in a ring";
}

TEST(ExpandName, RefusesReservedLabelTypes) {
  EXPECT_EQ(expand(octets({"\x41x\0", 3}), 0).error, Errc::kInvalid);
  EXPECT_EQ(expand(octets({"\x80x\0", 3}), 0).error, Errc::kInvalid);
}

TEST(ExpandName, NoticesTheEndOfTheMessageAtEveryPlace) {
  EXPECT_EQ(expand({}, 0).error, Errc::kTruncated);
  const Bytes whole = octets({"\0\3www\7example\xC0\0", 15});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(expand(Bytes(whole.begin(), whole.begin() + static_cast<long>(size)), 1).error,
              Errc::kTruncated)
        << size;
  }
  EXPECT_EQ(expand(whole, 1).text, "www.example.");
}

TEST(ExpandName, KeepsTo255Octets) {
  EXPECT_EQ(expand(long_name(255), 0).behind, 255U);
  EXPECT_EQ(expand(long_name(256), 0).error, Errc::kInvalid);
  Bytes message = long_name(254);
  append(message, octets({"\1a\xC0\0", 4}));
  EXPECT_EQ(expand(message, 254).error, Errc::kInvalid) << "256 by a pointer";
  message = long_name(253);
  append(message, octets({"\1a\xC0\0", 4}));
  EXPECT_EQ(expand(message, 253).behind, 257U) << "255 by a pointer";
}

TEST(ExpandName, BoundsTheNumberOfPointers) {
  EXPECT_EQ(expand(pointer_chain(kMaxNamePointers), 2 * kMaxNamePointers - 1).text, ".");
  EXPECT_EQ(expand(pointer_chain(kMaxNamePointers + 1), 2 * kMaxNamePointers + 1).error,
            Errc::kInvalid);
}

}  // namespace wire_name_test
}  // namespace pando::dns
