#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "dns/rdata/rdata.h"
#include "tests/unit/shm/support.h"
#include "zone/builder/zone_builder.h"
#include "zone/draft/draft.h"

namespace pando::manager::testing {

inline dns::Name name(std::string_view text) {
  return dns::Name::from_text(text, dns::Name::from_text("example.").value()).value();
}

/// "OWNER TTL TYPE RDATA": one record a line; relative names are below "example.".
inline zone::Record record(const std::string& line) {
  std::istringstream words(line);
  std::string owner, type, rdata;
  std::uint32_t ttl = 0;
  words >> owner >> ttl >> type;
  std::getline(words >> std::ws, rdata);
  zone::Record result{name(owner), dns::rrtype_from_text(type).value(), dns::Ttl{ttl}, {}};
  const auto read = dns::rdata_from_text(result.type, rdata, name("@"), result.rdata);
  EXPECT_TRUE(read.has_value()) << line;
  return result;
}

inline const std::vector<std::string> kBasicZone = {
    "@ 3600 SOA ns1 admin 10 3600 600 86400 300",
    "@ 3600 NS ns1",
    "@ 3600 NS ns2",
    "ns1 3600 A 192.0.2.1",
    "ns2 3600 A 192.0.2.2",
    "www 300 A 192.0.2.10",
    "www 300 A 192.0.2.11",
    "www 300 AAAA 2001:db8::10",
    "alias 300 CNAME www",
    "a.b.deep 300 TXT \"below an empty non-terminal\"",
};

/// A store on tmpfs with one zone, "example.", and what updates do to it.
class ZoneStore {
 public:
  explicit ZoneStore(const std::vector<std::string>& lines = kBasicZone,
                     std::uint64_t size_limit = 64 << 20)
      : store_(make(size_limit)) {
    put(lines);
  }

  [[nodiscard]] shm::Store& store() { return store_; }
  [[nodiscard]] std::string path() const { return folder_.store(); }
  [[nodiscard]] zone::StoreView view() const {
    const shm::VersionInfo version = store_.current();
    return {store_.window(), version.root, version.number};
  }
  [[nodiscard]] zone::ZoneView zone() const { return view().zone_at(name("@")); }

  zone::Applied apply(const zone::Changeset& changes) {
    shm::Transaction transaction = store_.begin();
    zone::Draft draft(transaction, store_.current().root, store_.current().number + 1);
    auto applied = draft.apply(changes, {});
    EXPECT_TRUE(applied.has_value()) << (applied ? "" : applied.error().text);
    EXPECT_TRUE(store_.publish(std::move(transaction), draft.root(), 0).has_value());
    return applied ? std::move(*applied) : zone::Applied{};
  }

  /// Runs `work(Draft&)` in a transaction and publishes it.
  template <class Work>
  void commit(Work&& work) {
    shm::Transaction transaction = store_.begin();
    zone::Draft draft(transaction, store_.current().root, store_.current().number + 1);
    const Status done = work(draft);
    ASSERT_TRUE(done.has_value()) << done.error().text;
    ASSERT_TRUE(store_.publish(std::move(transaction), draft.root(), 0).has_value());
  }

  /// Puts the zone whole.
  void put(const std::vector<std::string>& lines) {
    shm::Transaction transaction = store_.begin();
    zone::ZoneBuilder builder(name("@"), transaction);
    for (const std::string& line : lines) {
      const zone::Record one = record(line);
      ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata).has_value()) << line;
    }
    auto built = builder.finish();
    ASSERT_TRUE(built.has_value()) << built.error().text;
    zone::Draft draft(transaction, store_.current().root, store_.current().number + 1);
    ASSERT_TRUE(draft.put_zone_settings(name("@"), {}, 0).has_value());
    ASSERT_TRUE(draft.put_zone(name("@"), **built, {}).has_value());
    ASSERT_TRUE(store_.publish(std::move(transaction), draft.root(), 0).has_value());
  }

  /// As after a restart: what `make(options)` gives takes the store's place. Nobody reads it yet.
  template <class Make>
  void reopen(std::uint64_t size_limit, Make&& make) {
    shm::StoreOptions options = shm::test::options(folder_, size_limit);
    options.layout = zone::layout_fingerprint();
    {
      const shm::Store gone(std::move(store_));
    }
    store_ = shm::test::must(make(options));
  }

  /// All records as "owner ttl TYPE rdata", sorted.
  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> all;
    const zone::ZoneView view = zone();
    auto cursor = view.begin();
    while (const zone::RecordView found = cursor.next()) {
      const std::string owner = to_text(view.owner_of(found));
      found.for_each_rrset([&](const zone::RRsetView& rrset) {
        rrset.for_each_rdata([&](ByteView rdata) {
          all.push_back(fmt::format("{} {} {} {}", owner, rrset.ttl().seconds,
                                    to_text(rrset.type()),
                                    dns::rdata_to_text(rrset.type(), rdata)));
        });
      });
    }
    std::sort(all.begin(), all.end());
    return all;
  }
  /// Those of one owner, without it.
  [[nodiscard]] std::vector<std::string> at(std::string_view owner) const {
    const std::string prefix = to_text(name(owner)) + " ";
    std::vector<std::string> found;
    for (const std::string& line : lines())
      if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
    return found;
  }

 private:
  shm::Store make(std::uint64_t size_limit) {
    shm::StoreOptions options = shm::test::options(folder_, size_limit);
    options.layout = zone::layout_fingerprint();
    return shm::test::must(shm::Store::create(options));
  }
  shm::test::Folder folder_;
  shm::Store store_;
};

}  // namespace pando::manager::testing
