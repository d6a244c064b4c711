#include "manager/zonefile/load_log.h"

#include <chrono>

#include "base/steady_time.h"
#include "ipc/log.h"

namespace pando::manager {

void log_loaded(const LoadTask& task, const zone::ZoneView& zone) {
  const auto level = task.request->loaded.level_of_next(log::Level::kInfo);
  if (!log::enabled(level)) return;
  log::detail::event(level, "zone_loaded", "zone", to_text(task.job.apex), "serial",
                     zone.serial().value, "records", zone.record_count(), "ms",
                     milliseconds_since(task.start), "updated", task.zone->updated, "replayed",
                     task.zone->replayed, "skipped", task.zone->skipped);
}

void log_warnings(const LoadTask& task, const std::vector<std::string>& warnings) {
  for (const std::string& warning : warnings)
    log::detail::event(task.request->warnings.level_of_next(log::Level::kWarning), "zone_file",
                       "zone", to_text(task.job.apex), "text", warning);
}

void log_problems(const LoadTask& task, const std::vector<std::string>& problems) {
  for (const std::string& line : problems)
    log::detail::event(task.request->problems.level_of_next(log::Level::kError), "zone_not_loaded",
                       "zone", to_text(task.job.apex), "reason", line);
}

void log_left_out(const QueuedRequest& request) {
  if (request.problems.left_out() > 0)
    log::error("zones_not_loaded", "zones", request.failed, "lines_left_out",
               request.problems.left_out());
  if (request.warnings.left_out() > 0)
    log::warning("zone_files", "lines_left_out", request.warnings.left_out());
}

void log_progress(const LoadProgress& load, LoadProgress::Clock::time_point now) {
  const Progress::Seen seen = load.seen();
  const auto spent = std::chrono::duration_cast<std::chrono::seconds>(now - load.start).count();
  if (const auto percent = seen.percent())
    log::info("zone_loading", "zone", to_text(load.zone), "phase", to_text(seen.phase), "percent",
              *percent, "done", seen.done, "total", seen.total, "s", spent);
  else
    log::info("zone_loading", "zone", to_text(load.zone), "phase", to_text(seen.phase), "done",
              seen.done, "s", spent);
}

}  // namespace pando::manager
