#include "manager/update/zone_transactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace zone_transactions_test {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::name;
using testing::Parts;
using Names = std::vector<dns::Name>;

class Transactions : public ::testing::Test {
 protected:
  Transactions() {
    EXPECT_TRUE(parts_.edit([](zone::Draft& draft) {
      return draft.put_zone_settings(kEmpty(), zone::ZoneSettings{}, 1);
    }));
  }
  /// The pool may still work for objects of this one.
  ~Transactions() override { parts_.pool.join(); }

  static dns::Name kEmpty() { return dns::Name::from_text("empty.").value(); }

  Result<ipc::TransactionRow> add(int number) {
    return transactions_.set(name("@"), name("n" + std::to_string(number)), dns::RRType::kA,
                             std::nullopt,
                             Bytes{10, 0, static_cast<std::uint8_t>(number >> 8),
                                   static_cast<std::uint8_t>(number)});
  }
  Result<ipc::ZoneCommitResult> commit(const Names& zones) {
    std::optional<Result<ipc::ZoneCommitResult>> result;
    transactions_.commit(zones, std::nullopt, {},
                         [&](Result<ipc::ZoneCommitResult> done) { result = std::move(done); });
    EXPECT_TRUE(parts_.run_until([&] { return result.has_value(); }));
    return *result;
  }

  Parts parts_;
  ChangeRoad changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
                           parts_.slots, parts_.committer, {10, 3}};
  Status policy_;
  ZoneTransactions transactions_{parts_.io,
                                 parts_.committer,
                                 changes_,
                                 [this](const dns::Name&) -> Result<config::SerialPolicy> {
                                   if (!policy_) return pass(policy_);
                                   return config::SerialPolicy::kIncrement;
                                 },
                                 {2, 40, 1 << 20, 4, std::chrono::seconds(1)}};
};

TEST_F(Transactions, ACommitIsInTheJournalAndEndsTheTransaction) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  ASSERT_TRUE(add(1));
  const auto done = shm::test::must(commit({name("@")}));
  ASSERT_EQ(done.committed.size(), 1U);
  EXPECT_EQ(done.committed[0], (ipc::CommittedZone{"example.", 10, 11, 1, 2}));
  EXPECT_EQ(parts_.journalled().size(), 1U);
  EXPECT_THAT(parts_.zone.at("n1"), ElementsAre("3600 A 10.0.0.1"));
  EXPECT_EQ(transactions_.size(), 0U);
}

TEST_F(Transactions, ALargeOneIsWorkedOutBesideTheCommitThread) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  for (int i = 0; i < 30; ++i) ASSERT_TRUE(add(i));
  EXPECT_EQ(shm::test::must(commit({name("@")})).committed[0].added, 31U);
  EXPECT_EQ(changes_.counters().beside, 1U);
}

TEST_F(Transactions, NumberAndSizeAreBounded) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(add(i));
  EXPECT_EQ(add(41).error().code, Errc::kFull);
  EXPECT_TRUE(commit({name("@")}).has_value()) << "a full transaction can be committed";
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  const auto more = transactions_.begin({name("@"), kEmpty()}, std::nullopt);
  EXPECT_FALSE(more.has_value());
  EXPECT_EQ(transactions_.size(), 1U);
}

TEST_F(Transactions, AZoneWithoutDataOrOfAnotherKindHasNone) {
  EXPECT_THAT(transactions_.begin({kEmpty()}, std::nullopt).error().text,
              HasSubstr("is not loaded"));
  policy_ = fail(Errc::kInvalid, "a secondary");
  EXPECT_EQ(transactions_.begin({name("@")}, std::nullopt).error().text, "a secondary");
  EXPECT_EQ(transactions_.size(), 0U);
}

TEST_F(Transactions, AZoneThatBecameASecondaryIsNotCommitted) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  ASSERT_TRUE(add(1));
  policy_ = fail(Errc::kInvalid, "a secondary");
  EXPECT_EQ(commit({name("@")}).error().text, "a secondary");
  EXPECT_EQ(transactions_.size(), 1U) << "it can be aborted";
  EXPECT_TRUE(transactions_.abort({name("@")}).has_value());
}

TEST_F(Transactions, WhileOneIsCommittedNobodyChangesIt) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  ASSERT_TRUE(add(1));
  bool done = false;
  transactions_.commit({name("@")}, std::nullopt, {},
                       [&](const Result<ipc::ZoneCommitResult>& result) {
                         EXPECT_TRUE(result.has_value());
                         done = true;
                       });
  EXPECT_THAT(add(2).error().text, HasSubstr("is being committed"));
  EXPECT_THAT(transactions_.abort({name("@")}).error().text, HasSubstr("is being committed"));
  EXPECT_EQ(transactions_.begin({name("@")}, std::nullopt).error().code, Errc::kExists);
  EXPECT_TRUE(parts_.run_until([&] { return done; }));
  EXPECT_THAT(parts_.zone.at("n2"), IsEmpty());
}

TEST_F(Transactions, AnUnusedOneExpires) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  ASSERT_TRUE(add(1));
  EXPECT_TRUE(transactions_.find(name("@")).has_value());
  EXPECT_TRUE(parts_.run_until([&] { return transactions_.size() == 0; }));
  EXPECT_EQ(add(2).error().code, Errc::kNotFound);
  EXPECT_THAT(parts_.zone.at("n1"), IsEmpty());
}

TEST_F(Transactions, OneGoesWithItsZone) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  ASSERT_TRUE(add(1));
  transactions_.forget_gone_zones();
  EXPECT_EQ(transactions_.size(), 1U);
  policy_ = fail(Errc::kExists, "frozen");
  transactions_.forget_gone_zones();
  EXPECT_EQ(transactions_.size(), 1U) << "the zone is still there";
  policy_ = fail(Errc::kNotFound, "no zone");
  transactions_.forget_gone_zones();
  EXPECT_EQ(transactions_.size(), 0U);
}

/// A session is a connection of a program for clients of its own.
TEST_F(Transactions, OneOfASessionIsItsOwn) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, 5));
  const auto set = [this](std::uint64_t session) {
    return transactions_.set(name("@"), name("n"), dns::RRType::kA, std::nullopt,
                             Bytes{10, 0, 0, 1}, session);
  };
  EXPECT_TRUE(set(5));
  EXPECT_EQ(set(6).error().code, Errc::kDenied);
  EXPECT_EQ(transactions_.unset(name("@"), name("n"), std::nullopt, std::nullopt, 6).error().code,
            Errc::kDenied);
  EXPECT_EQ(transactions_.abort({name("@")}, 6).error().code, Errc::kDenied);
  std::optional<Errc> refused;
  transactions_.commit({name("@")}, std::nullopt, {},
                       [&](const Result<ipc::ZoneCommitResult>& done) {
                         refused = done.error().code;
                       },
                       6);
  EXPECT_EQ(refused, Errc::kDenied);
  EXPECT_TRUE(set(0)) << "an operator may use all";
  ASSERT_TRUE(transactions_.abort({name("@")}));
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  EXPECT_EQ(set(5).error().code, Errc::kDenied) << "an operator's is no session's";
}

TEST_F(Transactions, TheEndOfASessionForgetsItsOwn) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, 5, 5));
  transactions_.end_connection(6);
  EXPECT_EQ(transactions_.size(), 1U);
  transactions_.end_connection(5);
  EXPECT_EQ(transactions_.size(), 0U);
}

TEST_F(Transactions, OneOfAnOperatorEndsWithItsConnectionIfItIsTiedToIt) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, 0, 5));
  ASSERT_TRUE(add(1)) << "another connection may use it";
  transactions_.end_connection(0);
  transactions_.end_connection(6);
  EXPECT_EQ(transactions_.size(), 1U);
  transactions_.end_connection(5);
  EXPECT_EQ(transactions_.size(), 0U);
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt));
  transactions_.end_connection(5);
  EXPECT_EQ(transactions_.size(), 1U) << "this one belongs to no connection";
}

TEST_F(Transactions, ACommitThatFailsWithoutItsClientLeavesNothing) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, 0, 5));
  ASSERT_TRUE(add(1));
  std::optional<bool> committed;
  transactions_.commit({name("@")}, dns::Serial{4711}, {},
                       [&](const Result<ipc::ZoneCommitResult>& result) { committed = bool(result); });
  transactions_.end_connection(5);
  EXPECT_TRUE(parts_.run_until([&] { return committed.has_value(); }));
  EXPECT_EQ(committed, false);
  EXPECT_EQ(transactions_.size(), 0U);
}

TEST_F(Transactions, ACommitOutlivesItsSession) {
  ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, 5, 5));
  ASSERT_TRUE(add(1));
  bool done = false;
  transactions_.commit({name("@")}, std::nullopt, {},
                       [&](const Result<ipc::ZoneCommitResult>& result) { done = bool(result); },
                       5);
  transactions_.end_connection(5);
  EXPECT_TRUE(parts_.run_until([&] { return done; }));
  EXPECT_THAT(parts_.zone.at("n1"), ElementsAre("3600 A 10.0.0.1"));
  EXPECT_EQ(transactions_.size(), 0U);
}

/// Records of an operator have no limits, those of a session the limits of updates.
TEST_F(Transactions, OneOfASessionHasTheLimitsOfUpdates) {
  zone::DataLimits limits;
  limits.rrset_records = 1;
  for (const std::uint64_t session : {5, 0}) {
    ASSERT_TRUE(transactions_.begin({name("@")}, std::nullopt, session, session));
    for (std::uint8_t i = 0; i < 2; ++i)
      ASSERT_TRUE(transactions_.set(name("@"), name("n"), dns::RRType::kA, std::nullopt,
                                    Bytes{10, 0, 0, i}, session));
    std::optional<bool> taken;
    transactions_.commit({name("@")}, std::nullopt, limits,
                         [&](const Result<ipc::ZoneCommitResult>& done) { taken = bool(done); },
                         session);
    EXPECT_TRUE(parts_.run_until([&] { return taken.has_value(); }));
    EXPECT_EQ(taken, session == 0);
    transactions_.end_connection(5);  // a refused transaction stays open
  }
}

}  // namespace zone_transactions_test
}  // namespace pando::manager
