#include "http/observe/zone_facts.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "base/bytes.h"
#include "dns/name.h"
#include "http/observe/consistent.h"
#include "shm/side_table.h"
#include "zone/read/store_view.h"
#include "zone/settings/compiled_settings.h"

namespace pando::http {

namespace {

/// Zones read between two checks of the version: some 20 µs, in which a version seldom ends.
constexpr std::size_t kZonesPerLook = 64;

/// A zone as it was copied from a version that may be over: nothing here may be trusted yet, not
/// even that the octets are a name.
struct Copied {
  std::array<std::uint8_t, 256> apex;  // its length is one octet in the store, and a root label
  std::size_t apex_octets = 0;
  Bytes settings;
  ZoneFacts facts;
};

Copied copy_zone(const zone::ZoneView& zone, const shm::Window& window) {
  Copied copied;
  const dns::NameView apex = zone.apex();
  copied.apex_octets = std::min(apex.size(), copied.apex.size());
  std::memcpy(copied.apex.data(), apex.data(), copied.apex_octets);
  ZoneFacts& facts = copied.facts;
  facts.loaded = zone.loaded();
  facts.serial = zone.loaded() ? zone.serial().value : 0;
  facts.records = zone.record_count();
  facts.names = zone.name_count();
  facts.history_bytes = zone.history_bytes();
  facts.data_version = zone.data_version();
  const auto figures = zone::ZoneFigures::of(zone);
  facts.data_bytes = figures.data_bytes;
  facts.changed_at = figures.changed_at;
  facts.has_denial = zone.denial() != zone::Denial::kUnsigned;
  const ByteView settings = zone.settings_bytes();
  copied.settings.assign(settings.begin(), settings.end());
  if (const auto* side = shm::known_side(window, zone.side_index())) {
    facts.refresh_at = side->next_refresh.load(std::memory_order_relaxed);
    facts.last_ok = side->last_ok.load(std::memory_order_relaxed);
    facts.expires_at = side->expires_at.load(std::memory_order_relaxed);
    facts.signatures_end = shm::signatures_end(*side);
  }
  return copied;
}

std::vector<Copied> copy_zones(const zone::StoreView& view, const shm::Window& window,
                               const std::optional<dns::Name>& after, std::size_t most) {
  std::vector<Copied> copies;
  zone::ZoneWalk walk(view);
  if (after) walk.seek_after(*after);
  while (copies.size() < most) {
    const zone::ZoneView zone = walk.next();
    if (!zone) break;
    copies.push_back(copy_zone(zone, window));
  }
  return copies;
}

dns::NameView apex_of(const Copied& copied) noexcept {
  return {copied.apex.data(), copied.apex_octets};
}

/// The facts in a copy. It must be consistent (of one version), so that its octets are a name.
ZoneFacts facts_of(Copied&& copied) {
  ZoneFacts facts = std::move(copied.facts);
  facts.name = to_text(apex_of(copied));
  facts.count_key = ipc::zone_count_key(apex_of(copied));
  const auto settings = zone::decode_zone_settings(copied.settings);
  facts.secondary = settings && settings->is_secondary;
  return facts;
}

/// Collects the zones of a page, range by range.
class PageReader {
 public:
  PageReader(const shm::Observer& observer, const ZonePageRequest& request)
      : observer_(observer), request_(request), after_(request.after) {}

  Result<ZonePage> read() {
    if (request_.ranges.empty()) {
      if (auto done = walk(nullptr); !done) return pass(done);
    }
    for (const ZoneRange& range : request_.ranges) {
      if (is_full()) break;
      auto done = range.below ? walk_below(range.base) : look_up(range.base);
      if (!done) return pass(done);
    }
    if (is_full()) page_.next = after_;
    return std::move(page_);
  }

 private:
  [[nodiscard]] bool is_full() const noexcept {
    return page_.zones.size() >= request_.most_found || page_.looked >= request_.most_looked;
  }

  /// True when the page has room for more.
  bool take(Copied&& copied) {
    ++page_.looked;
    after_ = dns::Name(apex_of(copied));
    ZoneFacts facts = facts_of(std::move(copied));
    if (!request_.fits || request_.fits(facts)) page_.zones.push_back(std::move(facts));
    return !is_full();
  }

  Status look_up(const dns::Name& apex) {
    if (after_ && dns::compare_canonical(apex, *after_) <= 0) return {};
    auto copy = read_consistently(
        observer_, [&](const zone::StoreView& view, const shm::Window& window) {
          const zone::ZoneView zone = view.zone_at(apex);
          return zone ? std::optional(copy_zone(zone, window)) : std::nullopt;
        });
    if (!copy) return pass(copy);
    if (*copy) take(std::move(**copy));
    return {};
  }

  Status walk_below(const dns::Name& base) {
    if (!after_ || dns::compare_canonical(*after_, base) < 0) after_ = base;
    if (!after_->view().is_at_or_below(base)) return {};  // an earlier page was past this range
    return walk(&base);
  }

  /// All zones after after_ that are below `base`, which may be null.
  Status walk(const dns::Name* base) {
    for (;;) {
      auto copies = read_consistently(
          observer_, [&](const zone::StoreView& view, const shm::Window& window) {
            return copy_zones(view, window, after_, kZonesPerLook);
          });
      if (!copies) return pass(copies);
      for (Copied& copied : *copies) {
        if (base != nullptr && !apex_of(copied).is_at_or_below(*base)) return {};
        if (!take(std::move(copied))) return {};
      }
      if (copies->size() < kZonesPerLook) return {};
    }
  }

  const shm::Observer& observer_;
  const ZonePageRequest& request_;
  std::optional<dns::Name> after_;
  ZonePage page_;
};

}  // namespace

Result<StoreFacts> read_store(const shm::Observer& observer, std::size_t most_zones,
                              std::vector<ZoneFacts>& zones) {
  auto facts = read_consistently(observer, [](const zone::StoreView& view, const shm::Window&) {
    return StoreFacts{view.version(), 0, view.history_bytes(), view.zone_count()};
  });
  if (!facts) return facts;
  facts->memory_bytes = observer.memory_bytes();
  std::optional<dns::Name> after;
  while (zones.size() < most_zones) {
    const std::size_t most = std::min(kZonesPerLook, most_zones - zones.size());
    auto copies =
        read_consistently(observer, [&](const zone::StoreView& view, const shm::Window& window) {
          return copy_zones(view, window, after, most);
        });
    if (!copies) return pass(copies);
    for (Copied& copied : *copies) {
      after = dns::Name(apex_of(copied));
      zones.push_back(facts_of(std::move(copied)));
    }
    if (copies->size() < most) break;
  }
  return facts;
}

Result<ZonePage> read_zone_page(const shm::Observer& observer, const ZonePageRequest& request) {
  return PageReader(observer, request).read();
}

}  // namespace pando::http
