#include "dns/heap_name.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace pando::dns {
namespace heap_name_test {

Name name(std::string_view text) { return Name::from_text(text).value(); }

TEST(HeapName, KeepsANameOfAnyLengthAsItIsSpelt) {
  const std::string label(63, 'x');
  for (const std::string& text :
       {std::string("."), std::string("a."), std::string("WwW.Example."),
        label + "." + label + "." + label + "." + label.substr(2) + "."}) {
    const Name original = name(text);
    const HeapName kept(original);
    EXPECT_EQ(to_text(kept), text);
    EXPECT_EQ(kept.size(), original.size());
    EXPECT_EQ(kept, original);
  }
  EXPECT_TRUE(HeapName().view().is_root());
}

TEST(HeapName, ACopyIsANameOfItsOwn) {
  HeapName first(name("one.example."));
  HeapName second = first;
  EXPECT_NE(first.data(), second.data());
  first = name("two.example.");
  EXPECT_EQ(to_text(first), "two.example.");
  EXPECT_EQ(to_text(second), "one.example.");
  const HeapName& same = second;
  second = same;
  EXPECT_EQ(to_text(second), "one.example.");
}

TEST(HeapName, OneThatWasMovedFromIsTheRoot) {
  HeapName first(name("one.example."));
  const HeapName second = std::move(first);
  EXPECT_EQ(to_text(second), "one.example.");
  EXPECT_TRUE(first.view().is_root());  // NOLINT: that is what it promises
}

TEST(HeapName, AListGrowsWithoutCopyingTheNames) {
  std::vector<HeapName> names;
  names.emplace_back(name("one.example."));
  const std::uint8_t* octets = names.front().data();
  names.resize(1000);
  EXPECT_EQ(names.front().data(), octets);
}

}  // namespace heap_name_test
}  // namespace pando::dns
