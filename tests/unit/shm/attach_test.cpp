#include <fcntl.h>

#include <fstream>

#include "shm/layout.h"
#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace attach_test {

using namespace test;

Errc code_of(const Result<Store>& store) { return store ? Errc::kInvalid : store.error().code; }

/// Overwrites bytes of a closed store's file.
template <class T>
void damage(const Folder& folder, std::uint64_t at, T value) {
  const Fd fd(::open(folder.store().c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_EQ(::pwrite(fd.get(), &value, sizeof value, static_cast<off_t>(at)),
            static_cast<ssize_t>(sizeof value));
}

std::uint64_t root_of(const Folder& folder) {
  const Store store = must(Store::attach(options(folder)));
  const auto* header = reinterpret_cast<const Header*>(store.window().base());
  return Ref<>{header->publication.root.load()}.offset();
}

void make_store(const Folder& folder) {
  Store store = must(Store::create(options(folder)));
  Transaction transaction = store.begin();
  const Ref<> block = put(transaction, 100, 1);
  must(store.publish(std::move(transaction), block, 0));
}

TEST(Attach, NothingThereIsNotFound) {
  const Folder folder;
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kNotFound);
}

TEST(Attach, SecondManagerIsRefused) {
  const Folder folder;
  const Store first = must(Store::create(options(folder)));
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kExists);
  EXPECT_EQ(code_of(Store::create(options(folder))), Errc::kExists);
  EXPECT_FALSE(std::filesystem::exists(folder.store() + ".new"));
}

TEST(Attach, SecondManagerIsRefusedInAnotherProcess) {
  const Folder folder;
  const Store first = must(Store::create(options(folder)));
  EXPECT_EQ(in_child([&] { return code_of(Store::attach(options(folder))) == Errc::kExists; }), 1);
}

TEST(Attach, StoreOfAnotherOwnerIsRefusedAndLeftAsItIs) {
  const Folder folder;
  StoreOptions mine = options(folder);
  mine.owner = {1, 2};
  mine.foreign = "not yours";
  mine.mode = 0640;
  must(Store::create(mine));
  StoreOptions other = mine;
  other.owner = {1, 3};
  other.mode = 0600;
  const auto refused = Store::attach(other);
  ASSERT_EQ(code_of(refused), Errc::kDenied);
  EXPECT_EQ(refused.error().text, folder.store() + ": not yours");
  EXPECT_EQ(std::filesystem::status(folder.store()).permissions(), std::filesystem::perms(0640));
  EXPECT_TRUE(Store::attach(mine));
}

TEST(Attach, StoreOfNobodyIsNotThatOfAnOwner) {
  const Folder folder;
  make_store(folder);
  StoreOptions mine = options(folder);
  mine.owner = {1, 2};
  EXPECT_EQ(code_of(Store::attach(mine)), Errc::kDenied);
  EXPECT_TRUE(Store::attach(options(folder)));
}

TEST(Attach, DeadManagersStoreIsTakenOver) {
  const Folder folder;
  EXPECT_EQ(in_child([&] {
              const Store store = must(Store::create(options(folder)));
              ::raise(SIGKILL);
              return 0;
            }),
            -SIGKILL);
  must(must(Store::attach(options(folder))).check());
}

TEST(Attach, CreateReplacesAStoreThatNobodyHolds) {
  const Folder folder;
  make_store(folder);
  const Store store = must(Store::create(options(folder)));
  EXPECT_EQ(store.current().number, 1U);
}

TEST(Attach, CopiedFileIsNotALiveStore) {
  const Folder folder;
  make_store(folder);
  std::filesystem::copy_file(folder.store(), folder.path() + "/copy");
  std::filesystem::rename(folder.path() + "/copy", folder.store());
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, OtherLayoutIsRefused) {
  const Folder folder;
  make_store(folder);
  StoreOptions other = options(folder);
  other.layout = kLayout + 1;
  EXPECT_EQ(code_of(Store::attach(other)), Errc::kLayout);
}

TEST(Attach, OtherFormatIsRefused) {
  const Folder folder;
  make_store(folder);
  damage(folder, offsetof(Header, format), kFormatVersion + 1);
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kLayout);
}

TEST(Attach, OtherUnitIsRefused) {
  const Folder folder;
  make_store(folder);
  damage(folder, offsetof(Header, unit), static_cast<std::uint32_t>(kUnit * 2));
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kLayout);
}

TEST(Attach, ForeignFileIsRefused) {
  const Folder folder;
  std::ofstream(folder.store()) << "example.com. 3600 IN SOA ns1 hostmaster 1 2 3 4 5\n";
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, TruncatedFileIsRefused) {
  const Folder folder;
  make_store(folder);
  ASSERT_EQ(::truncate(folder.store().c_str(), static_cast<off_t>(kChunksOffset)), 0);
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, SymbolicLinkIsRefused) {
  const Folder folder;
  make_store(folder);
  std::filesystem::rename(folder.store(), folder.path() + "/elsewhere");
  std::filesystem::create_symlink(folder.path() + "/elsewhere", folder.store());
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kIo);
}

TEST(Attach, DamagedRootBlockIsRefused) {
  const Folder folder;
  make_store(folder);
  const std::uint64_t root = root_of(folder);
  damage(folder, root + offsetof(RootBlock, journal_position), std::uint64_t{99});
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, RootReferenceBeyondTheFileIsRefused) {
  const Folder folder;
  make_store(folder);
  damage(folder, offsetof(Header, publication), std::uint32_t{0xFFFFFFFF});
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
  damage(folder, offsetof(Header, publication), std::uint32_t{1});
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, EpochThatIsNotTheRootsIsRefused) {
  const Folder folder;
  make_store(folder);
  damage(folder, offsetof(Header, publication) + offsetof(Publication, epoch), std::uint64_t{900});
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, DamagedChunkCountIsRefused) {
  const Folder folder;
  Ref<> block;
  {
    Store store = must(Store::create(options(folder)));
    Transaction transaction = store.begin();
    for (int i = 0; i < 10; ++i) block = put(transaction, 60'000, 1);
    must(store.publish(std::move(transaction), block, 0));
    Transaction second = store.begin();
    put(second, 8, 1);
    must(store.publish(std::move(second), block, 0));
  }
  damage(folder, kCountsOffset + 3 * sizeof(std::uint32_t), std::uint32_t{70'000});
  EXPECT_EQ(code_of(Store::attach(options(folder))), Errc::kCorrupt);
}

TEST(Attach, LiveStoreMustBeOnTmpfs) {
  StoreOptions elsewhere;
  elsewhere.path = ::testing::TempDir() + "pando-not-tmpfs-" + std::to_string(::getpid());
  elsewhere.size_limit = kMiB;
  const auto refused = Store::create(elsewhere);
  if (refused) GTEST_SKIP() << ::testing::TempDir() << " is a tmpfs here";
  EXPECT_EQ(refused.error().code, Errc::kUnsupported);
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path));
  EXPECT_FALSE(std::filesystem::exists(elsewhere.path + ".new"));
}

TEST(Attach, SizeLimitMustHoldSomeChunks) {
  const Folder folder;
  EXPECT_EQ(code_of(Store::create(options(folder, 1000))), Errc::kInvalid);
}

TEST(Attach, FileHasTheModeOfItsOptions) {
  const Folder folder;
  const Store store = must(Store::create(options(folder)));
  struct stat status{};
  ASSERT_EQ(::stat(folder.store().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0640U);
}

TEST(Attach, NothingIsReusedBeforeTheReadersAreKnown) {
  const Folder folder;
  {
    Store store = must(Store::create(options(folder)));
    Ref<> old;
    for (int i = 0; i < 20; ++i) {
      Transaction transaction = store.begin();
      if (old) transaction.release(old, 60'000);
      old = put(transaction, 60'000, i);
      must(store.publish(std::move(transaction), old, 0));
    }
  }
  Store store = must(Store::attach(options(folder)));
  const auto waiting = store.stats().waiting_chunks;
  EXPECT_GT(waiting, 0U);
  EXPECT_EQ(store.reclaim(), 0U);
  store.set_slots(nullptr);
  EXPECT_EQ(store.reclaim(), waiting);
  must(store.check());
}

TEST(Attach, SmallerLimitKeepsWhatIsThere) {
  const Folder folder;
  Ref<> block;
  {
    Store store = must(Store::create(options(folder)));
    Transaction transaction = store.begin();
    for (int i = 0; i < 60; ++i) block = put(transaction, 60'000, 1);
    must(store.publish(std::move(transaction), block, 0));
  }
  Store store = must(Store::attach(options(folder, kMiB)));
  EXPECT_TRUE(filled(store.window(), block, 60'000, 1));
  Transaction transaction = store.begin();
  put(transaction, 8, 1);
  EXPECT_EQ(transaction.allocate(65'000).error().code, Errc::kFull);
  must(store.check());
}

}  // namespace attach_test
}  // namespace pando::shm
