#pragma once

#include <array>
#include <string>
#include <string_view>

namespace pando::config {

enum class Support {
  kFull,
  kDefaultOnly,  ///< the feature is not built yet; its default means "off" and may be written
  kNone,         ///< the feature is not built yet, and any value would mislead
};

/// A key that is parsed and checked but has no effect yet.
struct NotYet {
  std::string_view path;  ///< of the schema
  Support support;
};

/// A feature that gets built loses its row.
inline constexpr std::array<NotYet, 0> kNotYet{};

/// Support of a key in this build. `path` is a schema path such as "zones[].notify"; keys of
/// templates count as keys of zones.
[[nodiscard]] Support support_of(std::string_view path) noexcept;

/// False if no path that ends with this key is in kNotYet.
[[nodiscard]] bool may_lack_support(std::string_view key) noexcept;

/// Turns a path of messages, "templates[2].notify", into a schema path: "zones[].notify".
[[nodiscard]] std::string schema_path(std::string_view shown);

}  // namespace pando::config
