#include "http/observe/proc_file.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/fd.h"

namespace pando::http {

std::string read_proc_file(const std::string& path) {
  constexpr std::size_t kMaxBytes = std::size_t{4} << 20;
  constexpr std::size_t kStep = std::size_t{64} << 10;
  const Fd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  while (file && text.size() < kMaxBytes) {
    const std::size_t before = text.size();
    text.resize(before + kStep);
    const ssize_t got = ::read(file.get(), text.data() + before, kStep);
    text.resize(before + static_cast<std::size_t>(got > 0 ? got : 0));
    if (got <= 0) break;
  }
  return text;
}

}  // namespace pando::http
