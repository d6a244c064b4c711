#pragma once

#include "zone/draft/draft.h"
#include "zone/record/record_codec.h"

namespace pando::zone {

/// A finished zone of a ZoneBuilder: references into blocks of its transaction, the future targets of a
/// ZoneEntry.
struct BuiltZone {
  dns::Name spelling;  // the apex as the records spell it
  std::uint32_t apex = 0;
  std::uint32_t names = 0;
  std::uint32_t nsec3 = 0;
  std::uint32_t shared = 0;  // pages of shared RRsets
  std::uint32_t serial = 0;
  std::uint8_t flags = 0;  // kNsec, kNsec3 of ZoneEntry
  std::uint64_t record_count = 0;
  std::uint64_t name_count = 0;
  std::uint32_t data_units = 0;  // as in ZoneEntry

  /// Takes the values that the entry repeats from the apex: serial and kind of denial.
  void take_apex(const NameDraft& name, std::uint32_t ref);
};

/// Bytes that a transaction has added, in units of a reference. May be negative, modulo 2^32: a sum
/// with the units that were there is right.
[[nodiscard]] inline std::uint32_t units_of(std::int64_t bytes) noexcept {
  return static_cast<std::uint32_t>(bytes / std::int64_t{shm::kUnit});
}

/// Serial of a SOA's RDATA (RFC 1035 §3.3.13): the five numbers are its last 20 octets.
[[nodiscard]] std::uint32_t soa_serial(ByteView rdata) noexcept;

/// The flags of a ZoneEntry that follow from the apex's RRsets.
[[nodiscard]] std::uint8_t denial_flags(const NameDraft& apex) noexcept;

}  // namespace pando::zone
