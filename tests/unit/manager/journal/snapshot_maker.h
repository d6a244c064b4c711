#pragma once

#include <vector>

#include "zone/dump/dump_writer.h"

namespace pando::manager::testing {

/// Begins a zone with data.
inline zone::DumpZone whole_zone(const dns::Name& name, std::uint32_t serial,
                                 std::uint64_t records = 0) {
  zone::DumpZone zone;
  zone.name = name;
  zone.loaded = true;
  zone.serial = {serial};
  zone.records = records;
  return zone;
}

/// The bytes of a journal snapshot with these items, which are those of whole zones.
inline Bytes snapshot_of(std::uint64_t position, const std::vector<zone::DumpItem>& items = {}) {
  Bytes bytes;
  zone::DumpHeader header;
  header.position = position;
  zone::DumpWriter writer(
      [&](ByteView more) -> Status {
        append(bytes, more);
        return {};
      },
      header, zone::DumpWriter::Contents::kZones);
  for (const zone::DumpItem& item : items) static_cast<void>(writer.put(item).has_value());
  static_cast<void>(writer.finish().has_value());
  return bytes;
}

}  // namespace pando::manager::testing
