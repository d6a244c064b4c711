#include "config/settings/values.h"

#include <gtest/gtest.h>

namespace pando::config {
namespace values_test {

using namespace std::chrono_literals;

TEST(Size, IsANumberWithABinaryOrDecimalUnit) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("4096").value(), 4096U);
  EXPECT_EQ(parse_size("512B").value(), 512U);
  EXPECT_EQ(parse_size("16MiB").value(), 16ULL << 20);
  EXPECT_EQ(parse_size("1 GiB").value(), 1ULL << 30);
  EXPECT_EQ(parse_size("32GiB").value(), 32ULL << 30);
  EXPECT_EQ(parse_size("2TiB").value(), 2ULL << 40);
  EXPECT_EQ(parse_size("5kB").value(), 5000U);
  EXPECT_EQ(parse_size("5MB").value(), 5'000'000U);
}

TEST(Size, RefusesEverythingElse) {
  for (const char* text : {"", "GiB", "-1", "+1", "1.5GiB", "1gib", "1 GiB ", "0x10", "1GiBs",
                           "18446744073709551616", "16777216TiB"})
    EXPECT_FALSE(parse_size(text)) << text;
}

TEST(Share, IsPercentOrSize) {
  EXPECT_EQ(parse_size_or_share("10%").value().of(1000), 100U);
  EXPECT_EQ(parse_size_or_share("100%").value().of(1 << 20), (1U << 20) / 100 * 100);
  EXPECT_EQ(parse_size_or_share("16MiB").value().of(1000), 16ULL << 20);
  for (const char* text : {"0%", "101%", "%", "5 %", "-1%"})
    EXPECT_FALSE(parse_size_or_share(text)) << text;
}

TEST(DurationText, IsANumberWithAUnit) {
  EXPECT_EQ(parse_duration("10s").value(), 10s);
  EXPECT_EQ(parse_duration("500ms").value(), 500ms);
  EXPECT_EQ(parse_duration("5min").value(), 5min);
  EXPECT_EQ(parse_duration("2h").value(), 2h);
  EXPECT_EQ(parse_duration("1day").value(), 24h);
  EXPECT_EQ(parse_duration("4weeks").value(), 4 * 7 * 24h);
  EXPECT_EQ(parse_duration("1w").value(), 7 * 24h);
  EXPECT_EQ(parse_duration("0").value(), 0s);
  EXPECT_EQ(parse_duration("30").value(), 30s);
}

TEST(DurationText, RefusesEverythingElse) {
  for (const char* text : {"", "s", "-1s", "1.5h", "1m", "10sec", "1h30min", "101years",
                           "9999999999999999h", "99999weeks"})
    EXPECT_FALSE(parse_duration(text)) << text;
}

TEST(Number, HasToBeInItsRange) {
  EXPECT_EQ(parse_number("512", 512, 4096).value(), 512U);
  for (const char* text : {"511", "4097", "", "1e3", " 600", "600 ", "0600x"})
    EXPECT_FALSE(parse_number(text, 512, 4096)) << text;
}

TEST(Bool, HasThreeWordsForEachValue) {
  for (const char* text : {"true", "yes", "on"}) EXPECT_TRUE(parse_bool(text).value()) << text;
  for (const char* text : {"false", "no", "off"}) EXPECT_FALSE(parse_bool(text).value()) << text;
  for (const char* text : {"", "1", "True", "enabled"}) EXPECT_FALSE(parse_bool(text)) << text;
}

std::string base64(std::string_view text) {
  const auto bytes = decode_base64(text);
  return bytes ? std::string(bytes->begin(), bytes->end()) : "error: " + bytes.error().text;
}

TEST(Base64, DecodesTheExamplesOfRfc4648Section10) {
  EXPECT_EQ(base64(""), "");
  EXPECT_EQ(base64("Zg=="), "f");
  EXPECT_EQ(base64("Zm8="), "fo");
  EXPECT_EQ(base64("Zm9v"), "foo");
  EXPECT_EQ(base64("Zm9vYg=="), "foob");
  EXPECT_EQ(base64("Zm9vYmE="), "fooba");
  EXPECT_EQ(base64("Zm9v\n YmFy"), "foobar");
  EXPECT_EQ(decode_base64("+/+/").value(), (Bytes{0xFB, 0xFF, 0xBF}));
}

TEST(Base64, IgnoresBitsThatThePaddingCutsOff) {
  EXPECT_EQ(base64("Zh=="), "f");
  EXPECT_EQ(base64("Zm9="), "fo");
}

TEST(Base64, RefusesEverythingElse) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zm9v!", "Zg==Zg==", "Zm-_"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

TEST(NameText, NeedsNoFinalDotButAscii) {
  EXPECT_EQ(dns::to_text(parse_name("example.com").value()), "example.com.");
  EXPECT_EQ(dns::to_text(parse_name(".").value()), ".");
  for (const char* text : {"", "a..b",
                           "b\xC3\xBC"
                           "cher.example"})
    EXPECT_FALSE(parse_name(text)) << text;
}

TEST(EndpointText, HasADefaultPort) {
  EXPECT_EQ(parse_endpoint("192.0.2.1", 853).value().port, 853);
  EXPECT_EQ(parse_endpoint("192.0.2.1@53", 853).value().port, 53);
  for (const char* text : {"", "192.0.2.1@", "192.0.2.1@0", "192.0.2.1:53", "host@53"})
    EXPECT_FALSE(parse_endpoint(text, 53)) << text;
}

}  // namespace values_test
}  // namespace pando::config
