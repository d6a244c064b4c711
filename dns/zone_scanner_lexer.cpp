#include "dns/zone_scanner_lexer.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/result.h"
#include "dns/zone_scanner_block.h"

namespace pando::dns {

namespace {

enum class Kind : std::uint8_t {
  kPlain,
  kBlank,
  kLineFeed,
  kReturn,
  kComment,
  kOpen,
  kClose,
  kQuote
};

/// What an octet outside quotes starts. A backslash starts a token like any other octet, and so
/// does NUL, which take_plain refuses.
constexpr std::array<Kind, 256> make_kinds() {
  std::array<Kind, 256> kinds{};
  kinds[' '] = kinds['\t'] = Kind::kBlank;
  kinds['\n'] = Kind::kLineFeed;
  kinds['\r'] = Kind::kReturn;
  kinds[';'] = Kind::kComment;
  kinds['('] = Kind::kOpen;
  kinds[')'] = Kind::kClose;
  kinds['"'] = Kind::kQuote;
  return kinds;
}
constexpr std::array<Kind, 256> kKinds = make_kinds();

/// Words of one record. The largest RDATA written as one octet of hexadecimal text per word has
/// half as many; more can only be an accident such as a parenthesis that is never closed.
constexpr std::size_t kMaxTokens = 1U << 17;

/// What a lexer looks at before it is given anything: an empty window, of which there is more.
constexpr std::array<char, 1 + kLexerPadding> kNoText = {'\n'};

Kind kind_of(char c) noexcept { return kKinds[static_cast<std::uint8_t>(c)]; }

}  // namespace

RecordLexer::RecordLexer() : cursor_(kNoText.data()), end_(kNoText.data()), tokens_(32) {}

void RecordLexer::set_text(std::string_view text, bool last) noexcept {
  PANDO_ASSERT(text.data()[text.size()] == '\n');  // ends every loop below
  cursor_ = text.data();
  end_ = text.data() + text.size();
  last_ = last;
  count_ = 0;
}

void RecordLexer::begin_record(const char* p) noexcept {
  count_ = 0;
  depth_ = 0;
  plain_ = true;
  error_ = {};
  blank_owner_ = kind_of(*p) == Kind::kBlank;
}

RecordLexer::Outcome RecordLexer::next() {
  const char* p = cursor_;
  cursor_line_ = line_;
  begin_record(p);
  for (;;) {
    switch (kind_of(*p)) {
      case Kind::kPlain:
        p = take_plain(p);
        break;
      case Kind::kBlank:
        ++p;
        break;
      case Kind::kLineFeed:
        if (p == end_) return at_text_end();
        ++line_;
        [[fallthrough]];
      case Kind::kReturn:
        ++p;
        if (depth_ > 0) break;
        if (count_ > 0 || !error_.empty()) return finish(p);
        cursor_ = p;
        cursor_line_ = line_;
        begin_record(p);
        break;
      case Kind::kComment:
        p = skip_comment(p);
        break;
      case Kind::kOpen:
        if (depth_++ == 0) open_line_ = line_;
        ++p;
        break;
      case Kind::kClose:
        close_parenthesis();
        ++p;
        break;
      case Kind::kQuote:
        p = take_quoted(p + 1);
        break;
    }
  }
}

const char* RecordLexer::take_plain(const char* p) {
  const char* const begin = p;
  for (;;) {
    const std::uint32_t special = TextBlock(p).special();
    if (special == 0) {
      p += TextBlock::kOctets;
      continue;
    }
    p += std::countr_zero(special);
    if (*p == '\\') {
      plain_ = false;
      ++p;
      // An escaped line end still ends the line; the token then ends in a lone backslash, which is
      // a bad escape to whoever reads it.
      if (*p != '\n' && *p != '\r') ++p;
    } else if (*p == '\0') {
      note_error("NUL octet");
      ++p;
    } else if (kind_of(*p) == Kind::kPlain) {
      ++p;
    } else {
      break;
    }
  }
  add_token(begin, p, false);
  return p;
}

const char* RecordLexer::take_quoted(const char* p) {
  const char* const begin = p;
  plain_ = false;
  while (*p != '"') {
    // BIND too takes an escaped line feed as part of the string.
    const bool escaped = *p == '\\' && p + 1 < end_;
    if (escaped) ++p;
    if (p == end_) {
      if (last_) note_error("quotes are not closed");
      return p;
    }
    if (*p == '\0') note_error("NUL octet");
    if (*p == '\n' && !escaped) {
      note_error("quotes are not closed on this line");
      return p;
    }
    if (*p++ == '\n') ++line_;
  }
  add_token(begin, p, true);
  return p + 1;
}

const char* RecordLexer::skip_comment(const char* p) const noexcept {
  // The line feed behind the text makes sure that one is found.
  return static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(end_ - p) + 1));
}

void RecordLexer::add_token(const char* begin, const char* end, bool quoted) {
  if (count_ == 0) record_line_ = line_;
  if (count_ == tokens_.size()) [[unlikely]] {
    if (count_ >= kMaxTokens) return note_error("too many words in one record");
    tokens_.resize(tokens_.size() * 2);
  }
  tokens_[count_++] = Token{{begin, static_cast<std::size_t>(end - begin)}, quoted};
}

void RecordLexer::note_error(std::string_view what) noexcept {
  if (!error_.empty()) return;
  error_ = what;
  error_line_ = line_;
}

void RecordLexer::close_parenthesis() noexcept {
  if (depth_ == 0)
    note_error("')' without '('");
  else
    --depth_;
}

RecordLexer::Outcome RecordLexer::at_text_end() noexcept {
  if (!last_) {
    line_ = cursor_line_;
    return Outcome::kNeedMore;
  }
  if (depth_ > 0 && error_.empty()) {
    line_ = open_line_;
    note_error("'(' is never closed");
  }
  if (count_ == 0 && error_.empty()) {
    cursor_ = end_;
    return Outcome::kEnd;
  }
  unfinished_line_ = true;
  return finish(end_);
}

RecordLexer::Outcome RecordLexer::finish(const char* behind) noexcept {
  cursor_ = behind;
  return error_.empty() ? Outcome::kRecord : Outcome::kError;
}

}  // namespace pando::dns
