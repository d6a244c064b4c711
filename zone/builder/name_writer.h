#pragma once

#include <cstdint>
#include <memory>

#include "zone/draft/built.h"
#include "zone/draft/collected.h"
#include "zone/draft/draft.h"
#include "zone/record/record_codec.h"
#include "zone/record/shared_sets.h"

namespace pando::zone {

/// Adds one more record of a name, in the order of arrival. RFC 2181 §5.2: one TTL per RRset; the
/// first record decides. RFC 4034 §3: the RRSIG's TTL is the set's, so the RRSIG's counts only
/// while the set has no record.
void add_record(NameDraft& name, const CollectedRecord& record);
/// Adds the records of `from` as if they came one by one after those of `to`.
void add_set(RRsetDraft& to, const RRsetDraft& from);

/// Writes the names of a zone under construction, one after the other: begin, add the name's
/// records in the order of arrival, check, write.
class NameWriter {
 public:
  NameWriter(dns::NameView apex, shm::Transaction& transaction, const DataLimits& limits);
  /// See ZoneBuilder::share_from().
  void share_from(std::uint64_t octets) noexcept { shared_.share_from(octets); }

  /// Begins a name without records. `labels` must last until write().
  void begin(ByteView labels);
  void add(const CollectedRecord& record) { add_record(name_, record); }
  /// Adds the records of the same name as written before. Called first, so that the earlier
  /// spelling counts. kCorrupt.
  Status add_written(std::uint32_t ref);
  /// Checks whether the zone may have the name in its present state: kInvalid, kFull (limits).
  Status check();
  /// Writes the name's record; the record of add_written() is released. Only after check().
  /// kInvalid: too many records for one name; kFull: the store.
  Result<std::uint32_t> write();

  /// The zone so far: the values from its apex, counts and shared pages.
  [[nodiscard]] BuiltZone& built() noexcept { return *built_; }
  /// Hands the built zone over, at the end.
  [[nodiscard]] std::shared_ptr<BuiltZone> take();

 private:
  Status share();

  dns::Name apex_;
  shm::Transaction& transaction_;
  DataLimits limits_;
  SharedSets shared_;
  std::shared_ptr<BuiltZone> built_;
  NameDraft name_;
  std::uint32_t old_ref_ = 0;  // 0 = a new name
  std::uint64_t old_records_ = 0;
  Bytes packed_;
};

}  // namespace pando::zone
