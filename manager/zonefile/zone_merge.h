#pragma once

#include <functional>
#include <optional>
#include <string>

#include "config/settings/zone_table.h"
#include "manager/commit/committer.h"
#include "manager/journal/journal_payload.h"
#include "zone/read/store_view.h"

namespace pando::manager {

/// What an edited file does to a zone that is being served: worked out in a pool thread against one
/// version, staged against whatever the zone has become by then (see file_merge.h).
struct MergePlan {
  enum class Kind : std::uint8_t {
    kReplace,  ///< nothing came by update, and most is new or signed again: put the file's zone
               ///< whole
    kMerge,
  };
  Kind kind = Kind::kMerge;
  dns::Name zone;
  Steps edit;  ///< how the file changed since it was last merged
  /// Nothing came by update: as long as the zone does not move its difference from the file is the
  /// edit, but for the SOA. It is kept as it is, since steps of a large one take as much again.
  std::optional<zone::Changeset> plain;
  dns::Serial file_serial;
  dns::Serial compared;  ///< the version's serial that the file was compared with
  bool settles = false;  ///< the file holds exactly that version
  /// The file's SOA is signed: a serial that is not the file's would break its signature.
  bool signed_soa = false;
  bool overlay_known = true;
  bool note_file_serial = false;  ///< the journal has another one
  bool in_journal = false;        ///< the zone has records there
  /// The zone was fed by transfers: whether its file is the noted one (MergeBase::become_primary).
  std::optional<bool> with_noted_file;
  zone::ZoneFileInfo source;
  zone::ZoneFileInfo beside;  ///< the file that was noted when they were compared
  /// The next serial where the file's is not ahead.
  config::SerialPolicy serial_policy = config::SerialPolicy::kIncrement;
  std::uint64_t now = 0;  ///< seconds since 1970

  /// Of the edit, about.
  [[nodiscard]] std::size_t record_count() const noexcept {
    return edit.size() + (plain ? plain->removed.size() + plain->added.size() : 0);
  }
};

/// What a file has beside the zone that is served.
struct FileZone {
  zone::Record soa;
  bool signed_soa = false;
  /// As zone::Comparison::difference(): asked once.
  using Most = std::function<std::uint64_t(std::uint64_t records)>;
  std::function<Result<std::optional<zone::Changeset>>(const Most& most)> difference;
};

/// The same of a file's zone that was built. Both views outlive what is returned. kCorrupt.
Result<FileZone> file_zone(const zone::ZoneView& live, const zone::ZoneView& fresh);

/// Compares a served zone with its file (`fresh`, in the state `source`), given what the journal
/// says of the zone up to this version. kNotFound: the edit cannot be told from updates, in one
/// line for the operator; or an error of the difference.
Result<MergePlan> plan_merge(const zone::ZoneView& live, const FileZone& fresh,
                             const zone::ZoneFileInfo& source, MergeBase state);

/// What became of a plan.
struct MergedFile {
  zone::Applied applied;
  /// What the file changed and the zone has otherwise, since updates came for it: they win.
  Steps apart;
};

/// Brings the plan into the next version: the difference with its journal record, and the note that
/// the file is merged. kExists: the zone moved, plan again. May be called again with the same plan.
Result<MergedFile> stage_merge(Stage& stage, MergePlan& plan, const zone::DataLimits& limits);

}  // namespace pando::manager
