#include "dns/dnssec/denial_fields.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "dns/rdata/rdata.h"

namespace pando::dns {
namespace denial_fields_test {

Bytes bitmap_of(const std::vector<RRType>& types) {
  Bytes out;
  append_type_bitmap(types, out);
  return out;
}

TEST(TypeBitmap, IsThatOfRfc4034Section43) {
  EXPECT_EQ(bitmap_of({RRType::kA, RRType::kMX, RRType::kRRSIG, RRType::kNSEC,
                       static_cast<RRType>(1234)}),
            (Bytes{0x00, 0x06, 0x40, 0x01, 0x00, 0x00, 0x00, 0x03, 0x04, 0x1b, 0x00, 0x00, 0x00,
                   0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
                   0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x20}));
}

TEST(TypeBitmap, HasTheEndsOfItsRange) {
  EXPECT_EQ(bitmap_of({}), Bytes{});
  EXPECT_EQ(bitmap_of({static_cast<RRType>(65535)}).size(), 34U);
  EXPECT_EQ(bitmap_of({static_cast<RRType>(0xFF00)}), (Bytes{0xFF, 1, 0x80}));
}

TEST(TypeBitmap, IsReadAsItWasWrittenAndPassesTheCheckOfNsec) {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    std::set<RRType> types;
    for (auto i = 1 + random() % 20; i > 0; --i)
      types.insert(static_cast<RRType>(random() % (round % 2 == 0 ? 300 : 65536)));
    const std::vector<RRType> sorted(types.begin(), types.end());
    Bytes rdata = {0};  // the root as next name
    append_type_bitmap(sorted, rdata);
    ASSERT_TRUE(check_rdata(RRType::kNSEC, rdata));
    ASSERT_EQ(types_in_bitmap(ByteView(rdata).subspan(1)), sorted);
  }
}

}  // namespace denial_fields_test
}  // namespace pando::dns
