#include "config/import/model/line_settings.h"

#include <algorithm>
#include <utility>

namespace pando::config {

namespace {

constexpr std::string_view kLineBlanks = " \t\r\f\v";

std::string_view trim(std::string_view text) {
  const auto first = text.find_first_not_of(kLineBlanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kLineBlanks) - first + 1);
}

std::string_view trim_end(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kLineBlanks) + 1);
}

/// PowerDNS begins a comment at the line's begin or after a blank.
std::string_view without_comment(std::string_view line) {
  for (auto at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1))
    if (at == 0 || kLineBlanks.find(line[at - 1]) != std::string_view::npos)
      return line.substr(0, at);
  return line;
}

/// Splits a text into lines and counts them.
class LineReader {
 public:
  explicit LineReader(std::string_view text) : text_(text) {}
  bool next(std::string_view& line) {
    if (text_.empty()) return false;
    const auto end = text_.find('\n');
    line = text_.substr(0, end);
    text_.remove_prefix(end == std::string_view::npos ? text_.size() : end + 1);
    ++number_;
    return true;
  }
  [[nodiscard]] int number() const noexcept { return number_; }

 private:
  std::string_view text_;
  int number_ = 0;
};

/// The parser of one file of Knot.
class SectionParser {
 public:
  SectionParser(const ImportText& input, ImportFiles& files, ImportReport& report,
                std::vector<SettingSection>& out)
      : name_(input.name), reader_(input.text), files_(files), report_(report), out_(out) {}

  Status parse() {
    std::string_view line;
    while (reader_.next(line))
      if (auto parsed = parse_line(line); !parsed) return parsed;
    if (in_list_) return fail_here("a list without an end");
    return {};
  }

 private:
  Status fail_here(std::string_view reason) const {
    return fail(Errc::kInvalid, "{}:{}: {}", *name_, reader_.number(), reason);
  }
  [[nodiscard]] SourceLine here() const { return {name_, reader_.number()}; }

  Status parse_line(std::string_view line) {
    const bool indented = !line.empty() && kLineBlanks.find(line.front()) != std::string_view::npos;
    std::string_view rest = trim(line);
    if (in_list_) return read_values(rest);
    bool dash = false;
    if (rest.starts_with("- ")) {
      dash = true;
      rest = trim(rest.substr(2));
    }
    if (rest.empty() || rest.front() == '#') return {};
    const auto colon = static_cast<std::size_t>(
        std::find_if_not(rest.begin(), rest.end(), is_key_char) - rest.begin());
    const bool is_setting = colon > 0 && colon < rest.size() && rest[colon] == ':';
    if (!is_setting) return read_continuation(rest, dash);
    const std::string key(rest.substr(0, colon));
    rest = trim(rest.substr(colon + 1));
    if (auto counted = files_.count_statement(); !counted) return fail_here(counted.error().text);
    if (key == "include" && !indented) return include(rest);
    const bool is_section = !indented && (rest.empty() || rest.front() == '#');
    if (!is_section) return take_setting(key, rest, dash);
    out_.push_back({here(), key, {}});
    own_setting_ = false;
    return {};
  }

  /// A value on a line of its own belongs to a setting that has none yet, or to a list of lines.
  Status read_continuation(std::string_view rest, bool dash) {
    const bool has_setting = !out_.empty() && !out_.back().settings.empty() && own_setting_;
    if (has_setting && (dash || out_.back().settings.back().values.empty()))
      return read_values(rest);
    return fail_here("is not 'key: value'");
  }

  Status take_setting(const std::string& key, std::string_view rest, bool dash) {
    if (out_.empty()) return fail_here(fmt::format("'{}' stands in no section", key));
    if (dash && !out_.back().settings.empty()) out_.push_back({here(), out_.back().kind, {}});
    out_.back().settings.push_back({here(), key, {}, dash});
    own_setting_ = true;
    return read_values(rest);
  }

  Status include(std::string_view rest) {
    std::vector<std::string> words;
    if (auto split = split_values(rest, words); !split) return split;
    own_setting_ = false;
    return files_.include(
        here(), words.empty() ? std::string() : words.front(), report_,
        [&](const ImportText& text) { return SectionParser(text, files_, report_, out_).parse(); });
  }

  Status read_values(std::string_view rest) {
    return split_values(rest, out_.back().settings.back().values);
  }

  /// Words of a line: blanks separate them, and commas in brackets.
  Status split_values(std::string_view rest, std::vector<std::string>& words) {
    while (!(rest = trim(rest)).empty() && rest.front() != '#') {
      const char c = rest.front();
      if (c == '"') {
        rest.remove_prefix(1);
        take_word(rest, "\"", words.emplace_back());
        if (rest.empty()) return fail_here("a quoted text without an end");
        rest.remove_prefix(1);
        continue;
      }
      if (c == '[' || c == ']' || c == ',') {
        in_list_ = c == '[' || (in_list_ && c != ']');
        rest.remove_prefix(1);
        continue;
      }
      take_word(rest, in_list_ ? " \t\r\f\v,]" : kLineBlanks, words.emplace_back());
    }
    return {};
  }

  /// Knot's yparser drops the backslash before a quote alone: names of zones have some of their
  /// own.
  static void take_word(std::string_view& rest, std::string_view ends, std::string& word) {
    std::size_t at = 0;
    for (; at < rest.size() && ends.find(rest[at]) == std::string_view::npos; ++at) {
      if (rest[at] == '\\' && at + 1 < rest.size() && rest[++at] != '"') word += '\\';
      word += rest[at];
    }
    rest.remove_prefix(at);
  }

  std::shared_ptr<const std::string> name_;
  LineReader reader_;
  ImportFiles& files_;
  ImportReport& report_;
  std::vector<SettingSection>& out_;
  bool in_list_ = false;
  bool own_setting_ = false;  ///< the last setting of `out_` is of this file
};

}  // namespace

bool is_key_char(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '_';
}

std::string_view LineSetting::value(std::size_t index) const noexcept {
  return index < values.size() ? std::string_view(values[index]) : std::string_view();
}

const LineSetting* SettingSection::find(std::string_view key) const noexcept {
  for (auto setting = settings.rbegin(); setting != settings.rend(); ++setting)
    if (setting->key == key) return &*setting;
  return nullptr;
}

std::string_view SettingSection::text(std::string_view key) const noexcept {
  const LineSetting* setting = find(key);
  return setting == nullptr ? std::string_view() : setting->value();
}

Result<std::vector<SettingSection>> parse_knot(const ImportText& text, ImportFiles& files,
                                               ImportReport& report) {
  std::vector<SettingSection> sections;
  if (auto parsed = SectionParser(text, files, report, sections).parse(); !parsed)
    return pass(parsed);
  return sections;
}

Result<std::vector<LineSetting>> parse_assignments(const ImportText& text, ImportFiles& files) {
  std::vector<LineSetting> settings;
  LineReader reader(text.text);
  std::string_view part;
  std::string whole;
  while (reader.next(part)) {
    part = trim_end(part);
    if (part.ends_with('\\')) {  // the line continues in the next one
      whole += part.substr(0, part.size() - 1);
      continue;
    }
    whole += part;
    const std::string joined = std::exchange(whole, {});
    const std::string_view line = trim(without_comment(joined));
    if (line.empty()) continue;
    const auto equals = line.find('=');
    if (auto counted = files.count_statement(); !counted)
      return fail(Errc::kFull, "{}:{}: {}", *text.name, reader.number(), counted.error().text);
    std::string_view key = trim(line.substr(0, equals));
    const bool adds = key.ends_with('+');
    if (adds) key = trim(key.substr(0, key.size() - 1));
    if (key.empty() || !std::all_of(key.begin(), key.end(), is_key_char))
      return fail(Errc::kInvalid, "{}:{}: is not 'key=value'", *text.name, reader.number());
    // PowerDNS takes a key alone as "yes" (a flag), which is how older files have them.
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view("yes") : trim(line.substr(equals + 1));
    settings.push_back(
        {{text.name, reader.number()}, std::string(key), {std::string(value)}, adds});
  }
  return settings;
}

}  // namespace pando::config
