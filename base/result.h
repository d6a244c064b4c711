#pragma once

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace pando {

/// The kind of failure of an `Error`; callers branch on the kind and show the text.
enum class Errc {
  kInvalid,      ///< input that breaks a rule (syntax, range, protocol)
  kTruncated,    ///< input ended too early
  kFull,         ///< no room: store, message, queue or a configured limit
  kIo,           ///< a system call failed; the text has the call and strerror
  kNotFound,     ///< the named thing does not exist
  kExists,       ///< the thing exists already, or another process holds it
  kLayout,       ///< shared data made by a build with another layout
  kCorrupt,      ///< stored data contradicts itself (checksum, reference, order)
  kUnsupported,  ///< valid, but not built yet or switched off
  kDenied,       ///< an access rule or a permission says no
};

/// An expected failure as a value. `text` is one line without a final full stop, fit for a user.
struct Error {
  Errc code = Errc::kInvalid;
  std::string text;
};

/// A value or an Error; ignoring it is a compile error (warnings are errors).
template <class T, class E = Error>
class [[nodiscard]] Result : public tl::expected<T, E> {
 public:
  using tl::expected<T, E>::expected;
};

using Status = Result<void>;

/// `return fail(Errc::kInvalid, "TTL {} is above {}", ttl, kMaxTtl);`
template <class... Args>
[[nodiscard]] tl::unexpected<Error> fail(Errc code, fmt::format_string<Args...> format,
                                         Args&&... args) {
  return tl::unexpected<Error>(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// An I/O failure with the text of `errno`; call it before anything else can change errno.
[[nodiscard]] tl::unexpected<Error> fail_errno(std::string_view call);

/// Passes on the error of another Result: `if (!r) return pass(r);`
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(Result<T>& result) {
  return tl::unexpected<Error>(std::move(result.error()));
}
template <class T>
[[nodiscard]] tl::unexpected<Error> pass(const Result<T>& result) {
  return tl::unexpected<Error>(result.error());
}
[[nodiscard]] inline tl::unexpected<Error> pass(Error error) {
  return tl::unexpected<Error>(std::move(error));
}

/// A Result without its value.
template <class T>
[[nodiscard]] Status status_of(const Result<T>& result) {
  return result ? Status() : Status(pass(result));
}

/// Ends the process with a message. For broken invariants only, in release builds too: a worker is
/// restarted and the store is intact, whereas going on could publish damage.
[[noreturn]] void die(std::string_view what, const char* file, int line) noexcept;

#define PANDO_ASSERT(condition)                                          \
  do {                                                                   \
    if (!(condition)) [[unlikely]]                                       \
      ::pando::die("broken invariant: " #condition, __FILE__, __LINE__); \
  } while (false)

}  // namespace pando
