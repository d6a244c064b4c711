#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/settings/settings.h"
#include "manager/io/directory_lock.h"
#include "manager/launch/launcher.h"
#include "manager/systemd/descriptor_store.h"

namespace pando::manager {

/// What the manager found and made on this host before it serves: directories, users, privileges.
struct Host {
  DirectoryLock run_lock;            ///< while held, sockets and slots are this process's
  DirectoryLock journal_lock;        ///< while held, the journal is
  std::optional<Launcher> launcher;  ///< starts workers under their own user
  std::string worker_user;           ///< for workers started without a launcher; may be empty
  std::uint32_t worker_uid = 0;
  std::optional<std::uint32_t> worker_group;   ///< of the workers, who may connect
  std::optional<std::uint32_t> control_group;  ///< of pandoctl's users
  std::optional<std::uint32_t> http_group;     ///< of pando-http, which may read
  std::vector<systemd::InheritedDescriptor> inherited;  ///< from the service manager
};

/// Makes and locks the directories (kExists: another manager has one). When this process is root,
/// gives them to `server.user` and becomes that user. Drops all capabilities but
/// CAP_NET_BIND_SERVICE, and those that `server.xdp` needs if there is one; a launcher keeps the
/// right to start workers under their own user. A default user that does not exist means a run
/// under one user, with a warning; a configured one that does not exist is an error.
Result<Host> prepare_host(const config::Settings& settings);

/// Makes the secrets of session keys that have none yet (manager/io/session_key.h), as files of the
/// user that this process is going to become. Call it before prepare_host() and make_runtime().
Status prepare_session_keys(const config::Settings& settings);

/// True when `uid` may give commands: root, this process's own user, or a member of `group`.
[[nodiscard]] bool may_control(std::uint32_t uid, const std::string& group);

}  // namespace pando::manager
