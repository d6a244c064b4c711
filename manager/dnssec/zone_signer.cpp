#include "manager/dnssec/zone_signer.h"

#include <algorithm>

#include "dns/dnssec/rrsig.h"

namespace pando::manager {

zone::SignatureTimes ZoneSigner::spread_times(std::uint64_t now) const noexcept {
  zone::SignatureTimes spread = times(now);
  const std::uint64_t renewal = renewed_before(now) - now;
  if (renewal < options_.validity)
    spread.spread = static_cast<std::uint32_t>(options_.validity - renewal);
  return spread;
}

bool ZoneSigner::is_slow() const noexcept {
  constexpr std::uint8_t kP256 = 13, kEd25519 = 15;
  return std::ranges::any_of(keys_.all(), [this](const dns::SigningKey& key) {
    const zone::KeyUse& use = keys_.use_of(key);
    return (use.signs_keys || use.signs_data) && key.algorithm() != kP256 &&
           key.algorithm() != kEd25519;
  });
}

namespace {

std::vector<Bytes> dnskeys_of(const zone::ZoneView& zone) {
  std::vector<Bytes> rdatas;
  if (zone && zone.loaded())
    zone.apex_record().find(dns::RRType::kDNSKEY).for_each_rdata([&](ByteView rdata) {
      rdatas.emplace_back(rdata.begin(), rdata.end());
    });
  return rdatas;
}

}  // namespace

bool ZoneSigner::is_ours(const Bytes& dnskey) const {
  return std::ranges::any_of(keys_.all(), [&](const auto& key) { return key.dnskey() == dnskey; });
}

bool ZoneSigner::has_signed(const zone::ZoneView& zone) const {
  return zone && zone.loaded() && zone::is_denied_by(zone, options_.denial) &&
         has_published_keys(zone);
}

std::optional<zone::SigningDenial> ZoneSigner::denial_of(const zone::ZoneView& zone) const {
  if (!zone || !zone.loaded() || !has_published_keys(zone)) return std::nullopt;
  if (zone::is_denied_by(zone, options_.denial)) return options_.denial;
  for (const zone::SigningDenial& other :
       {zone::SigningDenial{}, zone::SigningDenial{true, false}, zone::SigningDenial{true, true}})
    if (zone::is_denied_by(zone, other)) return other;
  return std::nullopt;
}

bool ZoneSigner::has_published_keys(const zone::ZoneView& zone) const {
  if (zone.apex_record().find(dns::RRType::kDNSKEY).signature_count() == 0) return false;
  const std::vector<Bytes> published = dnskeys_of(zone);
  return !published.empty() && !has_new_keys(zone) &&
         std::ranges::all_of(published, [this](const Bytes& one) { return is_ours(one); });
}

bool ZoneSigner::is_signed_by_others(const zone::ZoneView& zone) const {
  if (!zone || !zone.loaded()) return false;
  const std::vector<Bytes> published = dnskeys_of(zone);
  return std::ranges::any_of(published, [this](const Bytes& one) { return !is_ours(one); });
}

bool ZoneSigner::has_key_sets(const zone::ZoneView& zone) const {
  const std::vector<zone::MadeSet> wanted = key_sets(zone.soa().ttl());
  constexpr dns::RRType kTypes[] = {dns::RRType::kDNSKEY, dns::RRType::kCDS, dns::RRType::kCDNSKEY};
  return std::ranges::all_of(kTypes, [&](dns::RRType type) {
    const auto made = std::ranges::find(wanted, type, &zone::MadeSet::type);
    const zone::RRsetView served = zone.apex_record().find(type);
    if (made == wanted.end()) return !served || served.count() == 0;
    if (!served || !(served.ttl() == made->ttl) || served.count() != made->rdatas.size())
      return false;
    bool is_same = true;
    served.for_each_rdata([&](ByteView rdata) {
      is_same = is_same && std::ranges::any_of(made->rdatas, [&](const Bytes& one) {
                  return std::ranges::equal(one, rdata);
                });
    });
    return is_same;
  });
}

bool ZoneSigner::has_new_keys(const zone::ZoneView& zone) const {
  const std::vector<Bytes> published = dnskeys_of(zone);
  if (published.empty()) return false;
  return std::ranges::any_of(keys_.all(), [&](const dns::SigningKey& key) {
    return !keys_.use_of(key).is_rolled && std::ranges::find(published, key.dnskey()) == published.end();
  });
}

bool ZoneSigner::has_keys_of(const ZoneSigner& other) const {
  return std::ranges::equal(keys_.all(), other.keys_.all(), [&](const auto& a, const auto& b) {
    return a.dnskey() == b.dnskey() && keys_.use_of(a) == other.keys_.use_of(b);
  });
}

ZoneSigner::LastSignature ZoneSigner::last_signature(const zone::ZoneView& zone,
                                                     std::uint64_t now) {
  constexpr std::size_t kExpirationAt = 6, kInceptionAt = 10;  // behind the type that is covered
  LastSignature last;
  if (!zone || !zone.loaded()) return last;
  zone.soa().for_each_signature([&](ByteView rest) {
    if (rest.size() < kInceptionAt + 4) return;
    const auto end = dns::whole_time(load_be32(rest.data() + kExpirationAt), now);
    const auto made =
        dns::whole_time(load_be32(rest.data() + kInceptionAt), now) + zone::kInceptionLead;
    if (made > last.made) last = {made, end};
  });
  return last;
}

bool has_signers_records(const zone::ZoneView& zone) {
  return zone && zone.loaded() &&
         (zone.denial() != zone::Denial::kUnsigned || zone.soa().signature_count() != 0 ||
          zone.apex_record().find(dns::RRType::kDNSKEY).count() != 0);
}

Result<ZoneSigner::Owned> ZoneSigner::borrow() const {
  {
    const std::scoped_lock lock(mutex_);
    if (!unused_.empty()) {
      Owned signer = std::move(unused_.back());
      unused_.pop_back();
      return signer;
    }
  }
  auto made = zone::SetSigner::make(apex_, keys_, {});
  if (!made) return pass(made);
  return std::make_unique<zone::SetSigner>(std::move(*made));
}

void ZoneSigner::give_back(Owned signer) const {
  const std::scoped_lock lock(mutex_);
  unused_.push_back(std::move(signer));
}

}  // namespace pando::manager
