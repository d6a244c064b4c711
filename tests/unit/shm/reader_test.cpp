#include "shm/reader.h"

#include <fcntl.h>

#include "shm/layout.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace reader_test {

using namespace test;

class Reading : public ::testing::Test {
 protected:
  Reading() {
    store_.set_slots(&slots_);
    must(slots_.add(0));
  }
  ~Reading() override { store_.set_slots(nullptr); }
  [[nodiscard]] Reader attach() const {
    return must(Reader::attach(must(slots_.lend(0)), kLayout, 0));
  }
  /// Publishes a version whose root is one block of `bytes` bytes of `value`.
  void publish(std::size_t bytes, int value) {
    Transaction transaction = store_.begin();
    if (const Ref<> old = store_.current().root) transaction.release(old, bytes_);
    const Ref<> block = put(transaction, bytes, value);
    must(store_.publish(std::move(transaction), block, 0));
    bytes_ = bytes;
  }

  Folder folder_;
  Store store_ = must(Store::create(options(folder_, 4 * kMiB)));
  SlotTable slots_ = must(SlotTable::open(folder_.slots(), folder_.store(), kLayout));
  std::size_t bytes_ = 0;
};

TEST_F(Reading, PinShowsTheCurrentVersion) {
  Reader reader = attach();
  EXPECT_EQ(reader.pin().version, 1U);
  reader.unpin();
  publish(100, 3);
  const Reader::View view = reader.pin();
  EXPECT_EQ(view.version, 2U);
  EXPECT_TRUE(filled(view.window, view.root, 100, 3));
}

TEST_F(Reading, SeesTheFileGrowWithoutMappingAnew) {
  Reader reader = attach();
  for (int i = 0; i < 10; ++i) {
    Transaction transaction = store_.begin();
    const Ref<> block = put(transaction, 60'000, i);
    must(store_.publish(std::move(transaction), block, 0));
    const Reader::View view = reader.pin();
    EXPECT_TRUE(filled(view.window, view.root, 60'000, i));
    reader.unpin();
  }
}

TEST_F(Reading, ADamagedHeaderDoesNotLeadBehindTheEndOfTheFile) {
  publish(100, 3);
  Reader reader = attach();
  struct stat status{};
  ASSERT_EQ(::stat(folder_.store().c_str(), &status), 0);
  auto& header = *reinterpret_cast<Header*>(const_cast<std::byte*>(store_.window().base()));
  const std::uint64_t committed = header.committed.exchange(kReach);
  const Reader::View view = reader.pin();
  EXPECT_EQ(view.version, 2U);
  EXPECT_EQ(view.window.limit(), static_cast<std::uint64_t>(status.st_size));
  reader.unpin();
  header.committed = committed;
}

TEST_F(Reading, NoReferenceLeadsInFrontOfTheBlocks) {
  publish(100, 3);
  Reader reader = attach();
  const Window window = reader.pin().window;
  EXPECT_EQ(window.at(Ref<>{kFirstBlock / kUnit - 1}), nullptr);
  EXPECT_NE(window.at(Ref<>{kFirstBlock / kUnit}), nullptr);
}

TEST_F(Reading, PinnedVersionStaysWholeWhileOthersComeAndGo) {
  publish(50'000, 1);
  Reader reader = attach();
  const Reader::View view = reader.pin();
  for (int i = 0; i < 30; ++i) publish(50'000, 100);
  EXPECT_TRUE(filled(view.window, view.root, 50'000, 1));
}

TEST_F(Reading, BatchPinHoldsMemoryUntilItEnds) {
  publish(50'000, 1);
  Reader reader = attach();
  (void)reader.pin();
  for (int i = 0; i < 30; ++i) publish(50'000, i);
  EXPECT_EQ(store_.reclaim(), 0U);
  EXPECT_GE(store_.stats().waiting_chunks, 25U);
  reader.unpin();
  EXPECT_GE(store_.reclaim(), 25U);
  EXPECT_EQ(store_.stats().waiting_chunks, 0U);
  must(store_.check());
}

TEST_F(Reading, LeaseHoldsItsVersionButNotWhatCameAndWentLater) {
  publish(50'000, 1);
  Reader reader = attach();
  const Reader::View view = reader.pin();
  const std::size_t lease = must(reader.take_lease());
  reader.unpin();
  for (int i = 0; i < 1000; ++i) publish(50'000, 9);
  EXPECT_TRUE(filled(view.window, view.root, 50'000, 1));
  store_.reclaim();
  EXPECT_LE(store_.stats().waiting_chunks, 2U);
  reader.give_up_lease(lease);
  store_.reclaim();
  EXPECT_EQ(store_.stats().waiting_chunks, 0U);
}

TEST_F(Reading, LeasesOfSeveralVersionsAreHeldApart) {
  Reader reader = attach();
  std::vector<Reader::View> views;
  std::vector<std::size_t> leases;
  for (int i = 0; i < 10; ++i) {
    publish(40'000, i);
    views.push_back(reader.pin());
    leases.push_back(must(reader.take_lease()));
    reader.unpin();
  }
  for (int i = 0; i < 200; ++i) publish(40'000, 77);
  for (std::size_t i = 0; i < views.size(); i += 2) reader.give_up_lease(leases[i]);
  for (int i = 0; i < 200; ++i) publish(40'000, 78);
  for (std::size_t i = 1; i < views.size(); i += 2)
    EXPECT_TRUE(filled(views[i].window, views[i].root, 40'000, static_cast<int>(i)));
  must(store_.check());
}

TEST_F(Reading, OwnPinHoldsItsVersion) {
  publish(50'000, 1);
  const VersionInfo version = store_.current();
  {
    const SlotTable::OwnPin pin = slots_.pin_own(version.number);
    for (int i = 0; i < 200; ++i) publish(50'000, 9);
    EXPECT_TRUE(filled(store_.window(), version.root, 50'000, 1));
  }
  store_.reclaim();
  EXPECT_EQ(store_.stats().waiting_chunks, 0U);
}

TEST_F(Reading, LeasesAreLimitedAndCanBeRevoked) {
  Reader reader = attach();
  EXPECT_EQ(reader.take_lease().error().code, Errc::kInvalid);
  (void)reader.pin();
  for (std::size_t i = 0; i < kLeasesPerSlot; ++i) must(reader.take_lease());
  EXPECT_EQ(reader.take_lease().error().code, Errc::kFull);
  EXPECT_FALSE(reader.lease_revoked(3));
  slots_.page(0)->leases[3].revoke.store(1);
  EXPECT_TRUE(reader.lease_revoked(3));
}

TEST_F(Reading, RefusesAStoreOfAnotherLayout) {
  const auto reader = Reader::attach(must(slots_.lend(0)), kLayout + 1, 0);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Errc::kLayout);
}

TEST_F(Reading, RefusesACopyOfAStore) {
  const std::string copy = folder_.path() + "/copy";
  std::filesystem::copy_file(folder_.store(), copy);
  SlotLoan files = must(slots_.lend(0));
  files.store = Fd(::open(copy.c_str(), O_RDONLY | O_CLOEXEC));
  const auto reader = Reader::attach(std::move(files), kLayout, 0);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.error().code, Errc::kCorrupt);
}

TEST_F(Reading, SideTableShowsWhatTheManagerWroteAndNoHoles) {
  const Reader reader = attach();
  EXPECT_EQ(reader.side(5), nullptr);
  Store::SideEntry* entry = store_.side(5);
  ASSERT_NE(entry, nullptr);
  entry->expires_at.store(1234, std::memory_order_relaxed);
  ASSERT_NE(reader.side(5), nullptr);
  EXPECT_EQ(reader.side(5)->expires_at.load(std::memory_order_relaxed), 1234U);
  EXPECT_EQ(reader.side(Store::kSideEntries - 1), nullptr);
  ASSERT_NE(store_.side(Store::kSideEntries - 1), nullptr);
  EXPECT_NE(reader.side(Store::kSideEntries - 1), nullptr);
  EXPECT_EQ(store_.side(Store::kSideEntries), nullptr);
}

TEST_F(Reading, ReadersNeverAllocateMemory) {
  Reader reader = attach();
  struct stat before{};
  struct stat after{};
  ASSERT_EQ(::stat(folder_.store().c_str(), &before), 0);
  for (int i = 0; i < 100; ++i) {
    (void)reader.pin();
    (void)reader.side(static_cast<std::uint32_t>(i) * 1000);
    reader.unpin();
  }
  ASSERT_EQ(::stat(folder_.store().c_str(), &after), 0);
  EXPECT_EQ(before.st_blocks, after.st_blocks);
}

}  // namespace reader_test
}  // namespace pando::shm
