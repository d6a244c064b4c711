#include "http/observe/zone_past.h"

#include <gtest/gtest.h>

#include "tests/unit/zone/draft/zone_fixture.h"

namespace pando::http {
namespace zone_past_test {

using zone::testing::name;

std::string soa(std::uint32_t serial) {
  return fmt::format("example. 60 SOA a. b. {} 2 3 4 5", serial);
}

std::string host(std::uint32_t number) {
  return fmt::format("n{}.example. 60 A 192.0.2.1", number);
}

class ZonePasts : public zone::testing::ZoneTest {
 protected:
  void SetUp() override { ASSERT_TRUE(load("example.", {soa(1), "example. 60 NS a."})); }
  void step(std::uint32_t from, std::uint32_t to, std::vector<std::string> removed,
            std::vector<std::string> added, const zone::DataLimits& limits = {}) {
    removed.push_back(soa(from));
    added.push_back(soa(to));
    ASSERT_TRUE(apply("example.", removed, added, limits));
  }
  [[nodiscard]] Result<ZonePast> past(std::size_t most, std::string_view apex = "example.") const {
    const auto observer = shm::Observer::open(path_, zone::layout_fingerprint());
    if (!observer) return tl::unexpected<Error>(observer.error());
    return read_zone_past(*observer, name(apex), most);
  }
};

TEST_F(ZonePasts, BeginWithoutChanges) {
  const auto read = past(10);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->known);
  EXPECT_TRUE(read->changesets.empty());
  EXPECT_EQ(past(10, "absent.").error().code, Errc::kNotFound);
}

TEST_F(ZonePasts, HaveTheNewestChangesFirst) {
  step(1, 2, {}, {host(1), host(2)});
  step(2, 7, {host(1)}, {host(3)});
  const auto read = past(10);
  ASSERT_TRUE(read) << read.error().text;
  ASSERT_EQ(read->changesets.size(), 2U);
  const ChangesetFacts& newest = read->changesets.front();
  EXPECT_EQ(newest.from, 2U);
  EXPECT_EQ(newest.to, 7U);
  EXPECT_EQ(newest.records, 2U);
  EXPECT_EQ(newest.added, 1U);
  EXPECT_EQ(read->changesets.back().added, 2U);
  EXPECT_EQ(read->older, 0U);
}

/// More than one stretch of the history.
TEST_F(ZonePasts, CountTheChangesBeforeTheNewest) {
  for (std::uint32_t serial = 1; serial <= 300; ++serial)
    step(serial, serial + 1, {}, {host(serial)});
  const auto read = past(5);
  ASSERT_TRUE(read) << read.error().text;
  EXPECT_TRUE(read->known);
  ASSERT_EQ(read->changesets.size(), 5U);
  EXPECT_EQ(read->older, 295U);
  for (std::uint32_t i = 0; i < 5; ++i) {
    EXPECT_EQ(read->changesets[i].to, 301U - i);
    EXPECT_EQ(read->changesets[i].records, 1U);
    EXPECT_EQ(read->changesets[i].added, 1U);
  }
}

TEST_F(ZonePasts, FollowSerialsThatWrapAround) {
  step(1, 0x7fffffff, {}, {host(1)});
  step(0x7fffffff, 0xfffffff0, {}, {host(2)});
  step(0xfffffff0, 7, {}, {host(3)});
  const auto read = past(10);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->changesets.size(), 3U);
  EXPECT_EQ(read->changesets.front().to, 7U);
}

TEST_F(ZonePasts, TellOnlyTheSizeOfALargeChange) {
  std::vector<std::string> added;
  for (std::uint32_t i = 0; i < 1001; ++i) added.push_back(host(i));
  step(1, 2, {}, added, zone::DataLimits::none());
  const auto read = past(10);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->changesets.size(), 1U);
  EXPECT_EQ(read->changesets.front().records, 1001U);
  EXPECT_FALSE(read->changesets.front().added);
}

TEST_F(ZonePasts, HaveTheSnapshots) {
  ASSERT_TRUE(commit([&](zone::Draft& draft) {
    return draft.take_snapshot(name("example."), "before", 1234, {});
  }));
  step(1, 2, {}, {host(1)});
  const auto read = past(10);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->snapshots.size(), 1U);
  EXPECT_EQ(read->snapshots.front().label, "before");
  EXPECT_EQ(read->snapshots.front().serial, 1U);
  EXPECT_EQ(read->snapshots.front().taken, 1234U);
  EXPECT_EQ(read->snapshots.front().lost, "");
}

}  // namespace zone_past_test
}  // namespace pando::http
