#include "manager/start/host.h"

#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <vector>

#include "ipc/log.h"
#include "ipc/privileges.h"
#include "manager/io/store_file.h"

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

Status own(const std::string& directory, mode_t mode, std::optional<std::uint32_t> uid) {
  if (auto made = native_files().make_directory(directory); !made) return made;
  // A folder on a read-only file system is served as it is (docs/explanation/starts.md).
  if (::chmod(directory.c_str(), mode) != 0 && uid && errno != EROFS)
    return fail_errno("chmod " + directory);
  if (uid && ::chown(directory.c_str(), *uid, static_cast<gid_t>(-1)) != 0 && errno != EROFS)
    return fail_errno("chown " + directory);
  return {};
}

/// The store's directory is searched by workers, the run directory also by pandoctl's users.
Status make_directories(const config::Settings& settings, std::optional<std::uint32_t> uid) {
  const std::string store = std::filesystem::path(settings.store.path).parent_path().string();
  if (auto made = own(settings.server.run_directory, 0755, uid); !made) return made;
  if (auto made = own(settings.server.run_directory + "/slots", 0700, uid); !made) return made;
  if (auto made = own(store, 0755, uid); !made) return made;
  if (auto made = own(settings.store.journal, 0750, uid); !made) return made;
  // A folder that is there may be anybody's: an image is written only where the user may write.
  const std::string image = std::filesystem::path(settings.store.image).parent_path().string();
  std::error_code error;
  if (image.empty() || std::filesystem::is_directory(image, error)) return {};
  return own(image, 0750, uid);
}

/// Nothing in these folders is read, changed or removed before they are known to be ours alone: a
/// second manager would take the journal's last segment or the sockets away from the first.
Status take_directories(const config::Settings& settings, std::optional<std::uint32_t> uid,
                        Host& host) {
  const std::string& run = settings.server.run_directory;
  if (auto made = native_files().make_directory(run); !made) return made;
  if (auto made = native_files().make_directory(settings.store.journal); !made) return made;
  auto run_lock = DirectoryLock::take("server.run-directory", run, "manager.lock", uid);
  if (!run_lock) return pass(run_lock);
  auto journal_lock =
      DirectoryLock::take("store.journal", settings.store.journal, "journal.lock", uid);
  if (!journal_lock) return pass(journal_lock);
  host.run_lock = std::move(*run_lock);
  host.journal_lock = std::move(*journal_lock);
  return make_directories(settings, uid);
}

/// A user that must exist when somebody wrote it down; the default one may be missing.
Result<std::optional<std::uint32_t>> known_user(const std::string& name,
                                                const std::string& default_name) {
  auto uid = ipc::user_id(name);
  if (uid) return std::optional<std::uint32_t>(*uid);
  if (name != default_name) return fail(Errc::kNotFound, "user {} does not exist", name);
  log::warning("user_missing", "user", name, "effect", "manager and workers share one user");
  return std::optional<std::uint32_t>();
}

Result<Host> prepare_as_root(const config::Settings& settings) {
  const config::Server defaults;
  auto user = known_user(settings.server.user, defaults.user);
  if (!user) return pass(user);
  auto worker = known_user(settings.server.worker_user, defaults.worker_user);
  if (!worker) return pass(worker);
  Host host;
  if (auto taken = take_directories(settings, *user, host); !taken) return pass(taken);
  if (!*worker) return host;  // all as root: the warning is out
  host.worker_uid = **worker;
  auto group = ipc::group_id(settings.server.worker_user);
  if (!group) return pass(group);
  host.store_group = *group;
  if (!*user || **user == 0) {
    host.worker_user = settings.server.worker_user;
    return host;
  }
  if (settings.server.workers.mode != config::Workers::Mode::kExternal) {
    auto launcher = Launcher::start(
        {worker_binary(""), settings.server.run_directory, settings.server.worker_user});
    if (!launcher) return pass(launcher);
    host.launcher.emplace(std::move(*launcher));
  }
  return host;
}

/// Without root: a service manager starts the workers under their own user, or there is one user.
Result<Host> prepare_as_user(const config::Settings& settings) {
  Host host;
  if (auto taken = take_directories(settings, std::nullopt, host); !taken) return pass(taken);
  host.worker_uid = ::geteuid();
  const auto worker = ipc::user_id(settings.server.worker_user);
  if (worker && settings.server.workers.mode == config::Workers::Mode::kExternal)
    host.worker_uid = *worker;
  if (host.worker_uid == ::geteuid())
    log::warning("single_user", "uid", ::geteuid(), "effect",
                 "workers run as the manager's user and are not kept from its data");
  return host;
}

}  // namespace

Result<Host> prepare_host(const config::Settings& settings) {
  if (::geteuid() == 0) {
    auto host = prepare_as_root(settings);
    if (!host) return host;
    const bool stay = settings.server.user == "root" || !ipc::user_id(settings.server.user);
    if (stay) return host;
    // Only a member of the workers' group may give the store to it.
    auto dropped = drop_privileges(settings.server.user, host->store_group);
    if (!dropped) return pass(dropped);
    return host;
  }
  return prepare_as_user(settings);
}

bool may_control(std::uint32_t uid, const std::string& group) {
  if (uid == 0 || uid == ::geteuid()) return true;
  const auto user = find_user(uid);
  std::vector<char> buffer(kNameServiceBytes);
  ::group entry{};
  ::group* found = nullptr;
  if (!user || group.empty() ||
      ::getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr)
    return false;
  std::vector<gid_t> groups(256);
  int count = static_cast<int>(groups.size());
  if (::getgrouplist(user->name.c_str(), user->gid, groups.data(), &count) < 0) return false;
  groups.resize(static_cast<std::size_t>(count));
  return std::find(groups.begin(), groups.end(), found->gr_gid) != groups.end();
}

}  // namespace pando::manager
