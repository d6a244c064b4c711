#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/message/message_reader.h"
#include "dns/name.h"
#include "dns/types.h"
#include "manager/secondary/transfer/difference_sequences.h"
#include "manager/secondary/transfer/received_zone.h"

namespace pando::manager {

/// Reads the `records` records after a response's answers and returns the EXPIRE option of the OPT
/// record (RFC 7314 §3). The value is the number of seconds until the sender's copy of the zone
/// expires; nullopt if the option is absent or malformed.
[[nodiscard]] std::optional<std::uint32_t> read_expire(dns::MessageReader& reader,
                                                       unsigned records);

/// Limits of one incoming transfer.
struct TransferLimits {
  zone::DataLimits data =
      zone::DataLimits::none();  ///< for a whole zone; changesets are checked when applied
  std::uint64_t octets = std::uint64_t{64} << 30;  ///< total of all messages on the wire
  DifferenceSequences::Limits changesets{};        ///< for all changesets of an IXFR
};

/// Parses the messages of one AXFR or IXFR response (RFC 5936 §2.2, RFC 1995 §4). The result is: up
/// to date, changesets, or a whole zone. No I/O, no clock. The caller checks the signature of each
/// message before feed().
class TransferParser {
 public:
  enum class Content : std::uint8_t {
    kUpToDate,    ///< a single SOA that is not ahead of ours (RFC 1995 §2)
    kChangesets,  ///< of difference sequences (RFC 1995 §4), oldest first
    kZone,        ///< all records, given to received_zone()
  };

  /// `asked` is AXFR or IXFR. `current` is our serial, which an IXFR needs; a whole zone must be
  /// ahead of it. `transaction` receives the built zone (see zone::ZoneBuilder) while the records
  /// arrive.
  TransferParser(const dns::Name& zone, dns::RRType asked, std::optional<dns::Serial> current,
                 std::uint16_t id, const TransferLimits& limits, shm::Transaction& transaction);

  /// Parses the next whole message; true after the last one. Errors end the transfer: kDenied for
  /// an RCODE of the primary, kInvalid for broken rules, kFull for a limit.
  Result<bool> feed(ByteView message);

  [[nodiscard]] Content content() const noexcept;
  [[nodiscard]] dns::Serial serial() const noexcept { return serial_; }  ///< the primary's
  [[nodiscard]] std::vector<zone::Changeset>& changesets() noexcept {
    return sequences_.changesets();
  }
  [[nodiscard]] ReceivedZone& received_zone() noexcept { return received_; }
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }
  [[nodiscard]] std::uint64_t octets() const noexcept { return octets_; }
  /// RFC 7314: seconds until the zone expires at the primary, if the first message states that.
  [[nodiscard]] std::optional<std::uint32_t> expire() const noexcept { return expire_; }

 private:
  enum class State : std::uint8_t { kFirstSoa, kSecondRecord, kZone, kSequences, kDone };

  Status check_message(dns::MessageReader& reader, dns::Header& header);
  Status take(zone::Record&& record);
  Status take_first(zone::Record&& record);
  Status take_second(zone::Record&& record);
  Status take_zone_record(zone::Record&& record);

  dns::Name zone_;
  dns::RRType asked_;
  std::optional<dns::Serial> current_;
  std::uint16_t id_;
  TransferLimits limits_;
  State state_ = State::kFirstSoa;
  bool first_message_ = true;
  bool up_to_date_ = false;
  dns::Serial serial_;
  zone::Record first_soa_;
  DifferenceSequences sequences_;
  ReceivedZone received_;
  std::uint64_t records_ = 0;
  std::uint64_t octets_ = 0;
  std::optional<std::uint32_t> expire_;
};

}  // namespace pando::manager
