#include "manager/tls/own_keys.h"

#include <gtest/gtest.h>

#include "tests/unit/manager/io/fake_disk.h"

namespace pando::manager {
namespace own_keys_test {

constexpr std::uint64_t kNow = 1'800'000'000;
constexpr const char* kJournal = "/var/j";

class OwnKeysTest : public ::testing::Test {
 protected:
  OwnKeys open() {
    auto keys = open_own_keys(disk_, kJournal, kNow);
    EXPECT_TRUE(keys) << keys.error().text;
    return std::move(*keys);
  }
  testing::FakeDisk disk_;
};

TEST_F(OwnKeysTest, AreMadeOnceAndStay) {
  const OwnKeys made = open();
  EXPECT_NE(made.current.facts.pin, made.next.pin);
  const OwnKeys again = open();
  EXPECT_EQ(again.current.pem, made.current.pem);
  EXPECT_EQ(again.next, made.next);
}

TEST_F(OwnKeysTest, ARollPutsTheNextOneIntoUse) {
  const OwnKeys before = open();
  const auto after = roll_own_keys(disk_, kJournal, kNow - 1);
  ASSERT_TRUE(after) << after.error().text;
  EXPECT_EQ(after->current.facts, before.next);
  EXPECT_NE(after->next.pin, before.next.pin);
  EXPECT_NE(after->next.pin, before.current.facts.pin);
  EXPECT_EQ(open().current.pem, after->current.pem);
}

TEST_F(OwnKeysTest, ADamagedFileIsAnErrorAndIsNotReplaced) {
  open();
  const std::string path = std::string(kJournal) + "/tls/current.pem";
  ASSERT_TRUE(write_file_atomically(disk_, path, bytes_of_text("nothing")));
  for (const auto& opened :
       {open_own_keys(disk_, kJournal, kNow), roll_own_keys(disk_, kJournal, kNow)}) {
    ASSERT_FALSE(opened);
    EXPECT_TRUE(opened.error().text.starts_with(path + ": ")) << opened.error().text;
  }
  EXPECT_EQ(*read_file(disk_, path), Bytes({'n', 'o', 't', 'h', 'i', 'n', 'g'}));
}

}  // namespace own_keys_test
}  // namespace pando::manager
