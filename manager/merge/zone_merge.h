#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "config/settings/zone_table.h"
#include "manager/change/zone_change.h"
#include "manager/journal/record/journal_payload.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// Plan for merging an edited file with a served zone. A loader thread computes the plan against
/// one version; compute_merge() makes the change of it, to the zone as it is by then (see
/// file_merge.h).
struct MergePlan {
  enum class Kind : std::uint8_t {
    kReplace,  ///< put the file's zone whole: no dynamic changes, and most is new or signed again
    kMerge,
  };
  Kind kind = Kind::kMerge;
  dns::Name zone;
  RecordChanges edit;  ///< changes of the file since the merge base
  /// Without dynamic changes, the changeset from the zone to the file is the edit (except the SOA)
  /// until the zone changes. A large changeset is kept in this form, since RecordChanges would
  /// double the memory.
  std::optional<zone::Changeset> plain;
  bool plain_has_soa = false;  ///< the SOA pair of a try ends both lists of `plain`
  dns::Serial file_serial;
  dns::Serial compared;      ///< serial of the compared version
  bool equals_zone = false;  ///< the file equals the compared version
  /// The file's SOA is signed: any other serial would break the signature.
  bool signed_soa = false;
  bool dynamic_changes_known = true;
  bool record_file_serial = false;  ///< the journal has another file serial
  bool in_journal = false;          ///< the journal has records of the zone
  /// Set for a zone that came from transfers so far: whether its file is the merge base
  /// (MergeBase::become_primary).
  std::optional<bool> with_base_file;
  zone::ZoneFileInfo source;
  zone::ZoneFileInfo base_file;  ///< at the time of the comparison
  /// Policy for the next serial if the file's serial is not ahead.
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
  std::uint64_t now = 0;  ///< seconds since 1970

  /// Approximate size of the edit.
  [[nodiscard]] std::size_t record_count() const noexcept {
    const std::size_t soa = plain_has_soa ? 2 : 0;
    return edit.size() + (plain ? plain->removed.size() + plain->added.size() - soa : 0);
  }
};

/// A zone file, as compared with the served zone.
struct FileZone {
  zone::Record soa;
  bool signed_soa = false;
  /// Computes the changeset, as zone::Comparison::changeset() does; called once.
  using Most = std::function<std::uint64_t(std::uint64_t records)>;
  std::function<Result<std::optional<zone::Changeset>>(const Most& most)> changeset;
};

/// FileZone of a file whose zone was built. Both views outlive the result. kCorrupt: no SOA.
Result<FileZone> file_zone(const zone::ZoneView& live, const zone::ZoneView& fresh);

/// Plans the merge of the file `fresh`, in the state `source`, with a served zone. `state` is the
/// zone's merge base in the journal up to this version. The error kNotFound means that the edit
/// cannot be separated from updates; its text is for the operator. Errors of FileZone::changeset
/// are passed on.
Result<MergePlan> plan_merge(const zone::ZoneView& live, const FileZone& fresh,
                             const zone::ZoneFileInfo& source, MergeBase state);

/// Warning for the operator about records that are not served as the file has them; empty if
/// `overridden` is empty.
std::string overridden_text(const RecordChanges& overridden);

/// Computes the change that brings the plan's edit into the zone as it is in `version`, with its
/// journal records and the file as the new merge base. `plan` outlives the result, and may be used
/// again; its serial and SOA belong to the last call. kExists: the zone changed, so a new plan is
/// needed. kInvalid: a new serial is needed, but the file's SOA is signed. `overridden` (shared with
/// the result) gets the changes of the file that updates overrode when the change is applied.
Result<ComputedChange> compute_merge(const zone::StoreView& version, MergePlan& plan,
                                     const std::shared_ptr<RecordChanges>& overridden);

}  // namespace pando::manager
