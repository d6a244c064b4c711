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

/// What bounds one incoming transfer.
struct TransferLimits {
  zone::DataLimits data =
      zone::DataLimits::none();                    ///< of a whole zone; differences meet them later
  std::uint64_t octets = std::uint64_t{64} << 30;  ///< of all messages
  std::uint64_t difference_records = UINT64_MAX;   ///< of all differences of an IXFR
  std::uint64_t difference_octets = UINT64_MAX;    ///< of memory that these take, about
};

/// Reads the messages of one AXFR or IXFR response (RFC 5936 §2.2, RFC 1995 §4) and gives what they
/// say: nothing new, differences, or a whole zone. No I/O, no clock. Signatures are checked
/// by the caller, message by message, before feed().
class TransferParser {
 public:
  enum class Content : std::uint8_t {
    kUpToDate,     ///< a single SOA that is not ahead of ours (RFC 1995 §2)
    kDifferences,  ///< RFC 1995 §4, oldest first
    kZone,         ///< all records, given to builder() or to comparison()
  };

  /// `asked` is AXFR or IXFR; `current` is our serial, which an IXFR needs, and which a whole zone
  /// has to be ahead of. It is built in `transaction` (see zone::ZoneBuilder) while it comes.
  TransferParser(const dns::Name& zone, dns::RRType asked, std::optional<dns::Serial> current,
                 std::uint16_t id, const TransferLimits& limits, shm::Transaction& transaction);

  /// The records of a whole zone are kept, until go_on() tells what to do with them: to be called
  /// before the first message, by who may have a zone to compare them with.
  void wait_with_zone() noexcept { waits_ = true; }
  /// A whole zone has begun, and go_on() is waited for.
  [[nodiscard]] bool waits() const noexcept;
  /// The records are compared with `live`, which stays pinned for as long as comparison() is there,
  /// or else built. Errors as those of feed().
  Status go_on(const zone::ZoneView* live);
  /// Null: the zone is being built.
  [[nodiscard]] zone::Comparison* comparison() noexcept {
    return comparison_ ? &*comparison_ : nullptr;
  }
  void drop_comparison() noexcept { comparison_.reset(); }
  /// What was compared so far goes to builder(), and so does what follows. Takes as long as
  /// building does.
  Status build_instead();

  /// Takes the next whole message; true when it was the last one. Errors end the transfer: kDenied
  /// for an RCODE of the primary's (see rcode()), kInvalid for broken rules, kFull for a limit.
  Result<bool> feed(ByteView message);

  [[nodiscard]] Content content() const noexcept;
  [[nodiscard]] dns::Serial serial() const noexcept { return serial_; }  ///< the primary's
  [[nodiscard]] dns::Rcode rcode() const noexcept { return rcode_; }
  [[nodiscard]] std::vector<zone::Changeset>& differences() noexcept { return differences_; }
  [[nodiscard]] zone::ZoneBuilder& builder() noexcept { return builder_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t octets() const noexcept { return octets_; }
  /// RFC 7314: seconds until the zone expires where it came from, when the first message tells.
  [[nodiscard]] std::optional<std::uint32_t> expire() const noexcept { return expire_; }
  /// Records outside the zone, which are left out as BIND does.
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
  dns::Serial to_;  // of the difference being read
  zone::Record first_soa_;
  std::vector<zone::Changeset> differences_;
  bool waits_ = false;
  std::vector<zone::Record> waiting_;  // of one message
  zone::ZoneBuilder builder_;
  std::optional<zone::Comparison> comparison_;
  std::uint64_t zone_records_ = 0;
  std::uint64_t records_ = 0;
  std::uint64_t octets_ = 0;
  std::uint64_t kept_octets_ = 0;  // of the differences, in memory
  std::uint64_t foreign_ = 0;
  std::optional<std::uint32_t> expire_;
};

}  // namespace pando::manager
