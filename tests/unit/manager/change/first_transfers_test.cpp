#include "manager/change/first_transfers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace first_transfers_test {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using testing::kinds_of;
using testing::name;
using testing::Parts;
using testing::record;

class ZonesSentFirst : public ::testing::Test {
 protected:
  ZonesSentFirst() {
    parts_.committer.on_published([this](const PublishedVersion& version) {
      for (const PublishedZone& changed : version.changed)
        changed_.push_back(to_text(changed.zone));
    });
  }
  void configure(const std::vector<dns::Name>& zones) {
    ASSERT_TRUE(parts_.edit([&](zone::Draft& draft) -> Status {
      for (const dns::Name& zone : zones)
        if (auto made = draft.put_zone_settings(zone, {}, 0); !made) return made;
      return {};
    }));
  }
  /// As transfers do: built in a transaction of its own, which `then` changes.
  void put(
      const dns::Name& zone, std::uint32_t serial = 1,
      const std::function<void(shm::Transaction&)>& then = [](shm::Transaction&) {}) {
    shm::Transaction transaction = parts_.zone.store().begin_private();
    zone::ZoneBuilder builder(zone, transaction);
    const auto add = [&](const zone::Record& one) {
      return builder.add(zone, one.type, one.ttl, one.rdata).has_value();
    };
    ASSERT_TRUE(add(record(fmt::format("@ 60 SOA ns1 admin {} 3600 600 86400 300", serial))));
    ASSERT_TRUE(add(record("@ 60 NS ns1")));
    auto built = builder.finish();
    ASSERT_TRUE(built.has_value()) << built.error().text;
    then(transaction);
    ZoneChange change;
    change.zone = zone;
    change.source = ChangeSource::kTransfer;
    change.is_whole = true;
    change.content = WholeZone{*built, std::move(transaction)};
    change.check = [this, zone](const zone::StoreView&) {
      return check_ ? check_(zone) : Status();
    };
    change.done = [this, zone](const Result<ChangeOutcome>& outcome) {
      ended_.emplace_back(zone, status_of(outcome));
    };
    parts_.road.submit(std::move(change));
    ++asked_;
  }
  void await_all() {
    ASSERT_TRUE(parts_.run_until([this] { return ended_.size() == asked_; }));
  }
  /// Zones that failed, with their errors.
  std::vector<std::pair<std::string, Errc>> failed() const {
    std::vector<std::pair<std::string, Errc>> found;
    for (const auto& [zone, status] : ended_)
      if (!status) found.emplace_back(to_text(zone), status.error().code);
    return found;
  }
  std::optional<std::uint32_t> serial_of(const dns::Name& zone) const {
    const zone::ZoneView view = parts_.committer.current().zone_at(zone);
    return view && view.loaded() ? std::optional(view.serial().value) : std::nullopt;
  }
  std::uint64_t versions() const { return parts_.committer.counters().versions; }

  Parts parts_;
  std::vector<std::string> changed_;  // as the committer names them
  std::vector<std::pair<dns::Name, Status>> ended_;
  std::size_t asked_ = 0;
  std::function<Status(const dns::Name&)> check_;
};

TEST_F(ZonesSentFirst, ThatComeTogetherShareAVersion) {
  configure({name("a"), name("b"), name("c")});
  const std::uint64_t before = versions();
  for (const char* zone : {"a", "b", "c"}) put(name(zone), 7);
  await_all();
  EXPECT_THAT(failed(), IsEmpty());
  EXPECT_EQ(versions(), before + 1);
  for (const char* zone : {"a", "b", "c"}) EXPECT_EQ(serial_of(name(zone)), 7U);
  EXPECT_THAT(changed_, ElementsAre("a.example.", "b.example.", "c.example."));
  EXPECT_THAT(parts_.journalled(), IsEmpty());
}

TEST_F(ZonesSentFirst, ComeInSeveralVersionsIfThereAreMany) {
  std::vector<dns::Name> zones;
  for (int i = 0; i < 200; ++i) zones.push_back(name(fmt::format("z{}", i)));
  configure(zones);
  const std::uint64_t before = versions();
  for (const dns::Name& zone : zones) put(zone);
  await_all();
  EXPECT_THAT(failed(), IsEmpty());
  EXPECT_EQ(versions(), before + 4);
  for (const dns::Name& zone : zones) EXPECT_EQ(serial_of(zone), 1U);
}

TEST_F(ZonesSentFirst, ThatReplaceDataAreJournalledAsBefore) {
  configure({name("a")});
  put(name("@"), 20);
  put(name("a"));
  await_all();
  ASSERT_TRUE(parts_.run_until([this] { return !parts_.committer.busy(); }));
  EXPECT_THAT(failed(), IsEmpty());
  EXPECT_EQ(serial_of(name("@")), 20U);
  EXPECT_THAT(kinds_of(parts_.journalled()), ElementsAre(RecordKind::kBase, RecordKind::kTransfer));
}

/// The zone was frozen, or has other primaries by now.
TEST_F(ZonesSentFirst, ThatTheirSourceRefusesByNowFailAlone) {
  configure({name("a"), name("b")});
  check_ = [](const dns::Name& zone) {
    return zone == name("a") ? Status(fail(Errc::kDenied, "frozen")) : Status();
  };
  for (const char* zone : {"a", "b"}) put(name(zone));
  await_all();
  EXPECT_THAT(failed(), ElementsAre(std::pair("a.example.", Errc::kDenied)));
  EXPECT_EQ(serial_of(name("a")), std::nullopt);
  EXPECT_EQ(serial_of(name("b")), 1U);
}

TEST_F(ZonesSentFirst, ThatHaveLeftFailAlone) {
  configure({name("a"), name("c")});
  for (const char* zone : {"a", "b", "c"}) put(name(zone));
  await_all();
  EXPECT_THAT(failed(), ElementsAre(std::pair("b.example.", Errc::kNotFound)));
  EXPECT_EQ(serial_of(name("a")), 1U);
  EXPECT_EQ(serial_of(name("c")), 1U);
}

/// From other primaries, since the configuration changed meanwhile.
TEST_F(ZonesSentFirst, ThatComeTwiceHaveTheLastData) {
  configure({name("a")});
  put(name("a"), 1);
  put(name("a"), 2);
  await_all();
  EXPECT_THAT(failed(), IsEmpty());
  EXPECT_EQ(serial_of(name("a")), 2U);
}

TEST_F(ZonesSentFirst, AreNotPutForAnOwnerThatHasGone) {
  Parts parts;
  std::optional<ChangeRoad> road(std::in_place, parts.io, parts.pool, parts.zone.store(),
                                 parts.slots, parts.committer, ChangeRoad::Options{});
  ASSERT_TRUE(
      parts.edit([&](zone::Draft& draft) { return draft.put_zone_settings(name("a"), {}, 0); }));
  shm::Transaction transaction = parts.zone.store().begin_private();
  zone::ZoneBuilder builder(name("a"), transaction);
  const zone::Record soa = record("@ 60 SOA ns1 admin 1 3600 600 86400 300");
  const zone::Record ns = record("@ 60 NS ns1");
  for (const zone::Record& one : {soa, ns})
    ASSERT_TRUE(builder.add(name("a"), one.type, one.ttl, one.rdata).has_value());
  ZoneChange change;
  change.zone = name("a");
  change.source = ChangeSource::kTransfer;
  change.is_whole = true;
  change.content = WholeZone{builder.finish().value(), std::move(transaction)};
  change.done = [](const Result<ChangeOutcome>&) { ADD_FAILURE() << "nobody is there to be told"; };
  road->submit(std::move(change));
  road.reset();
  ASSERT_TRUE(parts.run_until([&] { return !parts.committer.busy(); }));
  EXPECT_FALSE(parts.committer.current().zone_at(name("a")).loaded());
}

/// A batch is refused as a whole, as in a full store: nobody knows which zones would have fitted.
TEST_F(ZonesSentFirst, ComeOneByOneAfterABatchThatWasRefused) {
  configure({name("a"), name("b"), name("c"), name("d")});
  put(name("a"));
  put(name("b"), 1, [](shm::Transaction& built_in) { built_in.release({}, 8); });
  put(name("c"));
  await_all();
  EXPECT_EQ(failed().size(), 3U);
  EXPECT_EQ(serial_of(name("a")), std::nullopt);
  const std::uint64_t before = versions();
  for (const char* zone : {"a", "c", "d"}) put(name(zone), 2);
  await_all();
  EXPECT_EQ(failed().size(), 3U);
  EXPECT_EQ(versions(), before + 3);
  for (const char* zone : {"a", "c", "d"}) EXPECT_EQ(serial_of(name(zone)), 2U);
  configure({name("e"), name("f")});
  const std::uint64_t then = versions();
  for (const char* zone : {"e", "f"}) put(name(zone));
  await_all();
  EXPECT_EQ(versions(), then + 1) << "that is over";
}

}  // namespace first_transfers_test
}  // namespace pando::manager
