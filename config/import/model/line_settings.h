#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/import/model/import_files.h"

/// The syntax of configurations that have a setting per line: `key: values` in sections (Knot), and
/// `key=value` (PowerDNS).
namespace pando::config {

/// Whether a key may have this character.
[[nodiscard]] bool is_key_char(char c) noexcept;

/// One `key: value value`; quotes are gone.
struct LineSetting {
  SourceLine at;
  std::string key;
  std::vector<std::string> values;
  bool begins_item = false;  ///< Knot: stands after a dash

  /// The value at `index`, or an empty one.
  [[nodiscard]] std::string_view value(std::size_t index = 0) const noexcept;
};

/// A section, or one item of a section that is a list.
struct SettingSection {
  SourceLine at;
  std::string kind;
  std::vector<LineSetting> settings;

  /// The last setting of this key; null without one.
  [[nodiscard]] const LineSetting* find(std::string_view key) const noexcept;
  [[nodiscard]] std::string_view text(std::string_view key) const noexcept;
};

/// Parses a file of Knot and what it includes: sections begin without indentation, items with a
/// dash; values may be `[a, b]`. Errors are `file:line: reason`.
Result<std::vector<SettingSection>> parse_knot(const ImportText& text, ImportFiles& files,
                                               ImportReport& report);

/// PowerDNS: `key=value` and `key+=value`; a key without `=` is an error of the file.
Result<std::vector<LineSetting>> parse_assignments(const ImportText& text, ImportFiles& files);

}  // namespace pando::config
