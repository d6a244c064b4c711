#include "manager/server/service_start.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/start/manager_parts.h"

namespace pando::manager {
namespace service_start_test {

using testing::ManagerParts;

/// A start with a new store and two zones, of which one has a file.
class StartOfService : public ::testing::Test {
 protected:
  StartOfService() { parts_.write_zone("a.test", 5); }
  bool has_loaded() {
    return parts_.run_until([this] { return parts_.serial("a.test.") == 5; });
  }

  ManagerParts parts_{ManagerParts::primary("a.test") + ManagerParts::primary("b.test")};
  bool may_reload_ = false;
  bool is_damaged_ = false;
  PreviousStore previous_{
      parts_.io, *parts_.data->store, {[] { return std::uint64_t{0}; }, [] {}, [] {}}, {}};
  ServiceStart start_{parts_.io,
                      parts_.pool,
                      parts_.parts(),
                      previous_,
                      parts_.host,
                      {[this](const Error&) { is_damaged_ = true; }, [this] { may_reload_ = true; }}};
};

TEST_F(StartOfService, ListsAndLoadsTheZones) {
  start_.begin();
  EXPECT_FALSE(may_reload_) << "the store is not in line with the configuration yet";
  ASSERT_TRUE(has_loaded());
  EXPECT_TRUE(may_reload_);
  EXPECT_TRUE(parts_.zone("b.test.")) << "answers SERVFAIL, not REFUSED";
  EXPECT_FALSE(parts_.zone("b.test.").loaded());
  EXPECT_FALSE(is_damaged_);
}

TEST_F(StartOfService, ZonesOfListsComeOnceTheseAreRead) {
  const RuntimePtr complete = parts_.configuration.runtime;
  const std::uint64_t reads = parts_.configuration.reads;
  parts_.configuration.runtime = make_runtime({}).value();
  start_.lists_read(complete);
  EXPECT_EQ(parts_.configuration.runtime, complete);
  EXPECT_EQ(parts_.configuration.reads, reads + 1);
  ASSERT_TRUE(has_loaded());
}

/// An operator repairs the lists, and needs a reload then.
TEST_F(StartOfService, ListsWithErrorsAllowReloads) {
  start_.lists_failed();
  EXPECT_TRUE(may_reload_);
  EXPECT_FALSE(parts_.zone("a.test.")) << "the store stays as it is";
}

}  // namespace service_start_test
}  // namespace pando::manager
