#include "manager/start/host.h"

#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "ipc/log.h"
#include "ipc/privileges.h"
#include "manager/io/owned_directory.h"
#include "manager/io/session_key.h"

namespace pando::manager {

namespace {

constexpr std::size_t kNameServiceBytes = 16 << 10;

struct User {
  std::uint32_t uid = 0;
  std::uint32_t gid = 0;
  std::string name;
};

std::optional<User> find_user(std::uint32_t uid) {
  std::vector<char> buffer(kNameServiceBytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr)
    return std::nullopt;
  return User{found->pw_uid, found->pw_gid, found->pw_name};
}

std::optional<std::uint32_t> group_by_name(const std::string& name) {
  std::vector<char> buffer(kNameServiceBytes);
  ::group entry{};
  ::group* found = nullptr;
  if (name.empty() ||
      ::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return std::nullopt;
  return found->gr_gid;
}

using Owner = std::optional<std::uint32_t>;

Status own(const std::string& what, const std::string& path, mode_t mode, Owner owner) {
  auto directory = OwnedDirectory::open(what, path, owner);
  if (!directory) return pass(directory);
  return directory->own(mode);
}

/// Nothing in these folders is read, changed or removed before they are known to be ours alone: a
/// second manager would take the journal's last segment or the sockets away from the first. The
/// run directory is also searched by pandoctl's users.
Status take_directories(const config::Settings& settings, Owner owner, Host& host) {
  auto run = OwnedDirectory::open("server.run-directory", settings.server.run_directory, owner);
  if (!run) return pass(run);
  auto journal = OwnedDirectory::open("store.journal", settings.store.journal, owner);
  if (!journal) return pass(journal);
  auto run_lock = DirectoryLock::take(*run, "manager.lock");
  if (!run_lock) return pass(run_lock);
  auto journal_lock = DirectoryLock::take(*journal, "journal.lock");
  if (!journal_lock) return pass(journal_lock);
  host.run_lock = std::move(*run_lock);
  host.journal_lock = std::move(*journal_lock);
  auto slots = run->open_in("slots");
  if (!slots) return pass(slots);
  if (auto owned = slots->own(0700); !owned) return owned;
  if (auto owned = run->own(0755); !owned) return owned;
  if (auto owned = journal->own(0750); !owned) return owned;
  const std::string store = std::filesystem::path(settings.store.path).parent_path().string();
  if (auto owned = own("store.path", store, 0755, owner); !owned) return owned;
  // A folder that is there may be anybody's: an image is written only where the user may write.
  const std::string image = std::filesystem::path(settings.store.image).parent_path().string();
  std::error_code error;
  if (image.empty() || std::filesystem::is_directory(image, error)) return {};
  return own("store.image", image, 0750, owner);
}

/// A user that must exist when somebody wrote it down; the default one may be missing.
Result<Owner> known_user(const std::string& name,
                                                const std::string& default_name) {
  auto uid = ipc::user_id(name);
  if (uid) return Owner(*uid);
  if (name != default_name) return fail(Errc::kNotFound, "user {} does not exist", name);
  log::warning("user_missing", "user", name, "effect", "manager and workers share one user");
  return Owner();
}

constexpr const char* kSharedEffect =
    "workers run as the manager's user: a hijacked worker can read its keys and change its data";

/// Said in `status` too, for a warning at the start is soon out of sight.
void warn_of_shared_user(Host& host) {
  host.worker_uid = ::geteuid();
  log::warning("single_user", "uid", ::geteuid(), "effect", kSharedEffect);
}

/// The launcher retains rights that the manager gives up: the right to become, and so to signal,
/// the workers' user.
Status start_launcher(const config::Settings& settings, Host& host) {
  auto launcher = Launcher::start(
      {worker_binary(""), settings.server.run_directory, settings.server.worker_user,
       tls_binary()});
  if (!launcher) return pass(launcher);
  host.launcher.emplace(std::move(*launcher));
  return {};
}

/// Groups that sockets and files are given to. The manager has to be a member of all.
void choose_groups(const config::Settings& settings, Host& host) {
  host.worker_group = ::getegid();
  if (host.worker_uid != ::geteuid()) {
    auto group = ipc::group_id(settings.server.worker_user);
    host.worker_group = group ? std::optional(*group) : std::nullopt;
  }
  host.control_group = group_by_name(settings.server.control_group);
  if (!settings.http) return;
  auto http = ipc::group_id(settings.http->user);
  host.http_group = http ? std::optional(*http) : std::nullopt;
}

std::vector<std::uint32_t> groups_of(const Host& host) {
  std::vector<std::uint32_t> groups;
  for (const auto& group : {host.worker_group, host.control_group, host.http_group})
    if (group) groups.push_back(*group);
  return groups;
}

/// server.xdp is read once, because a reload cannot regain dropped capabilities.
ipc::Keep kept_rights(const config::Settings& settings) {
  return settings.server.xdp.empty() ? ipc::Keep::kBindService : ipc::Keep::kBindServiceAndXdp;
}

/// The kernel counts the frames of AF_XDP sockets as memory that the manager's user has locked. A
/// unit raises the limit itself (LimitMEMLOCK).
void allow_locked_frames(const config::Settings& settings) {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  if (!settings.server.xdp.empty()) static_cast<void>(::setrlimit(RLIMIT_MEMLOCK, &unlimited));
}

Result<Host> prepare_as_root(const config::Settings& settings) {
  const config::Server defaults;
  auto user = known_user(settings.server.user, defaults.user);
  if (!user) return pass(user);
  auto worker = known_user(settings.server.worker_user, defaults.worker_user);
  if (!worker) return pass(worker);
  Host host;
  if (auto taken = take_directories(settings, *user, host); !taken) return pass(taken);
  const bool stays_root = !*user || **user == 0;
  const bool shared = !*worker || **worker == (stays_root ? 0 : **user);
  if (!shared) {
    host.worker_uid = **worker;
    if (stays_root) host.worker_user = settings.server.worker_user;
    if (!stays_root)
      if (auto started = start_launcher(settings, host); !started) return pass(started);
  }
  choose_groups(settings, host);
  allow_locked_frames(settings);
  if (!stays_root)
    if (auto dropped =
            ipc::become_user(settings.server.user, kept_rights(settings), groups_of(host));
        !dropped)
      return pass(dropped);
  if (shared) warn_of_shared_user(host);
  return host;
}

/// Without root. A service manager starts the workers under their own user, or has given this
/// process the right to do so (systemd/pando-manager.service); else there is one user.
Result<Host> prepare_as_user(const config::Settings& settings) {
  Host host;
  if (auto taken = take_directories(settings, std::nullopt, host); !taken) return pass(taken);
  const auto worker = ipc::user_id(settings.server.worker_user);
  const bool external = settings.server.workers.mode == config::Workers::Mode::kExternal;
  const bool is_other = worker && *worker != 0 && *worker != ::geteuid();
  const bool may_start = is_other && ipc::may_become_another_user();
  if (may_start)
    if (auto started = start_launcher(settings, host); !started) return pass(started);
  if (may_start || (is_other && external)) host.worker_uid = *worker;
  if (auto dropped = ipc::drop_capabilities(kept_rights(settings)); !dropped)
    return pass(dropped);
  if (!may_start && !(is_other && external)) warn_of_shared_user(host);
  choose_groups(settings, host);
  return host;
}

}  // namespace

Result<Host> prepare_host(const config::Settings& settings) {
  return ::geteuid() == 0 ? prepare_as_root(settings) : prepare_as_user(settings);
}

Status prepare_session_keys(const config::Settings& settings) {
  Owner owner;
  // prepare_host() reports a user that does not exist.
  if (::geteuid() == 0)
    if (const auto user = ipc::user_id(settings.server.user)) owner = *user;
  auto made = make_session_keys(settings, owner);
  return status_of(made);
}

bool may_control(std::uint32_t uid, const std::string& group) {
  if (uid == 0 || uid == ::geteuid()) return true;
  const auto user = find_user(uid);
  const auto gid = group_by_name(group);
  if (!user || !gid) return false;
  std::vector<gid_t> groups(256);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(user->name.c_str(), user->gid, groups.data(), &count) < 0) return false;
  groups.resize(static_cast<std::size_t>(count));
  return std::find(groups.begin(), groups.end(), *gid) != groups.end();
}

}  // namespace pando::manager
