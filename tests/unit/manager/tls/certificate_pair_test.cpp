#include "manager/tls/certificate_pair.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/unix_time.h"
#include "tests/unit/manager/tls/made_certificates.h"

namespace pando::manager {
namespace certificate_pair_test {

using ::testing::HasSubstr;
using testing::CertificateFolder;

constexpr std::uint64_t kDay = 86'400;

class Pair : public ::testing::Test {
 protected:
  Result<CertificatePair> check(const std::string& certificate, const std::string& key,
                                std::uint64_t later = 0) const {
    return check_pair(bytes_of_text(certificate), bytes_of_text(key), unix_seconds() + later);
  }
  std::string error_of(const std::string& certificate, const std::string& key,
                       std::uint64_t later = 0) const {
    const auto pair = check(certificate, key, later);
    EXPECT_FALSE(pair);
    return pair ? "" : pair.error().text;
  }
  std::string file(const std::string& name) const { return folder_.read(name); }

  CertificateFolder folder_;
};

TEST_F(Pair, HasKeyAndChainInOneText) {
  folder_.make("a");
  folder_.make("above");
  const auto pair = check(file("a.pem") + file("above.pem"), file("a.key"));
  ASSERT_TRUE(pair) << pair.error().text;
  const std::string pem(pair->pem.begin(), pair->pem.end());
  EXPECT_TRUE(pem.starts_with("-----BEGIN PRIVATE KEY-----")) << pem;
  EXPECT_THAT(pem, HasSubstr(file("a.pem") + file("above.pem")));
  EXPECT_EQ(pair->facts.subject, "CN=a.test");
  EXPECT_NEAR(static_cast<double>(pair->facts.not_after),
              static_cast<double>(unix_seconds() + 90 * kDay), 600);
}

TEST_F(Pair, ThePinIsThatOfOtherPrograms) {
  folder_.make("a");
  folder_.run("x509 -in a.pem -pubkey -noout | openssl pkey -pubin -outform der | "
              "openssl dgst -sha256 -binary | openssl base64 -A > pin");
  EXPECT_EQ(pin_text(check(file("a.pem"), file("a.key"))->facts.pin), file("pin"));
}

TEST_F(Pair, OfEachUsualKindOfKeyIsTaken) {
  folder_.make("rsa", 90, "rsa", "rsa_keygen_bits:2048");
  folder_.make("p384", 90, "ec", "ec_paramgen_curve:P-384");
  folder_.run("req -x509 -newkey ed25519 -nodes -keyout ed.key -out ed.pem -subj /CN=ed");
  for (const std::string name : {"rsa", "p384", "ed"})
    EXPECT_TRUE(check(file(name + ".pem"), file(name + ".key"))) << name;
  folder_.run("pkey -in rsa.key -traditional -out old.key");
  EXPECT_TRUE(check(file("rsa.pem"), file("old.key"))) << "the older form of keys";
}

TEST_F(Pair, AnotherKeyIsRefused) {
  folder_.make("a");
  folder_.make("b");
  EXPECT_EQ(error_of(file("a.pem"), file("b.key")),
            "the private key is not that of the certificate");
  EXPECT_EQ(error_of(file("a.pem") + file("b.pem"), file("b.key")),
            "the private key is not that of the certificate")
      << "the server's own certificate is the first";
}

TEST_F(Pair, MistakesAreNamed) {
  folder_.make("a");
  folder_.make("weak", 90, "rsa", "rsa_keygen_bits:1024");
  folder_.run("pkey -in a.key -aes256 -passout pass:secret -out closed.key");
  const std::string pem = file("a.pem");
  const std::string key = file("a.key");
  EXPECT_EQ(error_of("", key), "there is no certificate in it (PEM)");
  EXPECT_EQ(error_of(key, key), "there is no certificate in it (PEM)");
  EXPECT_EQ(error_of(pem.substr(0, pem.size() / 2), key), "certificate 1 is damaged");
  EXPECT_EQ(error_of(pem + pem.substr(0, pem.size() / 2), key), "certificate 2 is damaged");
  EXPECT_EQ(error_of(pem, ""), "there is no private key in it (PEM)");
  EXPECT_EQ(error_of(pem, pem), "there is no private key in it (PEM)");
  EXPECT_EQ(error_of(pem, key.substr(0, key.size() / 2)), "there is no private key in it (PEM)");
  EXPECT_EQ(error_of(pem, file("closed.key")), "the private key has a passphrase");
  EXPECT_EQ(error_of(file("weak.pem"), file("weak.key")),
            "the private key is too short: 1024 bits");
}

TEST_F(Pair, OfAnotherTimeIsRefused) {
  folder_.make("a", 2);
  EXPECT_TRUE(check(file("a.pem"), file("a.key"), kDay));
  EXPECT_THAT(error_of(file("a.pem"), file("a.key"), 3 * kDay), HasSubstr("has expired at 20"));
  EXPECT_THAT(error_of(file("a.pem"), file("a.key"), std::uint64_t{0} - kDay),
              HasSubstr("is not valid before 20"));
}

TEST_F(Pair, OfOurOwnIsValidAlwaysAndAnotherEachTime) {
  const auto own = make_own_pair();
  const auto other = make_own_pair();
  ASSERT_TRUE(own && other);
  EXPECT_NE(own->facts.pin, other->facts.pin);
  folder_.write("own.pem", {own->pem.begin(), own->pem.end()});
  folder_.run("verify -CAfile own.pem own.pem");
  const std::string text = file("own.pem");
  for (const std::uint64_t now : {std::uint64_t{0}, 200 * 365 * kDay}) {
    const auto again = check_pair(bytes_of_text(text), bytes_of_text(text), now);
    ASSERT_TRUE(again) << again.error().text;
    EXPECT_EQ(again->facts, own->facts);
  }
}

TEST_F(Pair, AuthoritiesAreAListOfCertificates) {
  folder_.make("a");
  EXPECT_TRUE(check_authorities(bytes_of_text("# a comment\n" + file("a.pem") + file("a.pem"))));
  EXPECT_FALSE(check_authorities(bytes_of_text("# a comment\n")));
}

TEST(TimeText, IsInUtc) { EXPECT_EQ(time_text(1'800'000'000), "2027-01-15 08:00:00 UTC"); }

}  // namespace certificate_pair_test
}  // namespace pando::manager
