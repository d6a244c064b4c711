#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "dns/zonefile/zone_scanner.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

namespace pando::testing {

inline dns::Name name(std::string_view text) {
  auto parsed = dns::Name::from_text(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : dns::Name();
}

inline zone::AclRule allow_all() { return {}; }
inline zone::AclRule allow_address(std::string_view prefix) {
  zone::AclRule rule;
  rule.address = IpPrefix::from_text(prefix).value();
  return rule;
}
inline zone::AclRule allow_tls(std::string_view remote) {
  zone::AclRule rule;
  rule.tls = std::string(remote);
  return rule;
}
inline zone::AclRule allow_key(std::string_view key) {
  zone::AclRule rule;
  rule.key = name(key);
  return rule;
}

struct TestZone {
  std::string apex;
  std::string text;  ///< zone file; empty = not loaded
  zone::ZoneSettings settings = {{allow_all()}, {}, {}, {}, false, false};
};

/// A live store on tmpfs with some zones, as a manager would have made it.
class ZoneStore {
 public:
  explicit ZoneStore(const std::vector<TestZone>& zones, const zone::ServerSettings& server = {}) {
    static std::atomic<int> number{0};
    path_ =
        "/dev/shm/pando-worker-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
    shm::StoreOptions options;
    options.path = path_;
    options.size_limit = std::uint64_t{1} << 30;
    options.layout = zone::layout_fingerprint();
    store_ = std::make_unique<shm::Store>(shm::Store::create(options).value());
    auto transaction = store_->begin();
    zone::Draft draft(transaction, {}, 2);
    EXPECT_TRUE(draft.put_server_settings(server));
    for (const auto& zone : zones) add(draft, transaction, zone, zones_++);
    const auto root = draft.root();
    EXPECT_TRUE(store_->publish(std::move(transaction), root, 0));
  }
  ~ZoneStore() {
    store_.reset();
    ::unlink(path_.c_str());
  }
  ZoneStore(const ZoneStore&) = delete;
  ZoneStore& operator=(const ZoneStore&) = delete;

  [[nodiscard]] zone::StoreView view() const {
    const auto current = store_->current();
    return {store_->window(), current.root, current.number};
  }
  /// Publishes a version with one zone more.
  void add(const TestZone& zone) {
    auto transaction = store_->begin();
    const auto before = store_->current();
    zone::Draft draft(transaction, before.root, before.number + 1);
    add(draft, transaction, zone, zones_++);
    const auto root = draft.root();
    EXPECT_TRUE(store_->publish(std::move(transaction), root, 0));
  }
  /// Publishes a version in which `changes` were made.
  void apply(const zone::Changeset& changes) {
    auto transaction = store_->begin();
    const auto before = store_->current();
    zone::Draft draft(transaction, before.root, before.number + 1);
    ASSERT_TRUE(draft.apply(changes, {}));
    const auto root = draft.root();
    ASSERT_TRUE(store_->publish(std::move(transaction), root, 0));
  }
  [[nodiscard]] shm::Store& store() { return *store_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  static void add(zone::Draft& draft, shm::Transaction& transaction, const TestZone& zone,
                  std::uint32_t side) {
    const dns::Name apex = name(zone.apex);
    EXPECT_TRUE(draft.put_zone_settings(apex, zone.settings, side));
    if (zone.text.empty()) return;
    zone::ZoneBuilder builder(apex, transaction);
    dns::ScanOptions options;
    options.origin = apex;
    const auto report =
        dns::scan_zone_text(zone.text, zone.apex, options, [&](const dns::ScannedRecord& record) {
          return builder.add(record.owner, record.type, record.ttl, record.rdata);
        });
    EXPECT_TRUE(report.ok()) << (report.ok() ? "" : report.errors.front());
    auto built = builder.finish();
    ASSERT_TRUE(built) << (built ? "" : built.error().text);
    EXPECT_TRUE(draft.put_zone(apex, **built, {}));
  }

  std::string path_;
  std::uint32_t zones_ = 0;
  std::unique_ptr<shm::Store> store_;
};

}  // namespace pando::testing
