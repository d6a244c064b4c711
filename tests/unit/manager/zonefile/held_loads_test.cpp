// Changes of zones, and the end of their loader, while threads of the pool check files.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "tests/unit/manager/zonefile/loader_fixture.h"

namespace pando::manager {
namespace held_loads_test {

using testing::kFile;
using testing::Loader;
using testing::name;
using Jobs = std::deque<LoadJob>;

class HeldLoads : public Loader {
 protected:
  ~HeldLoads() override { let_go(); }

  /// From now on no thread of the pool does anything.
  void hold() {
    for (int thread = 0; thread < 2; ++thread)
      asio::post(parts_.pool, [open = open_] { open.wait(); });
  }
  void let_go() {
    if (!std::exchange(let_go_, true)) gate_.set_value();
  }
  /// Comes back when the first of the jobs is under way, and nothing was made of it. What becomes
  /// of it goes into the returned place.
  std::shared_ptr<std::optional<LoadOutcome>> begin(ZoneLoader& loader, Jobs jobs) {
    auto outcome = std::make_shared<std::optional<LoadOutcome>>();
    loader.load({LoadKind::kFiles, source(std::move(jobs)), history_,
                 [outcome](const LoadJob&, const LoadOutcome& found) { *outcome = found; }});
    EXPECT_TRUE(parts_.run_until([&] { return loader.progress(name("@")) != nullptr; }));
    return outcome;
  }
  static std::function<std::optional<LoadJob>()> source(Jobs jobs) {
    return [jobs = std::move(jobs)]() mutable -> std::optional<LoadJob> {
      if (jobs.empty()) return std::nullopt;
      LoadJob job = std::move(jobs.front());
      jobs.pop_front();
      return job;
    };
  }
  /// A reload makes the zone a secondary while its file, which has this text, is checked.
  void expect_no_edit_by(const std::string& text) {
    write(kFile);
    ASSERT_EQ(load().kind, Kind::kLoaded);
    const std::vector<std::string> before = parts_.zone.lines();
    write(text);
    hold();
    const auto outcome = begin(loader_, {{name("@"), path_}});
    zone::ZoneSettings secondary;
    secondary.is_secondary = true;
    ASSERT_TRUE(parts_.edit(
        [&](zone::Draft& draft) { return draft.put_zone_settings(name("@"), secondary, 0); }));
    const std::uint64_t position = parts_.journal.last_position();
    let_go();
    ASSERT_TRUE(parts_.run_until([&] { return outcome->has_value(); }));
    EXPECT_EQ((*outcome)->kind, Kind::kUnchanged);
    EXPECT_EQ(parts_.zone.lines(), before);
    EXPECT_EQ(parts_.journal.last_position(), position);
  }
  std::unique_ptr<ZoneLoader> another_loader() {
    return std::make_unique<ZoneLoader>(parts_.io, parts_.pool, 1, parts_.zone.store(),
                                        parts_.slots, parts_.committer, changes_,
                                        zone::DataLimits{});
  }
  /// Ends a loader as the manager does. Nothing may be left of its jobs, which have the history.
  void expect_end_of(std::unique_ptr<ZoneLoader> loader) {
    loader->stop();
    let_go();
    loader->join();
    parts_.pool.join();
    parts_.io.restart();
    parts_.io.poll();
    loader.reset();
    EXPECT_EQ(history_.use_count(), 1);
    EXPECT_FALSE(parts_.zone.zone().loaded());
  }

  std::shared_ptr<HistorySource> history_ = testing::history_of(parts_);

 private:
  std::promise<void> gate_;
  std::shared_future<void> open_ = gate_.get_future().share();
  bool let_go_ = false;
};

TEST_F(HeldLoads, AnEditOfAZoneThatWasMadeASecondaryIsNotMerged) {
  expect_no_edit_by(std::string(kFile) + "added A 192.0.2.12\n");
}

TEST_F(HeldLoads, AFileDoesNotReplaceAZoneThatWasMadeASecondary) {
  std::string text = with_serial(77);
  for (int i = 0; i < 1000; ++i) text += fmt::format("n{} A 192.0.2.{}\n", i, i % 250);
  expect_no_edit_by(text);
}

TEST_F(HeldLoads, ALoaderThatGoesLeavesNoneThatWaitForAnotherLoadOfTheirZone) {
  write(kFile);
  auto loader = another_loader();
  hold();
  begin(*loader, {{name("@"), path_}});
  bool is_drained = false;
  loader->load({LoadKind::kCopies,
                [&, next = source({{name("@"), path_}})] {
                  auto job = next();
                  is_drained = !job;
                  return job;
                },
                history_});
  ASSERT_TRUE(parts_.run_until([&] { return is_drained; }));
  expect_end_of(std::move(loader));
}

TEST_F(HeldLoads, ALoaderThatGoesLeavesNoneThatAreToBeCheckedAlone) {
  write(kFile);
  auto loader = another_loader();
  begin(*loader, {{name("@"), path_, true}, {name("other."), path_, true}});
  expect_end_of(std::move(loader));
}

}  // namespace held_loads_test
}  // namespace pando::manager
