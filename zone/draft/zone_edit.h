#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "zone/draft/applied.h"
#include "zone/draft/data_limits.h"
#include "zone/draft/draft_core.h"
#include "zone/record/record_codec.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

/// Applies one Changeset to one zone in two phases: compute and check every changed name without
/// any write, then write. So a changeset that breaks a rule leaves no trace. Drafts are kept for
/// the first names only. For a later name only its steps are kept, and the name is computed again
/// when written. Reason: drafts of all names would dominate the memory.
class ZoneEdit {
 public:
  /// `stop` (may be null): see Draft::give_up_when().
  ZoneEdit(DraftCore& core, const Changeset& changes, const DataLimits& limits,
           const std::atomic<bool>* stop);
  Result<Applied> run();

 private:
  /// One record of the changeset, with its place in the zone.
  struct Step {
    const Record* record;
    bool add;
    bool in_nsec3;
  };
  /// A name that changes: its steps [first, end), and its record so far, 0 = none.
  struct ChangedName {
    std::uint32_t first = 0;
    std::uint32_t end = 0;
    std::uint32_t old_ref = 0;
  };
  /// A name before and after.
  struct NameEdit {
    bool in_nsec3 = false;
    ByteView labels;
    std::uint32_t old_ref = 0;
    NameDraft before;
    NameDraft after;
  };

  /// Number of rule-breaking names that the error lists.
  static constexpr std::uint64_t kBrokenNamed = 10;
  /// Number of names whose result is cached: enough for a typical update.
  static constexpr std::size_t kMaxDrafts = 64;

  Status collect_steps();
  [[nodiscard]] std::size_t end_of_name(std::size_t first) const noexcept;
  Status work_out_names();
  [[nodiscard]] Status check_size() const;
  Status write_names();
  Status put_entry();
  [[nodiscard]] bool is_given_up() const noexcept;
  void add_broken(const Error& error);
  [[nodiscard]] std::uint32_t find(const Step& step) const;
  Result<NameEdit> put_together(const ChangedName& name);
  Status work_out(std::size_t first, std::size_t end);
  void change_record(NameEdit& edit, const Step& step);
  void add_effect(const NameEdit& edit);
  Status write(std::size_t at);
  Status write(const NameEdit& edit);
  Status write_leaf(const NameEdit& edit, std::uint32_t ref);

  DraftCore& core_;
  const Changeset& changes_;
  const DataLimits& limits_;
  const std::atomic<bool>* stop_;
  ZoneEntry entry_{};
  ZoneView zone_;
  std::vector<Step> steps_;
  std::vector<ChangedName> names_;
  std::vector<NameEdit> drafts_;  // of the first names
  Applied applied_;
  std::string broken_;
  std::uint64_t broken_names_ = 0;
};

}  // namespace pando::zone
