#include "worker/request/counting.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace pando::worker {
namespace counting_test {

IpAddress client(unsigned number) {
  return *IpAddress::from_text(fmt::format("192.0.2.{}", number));
}

TEST(TransferCounting, IsByZoneUntilTheRowsAreFull) {
  auto counters = std::make_unique<CounterArray>();
  std::vector<shm::TransferRow> rows(4);
  Counting counting(*counters, rows);
  const auto zone = [](int number) {
    return dns::Name::from_text(fmt::format("z{}.test.", number)).value();
  };
  for (int i = 0; i < 4; ++i) counting.transfer(zone(i), ipc::ZoneTransfer::kAxfr);
  counting.transfer(zone(0), ipc::ZoneTransfer::kFailed);
  EXPECT_EQ(counting.value(ipc::Counter::kTransfersWithoutRow), 0U);
  counting.transfer(zone(4), ipc::ZoneTransfer::kAxfr);
  counting.transfer(zone(0), ipc::ZoneTransfer::kAxfr);
  EXPECT_EQ(counting.value(ipc::Counter::kTransfersWithoutRow), 1U);
  const auto* row =
      shm::find_count_row(std::span(rows), ipc::zone_count_key(zone(0)));
  ASSERT_NE(row, nullptr);
  EXPECT_EQ(row->counters[static_cast<std::size_t>(ipc::ZoneTransfer::kAxfr)].load(), 2U);
  EXPECT_EQ(row->counters[static_cast<std::size_t>(ipc::ZoneTransfer::kFailed)].load(), 1U);
}

class NotesOfSecondaries : public ::testing::Test {
 protected:
  /// The value of the client's note; 0: it has none.
  [[nodiscard]] std::uint64_t note(unsigned number) const {
    const std::uint64_t hash = ipc::seen_hash(client(number));
    const std::size_t index = ipc::find_seen(*counters_, hash);
    const std::uint64_t value = index == 0 ? 0 : counting_.value(index);
    return ipc::is_seen(value, hash) ? value : 0;
  }

  std::unique_ptr<CounterArray> counters_ = std::make_unique<CounterArray>();
  Counting counting_{*counters_};
};

TEST_F(NotesOfSecondaries, SecondariesOfOneNetworkKeepTheirNotes) {
  for (unsigned number = 1; number <= ipc::kSeenClients; ++number) counting_.seen(client(number));
  for (unsigned number = 1; number <= ipc::kSeenClients; ++number) {
    const std::uint64_t before = note(number);
    EXPECT_NE(before, 0U) << number;
    counting_.seen(client(number));
    EXPECT_NE(note(number), before) << "each query changes the note";
  }
}

TEST_F(NotesOfSecondaries, OneMoreTakesThePlaceOfOneOther) {
  for (unsigned number = 1; number <= ipc::kSeenClients; ++number) counting_.seen(client(number));
  counting_.add(ipc::Counter::kQueriesTcp, 1'000'003);
  counting_.seen(client(200));
  EXPECT_NE(note(200), 0U);
  std::size_t left = 0;
  for (unsigned number = 1; number <= ipc::kSeenClients; ++number) left += note(number) != 0;
  EXPECT_EQ(left, ipc::kSeenClients - 1);
}

TEST(NotesOfZones, ZonesThatAreAskedForOftenStayAmongManyOthers) {
  const auto counters = std::make_unique<CounterArray>();
  Counting counting(*counters);
  for (std::uint32_t other = 0; other < 100'000; ++other) {
    counting.busy(1000 + other);
    if (other % 2 == 0) counting.busy(7);
    if (other % 4 == 0) counting.busy(8);
  }
  const auto notes = [&](std::uint32_t zone) {
    const auto one = ipc::BusyZone::of(counting.value(ipc::find_busy(*counters, zone)));
    return one.zone == zone ? one.notes : 0;
  };
  EXPECT_EQ(notes(7), 50'000U);
  EXPECT_EQ(notes(8), 25'000U);
  EXPECT_EQ(notes(1000), 0U);
}

}  // namespace counting_test
}  // namespace pando::worker
