#include "manager/checkpoint/image_lending.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <fstream>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace image_lending_test {

using shm::test::must;

class Lending : public ::testing::Test {
 protected:
  Lending() { std::ofstream(path_, std::ios::binary) << std::string(shm::kChunkBytes + 100, 'x'); }

  shm::test::Folder folder_;
  std::string path_ = folder_.path() + "/image.0123456789abcdef";
};

TEST_F(Lending, LastsAsLongAsAnyCopyOfTheDescriptor) {
  EXPECT_FALSE(is_lent(path_));
  shm::ImageFile one = must(lend_image(path_, 1));
  shm::ImageFile other = must(lend_image(path_, 1));
  EXPECT_TRUE(is_lent(path_));
  Fd passed_on(::fcntl(one.fd.get(), F_DUPFD_CLOEXEC, 0));
  one.fd = Fd();
  other.fd = Fd();
  EXPECT_TRUE(is_lent(path_)) << "a worker has it";
  void* mapped = ::mmap(nullptr, shm::kChunkBytes, PROT_READ, MAP_SHARED, passed_on.get(),
                        static_cast<off_t>(shm::kChunkBytes));
  ASSERT_NE(mapped, MAP_FAILED);
  passed_on = Fd();
  EXPECT_TRUE(is_lent(path_)) << "it reads from it";
  ::munmap(mapped, shm::kChunkBytes);
  EXPECT_FALSE(is_lent(path_));
}

TEST_F(Lending, EndsWithTheProcessThatHasIt) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t reader = shm::test::start_child([&] {
    const shm::ImageFile file = must(lend_image(path_, 1));
    if (::write(ready[1], "x", 1) != 1) return 1;
    for (;;) ::pause();
    return 0;
  });
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_TRUE(is_lent(path_));
  ::kill(reader, SIGKILL);
  EXPECT_EQ(shm::test::end_of(reader), -SIGKILL);
  EXPECT_FALSE(is_lent(path_));
  ::close(ready[0]);
  ::close(ready[1]);
}

TEST_F(Lending, MakesTheFileAsLongAsAMappingHasToBe) {
  const shm::ImageFile file = must(lend_image(path_, 3));
  EXPECT_EQ(std::filesystem::file_size(path_), 4 * shm::kChunkBytes);
  EXPECT_EQ(file.first, shm::kChunkBytes);
  void* mapped = ::mmap(nullptr, 3 * shm::kChunkBytes, PROT_READ, MAP_SHARED, file.fd.get(),
                        static_cast<off_t>(file.first));
  ASSERT_NE(mapped, MAP_FAILED);
  EXPECT_EQ(static_cast<const char*>(mapped)[99], 'x');
  EXPECT_EQ(static_cast<const char*>(mapped)[3 * shm::kChunkBytes - 1], '\0');
  ::munmap(mapped, 3 * shm::kChunkBytes);
  EXPECT_EQ(::fcntl(file.fd.get(), F_GETFL) & O_ACCMODE, O_RDONLY) << "workers get it";
  must(lend_image(path_, 2));
  EXPECT_EQ(std::filesystem::file_size(path_), 4 * shm::kChunkBytes) << "never shorter";
}

TEST_F(Lending, NamesAFileThatIsNotThere) {
  EXPECT_EQ(lend_image(path_ + "x", 1).error().code, Errc::kNotFound);
  EXPECT_FALSE(is_lent(path_ + "x"));
}

}  // namespace image_lending_test
}  // namespace pando::manager
