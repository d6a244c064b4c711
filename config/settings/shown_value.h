#pragma once

#include <concepts>
#include <optional>
#include <string>
#include <vector>

#include "config/settings/settings.h"

/// The values of settings as YAML text on one line, so that a configuration with this text has the
/// same value. nullopt: the key is absent, which nothing else can say.
namespace pando::config {

using Shown = std::optional<std::string>;

[[nodiscard]] Shown shown(bool value);
template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>)
[[nodiscard]] Shown shown(T value) {
  return std::to_string(value);
}
[[nodiscard]] Shown shown(const std::string& value);  ///< empty: absent
[[nodiscard]] Shown shown(Duration value);
[[nodiscard]] Shown shown(const std::optional<Duration>& value);  ///< absent: "off"
[[nodiscard]] Shown shown(const DurationRange& value);
[[nodiscard]] Shown shown(const SizeOrShare& value);
[[nodiscard]] Shown shown(const IpAddress& value);
[[nodiscard]] Shown shown(const IpPrefix& value);
[[nodiscard]] Shown shown(const std::vector<Endpoint>& value);
[[nodiscard]] Shown shown(const std::vector<IpPrefix>& value);
[[nodiscard]] Shown shown(const std::vector<dns::RRType>& value);  ///< empty: absent
[[nodiscard]] Shown shown(const Workers& value);
[[nodiscard]] Shown shown(dns::TsigAlgorithm value);
[[nodiscard]] Shown shown(const dns::Name& value);
[[nodiscard]] Shown shown(const std::vector<dns::Name>& value);  ///< empty: absent
[[nodiscard]] Shown shown(const std::vector<std::string>& value);
[[nodiscard]] Shown shown(const zone::Acl& value);
template <class T>
[[nodiscard]] Shown shown(const std::optional<T>& value) {
  return value ? shown(*value) : std::nullopt;
}
template <class T>
[[nodiscard]] Shown shown(const RareValue<T>& value) {
  return value ? shown(*value) : std::nullopt;
}

/// A rule of access as a YAML map on one line.
[[nodiscard]] std::string rule_yaml(const zone::AclRule& rule);

/// A number of bytes in the largest unit that divides it.
[[nodiscard]] Shown shown_size(std::uint64_t bytes);

}  // namespace pando::config
