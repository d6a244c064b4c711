#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "config/settings/zone_table.h"
#include "manager/change/change_judgement.h"
#include "manager/journal/journal_history.h"
#include "manager/merge/merge_base.h"
#include "manager/merge/zone_merge.h"
#include "manager/support/load_progress.h"
#include "manager/zonefile/zone_file.h"
#include "shm/store.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Request to bring a zone in line with its file.
struct LoadJob {
  dns::Name apex;
  std::string path;            ///< empty: the journal alone
  bool file_optional = false;  ///< a secondary's copy: its absence is no problem
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
  config::SignaturePolicy verify = config::SignaturePolicy::kOff;
  ZoneVerifierPtr verifier{};  ///< null: the zone has no program that verifies it
  bool is_signed_here = false;
};

/// Result of a LoadJob.
struct LoadOutcome {
  enum class Kind : std::uint8_t {
    kLoaded,    ///< the zone had no data before
    kReplaced,  ///< the file's data took the place of other data
    kChanged,   ///< changed by a changeset
    kUnchanged,
    kAbsent,
    kFailed,
    kJudging,     ///< the program verifies this file already, for an earlier job
    kSuperseded,  ///< a later job has taken the place of this one
  };
  Kind kind = Kind::kFailed;
  dns::Serial serial;
  std::uint64_t records = 0;
  std::vector<std::string> problems;  ///< with kFailed: `file:line: reason`
  /// With kFailed: the zone may have updates in a part of the journal that cannot be read for now.
  bool waits_for_journal = false;

  /// An outcome with the serial and the size of the zone that is served now.
  [[nodiscard]] static LoadOutcome of(Kind kind, const zone::ZoneView& zone) {
    return {kind, zone.serial(), zone.record_count(), {}};
  }
  /// False: another job has the zone's outcome.
  [[nodiscard]] bool is_final() const noexcept {
    return kind != Kind::kJudging && kind != Kind::kSuperseded;
  }
};

/// The file that a program verifies: as the content check has found it, and then as it was built.
/// Written by the thread that builds the zone, and read by others.
class JudgedFile {
 public:
  void set(const zone::ZoneFileInfo& source) {
    const std::lock_guard lock(mutex_);
    source_ = source;
  }
  /// Nullopt: its content is not known.
  [[nodiscard]] std::optional<zone::ZoneFileInfo> source() const {
    const std::lock_guard lock(mutex_);
    return source_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<zone::ZoneFileInfo> source_;
};

/// Checks a zone's file in a loader thread: compares the file with the merge base and prepares the
/// data to put into the store. The check itself puts nothing; ZoneLoader batches checks and hands
/// the findings to the road of changes, where they are judged. One thread at a time uses a check.
class ZoneFileCheck {
 public:
  /// The merge base with another time or stamp.
  struct Touched {
    zone::ZoneFileInfo before;
    zone::ZoneFileInfo now;
  };

  /// The state of a file that a program of the operator verifies.
  struct Judging {
    std::shared_ptr<JudgedFile> file;  ///< null: nothing to verify, as far as is known
    /// For check_content(): the file of an earlier check that is being verified; null: none.
    std::shared_ptr<const JudgedFile> before;
    bool before_waits = false;   ///< that check is yet to read the file
    std::uint64_t accepted = 0;  ///< hash of the file that the program has accepted; 0: none
    std::uint64_t shown = 0;     ///< hash of the file of this check that the program is given
    /// Hash of the file that check_content() handed over to the check of `before`; 0: unknown.
    std::uint64_t handed_hash = 0;
    /// The merge base to which check_content() found the file equal.
    std::optional<zone::ZoneFileInfo> base;
  };

  /// The zone as the journal has it, which is served in place of an unusable file's.
  struct Older {
    bool is_known = false;  ///< the zone has no data, and the journal has all of it
    bool is_taken = false;  ///< it is the check's `zone`
    /// Lines about the file that its judges have refused, for the next run(); empty: they have not.
    std::vector<std::string> refusal;
  };

  // Input.
  LoadJob job;
  std::shared_ptr<HistorySource> history;
  zone::StoreView version;     ///< compared with the file; pinned during the check
  std::uint64_t position = 0;  ///< journal position of `version`
  bool may_ask_again = false;  ///< the check may ask for a newer version by setting `check_again`
  std::shared_ptr<LoadProgress> progress;  ///< for run()
  Judging judging;                         ///< with a program

  // Findings, exactly one of: `outcome` (nothing to put), `check_again`, `zone` (to put whole), or
  // `plan` (for served data). A `zone` beside a `plan` was built to be compared with the served
  // one. It replaces that one if the plan says so. Else the edit is merged, and `zone` is for its
  // judges, if it has any.
  bool served = false;                          ///< the zone has data in that version
  std::optional<shm::Transaction> transaction;  ///< holds `zone`, unless a batch shares its own
  std::optional<ZoneFromFile> zone;
  std::optional<MergePlan> plan;      ///< for a served zone
  std::vector<std::string> warnings;  ///< about the file
  std::optional<Touched> touched;     ///< to record as the merge base
  bool in_journal = false;
  Older older;
  bool check_again = false;  ///< with a newer version, as the journal was compacted past this one
  std::optional<LoadOutcome> outcome;
  // Sums over all checks of this task.
  std::uint64_t hashed = 0;   ///< number of times the file was read for the hash alone
  std::uint64_t scanned = 0;  ///< number of times the file was scanned

  /// Runs the whole check. Findings of an earlier check are reset, except the counters.
  void run(shm::Store& store);
  /// Result of check_simple().
  enum class Simple : std::uint8_t {
    kFound,   ///< `outcome` or `zone` is set
    kNot,     ///< the zone needs run()
    kFailed,  ///< the file is unusable, and so is the transaction; run() finds the reason
  };
  /// Checks for the two cheap cases, without run(): a zone without change, or a small new zone,
  /// which is built in the transaction of the whole batch.
  Simple check_simple(shm::Transaction& batch);
  /// In place of check_simple() for a zone with a program: finds out by the content whether the
  /// program has to verify the file. kNot: it has to, and `judging.file` is set; or the file is
  /// large, and only read with `is_alone`.
  Simple check_content(bool is_alone);
  /// The judges of the findings. A file that its program has accepted needs none, because a zone
  /// that changes again and again would have it verified for ever.
  [[nodiscard]] Judges judges() const;
  /// Takes over the verdicts on `zone`: an `outcome` if it is refused, or `check_again` if the
  /// journal has an older zone.
  void take(const Judgement& judgement);
  /// Forgets the findings, except the sums.
  void reset_findings();
  /// The outcome if the zone `now` changed its role or got data during the check. Nullopt: the
  /// findings are still of use.
  [[nodiscard]] std::optional<LoadOutcome> stale_outcome(const zone::ZoneView& now) const;

 private:
  /// True if the file is the merge base, so that no scan, build or comparison is needed. A file
  /// above `most_bytes` is not read to find out.
  bool is_merged(std::uint64_t most_bytes = UINT64_MAX);
  bool is_merged(const FileCheck& check);
  Simple found_unchanged();
  Simple judged_already();
  Simple needs_program(const zone::ZoneFileInfo& now);
  [[nodiscard]] bool is_judged_already(const zone::ZoneFileInfo& now);
  [[nodiscard]] zone::ZoneView live() const { return version.zone_at(job.apex); }
  void unchanged() { outcome = LoadOutcome::of(LoadOutcome::Kind::kUnchanged, live()); }
  [[nodiscard]] bool opens_small_new_file(dns::FileSource& file) const;
  void wait_for_journal(const std::string& why);
  void load_new(shm::Store& store, bool has_file);
  void load_old(shm::Store& store, const ZoneHistory& before, std::vector<std::string> problems);
  Result<ZoneFromFile, ZoneProblems> build_alone(shm::Store& store, const std::string& path,
                                                 const ZoneHistory* before);
  [[nodiscard]] bool refuses_faults() const noexcept;
  [[nodiscard]] bool is_judged() const noexcept { return refuses_faults() || job.verifier; }
  void note_judged_file();
  [[nodiscard]] std::vector<std::string> refusal_lines(const Judgement& judgement) const;
  [[nodiscard]] std::string about_source(std::string_view text) const;
  void compare(shm::Store& store);
  bool plan_changeset(ComparedFile& file);
  void compare_built(shm::Store& store);
  void make_plan(const FileZone& fresh, const zone::ZoneFileInfo& source);
  Result<MergeBase> merge_base();
  void fail_with(std::vector<std::string> lines) {
    outcome = LoadOutcome{LoadOutcome::Kind::kFailed, {}, 0, std::move(lines)};
  }

  zone::ZoneFileInfo read_before_;  // the file's state when it was last read for its hash
};

}  // namespace pando::manager
