#include "manager/start/server_parts.h"

#include <sched.h>

#include <algorithm>

#include "ipc/log.h"
#include "manager/support/found_damage.h"

namespace pando::manager {

Status StoreServices::check_whole() const {
  if (!copying_image) return {};
  return fail(Errc::kExists, "the store is still being copied from its image");
}

void configure_exports(const StoreServices& services, ZoneServices& zones,
                       const RuntimePtr& runtime, bool may_differ) {
  if (!services.copying_image) zones.exports->configure(runtime, may_differ);
}

void log_note(const JournalNote& note) {
  if (!note.severe) return log::warning("journal", "text", note.text);
  log::error("journal", "text", note.text);
  found_damage().add(note.text);
}

std::shared_ptr<HistorySource> make_history(Journal& journal) {
  return std::make_shared<HistorySource>(native_files(), journal, log_note);
}

std::uint32_t usable_processors() {
  cpu_set_t set;
  if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return static_cast<std::uint32_t>(std::max(CPU_COUNT(&set), 1));
}

std::uint32_t wanted_workers(const config::Settings& settings) {
  const config::Workers& workers = settings.server.workers;
  return workers.mode == config::Workers::Mode::kFixed ? workers.count : usable_processors();
}

}  // namespace pando::manager
