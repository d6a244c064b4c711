#include "dns/zonefile/zone_scanner_lexer.h"

#include <array>
#include <bit>
#include <cstring>

#include "base/result.h"
#include "dns/zonefile/zone_scanner_block.h"

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

/// Kind of token that an octet outside quotes starts. A backslash starts a token like any other
/// octet. NUL does too, and take_plain then refuses it.
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

/// Number of words for which tokens_ always has space.
constexpr std::size_t kMinTokens = 32;

/// Most words of one record. The largest RDATA, written as one octet of hexadecimal text per word,
/// has half as many. More words show an accident such as an unclosed parenthesis.
constexpr std::size_t kMaxTokens = 1U << 17;

/// Text of a lexer before the first set_text: an empty window that is not the last.
constexpr std::array<char, 1 + kLexerPadding> kNoText = {'\n'};

Kind kind_of(char c) noexcept { return kKinds[static_cast<std::uint8_t>(c)]; }

/// The first octet from `p` on that may end or complicate a word. The line feed after the text
/// bounds the search.
const char* next_special(const char* p) noexcept {
  std::uint32_t special = TextBlock(p).special();
  for (; special == 0; special = TextBlock(p).special()) p += TextBlock::kOctets;
  return p + std::countr_zero(special);
}

constexpr std::size_t kWideOctets = 64;
static_assert(kWideOctets <= kLexerPadding, "a block that starts at the text's end is readable");

/// TextBlock::special of 64 octets.
std::uint64_t wide_special(const char* p) noexcept {
  const std::uint64_t first = TextBlock(p).special() | TextBlock(p + 16).special() << 16;
  const std::uint64_t second = TextBlock(p + 32).special() | TextBlock(p + 48).special() << 16;
  return first | second << 32;
}

bool ends_simple_word(char c) noexcept { return c == ' ' || c == '\n' || c == '\t'; }

}  // namespace

RecordLexer::RecordLexer() : cursor_(kNoText.data()), end_(kNoText.data()), tokens_(kMinTokens) {}

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

/// Cuts the commonest line of a large zone: words between blanks, with no other syntax. False for
/// all other lines, including the last line of a window: cut_record() cuts those. Only tokens_ is
/// changed then.
bool RecordLexer::cut_simple_line() noexcept {
  Token* token = tokens_.data();
  Token* const most = token + kMinTokens;
  const char* begin = cursor_;  // of the word, or of a blank where none begins
  for (const char* block = cursor_;; block += kWideOctets) {
    for (std::uint64_t special = wide_special(block); special != 0; special &= special - 1) {
      const char* const at = block + std::countr_zero(special);
      if (!ends_simple_word(*at)) return false;
      if (at != begin) {
        if (token == most) return false;
        *token++ = Token{{begin, static_cast<std::size_t>(at - begin)}, false};
      }
      begin = at + 1;
      if (*at == '\n') return at != end_ && finish_simple_line(token, begin);
    }
  }
}

bool RecordLexer::finish_simple_line(const Token* tokens_end, const char* behind) noexcept {
  count_ = static_cast<std::size_t>(tokens_end - tokens_.data());
  if (count_ == 0) return false;
  blank_owner_ = tokens_[0].text.data() != cursor_;
  plain_ = true;
  cursor_ = behind;
  record_line_ = line_++;
  return true;
}

RecordLexer::Outcome RecordLexer::cut_record() {
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
    p = next_special(p);
    if (*p == '\\') {
      plain_ = false;
      ++p;
      // An escaped line end still ends the line. The token then ends in a lone backslash, which its
      // reader refuses as a bad escape.
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
    // BIND, too, makes an escaped line feed part of the string.
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
  // The line feed after the text guarantees a match.
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
