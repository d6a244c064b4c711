#pragma once

#include "dns/rdata/rdata.h"
#include "zone/trie/zone_layout.h"

/// Decoding of a name record's bytes; every read is checked against the end of the window.
namespace pando::zone {

/// One RRset as it stands in a record block.
struct RawRRset {
  std::uint16_t type;
  std::uint16_t rdata_count;
  std::uint16_t signature_count;
  std::uint32_t ttl;
  std::uint32_t data_bytes;
  const std::uint8_t* data;  ///< in the record, the external block or a shared page
  std::uint32_t external;    ///< reference of the external block, 0 = none
  /// place of the reference to the external block or to the shared set
  const std::uint8_t* external_at;

  /// Reference of a shared set, 0 = the set is not shared.
  [[nodiscard]] std::uint32_t shared() const noexcept {
    return external == 0 && external_at != nullptr ? load_unaligned<std::uint32_t>(external_at) : 0;
  }
};

/// Reads the header at `p`, whatever its form, up to the size. Returns the position after it,
/// nullptr when the header is cut off.
[[nodiscard]] inline const std::uint8_t* scan_long_header(const std::uint8_t* p,
                                                          const std::uint8_t* end,
                                                          RawRRset& out) noexcept {
  const RRsetForm form{*p};
  if (end - p < static_cast<std::ptrdiff_t>(form.octets())) return nullptr;
  ++p;
  out.type = form.type_octets() == 1 ? *p : load_unaligned<std::uint16_t>(p);
  p += form.type_octets();
  out.rdata_count = static_cast<std::uint16_t>(form.rdatas());
  if (form.rdatas() == RRsetForm::kManyRdatas) {
    out.rdata_count = load_unaligned<std::uint16_t>(p) & kMaxRdataCount;
    p += 2;
  }
  out.signature_count = static_cast<std::uint16_t>(form.signatures());
  if (form.signatures() == RRsetForm::kManySignatures) {
    out.signature_count = load_unaligned<std::uint16_t>(p);
    p += 2;
  }
  out.ttl = 0;
  for (unsigned i = 0; i < form.ttl_octets(); ++i) out.ttl |= std::uint32_t{*p++} << (8 * i);
  return p;
}

/// Reads the RRset at `p`; returns the position after it, nullptr when damaged. Always inline, so
/// that `out` stays in registers.
[[nodiscard]] [[gnu::always_inline]] inline const std::uint8_t* scan_rrset(
    const std::uint8_t* p, const std::uint8_t* end, const shm::Window& window,
    RawRRset& out) noexcept {
  if (end - p < 1) return nullptr;
  const RRsetForm form{*p};
  if (form.is_short() && end - p >= 6) [[likely]] {  // room to read a TTL as four octets
    out.type = p[1];
    out.rdata_count = static_cast<std::uint16_t>(form.rdatas());
    out.signature_count = static_cast<std::uint16_t>(form.signatures());
    out.ttl = load_unaligned<std::uint32_t>(p + 2) & (UINT32_MAX >> (32 - 8 * form.ttl_octets()));
    p += 2 + form.ttl_octets();
  } else {
    p = scan_long_header(p, end, out);
    if (p == nullptr) return nullptr;
  }
  const std::size_t fixed = dns::fixed_rdata_length(dns::RRType{out.type});
  if (form.implies_size(fixed))
    out.data_bytes = static_cast<std::uint32_t>(fixed * out.rdata_count);
  else
    p = get_varint(p, end, out.data_bytes);
  if (p == nullptr) return nullptr;
  if (out.data_bytes != 0) [[likely]] {
    if (static_cast<std::uint64_t>(end - p) < out.data_bytes) return nullptr;
    out.data = p;
    out.external = 0;
    out.external_at = nullptr;
    return p + out.data_bytes;
  }
  if (end - p < static_cast<std::ptrdiff_t>(kExternalBytes)) return nullptr;
  out.external_at = p;
  const auto reference = load_unaligned<std::uint32_t>(p);
  const auto size = load_unaligned<std::uint32_t>(p + 4);
  out.data_bytes = size & ~kSharedBit;
  out.external = (size & kSharedBit) != 0 ? 0 : reference;
  const auto* block = window.at(shm::Ref<>{reference}, out.data_bytes);
  if (block == nullptr) return nullptr;
  out.data = reinterpret_cast<const std::uint8_t*>(block);
  return p + kExternalBytes;
}

/// First RRset of a record block, or nullptr when its header is cut off.
[[nodiscard]] inline const std::uint8_t* first_rrset(const std::uint8_t* block,
                                                     const std::uint8_t* end) noexcept {
  if (end - block < static_cast<std::ptrdiff_t>(sizeof(RecordHeader))) return nullptr;
  const std::ptrdiff_t octets = static_cast<std::ptrdiff_t>(sizeof(RecordHeader)) + block[1];
  return end - block < octets ? nullptr : block + octets;
}

}  // namespace pando::zone
