#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/settings/setting_lines.h"
#include "config/settings/settings.h"

/// Settings in force, for people: every key with its value after templates and defaults, and the
/// difference between two configurations. Secrets are never shown.
namespace pando::config {

/// All sections but the zones, as YAML that a configuration could contain.
[[nodiscard]] std::string effective_server(const Settings& settings);
/// The zone with this index in the table, in the same form.
[[nodiscard]] std::string effective_zone(const Settings& settings, std::size_t index);

/// A zone of both configurations whose settings differ.
struct ZoneChange {
  dns::Name zone;
  SettingChanges settings;
};

/// The effect of taking another configuration. Lists have no more elements than the limit; the
/// counts tell of all.
struct ConfigDifference {
  SettingChanges settings;  ///< of all sections but zones, for which templates count
  std::uint64_t settings_changed = 0;
  std::uint64_t zones_added = 0;
  std::uint64_t zones_removed = 0;
  std::uint64_t zones_changed = 0;
  std::vector<dns::Name> added;
  std::vector<dns::Name> removed;
  std::vector<ZoneChange> changed;
};

/// Values of more than this many bytes are cut.
inline constexpr std::size_t kMaxValueBytes = 400;

[[nodiscard]] ConfigDifference compare(const Settings& running, const Settings& wanted,
                                       std::size_t limit);

}  // namespace pando::config
