#pragma once

namespace pando {

#ifdef PANDO_CRASH_POINTS

void crash_point_slow(const char* name) noexcept;
extern bool crash_points_armed;

/// A named place where the crash tests end the process with SIGKILL. With PANDO_CRASH_AT=name in
/// the environment (or name:N for the N-th pass), reaching that point kills the process at once.
/// With PANDO_CRASH_IF=path, passes count only while that file exists.
/// Compiled out without PANDO_CRASH_POINTS; otherwise one load of a cached flag when unarmed.
inline void crash_point(const char* name) noexcept {
  if (crash_points_armed) [[unlikely]]
    crash_point_slow(name);
}
#else

inline void crash_point(const char*) noexcept {}

#endif

}  // namespace pando
