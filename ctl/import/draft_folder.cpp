#include "ctl/import/draft_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <memory>
#include <set>
#include <sstream>

#include "base/bytes.h"
#include "base/crash_point.h"
#include "base/files/guarded_path.h"
#include "base/pause_point.h"
#include "ctl/backup/file_copy.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

// No user's file has these names by chance: entries of such names are removed.
constexpr std::string_view kDraft = "pando-file-";
constexpr std::string_view kOthers = "pando-others-";
constexpr const char* kNames = "pando-names";
constexpr const char* kResult = "pando-result";

bool is_same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

Fd open_folder_at(int at, const char* name) {
  return Fd(::openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

std::vector<std::string> entries_of(const Fd& folder) {
  std::vector<std::string> found;
  Fd again = open_folder_at(folder.get(), ".");
  const std::unique_ptr<DIR, int (*)(DIR*)> open(again ? ::fdopendir(again.get()) : nullptr,
                                                 [](DIR* at) { return ::closedir(at); });
  if (!open) return found;
  static_cast<void>(again.release());
  while (const dirent* entry = ::readdir(open.get()))
    if (const std::string_view name = entry->d_name; name != "." && name != "..")
      found.emplace_back(name);
  return found;
}

std::string draft_name(std::size_t number) { return std::string(kDraft) + std::to_string(number); }

bool is_note(std::string_view entry) { return entry.starts_with(kOthers); }

bool is_draft(std::string_view entry) { return entry.starts_with(kDraft) || entry == kNames; }

bool is_there(const Fd& folder, const std::string& name, int flags = AT_SYMLINK_NOFOLLOW) {
  struct stat seen;
  return ::fstatat(folder.get(), name.c_str(), &seen, flags) == 0;
}

/// Somebody else's folder could lead anywhere, such as in /tmp.
Status check_user(const Fd& folder, const fs::path& path) {
  struct stat seen;
  if (::fstat(folder.get(), &seen) != 0) return fail_errno("cannot use " + path.string());
  if (seen.st_uid == ::geteuid() && (seen.st_mode & 022) == 0) return {};
  return fail(Errc::kDenied,
              "{} is an import's folder, but another user's: import as that user, or remove it",
              path.string());
}

/// A link of a lesser user must not lead root to another folder. For other users the kernel's
/// checks suffice.
Fd open_target(const fs::path& target) {
  if (::geteuid() != 0) return Fd(::open(target.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto found = open_folder(target.string());
  if (!found && found.error().code == Errc::kDenied) errno = EACCES;
  return found ? open_folder_at(found->get(), ".") : Fd();
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

/// A draft and the name that it gets.
struct Naming {
  int from;
  const char* draft;
  int to;
  const char* name;
};

/// Moves a draft to its name, unless another file has it.
bool move_to_name(const Naming& a, const Fd& folder) {
  if (::renameat2(a.from, a.draft, a.to, a.name, RENAME_NOREPLACE) == 0) return true;
  if (errno != EINVAL) return false;
  // The file system lacks the flag. NFS does, and has links; drafts are removed afterwards.
  if (::linkat(a.from, a.draft, a.to, a.name, 0) == 0) return true;
  return errno != EEXIST && !is_there(folder, a.name) &&
         ::renameat(a.from, a.draft, a.to, a.name) == 0;
}

/// Links a draft to its name, unless another file has it.
bool link_to_name(const Naming& a, const Fd& folder) {
  if (::linkat(a.from, a.draft, a.to, a.name, 0) == 0) return true;
  // Not every file system has hard links.
  return (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) && move_to_name(a, folder);
}

}  // namespace

void import_step() noexcept { crash_point("import-step"); }

Result<DraftFolder> DraftFolder::claim(const fs::path& target) {
  constexpr int kTries = 100;  // each lost to another import that ends at this moment
  const std::string name(kName);
  const fs::path path = target / name;
  Fd at = open_target(target);
  if (!at) return fail_errno("cannot use " + target.string());
  for (int i = 0; i < kTries; ++i) {
    import_step();
    const bool is_new = ::mkdirat(at.get(), name.c_str(), 0700) == 0;
    if (!is_new && errno != EEXIST)
      return fail_errno("cannot create a folder in " + target.string());
    pause_point("import-folder-made");
    Fd folder = open_folder_at(at.get(), name.c_str());
    if (!folder && errno == ENOENT) continue;
    if (!folder) return fail_errno("cannot use " + path.string());
    if (auto ours = check_user(folder, path); !ours) return pass(ours);
    if (auto locked = lock_folder(folder, path, is_new); !locked) return pass(locked);
    DraftFolder claimed(target, std::move(at), std::move(folder));
    // The process that had it before may have removed it meanwhile.
    if (!claimed.is_at_its_place()) {
      at = std::move(claimed.target_folder_);
      continue;
    }
    if (auto known = claimed.check_entries(); !known) return pass(known);
    return claimed;
  }
  return fail(Errc::kExists, "other imports into {} are under way", target.string());
}

bool DraftFolder::is_at_its_place() const {
  struct stat ours, there;
  return ::fstat(folder_.get(), &ours) == 0 &&
         ::fstatat(target_folder_.get(), std::string(kName).c_str(), &there, AT_SYMLINK_NOFOLLOW) ==
             0 &&
         is_same_file(ours, there);
}

/// A folder of ours may have got this name from somebody else.
Status DraftFolder::check_entries() const {
  for (const std::string& entry : entries_of(folder_))
    if (!is_draft(entry) && !is_note(entry) && entry != kResult)
      return fail(Errc::kExists, "{} is of no import: move it elsewhere",
                  (target_ / kName / entry).string());
  return {};
}

bool DraftFolder::is_of(const fs::path& target) const {
  struct stat ours, other;
  return ::fstat(target_folder_.get(), &ours) == 0 && ::stat(target.c_str(), &other) == 0 &&
         is_same_file(ours, other);
}

std::vector<fs::path> DraftFolder::other_targets() const {
  std::vector<fs::path> found;
  for (const std::string& entry : entries_of(folder_)) {
    if (!is_note(entry) || !is_there(folder_, entry, 0)) continue;
    std::string to(PATH_MAX, '\0');
    const auto length = ::readlinkat(folder_.get(), entry.c_str(), to.data(), to.size());
    if (length < 0) continue;
    to.resize(static_cast<std::size_t>(length));
    found.push_back(fs::path(to).parent_path());
  }
  return found;
}

DraftFolder::State DraftFolder::state_of(const struct stat& seen) {
  return {seen.st_ino, seen.st_size, seen.st_mtim.tv_sec, seen.st_mtim.tv_nsec};
}

Result<DraftFolder::State> DraftFolder::write_draft(const std::string& draft,
                                                    const std::string& name, std::string_view text,
                                                    ::mode_t mode) const {
  // A draft's own name tells nothing.
  const std::string called = "cannot write " + (target_ / name).string();
  import_step();
  const Fd fd(::openat(folder_.get(), draft.c_str(),
                       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
  if (!fd) return fail_errno(called);
  import_step();
  auto done = write_all(fd.get(),
                        ByteView(reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
  if (!done) return fail(done.error().code, "{}: {}", called, done.error().text);
  struct stat seen;
  if (::fstat(fd.get(), &seen) != 0) return fail_errno(called);
  return state_of(seen);
}

Status DraftFolder::write(const std::string& name, std::string_view text, ::mode_t mode) {
  auto written = write_draft(draft_name(files_.size()), name, text, mode);
  if (!written) return pass(written);
  files_.push_back({name, *written});
  return {};
}

Status DraftFolder::write_result(const std::string& name, std::string_view text, ::mode_t mode) {
  auto written = write_draft(kResult, name, text, mode);
  if (!written) return pass(written);
  result_ = {name, *written};
  return {};
}

Status DraftFolder::write_names() const {
  std::string text;
  for (const auto& [name, state] : files_)
    text += fmt::format("{} {} {} {} {}", state.inode, state.size, state.seconds, state.nanoseconds,
                        name) +
            '\0';
  auto written = write_draft(kNames, (fs::path(kName) / kNames).string(), text, 0600);
  if (!written) return pass(written);
  return {};
}

Result<std::vector<DraftFolder::File>> DraftFolder::read_names() const {
  std::vector<File> files;
  const std::string called = "cannot read " + (target_ / kName / kNames).string();
  const Fd fd(::openat(folder_.get(), kNames, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd && errno == ENOENT) return files;
  struct stat seen;
  if (!fd || ::fstat(fd.get(), &seen) != 0) return fail_errno(called);
  std::string text(static_cast<std::size_t>(seen.st_size), '\0');
  const auto read =
      read_some(fd.get(), {reinterpret_cast<std::uint8_t*>(text.data()), text.size()});
  if (!read) return fail(Errc::kIo, "{}: {}", called, read.error().text);
  std::istringstream in(text);
  File file;
  State& state = file.state;
  while (in >> state.inode >> state.size >> state.seconds >> state.nanoseconds && in.get() == ' ' &&
         std::getline(in, file.name, '\0'))
    files.push_back(file);
  return files;
}

/// The folder of that name in the target, but not where a link there leads.
Fd DraftFolder::open_parent(const fs::path& name) const {
  return open_folder_at(target_folder_.get(),
                        name.has_parent_path() ? name.parent_path().c_str() : ".");
}

bool DraftFolder::is_incomplete() const {
  struct stat result;
  return ::fstatat(folder_.get(), kResult, &result, 0) == 0 && result.st_nlink == 1;
}

Status DraftFolder::take_back(Leftovers& found) const {
  if (!is_incomplete()) return {};
  const auto files = read_names();
  if (!files) return fail(files.error().code, "{}", files.error().text);
  std::set<fs::path> folders;
  for (const File& file : *files) {
    if (auto done = take_back(file, found); !done) return done;
    folders.insert(fs::path(file.name).parent_path());
  }
  for (const fs::path& folder : folders) {
    if (folder.empty()) continue;
    import_step();
    ::unlinkat(target_folder_.get(), folder.c_str(), AT_REMOVEDIR);  // fails with anything in it
  }
  return sync();  // before what tells of these files goes
}

Status DraftFolder::take_back(const File& file, Leftovers& found) const {
  const fs::path path = target_ / file.name;
  const std::string name = path.filename().string();
  const Fd folder = open_parent(file.name);
  struct stat seen;
  if (!folder || ::fstatat(folder.get(), name.c_str(), &seen, AT_SYMLINK_NOFOLLOW) != 0) {
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP) return {};
    return fail_errno("cannot remove " + path.string());
  }
  if (state_of(seen) != file.state) {
    found.retained.push_back(path);
    return {};
  }
  import_step();
  if (::unlinkat(folder.get(), name.c_str(), 0) != 0)
    return fail_errno("cannot remove " + path.string());
  ++found.removed;
  return {};
}

Status DraftFolder::clear() const {
  std::vector<std::string> drafts = {kResult};
  for (std::string& entry : entries_of(folder_))
    if (is_draft(entry)) drafts.push_back(std::move(entry));
  for (const std::string& draft : drafts) {
    import_step();
    if (::unlinkat(folder_.get(), draft.c_str(), 0) != 0 && errno != ENOENT)
      return fail_errno("cannot remove " + (target_ / kName / draft).string());
  }
  return {};
}

void DraftFolder::remove() const {
  for (const std::string& entry : entries_of(folder_))
    if (is_note(entry) && !is_there(folder_, entry, 0)) remove_note(entry);
  import_step();
  if (is_at_its_place()) ::unlinkat(target_folder_.get(), std::string(kName).c_str(), AT_REMOVEDIR);
}

std::string DraftFolder::note(const fs::path& target) const {
  std::error_code error;
  const fs::path to = fs::canonical(target, error) / kName;
  if (error) return {};
  for (int number = 1;; ++number) {
    std::string entry = std::string(kOthers) + std::to_string(number);
    import_step();
    if (::symlinkat(to.c_str(), folder_.get(), entry.c_str()) == 0) return entry;
    if (errno != EEXIST) return {};
  }
}

void DraftFolder::remove_note(const std::string& note) const {
  import_step();
  ::unlinkat(folder_.get(), note.c_str(), 0);
}

void DraftFolder::belong_to(const DraftFolder& main) const {
  std::error_code error;
  const fs::path theirs = fs::canonical(main.target_, error) / kName / kResult;
  if (error) return;
  import_step();
  static_cast<void>(::symlinkat(theirs.c_str(), folder_.get(), kResult) == 0);
}

Status DraftFolder::sync() const {
  // One call for all files: a listing may have a million zones. Some file systems notice only now
  // that the disk is full.
  import_step();
  if (::syncfs(folder_.get()) != 0) return fail_errno("cannot write into " + target_.string());
  return {};
}

Status DraftFolder::name_files() const {
  std::set<fs::path> folders = {""};
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const fs::path name(files_[i].name);
    if (folders.insert(name.parent_path()).second) {
      import_step();
      if (::mkdirat(target_folder_.get(), name.parent_path().c_str(), 0777) != 0 && errno != EEXIST)
        return fail_errno("cannot create " + (target_ / name.parent_path()).string());
    }
    if (auto named = name_file(name, draft_name(i)); !named) return named;
  }
  for (const fs::path& folder : folders)
    if (auto synced = sync_parent(folder / "any"); !synced) return synced;
  return {};
}

Status DraftFolder::name_file(const fs::path& name, const std::string& draft) const {
  const std::string called = "cannot create " + (target_ / name).string();
  const Fd folder = open_parent(name);
  if (!folder) return fail_errno(called);
  import_step();
  const std::string last = name.filename().string();
  if (!link_to_name({folder_.get(), draft.c_str(), folder.get(), last.c_str()}, folder))
    return fail_errno(called);
  return {};
}

Status DraftFolder::name_result() const {
  const char* name = result_.name.c_str();
  import_step();
  if (!move_to_name({folder_.get(), kResult, target_folder_.get(), name}, target_folder_))
    return fail_errno("cannot create " + (target_ / name).string());
  auto synced = sync_parent(name);
  struct stat seen;
  if (!synced && ::fstatat(target_folder_.get(), name, &seen, AT_SYMLINK_NOFOLLOW) == 0 &&
      state_of(seen) == result_.state &&
      ::renameat(target_folder_.get(), name, folder_.get(), kResult) == 0)
    ::unlinkat(target_folder_.get(), name, 0);  // a rename between two links leaves both
  return synced;
}

Status DraftFolder::sync_parent(const fs::path& name) const {
  import_step();
  const Fd folder = open_parent(name);
  if (folder && ::fsync(folder.get()) == 0) return {};
  return fail_errno("cannot write into " + (target_ / name).parent_path().string());
}

}  // namespace pando::ctl
