#include "dns/dnssec/signing_key.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "dns/dnssec/rrsig.h"
#include "dns/encoding.h"
#include "dns/rdata/rdata.h"

namespace pando::dns {
namespace signing_key_test {

constexpr std::uint8_t kSigning[] = {8, 10, 13, 14, 15, 16};

Bytes rdata(RRType type, std::string_view text) {
  Bytes out;
  EXPECT_TRUE(rdata_from_text(type, text, Name(), out)) << text;
  return out;
}

Name name(std::string_view text) { return Name::from_text(text).value(); }

SigningKey made_of(std::uint8_t algorithm, std::string_view secret) {
  PrivateNumbers numbers;
  numbers.algorithm = algorithm;
  numbers.secret = base64_decode(secret).value();
  return SigningKey::make(numbers, 257).value();
}

TEST(SigningKey, OfEachAlgorithmSignsWhatItsDnskeyVerifies) {
  const Bytes data = {1, 2, 3}, other = {1, 2, 4};
  for (const std::uint8_t algorithm : kSigning) {
    const auto key = SigningKey::generate(algorithm, 257, 1024);
    ASSERT_TRUE(key) << key.error().text;
    const auto fields = parse_dnskey(key->dnskey());
    ASSERT_TRUE(fields && fields->is_zone_key());
    EXPECT_EQ(fields->algorithm, algorithm);
    EXPECT_EQ(key->tag(), key_tag(key->dnskey()));
    auto verifier = SignatureVerifier::make(*fields);
    auto maker = SignatureMaker::make(*key);
    ASSERT_TRUE(verifier && maker) << unsigned{algorithm};
    for (int i = 0; i < 300; ++i) {  // an ECDSA number has leading zeros once in 256
      Bytes signature;
      ASSERT_TRUE(maker->sign(data, signature));
      ASSERT_TRUE(verifier->verify(data, signature)) << unsigned{algorithm};
      ASSERT_FALSE(verifier->verify(other, signature)) << unsigned{algorithm};
      if (algorithm < 13 || algorithm > 14) break;  // always the same signature
    }
  }
}

TEST(SigningKey, SignaturesAreAppended) {
  for (const std::uint8_t algorithm : kSigning) {
    const auto key = SigningKey::generate(algorithm, 256, 1024);
    auto maker = SignatureMaker::make(key.value());
    Bytes out = {7};
    ASSERT_TRUE(maker->sign(Bytes{1}, out) && maker->sign(Bytes{2}, out));
    EXPECT_EQ(out.front(), 7);
    EXPECT_EQ((out.size() - 1) % 2, 0U) << "both have one size";
    auto verifier = SignatureVerifier::make(*parse_dnskey(key->dnskey()));
    const ByteView both = ByteView(out).subspan(1);
    EXPECT_TRUE(verifier->verify(Bytes{1}, both.first(both.size() / 2)));
    EXPECT_TRUE(verifier->verify(Bytes{2}, both.subspan(both.size() / 2)));
  }
}

TEST(SigningKey, Rfc6605Section61HasTheSameDnskeyTagAndDs) {
  const SigningKey key = made_of(13, "GU6SnQ/Ou+xC5RumuIUIuJZteXT2z0O/ok1s38Et6mQ=");
  EXPECT_EQ(key.dnskey(), rdata(RRType::kDNSKEY,
                                "257 3 13 GojIhhXUN/u4v54ZQqGSnyhWJwaubCvTmeexv7bR6edbkrSqQpF64cY"
                                "bcB7wNcP+e+MAnLr+Wi9xMWyQLc8NAA=="));
  EXPECT_EQ(key.tag(), 55648);
  EXPECT_EQ(make_ds(name("example.net."), key.dnskey(), 2),
            rdata(RRType::kDS,
                  "55648 13 2 "
                  "b4c8c1fe2e7477127b27115656ad6256f424625bf5c1e2770ce6d6e37df61d17"));
}

TEST(SigningKey, Rfc8080Section61SignsToTheSameOctets) {
  const SigningKey key = made_of(15, "ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=");
  EXPECT_EQ(key.dnskey(),
            rdata(RRType::kDNSKEY, "257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4="));
  EXPECT_EQ(key.tag(), 3613);
  const Bytes rrsig =
      rdata(RRType::kRRSIG,
            "MX 15 2 3600 1440021600 1438207200 3613 example.com. "
            "oL9krJun7xfBOIWcGHi7mag5/hdZrKWw15jPGrHpjQeRAvTdszaPD+QLs3fx8A4M3e23mRZ9"
            "VrbpMngwcrqNAg==");
  const auto fields = parse_rrsig(rrsig);
  auto maker = SignatureMaker::make(key);
  Bytes signature;
  const std::vector<Bytes> mx = {rdata(RRType::kMX, "10 mail.example.com.")};
  ASSERT_TRUE(maker->sign(signed_octets(*fields, name("example.com."), mx), signature));
  EXPECT_TRUE(std::ranges::equal(signature, fields->signature));
}

TEST(SigningKey, RsaBelow1024AndAbove4096BitsIsRefused) {
  for (const unsigned bits : {512U, 1023U, 4097U, 8192U}) {
    const auto key = SigningKey::generate(8, 257, bits);
    ASSERT_FALSE(key);
    EXPECT_NE(key.error().text.find("1024 to 4096"), std::string::npos) << key.error().text;
  }
  EXPECT_EQ(SigningKey::generate(8, 257, 1280)->bits(), 1280U);
}

TEST(SigningKey, AlgorithmsThatOnlyVerifyMakeNone) {
  for (const unsigned algorithm : {0U, 1U, 3U, 5U, 6U, 7U, 12U, 17U, 253U})
    EXPECT_EQ(SigningKey::generate(static_cast<std::uint8_t>(algorithm), 257).error().code,
              Errc::kUnsupported);
}

TEST(SigningKey, NumbersOutsideTheCurveMakeNoKey) {
  PrivateNumbers numbers;
  numbers.algorithm = 13;
  for (const Bytes& secret : {Bytes(32, 0x00), Bytes(32, 0xFF), Bytes(33, 0x01), Bytes()}) {
    numbers.secret = secret;
    EXPECT_FALSE(SigningKey::make(numbers, 257)) << secret.size();
  }
  numbers.secret = Bytes(31, 0x01);
  EXPECT_TRUE(SigningKey::make(numbers, 257)) << "older tools write no leading zeros";
  numbers.secret.insert(numbers.secret.begin(), 2, 0x00);
  EXPECT_TRUE(SigningKey::make(numbers, 257)) << "GnuTLS writes an octet for the sign";
  numbers.algorithm = 15;
  EXPECT_FALSE(SigningKey::make(numbers, 257)) << "EdDSA keys have one length";
}

TEST(SigningKey, OtherFlagsGiveAnotherTagAndTheSameKey) {
  const SigningKey key = made_of(15, "ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=");
  const SigningKey zsk = key.with_flags(256);
  EXPECT_TRUE(key.is_sep() && !zsk.is_sep());
  EXPECT_EQ(zsk.tag(), key.tag() - 1) << "the sum of RFC 4034 appendix B has one less";
  EXPECT_EQ(key.revoked_tag(), key.tag() + 128);
  EXPECT_EQ(key.with_flags(257).dnskey(), key.dnskey());
}

TEST(SigningKey, ThreadsShareAKey) {
  const auto key = SigningKey::generate(13, 257);
  std::vector<std::thread> threads;
  std::vector<Bytes> signatures(4);
  for (Bytes& signature : signatures)
    threads.emplace_back([&key, &signature] {
      auto maker = SignatureMaker::make(*key);
      for (int i = 0; i < 50; ++i) {
        signature.clear();
        if (!maker->sign(Bytes{9}, signature)) return;
      }
    });
  for (std::thread& thread : threads) thread.join();
  auto verifier = SignatureVerifier::make(*parse_dnskey(key->dnskey()));
  for (const Bytes& signature : signatures) EXPECT_TRUE(verifier->verify(Bytes{9}, signature));
  EXPECT_EQ(std::set<Bytes>(signatures.begin(), signatures.end()).size(), 4U);
}

}  // namespace signing_key_test
}  // namespace pando::dns
