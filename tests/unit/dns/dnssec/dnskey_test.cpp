#include "dns/dnssec/dnskey.h"

#include <gtest/gtest.h>

#include "dns/rdata/rdata.h"

namespace pando::dns {
namespace dnskey_test {

Name name(std::string_view text) { return Name::from_text(text).value(); }

Bytes rdata(RRType type, std::string_view text) {
  Bytes out;
  EXPECT_TRUE(rdata_from_text(type, text, name("."), out).has_value()) << text;
  return out;
}

// RFC 4034 §5.4, RFC 4509 §2.3, RFC 6605 §6.2.
const Name kOwner = name("dskey.example.com.");
constexpr std::string_view kKey =
    "256 3 5 "
    "AQOeiiR0GOMYkDshWoSKz9XzfwJr1AYtsmx3TGkJaNXVbfi/2pHm822aJ5iI9BMzNXxeYCmZDRD99WYwYqUSdjMm"
    "mAphXdvxegXd/M5+X7OrzKBaMbCVdFLUUh6DhweJBjEVv5f2wwjM9XzcnOf+EPbtG9DMBmADjFDc2w/rljwvFw==";
constexpr std::string_view kSha1 = "60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118";
constexpr std::string_view kSha256 =
    "60485 5 2 D4B7D520E7BB5F0F67674A0CCEB1E3E0614B93C4F9E99B8383F6A1E4469DA50A";
constexpr std::string_view kP384Key =
    "257 3 14 "
    "xKYaNhWdGOfJ+nPrL8/arkwf2EY3MDJ+SErKivBVSum1w/egsXvSADtNJhyem5RCOpgQ6K8X1DRSEkrbYQ+OB+v8"
    "/uX45NBwY8rp65F6Glur8I/mlVNgF6W/qTI37m40";
constexpr std::string_view kSha384 =
    "10771 14 4 "
    "72d7b62976ce06438e9c0bf319013cf801f09ecc84b8d7e9495f27e305c6a9b0563a9b5f4d288405c3008a"
    "946df983d6";

bool match(std::string_view ds, std::string_view key, const Name& owner = kOwner) {
  const Bytes ds_rdata = rdata(RRType::kDS, ds);
  return matches(*parse_ds(ds_rdata), owner, rdata(RRType::kDNSKEY, key));
}

TEST(Ds, MatchesItsKeyByEachDigest) {
  EXPECT_TRUE(match(kSha1, kKey));
  EXPECT_TRUE(match(kSha256, kKey));
  EXPECT_TRUE(match(kSha384, kP384Key, name("example.net.")));
  EXPECT_TRUE(match(kSha256, kKey, name("DSKEY.example.COM."))) << "in canonical form";
}

TEST(Ds, MatchesNoOtherKeyNameOrDigest) {
  EXPECT_FALSE(match(kSha256, kKey, name("other.example.com.")));
  EXPECT_FALSE(match(kSha384, kKey));
  std::string other(kSha256);
  other.back() = 'B';
  EXPECT_FALSE(match(other, kKey));
  other = kSha256;
  other[8] = '3';  // GOST
  EXPECT_FALSE(match(other, kKey));
  std::string revoked(kKey);
  revoked.replace(0, 3, "384");
  EXPECT_FALSE(match(kSha256, revoked));
  std::string no_zone_key(kKey);
  no_zone_key.replace(0, 3, "000");
  EXPECT_FALSE(match(kSha256, no_zone_key));
}

TEST(Ds, CutShortIsNone) {
  EXPECT_FALSE(parse_ds(Bytes{1, 2, 3, 4}));
  EXPECT_FALSE(parse_ds(Bytes{}));
  EXPECT_FALSE(is_supported_digest(0) || is_supported_digest(3));
}

}  // namespace dnskey_test
}  // namespace pando::dns
