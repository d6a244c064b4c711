#include "dns/zonefile/zone_scanner_generate.h"

#include <fmt/format.h>

#include <iterator>
#include <limits>

#include "base/whole_number.h"
#include "dns/text.h"

namespace pando::dns {

namespace {

constexpr std::int64_t kMaxValue = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMaxWidth = 127;  // BIND's limit; a label has 63

/// Content of `${...}`; the defaults are those of a bare `$`.
struct Modifier {
  std::int64_t offset = 0;
  std::uint64_t width = 0;
  char base = 'd';
};

/// Removes and returns the front of `rest` up to `separator`, or all of `rest` without a separator.
std::string_view take_field(std::string_view& rest, char separator) noexcept {
  const std::size_t end = rest.find(separator);
  const std::string_view field = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return field;
}

bool parse_offset(std::string_view text, std::int64_t& offset) noexcept {
  if (text.starts_with('+')) text.remove_prefix(1);
  offset = whole_number<std::int64_t>(text).value_or(kMaxValue + 1);
  return offset >= -kMaxValue - 1 && offset <= kMaxValue;
}

/// `text` is the text between the braces.
Result<Modifier> parse_modifier(std::string_view text) {
  Modifier modifier;
  std::string_view rest = text;
  const auto bad = [text] {
    return fail(Errc::kInvalid, "bad modifier {} in $GENERATE", quote_for_message(text));
  };
  if (text.ends_with(',')) return bad();
  if (!parse_offset(take_field(rest, ','), modifier.offset)) return bad();
  if (rest.empty()) return modifier;
  const auto width = parse_decimal(take_field(rest, ','), kMaxWidth);
  if (!width) return bad();
  modifier.width = *width;
  if (rest.empty()) return modifier;
  if (rest.size() != 1 || std::string_view("doxXnN").find(rest[0]) == std::string_view::npos)
    return bad();
  modifier.base = rest[0];
  return modifier;
}

/// Hexadecimal digits from the least significant one, as labels; digits and dots count as width.
void append_nibbles(std::string& out, std::uint32_t value, std::uint64_t width, bool upper) {
  const char* const digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
  do {
    out += digits[value & 0xFU];
    value >>= 4;
    if (width > 0) --width;
    if (width == 0 && value == 0) break;
    out += '.';
    if (width > 0) --width;
  } while (width > 0 || value != 0);
}

void append_value(std::string& out, std::int64_t value, const Modifier& modifier) {
  const auto bits = static_cast<std::uint32_t>(value);  // negative: two's complement, as printf
  const auto end = std::back_inserter(out);
  switch (modifier.base) {
    case 'o':
      fmt::format_to(end, "{:0{}o}", bits, modifier.width);
      break;
    case 'x':
      fmt::format_to(end, "{:0{}x}", bits, modifier.width);
      break;
    case 'X':
      fmt::format_to(end, "{:0{}X}", bits, modifier.width);
      break;
    case 'n':
    case 'N':
      append_nibbles(out, bits, modifier.width, modifier.base == 'N');
      break;
    default:
      fmt::format_to(end, "{:0{}d}", value, modifier.width);
  }
}

/// Expands the text after a `$` and removes it from `rest`.
Status expand_dollar(std::string_view& rest, std::int64_t value, std::string& out) {
  if (rest.starts_with('$')) {
    rest.remove_prefix(1);
    out += '$';
    return {};
  }
  Result<Modifier> modifier = Modifier{};
  if (rest.starts_with('{')) {
    const std::size_t close = rest.find('}');
    if (close == std::string_view::npos)
      return fail(Errc::kInvalid, "'${{' without '}}' in $GENERATE");
    modifier = parse_modifier(rest.substr(1, close - 1));
    if (!modifier) return pass(modifier);
    rest.remove_prefix(close + 1);
  }
  if (value + modifier->offset > kMaxValue)
    return fail(Errc::kInvalid, "value {} is out of range in $GENERATE", value + modifier->offset);
  append_value(out, value + modifier->offset, *modifier);
  return {};
}

/// Replaces `\"` by `"`: text from inside quotes becomes independent text.
void remove_quote_escapes(std::string& text) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const bool pair = text[at] == '\\' && at + 1 < text.size();
    if (pair && text[at + 1] == '"') ++at;
    text[kept++] = text[at];
    if (pair && text[at] == '\\') text[kept++] = text[++at];
  }
  text.resize(kept);
}

}  // namespace

Result<GenerateRange> GenerateRange::from_text(std::string_view text) {
  const auto number = [](std::string_view field) { return parse_decimal(field, kMaxValue); };
  std::string_view bounds = text.substr(0, text.find('/'));
  const auto step = bounds.size() == text.size() ? 1 : number(text.substr(bounds.size() + 1));
  const auto start = number(take_field(bounds, '-'));
  const auto stop = number(bounds);
  if (!start || !stop || !step || *stop < *start || *step == 0)
    return fail(Errc::kInvalid, "bad range {} in $GENERATE", quote_for_message(text));
  const auto as_signed = [](std::uint64_t bound) { return static_cast<std::int64_t>(bound); };
  return GenerateRange{as_signed(*start), as_signed(*stop), as_signed(*step)};
}

Status expand_generate(std::string_view side, std::int64_t value, std::string& out) {
  out.clear();
  while (!side.empty()) {
    const char c = side.front();
    side.remove_prefix(1);
    if (c == '$') {
      if (Status done = expand_dollar(side, value, out); !done) return done;
      continue;
    }
    out += c;
    if (c != '\\' || side.empty()) continue;
    out += side.front();  // an escaped `$` is not a variable
    side.remove_prefix(1);
  }
  return {};
}

Result<Token> GeneratedSides::owner(const Token& side, std::int64_t value) {
  if (Status made = expand_generate(side.text, value, owner_); !made) return pass(made);
  const std::size_t size = owner_.size();
  owner_.append(kLexerPadding, '\0');
  return Token{std::string_view(owner_).substr(0, size)};
}

Result<std::span<const Token>> GeneratedSides::rdata(const Token& side, std::int64_t value) {
  if (Status made = expand_generate(side.text, value, rdata_); !made) return pass(made);
  if (side.quoted) remove_quote_escapes(rdata_);
  const std::size_t size = rdata_.size();
  rdata_ += '\n';
  rdata_.append(kLexerPadding, '\0');
  lexer_.set_text(std::string_view(rdata_).substr(0, size), true);
  if (lexer_.next() == RecordLexer::Outcome::kError)
    return fail(Errc::kInvalid, "$GENERATE: {}", lexer_.error());
  if (!lexer_.rest().empty()) return fail(Errc::kInvalid, "$GENERATE: RDATA is more than a line");
  return lexer_.tokens();
}

}  // namespace pando::dns
