#pragma once

namespace pando {

/// A named place where tests hold a thread. With PANDO_PAUSE_AT=name in the environment, a thread
/// that reaches that point waits until the file that PANDO_PAUSE_WHILE names is gone. Compiled out
/// without PANDO_CRASH_POINTS; otherwise one load of a cached pointer when unarmed.
void pause_point_slow(const char* name) noexcept;
/// True when the process is to be held at `name`, or has been.
bool is_pause_point_armed(const char* name) noexcept;
extern const char* const pause_armed_at;

#ifdef PANDO_CRASH_POINTS
inline void pause_point(const char* name) noexcept {
  if (pause_armed_at != nullptr) [[unlikely]]
    pause_point_slow(name);
}
#else
inline void pause_point(const char*) noexcept {}
#endif

}  // namespace pando
