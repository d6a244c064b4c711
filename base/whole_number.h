#pragma once

#include <charconv>
#include <optional>
#include <string_view>

namespace pando {

/// The number that is the whole of `text`; none for any other text, or a number that does not fit.
template <class Number>
[[nodiscard]] std::optional<Number> whole_number(std::string_view text, int base = 10) noexcept {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

}  // namespace pando
