#include "config/files.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/files/guarded_path.h"
#include "base/words.h"

namespace pando::config {

namespace {

constexpr std::size_t kReadBytes = std::size_t{1} << 20;

/// The folder on the way to `path` in which others can replace what is there; empty = none. In a
/// folder like /tmp they can replace only what is theirs.
std::string replaceable_folder(std::filesystem::path path) {
  while (path.has_relative_path()) {
    path = path.parent_path();
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) continue;
    if ((status.st_mode & S_IWOTH) != 0 && (status.st_mode & S_ISVTX) == 0) return path.string();
  }
  return {};
}

struct GlobDeleter {
  void operator()(glob_t* matches) const noexcept {
    ::globfree(matches);
    delete matches;
  }
};

}  // namespace

bool is_pattern(std::string_view text) noexcept {
  return text.find_first_of("*?[") != std::string_view::npos;
}

Result<std::vector<std::string>> matching_files(const std::string& folder, std::string_view text) {
  const std::string pattern = (std::filesystem::path(folder) / text).lexically_normal().string();
  std::unique_ptr<glob_t, GlobDeleter> matches(new glob_t{});
  const int outcome = ::glob(pattern.c_str(), 0, nullptr, matches.get());
  if (outcome == GLOB_NOMATCH) {
    // A pattern may match nothing yet; a plain name of a missing file is a mistake.
    if (is_pattern(text)) return std::vector<std::string>();
    return fail(Errc::kNotFound, "there is no file {}", pattern);
  }
  if (outcome != 0) return fail(Errc::kIo, "cannot search for {}", pattern);
  return std::vector<std::string>(matches->gl_pathv, matches->gl_pathv + matches->gl_pathc);
}

Result<Fd> open_regular_file(const std::string& path) {
  auto fd = open_to_read(path);
  if (!fd) return fd;
  struct stat status{};
  if (::fstat(fd->get(), &status) != 0) return fail_errno("cannot stat " + path);
  if (!S_ISREG(status.st_mode)) return fail(Errc::kInvalid, "{} is not a regular file", path);
  return fd;
}

Result<std::string> read_open_file(const Fd& fd, const std::string& path) {
  std::string text;
  std::size_t size = 0;
  while (true) {
    text.resize(size + kReadBytes);
    const auto bytes = ::read(fd.get(), text.data() + size, kReadBytes);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) return fail_errno("cannot read " + path);
    size += static_cast<std::size_t>(bytes);
    if (bytes == 0) break;
  }
  text.resize(size);
  text.erase(0, size - without_byte_order_mark(text).size());
  return text;
}

bool is_open_to_others(const Fd& fd) noexcept {
  struct stat status{};
  return ::fstat(fd.get(), &status) == 0 && (status.st_mode & (S_IROTH | S_IWOTH)) != 0;
}

Result<std::string> read_regular_file(const std::string& path) {
  auto fd = open_regular_file(path);
  if (!fd) return pass(fd);
  return read_open_file(*fd, path);
}

std::uint64_t fold_text(std::uint64_t fingerprint, std::string_view text) noexcept {
  constexpr std::uint64_t kPrime = 0x100000001B3;  // FNV-1a
  for (const char octet : text)
    fingerprint = (fingerprint ^ static_cast<unsigned char>(octet)) * kPrime;
  // The length separates texts: otherwise the end of one text could move to the start of the next
  // unnoticed.
  fingerprint = (fingerprint ^ text.size()) * kPrime;
  return fingerprint == 0 ? 1 : fingerprint;
}

Result<std::uint64_t> fold_file(std::uint64_t fingerprint, const Fd& fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno("cannot stat " + path);
  return fold_text(fingerprint,
                   fmt::format("{} {} {} {}.{:09} {}.{:09}", path, status.st_ino, status.st_size,
                               status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec,
                               status.st_ctim.tv_nsec));
}

std::string program_problem(const std::string& path, std::uint32_t manager) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0)
    return fmt::format("cannot find {}: {}", path, std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return fmt::format("{} is no regular file", path);
  if ((status.st_mode & (S_IXUSR | S_IXGRP | S_IXOTH)) == 0)
    return fmt::format("{} is not executable", path);
  if ((status.st_mode & S_IWOTH) != 0)
    return fmt::format("others can write {}: chmod o-w {}", path, path);
  if (status.st_uid != 0 && status.st_uid != manager)
    return fmt::format("{} belongs to neither root nor the manager's user", path);
  std::error_code error;
  for (const auto& way : {std::filesystem::path(path), std::filesystem::canonical(path, error)})
    if (const std::string folder = replaceable_folder(way); !folder.empty())
      return fmt::format("others can replace {}: chmod o-w {}", path, folder);
  return {};
}

}  // namespace pando::config
