#pragma once

#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "zone/dump/dump_format.h"
#include "zone/dump/dump_index.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// Writes a version as a dump. For background threads and tools. The version must be pinned, unless
/// no process changes the store.
class DumpWriter {
 public:
  /// Takes bytes in order, at least a mebibyte at a time.
  using Sink = std::function<Status(ByteView)>;

  /// kStore: zones with histories and snapshots, as a stream. kZones: their present data alone,
  /// and an index after the dump (dump_index.h).
  enum class Contents : std::uint8_t { kStore, kZones };

  /// The writer sets `header.nonce` itself.
  DumpWriter(Sink sink, DumpHeader header, Contents contents = Contents::kStore);

  /// Writes the next zone, in canonical order. `side` (may be null): the zone's timers. `notes`:
  /// the journal's records about its file. kCorrupt: the zone is damaged in the store.
  Status put_zone(const ZoneView& zone, const shm::Store::SideEntry* side,
                  std::span<const DumpNote> notes);
  /// Writes one item of a zone that is copied from elsewhere.
  Status put(const DumpItem& item);
  /// Called after the last zone.
  Status finish();

  [[nodiscard]] const DumpCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  using Snapshots = std::span<const ZoneSnapshot>;
  Status put_all(const ZoneView& zone, const DumpZone& head);
  Status put_data(const ZoneView& data, const dns::Name& apex, Snapshots snapshots);
  Status put_records(const ZoneView& data, const dns::Name& apex);
  Status put_history(const ZoneView& data, const dns::Name& apex, Snapshots& snapshots);
  Status put_snapshots(Snapshots& snapshots, std::optional<dns::Serial> at);
  void add_to_index(const DumpItem& item);
  Status flush();

  Sink sink_;
  DumpHeader header_;
  Contents contents_;
  std::vector<DumpPlace> index_;  // for kZones
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;  // bytes handed to the sink
  DumpCounts counts_;
  Bytes buffer_;
};

}  // namespace pando::zone
