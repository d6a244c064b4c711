#include "manager/update/update_commits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <asio/post.hpp>
#include <atomic>
#include <future>
#include <latch>
#include <optional>

#include "tests/unit/manager/commit/parts.h"
#include "tests/unit/manager/io/fake_disk.h"
#include "tests/unit/manager/update_builder.h"

namespace pando::manager {
namespace update_commits_test {

using dns::Rcode;
using testing::FakeDisk;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using ::testing::SizeIs;
using testing::UpdateBuilder;

constexpr int kRecords = 100;  // that the commit thread changes itself, here

class Commits : public ::testing::Test {
 protected:
  Commits() {
    zone::Changeset changes{name("@"), {}, {}};
    for (int i = 0; i < 2 * kRecords; ++i)
      changes.added.push_back(testing::record(fmt::format("big{} 300 A 10.0.0.{}", i / 50, i)));
    auto filled = parts_.submit(std::move(changes));
    EXPECT_TRUE(parts_.run_until([&] { return filled->has_value(); }));
  }

  /// The pool may still work on an update whose rules are this object's.
  ~Commits() override { parts_.pool.join(); }

  struct Outcome {
    Rcode rcode = Rcode::kNoError;
    bool stored = false;
    std::size_t removed = 0;
    int place = 0;  ///< in the order of the answers
  };
  using Answer = std::shared_ptr<std::optional<Outcome>>;
  Answer submit(const UpdateBuilder& update, std::string_view client = "192.0.2.9@1000") {
    UpdateCommits::Update one;
    one.client = Endpoint::from_text(client).value();
    one.message = parse_update(ParsedRequest(update.message())).value();
    one.rules.allow_update = &acl_;
    one.check = [this] { return check_; };
    auto answer = std::make_shared<std::optional<Outcome>>();
    one.done = [this, answer](const Refusal& verdict, const Result<ChangeOutcome>& outcome) {
      EXPECT_FALSE(answer->has_value());
      *answer = Outcome{verdict.rcode, outcome.has_value(),
                        outcome ? outcome->applied.effective.removed.size() : 0, ++answers_};
    };
    commits_.submit(std::move(one));
    return answer;
  }
  Outcome wait(const Answer& answer) {
    EXPECT_TRUE(parts_.run_until([&] { return answer->has_value(); }));
    return answer->value_or(Outcome{});
  }
  static UpdateBuilder large() {
    UpdateBuilder update;
    return update.remove_name("big0").remove_name("big1").remove_name("big2");
  }
  static UpdateBuilder add(const std::string& owner) {
    UpdateBuilder update;
    return update.add(owner + " 60 A 192.0.2.9");
  }

  /// Both threads of the pool do nothing of what comes next until the promise is kept.
  std::shared_ptr<std::promise<void>> stop_pool() {
    auto resume = std::make_shared<std::promise<void>>();
    const std::shared_future<void> held = resume->get_future().share();
    for (int i = 0; i < 2; ++i) asio::post(parts_.pool, [held] { held.wait(); });
    return resume;
  }
  /// What the pool was given before is done, and what it posted to the loop as well.
  void finish_pool() {
    auto both = std::make_shared<std::latch>(2);
    std::atomic<int> ended = 0;
    for (int i = 0; i < 2; ++i)
      asio::post(parts_.pool, [&, both] {
        both->arrive_and_wait();
        ++ended;
      });
    EXPECT_TRUE(parts_.run_until([&] { return ended == 2; }));
    parts_.io.restart();
    parts_.io.poll();
  }

  FakeDisk disk_;
  Parts parts_{64 << 20, disk_};
  ChangeRoad changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                           parts_.slots, parts_.committer, {kRecords, 3}};
  UpdateCommits commits_{parts_.committer, changes_};
  zone::Acl acl_{zone::AclRule{}};
  Status check_;
  int answers_ = 0;
};

TEST_F(Commits, WhatWaitedIsNotDoneInAZoneThatTakesNoUpdatesAnyMore) {
  const auto resume = stop_pool();
  const Answer big = submit(large());
  const Answer held = submit(add("held"));
  check_ = fail(Errc::kNotFound, "a secondary now");
  resume->set_value();
  EXPECT_FALSE(wait(big).stored);
  EXPECT_FALSE(wait(held).stored);
  EXPECT_THAT(parts_.zone.at("held"), IsEmpty());
}

TEST_F(Commits, WhatComesWhileTheServerEndsIsDoneOnTheCommitThread) {
  const auto resume = stop_pool();
  const Answer lost = submit(large());
  changes_.stop();
  const Answer big = submit(UpdateBuilder().remove_name("big3").remove_name("big4"));
  const Answer next = submit(add("next"));
  EXPECT_TRUE(wait(big).stored);
  EXPECT_TRUE(wait(next).stored);
  EXPECT_FALSE(lost->has_value());
  resume->set_value();
}

TEST_F(Commits, ASmallUpdateIsDoneOnTheCommitThread) {
  UpdateBuilder update;
  const Outcome done = wait(submit(update.remove_name("big0")));
  EXPECT_TRUE(done.stored);
  EXPECT_EQ(changes_.counters().beside, 0U);
  EXPECT_THAT(parts_.zone.at("big0"), IsEmpty());
}

TEST_F(Commits, ALargeUpdateHoldsNobodyElseUp) {
  const auto resume = stop_pool();
  const Answer big = submit(large(), "192.0.2.9@1000");
  const Outcome small = wait(submit(add("new"), "192.0.2.9@1001"));
  EXPECT_TRUE(small.stored);
  EXPECT_FALSE(big->has_value());
  EXPECT_EQ(changes_.counters().beside, 1U);
  resume->set_value();
  const Outcome done = wait(big);
  EXPECT_EQ(done.rcode, Rcode::kNoError);
  EXPECT_EQ(done.removed, 151U) << "with the SOA";
  EXPECT_EQ(changes_.counters().again, 1U);
  EXPECT_THAT(parts_.zone.at("big0"), IsEmpty());
  EXPECT_THAT(parts_.zone.at("big3"), SizeIs(50));
  EXPECT_THAT(parts_.zone.at("new"), SizeIs(1));
  EXPECT_EQ(parts_.zone.zone().serial(), dns::Serial{12});
}

TEST_F(Commits, AClientsUpdatesOfAZoneAreDoneInTheirOrder) {
  const auto resume = stop_pool();
  const Answer big = submit(large());
  UpdateBuilder after, last;
  const Answer second = submit(after.nx("big0", "ANY").add("second 60 A 192.0.2.9"));
  const Answer third = submit(last.yx("second", "A").remove_name("second"));
  EXPECT_EQ(commits_.held(), 2U);
  EXPECT_TRUE(wait(submit(add("new"), "192.0.2.9@1001")).stored);
  EXPECT_FALSE(second->has_value() || third->has_value());
  resume->set_value();
  for (const Answer& answer : {big, second, third}) EXPECT_EQ(wait(answer).rcode, Rcode::kNoError);
  EXPECT_EQ((*big)->place, 2);
  EXPECT_EQ((*second)->place, 3);
  EXPECT_EQ((*third)->place, 4);
  EXPECT_EQ(commits_.held(), 0U);
}

TEST_F(Commits, ALargeUpdateSeesWhatCameBeforeItAlsoWhileTheDiskIsSlow) {
  std::promise<void> disk_goes_on;
  disk_.fail = [held = disk_goes_on.get_future().share()](FakeDisk::Call call, const std::string&) {
    if (call == FakeDisk::Call::kSync) held.wait();
    return Status();
  };
  const Answer first = submit(add("first"));
  const Answer big = submit(large().yx("first", "A"));
  finish_pool();
  EXPECT_FALSE(first->has_value());
  EXPECT_FALSE(big->has_value()) << "it would fail, but what it needs is on its way";
  disk_goes_on.set_value();
  EXPECT_EQ(wait(first).rcode, Rcode::kNoError);
  EXPECT_EQ(wait(big).rcode, Rcode::kNoError);
  EXPECT_THAT(parts_.zone.at("big0"), IsEmpty());
}

/// Else it would be in vain as long as others come.
TEST_F(Commits, WhenItWasInVainAllUpdatesOfTheZoneWait) {
  const auto first_try = stop_pool();
  const Answer big = submit(large());
  EXPECT_TRUE(wait(submit(add("between"), "192.0.2.9@1001")).stored);
  const auto second_try = stop_pool();
  first_try->set_value();
  ASSERT_TRUE(parts_.run_until([&] { return changes_.counters().again == 1; }));
  const Answer other = submit(add("other"), "192.0.2.9@1001");
  EXPECT_EQ(commits_.held(), 1U);
  second_try->set_value();
  EXPECT_TRUE(wait(big).stored);
  EXPECT_TRUE(wait(other).stored);
  EXPECT_LT((*big)->place, (*other)->place);
  EXPECT_EQ(changes_.counters().again, 1U);
}

TEST_F(Commits, ASecondLargeUpdateOfTheZoneBeginsWithWhatTheFirstOneLeft) {
  UpdateBuilder update;
  for (int i = 0; i <= kRecords; ++i) update.add(fmt::format("more{} 60 A 192.0.2.9", i));
  const Answer first = submit(large());
  const Answer second = submit(update.nx("big0", "ANY"), "192.0.2.9@1001");
  EXPECT_EQ(commits_.held(), 1U);
  EXPECT_EQ(wait(first).rcode, Rcode::kNoError);
  EXPECT_EQ(wait(second).rcode, Rcode::kNoError);
  EXPECT_EQ(changes_.counters().beside, 2U);
  EXPECT_EQ(changes_.counters().again, 0U);
  EXPECT_THAT(parts_.zone.at("more100"), SizeIs(1));
}

TEST_F(Commits, ALargeUpdateWhosePrerequisiteFailsLeavesNoTrace) {
  const auto before = parts_.zone.lines();
  const Outcome done = wait(submit(large().yx("absent", "ANY")));
  EXPECT_EQ(done.rcode, Rcode::kNXDomain);
  EXPECT_FALSE(done.stored);
  EXPECT_EQ(changes_.counters().beside, 1U);
  EXPECT_EQ(parts_.zone.lines(), before);
  EXPECT_TRUE(wait(submit(add("new"))).stored) << "nobody waits for it any more";
}

TEST_F(Commits, AZoneThatTakesNoUpdatesAnyMoreIsLeftAsItWas) {
  const auto before = parts_.zone.lines();
  check_ = fail(Errc::kNotFound, "a secondary now");
  const Outcome done = wait(submit(large()));
  EXPECT_EQ(done.rcode, Rcode::kNoError);
  EXPECT_FALSE(done.stored);
  EXPECT_EQ(parts_.zone.lines(), before);
}

TEST_F(Commits, ALargeUpdateIsInTheJournalOnce) {
  EXPECT_TRUE(wait(submit(large())).stored);
  const std::vector<JournalRecord> records = parts_.journalled(1);
  ASSERT_THAT(records, SizeIs(1));  // behind what filled the zone
  EXPECT_EQ(records[0].kind, RecordKind::kChangeset);
  EXPECT_EQ(zone::decode_changes(records[0].payload).value().removed.size(), 151U);
}

TEST_F(Commits, DeletingMuchWorksWhenTheStoreIsFull) {
  Bytes text;
  for (int i = 0; i < 16; ++i) {
    text.push_back(255);
    text.insert(text.end(), 255, 'y');
  }
  int names = 0;
  for (const int together : {200, 10, 1}) {
    for (bool stored = true; stored;) {
      zone::Changeset changes{name("@"), {}, {}};
      for (int i = 0; i < together; ++i)
        changes.added.push_back(
            {name(fmt::format("h{}", names++)), dns::RRType::kTXT, dns::Ttl{60}, text});
      auto filled = parts_.submit(std::move(changes));
      ASSERT_TRUE(parts_.run_until([&] { return filled->has_value(); }));
      stored = (*filled)->has_value();
      ASSERT_LT(names, 100'000);
    }
  }
  const Outcome done = wait(submit(large()));
  EXPECT_EQ(done.rcode, Rcode::kNoError);
  EXPECT_TRUE(done.stored);
  EXPECT_EQ(changes_.counters().beside, 1U);
  EXPECT_THAT(parts_.zone.at("big0"), IsEmpty());
}

}  // namespace update_commits_test
}  // namespace pando::manager
