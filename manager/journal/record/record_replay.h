#pragma once

#include <cstdint>
#include <optional>

#include "manager/journal/record/journal_format.h"

namespace pando::manager {

/// What a record of the journal does to its zone.
enum class ReplayStep : std::uint8_t {
  kNothing,         ///< the record says nothing about the zone's data, or the zone has none
  kConfirm,         ///< the data are those of the record, which says all of the zone
  kApply,           ///< the record's changeset follows the data
  kApplyBehindGap,  ///< the same from a later serial: the records between are lost
  kSkip,            ///< the record's changeset does not follow the data, and is left out
  kNameFile,        ///< the record names the zone's file
  kRemove,          ///< the zone goes
  kForget,          ///< data and snapshots go: the zone had left the configuration
  kReload,          ///< the data go: the zone is loaded from its file and the journal
  kNeverTookPlace,  ///< the zone was to get other data, which were never published
};

/// What is known of a zone when a record comes.
struct ReplayedZone {
  std::optional<dns::Serial> serial;  ///< nullopt: it has no data
  bool may_lack = false;              ///< earlier records of the zone may be lost
  bool lacks = false;                 ///< they are
};

/// The rules by which records of the journal bring a zone's data up to date. Each kind of data has
/// its own answer to a record that does not follow:
///
/// - a live store has all that was published, so such a record is left out;
/// - data of an image are no base for later records, so the zone is loaded anew;
/// - a file may be newer than the record, which is left out.
///
/// Records are lost in a gap. After it, image and file take what leads to a later serial.
class RecordReplay {
 public:
  enum class Data : std::uint8_t {
    kLiveStore,  ///< lacks the last group at most
    kImage,      ///< any number of records may follow
    kFile,       ///< a zone file, or another copy of the whole zone
  };
  explicit RecordReplay(Data data) noexcept : data_(data) {}

  [[nodiscard]] ReplayStep step(const JournalRecord& record,
                                const ReplayedZone& zone) const noexcept;
  /// The step for a changeset that was to be applied, and whose records do not fit the zone's.
  /// nullopt: that is an error.
  [[nodiscard]] std::optional<ReplayStep> unfitting(const ReplayedZone& zone) const noexcept;

 private:
  [[nodiscard]] ReplayStep leaving() const noexcept;
  [[nodiscard]] ReplayStep comparison(const JournalRecord& record,
                                      const ReplayedZone& zone) const noexcept;
  [[nodiscard]] ReplayStep file_name(const JournalRecord& record,
                                     const ReplayedZone& zone) const noexcept;
  [[nodiscard]] ReplayStep changeset(const JournalRecord& record,
                                     const ReplayedZone& zone) const noexcept;

  Data data_;
};

/// Whether the record after a zone's kGone says that the zone was to be put whole under its old
/// serial (ZoneReplacement). A live store without that put keeps the zone: workers answer from it,
/// and its file may be another one by now.
[[nodiscard]] bool is_put_behind(const JournalRecord& gone, const JournalRecord& record) noexcept;

}  // namespace pando::manager
