#pragma once

#include <unistd.h>

#include <memory>
#include <string>

#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

namespace pando::fuzz {

/// A live store with one zone, "example.", whose file lives as long as its mapping.
class ServedZone {
 public:
  explicit ServedZone(const std::string& zone_text, const zone::ServerSettings& server = {})
      : apex_(dns::Name::from_text("example.").value()),
        path_("/dev/shm/pando-fuzz-" + std::to_string(::getpid()) + ".store") {
    shm::StoreOptions options;
    options.path = path_;
    options.size_limit = std::uint64_t{64} << 20;
    options.layout = zone::layout_fingerprint();
    auto store = shm::Store::create(options);
    PANDO_ASSERT(store);
    store_ = std::make_unique<shm::Store>(std::move(*store));
    put(zone_text, server);
  }
  ~ServedZone() { ::unlink(path_.c_str()); }
  ServedZone(const ServedZone&) = delete;
  ServedZone& operator=(const ServedZone&) = delete;

  [[nodiscard]] const dns::Name& apex() const noexcept { return apex_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }
  [[nodiscard]] shm::Store& store() noexcept { return *store_; }
  [[nodiscard]] zone::StoreView view() const noexcept {
    const auto current = store_->current();
    return {store_->window(), current.root, current.number};
  }
  [[nodiscard]] zone::ZoneView zone() const noexcept { return view().zone_at(apex_); }

 private:
  void put(const std::string& zone_text, const zone::ServerSettings& server) {
    auto transaction = store_->begin();
    zone::Draft draft(transaction, {}, 2);
    PANDO_ASSERT(draft.put_server_settings(server));
    zone::ZoneSettings settings;
    settings.allow_query = {{}};
    PANDO_ASSERT(draft.put_zone_settings(apex_, settings, 0));
    zone::ZoneBuilder builder(apex_, transaction);
    dns::ScanOptions options;
    options.origin = apex_;
    const auto report =
        dns::scan_zone_text(zone_text, "zone", options, [&](const dns::ScannedRecord& record) {
          return builder.add(record.owner, record.type, record.ttl, record.rdata);
        });
    PANDO_ASSERT(report.ok());
    auto built = builder.finish();
    PANDO_ASSERT(built);
    PANDO_ASSERT(draft.put_zone(apex_, **built, {}));
    const auto root = draft.root();
    PANDO_ASSERT(store_->publish(std::move(transaction), root, 0));
  }

  dns::Name apex_;
  std::string path_;
  std::unique_ptr<shm::Store> store_;
};

}  // namespace pando::fuzz
