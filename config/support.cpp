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
    Row{"server.dnstap", Support::kNone},
    Row{"remotes[].tls", Support::kNone},
    Row{"zones[].catalog", Support::kNone},
    Row{"catalogs", Support::kDefaultOnly},
};

/// Keys that have another name now.
constexpr std::array kRenamed{
    std::pair<std::string_view, std::string_view>{"server.metrics", "http.listen"},
};

constexpr std::string_view kTemplates = "templates[]";

}  // namespace

Support support_of(std::string_view path) noexcept {
  const auto row = std::find_if(kNotYet.begin(), kNotYet.end(),
                                [&](const Row& candidate) { return candidate.path == path; });
  return row == kNotYet.end() ? Support::kFull : row->support;
}

std::vector<std::string_view> unsupported_paths() {
  std::vector<std::string_view> paths;
  for (const Row& row : kNotYet) paths.push_back(row.path);
  return paths;
}

std::string_view successor_of(std::string_view path) noexcept {
  const auto found = std::find_if(kRenamed.begin(), kRenamed.end(),
                                  [&](const auto& row) { return row.first == path; });
  return found == kRenamed.end() ? std::string_view() : found->second;
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
