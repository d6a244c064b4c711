#include "zone/dnssec/set_signer.h"

#include <gtest/gtest.h>

#include <set>

#include "dns/dnssec/rrsig.h"
#include "dns/rdata/rdata.h"

namespace pando::zone {
namespace set_signer_test {

using dns::RRType;

constexpr std::uint16_t kKsk = 257, kZsk = 256;

dns::Name name(std::string_view text) { return dns::Name::from_text(text).value(); }

dns::SigningKey key(std::uint8_t algorithm, std::uint16_t flags) {
  return dns::SigningKey::generate(algorithm, flags, 1024).value();
}

/// Which of the keys sign a set of the type, by their places.
std::set<std::size_t> signing(const std::vector<dns::SigningKey>& keys, RRType type) {
  const auto made = SigningKeys::make(keys);
  EXPECT_TRUE(made);
  std::set<std::size_t> found;
  for (std::size_t i = 0; i < keys.size(); ++i)
    if (made->signs(keys[i], type)) found.insert(i);
  return found;
}

TEST(SigningKeys, OneKeySignsEverythingWhateverItsFlags) {
  for (const std::uint16_t flags : {kKsk, kZsk})
    for (const RRType type : {RRType::kDNSKEY, RRType::kCDS, RRType::kSOA, RRType::kNSEC})
      EXPECT_EQ(signing({key(15, flags)}, type), std::set<std::size_t>{0});
}

TEST(SigningKeys, OfOneAlgorithmShareTheWork) {
  const std::vector<dns::SigningKey> keys = {key(15, kZsk), key(15, kKsk), key(15, kZsk)};
  for (const RRType type : {RRType::kDNSKEY, RRType::kCDS, RRType::kCDNSKEY})
    EXPECT_EQ(signing(keys, type), std::set<std::size_t>{1});
  for (const RRType type : {RRType::kSOA, RRType::kNSEC, RRType::kDS})
    EXPECT_EQ(signing(keys, type), (std::set<std::size_t>{0, 2}));
}

/// RFC 4035 §2.2: each set has a signature of each algorithm in the DNSKEY set.
TEST(SigningKeys, OfEachAlgorithmSignEachSet) {
  const std::vector<dns::SigningKey> keys = {key(15, kKsk), key(15, kZsk), key(13, kKsk)};
  EXPECT_EQ(signing(keys, RRType::kDNSKEY), (std::set<std::size_t>{0, 2}));
  EXPECT_EQ(signing(keys, RRType::kA), (std::set<std::size_t>{1, 2}));
}

TEST(SigningKeys, MustBeThereAndDifferent) {
  EXPECT_FALSE(SigningKeys::make({}));
  const dns::SigningKey one = key(15, kKsk);
  EXPECT_FALSE(SigningKeys::make({one, one}));
  EXPECT_FALSE(SigningKeys::make({one, one.with_flags(kZsk)})) << "the same key in two roles";
}

TEST(SignatureTimes, EndsAreSpreadAndStayTheSame) {
  const SignatureTimes times = usual_times(1'700'000'000);
  EXPECT_EQ(times.inception, 1'700'000'000U - 3600);
  constexpr std::uint64_t kDay = 86400;
  std::array<unsigned, 8> per_day{};
  for (unsigned i = 0; i < 8000; ++i) {
    const dns::Name owner = name(fmt::format("host{}.example.", i));
    const std::uint64_t end = times.end_of(owner, RRType::kA);
    const std::uint64_t left = end - 1'700'000'000;
    ASSERT_GT(left, 6 * kDay);
    ASSERT_LE(left, 14 * kDay);
    ++per_day[(left - 6 * kDay - 1) / kDay];
    ASSERT_EQ(end, times.end_of(name(fmt::format("HOST{}.Example.", i)), RRType::kA));
  }
  for (const unsigned count : per_day) {
    EXPECT_GT(count, 850U);
    EXPECT_LT(count, 1150U);
  }
  std::set<std::uint64_t> ends;
  for (const RRType type : {RRType::kA, RRType::kAAAA, RRType::kMX, RRType::kNSEC})
    ends.insert(times.end_of(name("example."), type));
  EXPECT_EQ(ends.size(), 4U);
  EXPECT_EQ((SignatureTimes{1, 99, 0}.end_of(name("a."), RRType::kA)), 99U);
}

TEST(SetSigner, MakesTheFieldsOfRfc4034Section31) {
  const dns::SigningKey zsk = key(15, kZsk);
  const auto keys = SigningKeys::make({zsk});
  auto signer = SetSigner::make(name("Example."), *keys, {1000, 2000, 0});
  ASSERT_TRUE(signer);
  std::vector<Bytes> rdatas;
  for (const char* text : {"20 B.example.", "10 a.example."})
    ASSERT_TRUE(dns::rdata_from_text(RRType::kMX, text, dns::Name(), rdatas.emplace_back()));
  Bytes made;
  ASSERT_TRUE(signer->sign(name("*.Wild.example."), RRType::kMX, {300}, rdatas,
                           [&](ByteView rdata) { made.assign(rdata.begin(), rdata.end()); }));
  EXPECT_EQ(signer->made(), 1U);
  ASSERT_TRUE(dns::check_rdata(RRType::kRRSIG, made));
  const auto fields = dns::parse_rrsig(made);
  EXPECT_EQ(fields->covered, RRType::kMX);
  EXPECT_EQ(fields->labels, 2) << "the asterisk does not count (§3.1.3)";
  EXPECT_EQ(fields->original_ttl, 300U);
  EXPECT_EQ(fields->inception, 1000U);
  EXPECT_EQ(fields->expiration, 2000U);
  EXPECT_EQ(fields->key_tag, zsk.tag());
  EXPECT_EQ(dns::rdata_to_text(RRType::kRRSIG, made).find("Example"), std::string::npos)
      << "the signer's name is in lower case (RFC 6840 §5.1)";
  EXPECT_EQ(rdatas.front()[1], 10) << "canonical order";
  auto verifier = dns::SignatureVerifier::make(*dns::parse_dnskey(zsk.dnskey()));
  EXPECT_TRUE(verifier->verify(dns::signed_octets(*fields, name("*.wild.example."), rdatas),
                               fields->signature));
}

/// Times wrap modulo 2^32 (RFC 4034 §3.1.5).
TEST(SetSigner, WritesTimesAfter2106) {
  const auto keys = SigningKeys::make({key(15, kKsk)});
  constexpr std::uint64_t kWrap = std::uint64_t{1} << 32U;
  auto signer = SetSigner::make(name("example."), *keys, {kWrap - 10, kWrap + 20, 0});
  std::vector<Bytes> rdatas = {Bytes{192, 0, 2, 1}};
  Bytes made;
  ASSERT_TRUE(signer->sign(name("a.example."), RRType::kA, {1}, rdatas,
                           [&](ByteView rdata) { made.assign(rdata.begin(), rdata.end()); }));
  EXPECT_EQ(dns::parse_rrsig(made)->expiration, 20U);
  EXPECT_TRUE(dns::parse_rrsig(made)->is_valid_at(kWrap + 5));
}

}  // namespace set_signer_test
}  // namespace pando::zone
