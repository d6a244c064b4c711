#pragma once

#include <string>
#include <string_view>

/// Brackets and quotes of a YAML text that do not end. The parser tells where it noticed that,
/// which is mostly the end of the text.
namespace pando::config {

struct OpenText {
  int line = 0;         ///< where it begins, from 1; 0: nothing is open
  std::string message;  ///< the reason in words
};

/// The innermost bracket or quote that is not closed, or a bracket that another one closes. A text
/// with block scalars (`|`, `>`) has none, since brackets mean nothing there.
[[nodiscard]] OpenText find_open_text(std::string_view text);

}  // namespace pando::config
