#include "worker/answer/walk.h"

namespace pando::worker {

zone::RRsetView find_data(const zone::RecordView& record, dns::RRType type) noexcept {
  const zone::RRsetView rrset = record.find(type);
  return rrset && rrset.count() > 0 ? rrset : zone::RRsetView();
}

Entry make_entry(const Walk& walk, const Owner& owner, const zone::RRsetView& rrset,
                 Need need) noexcept {
  return Entry{.owner = owner,
               .rrset = rrset,
               .ttl = rrset.ttl().seconds,
               .parts = walk.options.dnssec_ok ? Parts::kBoth : Parts::kData,
               .need = need,
               .synthesized = false,
               .cname_target = {},
               .ns_target = kNoNsTarget};
}

void add_answer(Walk& walk, const Entry& entry) noexcept {
  walk.out.overflow |= !walk.out.answer.push(entry);
}

void add_authority(Walk& walk, const Entry& entry) noexcept {
  walk.out.overflow |= !walk.out.authority.push(entry);
}

void add_additional(Walk& walk, const Entry& entry) noexcept {
  const bool fits = walk.out.additional.push(entry);
  walk.out.overflow |= !fits && entry.need == Need::kRequired;
}

void add_denial(Walk& walk, const zone::RecordView& record, dns::RRType type,
                std::optional<dns::NameView> owner) noexcept {
  const zone::RRsetView rrset = find_data(record, type);
  if (!rrset || has_rrset(walk.out.authority, rrset)) return;
  const Owner whole = owner ? Owner(*owner) : Owner(record.relative_owner(), walk.apex);
  add_authority(walk, make_entry(walk, whole, rrset));
}

dns::Name wildcard_of(dns::NameView encloser) noexcept {
  static constexpr std::uint8_t kAsterisk[] = {1, '*'};
  const auto joined = dns::Name::join(kAsterisk, encloser);
  return joined ? *joined : dns::Name(encloser);
}

}  // namespace pando::worker
