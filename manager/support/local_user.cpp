#include "manager/support/local_user.h"

#include <fmt/format.h>
#include <pwd.h>

#include <array>
#include <cstdio>
#include <memory>

namespace pando::manager {

std::string local_user_name(std::uint32_t uid, const char* passwd) {
  const auto close = [](std::FILE* file) { std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(passwd, "re"), close);
  std::array<char, 4096> text;
  struct passwd row {};
  struct passwd* found = nullptr;
  while (file && ::fgetpwent_r(file.get(), &row, text.data(), text.size(), &found) == 0)
    if (row.pw_uid == uid) return row.pw_name;
  return fmt::format("uid {}", uid);
}

}  // namespace pando::manager
