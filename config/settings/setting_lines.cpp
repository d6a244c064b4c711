#include "config/settings/setting_lines.h"

namespace pando::config {

/// The first line of an element has its dash where the others have two blanks.
void SettingLines::begin_line() {
  const std::size_t columns = 2 * depth_;
  if (begins_element_) {
    text_.append(columns - 2, ' ');
    text_ += "- ";
  } else {
    text_.append(columns, ' ');
  }
  begins_element_ = false;
}

void SettingLines::add(std::string_view key, std::string_view value) {
  begin_line();
  text_.append(key).append(": ").append(value) += '\n';
}

void SettingLines::add_comment(std::string_view text) {
  text_.append(2 * depth_, ' ');
  text_.append("# ").append(text) += '\n';
}

void SettingLines::open(std::string_view key) {
  begin_line();
  text_.append(key) += ":\n";
  ++depth_;
}

void SettingLines::open_element() {
  ++depth_;
  begins_element_ = true;
}

void SettingLines::close() { --depth_; }

}  // namespace pando::config
