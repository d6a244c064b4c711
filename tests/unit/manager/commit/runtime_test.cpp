#include "manager/commit/runtime.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/commit/runtime_from.h"

namespace pando::manager {
namespace runtime_test {

using testing::runtime_from;
using Names = std::vector<std::string>;

constexpr std::string_view kRemotes = R"(
remotes:
  - {name: one, address: [192.0.2.1]}
  - {name: two, address: [192.0.2.2]}
  - {name: three, address: [192.0.2.3]}
)";

TEST(Runtime, HasTheRemotesOfAllZonesEachOnce) {
  const RuntimePtr runtime = runtime_from(std::string(kRemotes) + R"(
zones:
  - {name: a.test, file: a, notify: [two, one]}
  - {name: b.test, file: b, notify: [one, two]}
  - {name: c.test, primaries: [three]}
  - {name: d.test, primaries: [one, three], notify: [three]}
  - {name: e.test, file: e}
)");
  EXPECT_EQ(runtime->uses.notified, (Names{"two", "one", "three"}));
  EXPECT_EQ(runtime->uses.primaries, (Names{"three", "one"}));
  EXPECT_EQ(runtime->secondaries, (std::vector<std::uint32_t>{2, 3}));
  EXPECT_FALSE(runtime->uses.has_exports);
}

TEST(Runtime, KnowsWhetherAnyZoneIsExported) {
  const RuntimePtr runtime = runtime_from(R"(
zones:
  - {name: a.test, file: a}
  - {name: b.test, file: b, export-interval: 1h}
)");
  EXPECT_TRUE(runtime->uses.has_exports);
  EXPECT_TRUE(runtime->uses.notified.empty());
}

}  // namespace runtime_test
}  // namespace pando::manager
