#include "ctl/view/host_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pando::ctl {

TEST(HostAddresses, LoopbackIsAmongThem) {
  EXPECT_THAT(own_addresses(), testing::Contains("127.0.0.1"));
}

TEST(HostAddresses, AnAddressOfZerosIsAnyOfItsFamily) {
  for (const char* text : {"0.0.0.0", "::"}) EXPECT_TRUE(is_any(*IpAddress::from_text(text)));
  for (const char* text : {"0.0.0.1", "::1", "127.0.0.1", "2001:db8::"})
    EXPECT_FALSE(is_any(*IpAddress::from_text(text)));
}

}  // namespace pando::ctl
