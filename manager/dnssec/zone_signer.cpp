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

bool ZoneSigner::has_signed(const zone::ZoneView& zone) const {
  if (!zone || !zone.loaded() || zone.denial() != zone::Denial::kNsec) return false;
  const zone::RRsetView published = zone.apex_record().find(dns::RRType::kDNSKEY);
  if (!published || published.signature_count() == 0) return false;
  std::vector<Bytes> rdatas;
  published.for_each_rdata(
      [&](ByteView rdata) { rdatas.emplace_back(rdata.begin(), rdata.end()); });
  return rdatas.size() == keys_.all().size() &&
         std::ranges::all_of(keys_.all(), [&](const dns::SigningKey& key) {
           return std::ranges::find(rdatas, key.dnskey()) != rdatas.end();
         });
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
