#include "manager/dnssec/zone_signer.h"

#include <algorithm>

namespace pando::manager {

zone::SignatureTimes ZoneSigner::spread_times(std::uint64_t now) const noexcept {
  zone::SignatureTimes spread = times(now);
  spread.spread = static_cast<std::uint32_t>(options_.validity / 7 * 4);
  return spread;
}

bool ZoneSigner::is_slow() const noexcept {
  constexpr std::uint8_t kP256 = 13, kEd25519 = 15;
  return std::ranges::any_of(keys_.all(), [](const dns::SigningKey& key) {
    return key.algorithm() != kP256 && key.algorithm() != kEd25519;
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
  if (!zone || !zone.loaded() || !zone::is_denied_by(zone, options_.denial)) return false;
  if (zone.apex_record().find(dns::RRType::kDNSKEY).signature_count() == 0) return false;
  const std::vector<Bytes> published = dnskeys_of(zone);
  return published.size() == keys_.all().size() &&
         std::ranges::all_of(published, [this](const Bytes& one) { return is_ours(one); });
}

bool ZoneSigner::is_signed_by_others(const zone::ZoneView& zone) const {
  if (!zone || !zone.loaded()) return false;
  const std::vector<Bytes> published = dnskeys_of(zone);
  return std::ranges::any_of(published, [this](const Bytes& one) { return !is_ours(one); });
}

bool ZoneSigner::is_clock_behind(const zone::ZoneView& zone, std::uint64_t now) {
  constexpr std::size_t kInceptionAt = 10;  // behind the type that is covered
  constexpr std::uint64_t kDay = 86400;
  bool is_behind = false;
  zone.soa().for_each_signature([&](ByteView rest) {
    if (rest.size() < kInceptionAt + 4) return;
    const std::uint64_t inception = load_be32(rest.data() + kInceptionAt);
    is_behind = is_behind || inception > now + kDay;
  });
  return is_behind;
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
