#include "http/api/cryptokeys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace pando::http {
namespace cryptokeys_test {

using nlohmann::json;
using ::testing::HasSubstr;

/// The key of tests/data/dnssec/keys/Kexample.+013+33270.key, and another one as it could be.
constexpr std::string_view kSepKey =
    "257 3 13 LGFC8dirjNSWLnuFo7Jtk0rL1EljJIDEQJpH4m6EemHaTXIgBFGqCPZf+"
    "hltHgfhDkcZ2vnNFVG2wvOgpZMqQg==";
constexpr std::string_view kOtherKey =
    "256 3 13 AAFC8dirjNSWLnuFo7Jtk0rL1EljJIDEQJpH4m6EemHaTXIgBFGqCPZf+"
    "hltHgfhDkcZ2vnNFVG2wvOgpZMqQg==";

json keys_of(const std::vector<std::string>& dnskeys, const std::vector<std::string>& cds = {}) {
  std::vector<RRsetText> apex{{"example.", dns::RRType::kDNSKEY, 60, dnskeys},
                              {"www.example.", dns::RRType::kDNSKEY, 60, {std::string(kOtherKey)}}};
  if (!cds.empty()) apex.push_back({"Example.", dns::RRType::kCDS, 60, cds});
  return cryptokeys_json(dns::Name::from_text("example.").value(), apex);
}

TEST(Cryptokeys, OneKeySignsAll) {
  const json keys = keys_of({std::string(kSepKey)});
  ASSERT_EQ(keys.size(), 1U);
  const json& key = keys[0];
  EXPECT_EQ(key["type"], "Cryptokey");
  EXPECT_EQ(key["id"], 13 * 65536 + 33270);
  EXPECT_EQ(key["keytype"], "csk");
  EXPECT_EQ(key["flags"], 257);
  EXPECT_EQ(key["algorithm"], "ECDSAP256SHA256");
  EXPECT_EQ(key["bits"], 256);
  EXPECT_EQ(key["dnskey"], kSepKey);
  EXPECT_TRUE(key["active"] == true && key["published"] == true);
  ASSERT_EQ(key["ds"].size(), 2U);
  EXPECT_THAT(key["ds"][0].get<std::string>(), HasSubstr("33270 13 2 "));
  EXPECT_THAT(key["ds"][1].get<std::string>(), HasSubstr("33270 13 4 "));
  EXPECT_FALSE(key.contains("cds") || key.contains("privatekey"));
  EXPECT_EQ(keys_of({std::string(kSepKey)}, {key["ds"][0]})[0]["cds"], json::array({key["ds"][0]}));
}

TEST(Cryptokeys, TwoKindsOfOneAlgorithmAreKskAndZsk) {
  const json keys = keys_of({std::string(kSepKey), std::string(kOtherKey)});
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0]["keytype"], "ksk");
  EXPECT_EQ(keys[1]["keytype"], "zsk");
  EXPECT_FALSE(keys[1].contains("ds"));
  EXPECT_NE(keys[0]["id"], keys[1]["id"]);
}

TEST(Cryptokeys, RsaKeysTellTheSizeOfTheirModulus) {
  // 3 = 0x010001 has three octets; the modulus has 128, the first of them 0x40.
  const std::string key = "257 3 8 AwEAAUAA" + std::string(168, 'A');
  const json keys = keys_of({key});
  ASSERT_EQ(keys.size(), 1U) << key;
  EXPECT_EQ(keys[0]["bits"], 1023);
  EXPECT_EQ(keys_of({"257 3 8 AA=="})[0]["bits"], 0) << "cut short";
}

TEST(Cryptokeys, AZoneWithoutKeysHasNone) { EXPECT_EQ(keys_of({}), json::array()); }

TEST(Cryptokeys, PanelsSwitchSigningOnByOneKey) {
  for (const char* body :
       {R"({"keytype": "ksk", "active": true})", R"({"keytype": "csk", "active": true})",
        R"({"keytype": "csk", "active": true, "published": true, "algorithm": "ecdsa256", "bits": 256})",
        R"({"keytype": "ksk", "active": true, "algorithm": 13, "bits": 0, "privatekey": null})"})
    EXPECT_TRUE(check_new_key(body)) << body;
}

TEST(Cryptokeys, AnotherKeyIsNotMade) {
  const std::pair<const char*, const char*> cases[] = {
      {"{", "malformed"},
      {"[]", "keytype"},
      {R"({"active": true})", "keytype"},
      {R"({"keytype": "zsk", "active": true})", "Invalid keytype 'zsk'"},
      {R"({"keytype": "ksk"})", "'active'"},
      {R"({"keytype": "ksk", "active": false})", "'active'"},
      {R"({"keytype": "ksk", "active": true, "published": false})", "'published'"},
      {R"({"keytype": "ksk", "active": true, "algorithm": "ed25519"})", "algorithm 13"},
      {R"({"keytype": "ksk", "active": true, "algorithm": 8})", "algorithm 13"},
      {R"({"keytype": "ksk", "active": true, "bits": 2048})", "256"},
      {R"({"keytype": "ksk", "active": true, "privatekey": "x"})", "dnssec import"},
      {R"({"keytype": "ksk", "active": true, "content": "x"})", "dnssec import"},
  };
  for (const auto& [body, reason] : cases) {
    const Status checked = check_new_key(body);
    ASSERT_FALSE(checked) << body;
    EXPECT_THAT(checked.error().text, HasSubstr(reason)) << body;
  }
}

}  // namespace cryptokeys_test
}  // namespace pando::http
