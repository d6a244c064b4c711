#pragma once

#include <algorithm>
#include <span>
#include <string>
#include <string_view>

/// Words of ASCII, whatever the locale is.
namespace pando {

/// U+FEFF in UTF-8. Some editors begin a text file with it, and none shows it. It is no part of the
/// text, so that readers of files skip it.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[nodiscard]] constexpr std::string_view without_byte_order_mark(std::string_view text) noexcept {
  return text.starts_with(kByteOrderMark) ? text.substr(kByteOrderMark.size()) : text;
}

[[nodiscard]] constexpr char lower_case(char c) noexcept {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

[[nodiscard]] inline std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = lower_case(c);
  return lower;
}

[[nodiscard]] inline bool equal_but_for_case(std::string_view a, std::string_view b) noexcept {
  return std::ranges::equal(a, b, [](char x, char y) { return lower_case(x) == lower_case(y); });
}

/// Whether `list`, which has a blank before and after each word, has this one.
[[nodiscard]] inline bool is_listed(std::string_view list, std::string_view word) {
  return !word.empty() && word.find(' ') == std::string_view::npos &&
         list.find(" " + std::string(word) + " ") != std::string_view::npos;
}

/// The candidate that `word` was probably meant to be: the nearest by inserted, removed, changed and
/// exchanged characters (optimal string alignment), if no more than half of the word differs.
/// Empty: none is near. For error messages; words of more than 64 characters have none.
[[nodiscard]] std::string_view nearest(std::string_view word,
                                       std::span<const std::string_view> candidates);

}  // namespace pando
