#include "ipc/zone_counters.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

namespace pando::ipc {
namespace zone_counters_test {

std::uint64_t key(const std::string& name) {
  return zone_count_key(dns::Name::from_text(name).value());
}

TEST(ZoneCountKey, IsTheSameForAllSpellings) {
  EXPECT_EQ(key("Example.TEST."), key("example.test."));
  EXPECT_NE(key("example.test."), key("example.tesu."));
  EXPECT_NE(key("."), 0U);
  EXPECT_NE(key("@."), key("`.")) << "only letters have two cases";
  EXPECT_NE(key("[."), key("{."));
}

TEST(ZoneCountKey, TellsManyZonesApartByFewBits) {
  std::set<std::uint64_t> all, low;
  for (int i = 0; i < 4096; ++i) {
    const std::uint64_t value = key(fmt::format("z{}.test.", i));
    all.insert(value);
    low.insert(value % 4096);
  }
  EXPECT_EQ(all.size(), 4096U);
  EXPECT_GT(low.size(), 2400U) << "1 - 1/e of them by chance";
}

}  // namespace zone_counters_test
}  // namespace pando::ipc
