#include "manager/start/wanted_configuration.h"

#include <utility>

#include "base/secret.h"
#include "config/added_list.h"
#include "config/load.h"

namespace pando::manager {

WantedConfiguration read_wanted(const std::string& path, const config::Settings& before) {
  const WipeFreed wipe_freed;  // the secrets of a configuration that is not taken
  config::LoadResult loaded = config::load(path);
  WantedConfiguration wanted;
  wanted.warnings = std::move(loaded.warnings);
  wanted.fingerprint = loaded.fingerprint;
  wanted.lost_list = loaded.added_list_failed;
  if (!loaded.ok()) {
    wanted.problem = fail(Errc::kInvalid, "{}", loaded.error_text());
    return wanted;
  }
  if (before.has_added_list && !loaded.settings.has_added_list) {
    // The whole folder may be away.
    wanted.lost_list = true;
    wanted.problem =
        pass(config::missing_added_list(config::added_list_path(loaded.settings.store.journal)));
    return wanted;
  }
  auto runtime = make_runtime(std::move(loaded.settings));
  if (runtime)
    wanted.runtime = std::move(*runtime);
  else
    wanted.problem = pass(runtime);
  return wanted;
}

}  // namespace pando::manager
