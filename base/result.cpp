#include "base/result.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace pando {

tl::unexpected<Error> fail_errno(std::string_view call) {
  const int code = errno;
  char buffer[128];
  return tl::unexpected<Error>(
      Error{Errc::kIo, fmt::format("{}: {}", call, strerror_r(code, buffer, sizeof buffer))});
}

void die(std::string_view what, const char* file, int line) noexcept {
  char text[256];
  const int length = std::snprintf(text, sizeof text, "pando: %s:%d: %.*s\n", file, line,
                                   static_cast<int>(what.size()), what.data());
  if (length > 0) {
    [[maybe_unused]] const auto written = ::write(2, text, static_cast<std::size_t>(length));
  }
  std::abort();
}

}  // namespace pando
