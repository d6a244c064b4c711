#include "dns/encoding.h"

#include <gtest/gtest.h>

namespace pando::dns {
namespace encoding_test {

Bytes octets(std::string_view text) { return {text.begin(), text.end()}; }

struct Vector {
  std::string_view plain, base64, base32hex, hex;
};

// RFC 4648 §10, base 32 without padding
constexpr Vector kVectors[] = {
    {"", "", "", ""},
    {"f", "Zg==", "CO", "66"},
    {"fo", "Zm8=", "CPNG", "666F"},
    {"foo", "Zm9v", "CPNMU", "666F6F"},
    {"foob", "Zm9vYg==", "CPNMUOG", "666F6F62"},
    {"fooba", "Zm9vYmE=", "CPNMUOJ1", "666F6F6261"},
    {"foobar", "Zm9vYmFy", "CPNMUOJ1E8", "666F6F626172"},
};

TEST(Encoding, Rfc4648Vectors) {
  for (const Vector& vector : kVectors) {
    const Bytes plain = octets(vector.plain);
    EXPECT_EQ(base64_encode(plain), vector.base64);
    EXPECT_EQ(*base64_decode(vector.base64), plain);
    EXPECT_EQ(hex_encode(plain), vector.hex);
    EXPECT_EQ(*hex_decode(vector.hex), plain);
    std::string text;
    append_base32hex(text, plain);
    EXPECT_EQ(text, vector.base32hex);
    Bytes decoded;
    EXPECT_TRUE(append_base32hex_decoded(vector.base32hex, decoded));
    EXPECT_EQ(decoded, plain);
  }
}

TEST(Encoding, EveryLengthAndOctetSurvives) {
  Bytes plain;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(*base64_decode(base64_encode(plain)), plain);
    EXPECT_EQ(*hex_decode(hex_encode(plain)), plain);
    std::string text;
    append_base32hex(text, plain);
    Bytes decoded;
    EXPECT_TRUE(append_base32hex_decoded(text, decoded));
    EXPECT_EQ(decoded, plain);
    plain.push_back(static_cast<std::uint8_t>(i * 37));
  }
}

TEST(Base64, MayComeInWordsSplitAnywhere) {
  const std::string whole = "Zm9vYmFyZm9vYg==";
  for (std::size_t first = 0; first <= whole.size(); ++first)
    for (std::size_t second = first; second <= whole.size(); ++second) {
      Bytes out;
      Base64Decoder decoder;
      EXPECT_TRUE(decoder.feed(whole.substr(0, first), out));
      EXPECT_TRUE(decoder.feed(whole.substr(first, second - first), out));
      EXPECT_TRUE(decoder.feed(whole.substr(second), out));
      EXPECT_TRUE(decoder.finish());
      EXPECT_EQ(out, octets("foobarfoob"));
    }
}

TEST(Base64, EachOctetStringHasOneText) {
  for (const char* text : {"Zg", "Zg=", "Z===", "====", "=", "Zh==", "Zm9=", "Zg==Zg==", "Zg==Z",
                           "Zm9v=", "Zm9v Zm9v", "Zm9-", "Zm9_", "Z", "Zg=a", "Zm8=="})
    EXPECT_FALSE(base64_decode(text)) << text;
}

TEST(Hex, IsReadInAnyCaseAndRefusedOtherwise) {
  EXPECT_EQ(*hex_decode("aBcDeF09"), (Bytes{0xAB, 0xCD, 0xEF, 0x09}));
  for (const char* text : {"a", "abc", "0x12", "1g", "g1", "12 34"})
    EXPECT_FALSE(hex_decode(text)) << text;
}

TEST(Base32Hex, IsReadInAnyCaseAndRefusedOtherwise) {
  Bytes out;
  EXPECT_TRUE(append_base32hex_decoded("cpnmuoj1e8", out));
  EXPECT_EQ(out, octets("foobar"));
  for (const char* text : {"C", "CPN", "CPNMUO", "CW", "CP", "CO======", "C-"}) {
    Bytes ignored;
    EXPECT_FALSE(append_base32hex_decoded(text, ignored)) << text;
  }
}

}  // namespace encoding_test
}  // namespace pando::dns
