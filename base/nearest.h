#pragma once

#include <span>
#include <string_view>

namespace pando {

/// The candidate that `word` was probably meant to be: the nearest by inserted, removed, changed and
/// exchanged characters (optimal string alignment), if no more than half of the word differs.
/// Empty: none is near. For error messages; words of more than 64 characters have none.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace pando
