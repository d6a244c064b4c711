#include "zone/trie/key.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>
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

/// A name of labels as they are asked for: up to 63 octets, most with one symbol.
dns::Name plausible_name(std::mt19937& random) {
  static constexpr std::string_view kOctets = "abcxyzABCXYZ0189-_*";
  std::uint8_t wire[dns::kMaxNameOctets];
  std::size_t size = 0;
  for (unsigned labels = static_cast<unsigned>(random() % 6); labels > 0; --labels) {
    const std::size_t most = random() % 4 == 0 ? dns::kMaxLabelOctets : 20;
    const std::size_t length = 1 + random() % most;
    if (size + 1 + length >= sizeof wire) break;
    wire[size++] = static_cast<std::uint8_t>(length);
    for (std::size_t i = 0; i < length; ++i)
      wire[size++] = random() % 50 == 0
                         ? static_cast<std::uint8_t>(random() % 256)
                         : static_cast<std::uint8_t>(kOctets[random() % kOctets.size()]);
  }
  wire[size++] = 0;
  return dns::Name(dns::NameView(wire, size));
}

/// The name, or with one octet of it changed that is no length.
dns::Name changed(const dns::Name& name, std::mt19937& random) {
  std::vector<std::uint8_t> wire(name.data(), name.data() + name.size());
  const std::size_t chosen = random() % wire.size();
  for (std::size_t at = 0; at < wire.size(); at += wire[at] + 1U)
    if (chosen > at && chosen <= at + wire[at]) wire[chosen] = static_cast<std::uint8_t>(random());
  return dns::Name(dns::NameView(wire.data(), wire.size()));
}

TEST(KeyView, PartsFromANameWhereItsKeyWould) {
  std::mt19937 random(6);
  for (int round = 0; round < 200'000; ++round) {
    const auto any_name = [&] {
      return round % 2 == 0 ? random_name(random) : plausible_name(random);
    };
    const dns::Name key_name = any_name();
    const dns::Name other_name = round % 8 < 2 ? changed(key_name, random) : any_name();
    const TrieKey key = key_of(key_name);
    const TrieKey other = key_of(other_name);
    const ByteView labels = relative_labels(other_name, dns::NameView());
    const std::size_t readable = round % 3 == 0 ? labels.size() : dns::kMaxNameOctets;
    const auto parting = key.view().part_from(labels, readable);
    const std::size_t common = key.common_prefix(other);
    ASSERT_EQ(parting.common, common) << dns::to_text(key_name) << " " << dns::to_text(other_name);
    ASSERT_EQ(parting.name_ends, common == other.length());
    ASSERT_EQ(parting.next, other[common]);
  }
}

void expect_same(KeyView key, const TrieKey& expected, const dns::Name& name) {
  ASSERT_EQ(key.length(), expected.length()) << dns::to_text(name);
  ASSERT_TRUE(std::equal(key.data(), key.data() + key.length(), expected.data()))
      << dns::to_text(name);
  ASSERT_EQ(key.data()[key.length()], kKeyEnd);
}

TEST(NameKey, IsTheKeyInEachZoneAboveTheName) {
  std::mt19937 random(7);
  for (int round = 0; round < 50'000; ++round) {
    const dns::Name name = round % 2 == 0 ? plausible_name(random) : random_name(random);
    const NameKey key(name);
    ASSERT_EQ(key.label_count(), name.view().label_count());
    expect_same(key.whole(), key_of(name), name);
    for (std::size_t labels = 0; labels <= key.label_count(); ++labels) {
      const dns::NameView apex = name.view().ancestor(key.label_count() - labels);
      expect_same(key.below(labels), TrieKey(relative_labels(name, apex)), name);
    }
    expect_same(key.below(key.label_count() + 1), TrieKey(), name);
  }
}

TEST(NameKey, HoldsTheLongestNamesThereAre) {
  for (const std::uint8_t octet : {'a', '_', '\xFF'}) {
    std::uint8_t wire[dns::kMaxNameOctets] = {};
    std::size_t size = 0;
    for (const int length : {63, 63, 63, 61}) {
      wire[size++] = static_cast<std::uint8_t>(length);
      std::fill_n(wire + size, length, octet);
      size += static_cast<std::size_t>(length);
    }
    const dns::Name name{dns::NameView(wire, size + 1)};
    expect_same(NameKey(name).whole(), key_of(name), name);
    for (std::size_t i = 0; i < 127; ++i) {
      wire[2 * i] = 1;
      wire[2 * i + 1] = octet;
    }
    const dns::Name deep{dns::NameView(wire, sizeof wire)};
    expect_same(NameKey(deep).whole(), key_of(deep), deep);
  }
}

}  // namespace key_test
}  // namespace pando::zone
