#include "config/added_list.h"

#include <algorithm>
#include <unordered_map>

#include "config/files.h"
#include "config/settings/values.h"
#include "dns/folded_key.h"

namespace pando::config {

namespace {

constexpr std::string_view kCommit = "commit";
constexpr std::string_view kRemoved = "removed";

std::size_t line_count(std::string_view lines) {
  return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), '\n'));
}

/// Two spellings of a name are one zone. A word that is not a name is its own key; the error is
/// reported when the line is used.
std::string key_of(std::string_view word) {
  const auto name = parse_name(word);
  return name ? dns::folded_key(*name) : std::string(word);
}

/// Reads the changes one by one.
class ChangeReader {
 public:
  explicit ChangeReader(std::string_view text) : text_(text) {}

  Result<AddedText> read() {
    while (const std::size_t line_end = text_.find('\n', at_) + 1) {
      const std::string_view line = text_.substr(at_, line_end - 1 - at_);
      ++number_;
      if (is_commit(line)) {
        if (auto ended = end_change(line, line_end); !ended) return pass(ended);
      } else if (!line.empty() && line.front() != '#') {
        if (begun_at_ == 0) begun_at_ = number_;
        change_.push_back({number_, line});
      }
      at_ = line_end;
    }
    if (list_.end == 0)
      return fail(Errc::kCorrupt, "no change of the list is whole: a change ends with a line '{}'",
                  kCommit);
    // Comments after the last change are no change.
    if (damaged_ != 0 || !change_.empty() || at_ < text_.size())
      list_.unfinished = begun_at_ != 0 ? begun_at_ : number_ + 1;
    if (damaged_ != 0) list_.unfinished = damaged_;
    std::erase_if(list_.zones, [](const AddedLine& zone) { return zone.text.empty(); });
    return std::move(list_);
  }

 private:
  static bool is_commit(std::string_view line) { return take_word(line) == kCommit; }

  Status end_change(std::string_view line, std::size_t line_end) {
    const std::string_view lines = text_.substr(begin_, at_ - begin_);
    const bool whole = line == kCommit || commit_line(lines) == fmt::format("{}\n", line);
    if (!whole && (list_.end == 0 || damaged_ != 0)) return damage(number_);
    // Only the last change can be incomplete; any other mismatch is damage.
    if (whole && damaged_ != 0) return damage(damaged_);
    if (!whole) damaged_ = number_;
    if (whole) {
      for (const AddedLine& step : change_) take(step);
      list_.end = line_end;
    }
    change_.clear();
    begun_at_ = 0;
    begin_ = line_end;
    return {};
  }

  static Status damage(int number) {
    return fail(Errc::kCorrupt,
                "line {}: the checksum is that of other lines; the list is damaged, or was edited: "
                "then the line has to be '{}' alone",
                number, kCommit);
  }

  void take(const AddedLine& step) {
    std::string_view rest = step.text;
    const std::string_view word = take_word(rest);
    if (word == kRemoved) {
      const auto found = places_.find(key_of(take_word(rest)));
      if (found == places_.end()) return;
      list_.zones[found->second].text = {};
      places_.erase(found);
      return;
    }
    const auto [place, fresh] = places_.try_emplace(key_of(word), list_.zones.size());
    if (fresh)
      list_.zones.push_back(step);
    else
      list_.zones[place->second] = step;
  }

  std::string_view text_;
  AddedText list_;
  std::unordered_map<std::string, std::size_t> places_;  // in list_.zones, by key_of()
  std::vector<AddedLine> change_;                        // lines since the last commit line
  std::size_t at_ = 0;     // of the line that is read
  std::size_t begin_ = 0;  // of the change that is read
  int number_ = 0;
  int begun_at_ = 0;  // first line of the change that is read
  int damaged_ = 0;   // the last commit line, if it does not fit its lines
};

}  // namespace

std::string added_list_path(const std::string& journal) { return journal + "/added-zones.list"; }
std::string added_mark_path(const std::string& journal) { return journal + "/added-zones.mark"; }

Error missing_added_list(const std::string& path) {
  return {Errc::kNotFound,
          fmt::format("{} is missing, and zones were added by commands: put it back; a list with "
                      "the one line '{}' drops these zones",
                      path, kCommit)};
}

std::string_view take_word(std::string_view& line) noexcept {
  const auto end = line.find(' ');
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
  return word;
}

std::string commit_line(std::string_view lines) {
  return fmt::format("{} {} {:016x}\n", kCommit, line_count(lines), fold_text(0, lines));
}

Result<AddedText> parse_added_list(std::string_view text) { return ChangeReader(text).read(); }

}  // namespace pando::config
