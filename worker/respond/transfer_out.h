#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "shm/reader.h"
#include "worker/request/request.h"
#include "worker/respond/transfer_plan.h"
#include "zone/history/history.h"
#include "zone/read/store_view.h"

namespace pando::worker {

/// Names in this many octets are all within reach of compression pointers (RFC 1035 §4.1.4): after
/// that, owners and servers would be written again and again. With its two octets of length such a
/// message fills one record of TLS (RFC 8446 §5.1).
inline constexpr std::size_t kTransferMessageOctets = (16U << 10) - 2;

/// A version held for as long as a transfer runs (shm: leases).
class HeldVersion {
 public:
  /// Call while the reader is pinned.
  static Result<HeldVersion> take(std::shared_ptr<shm::Reader> reader,
                                  const shm::Reader::View& view);
  HeldVersion(HeldVersion&& other) noexcept;
  HeldVersion& operator=(HeldVersion&&) = delete;
  ~HeldVersion();
  [[nodiscard]] bool revoked() const noexcept { return reader_->lease_revoked(lease_); }
  [[nodiscard]] zone::StoreView store_view() const noexcept {
    return {view_.window, view_.root, view_.version};
  }

 private:
  HeldVersion(std::shared_ptr<shm::Reader> reader, const shm::Reader::View& view,
              std::size_t lease) noexcept;
  std::shared_ptr<shm::Reader> reader_;
  shm::Reader::View view_;
  std::size_t lease_;
};

/// Result of filling a message with a transfer's records.
enum class StreamStep : std::uint8_t {
  kMore,   ///< the message is full
  kDone,   ///< the closing SOA is written
  kStuck,  ///< a record does not fit into an empty message
  kDamaged,
};

/// Writes the records of a zone in the order of a full transfer: SOA, all other records in the
/// order of the store, SOA (RFC 5936 §2.2). Each fill() writes as many as fit into one message.
class ZoneStream {
 public:
  using Step = StreamStep;
  explicit ZoneStream(const zone::ZoneView& zone);
  Step fill(dns::MessageWriter& writer);
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  bool put_soa(dns::MessageWriter& writer);
  bool put_record(dns::MessageWriter& writer);
  bool put_part(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures);
  bool put_singly(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures);

  /// Places in the message of the servers of a shared NS RRset. Most delegations of a registry have
  /// one of a few sets.
  struct KnownSet {
    static constexpr std::size_t kMaxServers = 6;
    const void* set = nullptr;
    std::uint32_t message = 0;  // 0 = none
    std::uint32_t count = 0;
    std::array<dns::NamePlace, kMaxServers> servers;
  };
  static constexpr std::size_t kKnownSets = 256;

  /// Whether the message being filled has no record yet.
  [[nodiscard]] bool is_fresh() const noexcept { return records_ == records_before_; }
  void begin_message() noexcept;
  bool take_owner() noexcept;
  void begin_set(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures) noexcept;
  bool put_whole(dns::MessageWriter& writer, const zone::RRsetView& set, bool signatures,
                 std::span<dns::NamePlace> targets = {});
  bool put_shared(dns::MessageWriter& writer, const zone::RRsetView& set);

  zone::ZoneView zone_;
  zone::ZoneView::Cursor cursor_;
  zone::RecordView current_;
  /// The apex at the end, and the labels of the current owner in front of it.
  std::array<std::uint8_t, dns::kMaxNameOctets> names_;
  std::size_t apex_octets_;
  std::size_t owner_octets_ = 0;
  std::uint32_t message_ = 0;  ///< number of the message being filled, from 1
  /// Of the RRset being written. What its owner's sets have in common, and the apex' place, stay.
  dns::RRsetHead head_;
  std::array<std::uint8_t, 2> covered_;  ///< the head's prefix, for signatures
  std::vector<KnownSet> known_;          ///< by a hash of the set
  std::size_t parts_done_ = 0;    ///< of the current owner; an RRset has data and signatures
  std::size_t singles_done_ = 0;  ///< records of a part too large for one message
  std::uint64_t records_ = 0;
  std::uint64_t records_before_ = 0;  ///< the message being filled
  bool begun_ = false;
  bool at_end_ = false;
};

/// Writes a zone's changesets since some serial in the order of an incremental transfer. The new
/// SOA comes first. Each difference sequence has the old SOA, removed records, its new SOA and
/// added records. The new SOA ends the transfer (RFC 1995 §4).
class DifferenceStream {
 public:
  using Step = StreamStep;
  /// Nullopt when the zone's history does not reach back to `since`, or when the changesets have
  /// more records than the zone. A full transfer is the better answer then (RFC 1995 §2).
  static std::optional<DifferenceStream> since(const zone::ZoneView& zone, dns::Serial since);
  Step fill(dns::MessageWriter& writer);
  [[nodiscard]] std::uint64_t records() const noexcept { return records_; }

 private:
  DifferenceStream(const zone::ZoneView& zone, zone::HistoryReader reader);
  bool put_soa(dns::MessageWriter& writer);

  zone::ZoneView zone_;
  zone::HistoryReader reader_;
  const zone::HistoryRecord* pending_ = nullptr;
  std::uint64_t records_ = 0;
  bool begun_ = false;
};

/// One transfer out, message by message.
class TransferOut {
 public:
  TransferOut(TransferPlan plan, HeldVersion version, const Client& client);

  enum class Step : std::uint8_t { kMessage, kLastMessage, kFailed };
  /// Builds the next message in `space` (65,535 octets), signed when the worker has the key.
  /// kFailed: end() has the reason.
  Step next(std::span<std::uint8_t> space, std::size_t& size, std::uint64_t now);

  /// True when the manager signs: each message goes to the manager first.
  [[nodiscard]] bool has_managers_key() const noexcept { return !plan_.held_request.empty(); }
  /// Returns the request's octets at the first call, then nothing.
  [[nodiscard]] Bytes take_request();
  [[nodiscard]] bool incremental() const noexcept {
    return std::holds_alternative<DifferenceStream>(stream_);
  }
  [[nodiscard]] const dns::Name& apex() const noexcept { return plan_.apex; }
  [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }
  void count_octets(std::size_t octets) noexcept { octets_ += octets; }
  /// The reason of Step::kFailed.
  [[nodiscard]] ipc::TransferEnd end() const noexcept { return end_; }
  [[nodiscard]] ipc::TransferFinished report(ipc::TransferEnd end) const;

 private:
  dns::MessageWriter new_message(std::span<std::uint8_t> space);
  StreamStep fill(dns::MessageWriter& writer);
  Step fail(ipc::TransferEnd end) noexcept;

  TransferPlan plan_;
  HeldVersion version_;
  Client client_;
  zone::ZoneView zone_;
  std::variant<std::monostate, ZoneStream, DifferenceStream> stream_;
  bool request_taken_ = false;
  ipc::TransferEnd end_ = ipc::TransferEnd::kUnknown;
  std::uint64_t messages_ = 0;
  std::uint64_t octets_ = 0;
  std::chrono::steady_clock::time_point begun_ = std::chrono::steady_clock::now();
};

}  // namespace pando::worker
