#include "manager/catalog/catalog_consumer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "dns/folded_key.h"
#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/commit/runtime_from.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace catalog_consumer_test {

using testing::name;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Lines = std::vector<std::string>;

constexpr std::uint64_t kDay = 86'400;
constexpr std::uint64_t kBoot = 1'699'990'000;  // in seconds since 1970

/// A consumer of the catalog "example.", with a list that takes what it is told.
class Consumer : public ::testing::Test {
 protected:
  ~Consumer() override { consumer_.stop(); }

  CatalogConsumer::Calls calls() {
    CatalogConsumer::Calls calls;
    calls.update = [this](std::shared_ptr<CatalogUpdate> update,
                          const CatalogConsumer::Calls::Done& done) {
      updates_.push_back(update);
      if (answer_) answer_(*update);
      if (hold_)
        held_.push_back(done);
      else
        done(status_);
    };
    calls.reset = [this](const dns::Name& zone) { reset_.push_back(to_text(zone)); };
    calls.now = [this] { return now_; };
    calls.zone_commands = [this] { return zone_commands_; };
    calls.host_time = [this] { return now_ + kBoot; };
    return calls;
  }
  void look() {
    consumer_.look();
    EXPECT_TRUE(parts_.run_until([this] { return consumer_.idle(); }));
  }
  void answer_held() {
    for (const auto& done : std::exchange(held_, {})) done(status_);
  }
  /// "ZONE TEMPLATE" of the members in the last update.
  [[nodiscard]] Lines members() const {
    Lines members;
    for (const auto& member : updates_.back()->members)
      members.push_back(to_text(member.zone) + " " + member.template_name);
    return members;
  }
  void change(const Lines& removed, const Lines& added) {
    ASSERT_TRUE(parts_.apply(removed, added).has_value());
  }

  testing::Parts parts_;
  std::uint64_t now_ = 10'000;  // since the boot of the host
  std::uint64_t zone_commands_ = 0;
  Status status_;
  bool hold_ = false;  // updates are answered by answer_held()
  std::vector<CatalogConsumer::Calls::Done> held_;
  std::function<void(CatalogUpdate&)> answer_;
  std::vector<std::shared_ptr<CatalogUpdate>> updates_;
  Lines reset_;
  CurrentConfiguration configuration_{
      "", testing::runtime_from("remotes: [{name: up, address: [192.0.2.1]}]\n"
                                "templates: [{name: plain}, {name: gold}]\n"
                                "catalogs: [{zone: example, role: consumer, primaries: [up], "
                                "template: plain, groups: [{name: g, template: gold}]}]\n")};
  CatalogConsumer consumer_{parts_.io,
                            parts_.pool,
                            {configuration_, parts_.zone.store(), parts_.slots, parts_.committer},
                            calls()};
};

TEST_F(Consumer, MembersAndTheirTemplatesGoToTheList) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test.", "b.zones 0 PTR b.test.",
              "group.b.zones 0 TXT other", "group.b.zones 0 TXT g"});
  look();
  ASSERT_EQ(updates_.size(), 1U);
  EXPECT_EQ(updates_[0]->catalog, name("@"));
  EXPECT_THAT(updates_[0]->primaries, ElementsAre("up"));
  EXPECT_FALSE(updates_[0]->may_remove_many);
  EXPECT_THAT(members(), ElementsAre("a.test. plain", "b.test. gold"));
  look();
  EXPECT_EQ(updates_.size(), 1U) << "nothing has changed";
  change({"a.zones 0 PTR a.test."}, {});
  look();
  EXPECT_THAT(members(), ElementsAre("b.test. gold"));
  ++configuration_.reads;
  look();
  EXPECT_EQ(updates_.size(), 3U) << "another configuration";
  EXPECT_EQ(consumer_.problem(name("@")), "");
}

TEST_F(Consumer, ABrokenCatalogChangesNothing) {
  look();
  EXPECT_TRUE(updates_.empty());
  EXPECT_THAT(consumer_.problem(name("@")), HasSubstr("catalog not used: it has no version"));
  EXPECT_EQ(consumer_.problem(name("other")), "");
  change({}, {"version 0 TXT 2"});
  look();
  EXPECT_EQ(updates_.size(), 1U);
  EXPECT_EQ(consumer_.problem(name("@")), "");
}

TEST_F(Consumer, ManyRemovalsWaitForTheGrace) {
  change({}, {"version 0 TXT 2"});
  answer_ = [](CatalogUpdate& update) {
    (update.may_remove_many ? update.removed : update.waiting) = 5;
  };
  look();
  EXPECT_THAT(consumer_.problem(name("@")), HasSubstr("5 members left at once"));
  EXPECT_THAT(consumer_.problem(name("@")), HasSubstr("2023-11-15T22:13:20Z"));
  now_ += kDay - 1;
  look();
  EXPECT_EQ(updates_.size(), 1U);
  now_ += 1;
  look();
  ASSERT_EQ(updates_.size(), 2U);
  EXPECT_TRUE(updates_[1]->may_remove_many);
  EXPECT_EQ(consumer_.problem(name("@")), "");
}

TEST_F(Consumer, TheLastMemberWaitsToo) {
  change({}, {"version 0 TXT 2"});
  answer_ = [](CatalogUpdate& update) { update.waiting = 1; };
  look();
  EXPECT_EQ(consumer_.problem(name("@")), "1 member left at once, and is served until "
                                          "2023-11-15T22:13:20Z (removal-grace)");
}

TEST_F(Consumer, ANewGraceBeginsWithTheNextRemovals) {
  change({}, {"version 0 TXT 2"});
  answer_ = [](CatalogUpdate& update) { update.waiting = 5; };
  look();
  answer_ = {};  // they came back
  now_ += kDay / 2;
  change({}, {"a.zones 0 PTR a.test."});
  look();
  answer_ = [](CatalogUpdate& update) { update.waiting = 5; };
  now_ += kDay / 2;
  change({"a.zones 0 PTR a.test."}, {});
  look();
  EXPECT_FALSE(updates_.back()->may_remove_many);
}

TEST_F(Consumer, AnErrorIsTriedAgain) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test."});
  status_ = fail(Errc::kFull, "no room");
  look();
  EXPECT_EQ(consumer_.problem(name("@")), "catalog not used: no room");
  status_ = {};
  look();
  EXPECT_EQ(updates_.size(), 1U);
  now_ += 10;
  look();
  EXPECT_EQ(updates_.size(), 2U);
  EXPECT_EQ(consumer_.problem(name("@")), "");
}

TEST_F(Consumer, AMemberWithANewLabelIsReset) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test.", "b.zones 0 PTR b.test."});
  look();
  EXPECT_TRUE(reset_.empty());
  change({"a.zones 0 PTR a.test."}, {"a2.zones 0 PTR a.test."});
  look();
  EXPECT_THAT(reset_, ElementsAre("a.test."));
}

TEST_F(Consumer, RefusedMembersAreTold) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test."});
  answer_ = [](CatalogUpdate& update) {
    update.refused.push_back({update.members[0].zone, "the configuration has it"});
  };
  look();
  EXPECT_EQ(consumer_.problem(name("@")),
            "1 of its members not taken: a.test.: the configuration has it");
}

TEST_F(Consumer, MembersThatStayBelowAZoneOfOthersAreTold) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test.", "b.zones 0 PTR b.test."});
  answer_ = [](CatalogUpdate& update) {
    update.refused.push_back({update.members[0].zone, "the configuration has it"});
    update.retained.push_back({update.members[1].zone, "the configuration has test. above it"});
  };
  look();
  EXPECT_EQ(consumer_.problem(name("@")),
            "1 of its members not taken: a.test.: the configuration has it; 1 of its members "
            "retained: b.test.: the configuration has test. above it");
}

TEST_F(Consumer, ZonesThatCommandsAddAreComparedWithTheMembersEachTenSeconds) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test."});
  look();
  ++zone_commands_;
  look();
  EXPECT_EQ(updates_.size(), 1U);
  now_ += 10;
  look();
  EXPECT_EQ(updates_.size(), 2U);
  now_ += 10;
  look();
  EXPECT_EQ(updates_.size(), 2U);
}

TEST_F(Consumer, TheBoundsOfTheCatalogGoToTheList) {
  configuration_.runtime = testing::runtime_from(
      "remotes: [{name: up, address: [192.0.2.1]}]\n"
      "catalogs: [{zone: example, role: consumer, primaries: [up], members-below: [a.test]}]\n");
  change({}, {"version 0 TXT 2"});
  look();
  EXPECT_THAT(updates_.back()->members_below, ElementsAre(dns::Name::from_text("a.test.").value()));
}

TEST_F(Consumer, NothingBeginsAtTheEndOfTheProcess) {
  change({}, {"version 0 TXT 2"});
  consumer_.stop();
  look();
  EXPECT_TRUE(updates_.empty());
}

/// Two catalogs: "example." and "next.test.", which has the member "x.test.".
class TwoConsumed : public Consumer {
 protected:
  TwoConsumed() {
    configuration_.runtime = testing::runtime_from(
        "remotes: [{name: up, address: [192.0.2.1]}]\n"
        "catalogs: [{zone: next.test, role: consumer, primaries: [up]}, "
        "{zone: example, role: consumer, primaries: [up]}]\n");
    shm::Store& store = parts_.zone.store();
    shm::Transaction transaction = store.begin();
    zone::ZoneBuilder builder(next_, transaction);
    for (const char* line :
         {"next.test. 0 SOA invalid. invalid. 1 3600 600 2147483646 0", "next.test. 0 NS invalid.",
          "version.next.test. 0 TXT 2", "x.zones.next.test. 0 PTR x.test."}) {
      const zone::Record one = testing::record(line);
      EXPECT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata).has_value()) << line;
    }
    auto built = builder.finish();
    EXPECT_TRUE(built.has_value());
    zone::Draft draft(transaction, store.current().root, store.current().number + 1);
    EXPECT_TRUE(draft.put_zone_settings(next_, {}, 1).has_value());
    EXPECT_TRUE(draft.put_zone(next_, **built, {}).has_value());
    EXPECT_TRUE(store.publish(std::move(transaction), draft.root(), 0).has_value());
  }
  [[nodiscard]] Lines catalogs_of_updates() const {
    Lines catalogs;
    for (const auto& update : updates_) catalogs.push_back(to_text(update->catalog));
    return catalogs;
  }

  const dns::Name next_ = dns::Name::from_text("next.test.").value();
};

TEST_F(TwoConsumed, ChangesOfAllCatalogsAreAppliedInOneLook) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test."});
  look();
  EXPECT_THAT(catalogs_of_updates(), ElementsAre("next.test.", "example."));
  ++configuration_.reads;
  look();
  EXPECT_EQ(updates_.size(), 4U) << "another configuration";
}

TEST_F(TwoConsumed, ACatalogThatCannotBeConfiguredIsTriedAgainWithoutTheOthers) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR a.test."});
  hold_ = true;
  status_ = fail(Errc::kFull, "no room");
  consumer_.look();
  ASSERT_TRUE(parts_.run_until([this] { return held_.size() == 2; })) << "both together";
  answer_held();
  EXPECT_EQ(consumer_.problem(next_), "catalog not used: no room");
  now_ += 10;
  consumer_.look();
  ASSERT_TRUE(parts_.run_until([this] { return held_.size() == 1; }));
  answer_held();
  ASSERT_TRUE(parts_.run_until([this] { return held_.size() == 1; }));
  status_ = {};
  answer_held();
  EXPECT_TRUE(consumer_.idle());
  EXPECT_EQ(updates_.size(), 4U);
}

TEST_F(TwoConsumed, AMemberMayMoveIfItsCatalogSaysSo) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR x.test."});
  answer_ = [this](CatalogUpdate& update) {
    if (update.catalog == next_ && update.yielded.empty())
      update.refused.push_back({name("x.test."), "catalog example. has it"});
  };
  look();
  EXPECT_THAT(consumer_.problem(next_), HasSubstr("catalog example. has it"));
  updates_.clear();
  change({}, {"coo.a.zones 0 PTR next.test."});
  look();
  look();
  EXPECT_THAT(catalogs_of_updates(), ElementsAre("example.", "next.test."));
  EXPECT_THAT(updates_.back()->yielded, ElementsAre(dns::folded_key(name("x.test."))));
  EXPECT_EQ(consumer_.problem(next_), "");
  look();
  EXPECT_EQ(updates_.size(), 2U) << "both know all";
}

TEST_F(TwoConsumed, AMemberMovesInOneLookIfBothCatalogsAreRead) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR x.test.", "coo.a.zones 0 PTR next.test."});
  look();
  ASSERT_THAT(catalogs_of_updates(), ElementsAre("next.test.", "example."));
  EXPECT_EQ(updates_[0]->yielded.size(), 1U);
}

/// A zone that one catalog no longer has may be another one's.
TEST_F(TwoConsumed, RefusedMembersAreTriedAgainWhenAnotherCatalogLosesSome) {
  change({}, {"version 0 TXT 2", "a.zones 0 PTR x.test."});
  answer_ = [this](CatalogUpdate& update) {
    if (update.catalog == next_) update.refused.push_back({name("x.test."), "example. has it"});
  };
  look();
  updates_.clear();
  change({"a.zones 0 PTR x.test."}, {});
  answer_ = [this](CatalogUpdate& update) { update.removed = update.catalog == next_ ? 0 : 1; };
  look();
  look();
  EXPECT_THAT(catalogs_of_updates(), ElementsAre("example.", "next.test."));
  EXPECT_EQ(consumer_.problem(next_), "");
}

}  // namespace catalog_consumer_test
}  // namespace pando::manager
