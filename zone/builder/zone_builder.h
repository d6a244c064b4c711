#pragma once

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "shm/store.h"
#include "zone/draft/draft.h"

namespace pando::zone {

/// Builds a whole zone in a transaction of its own while its records come. Records in canonical
/// order are written to the store when the next name comes; only records out of order are
/// collected. Duplicates are dropped. Checks: one SOA, at the apex; NS at the apex; CNAME and DNAME
/// alone; no name outside the zone (error); limits.
class ZoneBuilder {
 public:
  /// `transaction` must not move until finish(). If finish() fails or is not called, the
  /// transaction can only be dropped. Names beyond `limits` are an error of finish().
  ZoneBuilder(dns::NameView apex, shm::Transaction& transaction,
              const DataLimits& limits = DataLimits::none());
  ~ZoneBuilder();
  ZoneBuilder(ZoneBuilder&&) noexcept;
  ZoneBuilder& operator=(ZoneBuilder&&) noexcept;
  /// kInvalid: no zone of this name can have the record, whatever the other records are.
  Status add(dns::NameView owner, dns::RRType type, dns::Ttl ttl, ByteView rdata);
  /// Records added, duplicates too.
  [[nodiscard]] std::uint64_t record_count() const noexcept;
  /// Shares name server sets that delegations repeat once sharing saves this many bytes. Only
  /// before the first record.
  void share_from(std::uint64_t octets) noexcept;

  /// kInvalid names the first rule that the zone breaks, in canonical order; kFull names a limit or
  /// the store.
  Result<std::shared_ptr<BuiltZone>> finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace pando::zone
