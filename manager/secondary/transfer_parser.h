#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message.h"
#include "dns/name.h"
#include "dns/types.h"
#include "zone/build/comparison.h"
#include "zone/build/draft.h"
#include "zone/record/changeset.h"

namespace pando::manager {

/// Limits of one incoming transfer.
struct TransferLimits {
  zone::DataLimits data =
      zone::DataLimits::none();  ///< for a whole zone; changesets are checked when applied
  std::uint64_t octets = std::uint64_t{64} << 30;  ///< total of all messages on the wire
  std::uint64_t difference_records = UINT64_MAX;   ///< total of all difference sequences of an IXFR
  std::uint64_t difference_octets = UINT64_MAX;    ///< approximate memory of these, in bytes
};

/// Parses the messages of one AXFR or IXFR response (RFC 5936 §2.2, RFC 1995 §4). The result is: up
/// to date, changesets, or a whole zone. No I/O, no clock. The caller checks the signature of each
/// message before feed().
class TransferParser {
 public:
  enum class Content : std::uint8_t {
    kUpToDate,     ///< a single SOA that is not ahead of ours (RFC 1995 §2)
    kDifferences,  ///< difference sequences (RFC 1995 §4), oldest first
    kZone,         ///< all records, given to builder() or to comparison()
  };

  /// `asked` is AXFR or IXFR. `current` is our serial, which an IXFR needs; a whole zone must be
  /// ahead of it. `transaction` receives the built zone (see zone::ZoneBuilder) while the records
  /// arrive.
  TransferParser(const dns::Name& zone, dns::RRType asked, std::optional<dns::Serial> current,
                 std::uint16_t id, const TransferLimits& limits, shm::Transaction& transaction);

  /// Keeps the records of a whole zone until go_on() decides about them. Called before the first
  /// message if the caller may have a zone to compare with.
  void wait_with_zone() noexcept { waits_ = true; }
  /// True if a whole zone has begun and go_on() is due.
  [[nodiscard]] bool waits() const noexcept;
  /// Compares the records with `live`, or builds the zone if `live` is null. The caller keeps
  /// `live` pinned while comparison() exists. Errors as those of feed().
  Status go_on(const zone::ZoneView* live);
  /// Null while the zone is being built.
  [[nodiscard]] zone::Comparison* comparison() noexcept {
    return comparison_ ? &*comparison_ : nullptr;
  }
  void drop_comparison() noexcept { comparison_.reset(); }
  /// Moves the compared records to builder(), which also gets all later records. Takes as long as
  /// building.
  Status build_instead();

  /// Parses the next whole message; true after the last one. Errors end the transfer: kDenied for
  /// an RCODE of the primary (see rcode()), kInvalid for broken rules, kFull for a limit.
  Result<bool> feed(ByteView message);

  [[nodiscard]] Content content() const noexcept;
  [[nodiscard]] dns::Serial serial() const noexcept { return serial_; }  ///< the primary's
  [[nodiscard]] dns::Rcode rcode() const noexcept { return rcode_; }
  [[nodiscard]] std::vector<zone::Changeset>& differences() noexcept { return differences_; }
  [[nodiscard]] zone::ZoneBuilder& builder() noexcept { return builder_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t octets() const noexcept { return octets_; }
  /// RFC 7314: seconds until the zone expires at the primary, if the first message states that.
  [[nodiscard]] std::optional<std::uint32_t> expire() const noexcept { return expire_; }
  /// Number of records outside the zone, which are skipped as in BIND.
  [[nodiscard]] std::uint64_t foreign_records() const noexcept { return foreign_; }

 private:
  enum class State : std::uint8_t { kFirstSoa, kSecondRecord, kZone, kRemoving, kAdding, kDone };

  Status check_message(dns::MessageReader& reader, dns::Header& header);
  Status take(zone::Record&& record);
  Status take_first(zone::Record&& record);
  Status take_second(zone::Record&& record);
  Status take_zone_record(zone::Record&& record);
  Status take_difference(zone::Record&& record);
  Status begin_difference(zone::Record&& soa, dns::Serial expected);
  Status keep(std::vector<zone::Record>& list, zone::Record&& record);
  Status add(zone::Record&& record);
  Status put(const zone::Record& record);

  dns::Name zone_;
  dns::RRType asked_;
  std::optional<dns::Serial> current_;
  std::uint16_t id_;
  TransferLimits limits_;
  State state_ = State::kFirstSoa;
  dns::Rcode rcode_ = dns::Rcode::kNoError;
  bool first_message_ = true;
  bool up_to_date_ = false;
  dns::Serial serial_;
  dns::Serial to_;  // end serial of the current difference sequence
  zone::Record first_soa_;
  std::vector<zone::Changeset> differences_;
  bool waits_ = false;
  std::vector<zone::Record> waiting_;  // records of the first message, until go_on()
  zone::ZoneBuilder builder_;
  std::optional<zone::Comparison> comparison_;
  std::uint64_t zone_records_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t octets_ = 0;
  std::uint64_t kept_octets_ = 0;  // approximate bytes of the changesets in memory
  std::uint64_t foreign_ = 0;
  std::optional<std::uint32_t> expire_;
};

}  // namespace pando::manager
