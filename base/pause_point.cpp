#include "base/pause_point.h"

#ifdef PANDO_CRASH_POINTS

#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace pando {

namespace {
constexpr timespec kLook{0, 1'000'000};
}  // namespace

const char* const pause_armed_at = std::getenv("PANDO_PAUSE_AT");

bool is_pause_point_armed(const char* name) noexcept {
  return pause_armed_at != nullptr && std::string_view(pause_armed_at) == name;
}

void pause_point_slow(const char* name) noexcept {
  const char* held_by = std::getenv("PANDO_PAUSE_WHILE");
  if (held_by == nullptr || !is_pause_point_armed(name)) return;
  while (::access(held_by, F_OK) == 0) ::nanosleep(&kLook, nullptr);
}

std::chrono::milliseconds shortened(std::chrono::milliseconds pause) noexcept {
  static const char* const divisor = std::getenv("PANDO_DIVIDE_PAUSES");
  const int number = divisor == nullptr ? 0 : std::atoi(divisor);
  return number > 1 ? pause / number : pause;
}

}  // namespace pando

#endif
