#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace pando::config {

/// Settings as lines of YAML, in blocks.
class SettingLines {
 public:
  /// `value` is YAML text, as of shown().
  void add(std::string_view key, std::string_view value);
  /// A line for people, where a value is not shown.
  void add_comment(std::string_view text);
  /// Opens a mapping below `key`, or a list of mappings.
  void open(std::string_view key);
  /// Begins a mapping that is an element of the list that is open.
  void open_element();
  void close();
  [[nodiscard]] const std::string& text() const noexcept { return text_; }

 private:
  void begin_line();
  std::string text_;
  std::size_t depth_ = 0;
  bool begins_element_ = false;
};

/// A setting that differs between two configurations; the values are YAML text.
struct SettingChange {
  std::string key;     ///< "server.udp-payload", "remotes[upstream].address"
  std::string before;  ///< empty: absent
  std::string after;   ///< empty: absent
  bool at_restart = false;  ///< a reload does not change it
  bool operator==(const SettingChange&) const = default;
};
using SettingChanges = std::vector<SettingChange>;

/// In place of a secret.
inline constexpr std::string_view kHiddenValue = "(not shown)";

}  // namespace pando::config
