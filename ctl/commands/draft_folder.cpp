#include "ctl/commands/draft_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "ctl/backup/file_copy.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

constexpr const char* kFiles = "files";
constexpr const char* kResult = "result";
constexpr std::string_view kOthers = "others-";

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

bool is_later(const timespec& a, const timespec& b) {
  return a.tv_sec != b.tv_sec ? a.tv_sec > b.tv_sec : a.tv_nsec > b.tv_nsec;
}

/// The final name has the same file as the draft, unchanged since `whole`.
bool is_name_of(const fs::path& name, const fs::path& draft, const timespec& whole) {
  struct stat named, drafted;
  return ::lstat(name.c_str(), &named) == 0 && ::lstat(draft.c_str(), &drafted) == 0 &&
         is_same_file(named, drafted) && !is_later(named.st_mtim, whole);
}

std::vector<fs::path> entries_of(const fs::path& folder) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error))
    found.push_back(at->path());
  return found;
}

bool is_note(const fs::path& entry) { return entry.filename().string().starts_with(kOthers); }

/// Somebody else's folder could lead anywhere, such as in /tmp.
Status check_user(const Fd& folder, const fs::path& path) {
  struct stat seen;
  if (::fstat(folder.get(), &seen) != 0) return fail_errno("cannot use " + path.string());
  if (seen.st_uid == ::geteuid() && (seen.st_mode & 022) == 0) return {};
  return fail(Errc::kDenied,
              "{} is an import's folder, but another user's: import as that user, or remove it",
              path.string());
}

/// Not every file system has locks on folders: there, who made the folder has it.
Status lock_folder(const Fd& folder, const fs::path& path, bool is_new) {
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK)
    return fail(Errc::kExists, "another import into {} is under way: import again when it is done",
                path.parent_path().string());
  if (is_new) return {};
  return fail(Errc::kExists,
              "{} is of an import that is under way or was killed: remove it if none is under way",
              path.string());
}

}  // namespace

void import_step() noexcept { crash_point("import-step"); }

Status write_new_file(const fs::path& path, std::string_view text, ::mode_t mode) {
  import_step();
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return fail_errno("cannot create " + path.string());
  import_step();
  return write_all(fd.get(),
                   ByteView(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

Result<DraftFolder> DraftFolder::claim(const fs::path& target) {
  constexpr int kTries = 100;  // each lost to another import that ends at this moment
  const fs::path path = target / kName;
  for (int i = 0; i < kTries; ++i) {
    import_step();
    const bool is_new = ::mkdir(path.c_str(), 0700) == 0;
    if (!is_new && errno != EEXIST)
      return fail_errno("cannot create a folder in " + target.string());
    Fd lock(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!lock && errno == ENOENT) continue;
    if (!lock) return fail_errno("cannot use " + path.string());
    if (auto ours = check_user(lock, path); !is_new && !ours) return pass(ours);
    if (auto locked = lock_folder(lock, path, is_new); !locked) return pass(locked);
    DraftFolder claimed(target, path, std::move(lock));
    // The process that had it before may have removed it meanwhile.
    if (claimed.is_at_its_place()) return claimed;
  }
  return fail(Errc::kExists, "other imports into {} are under way", target.string());
}

bool DraftFolder::is_at_its_place() const {
  struct stat ours, there;
  return ::fstat(lock_.get(), &ours) == 0 && ::lstat(path_.c_str(), &there) == 0 &&
         is_same_file(ours, there);
}

bool DraftFolder::is_of(const fs::path& target) const {
  struct stat ours, other;
  return ::stat(target_.c_str(), &ours) == 0 && ::stat(target.c_str(), &other) == 0 &&
         is_same_file(ours, other);
}

std::vector<fs::path> DraftFolder::other_targets() const {
  std::vector<fs::path> found;
  for (const fs::path& entry : entries_of(path_)) {
    std::error_code error;
    if (!is_note(entry) || !fs::is_directory(entry, error)) continue;
    const fs::path other = fs::read_symlink(entry, error);
    if (!error) found.push_back(other.parent_path());
  }
  return found;
}

std::size_t DraftFolder::take_back() const {
  struct stat result, here;
  if (::stat(this->result().c_str(), &result) != 0 || result.st_nlink > 1) return 0;
  // The time is that of this folder's file system.
  if (::lstat(this->result().c_str(), &here) != 0) return 0;
  std::size_t files = 0;
  std::vector<fs::path> folders;
  std::error_code error;
  const fs::path drafts = path_ / kFiles;
  for (fs::recursive_directory_iterator at(drafts, error), end; !error && at != end;
       at.increment(error)) {
    const fs::path name = target_ / at->path().lexically_relative(drafts);
    std::error_code none;
    if (fs::is_directory(at->symlink_status(none))) folders.push_back(name);
    if (!is_name_of(name, at->path(), here.st_mtim)) continue;
    import_step();
    if (::unlink(name.c_str()) == 0) ++files;
  }
  for (const fs::path& folder : folders) {
    import_step();
    ::rmdir(folder.c_str());  // fails with anything in it
  }
  return files;
}

void DraftFolder::clear() const {
  std::error_code none;
  import_step();
  fs::remove(result(), none);
  for (const fs::path& entry : entries_of(path_)) {
    if (is_note(entry)) continue;
    import_step();
    fs::remove_all(entry, none);
  }
}

void DraftFolder::remove() const {
  std::error_code none;
  for (const fs::path& entry : entries_of(path_)) {
    if (!is_note(entry) || fs::exists(entry, none)) continue;
    import_step();
    fs::remove(entry, none);
  }
  import_step();
  ::rmdir(path_.c_str());
}

Result<fs::path> DraftFolder::prepare(const fs::path& below) const {
  fs::path files = path_ / kFiles;
  std::error_code error;
  import_step();
  fs::create_directory(files, error);
  import_step();
  if (!below.empty()) fs::create_directory(files /= below, error);
  if (error)
    return fail(Errc::kIo, "cannot create a folder in {}: {}", target_.string(), error.message());
  return files;
}

fs::path DraftFolder::result() const { return path_ / kResult; }

fs::path DraftFolder::note(const fs::path& target) const {
  std::error_code error;
  const fs::path folder = fs::canonical(target, error);
  if (error) return {};
  for (int number = 1;; ++number) {
    fs::path entry = path_ / (std::string(kOthers) + std::to_string(number));
    import_step();
    fs::create_symlink(folder / kName, entry, error);
    if (!error) return entry;
    if (error != std::errc::file_exists) return {};
  }
}

void DraftFolder::belong_to(const DraftFolder& main) const {
  std::error_code error;
  const fs::path theirs = fs::canonical(main.path_, error);
  import_step();
  if (!error) fs::create_symlink(theirs / kResult, result(), error);
}

Status DraftFolder::sync() const {
  // One call for all files: a listing may have a million zones. Some file systems notice only now
  // that the disk is full.
  import_step();
  if (::syncfs(lock_.get()) != 0) return fail_errno("cannot write into " + target_.string());
  return {};
}

}  // namespace pando::ctl
