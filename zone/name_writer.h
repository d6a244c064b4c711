#pragma once

#include <cstdint>
#include <memory>

#include "zone/built.h"
#include "zone/collected.h"
#include "zone/draft.h"
#include "zone/record_codec.h"
#include "zone/shared_sets.h"

namespace pando::zone {

/// Writes the names of a zone that is being built, one after the other: begin, add its records in
/// the order in which they came, check, write.
class NameWriter {
 public:
  NameWriter(dns::NameView apex, shm::Transaction& transaction, const DataLimits& limits);
  /// See ZoneBuilder::share_from().
  void share_from(std::uint64_t octets) noexcept { shared_.share_from(octets); }

  /// A name without records so far. `labels` must last until write().
  void begin(ByteView labels);
  void add(const CollectedRecord& record);
  /// Adds the records of the same name as written before; first, they bring its spelling too.
  /// kCorrupt.
  Status add_written(std::uint32_t ref);
  /// Whether the name, as it is now, may be in the zone: kInvalid, kFull (limits).
  Status check();
  /// The name's record; that of add_written() is released. Only after check(). kInvalid: too many
  /// records for one name; kFull: the store.
  Result<std::uint32_t> write();

  /// The zone so far: what its apex says, counts and shared pages.
  [[nodiscard]] ZoneBuilder::Built& built() noexcept { return *built_; }
  /// Gives it away, at the end.
  [[nodiscard]] std::shared_ptr<ZoneBuilder::Built> take();

 private:
  Status share();

  dns::Name apex_;
  shm::Transaction& transaction_;
  DataLimits limits_;
  SharedSets shared_;
  std::shared_ptr<ZoneBuilder::Built> built_;
  NameDraft name_;
  std::uint32_t old_ref_ = 0;  // 0 = a new name
  std::uint64_t old_records_ = 0;
  Bytes packed_;
};

}  // namespace pando::zone
