#include "manager/update/zone_transactions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/manager/commit/parts.h"

namespace pando::manager {
namespace {

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
  LargeChangesets changes_{parts_.io,    parts_.pool,      parts_.zone.store(),
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

}  // namespace
}  // namespace pando::manager
