#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "manager/change/zone_change.h"
#include "manager/zonefile/zone_file_check.h"

namespace pando::manager {

/// Puts the zone of a checked file whole: into a zone without data, or in place of the data that
/// the file was compared with. The road of changes calls the steps in order: check(), then
/// add_journal_records(), both with the zone as it is by then. Lives on the commit thread.
class ZoneReplacement {
 public:
  /// What follows a replacement.
  enum class Next : std::uint8_t {
    kServe,       ///< the zone is served
    kCheckAgain,  ///< the zone changed since the check
    /// The journal took no records: put the zone without them, since a zone that could be read is
    /// served even so.
    kPutWithoutJournal,
    kFail,
  };

  /// `file` has findings with a zone. `journal_pending`: the journal has failed before, so the
  /// zone's records from recovery stay out of this version.
  ZoneReplacement(std::shared_ptr<ZoneFileCheck> file, bool journal_pending);

  /// The change, without `done`; its functions share ownership of `replacement`.
  static ZoneChange change(const std::shared_ptr<ZoneReplacement>& replacement);
  /// kExists: the zone changed since the check of its file.
  Status check(const zone::ZoneView& before);
  void add_journal_records(std::vector<JournalEntry>& journal, const zone::ZoneView& after);
  [[nodiscard]] Next after(const Status& committed) const noexcept;

 private:
  [[nodiscard]] bool has_changed(const zone::ZoneView& zone) const;

  std::shared_ptr<ZoneFileCheck> file_;
  std::optional<dns::Serial> compared_;  // nullopt: the zone had no data
  zone::ZoneFileInfo base_file_;         // at the time of the check
  bool journal_pending_;
  bool has_changed_ = false;
};

}  // namespace pando::manager
