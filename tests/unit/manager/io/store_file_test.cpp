#include "manager/io/store_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "tests/unit/shm/support.h"

namespace pando::manager {
namespace store_file_test {

/// From now on the kernel answers the system call with the error, as a full disk or a used-up quota
/// would. For a child of the test alone.
bool refuse(long call, int error) {
  const auto number = static_cast<std::uint32_t>(call);
  const auto refusal = SECCOMP_RET_ERRNO | static_cast<std::uint32_t>(error);
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refusal),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(program), program};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/// The code of the error that `step` has while the call is refused; kInvalid: it has none.
template <class Step>
Errc error_of(long call, int error, Step step) {
  const shm::test::Folder folder;
  const int code = shm::test::in_child([&] {
    const auto file = native_files().open(folder.path() + "/file", OpenMode::kCreate).value();
    if (!refuse(call, error)) return 99;
    const Status status = step(*file);
    return static_cast<int>(status ? Errc::kInvalid : status.error().code);
  });
  return static_cast<Errc>(code);
}

Status write(StoreFile& file) { return file.write_at(0, Bytes{1, 2, 3}); }
Status preallocate(StoreFile& file) { return file.preallocate(4096); }

/// The file systems of test machines seldom have quotas, so the kernel's answer is put in its
/// place.
TEST(ReadFile, GivesTheFirstBytesOfAFile) {
  const shm::test::Folder folder;
  const std::string path = folder.path() + "/file";
  EXPECT_EQ(read_file(native_files(), path).error().code, Errc::kNotFound);
  ASSERT_TRUE(write_file_atomically(native_files(), path, Bytes{1, 2, 3}));
  EXPECT_EQ(read_file(native_files(), path).value(), (Bytes{1, 2, 3}));
  EXPECT_EQ(read_file(native_files(), path, 2).value(), (Bytes{1, 2}));
}

TEST(GivenFiles, AreWrittenWhereTheirDescriptorLeads) {
  const shm::test::Folder folder;
  const std::string path = folder.path() + "/given";
  const Fd given(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  auto file = open_given(given);
  ASSERT_TRUE(file) << file.error().text;
  EXPECT_TRUE((*file)->write_at(0, bytes_of_text("text")));
  EXPECT_TRUE((*file)->sync());
  EXPECT_EQ(read_file(native_files(), path).value(), Bytes({'t', 'e', 'x', 't'}));
  EXPECT_FALSE(open_given(given)) << "it is not empty any more";
}

TEST(GivenFiles, ThatCannotBeWrittenOrCouldHoldUpAThreadAreRefused) {
  const shm::test::Folder folder;
  const std::string path = folder.path() + "/given";
  const Fd empty(::open(path.c_str(), O_RDONLY | O_CREAT | O_CLOEXEC, 0600));
  EXPECT_EQ(open_given(empty).error().code, Errc::kInvalid);
  EXPECT_FALSE(open_given(Fd(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC))));
  EXPECT_FALSE(open_given(Fd(::open(path.c_str(), O_PATH | O_CLOEXEC))));
  int pipe[2];
  ASSERT_EQ(::pipe2(pipe, O_CLOEXEC), 0);
  const Fd read_end(pipe[0]);
  EXPECT_FALSE(open_given(Fd(pipe[1])));
  EXPECT_FALSE(open_given(Fd(::open("/dev/null", O_WRONLY | O_CLOEXEC))));
}

TEST(StoreFile, AUsedUpQuotaIsAFullDisk) {
  for (const int error : {ENOSPC, EDQUOT}) {
    EXPECT_EQ(error_of(SYS_pwrite64, error, write), Errc::kFull) << error;
    EXPECT_EQ(error_of(SYS_fallocate, error, preallocate), Errc::kFull) << error;
  }
}

TEST(StoreFile, ADiskThatFailsIsNotFull) {
  EXPECT_EQ(error_of(SYS_pwrite64, EIO, write), Errc::kIo);
  EXPECT_EQ(error_of(SYS_fallocate, EIO, preallocate), Errc::kIo);
}

/// Such a file grows without preallocation.
TEST(StoreFile, AFileSystemWithoutPreallocationIsNoError) {
  EXPECT_EQ(error_of(SYS_fallocate, EOPNOTSUPP, preallocate), Errc::kInvalid);
}

}  // namespace store_file_test
}  // namespace pando::manager
