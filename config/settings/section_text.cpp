#include "config/settings/section_text.h"

#include <algorithm>

#include "config/settings/open_text.h"

namespace pando::config {

namespace {

/// The key of a line that begins with one; empty for any other line. List items and brackets may
/// stand at the beginning of a line inside of a section.
std::string_view top_key_of(std::string_view line) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || c == '-'; };
  const std::size_t end = line.find(':');
  if (end == std::string_view::npos || end == 0 || line[0] == '-') return {};
  const std::string_view key = line.substr(0, end);
  const bool ends = end + 1 == line.size() || line[end + 1] == ' ' || line[end + 1] == '\r';
  return ends && std::all_of(key.begin(), key.end(), is_letter) ? key : std::string_view();
}

}  // namespace

std::string section_text(std::string_view text, std::string_view name) {
  std::string section;
  bool is_inside = false;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    const std::string_view line = text.substr(0, size);
    text.remove_prefix(size);
    const std::string_view key = top_key_of(line.ends_with('\n') ? line.substr(0, size - 1) : line);
    if (key == name && !section.empty()) return {};
    if (!key.empty()) is_inside = key == name;
    if (is_inside) section += line;
  }
  const bool is_plain = section.find_first_of("&*") == std::string::npos &&
                        section.find("<<") == std::string::npos &&
                        find_open_text(section).line == 0;
  return is_plain ? section : std::string();
}

}  // namespace pando::config
