#include "config/import/named/named_syntax.h"

namespace pando::config {

namespace {

/// The parser of one file.
class NamedParser {
 public:
  NamedParser(const ImportText& input, ImportFiles& files, ImportReport& report)
      : name_(input.name), text_(input.text), files_(files), report_(report) {}

  /// `depth` is that of the block in which the file is included.
  Status parse_file(NamedBlock& out, int depth) {
    if (auto parsed = parse_block(out, depth); !parsed) return parsed;
    return at_end_ ? Status() : fail_here("a closing brace without an opening one");
  }

 private:
  enum class Token : std::uint8_t { kWord, kOpen, kClose, kSemicolon, kEnd };

  Status fail_at(int line, std::string_view reason) const {
    return fail(Errc::kInvalid, "{}:{}: {}", *name_, line, reason);
  }
  Status fail_here(std::string_view reason) const { return fail_at(line_, reason); }

  /// Passes blanks and comments (`#`, `//`, `/* */`).
  Status skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      const std::string_view rest = text_.substr(at_, 2);
      if (c == '\n') ++line_;
      if (c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v') {
        ++at_;
      } else if (c == '#' || rest == "//") {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (rest == "/*") {
        const auto end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return fail_here("a comment without an end");
        for (; at_ < end + 2; ++at_) line_ += text_[at_] == '\n';
      } else {
        return {};
      }
    }
    return {};
  }

  /// BIND drops the backslash before a quote alone: names of zones have some of their own.
  Status quoted() {
    const int first = line_;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size() && text_[++at_] != '"') word_ += '\\';
      line_ += text_[at_] == '\n';
      word_ += text_[at_];
    }
    if (at_ >= text_.size()) return fail_at(first, "a quoted text without an end");
    ++at_;
    return {};
  }

  Status next() {
    word_.clear();
    if (auto skipped = skip_blanks(); !skipped) return skipped;
    if (at_ >= text_.size()) {
      token_ = Token::kEnd;
      return {};
    }
    const char c = text_[at_];
    token_ = c == '{' ? Token::kOpen : c == '}' ? Token::kClose : Token::kSemicolon;
    if (c == '{' || c == '}' || c == ';') {
      ++at_;
      return {};
    }
    token_ = Token::kWord;
    if (c == '"') return quoted();
    const auto end = std::min(text_.find_first_of(" \t\r\n\f\v{};\"", at_), text_.size());
    const auto length = c == '!' ? 1 : end - at_;
    word_ = text_.substr(at_, length);
    at_ += length;
    return {};
  }

  /// Reads statements up to the block's closing brace or the end of the file.
  Status parse_block(NamedBlock& out, int depth) {
    if (depth > ImportFiles::kMaxNesting)
      return fail_here(fmt::format("more than {} blocks in each other", ImportFiles::kMaxNesting));
    while (true) {
      if (auto read = next(); !read) return read;
      if (token_ == Token::kSemicolon) continue;  // an empty statement
      at_end_ = token_ == Token::kEnd;
      if (token_ == Token::kClose || token_ == Token::kEnd) return {};
      if (auto parsed = parse_statement(out, depth); !parsed) return parsed;
      if (token_ == Token::kClose) return {};
    }
  }

  /// The first token is read. The last one is a semicolon, or the brace of the block around.
  Status parse_statement(NamedBlock& out, int depth) {
    if (auto counted = files_.count_statement(); !counted) return fail_here(counted.error().text);
    NamedStatement statement{{name_, line_}, {}, {}};
    while (token_ == Token::kWord || token_ == Token::kOpen) {
      if (token_ == Token::kWord) {
        const bool is_first = statement.words.empty() || statement.words.back() == "!";
        statement.words.push_back(is_first ? lower_case(word_) : word_);
      } else {
        const int first = line_;
        if (auto parsed = parse_block(statement.blocks.emplace_back(), depth + 1); !parsed)
          return parsed;
        if (at_end_) return fail_at(first, "a block that begins here has no end");
        token_ = Token::kSemicolon;
      }
      if (auto read = next(); !read) return read;
    }
    if (token_ == Token::kEnd)
      return fail_at(statement.at.line, "a statement that begins here has no semicolon");
    // named goes there as soon as it has read this, so it is where files are looked for that are
    // included from now on.
    if (statement.word(0) == "directory" && depth == 1) files_.look_in(*name_, statement.word(1));
    if (statement.word(0) != "include" || statement.words.size() != 2) {
      out.push_back(std::move(statement));
      return {};
    }
    const Token last = token_;
    auto included =
        files_.include(statement.at, statement.words[1], report_, [&](const ImportText& text) {
          return NamedParser(text, files_, report_).parse_file(out, depth);
        });
    token_ = last;
    return included;
  }

  std::shared_ptr<const std::string> name_;
  std::string_view text_;
  ImportFiles& files_;
  ImportReport& report_;
  std::size_t at_ = 0;
  int line_ = 1;
  Token token_ = Token::kEnd;
  std::string word_;
  bool at_end_ = false;
};

}  // namespace

std::string_view NamedStatement::word(std::size_t index) const noexcept {
  return index < words.size() ? std::string_view(words[index]) : std::string_view();
}

std::string NamedStatement::lower(std::size_t index) const { return lower_case(word(index)); }

const NamedBlock* NamedStatement::block() const noexcept {
  return blocks.empty() ? nullptr : &blocks.front();
}

Result<NamedBlock> parse_named(const ImportText& text, ImportFiles& files, ImportReport& report) {
  NamedBlock block;
  if (auto parsed = NamedParser(text, files, report).parse_file(block, 0); !parsed)
    return pass(parsed);
  return block;
}

const NamedStatement* find_statement(const NamedBlock* block, std::string_view keyword) noexcept {
  const NamedStatement* found = nullptr;
  if (block != nullptr)
    for (const NamedStatement& statement : *block)
      if (statement.word(0) == keyword) found = &statement;
  return found;
}

}  // namespace pando::config
