#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "manager/commit/committer.h"
#include "manager/commit/runtime.h"
#include "manager/zonefile/load_problems.h"
#include "manager/zonefile/zone_copies.h"
#include "manager/zonefile/zone_loader.h"

namespace pando::manager {

/// Has the files of all configured zones checked, and stores the results: which zones have data,
/// which files failed and why, and whether every zone was checked once. ZoneLoader loads the single
/// zones.
///
/// Lives on the commit thread.
class ZoneFileLoads {
 public:
  /// Zones whose files failed, with the reasons.
  using Failures = std::vector<std::pair<dns::Name, std::string>>;
  /// Results for the files of one configuration.
  struct Counts {
    std::uint64_t changed = 0;  ///< zones with new or first data
    std::uint64_t failed = 0;
    std::vector<std::string> problems;     ///< for the first kMaxProblems failures
    Failures failures;                     ///< all of them; of load_some() alone
    std::vector<dns::Name> changed_zones;  ///< of load_some() alone
    std::uint64_t being_judged = 0;        ///< zones whose programs have no verdict yet
    std::vector<dns::Name> judged_zones;   ///< of load_some() alone
    bool is_first = false;                 ///< this was the first configuration
  };
  static constexpr std::size_t kMaxProblems = 20;
  /// Time for the verdicts of programs once all else is done. Most need less, and a program that
  /// hangs must delay its own zone alone.
  static constexpr std::chrono::seconds kVerdictTime{5};
  using Done = std::function<void(const Counts&)>;
  /// Zones by the index of their side table entries; null: none.
  using ZoneBits = std::shared_ptr<const std::vector<bool>>;
  using CopyChecked = std::function<void(const dns::Name& secondary)>;

  /// References outlive the object, which the loader calls for as long as the event loop runs.
  /// `copy_checked` is called when the data of a secondary's copy and journal is in the store.
  ZoneFileLoads(ZoneLoader& loader, ZoneCopies& copies, const Committer& committer,
                CopyChecked copy_checked);
  ZoneFileLoads(const ZoneFileLoads&) = delete;
  ZoneFileLoads& operator=(const ZoneFileLoads&) = delete;

  /// `served` is called for each zone that has data after its file was checked.
  void on_served(std::function<void(const dns::Name& zone)> served) {
    on_served_ = std::move(served);
  }
  /// `verifier_of` gives the program that judges a zone's file.
  using VerifierOf = std::function<ZoneVerifierPtr(const config::ZoneOptions& options)>;
  void judge_by(VerifierOf verifier_of) { verifier_of_ = std::move(verifier_of); }
  /// Instead of kVerdictTime.
  void set_verdict_time(std::chrono::milliseconds time) noexcept { verdict_time_ = time; }
  /// Sets the number of zones with data after a recount: the store's list of zones may have been
  /// replaced.
  void recounted(std::uint64_t count) noexcept { loaded_ = count; }
  /// Brings all zones of `runtime` in line with their files. `done` is called after the last zone,
  /// and after the ends of loads that began earlier. Zones whose programs have no verdict then are
  /// served when they have it, unless a later load finds another file or program. `history`: see
  /// LoadRequest. `counted`: zones that the caller has counted, and which Counts::changed leaves
  /// out.
  void load(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history, Done done,
            ZoneBits counted = nullptr);
  /// The same for some zones of `runtime`, and for zones that it lacks by now. Programs that judge
  /// any of them begin anew.
  void load_some(const RuntimePtr& runtime, const std::vector<dns::Name>& zones,
                 const std::shared_ptr<HistorySource>& history, Done done);
  /// Loads only the secondaries' copies once more; the end is not reported.
  void load_copies(const RuntimePtr& runtime, const std::shared_ptr<HistorySource>& history);
  /// Checks the zones that wait for the journal once more, each 10 seconds; to be called regularly.
  void retry_waiting(std::chrono::steady_clock::time_point now,
                     const std::function<std::shared_ptr<HistorySource>()>& make_history);
  /// Why zones wait for the journal, in one line for the operator; empty: none waits.
  [[nodiscard]] std::string waiting() const;
  /// A whole transfer has replaced `zone`, so the problem of its file is dropped.
  void transferred(const dns::Name& zone, bool had_data);

  /// Defers copies that a file check asks for until release_copies(), because the store's data may
  /// still be incomplete.
  void hold_copies() noexcept { holds_copies_ = true; }
  void release_copies();

  /// True once every zone of a configuration was checked, except files under verification.
  [[nodiscard]] bool settled() const noexcept { return settled_; }
  /// True while a zone is unchecked or is being checked again.
  [[nodiscard]] bool under_way() const noexcept {
    return !settled_ || !loader_.idle() || loader_.judges_first_data();
  }
  /// Number of zones with data.
  [[nodiscard]] std::uint64_t loaded() const noexcept { return loaded_; }
  /// True if the zone's file could not be loaded. The zone may still have older data.
  [[nodiscard]] bool has_problem(const zone::ZoneView& zone) const {
    return problems_.has(zone.apex(), zone.side_index());
  }
  /// The same of a zone by its name.
  [[nodiscard]] bool has_problem_of(const dns::Name& zone) const {
    const zone::ZoneView view = committer_.current().zone_at(zone);
    return view && has_problem(view);
  }
  /// The reason in one line for the operator; empty if the file was loaded.
  [[nodiscard]] std::string problem(const zone::ZoneView& zone) const {
    return problems_.text(zone.apex(), zone.side_index());
  }

 private:
  struct Load;
  using LoadPtr = std::shared_ptr<Load>;
  /// Supplies indexes of zones in the configuration's table, nullopt at the end.
  using NextZone = std::function<std::optional<std::size_t>()>;

  void run_copies(const RuntimePtr& runtime, NextZone next,
                  const std::shared_ptr<HistorySource>& history, const LoadPtr& load,
                  std::function<void()> on_end);
  void run_files(const RuntimePtr& runtime, NextZone next,
                 const std::shared_ptr<HistorySource>& history, const LoadPtr& load,
                 std::function<void()> on_end);
  [[nodiscard]] LoadJob file_job(const RuntimePtr& runtime, std::size_t index) const;
  [[nodiscard]] bool is_wanted(const LoadJob& job) const;
  void end_unless_judging(const LoadPtr& load);
  void set_ready(Load& load);
  void end(Load& load);
  void set_waiting(const LoadJob& job, const LoadOutcome& outcome);
  [[nodiscard]] bool is_counted(const Load& load, const dns::Name& zone) const;
  void count(Load& load, const LoadJob& job, const LoadOutcome& outcome);
  void zone_loaded(const LoadJob& job, const LoadOutcome& outcome);
  void forget_problem(const dns::Name& name);
  void copy_again(const LoadJob& secondary);

  ZoneLoader& loader_;
  ZoneCopies& copies_;
  const Committer& committer_;
  CopyChecked copy_checked_;
  std::function<void(const dns::Name& zone)> on_served_;
  VerifierOf verifier_of_;
  RuntimePtr newest_;  // that files were loaded for
  LoadProblems problems_;
  std::deque<LoadPtr> loads_;               // whose ends are to be reported, in order
  std::map<std::string, LoadJob> waiting_;  // for the journal; by folded name
  std::string waiting_why_;                 // of the last one
  std::chrono::steady_clock::time_point next_retry_{};
  std::uint64_t loaded_ = 0;
  std::chrono::milliseconds verdict_time_ = kVerdictTime;
  bool settled_ = false;
  bool holds_copies_ = false;
  std::vector<LoadJob> held_copies_;
};

}  // namespace pando::manager
