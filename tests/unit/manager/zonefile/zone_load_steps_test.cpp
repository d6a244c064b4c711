#include "manager/zonefile/zone_load_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace zone_load_steps_test {

using ::testing::Contains;
using testing::kFile;
using testing::kUnsignedKey;
using testing::Loader;
using testing::name;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// Files with `verify: refuse`.
class VerifiedFile : public Loader {
 protected:
  LoadJob job(const std::string& zone, const std::string& path) const {
    LoadJob made{name(zone), path};
    made.verify = config::SignaturePolicy::kRefuse;
    return made;
  }
  LoadOutcome load_verified() { return load_all({job("@", path_)}); }
};

TEST_F(VerifiedFile, WithFaultsLeavesTheVersionBefore) {
  write(kFile);
  ASSERT_EQ(load_verified().kind, Kind::kLoaded);
  write(with_serial(11) + kUnsignedKey);
  const LoadOutcome outcome = load_verified();
  EXPECT_EQ(outcome.kind, Kind::kFailed);
  EXPECT_THAT(outcome.problems, Contains(StartsWith(path_ + ": example.")));
  EXPECT_EQ(serial(), 10U);
  EXPECT_FALSE(changes_.under_way(name("@")));
  write(with_serial(12));
  EXPECT_EQ(load_verified().kind, Kind::kChanged);
  EXPECT_EQ(serial(), 12U);
}

TEST_F(VerifiedFile, IsMergedWithUpdates) {
  write(kFile);
  load_verified();
  update({}, {"dyn 60 A 192.0.2.9"});
  write(std::string(kFile) + "added A 192.0.2.12\n");
  EXPECT_EQ(load_verified().kind, Kind::kChanged);
  EXPECT_THAT(parts_.zone.at("dyn"), SizeIs(1));
  EXPECT_THAT(parts_.zone.at("added"), SizeIs(1));
  expect_stable();
}

TEST_F(VerifiedFile, WithFaultsIsLeftOutIfTheJournalHasTheZone) {
  write(kFile);
  load_verified();
  update({}, {"dyn 60 A 192.0.2.9"});
  snapshot();
  const std::vector<std::string> before = parts_.zone.lines();
  write(with_serial(20) + kUnsignedKey);
  lose_store();
  EXPECT_EQ(load_verified().kind, Kind::kLoaded);
  EXPECT_EQ(parts_.zone.lines(), before);
}

}  // namespace zone_load_steps_test
}  // namespace pando::manager
