#include "config/support.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pando::config {

namespace {

struct Row {
  std::string_view path;
  Support support;
};

/// Keys that are parsed and checked but have no effect yet. A feature that gets built loses its
/// row.
constexpr std::array kNotYet{
    Row{"server.listen-tls", Support::kDefaultOnly},
    Row{"server.tls", Support::kNone},
    Row{"remotes[].tls", Support::kNone},
};

constexpr std::string_view kTemplates = "templates[]";

}  // namespace

Support support_of(std::string_view path) noexcept {
  const auto row = std::find_if(kNotYet.begin(), kNotYet.end(),
                                [&](const Row& candidate) { return candidate.path == path; });
  return row == kNotYet.end() ? Support::kFull : row->support;
}

bool may_lack_support(std::string_view key) noexcept {
  return std::any_of(kNotYet.begin(), kNotYet.end(), [key](const Row& row) {
    const std::string_view path = row.path;
    return path.ends_with(key) &&
           (path.size() == key.size() || path[path.size() - key.size() - 1] == '.');
  });
}

std::string schema_path(std::string_view shown) {
  std::string path;
  bool in_brackets = false;
  for (const char c : shown) {
    if (c == ']') in_brackets = false;
    if (!in_brackets) path += c;
    if (c == '[') in_brackets = true;
  }
  if (path.starts_with(kTemplates)) path.replace(0, kTemplates.size(), "zones[]");
  return path;
}

}  // namespace pando::config
