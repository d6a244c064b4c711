#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <vector>

#include "dns/rdata/rdata.h"
#include "shm/store.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"
#include "zone/record/shared_sets.h"

namespace pando::zone::testing {

/// Name from text; aborts the test on a typo.
inline dns::Name name(std::string_view text) {
  auto parsed = dns::Name::from_text(text);
  EXPECT_TRUE(parsed) << text;
  return parsed ? *parsed : dns::Name();
}

/// "owner ttl TYPE rdata…" → Record; the names are completed with the root.
inline Record record(std::string_view line) {
  const auto word = [&] {
    const auto start = line.find_first_not_of(' ');
    line.remove_prefix(start == std::string_view::npos ? line.size() : start);
    const auto end = std::min(line.find(' '), line.size());
    const auto result = line.substr(0, end);
    line.remove_prefix(end);
    return std::string(result);
  };
  Record result;
  result.owner = name(word());
  result.ttl = {static_cast<std::uint32_t>(std::stoul(word()))};
  const auto type = dns::rrtype_from_text(word());
  EXPECT_TRUE(type);
  result.type = type ? *type : dns::RRType{};
  const auto read = dns::rdata_from_text(result.type, line, dns::NameView(), result.rdata);
  EXPECT_TRUE(read) << line << (read ? "" : read.error().text);
  return result;
}

/// "owner ttl TYPE rdata" of each record, sorted by the walk's own order.
inline std::vector<std::string> dump(const ZoneView& zone) {
  std::vector<std::string> lines;
  auto cursor = zone.begin();
  while (const RecordView view = cursor.next()) {
    const std::string owner = dns::to_text(zone.owner_of(view));
    view.for_each_rrset([&](const RRsetView& set) {
      const auto add = [&](dns::RRType type, ByteView rdata) {
        lines.push_back(owner + " " + std::to_string(set.ttl().seconds) + " " + dns::to_text(type) +
                        " " + dns::rdata_to_text(type, rdata));
      };
      set.for_each_rdata([&](ByteView rdata) { add(set.type(), rdata); });
      set.for_each_signature([&](ByteView rest) {
        Bytes whole;
        append_be16(whole, static_cast<std::uint16_t>(set.type()));
        append(whole, rest);
        add(dns::RRType::kRRSIG, whole);
      });
    });
  }
  return lines;
}

/// A store of its own in shared memory, removed at the end.
class ZoneTest : public ::testing::Test {
 protected:
  ZoneTest() {
    static std::atomic<int> number{0};
    path_ =
        "/dev/shm/pando-zone-test-" + std::to_string(::getpid()) + "-" + std::to_string(number++);
    shm::StoreOptions options;
    options.path = path_;
    options.size_limit = std::uint64_t{256} << 20;
    options.layout = layout_fingerprint();
    auto made = shm::Store::create(options);
    EXPECT_TRUE(made) << (made ? "" : made.error().text);
    store_ = std::make_unique<shm::Store>(std::move(*made));
  }
  ~ZoneTest() override {
    store_.reset();
    ::unlink(path_.c_str());
  }

  [[nodiscard]] StoreView view() const {
    const auto current = store_->current();
    return StoreView(store_->window(), current.root, current.number);
  }
  [[nodiscard]] ZoneView zone(std::string_view apex) const { return view().zone_at(name(apex)); }

  /// Runs `work(Draft&)` in a transaction and publishes it when that succeeded.
  template <class Work>
  auto commit(Work&& work) {
    shm::Transaction transaction = store_->begin();
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    auto result = work(draft);
    if (result) {
      const auto published = store_->publish(std::move(transaction), draft.root(), 0);
      EXPECT_TRUE(published) << (published ? "" : published.error().text);
    }
    return result;
  }

  /// Configures and loads a zone from lines of text.
  Status load(std::string_view apex, const std::vector<std::string>& lines,
              const ZoneSettings& settings = {}, std::uint64_t worth_sharing = kWorthSharing) {
    std::vector<Record> records;
    for (const std::string& line : lines) records.push_back(record(line));
    return load_records(apex, records, settings, worth_sharing);
  }
  Status load_records(std::string_view apex, const std::vector<Record>& records,
                      const ZoneSettings& settings = {},
                      std::uint64_t worth_sharing = kWorthSharing) {
    shm::Transaction building = store_->begin_private();
    ZoneBuilder builder(name(apex), building);
    builder.share_from(worth_sharing);
    for (const Record& r : records) {
      if (auto added = builder.add(r.owner, r.type, r.ttl, r.rdata); !added) return added;
    }
    auto built = builder.finish();
    if (!built) return pass(built);
    shm::Transaction transaction = store_->begin();
    transaction.absorb(std::move(building));
    const auto current = store_->current();
    Draft draft(transaction, current.root, current.number + 1);
    if (auto put = draft.put_zone_settings(name(apex), settings, 1); !put) return put;
    if (auto put = draft.put_zone(name(apex), **built, {}); !put) return put;
    auto published = store_->publish(std::move(transaction), draft.root(), 0);
    if (!published) return pass(published);
    return {};
  }

  Result<Applied> apply(std::string_view apex, const std::vector<std::string>& removed,
                        const std::vector<std::string>& added, const DataLimits& limits = {}) {
    Changeset changes;
    changes.zone = name(apex);
    for (const auto& line : removed) changes.removed.push_back(record(line));
    for (const auto& line : added) changes.added.push_back(record(line));
    return commit([&](Draft& draft) { return draft.apply(changes, limits); });
  }

  std::string path_;
  std::unique_ptr<shm::Store> store_;
};

inline const std::vector<std::string> kSmallZone = {
    "example. 3600 SOA ns.example. admin.example. 7 7200 3600 1209600 300",
    "example. 3600 NS ns.example.",
    "ns.example. 3600 A 192.0.2.1",
    "www.example. 300 A 192.0.2.10",
    "www.example. 300 A 192.0.2.11",
    "*.wild.example. 60 TXT \"any\"",
    "a.b.c.example. 60 A 192.0.2.20",
    "sub.example. 600 NS ns.sub.example.",
    "ns.sub.example. 600 A 192.0.2.30",
    "d.example. 600 DNAME target.example.net.",
};

}  // namespace pando::zone::testing
