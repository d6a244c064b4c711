#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/zonefile/load_problems.h"
#include "manager/zonefile/zone_copies.h"
#include "manager/zonefile/zone_loader.h"

namespace pando::manager {

/// Has the files of all zones of a configuration looked at, and knows what came of that: which
/// zones have data, which files could not be loaded and why, whether each zone has been looked at
/// once. How a single zone is loaded is ZoneLoader's affair.
///
/// Lives on the commit thread.
class ZoneFileLoads {
 public:
  /// What became of the files of one configuration.
  struct Counts {
    std::uint64_t changed = 0;  ///< zones that have other data than before, or data at last
    std::uint64_t failed = 0;
    std::vector<std::string> problems;  ///< "zone: reason" of the first kMostProblems of these
    bool is_first = false;              ///< no configuration was loaded before
  };
  static constexpr std::size_t kMostProblems = 20;
  using Done = std::function<void(const Counts&)>;
  using CopyLookedAt = std::function<void(const dns::Name& secondary)>;

  /// References outlive the object, which the loader calls for as long as the event loop runs.
  /// `copy_looked_at`: what a secondary's copy and the journal have of it is in the store now.
  ZoneFileLoads(ZoneLoader& loader, ZoneCopies& copies, const Committer& committer,
                CopyLookedAt copy_looked_at);
  ZoneFileLoads(const ZoneFileLoads&) = delete;
  ZoneFileLoads& operator=(const ZoneFileLoads&) = delete;

  /// The zones of the store were counted, as its list of zones may be another one than before:
  /// `count` of them have data.
  void recounted(std::uint64_t count) noexcept { loaded_ = count; }
  /// Brings all zones of `runtime` in line with their files; `done` after the last one, and after
  /// those of loads that began before. `history`: see ZoneLoader::run().
  void load(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history, Done done);
  /// The secondaries' copies alone, once more. Nobody is told of the end.
  void load_copies(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history);
  /// A primary has sent all of `zone`, so what became of its file does not matter any more.
  void transferred(const dns::Name& zone, bool had_data);

  /// Until release_copies() no copy is written because a file was looked at: what is in the store
  /// is not known to be whole yet.
  void hold_copies() noexcept { holds_copies_ = true; }
  void release_copies();

  /// Each zone of a configuration has been looked at.
  [[nodiscard]] bool settled() const noexcept { return settled_; }
  /// Some zone has not been looked at yet, or is being looked at again.
  [[nodiscard]] bool under_way() const noexcept { return !settled_ || !loader_.idle(); }
  /// Zones that have data.
  [[nodiscard]] std::uint64_t loaded() const noexcept { return loaded_; }
  /// Whether the zone's file could not be loaded. The zone may have data all the same.
  [[nodiscard]] bool has_problem(const zone::ZoneView& zone) const {
    return problems_.has(zone.apex(), zone.side_index());
  }
  /// Why: one line, for people; empty: it could.
  [[nodiscard]] std::string problem(const zone::ZoneView& zone) const {
    return problems_.text(zone.apex(), zone.side_index());
  }

 private:
  using Job = ZoneLoader::Job;
  using Outcome = ZoneLoader::Outcome;
  struct Load;
  using LoadPtr = std::shared_ptr<Load>;

  void run_copies(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history,
                  const LoadPtr& load, std::function<void()> ended);
  void run_files(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history,
                 const LoadPtr& load, std::function<void()> ended);
  void end(Load& load);
  void looked_at(Load& load, const Job& job, const Outcome& outcome);
  void zone_loaded(const Job& job, const Outcome& outcome);
  void forget_problem(const dns::Name& name);
  void copy_again(const Job& secondary);

  ZoneLoader& loader_;
  ZoneCopies& copies_;
  const Committer& committer_;
  CopyLookedAt copy_looked_at_;
  LoadProblems problems_;
  std::uint64_t loaded_ = 0;
  bool settled_ = false;
  bool holds_copies_ = false;
  std::vector<Job> held_copies_;
};

}  // namespace pando::manager
