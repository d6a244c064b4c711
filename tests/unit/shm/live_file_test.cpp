#include "shm/live_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "tests/unit/shm/support.h"

namespace pando::shm {
namespace live_file_test {

using test::must;
using ::testing::HasSubstr;

class LiveFiles : public ::testing::Test {
 protected:
  /// A store file with its name, which nobody holds afterwards.
  void make() {
    LiveFile file = must(LiveFile::create(options_));
    must(file.install(options_));
  }
  /// Overwrites some bytes of the header.
  template <class Value>
  void patch(std::size_t offset, Value value) const {
    const Fd fd(::open(options_.path.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::pwrite(fd.get(), &value, sizeof value, static_cast<off_t>(offset)),
              static_cast<ssize_t>(sizeof value));
  }
  /// The error of an attempt to attach.
  [[nodiscard]] Error refusal() const {
    auto file = LiveFile::attach(options_);
    return file ? Error{Errc::kNotFound, "attached"} : file.error();
  }
  [[nodiscard]] static std::uint64_t blocks_of(const LiveFile& file) {
    struct stat status{};
    ::fstat(file.fd(), &status);
    return static_cast<std::uint64_t>(status.st_blocks) * 512;
  }

  test::Folder folder_;
  StoreOptions options_ = test::options(folder_);
};

TEST_F(LiveFiles, ANewFileHasItsNameOnlyAfterInstall) {
  LiveFile file = must(LiveFile::create(options_));
  EXPECT_FALSE(std::filesystem::exists(options_.path));
  must(file.install(options_));
  EXPECT_TRUE(std::filesystem::exists(options_.path));
  EXPECT_FALSE(std::filesystem::exists(options_.path + ".new"));
}

TEST_F(LiveFiles, ADiscardedFileLeavesNoTrace) {
  LiveFile file = must(LiveFile::create(options_));
  file.discard(options_);
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
}

/// Two managers with one store would write over each other.
TEST_F(LiveFiles, AStoreThatIsHeldIsNeitherAttachedNorReplaced) {
  LiveFile held = must(LiveFile::create(options_));
  must(held.install(options_));
  EXPECT_EQ(test::in_child([&] { return refusal().code == Errc::kExists ? 0 : 1; }), 0);
  EXPECT_EQ(test::in_child([&] {
              LiveFile second = must(LiveFile::create(options_));
              const auto installed = second.install(options_);
              return !installed && installed.error().code == Errc::kExists ? 0 : 1;
            }),
            0);
}

TEST_F(LiveFiles, WithoutAFileThereIsNoStore) {
  EXPECT_EQ(refusal().code, Errc::kNotFound);
  EXPECT_EQ(owner_of(options_.path, test::kLayout).error().code, Errc::kNotFound);
}

TEST_F(LiveFiles, AnyOtherFileIsNoStore) {
  std::ofstream(options_.path) << std::string(100'000, 'x');
  EXPECT_EQ(refusal().code, Errc::kCorrupt);
  EXPECT_THAT(refusal().text, HasSubstr("not a zone store"));
  std::ofstream(options_.path) << "short";
  EXPECT_THAT(refusal().text, HasSubstr("not a zone store"));
}

TEST_F(LiveFiles, AnotherBuildsLayoutIsNamedAsThat) {
  make();
  options_.layout = test::kLayout + 1;
  EXPECT_EQ(refusal().code, Errc::kLayout);
}

/// A copy has the same bytes, but readers of the original would not see what is written to it.
TEST_F(LiveFiles, ACopyOfAStoreIsRefused) {
  make();
  std::filesystem::copy_file(options_.path, folder_.path() + "/copy");
  options_.path = folder_.path() + "/copy";
  EXPECT_EQ(refusal().code, Errc::kCorrupt);
  EXPECT_THAT(refusal().text, HasSubstr("a copy of a store"));
}

TEST_F(LiveFiles, AHeaderThatClaimsMoreThanTheFileHasIsDamage) {
  make();
  patch(offsetof(Header, committed), kChunksOffset + kChunkBytes);
  EXPECT_THAT(refusal().text, HasSubstr("shorter than its header says"));
}

TEST_F(LiveFiles, AStoreOfAnotherOwnerIsDenied) {
  options_.owner = {1, 2};
  make();
  EXPECT_EQ(must(owner_of(options_.path, test::kLayout)), (StoreOwner{1, 2}));
  options_.owner = {1, 3};
  options_.foreign = "belongs to another journal";
  EXPECT_EQ(refusal().code, Errc::kDenied);
  EXPECT_THAT(refusal().text, HasSubstr("belongs to another journal"));
}

/// Its readers keep the image mapped, so what is left in the store is worth nothing.
TEST_F(LiveFiles, AStoreThatStillBorrowedIsNotUsedAgain) {
  make();
  EXPECT_FALSE(died_borrowing(options_));
  patch(offsetof(Header, borrowed), std::uint32_t{1});
  EXPECT_TRUE(died_borrowing(options_));
  EXPECT_THAT(refusal().text, HasSubstr("not all of the image had been copied"));
}

TEST_F(LiveFiles, AChunkHasMemoryFromBackToPunch) {
  LiveFile file = must(LiveFile::create(options_));
  must(file.reach(3));
  EXPECT_EQ(file.committed_chunks(), 3U);
  const std::uint64_t before = blocks_of(file);
  const Bytes content(kChunkBytes, 0x5A);
  must(file.write_chunk(1, content));
  EXPECT_EQ(blocks_of(file), before + kChunkBytes);
  const auto at = static_cast<std::ptrdiff_t>(chunk_offset(1));
  EXPECT_EQ(file.base()[at], std::byte{0x5A});
  EXPECT_EQ(file.base()[at + static_cast<std::ptrdiff_t>(kChunkBytes) - 1], std::byte{0x5A});
  ASSERT_TRUE(file.punch(1, 1));
  EXPECT_EQ(blocks_of(file), before);
  EXPECT_EQ(file.base()[at], std::byte{0}) << "a hole reads as zero";
}

}  // namespace live_file_test
}  // namespace pando::shm
