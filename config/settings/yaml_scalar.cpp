#include "config/settings/yaml_scalar.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/words.h"

namespace pando::config {

namespace {

/// Words that are no text to some reader of YAML.
constexpr std::string_view kSpecialWords = " null true false yes no on off y n default ";

}  // namespace

bool is_plain_scalar(std::string_view text) {
  const auto is_word = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  if (text.empty() || (!is_word(text.front()) && text.front() != '/')) return false;
  if (is_listed(kSpecialWords, lower_case(text))) return false;
  return std::all_of(text.begin(), text.end(), [&](char c) {
    return is_word(c) || c == '.' || c == '_' || c == '/' || c == '-' || c == '@';
  });
}

std::string yaml_scalar(std::string_view text) {
  if (is_plain_scalar(text)) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

std::string yaml_name(dns::NameView name) {
  std::string text = dns::to_text(name);
  if (text.size() > 1) text.pop_back();
  return yaml_scalar(text);
}

std::string prefix_text(const IpPrefix& prefix) {
  constexpr std::uint8_t kHostLength = 128;
  return prefix.length == kHostLength ? to_text(prefix.address) : to_text(prefix);
}

}  // namespace pando::config
