#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"
#include "ipc/control_results.h"

namespace pando::ctl {

/// The records of one zone at one server, for a comparison with those at another. The case of
/// letters in names makes no difference (RFC 4034 §6.2), nor does the order. The serial is kept
/// apart: a SOA that has another serial only is the same record.
class RecordSet {
 public:
  explicit RecordSet(dns::Name zone) : zone_(std::move(zone)) {}

  /// `rdata`: checked and uncompressed.
  void add(dns::NameView owner, dns::RRType type, std::uint32_t ttl, ByteView rdata);
  /// A record as the manager prints it.
  Status add(const ipc::RecordRow& row);
  /// Call once, after the last record; a record that was added twice is one.
  void finish();
  void clear();

  [[nodiscard]] std::size_t size() const noexcept { return records_.size(); }
  /// Bytes of memory for records, more or less.
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }
  /// Nullopt: no SOA at the zone's name was added.
  [[nodiscard]] std::optional<std::uint32_t> serial() const noexcept { return serial_; }
  [[nodiscard]] const dns::Name& zone() const noexcept { return zone_; }

  /// The number of records that `other` has not; the first `most` of them are appended to `rows`,
  /// with names in lower case. Both sets are finished.
  std::uint64_t missing_in(const RecordSet& other, std::size_t most,
                           std::vector<ipc::RecordRow>& rows) const;

 private:
  [[nodiscard]] ipc::RecordRow row_of(const std::string& record) const;

  dns::Name zone_;
  std::optional<std::uint32_t> serial_;
  std::uint64_t bytes_ = 0;
  /// Owner's name in lower case, a zero octet, type, TTL, canonical RDATA: equal if the records are.
  std::vector<std::string> records_;
};

}  // namespace pando::ctl
