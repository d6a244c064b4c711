#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pando::config {

enum class Support {
  kFull,
  kDefaultOnly,  ///< the feature is not built yet; its default means "off" and may be written
  kNone,         ///< the feature is not built yet, and saying anything about it would mislead
};

/// What this build does with a key. `path` is a schema path such as "zones[].notify"; what a
/// template says counts as what its zones say. One row of a table per feature that is to come.
[[nodiscard]] Support support_of(std::string_view path) noexcept;

/// Every path that is not kFull.
[[nodiscard]] std::vector<std::string_view> unsupported_paths();

/// A path as messages show it, "templates[2].notify", as a schema path: "zones[].notify".
[[nodiscard]] std::string schema_path(std::string_view shown);

}  // namespace pando::config
