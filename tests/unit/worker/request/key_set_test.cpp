#include "worker/request/key_set.h"

#include <gtest/gtest.h>

#include "tests/unit/worker/zone_store.h"

namespace pando::worker {
namespace key_set_test {

using pando::testing::name;

ipc::Keys part(bool first, bool last, const char* shared, const char* held) {
  ipc::Keys keys;
  keys.first = first;
  keys.last = last;
  keys.shared = {{name(shared), dns::TsigAlgorithm::kSha256, Bytes(16, 1)}};
  keys.held = {{name(held), dns::TsigAlgorithm::kSha1}};
  return keys;
}

TEST(KeySet, KnowsSharedKeysAndNamesOfHeldOnes) {
  const auto set = make_key_set(part(true, true, "a.", "b."));
  EXPECT_NE(set->shared.find(name("A.")), nullptr);
  EXPECT_TRUE(set->is_managers_key(name("B.")));
  EXPECT_FALSE(set->is_managers_key(name("a.")));
  EXPECT_EQ(set->shared.find(name("b.")), nullptr);
}

TEST(KeySet, ChangesOverOnlyWhenTheLastPartHasCome) {
  KeyCollector collector;
  EXPECT_EQ(collector.take(part(true, false, "a.", "x.")), nullptr);
  EXPECT_EQ(collector.take(part(false, false, "b.", "y.")), nullptr);
  const auto set = collector.take(part(false, true, "c.", "z."));
  ASSERT_NE(set, nullptr);
  for (const char* shared : {"a.", "b.", "c."}) EXPECT_NE(set->shared.find(name(shared)), nullptr);
  for (const char* held : {"x.", "y.", "z."})
    EXPECT_TRUE(set->is_managers_key(name(held)));
}

TEST(KeySet, AFirstPartForgetsWhatWasLeftUnfinished) {
  KeyCollector collector;
  EXPECT_EQ(collector.take(part(true, false, "old.", "older.")), nullptr);
  const auto set = collector.take(part(true, true, "new.", "newer."));
  EXPECT_EQ(set->shared.find(name("old.")), nullptr);
  EXPECT_FALSE(set->is_managers_key(name("older.")));
}

TEST(KeySet, CookieSecretsComeWithTheFirstPart) {
  KeyCollector collector;
  ipc::Keys first = part(true, false, "a.", "b.");
  first.cookie_secrets = {ipc::CookieSecret{7}};
  EXPECT_EQ(collector.take(std::move(first)), nullptr);
  const auto set = collector.take(part(false, true, "c.", "d."));
  ASSERT_EQ(set->cookie_secrets.size(), 1U);
  EXPECT_EQ(set->cookie_secrets[0][0], 7);
}

}  // namespace key_set_test
}  // namespace pando::worker
