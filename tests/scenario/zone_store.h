#pragma once

#include <unistd.h>

#include <cstdio>
#include <optional>
#include <stdexcept>
#include <string>

#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "tests/scenario/scenario_file.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

/// A store of its own for the zones of one scenario.
namespace scenario {

template <class T>
T need(pando::Result<T>&& result) {
  if (!result) throw std::runtime_error(result.error().text);
  return std::move(*result);
}
inline void check(const pando::Status& status) {
  if (!status) throw std::runtime_error(status.error().text);
}

class ZoneStore {
 public:
  explicit ZoneStore(const std::vector<Zone>& zones, const std::string& zone_folder)
      : path_(::testing::TempDir() + "scenario-" + std::to_string(::getpid()) + ".store"),
        store_(need(pando::shm::Store::create({.path = path_,
                                               .size_limit = 64U << 20,
                                               .layout = pando::zone::layout_fingerprint(),
                                               .allow_any_filesystem = true}))) {
    auto transaction = store_.begin();
    pando::zone::Draft draft(transaction, {}, 2);
    std::uint32_t side = 0;
    for (const Zone& zone : zones) add(draft, transaction, zone, zone_folder, side++);
    const auto root = draft.root();
    need(store_.publish(std::move(transaction), root, 0));
  }
  ~ZoneStore() { std::remove(path_.c_str()); }
  ZoneStore(const ZoneStore&) = delete;
  ZoneStore& operator=(const ZoneStore&) = delete;

  [[nodiscard]] pando::zone::StoreView view() const {
    const auto current = store_.current();
    return {store_.window(), current.root, current.number};
  }

 private:
  static void add(pando::zone::Draft& draft, pando::shm::Transaction& transaction, const Zone& zone,
                  const std::string& folder, std::uint32_t side) {
    const auto apex = need(pando::dns::Name::from_text(zone.name));
    check(draft.put_zone_settings(apex, {}, side));
    if (!zone.loaded) return;
    pando::zone::ZoneBuilder builder(apex, transaction);
    const auto sink = [&](const pando::dns::ScannedRecord& record) {
      return builder.add(record.owner, record.type, record.ttl, record.rdata);
    };
    pando::dns::ScanOptions options;
    options.origin = apex;
    const auto report = zone.file.empty()
                            ? pando::dns::scan_zone_text(zone.text, zone.name, options, sink)
                            : pando::dns::scan_zone_file(folder + "/" + zone.file, options, sink);
    if (!report.ok()) throw std::runtime_error(report.errors.front());
    const auto built = need(builder.finish());
    check(draft.put_zone(apex, *built, {}));
  }

  std::string path_;
  pando::shm::Store store_;
};

}  // namespace scenario
