#include "config/settings/shown_value.h"

#include <fmt/format.h>

#include <array>
#include <string_view>
#include <utility>

#include "config/settings/yaml_scalar.h"

namespace pando::config {

namespace {

using NamedUnit = std::pair<std::string_view, std::uint64_t>;

// The largest unit first.
constexpr std::array<NamedUnit, 4> kShownSizes{
    {{"TiB", 1ULL << 40}, {"GiB", 1ULL << 30}, {"MiB", 1ULL << 20}, {"KiB", 1ULL << 10}}};
constexpr std::array<NamedUnit, 5> kShownDurations{
    {{"weeks", 604'800'000}, {"days", 86'400'000}, {"h", 3'600'000}, {"min", 60'000}, {"s", 1000}}};

template <std::size_t N>
std::string in_units(std::uint64_t value, const std::array<NamedUnit, N>& units,
                     std::string_view smallest) {
  for (const auto& [word, factor] : units)
    if (value != 0 && value % factor == 0) return fmt::format("{}{}", value / factor, word);
  return fmt::format("{}{}", value, smallest);
}

}  // namespace

std::string rule_yaml(const zone::AclRule& rule) {
  std::string text;
  const auto add = [&text](std::string_view key, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key, value);
  };
  if (rule.key) add("key", yaml_name(*rule.key));
  if (rule.address) add("address", yaml_scalar(prefix_text(*rule.address)));
  if (rule.tls) add("tls", yaml_scalar(*rule.tls));
  if (rule.deny) add("deny", "true");
  if (!rule.names.empty())
    add("names", flow_list(rule.names, [](const dns::Name& name) { return yaml_name(name); }));
  if (!rule.types.empty())
    add("types", flow_list(rule.types, [](dns::RRType type) { return dns::to_text(type); }));
  return "{" + text + "}";
}

Shown shown(bool value) { return value ? "true" : "false"; }

Shown shown(const std::string& value) {
  if (value.empty()) return std::nullopt;
  return yaml_scalar(value);
}

Shown shown(Duration value) {
  return in_units(static_cast<std::uint64_t>(value.count()), kShownDurations, "ms");
}

Shown shown(const std::optional<Duration>& value) { return value ? shown(*value) : "off"; }

Shown shown(const DurationRange& value) {
  return fmt::format("[{}, {}]", *shown(value.min), *shown(value.max));
}

Shown shown(const SizeOrShare& value) {
  if (value.percent != 0) return fmt::format("{}%", value.percent);
  return shown_size(value.bytes);
}

Shown shown(const IpAddress& value) { return yaml_scalar(to_text(value)); }

Shown shown(const IpPrefix& value) { return yaml_scalar(prefix_text(value)); }

Shown shown(const std::vector<Endpoint>& value) {
  return flow_list(value, [](const Endpoint& endpoint) { return yaml_scalar(to_text(endpoint)); });
}

Shown shown(const std::vector<IpPrefix>& value) {
  return flow_list(value, [](const IpPrefix& prefix) { return yaml_scalar(prefix_text(prefix)); });
}

Shown shown(const std::vector<dns::RRType>& value) {
  if (value.empty()) return std::nullopt;
  return flow_list(value, [](dns::RRType type) { return dns::to_text(type); });
}

Shown shown(const Workers& value) {
  if (value.mode == Workers::Mode::kFixed) return std::to_string(value.count);
  return value.mode == Workers::Mode::kAuto ? "auto" : "external";
}

Shown shown(dns::TsigAlgorithm value) { return yaml_scalar(dns::to_text(value)); }

Shown shown(const dns::Name& value) { return yaml_name(value); }

Shown shown(const std::vector<dns::Name>& value) {
  if (value.empty()) return std::nullopt;
  return flow_list(value, [](const dns::Name& name) { return yaml_name(name); });
}

Shown shown(const std::vector<std::string>& value) { return flow_list(value, yaml_scalar); }

Shown shown(const zone::Acl& value) { return flow_list(value, rule_yaml); }

Shown shown_size(std::uint64_t bytes) { return in_units(bytes, kShownSizes, ""); }

}  // namespace pando::config
