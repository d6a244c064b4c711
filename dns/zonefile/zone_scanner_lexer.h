#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "dns/rdata/rdata.h"

namespace pando::dns {

/// Octets that must be readable after a RecordLexer's text, since the lexer reads in blocks.
inline constexpr std::size_t kLexerPadding = 64;

/// Cuts zone text into records, and records into tokens (RFC 1035 §5.1). The lexer interprets white
/// space, comments, quotes, escapes and parentheses, and no other syntax.
///
/// The text may be a window of a longer one. A record that reaches the window's end gives kNeedMore
/// and begins again in the next window, so that each record is complete in one window.
class RecordLexer {
 public:
  enum class Outcome : std::uint8_t {
    kRecord,    ///< tokens() has one record or directive, at least one token
    kError,     ///< error() and error_line() have the reason; the record is skipped
    kNeedMore,  ///< the text from rest() on must be given again, with more text after it
    kEnd,       ///< nothing is left
  };

  RecordLexer();

  /// Sets the next text to cut. `text.data()[text.size()]` must be a line feed, and kLexerPadding
  /// octets from there must be readable. `last`: no text follows.
  void set_text(std::string_view text, bool last) noexcept;
  void set_line(std::uint64_t line) noexcept { line_ = line; }

  Outcome next() { return cut_simple_line() ? Outcome::kRecord : cut_record(); }

  /// Views into the text, valid until set_text.
  [[nodiscard]] std::span<const Token> tokens() const noexcept { return {tokens_.data(), count_}; }
  /// True when the record began with white space: its owner is the previous one.
  [[nodiscard]] bool blank_owner() const noexcept { return blank_owner_; }
  /// True when no token has an escape or quotes.
  [[nodiscard]] bool plain() const noexcept { return plain_; }
  /// Line on which the last record's first token stands; 1 is the first.
  [[nodiscard]] std::uint64_t record_line() const noexcept { return record_line_; }
  /// Current line of the lexer.
  [[nodiscard]] std::uint64_t line() const noexcept { return line_; }
  [[nodiscard]] std::string_view error() const noexcept { return error_; }
  [[nodiscard]] std::uint64_t error_line() const noexcept { return error_line_; }
  /// The text not cut yet.
  [[nodiscard]] std::string_view rest() const noexcept {
    return {cursor_, static_cast<std::size_t>(end_ - cursor_)};
  }
  /// True when the last record of the last text had no line end.
  [[nodiscard]] bool unfinished_line() const noexcept { return unfinished_line_; }

 private:
  bool cut_simple_line() noexcept;
  bool finish_simple_line(const Token* tokens_end, const char* behind) noexcept;
  Outcome cut_record();
  const char* take_plain(const char* p);
  const char* take_quoted(const char* p);
  const char* skip_comment(const char* p) const noexcept;
  void begin_record(const char* p) noexcept;
  void add_token(const char* begin, const char* end, bool quoted);
  void note_error(std::string_view what) noexcept;
  void close_parenthesis() noexcept;
  Outcome at_text_end() noexcept;
  Outcome finish(const char* behind) noexcept;

  const char* cursor_;  // start of the next record
  const char* end_;
  std::vector<Token> tokens_;  // grows only: no allocation per record
  std::size_t count_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t cursor_line_ = 1;  // line_ at cursor_, for a new start there
  std::uint64_t record_line_ = 1;
  std::uint64_t error_line_ = 0;
  std::uint64_t open_line_ = 0;  // of the outermost open parenthesis
  std::string_view error_;
  std::uint32_t depth_ = 0;
  bool blank_owner_ = false;
  bool plain_ = true;
  bool last_ = false;
  bool unfinished_line_ = false;
};

}  // namespace pando::dns
