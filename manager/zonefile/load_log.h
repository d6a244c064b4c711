#pragma once

#include <string>
#include <vector>

#include "manager/zonefile/load_queue.h"

/// Lines of the log about files that are loaded.
namespace pando::manager {

/// A zone was put whole; `zone` is the one that is served now.
void log_loaded(const LoadTask& task, const zone::ZoneView& zone);
/// `warnings` about the task's file.
void log_warnings(const LoadTask& task, const std::vector<std::string>& warnings);
/// Reasons of a file that failed.
void log_problems(const LoadTask& task, const std::vector<std::string>& problems);
/// Number of lines that the limits of the request have left out.
void log_left_out(const QueuedRequest& request);
/// How far a large file is.
void log_progress(const LoadProgress& load, LoadProgress::Clock::time_point now);

}  // namespace pando::manager
