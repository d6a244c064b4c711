#include "config/support.h"

#include <algorithm>
#include <iterator>

namespace pando::config {

namespace {

constexpr std::string_view kTemplates = "templates[]";

}  // namespace

Support support_of(std::string_view path) noexcept {
  const auto* row = std::ranges::find(kNotYet, path, &NotYet::path);
  return row == std::end(kNotYet) ? Support::kFull : row->support;
}

bool may_lack_support(std::string_view key) noexcept {
  return std::ranges::any_of(kNotYet, [key](const NotYet& row) {
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
