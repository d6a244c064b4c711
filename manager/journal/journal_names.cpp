#include "manager/journal/journal_names.h"

#include <fmt/format.h>

#include <charconv>

namespace pando::manager {

namespace {
constexpr std::size_t kNameDigits = 16;
}  // namespace

std::string journal_file_name(std::uint64_t number, std::string_view suffix) {
  return fmt::format("{:016x}{}", number, suffix);
}

std::optional<std::uint64_t> journal_file_number(std::string_view name, std::string_view suffix) {
  if (name.size() != kNameDigits + suffix.size() || !name.ends_with(suffix)) return std::nullopt;
  std::uint64_t number = 0;
  const char* const end = name.data() + kNameDigits;
  if (std::from_chars(name.data(), end, number, 16).ptr != end) return std::nullopt;
  return number;
}

std::optional<std::uint64_t> damaged_file_number(std::string_view name) {
  const auto end = name.find(kDamagedSuffix);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view behind = name.substr(end + kDamagedSuffix.size());
  if (!behind.empty() && behind.front() != '.') return std::nullopt;
  return journal_file_number(name.substr(0, end), kSegmentSuffix);
}

}  // namespace pando::manager
