#include "config/import/pdns/pdns_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/settings/values.h"

namespace pando::config {

namespace {

std::vector<std::string> split_at_any(std::string_view text, std::string_view between) {
  std::vector<std::string> words;
  while (true) {
    const auto first = text.find_first_not_of(between);
    if (first == std::string_view::npos) return words;
    text.remove_prefix(first);
    words.emplace_back(text.substr(0, text.find_first_of(between)));
    text.remove_prefix(words.back().size());
  }
}

}  // namespace

std::vector<std::string> words_of(std::string_view text) { return split_at_any(text, ", \t;"); }

std::vector<std::string> fields_of(std::string_view content) {
  return split_at_any(content, " \t\r\n");
}

Result<Endpoint> pdns_endpoint(std::string_view text, std::uint16_t port) {
  std::string form(text);
  if (const auto close = text.find(']'); text.starts_with('[') && close != std::string_view::npos) {
    form = text.substr(1, close - 1);
    if (text.substr(close + 1).starts_with(':')) form += fmt::format("@{}", text.substr(close + 2));
  } else if (std::count(text.begin(), text.end(), ':') == 1) {
    std::replace(form.begin(), form.end(), ':', '@');
  }
  return parse_endpoint(form, port);
}

std::vector<std::string> pdns_remotes(std::string_view addresses, const SourceLine& at,
                                      std::string_view title, ImportedConfiguration& out,
                                      ImportReport& report) {
  std::vector<std::string> names;
  for (const std::string& word : words_of(addresses)) {
    const auto endpoint = pdns_endpoint(word);
    if (endpoint)
      add_unique(names, out.remote(*endpoint, std::nullopt));
    else
      report.add(at, fmt::format("{}{}", title, word), endpoint.error().text);
  }
  return names;
}

}  // namespace pando::config
