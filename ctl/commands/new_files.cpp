#include "ctl/commands/new_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

#include "base/pause_point.h"
#include "ctl/backup/file_copy.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() != fs::file_type::not_found;
}

bool is_folder(const fs::path& path) {
  std::error_code none;
  return fs::is_directory(path, none);
}

/// Ctrl-C and its like wait while an object of this class lives.
class SignalsWait {
 public:
  SignalsWait() noexcept {
    sigset_t ending;
    sigemptyset(&ending);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&ending, signal);
    ::pthread_sigmask(SIG_BLOCK, &ending, &before_);
  }
  ~SignalsWait() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsWait(const SignalsWait&) = delete;
  SignalsWait& operator=(const SignalsWait&) = delete;

 private:
  sigset_t before_;
};

/// Moves a draft to its name, unless another file has it.
Status move_to_name(const fs::path& draft, const fs::path& path) {
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  if (errno != EINVAL) return fail_errno("cannot create " + path.string());
  // The file system lacks the flag. NFS does, and has links; drafts are removed afterwards.
  if (::link(draft.c_str(), path.c_str()) == 0) return {};
  if (errno != EEXIST && !is_there(path) && ::rename(draft.c_str(), path.c_str()) == 0) return {};
  return fail_errno("cannot create " + path.string());
}

/// Links a draft to its name, unless another file has it.
Status link_to_name(const fs::path& draft, const fs::path& path) {
  if (::link(draft.c_str(), path.c_str()) == 0) return {};
  // Not every file system has hard links.
  if (errno == EPERM || errno == EOPNOTSUPP || errno == ENOSYS) return move_to_name(draft, path);
  return fail_errno("cannot create " + path.string());
}

}  // namespace

void NewFiles::add(std::string name, std::string_view text, ::mode_t mode) {
  files_.push_back({std::move(name), text, mode, {}});
}

Status NewFiles::create() {
  const SignalsWait signals_wait;
  if (auto claimed = claim_folders(); !claimed) {
    // What a killed import left stays as it is.
    for (; !drafts_.empty(); drafts_.pop_back()) drafts_.back().remove();
    return claimed;
  }
  clear_leftovers();
  auto done = create_files();
  if (!done) remove_named();
  leave_folders();
  return done;
}

/// The folders that get files, and those that a killed import left something in.
Status NewFiles::claim_folders() {
  if (auto claimed = claim(folder_); !claimed) return claimed;
  for (const fs::path& target : drafts_.front().other_targets())
    if (auto claimed = claim(target); !claimed) return claimed;
  std::set<fs::path> targets;
  for (const File& file : files_) targets.insert((folder_ / file.name).parent_path());
  for (const fs::path& target : targets)
    if (is_folder(target))
      if (auto claimed = claim_other(target); !claimed) return claimed;
  return {};
}

/// The main folder names this one before it is there: a kill leaves none that nobody finds.
Status NewFiles::claim_other(const fs::path& target) {
  for (const DraftFolder& drafts : drafts_)
    if (drafts.is_of(target)) return {};
  const fs::path note = drafts_.front().note(target);
  auto claimed = claim(target);
  std::error_code none;
  if (!claimed && !note.empty()) fs::remove(note, none);
  return claimed;
}

/// Two names may lead to one folder, which can be claimed once.
Status NewFiles::claim(const fs::path& target) {
  for (const DraftFolder& drafts : drafts_)
    if (drafts.is_of(target)) return {};
  auto claimed = DraftFolder::claim(target);
  if (!claimed) return pass(claimed);
  drafts_.push_back(std::move(*claimed));
  return {};
}

/// All names first: the draft of the result tells whether they are to be taken back.
void NewFiles::clear_leftovers() {
  for (const DraftFolder& drafts : drafts_) taken_back_ += drafts.take_back();
  for (const DraftFolder& drafts : drafts_) drafts.clear();
}

/// The last first: the first one names the others.
void NewFiles::leave_folders() {
  for (; !drafts_.empty(); drafts_.pop_back()) {
    drafts_.back().clear();
    drafts_.back().remove();
  }
}

Status NewFiles::create_files() {
  if (auto free = check_places(); !free) return free;
  if (auto placed = place_drafts(); !placed) return placed;
  if (auto written = write_drafts(); !written) return written;
  pause_point("import-drafts-written");
  return name_all();
}

/// The result first: it tells that an import is complete.
Status NewFiles::check_places() const {
  for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
    const fs::path path = folder_ / file->name;
    std::error_code error;
    const fs::file_type type = fs::symlink_status(path, error).type();
    if (type == fs::file_type::not_found) continue;
    if (type == fs::file_type::none)
      return fail(Errc::kExists, "cannot create {}: {}", path.string(), error.message());
    return fail(Errc::kExists,
                "cannot create {}: it is there already: move it, or import into another folder",
                path.string());
  }
  return {};
}

/// A folder that is not there yet gets its drafts beside the result's.
Status NewFiles::place_drafts() {
  std::map<fs::path, fs::path> places;  // target → where its drafts are
  for (File& file : files_) {
    const fs::path name(file.name);
    const auto [at, is_first] = places.try_emplace(name.parent_path());
    if (is_first) {
      auto place = place_of(name.parent_path());
      if (!place) return pass(place);
      at->second = std::move(*place);
    }
    file.draft = at->second / name.filename();
  }
  files_.back().draft = drafts_.front().result();
  return {};
}

Result<fs::path> NewFiles::place_of(const fs::path& target) const {
  for (const DraftFolder& drafts : drafts_)
    if (drafts.is_of(folder_ / target)) return drafts.prepare({});
  return drafts_.front().prepare(target);
}

Status NewFiles::write_drafts() const {
  const auto write = [this](const File& file) -> Status {
    auto done = write_new_file(file.draft, file.text, file.mode);
    if (done) return done;
    // A draft's own name tells nothing.
    return fail(done.error().code, "cannot write {}: {}", (folder_ / file.name).string(),
                done.error().text);
  };
  for (std::size_t i = 0; i + 1 < files_.size(); ++i)
    if (auto done = write(files_[i]); !done) return done;
  for (std::size_t i = 1; i < drafts_.size(); ++i) drafts_[i].belong_to(drafts_.front());
  // From now on, names that a kill leaves are taken back.
  if (auto done = write(files_.back()); !done) return done;
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.sync(); !done) return done;
  return {};
}

/// The names are on disk before the result's: no crash of the host leaves a result without them.
Status NewFiles::name_all() {
  std::set<fs::path> folders;
  for (const File& file : files_) {
    const fs::path path = folder_ / file.name;
    const bool is_result = &file == &files_.back();
    if (auto made = make_folder(path.parent_path()); !made) return made;
    if (is_result)
      for (const fs::path& folder : folders) {
        import_step();
        if (auto synced = sync_folder(folder); !synced) return synced;
      }
    import_step();
    auto done = is_result ? move_to_name(file.draft, path) : link_to_name(file.draft, path);
    if (!done) return done;
    named_.push_back(path);
    folders.insert(path.parent_path());
  }
  import_step();
  return sync_folder(folder_);
}

/// One folder below folder_, such as that of zone files.
Status NewFiles::make_folder(const fs::path& folder) {
  std::error_code error;
  if (is_folder(folder)) return {};
  import_step();
  const bool is_new = fs::create_directory(folder, error);
  if (error) return fail(Errc::kIo, "cannot create {}: {}", folder.string(), error.message());
  if (is_new) named_.push_back(folder);
  return {};
}

/// The last first, so that new folders are empty when their turn comes.
void NewFiles::remove_named() {
  std::error_code none;
  for (; !named_.empty(); named_.pop_back()) {
    import_step();
    fs::remove(named_.back(), none);
  }
}

}  // namespace pando::ctl
