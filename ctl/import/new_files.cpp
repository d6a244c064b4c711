#include "ctl/import/new_files.h"

#include <pthread.h>

#include <csignal>
#include <map>
#include <set>
#include <utility>

#include "base/pause_point.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

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

}  // namespace

void NewFiles::add(std::string name, std::string_view text, ::mode_t mode) {
  files_.push_back({std::move(name), text, mode});
}

Status NewFiles::create() {
  const SignalsWait signals_wait;
  auto done = claim_folders();
  if (done) done = clear_leftovers();
  if (!done) {
    // The files of a killed import stay as they are.
    for (; !drafts_.empty(); drafts_.pop_back()) drafts_.back().remove();
    return done;
  }
  done = create_files();
  if (!done) {
    DraftFolder::Leftovers ours;
    if (auto undone = take_back(ours); !undone)  // left to the next import
      return fail(done.error().code, "{}; {}", done.error().text, undone.error().text);
  }
  leave_folders();
  return done;
}

/// Claims the folders that get files, and the folders in which a killed import left files.
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
  const std::string note = drafts_.front().note(target);
  auto claimed = claim(target);
  if (!claimed && !note.empty()) drafts_.front().remove_note(note);
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

Status NewFiles::take_back(DraftFolder::Leftovers& found) const {
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.take_back(found); !done) return done;
  return {};
}

/// All names first: the draft of the result tells whether they are to be taken back.
Status NewFiles::clear_leftovers() {
  if (auto done = take_back(leftovers_); !done) return done;
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.clear(); !done) return done;
  return {};
}

/// The last first: the first one names the others.
void NewFiles::leave_folders() {
  for (; !drafts_.empty(); drafts_.pop_back()) {
    // Drafts that stay do no harm: the next import removes them, or tells why it cannot.
    static_cast<void>(drafts_.back().clear());
    drafts_.back().remove();
  }
}

Status NewFiles::create_files() {
  if (auto free = check_places(); !free) return free;
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

Status NewFiles::write_drafts() {
  std::map<fs::path, Home> homes;
  for (std::size_t i = 0; i + 1 < files_.size(); ++i) {
    const File& file = files_[i];
    const fs::path name(file.name);
    const auto [home, is_new] = homes.try_emplace(name.parent_path());
    if (is_new) home->second = home_of(name.parent_path());
    const auto& [drafts, below] = home->second;
    auto done = drafts->write((below / name.filename()).string(), file.text, file.mode);
    if (!done) return done;
  }
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.write_names(); !done) return done;
  for (std::size_t i = 1; i < drafts_.size(); ++i) drafts_[i].belong_to(drafts_.front());
  // From now on, names that a kill leaves are taken back.
  const File& result = files_.back();
  if (auto done = drafts_.front().write_result(result.name, result.text, result.mode); !done)
    return done;
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.sync(); !done) return done;
  return {};
}

/// A folder that is not there yet gets its drafts beside the result's.
NewFiles::Home NewFiles::home_of(const fs::path& folder) {
  for (DraftFolder& drafts : drafts_)
    if (drafts.is_of(folder_ / folder)) return {&drafts, {}};
  return {&drafts_.front(), folder};
}

/// The names are on disk before the result's: no crash of the host leaves a result without them.
Status NewFiles::name_all() const {
  for (const DraftFolder& drafts : drafts_)
    if (auto done = drafts.name_files(); !done) return done;
  return drafts_.front().name_result();
}

}  // namespace pando::ctl
