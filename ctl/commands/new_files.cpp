#include "ctl/commands/new_files.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/fd.h"

namespace pando::ctl {

namespace {

namespace fs = std::filesystem;

bool is_there(const fs::path& path) {
  std::error_code none;
  return fs::symlink_status(path, none).type() != fs::file_type::not_found;
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

/// A new file with this text, or none.
Status write_file(const fs::path& path, std::string_view text, ::mode_t mode) {
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!fd) return fail_errno("cannot create " + path.string());
  while (!text.empty()) {
    const auto bytes = ::write(fd.get(), text.data(), text.size());
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes < 0) {
      auto error = fail_errno("cannot write " + path.string());
      ::unlink(path.c_str());
      return error;
    }
    text.remove_prefix(static_cast<std::size_t>(bytes));
  }
  return {};
}

}  // namespace

void NewFiles::add(std::string name, std::string_view text, ::mode_t mode) {
  files_.push_back({std::move(name), text, mode});
}

Status NewFiles::create() {
  const SignalsWait signals_wait;
  if (auto free = check_places(); !free) return free;
  std::string pattern = (folder_ / ".pando-import-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr)
    return fail_errno("cannot create a folder in " + folder_.string());
  auto done = write_all(pattern);
  if (done) done = name_all(pattern);
  if (!done) remove_named();
  std::error_code none;
  fs::remove_all(pattern, none);
  return done;
}

Status NewFiles::check_places() const {
  for (const File& file : files_) {
    const fs::path path = folder_ / file.name;
    std::error_code error;
    const fs::file_type type = fs::symlink_status(path, error).type();
    if (type == fs::file_type::not_found) continue;
    const std::string reason =
        type == fs::file_type::none ? error.message() : "it is there already";
    return fail(Errc::kExists, "cannot create {}: {}", path.string(), reason);
  }
  return {};
}

/// Drafts have numbers for names, because names may have folders in them.
Status NewFiles::write_all(const fs::path& drafts) const {
  for (std::size_t i = 0; i < files_.size(); ++i)
    if (auto done = write_file(drafts / std::to_string(i), files_[i].text, files_[i].mode); !done) {
      // A draft's own name tells nothing.
      return fail(done.error().code, "cannot write {}: {}", (folder_ / files_[i].name).string(),
                  done.error().text);
    }
  // Some file systems notice only now that the disk is full.
  const Fd fd(::open(drafts.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::syncfs(fd.get()) != 0) return fail_errno("cannot write into " + folder_.string());
  return {};
}

Status NewFiles::name_all(const fs::path& drafts) {
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const fs::path path = folder_ / files_[i].name;
    if (auto made = make_folder(path.parent_path()); !made) return made;
    if (auto done = give_name(drafts / std::to_string(i), path, files_[i]); !done) return done;
    named_.push_back(path);
  }
  return {};
}

/// Gives a draft its name, unless another file has it.
Status NewFiles::give_name(const fs::path& draft, const fs::path& path, const File& file) {
  if (::renameat2(AT_FDCWD, draft.c_str(), AT_FDCWD, path.c_str(), RENAME_NOREPLACE) == 0)
    return {};
  // The folder of the zone files may be a link to another file system.
  if (errno == EXDEV) return write_file(path, file.text, file.mode);
  // A file system may lack the flag, such as NFS. The places were looked at before.
  if (errno == EINVAL && !is_there(path) && ::rename(draft.c_str(), path.c_str()) == 0) return {};
  return fail_errno("cannot create " + path.string());
}

/// One folder below folder_, such as that of zone files.
Status NewFiles::make_folder(const fs::path& folder) {
  std::error_code error;
  const bool is_new = fs::create_directory(folder, error);
  if (error) return fail(Errc::kIo, "cannot create {}: {}", folder.string(), error.message());
  if (is_new) named_.push_back(folder);
  return {};
}

/// The last first, so that new folders are empty when their turn comes.
void NewFiles::remove_named() {
  std::error_code none;
  for (; !named_.empty(); named_.pop_back()) fs::remove(named_.back(), none);
}

}  // namespace pando::ctl
