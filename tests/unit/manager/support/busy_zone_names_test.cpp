#include "manager/support/busy_zone_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipc/busy_zones.h"
#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace busy_zone_names_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class BusyZoneNamesTest : public ::testing::Test {
 protected:
  [[nodiscard]] zone::StoreView version() const { return parts_.committer.current(); }
  [[nodiscard]] std::uint32_t known() const {
    return version().zone_at(testing::name("@")).side_index();
  }

  testing::Parts parts_;
  BusyZoneNames zones_;
};

TEST_F(BusyZoneNamesTest, NotesOfEachWorkerAreRead) {
  for (const std::uint32_t slot : {0U, 3U}) {
    auto page = parts_.slots.add(slot);
    ASSERT_TRUE(page);
    (*page)->counters[ipc::kBusyBase + slot] = ipc::BusyZone{known(), 5 + slot}.value();
  }
  const auto notes = BusyZoneNames::read(parts_.slots);
  ASSERT_EQ(notes.size(), 2U);
  EXPECT_EQ(zones_.with_names(notes, version()).rows,
            (std::vector<ipc::ZoneQueriesRow>{{0, "example.", 80}, {3, "example.", 128}}));
}

TEST_F(BusyZoneNamesTest, ZonesThatAreGoneAreLeftOut) {
  EXPECT_THAT(zones_.with_names({{0, known() + 100, 1}}, version()).rows, IsEmpty());
  for (int turn = 0; turn < 2; ++turn)  // by a walk, then by the name from before
    EXPECT_THAT(zones_.with_names({{0, known() + 100, 1}, {0, known(), 1}}, version()).rows,
                ElementsAre(ipc::ZoneQueriesRow{0, "example.", 16}));
}

}  // namespace busy_zone_names_test
}  // namespace pando::manager
