#include "ctl/backup/handed_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/files/guarded_path.h"
#include "base/random.h"
#include "ctl/backup/file_copy.h"

namespace pando::ctl {

namespace {

/// Two lines with a domain name each, for exports of zones.
constexpr std::size_t kHeadBytes = 4096;

Result<Bytes> head_of(int folder, const std::string& name) {
  const Fd file(::openat(folder, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file) return fail_errno("open");
  Bytes head(kHeadBytes);
  const auto got = read_some(file.get(), head);
  if (!got) return pass(got);
  head.resize(*got);
  return head;
}

std::string random_suffix() {
  std::array<std::uint8_t, 8> bytes{};
  fill_random(bytes);
  std::string text = ".partial-";
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Group permissions apply to the right group only.
void take_over_owner_and_mode(const struct stat& old, int file) {
  const auto none = static_cast<uid_t>(-1);
  const bool owner = ::fchown(file, old.st_uid, old.st_gid) == 0;
  const bool group = owner || ::fchown(file, none, old.st_gid) == 0;
  static_cast<void>(::fchmod(file, old.st_mode & (group ? 0777U : 0707U)));
}

}  // namespace

Result<HandedFile> HandedFile::open(const Wanted& wanted) {
  const std::filesystem::path path(wanted.path);
  auto folder = open_folder(path.parent_path().string());
  if (!folder) return fail(folder.error().code, "{}: {}", wanted.path, folder.error().text);
  HandedFile made(std::move(*folder), path.filename().string());
  if (auto done = made.make(wanted); !done)
    return fail(done.error().code, "{}: {}", wanted.path, done.error().text);
  return made;
}

Status HandedFile::check_replaced(const Wanted& wanted, bool& exists) const {
  struct stat old{};
  exists = ::fstatat(folder_.get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!exists) return errno == ENOENT ? Status() : Status(fail_errno("stat"));
  if (!S_ISREG(old.st_mode)) return fail(Errc::kDenied, "no regular file");
  const auto head = head_of(folder_.get(), name_);
  if (!head) return pass(head);
  if (wanted.may_replace(*head)) return {};
  return fail(Errc::kDenied, "there is something else than {}", wanted.what);
}

Status HandedFile::make(const Wanted& wanted) {
  if (name_.empty() || name_ == "." || name_ == "..")
    return fail(Errc::kInvalid, "no name of a file");
  bool exists = false;
  if (auto may = check_replaced(wanted, exists); !may) return may;
  const std::string temporary = name_ + random_suffix();
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
  auto file = std::make_shared<Fd>(::openat(folder_.get(), temporary.c_str(), flags, wanted.mode));
  if (!*file) return fail_errno("open");
  temporary_ = temporary;
  struct stat old{};
  if (exists && wanted.keeps_owner &&
      ::fstatat(folder_.get(), name_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0)
    take_over_owner_and_mode(old, file->get());
  file_ = std::move(file);
  return {};
}

HandedFile::~HandedFile() {
  if (folder_ && !temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
}

std::uint64_t HandedFile::size() const noexcept {
  struct stat status{};
  return ::fstat(file_->get(), &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
}

Status HandedFile::place() {
  // A manager of a neighbouring version may not know of descriptors, and has written elsewhere.
  if (size() == 0)
    return fail(Errc::kUnsupported, "the manager did not write the file that it got");
  if (::fsync(file_->get()) != 0) return fail_errno("fsync of " + name_);
  if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0)
    return fail_errno("rename " + name_);
  temporary_.clear();
  return sync_folder(folder_, "the folder of " + name_);
}

}  // namespace pando::ctl
