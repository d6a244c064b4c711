#include "zone/draft/built.h"

#include "zone/trie/zone_layout.h"

namespace pando::zone {

std::uint32_t soa_serial(ByteView rdata) noexcept {
  return rdata.size() < 22 ? 0 : load_be32(rdata.data() + rdata.size() - 20);
}

std::uint8_t denial_flags(const NameDraft& apex) noexcept {
  std::uint8_t flags = 0;
  const RRsetDraft* nsec = apex.find(dns::RRType::kNSEC);
  if (nsec != nullptr && !nsec->rdatas.empty()) flags |= ZoneEntry::kNsec;
  const RRsetDraft* parameters = apex.find(dns::RRType::kNSEC3PARAM);
  if (parameters == nullptr) return flags;
  for (const ByteView rdata : parameters->rdatas)  // RFC 5155 §4.1.2: flags must be zero
    if (rdata.size() >= 5 && rdata[0] == 1 && rdata[1] == 0) flags |= ZoneEntry::kNsec3;
  return flags;
}

void BuiltZone::take_apex(const NameDraft& name, std::uint32_t ref) {
  apex = ref;
  flags = denial_flags(name);
  if (const RRsetDraft* soa = name.find(dns::RRType::kSOA))
    if (!soa->rdatas.empty()) serial = soa_serial(soa->rdatas.front());
}

}  // namespace pando::zone
