#pragma once

#include <vector>

#include "zone/build/draft.h"
#include "zone/record/record_codec.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

/// Applies one Changeset to one zone in two phases: work out and check every changed name without
/// touching anything, then write. So a difference that breaks a rule leaves no trace. Behind the
/// first names only the steps of one that was worked out are kept, and it is worked out again when
/// it is written: drafts of all would take more memory than all else.
class ZoneEdit {
 public:
  ZoneEdit(Draft& draft, const Changeset& changes, const DataLimits& limits);
  Result<Applied> run();

 private:
  /// One record of the changes, with the place it has in the zone.
  struct Step {
    const Record* record;
    bool add;
    bool in_nsec3;
  };
  /// A name that changes: [first, end) of the steps, and its record so far, 0 = none.
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

  /// So many names that break a rule are named in the error.
  static constexpr std::uint64_t kBrokenNamed = 10;
  /// So many names are not worked out twice: what one update changes.
  static constexpr std::size_t kMostDrafts = 64;

  Status collect_steps();
  [[nodiscard]] bool is_given_up() const noexcept;
  void note_broken(const Error& error);
  [[nodiscard]] std::uint32_t find(const Step& step) const;
  Result<NameEdit> put_together(const ChangedName& name);
  Status work_out(std::size_t first, std::size_t end);
  void change_record(NameEdit& edit, const Step& step);
  void note_effect(const NameEdit& edit);
  Status write(std::size_t at);
  Status write(const NameEdit& edit);
  Status write_leaf(const NameEdit& edit, std::uint32_t ref);

  Draft& draft_;
  const Changeset& changes_;
  const DataLimits& limits_;
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
