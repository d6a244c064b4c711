#include "zone/read/read_ahead.h"

#include "base/result.h"
#include "zone/read/fetch.h"
#include "zone/trie/zone_layout.h"

namespace pando::zone {

void ReadAhead::add(const dns::Name& name, bool dnssec_ok) noexcept {
  PANDO_ASSERT(count_ < kNames);
  dnssec_ok_[count_] = dnssec_ok;
  keys_[count_++].emplace(name);
}

void ReadAhead::find_zones(const StoreView& store) noexcept {
  // A trie of few zones is in the caches: then a separate descent costs more than it saves.
  constexpr std::uint64_t kFewZones = 64;
  if (store.zone_count() > kFewZones) {
    const Trie zones = store.zones();
    for (std::size_t i = 0; i < count_; ++i) {
      zones.start(keys_[i]->whole(), descents_[i]);
      keys_[i]->remember(&descents_[i]);
    }
    Trie::run_all(zones.window(), {descents_.data(), count_});
  }
  for (std::size_t i = 0; i < count_; ++i) zones_[i] = store.find_zone(*keys_[i]);
}

void ReadAhead::run(const StoreView& store) noexcept {
  find_zones(store);
  for (std::size_t i = 0; i < count_; ++i) {
    const ZoneView& zone = zones_[i];
    descents_[i].state = TrieDescent::State::kNone;
    if (!zone || !zone.loaded()) continue;
    // Each lookup reads the flags of the apex' record.
    fetch(zone.window_.base() + shm::Ref<>{zone.entry_->apex}.offset());
    zone.names().start(keys_[i]->below(zone.apex().label_count()), descents_[i]);
    keys_[i]->remember(&descents_[i]);
  }
  Trie::run_all(store.zones().window(), {descents_.data(), count_});
  for (std::size_t i = 0; i < count_; ++i) {
    const ZoneView& zone = zones_[i];
    matches_[i] = zone ? zone.lookup(*keys_[i], wanted_in(zone, dnssec_ok_[i])) : Match();
  }
}

}  // namespace pando::zone
