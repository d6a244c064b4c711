#pragma once

#include <chrono>

namespace pando {

#ifdef PANDO_CRASH_POINTS

/// The name in PANDO_PAUSE_AT when the process started, or null.
extern const char* const pause_armed_at;
void pause_point_slow(const char* name) noexcept;
/// True when the process is to be held at `name`, or has been.
bool is_pause_point_armed(const char* name) noexcept;

/// A named place where tests hold a thread. With PANDO_PAUSE_AT=name in the environment, a thread
/// that reaches that point waits until the file that PANDO_PAUSE_WHILE names is gone. An unarmed
/// point costs one load of a cached pointer; without PANDO_CRASH_POINTS it costs nothing.
inline void pause_point(const char* name) noexcept {
  if (pause_armed_at != nullptr) [[unlikely]]
    pause_point_slow(name);
}

/// A pause between two tries, or the time for one. Tests that wait for the next try have all of
/// these divided by the number in PANDO_DIVIDE_PAUSES.
std::chrono::milliseconds shortened(std::chrono::milliseconds pause) noexcept;

#else

inline bool is_pause_point_armed(const char*) noexcept { return false; }
inline void pause_point(const char*) noexcept {}
inline std::chrono::milliseconds shortened(std::chrono::milliseconds pause) noexcept {
  return pause;
}

#endif

}  // namespace pando
