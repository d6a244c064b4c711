#pragma once

#include <functional>
#include <optional>
#include <span>

#include "zone/dump/dump_format.h"
#include "zone/read/store_view.h"

namespace pando::zone {

/// Writes a version as a dump. For pool threads and tools: the version must be pinned, or nobody's.
class DumpWriter {
 public:
  /// Takes octets in order, a mebibyte and more at once.
  using Sink = std::function<Status(ByteView)>;

  /// `header.nonce` is made here.
  DumpWriter(Sink sink, DumpHeader header);

  /// The next zone, in canonical order. `side` (may be null): its timers. `notes`: what the journal
  /// knows of its file. kCorrupt: the zone is damaged in the store.
  Status put_zone(const ZoneView& zone, const shm::Store::SideEntry* side,
                  std::span<const DumpNote> notes);
  /// Behind the last zone.
  Status finish();

  [[nodiscard]] const DumpCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  using Saved = std::span<const ZoneSnapshot>;
  Status put_all(const ZoneView& zone, const DumpZone& head);
  Status put_data(const ZoneView& data, const dns::Name& apex, Saved saved);
  Status put_records(const ZoneView& data, const dns::Name& apex);
  Status put_history(const ZoneView& data, const dns::Name& apex, Saved& saved);
  Status put_saved(Saved& saved, std::optional<dns::Serial> at);
  Status put(const DumpItem& item);
  Status flush();

  Sink sink_;
  std::uint64_t nonce_ = 0;
  std::uint64_t number_ = 0;
  std::uint64_t bytes_ = 0;  // handed to the sink
  DumpCounts counts_;
  Bytes buffer_;
};

}  // namespace pando::zone
