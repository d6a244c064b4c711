#include "config/settings/open_text.h"

#include <fmt/format.h>

#include <vector>

namespace pando::config {

namespace {

/// Walks over a YAML text, and remembers the brackets and the quote that are open.
class OpenTextFinder {
 public:
  explicit OpenTextFinder(std::string_view text) : text_(text) {}

  OpenText find() {
    for (; at_ < text_.size() && fault_.line == 0 && !has_block_scalar_; ++at_) take(text_[at_]);
    if (has_block_scalar_) return {};
    if (fault_.line != 0) return fault_;
    if (quote_ != '\0')
      return {quote_line_, fmt::format("the {} that begins here is not closed", quote_)};
    if (!open_.empty())
      return {open_.back().line,
              fmt::format("the {} that begins here is not closed", open_.back().bracket)};
    return {};
  }

 private:
  struct Bracket {
    char bracket;
    int line;
  };

  void take(char c) {
    if (c == '\n') ++line_;
    if (quote_ != '\0') return take_quoted(c);
    if (c == '#' && (at_ == 0 || is_blank(text_[at_ - 1]))) return skip_comment();
    if (is_blank(c)) {
      if (c == '\n' && open_.empty()) begins_token_ = true;
      return;
    }
    const bool begins = begins_token_;
    begins_token_ = ends_before_token(c);
    if (!open_.empty() && (c == ']' || c == '}'))
      close(c);
    else if (!open_.empty() && (c == '[' || c == '{'))
      open_.push_back({c, line_});
    else if (begins)
      take_first(c);
  }

  /// The first character of a token.
  void take_first(char c) {
    if (c == '"' || c == '\'') {
      quote_ = c;
      quote_line_ = line_;
    } else if (c == '[' || c == '{') {
      open_.push_back({c, line_});
    } else if (open_.empty()) {
      has_block_scalar_ = c == '|' || c == '>';
    }
  }

  void take_quoted(char c) {
    if (c == '\\' && quote_ == '"') {
      ++at_;
      if (at_ < text_.size() && text_[at_] == '\n') ++line_;
    } else if (c == quote_) {
      const bool is_doubled = quote_ == '\'' && at_ + 1 < text_.size() && text_[at_ + 1] == '\'';
      if (is_doubled)
        ++at_;
      else
        quote_ = '\0';
    }
  }

  void close(char c) {
    const Bracket last = open_.back();
    open_.pop_back();
    if ((c == ']') != (last.bracket == '['))
      fault_ = {last.line, fmt::format("the {} that begins here is closed by the {} of line {}",
                                       last.bracket, c, line_)};
  }

  void skip_comment() {
    while (at_ + 1 < text_.size() && text_[at_ + 1] != '\n') ++at_;
  }

  /// Whether a token may begin after this character. Outside of brackets, a key's colon and a
  /// list's dash count only before a blank.
  [[nodiscard]] bool ends_before_token(char c) const {
    if (c == '[' || c == '{') return true;
    if (!open_.empty()) return c == ',' || c == ':';
    const bool before_blank = at_ + 1 >= text_.size() || is_blank(text_[at_ + 1]);
    return before_blank && (c == ':' || c == '-' || c == '?');
  }

  static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool begins_token_ = true;
  bool has_block_scalar_ = false;
  char quote_ = '\0';
  int quote_line_ = 0;
  std::vector<Bracket> open_;
  OpenText fault_;
};

}  // namespace

OpenText find_open_text(std::string_view text) { return OpenTextFinder(text).find(); }

}  // namespace pando::config
