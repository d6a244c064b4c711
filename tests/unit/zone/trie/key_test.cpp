#include "zone/trie/key.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace pando::zone {
namespace key_test {

dns::Name random_name(std::mt19937& random) {
  std::uint8_t wire[dns::kMaxNameOctets];
  std::size_t size = 0;
  const auto labels = static_cast<unsigned>(random() % 5);
  for (unsigned i = 0; i < labels; ++i) {
    const auto length = static_cast<unsigned>(1 + random() % 4);
    wire[size++] = static_cast<std::uint8_t>(length);
    for (unsigned j = 0; j < length; ++j) {
      static constexpr std::uint8_t kOctets[] = {0,   1,   '*', '-', '0', 'A',
                                                 'a', 'b', 'z', '{', 255, '.'};
      wire[size++] = random() % 3 == 0 ? static_cast<std::uint8_t>(random() % 256)
                                       : kOctets[random() % sizeof kOctets];
    }
  }
  wire[size++] = 0;
  return dns::Name(dns::NameView(wire, size));
}

TrieKey key_of(const dns::Name& name) { return TrieKey(relative_labels(name, dns::NameView())); }

int sign(int value) { return (value > 0) - (value < 0); }

TEST(TrieKey, OrdersNamesCanonicallyForEveryOctet) {
  std::mt19937 random(20240601);
  for (int round = 0; round < 200'000; ++round) {
    const dns::Name a = random_name(random);
    const dns::Name b = random_name(random);
    ASSERT_EQ(sign(key_of(a).compare(key_of(b))), sign(dns::compare_canonical(a, b)))
        << dns::to_text(a) << " and " << dns::to_text(b);
  }
}

TEST(TrieKey, TellsEverySingleOctetFromEveryOther) {
  for (unsigned a = 0; a < 256; ++a) {
    for (unsigned b = 0; b < 256; ++b) {
      const std::uint8_t label_a[] = {1, static_cast<std::uint8_t>(a)};
      const std::uint8_t label_b[] = {1, static_cast<std::uint8_t>(b)};
      const int expected = dns::kFoldCase[a] - dns::kFoldCase[b];
      EXPECT_EQ(sign(TrieKey(label_a).compare(TrieKey(label_b))), sign(expected)) << a << " " << b;
    }
  }
}

TEST(TrieKey, HoldsTheLongestNamesThereAre) {
  std::vector<std::uint8_t> labels;
  for (int i = 0; i < 127; ++i) labels.insert(labels.end(), {1, 0xFF});
  EXPECT_EQ(TrieKey(labels).labels_within(kMaxKeySymbols), 127U);
  labels.clear();
  for (const int length : {63, 63, 63, 61}) {
    labels.push_back(static_cast<std::uint8_t>(length));
    labels.insert(labels.end(), static_cast<std::size_t>(length), 0xFF);
  }
  EXPECT_EQ(labels.size(), 254U);
  EXPECT_EQ(TrieKey(labels).length(), 2 * 250U + 4);
}

TEST(TrieKey, CommonPrefixAgreesWithAPlainLoop) {
  std::mt19937 random(5);
  for (int round = 0; round < 20'000; ++round) {
    const TrieKey a = key_of(random_name(random));
    const TrieKey b = key_of(random_name(random));
    std::size_t expected = 0;
    while (expected < std::min(a.length(), b.length()) && a[expected] == b[expected]) ++expected;
    ASSERT_EQ(a.common_prefix(b), expected);
  }
}

}  // namespace key_test
}  // namespace pando::zone
