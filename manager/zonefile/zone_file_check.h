#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/settings/zone_table.h"
#include "manager/journal/journal_history.h"
#include "manager/zonefile/load_progress.h"
#include "manager/zonefile/merge_base.h"
#include "manager/zonefile/zone_file.h"
#include "manager/zonefile/zone_merge.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// A zone that is to be in line with its file.
struct LoadJob {
  dns::Name apex;
  std::string path;            ///< empty: the journal alone
  bool file_optional = false;  ///< a secondary's copy: its absence is no problem
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
};

/// What became of it.
struct LoadOutcome {
  enum class Kind : std::uint8_t {
    kLoaded,    ///< had no data before
    kReplaced,  ///< the file's data took the place of other data
    kChanged,   ///< changed by a difference
    kUnchanged,
    kAbsent,
    kFailed,
  };
  Kind kind = Kind::kFailed;
  dns::Serial serial;
  std::uint64_t records = 0;
  std::vector<std::string> problems;  ///< with kFailed: `file:line: reason`
};

/// A pool thread's look at a zone's file: whether it is the noted one, and if not, what is to be
/// put in the store. It puts nothing, and knows of others no more than it is given; who looks with
/// it, and what comes of the findings, is ZoneLoader's affair. One thread at a time touches it.
class ZoneFileCheck {
 public:
  /// The noted file under another time or stamp.
  struct Touched {
    zone::ZoneFileInfo before;
    zone::ZoneFileInfo now;
  };

  // What it starts from.
  LoadJob job;
  std::shared_ptr<HistorySource> history;
  zone::StoreView version;                 ///< it is compared with; pinned while a thread looks
  std::uint64_t position = 0;              ///< of the journal in that version
  bool may_ask_again = false;              ///< for another version, by `moved`
  std::shared_ptr<LoadProgress> progress;  ///< for examine()

  // What it found. One of: an `outcome`, when nothing is to be put; `moved`; or a `zone`, to be put
  // whole, or a `plan` to merge. A zone that is to take another's place comes with its plan.
  bool served = false;                          ///< the zone has data in that version
  std::optional<shm::Transaction> transaction;  ///< what `zone` is built in, unless others are, too
  std::optional<BuiltZone> zone;
  std::optional<MergePlan> plan;      ///< of a zone that is served
  std::vector<std::string> warnings;  ///< of its file
  std::optional<Touched> touched;     ///< to be noted
  bool in_journal = false;
  bool moved = false;  ///< the journal was compacted behind the version: look again
  std::optional<LoadOutcome> outcome;
  // Of all looks so far.
  std::uint64_t hashed = 0;   ///< how often the file was read for its hash alone
  std::uint64_t scanned = 0;  ///< how often it was scanned

  /// Finds out all. What an earlier look found is gone, but for what it counted.
  void examine(shm::Store& store);

 protected:
  /// Whether the file is the noted one: nothing is scanned, built or compared then. One above
  /// `most_bytes` is not read to find out.
  bool is_merged(std::uint64_t most_bytes = UINT64_MAX);
  [[nodiscard]] zone::ZoneView live() const { return version.zone_at(job.apex); }
  void unchanged() {
    outcome =
        LoadOutcome{LoadOutcome::Kind::kUnchanged, live().serial(), live().record_count(), {}};
  }

 private:
  void forget_findings();
  void load_new(shm::Store& store, bool has_file);
  void load_old(shm::Store& store, const ZoneHistory& before, std::vector<std::string> problems);
  Result<BuiltZone, ZoneProblems> build_alone(shm::Store& store, const std::string& path,
                                              const ZoneHistory* before);
  void compare(shm::Store& store);
  bool plan_difference(ComparedFile& file);
  void compare_built(shm::Store& store);
  void make_plan(const FileZone& fresh, const zone::ZoneFileInfo& source);
  [[nodiscard]] bool is_noted_unhashed(const zone::ZoneFileInfo& source) const;
  Result<MergeBase> file_state();
  void fail_with(std::vector<std::string> lines) {
    outcome = LoadOutcome{LoadOutcome::Kind::kFailed, {}, 0, std::move(lines)};
  }

  zone::ZoneFileInfo read_before_;  // the file as it was when it was read for its hash last
};

}  // namespace pando::manager
