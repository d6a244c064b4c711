#pragma once

#include <cstddef>
#include <string_view>

namespace pando {

/// Whether no value of the JSON text is nested deeper than `most` arrays and objects. Deep values
/// make a parser and its result use memory, or the stack, far beyond the text's length. The
/// library's own callback for this takes quadratic time for long lists.
[[nodiscard]] inline bool is_json_shallow(std::string_view text, int most) noexcept {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') in_string = !in_string;
    if (in_string && c == '\\') ++at;
    if (in_string) continue;
    if ((c == '[' || c == '{') && ++depth > most) return false;
    if (c == ']' || c == '}') --depth;
  }
  return true;
}

}  // namespace pando
