#include "manager/upkeep/store_upkeep.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "manager/change/change_staging.h"
#include "manager/commit/zone_diff.h"
#include "manager/support/soa.h"
#include "shm/borrowing.h"
#include "shm/image_state.h"
#include "shm/inspect/inspection.h"
#include "shm/map/reserve.h"
#include "tests/unit/manager/commit/parts.h"
#include "zone/builder/zone_builder.h"

namespace pando::manager {
namespace store_upkeep_test {

using testing::name;
using testing::Parts;
using testing::record;

std::uint64_t bytes_in_use(Parts& parts) {
  return parts.zone.store().stats().chunks_in_use * shm::kChunkBytes;
}

void fill(Parts& parts, int names) {
  zone::Changeset changes{name("@"), {}, {}};
  for (int i = 0; i < names; ++i)
    changes.added.push_back(record(fmt::format("host{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
  auto result = parts.submit(std::move(changes));
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  ASSERT_TRUE((*result)->has_value());
}

/// Clients that each change one address, many at a time: the next update is sent when one is
/// answered.
class Churn {
 public:
  Churn(Parts& parts, int names, int total) : parts_(parts), names_(names), total_(total) {}

  void run(int parallel) {
    for (int i = 0; i < parallel; ++i) next();
    EXPECT_TRUE(parts_.run_until([this] { return answered_ == total_; }));
    EXPECT_EQ(failed_, 0);
  }
  std::uint64_t largest = 0;

 private:
  void next() {
    if (sent_ == total_) return;
    const int number = sent_++;
    parts_.submit_computed(
        [this, number](const zone::StoreView& snapshot) -> Result<zone::Changeset> {
          const dns::Name owner = name(fmt::format("host{}", (number * 7919) % names_));
          const auto found = snapshot.zone_at(name("@")).record_at(owner).find(dns::RRType::kA);
          const ByteView old = found.first_rdata();
          Bytes fresh(4);
          store_be32(fresh.data(), static_cast<std::uint32_t>(number));
          zone::Changeset changes{name("@"), {}, {}};
          changes.removed.push_back(
              {owner, dns::RRType::kA, dns::Ttl{300}, Bytes(old.begin(), old.end())});
          changes.added.push_back({owner, dns::RRType::kA, dns::Ttl{300}, fresh});
          return changes;
        },
        [this](const Result<zone::Applied>& applied) {
          ++answered_;
          failed_ += applied ? 0 : 1;
          largest = std::max(largest, bytes_in_use(parts_));
          next();
        });
  }

  Parts& parts_;
  int names_, total_;
  int sent_ = 0, answered_ = 0, failed_ = 0;
};

TEST(StoreUpkeep, AZoneUnderManySmallUpdatesStaysWithinOneAndAHalfTimesItsSize) {
  Parts parts;
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  fill(parts, 10'000);
  const std::uint64_t start = bytes_in_use(parts);
  upkeep.start();
  Churn churn(parts, 10'000, 40'000);
  churn.run(16);
  EXPECT_LE(churn.largest, start + start / 2) << "started with " << start;
  EXPECT_GT(upkeep.counters().walks, 2U);
  EXPECT_TRUE(parts.zone.store().check().has_value());
  upkeep.stop();
}

TEST(StoreUpkeep, WaitsForTwiceTheGarbageBesideOtherWork) {
  Parts parts;
  fill(parts, 10'000);
  const std::uint64_t garbage = StoreGarbage::of(parts.zone.store().stats()).percent;
  ASSERT_GT(garbage, 2U);
  StoreUpkeep::Options options;
  options.garbage_percent = static_cast<unsigned>(garbage) * 2 / 3;
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, options);
  bool has_work = true;
  upkeep.yield_to([&] { return has_work; });
  upkeep.start();
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  EXPECT_EQ(upkeep.counters().searches, 0U);
  has_work = false;
  EXPECT_TRUE(parts.run_until([&] { return upkeep.counters().searches > 0; }));
  upkeep.stop();
}

TEST(StoreUpkeep, AReplacedZoneIsGivenBack) {
  Parts parts;
  fill(parts, 10'000);
  const std::uint64_t full = parts.zone.store().stats().live_bytes;
  bool unloaded = false;
  parts.committer.edit([](zone::Draft& draft) { return draft.unload_zone(name("@")); },
                       [&](const Status&) { unloaded = true; });
  ASSERT_TRUE(parts.run_until([&] { return unloaded; }));
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  EXPECT_TRUE(parts.run_until([&] { return parts.zone.store().stats().live_bytes < full / 20; }));
  EXPECT_TRUE(parts.run_until([&] { return bytes_in_use(parts) < 8 * shm::kChunkBytes; }));
  upkeep.stop();
}

TEST(StoreUpkeep, AnIdleStoreIsLeftAlone) {
  Parts parts;
  fill(parts, 1000);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  const std::uint64_t version = parts.committer.current().version();
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  EXPECT_EQ(parts.committer.current().version(), version);
  EXPECT_EQ(upkeep.counters().steps, 0U);
  upkeep.stop();
}

/// An update with the next serial.
void move_on(Parts& parts, int number) {
  const auto before = soa_record(parts.committer.current().zone_at(name("@")));
  ASSERT_TRUE(before);
  zone::Record after = *before;
  set_soa_serial(after.rdata, soa_serial(before->rdata).next());
  zone::Changeset changes{name("@"), {*before}, {after}};
  changes.added.push_back(record(fmt::format("moved{} 300 A 10.0.0.1", number)));
  auto result = parts.submit(std::move(changes));
  ASSERT_TRUE(parts.run_until([&] { return result->has_value(); }));
  ASSERT_TRUE((*result)->has_value());
}

TEST(StoreUpkeep, HistoriesAboveTheirTotalAreShortened) {
  Parts parts;
  for (int number = 0; number < 100; ++number) move_on(parts, number);
  const std::uint64_t before = parts.committer.current().history_bytes();
  ASSERT_GT(before, 100U * 100);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.set_history_total(before / 3);
  upkeep.start();
  EXPECT_TRUE(
      parts.run_until([&] { return parts.committer.current().history_bytes() <= before / 3; }));
  EXPECT_GT(parts.committer.current().history_bytes(), before / 6);
  upkeep.set_history_total(0);
  EXPECT_TRUE(parts.run_until([&] { return parts.committer.current().history_bytes() == 0; }));
  upkeep.stop();
}

/// Chunks that are in the version which `pin` is of, and in none behind it.
void hold_chunks(Parts& parts, shm::SlotTable::OwnPin& pin, int chunks) {
  shm::Store& store = parts.zone.store();
  const auto publish = [&](shm::Transaction&& transaction) {
    const shm::VersionInfo now = store.current();
    shm::test::must(store.publish(std::move(transaction), now.root, now.journal_position));
  };
  constexpr std::size_t kBlock = 60'000;  // no two of them have room in a chunk
  std::vector<shm::Ref<>> blocks;
  shm::Transaction taking = store.begin();
  for (int i = 0; i < chunks; ++i) blocks.push_back(shm::test::must(taking.allocate(kBlock)));
  publish(std::move(taking));
  pin = parts.slots.pin_own(store.current().number);
  shm::Transaction giving = store.begin();
  for (const shm::Ref<> block : blocks) giving.release(block, kBlock);
  publish(std::move(giving));
  ASSERT_GE(store.stats().waiting_chunks, static_cast<std::uint64_t>(chunks) - 1);
}

/// The next image frees them; what a history has lost, nothing brings back.
TEST(StoreUpkeep, HistoriesStayInAStoreThatIsTightForWhatAnImageHoldsAlone) {
  Parts parts(32 << 20);
  for (int number = 0; number < 30; ++number) move_on(parts, number);
  shm::Store& store = parts.zone.store();
  shm::SlotTable::OwnPin image;
  hold_chunks(parts, image, 100);
  shm::Transaction others = store.begin_private();
  while (!store.low_space()) ASSERT_TRUE(others.allocate(60'000));
  std::uint64_t before = parts.committer.current().history_bytes();
  StoreUpkeep upkeep(parts.io, store, parts.committer, {});
  upkeep.start();
  for (int number = 30; number < 60; ++number) {
    move_on(parts, number);
    parts.io.restart();
    parts.io.run_one_for(std::chrono::milliseconds(5));
    ASSERT_GT(parts.committer.current().history_bytes(), before) << "after " << number;
    before = parts.committer.current().history_bytes();
  }
  ASSERT_TRUE(store.low_space());
  // The next image has come, and now the store is as full without what it held.
  image = {};
  upkeep.reclaim();
  ASSERT_FALSE(store.low_space());
  while (!store.low_space()) ASSERT_TRUE(others.allocate(60'000));
  EXPECT_TRUE(parts.run_until([&] { return parts.committer.current().history_bytes() == 0; }));
  upkeep.stop();
  EXPECT_TRUE(store.check().has_value());
}

TEST(StoreUpkeep, WhatASnapshotNeedsIsLeftAndNotTriedAgainAndAgain) {
  Parts parts;
  for (int number = 0; number < 30; ++number) move_on(parts, number);
  bool saved = false;
  parts.committer.edit(
      [](zone::Draft& draft) { return draft.take_snapshot(name("@"), "here", 1, {}); },
      [&](const Status& status) { saved = status.has_value(); });
  ASSERT_TRUE(parts.run_until([&] { return saved; }));
  const std::uint64_t before = parts.committer.current().history_bytes();
  for (int number = 30; number < 40; ++number) move_on(parts, number);
  const std::uint64_t needed = parts.committer.current().history_bytes() - before;
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.set_history_total(0);
  upkeep.start();
  EXPECT_TRUE(parts.run_until([&] { return parts.committer.current().history_bytes() == needed; }));
  // A walk that frees nothing, and then none.
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  const std::uint64_t steps = upkeep.counters().steps;
  for (int i = 0; i < 20; ++i) parts.io.run_one_for(std::chrono::milliseconds(30));
  EXPECT_EQ(upkeep.counters().steps, steps);
  EXPECT_EQ(parts.committer.current().history_bytes(), needed);
  upkeep.stop();
}

/// Takes all room that the group's version still has, so that no root block fits behind it.
Status take_all_room(Stage& stage) {
  stage.reserve = shm::Reserve::kAll;
  stage.transaction.use_reserve(shm::Reserve::kAll);
  for (std::size_t bytes = shm::kChunkBytes; bytes >= shm::kUnit; bytes /= 2)
    while (stage.transaction.allocate(bytes)) {
    }
  return {};
}

TEST(StoreUpkeep, AStepWhoseVersionFindsNoRoomIsNotRepeatedAsItWas) {
  constexpr int kNames = 10'000;
  Parts parts(8 << 20);
  fill(parts, kNames);
  zone::Changeset scattered{name("@"), {}, {}};
  for (int i = 0; i < kNames; ++i)
    if (i % 5 < 3)
      scattered.removed.push_back(
          record(fmt::format("host{} 300 A 10.0.{}.{}", i, i / 256, i % 256)));
  const auto deleted = parts.submit(std::move(scattered));
  ASSERT_TRUE(parts.run_until([&] { return deleted->has_value(); }));
  ASSERT_TRUE((*deleted)->has_value());
  const std::uint64_t before = bytes_in_use(parts);
  StoreUpkeep::Options options;
  options.slice = std::chrono::seconds(10);  // the room alone bounds a step, not a busy machine
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, options);
  upkeep.start();
  // Upkeep begins its steps itself; what rides along with them comes behind, in the same version.
  bool crowded = true;
  std::vector<std::uint64_t> steps;  // bytes that each moved, before it found no room
  parts.committer.on_idle_room([&]() -> std::optional<CommitRequest> {
    if (!crowded) return std::nullopt;
    CommitRequest neighbour;
    const auto follows_step = std::make_shared<bool>(false);
    neighbour.stage = [&, follows_step](Stage& stage) -> Status {
      *follows_step = stage.transaction.allocated_bytes() > 0;
      if (!*follows_step) return {};  // upkeep has no step in this version
      steps.push_back(stage.transaction.allocated_bytes());
      return take_all_room(stage);
    };
    neighbour.done = [follows_step](const Result<std::uint64_t>& version) {
      EXPECT_NE(version.has_value(), *follows_step);
    };
    return neighbour;
  });
  constexpr std::size_t kEndless = 50;
  ASSERT_TRUE(
      parts.run_until([&] { return upkeep.counters().walks > 1 || steps.size() >= kEndless; }));
  EXPECT_LT(steps.size(), kEndless) << "the first walk does not end";
  EXPECT_LT(steps.back(), *std::max_element(steps.begin(), steps.end()) / 4);
  crowded = false;
  EXPECT_TRUE(parts.run_until([&] { return bytes_in_use(parts) < before * 3 / 4; }));
  EXPECT_TRUE(parts.zone.store().check().has_value());
  upkeep.stop();
}

/// Each search is a pass over all chunks, on the commit thread.
TEST(StoreUpkeep, OfATightStoreLooksForVictimsAgainWhenMuchHasChanged) {
  Parts parts(256 << 20);  // so that what churn leaves is little of what is free
  fill(parts, 8000);
  shm::Transaction others = parts.zone.store().begin_private();
  while (!parts.zone.store().low_space()) ASSERT_TRUE(others.allocate(60'000));
  const std::uint64_t before = bytes_in_use(parts);
  StoreUpkeep upkeep(parts.io, parts.zone.store(), parts.committer, {});
  upkeep.start();
  Churn churn(parts, 8000, 3000);
  churn.run(1);
  upkeep.stop();
  const std::uint64_t chunks = (bytes_in_use(parts) - before) / shm::kChunkBytes;
  ASSERT_GT(chunks, 8U);
  EXPECT_EQ(upkeep.counters().walks, 0U) << "they would gain little";
  EXPECT_GT(upkeep.counters().searches, 0U);
  EXPECT_LT(upkeep.counters().searches, chunks);
}

/// An image as manager/checkpoint/image has it, in a file that is lent.
class LentImage final : public shm::ImageSource {
 public:
  explicit LentImage(std::string path) : path_(std::move(path)) {}

  void write(shm::Store& store) {
    state = store.capture().state;
    std::ofstream file(path_, std::ios::binary);
    for (std::uint32_t chunk = 0; chunk < state.chunks.size(); ++chunk) {
      if (state.chunks[chunk].count == 0) continue;
      const ByteView bytes = shm::chunk_bytes(store.window(), chunk, 0, state.chunks[chunk].used);
      file.seekp(static_cast<std::streamoff>((chunk + 1) * shm::kChunkBytes));
      file.write(reinterpret_cast<const char*>(bytes.data()),
                 static_cast<std::streamsize>(bytes.size()));
    }
    file.close();
    std::filesystem::resize_file(path_, (state.chunks.size() + 1) * shm::kChunkBytes);
  }
  Status read(std::uint32_t chunk, std::span<std::uint8_t> into, std::uint32_t) override {
    std::ifstream file(path_, std::ios::binary);
    file.seekg(static_cast<std::streamoff>((chunk + 1) * shm::kChunkBytes));
    file.read(reinterpret_cast<char*>(into.data()), static_cast<std::streamsize>(into.size()));
    return file ? Status() : fail(Errc::kIo, "chunk {}", chunk);
  }
  Result<shm::ImageFile> file(std::uint32_t) override {
    return shm::ImageFile{Fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC))};
  }
  void lent(std::unique_ptr<shm::Borrowing> given) override { borrowing = std::move(given); }

  shm::ImageState state;
  std::unique_ptr<shm::Borrowing> borrowing;

 private:
  std::string path_;
};

TEST(StoreUpkeep, OfATightStoreThatBorrowedItsChunksWalksWhenItHasItsOwn) {
  Parts parts(4 << 20);
  fill(parts, 5000);
  Churn(parts, 5000, 1000).run(1);
  LentImage image(parts.folder.path() + "/image");
  image.write(parts.zone.store());
  parts.zone.reopen(4 << 20, [&](const shm::StoreOptions& options) {
    std::filesystem::remove(options.path);
    return shm::Store::restore(options, image.state, image);
  });
  shm::Store& store = parts.zone.store();
  store.set_slots(nullptr);
  ASSERT_TRUE(store.is_borrowing());
  shm::Transaction others = store.begin_private();
  others.use_reserve();
  while (!store.low_space()) ASSERT_TRUE(others.allocate(60'000));
  StoreUpkeep upkeep(parts.io, store, parts.committer, {.least_chunks = 0});
  upkeep.start();
  // Some updates take upkeep along.
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(parts.edit([](zone::Draft&) { return Status(); }));
  EXPECT_EQ(upkeep.counters().walks, 0U);
  ASSERT_TRUE(image.borrowing->copy(image, [] { return true; }));
  ASSERT_TRUE(image.borrowing->settle());
  image.borrowing.reset();
  EXPECT_TRUE(parts.run_until([&] { return upkeep.counters().walks > 0; }));
  upkeep.stop();
}

/// A store that its clients have filled to the limit, and what they then do.
class FullStore : public ::testing::Test {
 protected:
  explicit FullStore(std::uint64_t size_limit = 4 << 20)
      : parts_(size_limit), upkeep_(parts_.io, parts_.zone.store(), parts_.committer, {}) {
    upkeep_.start();
  }
  ~FullStore() override { upkeep_.stop(); }

  bool submit(zone::Changeset changes) {
    auto result = parts_.submit(std::move(changes));
    EXPECT_TRUE(parts_.run_until([&] { return result->has_value(); }));
    const bool done = result->has_value() && (*result)->has_value();
    if (!done) {
      EXPECT_EQ((*result)->error().code, Errc::kFull) << (*result)->error().text;
    }
    return done;
  }
  /// As a client that tries again and again; false when that leads nowhere.
  bool delete_steadily(const zone::Changeset& changes) {
    for (int tries = 0; tries < 1000; ++tries) {
      if (submit(changes)) return true;
      parts_.io.restart();
      parts_.io.run_one_for(std::chrono::milliseconds(5));
    }
    return false;
  }
  /// Adds groups of `group` records that `line` gives until there is no room; returns how many.
  int fill_up(int from, int group, const std::function<std::string(int)>& line) {
    for (int number = from;; number += group) {
      zone::Changeset changes{name("@"), {}, {}};
      for (int i = 0; i < group; ++i) changes.added.push_back(record(line(number + i)));
      if (!submit(std::move(changes))) return number - from;
    }
  }
  /// That it comes to rest, and stays so for longer than its pauses are.
  void expect_rest() {
    using Clock = std::chrono::steady_clock;
    std::uint64_t steps = upkeep_.counters().steps;
    auto since = Clock::now();
    const bool rests = parts_.run_until([&] {
      if (std::exchange(steps, upkeep_.counters().steps) != steps) since = Clock::now();
      return Clock::now() - since > std::chrono::milliseconds(2500);
    });
    EXPECT_TRUE(rests);
    EXPECT_TRUE(parts_.zone.store().check().has_value());
  }

  /// Does `what` until it is refused for want of room.
  void until_refused(const std::function<Status(int)>& what) {
    for (int i = 0; i < 100'000; ++i) {
      const Status done = what(i);
      if (done) continue;
      EXPECT_EQ(done.error().code, Errc::kFull) << done.error().text;
      return;
    }
    ADD_FAILURE() << "never refused";
  }
  [[nodiscard]] std::uint64_t limit() {
    return parts_.zone.store().stats().limit_bytes / shm::kChunkBytes;
  }
  [[nodiscard]] std::uint64_t left() { return limit() - parts_.zone.store().stats().chunks_in_use; }

  Parts parts_;
  StoreUpkeep upkeep_;
};

std::string small_line(int number) {
  return fmt::format("host{} 300 A 10.{}.{}.{}", number, number >> 16, number >> 8 & 255,
                     number & 255);
}

std::string large_line(int number, int bytes) {
  std::string line = fmt::format("large{} 300 TXT", number);
  for (int i = 0; i < bytes / 250; ++i) line += fmt::format(" \"{:0>249}\"", number);
  return line;
}

TEST_F(FullStore, OfSmallRecordsTakesScatteredDeletesOneByOneAndThenAll) {
  const int names = fill_up(0, 100, small_line);
  ASSERT_GT(names, 10'000);
  expect_rest();
  std::vector<bool> there(static_cast<std::size_t>(names), true);
  // Each copies a path of the trie: some times what the reserve has.
  for (int i = 0; i < 3000; ++i) {
    const int number = static_cast<int>(i * 7919LL % names);
    ASSERT_TRUE(delete_steadily({name("@"), {record(small_line(number))}, {}})) << i;
    there[static_cast<std::size_t>(number)] = false;
  }
  EXPECT_GT(upkeep_.counters().walks, 0U);
  zone::Changeset rest{name("@"), {}, {}};
  for (int number = 0; number < names; ++number) {
    if (there[static_cast<std::size_t>(number)]) rest.removed.push_back(record(small_line(number)));
    if (rest.removed.size() < 50 && number + 1 < names) continue;
    ASSERT_TRUE(delete_steadily(std::exchange(rest, {name("@"), {}, {}}))) << number;
  }
  EXPECT_TRUE(parts_.run_until([&] { return bytes_in_use(parts_) < 8 * shm::kChunkBytes; }));
  EXPECT_GT(fill_up(names, 100, small_line), names * 9 / 10);
  expect_rest();
}

TEST_F(FullStore, OfLargeRecordsGivesBackWhatEverySecondDeleteLeft) {
  const auto line = [](int number) { return large_line(number, 14'000); };
  const int names = fill_up(0, 1, line);
  ASSERT_GT(names, 100);
  for (int number = 0; number < names; number += 2)
    ASSERT_TRUE(delete_steadily({name("@"), {record(line(number))}, {}})) << number;
  // Half of each chunk is free, and all of that is to be had again.
  EXPECT_TRUE(
      parts_.run_until([&] { return bytes_in_use(parts_) < (std::uint64_t{4} << 20) * 3 / 4; }));
  EXPECT_GT(fill_up(names, 1, line), names / 3);
  for (int number = 1; number < names; number += 2)
    ASSERT_TRUE(delete_steadily({name("@"), {record(line(number))}, {}})) << number;
  expect_rest();
}

TEST_F(FullStore, WithoutGarbageIsNotWalkedAgainAndAgain) {
  ASSERT_GT(fill_up(0, 1000, small_line), 10'000);
  expect_rest();
  // What is refused changes nothing.
  for (int i = 1; i <= 20; ++i) fill_up(i * 100'000, 1000, small_line);
  expect_rest();
}

/// Names that come in no order lie all over the trie, so that what is copied takes a multiple of it
/// in paths.
TEST_F(FullStore, OfNamesThatCameInNoOrderTakesDeletesUntilItIsEmpty) {
  constexpr int kPrime = 99'991;
  const auto line = [](int number) {
    return small_line(static_cast<int>(number * 7919LL % kPrime));
  };
  const int names = fill_up(0, 5, line);
  ASSERT_GT(names, 10'000);
  expect_rest();
  // In yet another order.
  const auto nth = [names](int i) { return static_cast<int>(i * 104'729LL % names); };
  std::vector<bool> there(static_cast<std::size_t>(names), true);
  for (int i = 0; i < 3000; ++i) {
    ASSERT_TRUE(delete_steadily({name("@"), {record(line(nth(i)))}, {}})) << i;
    there[static_cast<std::size_t>(nth(i))] = false;
  }
  zone::Changeset rest{name("@"), {}, {}};
  for (int number = 0; number < names; ++number) {
    if (there[static_cast<std::size_t>(number)]) rest.removed.push_back(record(line(number)));
    if (rest.removed.size() < 50 && number + 1 < names) continue;
    ASSERT_TRUE(delete_steadily(std::exchange(rest, {name("@"), {}, {}}))) << number;
  }
  EXPECT_TRUE(parts_.run_until([&] { return bytes_in_use(parts_) < 8 * shm::kChunkBytes; }));
  expect_rest();
}

/// Small additions that find room behind others must not use up what deletes need.
TEST_F(FullStore, KeepsItsReserveFromSmallAdditions) {
  ASSERT_GT(fill_up(0, 100, small_line), 10'000);
  upkeep_.stop();
  while (fill_up(1'000'000 + static_cast<int>(parts_.committer.counters().requests), 1,
                 small_line) > 0) {
  }
  // A root block may take one.
  EXPECT_GE(left() + 1, shm::reserve_chunks(limit()));
  for (int number = 0; number < 50; ++number)
    EXPECT_TRUE(submit({name("@"), {record(small_line(number))}, {}})) << number;
  EXPECT_GE(left() + 1, shm::compaction_chunks(limit()));
}

/// As it is when the last update was refused.
class FullStoreAtRest : public FullStore {
 protected:
  FullStoreAtRest() {
    const Status put = parts_.edit(
        [](zone::Draft& draft) { return draft.put_zone_settings(name("tiny"), {}, 1); });
    EXPECT_TRUE(put.has_value());
    fill_up(0, 100, small_line);
    upkeep_.stop();
  }
  Status bring(const zone::Changeset& difference) {
    ZoneChange change;
    change.zone = name("@");
    change.source = ChangeSource::kTransfer;
    change.content = std::make_shared<const std::vector<zone::Changeset>>(1, difference);
    return parts_.commit([&](Stage& stage) {
      return status_of(stage_changesets(stage, change, parts_.committer));
    });
  }
  Status put_tiny_zone() {
    shm::Transaction transaction = parts_.zone.store().begin_private();
    zone::ZoneBuilder builder(name("tiny"), transaction);
    for (const char* line : {"tiny 300 SOA ns1 admin 1 2 3 4 5", "tiny 300 NS ns1"}) {
      const zone::Record one = record(line);
      if (auto added = builder.add(one.owner, one.type, one.ttl, one.rdata); !added) return added;
    }
    auto built = builder.finish();
    if (!built) return pass(built);
    std::optional<Status> result;
    parts_.put_whole(name("tiny"), *built, std::move(transaction),
                     [&](const Status& status) { result = status; });
    EXPECT_TRUE(parts_.run_until([&] { return result.has_value(); }));
    return *result;
  }
  void expect_reserve() { EXPECT_GE(left() + 1, shm::reserve_chunks(limit())); }
};

TEST_F(FullStoreAtRest, KeepsItsReserveFromDifferencesThatAdd) {
  until_refused([&](int i) { return bring({name("@"), {}, {record(small_line(1'000'000 + i))}}); });
  expect_reserve();
  for (int i = 0; i < 50; ++i) {
    const Status done = bring({name("@"), {record(small_line(i))}, {}});
    EXPECT_TRUE(done.has_value()) << i;
  }
}

TEST_F(FullStoreAtRest, KeepsItsReserveFromZonesThatAreAdded) {
  until_refused([&](int i) {
    return parts_.edit([i](zone::Draft& draft) {
      return draft.put_zone_settings(name(fmt::format("sub{}", i)), {},
                                     static_cast<std::uint32_t>(2 + i));
    });
  });
  expect_reserve();
  std::optional<Status> gone;
  parts_.committer.edit([](zone::Draft& draft) { return draft.remove_zone(name("tiny")); },
                        [&](const Status& status) { gone = status; }, shm::Reserve::kHalf);
  ASSERT_TRUE(parts_.run_until([&] { return gone.has_value(); }));
  EXPECT_TRUE(gone->has_value()) << gone->error().text;
}

TEST_F(FullStoreAtRest, KeepsItsReserveFromZonesThatComeWhole) {
  until_refused([&](int) { return put_tiny_zone(); });
  expect_reserve();
}

/// What was acknowledged before, and is built anew, may have all.
TEST_F(FullStoreAtRest, TakesBackWhatItHad) {
  until_refused([&](int i) { return bring({name("@"), {}, {record(small_line(1'000'000 + i))}}); });
  shm::Transaction others = parts_.zone.store().begin_private();
  others.use_reserve();
  while (left() > 1) ASSERT_TRUE(others.allocate(60'000));
  EXPECT_FALSE(put_tiny_zone().has_value());
  shm::Transaction transaction = parts_.zone.store().begin_private();
  transaction.use_reserve();
  zone::ZoneBuilder builder(name("tiny"), transaction);
  for (const char* line : {"tiny 300 SOA ns1 admin 1 2 3 4 5", "tiny 300 NS ns1"}) {
    const zone::Record one = record(line);
    ASSERT_TRUE(builder.add(one.owner, one.type, one.ttl, one.rdata));
  }
  auto built = builder.finish();
  ASSERT_TRUE(built.has_value());
  std::optional<Status> result;
  parts_.put_whole(name("tiny"), *built, std::move(transaction),
                   [&](const Status& status) { result = status; });
  ASSERT_TRUE(parts_.run_until([&] { return result.has_value(); }));
  EXPECT_TRUE(result->has_value());
}

/// A restart with less than is in use.
TEST_F(FullStore, OfALimitThatWasLoweredComesDownToItByDeletes) {
  const int names = fill_up(0, 100, small_line);
  ASSERT_GT(names, 10'000);
  upkeep_.stop();
  constexpr std::uint64_t kLowered = 2 << 20;
  parts_.zone.reopen(kLowered,
                     [](const shm::StoreOptions& options) { return shm::Store::attach(options); });
  parts_.zone.store().set_slots(&parts_.slots);
  StoreUpkeep upkeep(parts_.io, parts_.zone.store(), parts_.committer, {});
  upkeep.start();
  ASSERT_GT(bytes_in_use(parts_), kLowered * 3 / 2);
  EXPECT_FALSE(submit({name("@"), {}, {record("more 300 A 192.0.2.1")}}));
  zone::Changeset some{name("@"), {}, {}};
  for (int i = 0; i < names * 3 / 4; ++i) {
    some.removed.push_back(record(small_line(static_cast<int>(i * 7919LL % names))));
    if (some.removed.size() < 50) continue;
    ASSERT_TRUE(delete_steadily(std::exchange(some, {name("@"), {}, {}}))) << i;
  }
  EXPECT_TRUE(parts_.run_until([&] { return bytes_in_use(parts_) < kLowered; }));
  EXPECT_TRUE(
      parts_.run_until([&] { return submit({name("@"), {}, {record("more 300 A 192.0.2.1")}}); }));
  upkeep.stop();
}

}  // namespace store_upkeep_test
}  // namespace pando::manager
