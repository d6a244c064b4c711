#include "manager/signing/signature_look.h"

#include <algorithm>

#include "dns/dnssec/derived_types.h"
#include "dns/dnssec/rrsig.h"

namespace pando::manager {

namespace {

using dns::RRType;

class Walk {
 public:
  Walk(const zone::ZoneView& zone, const ZoneSigner& signer, const SignatureLookOptions& options)
      : zone_(zone), options_(options), denial_ttl_(denial_ttl_of(zone)) {
    if (!signer.has_key_sets(zone)) look_.due.emplace_back(zone.apex());
  }

  SignatureLook run() {
    auto cursor = zone_.begin();
    while (const zone::RecordView record = cursor.next()) take(record);
    return std::move(look_);
  }

 private:
  void take(const zone::RecordView& record) {
    bool is_due = false;
    record.for_each_rrset([&](const zone::RRsetView& set) { is_due = take_set(set) || is_due; });
    if (!is_due || look_.due.size() >= options_.max_due) return;
    dns::Name owner = zone_.owner_of(record);
    const bool is_there = !look_.due.empty() && look_.due.front() == owner;  // the apex
    if (!is_there) look_.due.push_back(std::move(owner));
  }

  /// Whether the set is to be signed anew.
  bool take_set(const zone::RRsetView& set) {
    const bool is_denial = set.type() == RRType::kNSEC || set.type() == RRType::kNSEC3;
    if (set.count() != 0 && !dns::is_derived(set.type(), false))
      look_.max_ttl = std::max<std::uint64_t>(look_.max_ttl, set.ttl().seconds);
    bool is_due = is_denial && set.count() != 0 && !(set.ttl() == denial_ttl_);
    std::uint64_t last_end = 0;
    set.for_each_signature([&](ByteView rest) {
      constexpr std::size_t kExpirationAt = 6, kInceptionAt = 10;  // behind the covered type
      if (rest.size() < kInceptionAt + 4) return;
      const auto end = dns::whole_time(load_be32(rest.data() + kExpirationAt), options_.now);
      const auto start = dns::whole_time(load_be32(rest.data() + kInceptionAt), options_.now);
      is_due = is_due || end < options_.due_before || start > options_.now;
      last_end = std::max(last_end, end);
    });
    if (last_end != 0)
      look_.first_end = look_.first_end == 0 ? last_end : std::min(look_.first_end, last_end);
    return is_due;
  }

  const zone::ZoneView& zone_;
  const SignatureLookOptions& options_;
  dns::Ttl denial_ttl_;
  SignatureLook look_;
};

}  // namespace

dns::Ttl denial_ttl_of(const zone::ZoneView& zone) {
  constexpr std::size_t kNumberOctets = 4;  // MINIMUM, at the end
  const zone::RRsetView soa = zone.soa();
  const ByteView rdata = soa.first_rdata();
  if (rdata.size() < kNumberOctets) return soa.ttl();
  return std::min(soa.ttl(), dns::Ttl{load_be32(rdata.data() + rdata.size() - kNumberOctets)});
}

SignatureLook look_at_signatures(const zone::ZoneView& zone, const ZoneSigner& signer,
                                 const SignatureLookOptions& options) {
  return Walk(zone, signer, options).run();
}

}  // namespace pando::manager
