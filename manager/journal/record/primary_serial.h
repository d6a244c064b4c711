#pragma once

#include <optional>

#include "dns/types.h"
#include "manager/journal/record/journal_format.h"

namespace pando::manager {

/// Follows, from one record of a zone to the next, which serial the zone's data have at its primary
/// (zone::primary_serial()). A serial counts only together with the serial of ours that it
/// belongs to: after records that do not follow each other it is unknown.
class PrimarySerial {
 public:
  /// Begins with a whole zone at `served`, from a journal snapshot.
  void begin(dns::Serial served, std::optional<dns::Serial> primary) noexcept;
  /// Takes the zone's next record, of any kind.
  void take(const JournalRecord& record);
  /// The primary's serial of the data with our serial `served`; nullopt: there is none, or it is not
  /// known.
  [[nodiscard]] std::optional<dns::Serial> at(dns::Serial served) const noexcept;

 private:
  void take_signed(const JournalRecord& record);
  void keep_if(bool stays) noexcept {
    if (!stays) primary_.reset();
  }

  dns::Serial served_;
  std::optional<dns::Serial> primary_;
};

}  // namespace pando::manager
