#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "dns/rdata/rdata_field.h"

/// NAPTR's substitution expression (RFC 3402 §3.2), checked as BIND does: a zone with another text
/// in its place could not be transferred to BIND.
namespace pando::dns {

namespace {

bool is_ascii_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// A POSIX extended regular expression. Only its form is checked, in one pass; it is never used.
class ExpressionCheck {
 public:
  explicit ExpressionCheck(std::string_view text) noexcept : text_(text) {}

  /// The number of groups; nullopt: the text is no expression.
  std::optional<unsigned> groups() {
    while (at_ < text_.size())
      if (!take_one(text_[at_++])) return std::nullopt;
    return open_ == 0 && has_atom_ ? std::optional(groups_) : std::nullopt;
  }

 private:
  bool take_one(char c) {
    switch (c) {
      case '\\':
        return take_escaped();
      case '[':
        return take_bracket() && atom();
      case '{':
        if (at_ == text_.size() || !is_ascii_digit(text_[at_])) return atom();
        return repeat() && take_bound();
      case '(':
        ++open_;
        ++groups_;
        return begin_branch(true);
      case ')':
        return close_group();
      case '|':
        return has_atom_ && begin_branch(false);
      case '^':
      case '$':
        return has_atom_ = is_repeated_ = true;
      case '+':
      case '*':
      case '?':
        return repeat();
      default:
        return atom();
    }
  }

  bool atom() noexcept {
    is_repeated_ = false;
    return has_atom_ = true;
  }

  bool repeat() noexcept {
    const bool possible = has_atom_ && !is_repeated_;
    is_repeated_ = true;
    return possible;
  }

  bool begin_branch(bool may_be_empty) noexcept {
    has_atom_ = is_repeated_ = false;
    may_be_empty_ = may_be_empty;
    return true;
  }

  bool close_group() noexcept {
    if (open_ > 0 && !has_atom_ && !may_be_empty_) return false;
    if (open_ > 0) --open_;
    return atom();
  }

  bool take_escaped() {
    if (at_ == text_.size()) return false;
    const char c = text_[at_++];
    const bool names_group = c >= '1' && c <= '9';
    return (!names_group || static_cast<unsigned>(c - '0') <= groups_) && atom();
  }

  /// Behind "{": "m}", "m,}" or "m,n}" (RE_DUP_MAX is 255).
  bool take_bound() {
    const std::size_t end = text_.find('}', at_);
    if (end == std::string_view::npos) return false;
    const std::string_view bound = text_.substr(at_, end - at_);
    at_ = end + 1;
    const std::size_t comma = bound.find(',');
    const auto low = bound_of(bound.substr(0, comma));
    if (comma == std::string_view::npos || comma + 1 == bound.size()) return low.has_value();
    const auto high = bound_of(bound.substr(comma + 1));
    return low && high && *low <= *high;
  }

  static std::optional<unsigned> bound_of(std::string_view digits) {
    unsigned value = 0;
    for (const char c : digits) {
      if (!is_ascii_digit(c)) return std::nullopt;
      value = value * 10 + static_cast<unsigned>(c - '0');
      if (value > 255) return std::nullopt;
    }
    return value;
  }

  /// Behind "[".
  bool take_bracket() {
    if (at_ < text_.size() && text_[at_] == '^') ++at_;
    bool is_empty = true;
    int range = 0;       // elements until a range has ended: "-" begins one of 2
    int range_from = 0;  // the last element
    while (at_ < text_.size()) {
      const auto c = static_cast<unsigned char>(text_[at_++]);
      if (c == ']' && !is_empty) return true;
      if (c == '-' && !is_empty && range != 2) {
        if (range == 1) return false;
        range = 2;
        continue;
      }
      int element = c;
      if (c == '[' && at_ < text_.size() && is_special(text_[at_])) {
        const bool collates = text_[at_] == '.';
        if (!collates && range == 2) return false;
        if (!take_special(element)) return false;
        if (!collates) {
          is_empty = false;
          continue;
        }
      } else if (range == 2 && element < range_from) {
        return false;
      }
      is_empty = false;
      if (range != 0) --range;
      range_from = element;
    }
    return false;
  }

  static bool is_special(char c) noexcept { return c == '.' || c == '=' || c == ':'; }

  /// Behind "[": ".x.]", "=x=]" or ":class:]". Gives the collating element, 256 for a longer one.
  bool take_special(int& element) {
    static constexpr std::array<std::string_view, 12> kCharacterClasses{
        "alnum", "digit", "punct", "alpha", "graph", "space",
        "blank", "lower", "upper", "cntrl", "print", "xdigit"};
    const char kind = text_[at_++];
    const char ending[] = {kind, ']', 0};
    const std::size_t end = text_.find(ending, at_);
    if (end == std::string_view::npos || end == at_) return false;
    const std::string_view name = text_.substr(at_, end - at_);
    at_ = end + 2;
    element = name.size() == 1 ? static_cast<unsigned char>(name[0]) : 256;
    return kind != ':' || std::find(kCharacterClasses.begin(), kCharacterClasses.end(), name) !=
                              kCharacterClasses.end();
  }

  std::string_view text_;
  std::size_t at_ = 0;
  unsigned open_ = 0;
  unsigned groups_ = 0;
  bool has_atom_ = false;
  bool is_repeated_ = false;
  bool may_be_empty_ = false;
};

/// Cuts `text` before its next delimiter without a backslash; nullopt: there is none.
std::optional<std::string_view> cut_part(std::string_view& text, char delimiter) {
  for (std::size_t at = 0; at < text.size(); at += text[at] == '\\' ? 2 : 1) {
    if (text[at] != delimiter) continue;
    const std::string_view part = text.substr(0, at);
    text.remove_prefix(at + 1);
    return part;
  }
  return std::nullopt;
}

/// The highest group that the replacement names; nullopt: it names group 0.
std::optional<unsigned> highest_group(std::string_view replacement) {
  unsigned highest = 0;
  for (std::size_t at = 0; at + 1 < replacement.size(); ++at) {
    if (replacement[at] != '\\') continue;
    const char c = replacement[++at];
    if (c == '0') return std::nullopt;
    if (is_ascii_digit(c)) highest = std::max(highest, static_cast<unsigned>(c - '0'));
  }
  return highest;
}

bool is_substitution(std::string_view text) {
  if (text.empty()) return true;
  const char delimiter = text[0];
  const bool may_delimit = !is_ascii_digit(delimiter) && delimiter != '\\' && delimiter != 'i';
  if (!may_delimit || text.find('\0') != std::string_view::npos) return false;
  text.remove_prefix(1);
  const auto expression = cut_part(text, delimiter);
  if (!expression) return false;
  const auto replacement = cut_part(text, delimiter);
  if (!replacement || text.find_first_not_of('i') != std::string_view::npos) return false;
  const auto groups = ExpressionCheck(*expression).groups();
  const auto named = highest_group(*replacement);
  return groups && named && *named <= *groups;
}

Status check_naptr_regexp(WireReader& wire) {
  const std::size_t start = wire.at;
  if (auto status = field::kString.check(wire); !status || wire.is_stored) return status;
  const ByteView octets = wire.data.subspan(start + 1, wire.at - start - 1);
  if (!is_substitution({reinterpret_cast<const char*>(octets.data()), octets.size()}))
    return fail(Errc::kInvalid, "no substitution expression, as '!^.*$!sip:info@example.com!' is");
  return {};
}

Status read_naptr_regexp(TextReader& text) {
  const std::size_t start = text.out().size();
  if (auto status = field::kString.read(text); !status) return status;
  WireReader wire{text.out(), start};
  return check_naptr_regexp(wire);
}

bool print_naptr_regexp(WireReader& wire, std::string& text) {
  return field::kString.print(wire, text);
}

}  // namespace

namespace field {
const FieldCodec kNaptrRegexp{read_naptr_regexp, check_naptr_regexp, print_naptr_regexp};
}  // namespace field

}  // namespace pando::dns
