#include "base/crash_point.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#ifdef PANDO_CRASH_POINTS

namespace pando {

namespace {
const char* const armed_at = std::getenv("PANDO_CRASH_AT");
}  // namespace

bool crash_points_armed = armed_at != nullptr;

void crash_point_slow(const char* name) noexcept {
  static std::atomic<long> passes{0};
  const std::string_view wanted = armed_at;
  const auto colon = wanted.find(':');
  if (wanted.substr(0, colon) != name) return;
  if (const char* const condition = std::getenv("PANDO_CRASH_IF");
      condition != nullptr && ::access(condition, F_OK) != 0)
    return;
  const long target = colon == std::string_view::npos ? 1 : std::atol(armed_at + colon + 1);
  if (++passes == target) ::kill(::getpid(), SIGKILL);
}

}  // namespace pando

#endif
