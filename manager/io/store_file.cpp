#include "manager/io/store_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/crash_point.h"
#include "base/fd.h"
#include "manager/io/throttled_file.h"

namespace pando::manager {

namespace {

/// ENOSPC and EDQUOT become kFull: the caller refuses updates instead of calling the disk broken.
tl::unexpected<Error> fail_write(std::string_view call) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  auto error = fail_errno(call);
  if (full) error.value().code = Errc::kFull;
  return error;
}

class NativeFile final : public StoreFile {
 public:
  explicit NativeFile(Fd fd) noexcept : fd_(std::move(fd)) {}

  Status write_at(std::uint64_t offset, ByteView bytes) override {
    while (!bytes.empty()) {
      const ssize_t n = ::pwrite(fd_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return fail_write("pwrite");
      offset += static_cast<std::uint64_t>(n);
      bytes = bytes.subspan(static_cast<std::size_t>(n));
    }
    return {};
  }

  Result<std::size_t> read_at(std::uint64_t offset, std::span<std::uint8_t> out) override {
    std::size_t done = 0;
    while (done < out.size()) {
      const ssize_t n = ::pread(fd_.get(), out.data() + done, out.size() - done,
                                static_cast<off_t>(offset + done));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return fail_errno("pread");
      if (n == 0) break;
      done += static_cast<std::size_t>(n);
    }
    return done;
  }

  Status sync() override {
    // Never repeated on EIO: the second call would report success for pages that were dropped.
    if (::fdatasync(fd_.get()) != 0) return fail_errno("fdatasync");
    return {};
  }

  Status preallocate(std::uint64_t bytes) override {
    if (::fallocate(fd_.get(), 0, 0, static_cast<off_t>(bytes)) == 0) return {};
    if (errno != EOPNOTSUPP && errno != ENOSYS) return fail_write("fallocate");
    return truncate(bytes);
  }

  Status truncate(std::uint64_t bytes) override {
    if (::ftruncate(fd_.get(), static_cast<off_t>(bytes)) != 0) return fail_write("ftruncate");
    return {};
  }

  Result<std::uint64_t> size() override {
    struct stat status{};
    if (::fstat(fd_.get(), &status) != 0) return fail_errno("fstat");
    return static_cast<std::uint64_t>(status.st_size);
  }

 private:
  Fd fd_;
};

int open_flags(OpenMode mode) noexcept {
  switch (mode) {
    case OpenMode::kRead:
      return O_RDONLY | O_CLOEXEC;
    case OpenMode::kWrite:
      return O_RDWR | O_CLOEXEC;
    case OpenMode::kCreate:
    case OpenMode::kSecret:
      return O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC;
  }
  return O_RDONLY | O_CLOEXEC;
}

/// Of these, syncfs() is known to wait for the disk. Others may leave out what fdatasync() asks of
/// a server or a program (FUSE, CIFS).
bool syncs_as_a_whole(const Fd& fd) noexcept {
  constexpr std::array kKnown{std::int64_t{EXT4_SUPER_MAGIC}, std::int64_t{XFS_SUPER_MAGIC},
                              std::int64_t{BTRFS_SUPER_MAGIC}, std::int64_t{F2FS_SUPER_MAGIC}};
  struct statfs status{};
  return ::fstatfs(fd.get(), &status) == 0 &&
         std::ranges::find(kKnown, std::int64_t{status.f_type}) != kKnown.end();
}

class NativeGroup final : public GroupSync {
 public:
  /// The kernel reports errors to `directory` from its opening on.
  explicit NativeGroup(Fd directory) noexcept : directory_(std::move(directory)) {}
  Status sync() override {
    if (::syncfs(directory_.get()) != 0) return fail_errno("syncfs");
    return {};
  }

 private:
  Fd directory_;
};

class NativeFiles final : public Files {
 public:
  Result<std::unique_ptr<StoreFile>> open(const std::string& path, OpenMode mode) override {
    Fd fd(::open(path.c_str(), open_flags(mode), mode == OpenMode::kSecret ? 0600 : 0640));
    if (fd && mode == OpenMode::kSecret && ::fchmod(fd.get(), 0600) != 0)
      return fail_errno("fchmod " + path);
    if (fd) return std::unique_ptr<StoreFile>(std::make_unique<NativeFile>(std::move(fd)));
    if (errno == ENOENT) return fail(Errc::kNotFound, "{}: no such file", path);
    return fail_write("open " + path);
  }

  Status rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) return fail_write("rename " + from);
    return {};
  }

  Status remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) return fail_errno("unlink " + path);
    return {};
  }

  Status sync_directory(const std::string& directory) override {
    const Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return fail_errno("open " + directory);
    if (::fsync(fd.get()) != 0) return fail_errno("fsync " + directory);
    return {};
  }

  Result<std::unique_ptr<GroupSync>> begin_group(const std::string& directory) override {
    Fd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!fd) return fail_errno("open " + directory);
    if (!syncs_as_a_whole(fd)) return Files::begin_group(directory);
    return std::unique_ptr<GroupSync>(std::make_unique<NativeGroup>(std::move(fd)));
  }

  Result<std::vector<std::string>> list(const std::string& directory) override {
    DIR* const dir = ::opendir(directory.c_str());
    if (dir == nullptr && errno == ENOENT)
      return fail(Errc::kNotFound, "{}: no such folder", directory);
    if (dir == nullptr) return fail_errno("opendir " + directory);
    std::vector<std::string> names;
    // readdir() tells an error from the end of the directory by errno alone. A list cut short by an
    // error would let recovery take existing files for missing ones.
    errno = 0;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    const int failed = errno;
    ::closedir(dir);
    errno = failed;
    if (failed != 0) return fail_errno("readdir " + directory);
    std::sort(names.begin(), names.end());
    return names;
  }

  Status make_directory(const std::string& directory) override {
    std::error_code error;
    if (std::filesystem::is_directory(directory, error)) return {};
    const std::filesystem::path parent = std::filesystem::path(directory).parent_path();
    if (!parent.empty() && parent != directory) {
      if (auto made = make_directory(parent.string()); !made) return made;
    }
    if (::mkdir(directory.c_str(), 0750) != 0) {
      if (errno == EEXIST) return {};
      return fail_write("mkdir " + directory);
    }
    // Without this, a power cut can take the directory with all files that were synced in it.
    return sync_directory(parent.empty() ? "." : parent.string());
  }
};

}  // namespace

Files& native_files() noexcept {
  static NativeFiles files;
  return files;
}

Result<std::unique_ptr<StoreFile>> open_given(const Fd& descriptor) {
  struct stat status{};
  if (::fstat(descriptor.get(), &status) != 0) return fail_errno("fstat");
  // A write to a pipe or a terminal could hold a thread of the pool for ever.
  if (!S_ISREG(status.st_mode) || status.st_size != 0)
    return fail(Errc::kInvalid, "the descriptor is of no empty regular file");
  const int flags = ::fcntl(descriptor.get(), F_GETFL);
  if (flags < 0 || (flags & O_ACCMODE) == O_RDONLY || (flags & (O_PATH | O_APPEND)) != 0)
    return fail(Errc::kInvalid, "the descriptor's file may not be written");
  Fd copy(::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy) return fail_errno("fcntl");
  return std::unique_ptr<StoreFile>(std::make_unique<NativeFile>(std::move(copy)));
}

static Status write_whole(Files& files, const std::string& path, ByteView bytes) {
  auto file = files.open(path, OpenMode::kCreate);
  if (!file) return pass(file);
  ThrottledFile trickled(**file);
  if (auto written = trickled.write_at(0, bytes); !written) return written;
  return trickled.sync();
}

Status write_file_atomically(Files& files, const std::string& path, ByteView bytes) {
  const std::string partial = path + ".partial";
  Status made = write_whole(files, partial, bytes);
  crash_point("whole-file-written");
  if (made) made = files.rename(partial, path);
  crash_point("whole-file-renamed");
  if (!made) {
    static_cast<void>(files.remove(partial));  // freed blocks may let the next try succeed
    return made;
  }
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const Status named = files.sync_directory(parent.empty() ? "." : parent.string());
  crash_point("whole-file-named");
  return named;
}

Status write_text_atomically(Files& files, const std::string& path, std::string_view text) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (auto made = files.make_directory(folder); !made) return made;
  return write_file_atomically(files, path, bytes_of_text(text));
}

Result<Bytes> read_file(Files& files, const std::string& path, std::uint64_t most) {
  auto file = files.open(path, OpenMode::kRead);
  if (!file) return pass(file);
  auto size = (*file)->size();
  if (!size) return pass(size);
  Bytes bytes(std::min(*size, most));
  auto got = (*file)->read_at(0, bytes);
  if (!got) return pass(got);
  bytes.resize(*got);
  return bytes;
}

}  // namespace pando::manager
