#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "manager/commit/zone_table_sync.h"
#include "manager/zonefile/zone_file_loads.h"
#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager::testing {

/// Configurations whose zones have files, and the parts of a manager that load them. The store
/// begins with "example.", which has data.
class ZoneTableLoads : public ::testing::Test {
 protected:
  using Counts = ZoneFileLoads::Counts;

  std::string path_of(const std::string& zone) const {
    return parts_.folder.path() + "/of-" + (zone == "@" ? "example" : zone);
  }
  /// A zone of `settings` with its file.
  void add_zone(config::Settings& settings, const std::string& zone, std::uint32_t options) const {
    EXPECT_TRUE(settings.zones.add(name(zone), path_of(zone), options));
  }
  /// Brings the store's list of zones in line with these.
  RuntimePtr bring_in_line(config::Settings settings) {
    const RuntimePtr runtime = make_runtime(std::move(settings)).value();
    bool done = false;
    ZoneTableSync::run(parts_.zone.store(), parts_.committer, runtime,
                       [&](const Status& status, const ZoneTableSync::Counts& counts) {
                         EXPECT_TRUE(status.has_value());
                         loads_.recounted(counts.loaded);
                         done = true;
                       });
    EXPECT_TRUE(parts_.run_until([&] { return done; }));
    return runtime;
  }
  /// Calls `begin` with the end of a load, and waits for that end.
  Counts counts_of(const std::function<void(ZoneFileLoads::Done)>& begin) {
    std::optional<Counts> counts;
    begin([&](const Counts& found) {
      EXPECT_FALSE(counts.has_value()) << "called twice";
      counts = found;
    });
    EXPECT_TRUE(parts_.run_until([&] { return counts.has_value(); }));
    return counts.value_or(Counts{});
  }
  Counts load_for(const RuntimePtr& runtime) {
    return counts_of([&](ZoneFileLoads::Done done) {
      loads_.load(runtime, history_of(parts_), std::move(done));
      EXPECT_TRUE(loads_.under_way());
    });
  }
  Counts load_some_for(const RuntimePtr& runtime, const std::vector<dns::Name>& zones) {
    return counts_of([&](ZoneFileLoads::Done done) {
      loads_.load_some(runtime, zones, history_of(parts_), std::move(done));
    });
  }
  zone::ZoneView live(const std::string& zone) {
    version_ = parts_.committer.current();
    return version_.zone_at(name(zone));
  }

  Parts parts_;
  ChangeRoad changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                           parts_.slots, parts_.committer, {}};
  ZoneLoader loader_{parts_.io,    parts_.pool,      2,        parts_.zone.store(),
                     parts_.slots, parts_.committer, changes_, {}};
  ZoneCopies copies_{parts_.io,        parts_.pool,  native_files(),
                     parts_.committer, parts_.slots, parts_.folder.path()};
  std::vector<std::string> checked_;  // secondaries
  ZoneFileLoads loads_{loader_, copies_, parts_.committer, [this](const dns::Name& secondary) {
                         checked_.push_back(to_text(secondary));
                       }};
  zone::StoreView version_;
};

}  // namespace pando::manager::testing
