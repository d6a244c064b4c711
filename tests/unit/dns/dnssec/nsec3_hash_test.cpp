#include "dns/dnssec/nsec3_hash.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace pando::dns {
namespace nsec3_hash_test {

std::string base32hex(const Nsec3Hash& hash) {
  static const char* const kDigits = "0123456789abcdefghijklmnopqrstuv";
  std::string text;
  for (std::size_t bit = 0; bit < hash.size() * 8; bit += 5) {
    unsigned value = 0;
    for (std::size_t i = bit; i < bit + 5; ++i)
      value = value << 1 | (hash[i / 8] >> (7 - i % 8) & 1U);
    text += kDigits[value];
  }
  return text;
}

std::string hash_of(const char* name, std::uint16_t iterations, const Bytes& salt) {
  Nsec3Hasher hasher;
  Nsec3Hash hash{};
  if (!hasher.hash(*Name::from_text(name), iterations, salt, hash)) return "refused";
  return base32hex(hash);
}

TEST(Nsec3Hash, AgreesWithTheNamesOfRfc5155AppendixA) {
  const Bytes salt = {0xaa, 0xbb, 0xcc, 0xdd};
  EXPECT_EQ(hash_of("example.", 12, salt), "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom");
  EXPECT_EQ(hash_of("a.example.", 12, salt), "35mthgpgcu1qg68fab165klnsnk3dpvl");
  EXPECT_EQ(hash_of("ns1.example.", 12, salt), "2t7b4g4vsa5smi47k61mv5bv1a22bojr");
  EXPECT_EQ(hash_of("*.w.example.", 12, salt), "r53bq7cc2uvmubfu5ocmm6pers9tk9en");
  EXPECT_EQ(hash_of("x.y.w.example.", 12, salt), "2vptu5timamqttgl4luu9kg21e0aor3s");
  EXPECT_EQ(hash_of("2t7b4g4vsa5smi47k61mv5bv1a22bojr.example.", 12, salt),
            "kohar7mbb8dc2ce8a9qvl8hon4k53uhi");
}

TEST(Nsec3Hash, FoldsCase) {
  EXPECT_EQ(hash_of("NS1.Example.", 12, {0xaa, 0xbb, 0xcc, 0xdd}),
            "2t7b4g4vsa5smi47k61mv5bv1a22bojr");
}

TEST(Nsec3Hash, WorksWithoutSaltAndIterations) {
  // SHA-1 of the octets 07 65 78 61 6d 70 6c 65 00, by another program.
  EXPECT_EQ(hash_of("example.", 0, {}), "3msev9usmd4br9s97v51r2tdvmr9iqo1");
}

TEST(Nsec3Hash, HashesOneNameAfterAnother) {
  Nsec3Hasher hasher;
  Nsec3Hash first{}, second{}, again{};
  const Name a = *Name::from_text("a.example."), b = *Name::from_text("b.example.");
  ASSERT_TRUE(hasher.hash(a, 1, {}, first));
  ASSERT_TRUE(hasher.hash(b, 1, {}, second));
  ASSERT_TRUE(hasher.hash(a, 1, {}, again));
  EXPECT_NE(first, second);
  EXPECT_EQ(first, again);
}

TEST(Nsec3Hash, RemembersNothingWrong) {
  const auto hasher = std::make_unique<Nsec3Hasher>();
  // Twice over more names, salts and iterations than it has room for.
  for (int i = 0; i < 2000; ++i) {
    const Name name = *Name::from_text("N" + std::to_string(i % 211) + ".example.");
    const auto iterations = static_cast<std::uint16_t>(i % 3);
    const Bytes salt(static_cast<std::size_t>(i % 19), static_cast<std::uint8_t>(i % 2));
    Nsec3Hash fresh{}, remembered{};
    ASSERT_TRUE(hasher->hash(name, iterations, salt, fresh));
    ASSERT_TRUE(hasher->hash_and_remember(name, iterations, salt, remembered));
    ASSERT_EQ(fresh, remembered) << i;
    ASSERT_TRUE(hasher->hash_and_remember(name.folded(), iterations, salt, remembered));
    ASSERT_EQ(fresh, remembered) << i;
  }
}

TEST(Nsec3Hash, RefusesMoreIterationsThanAnySignerMayUse) {
  EXPECT_NE(hash_of("example.", kMaxNsec3Iterations, {}), "refused");
  EXPECT_EQ(hash_of("example.", kMaxNsec3Iterations + 1, {}), "refused");
}

TEST(Nsec3Hash, RefusesASaltThatNoRecordCanHold) {
  EXPECT_NE(hash_of("example.", 0, Bytes(255)), "refused");
  EXPECT_EQ(hash_of("example.", 0, Bytes(256)), "refused");
}

}  // namespace nsec3_hash_test
}  // namespace pando::dns
