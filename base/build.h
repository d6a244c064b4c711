#pragma once

/// Facts about this build.
namespace pando {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define PANDO_WITH_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define PANDO_WITH_SANITIZER 1
#endif
#endif

/// Sanitizers look at their own process through ptrace and make system calls of their own.
#ifdef PANDO_WITH_SANITIZER
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace pando
