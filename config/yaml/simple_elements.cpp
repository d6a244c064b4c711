#include "config/yaml/simple_elements.h"

#include <algorithm>
#include <array>
#include <optional>

namespace pando::config {

namespace {

constexpr int kMaxElementDepth = 16;
constexpr std::size_t kMaxKey = 256;  // YAML allows 1024 characters

/// Characters that mean nothing to YAML at the beginning of a plain scalar, and within one.
struct PlainCharacters {
  std::array<bool, 256> first{};
  std::array<bool, 256> later{};
  constexpr PlainCharacters() {
    for (unsigned c = 0; c < 128; ++c) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '/';
      first[c] = plain;
      later[c] = plain || c == '-' || c == '@' || c == '+' || c == '=';
    }
  }
};
constexpr PlainCharacters kPlain;

bool means_null(std::string_view plain) {
  return plain == "null" || plain == "Null" || plain == "NULL";
}

/// Reads one element after the other. Each function that reads returns false where the text has
/// another form; then the element is given up.
class ElementReader {
 public:
  ElementReader(std::string_view text, DocumentBuilder& builder)
      : text_(text), builder_(builder) {}

  TextWithoutElements run() {
    while (at_ < text_.size()) {
      const std::size_t begin = at_;
      if (!read_element()) {
        at_ = begin;
        copy_line();
      }
    }
    return std::move(out_);
  }

 private:
  struct Scalar {
    YamlPlace place;
    std::string_view text;
    bool is_quoted;
  };

  // Lines -----------------------------------------------------------------------------------------

  void copy_line() {
    const std::size_t end = std::min(text_.find('\n', at_), text_.size() - 1) + 1;
    out_.text += text_.substr(at_, end - at_);
    at_ = end;
    line_start_ = end;
    ++line_;
  }

  /// Reads the element that begins in this line.
  bool read_element() {
    const std::size_t begin = line_start_;
    const int list_column = count_spaces();
    if (!is_dash()) return false;
    skip_dash();
    const std::string_view before_item = text_.substr(begin, at_ - begin);
    const YamlPlace item = place();
    const std::string_view stand_in = here() == '{' || here() == '[' ? "[]" : "k: []";
    const DocumentBuilder::State before = builder_.state();
    if (!read_collection(0) || indent_ > list_column) {
      builder_.restore(before);
      line_ = item.line;
      line_start_ = begin;
      return false;
    }
    out_.elements.push_back({item, builder_.take()});
    out_.text += before_item;
    out_.text += stand_in;
    out_.text.append(static_cast<std::size_t>(line_ - item.line), '\n');
    at_ = line_start_;
    return true;
  }

  [[nodiscard]] char here() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  [[nodiscard]] char next() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\n'; }
  [[nodiscard]] YamlPlace place() const { return {line_, static_cast<int>(at_ - line_start_)}; }
  [[nodiscard]] bool is_dash() const { return here() == '-' && next() == ' '; }

  void skip_dash() {
    ++at_;
    count_spaces();
  }

  int count_spaces() {
    const std::size_t begin = at_;
    while (here() == ' ') ++at_;
    return static_cast<int>(at_ - begin);
  }

  /// Goes from the end of a value to the next line that has one. False: something follows in the
  /// same line, or a line has a character that is neither blank nor printable.
  bool end_line() {
    const bool is_apart = here() == ' ';
    count_spaces();
    if (here() == '#' && !is_apart) return false;
    while (true) {
      if (here() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
      if (here() == '\r' && at_ + 1 < text_.size() && text_[at_ + 1] == '\n') ++at_;
      if (here() != '\n') return false;
      if (at_ == text_.size()) return end_text();
      ++at_;
      ++line_;
      line_start_ = at_;
      indent_ = count_spaces();
      const bool is_blank = here() == '\n' || here() == '\r' || here() == '#';
      if (!is_blank) return here() != '\t';
    }
  }

  bool end_text() {
    line_start_ = at_;
    indent_ = -1;
    return true;
  }

  // Block collections -----------------------------------------------------------------------------

  /// An item follows its dash: a mapping that begins in the same line, or one value.
  bool read_item(int depth) {
    if (here() == '{' || here() == '[') return read_flow(depth + 1) && end_line();
    const auto scalar = read_scalar();
    if (!scalar) return false;
    if (is_behind_key()) return read_mapping(*scalar, depth + 1);
    add(*scalar);
    return end_line();
  }

  bool read_collection(int depth) {
    if (here() == '{' || here() == '[') return read_flow(depth + 1) && end_line();
    const auto key = read_scalar();
    return key && is_behind_key() && read_mapping(*key, depth + 1);
  }

  /// A key's colon, before a blank.
  [[nodiscard]] bool is_behind_key() const {
    return here() == ':' && (next() == ' ' || next() == '\n' || next() == '\r');
  }

  bool read_mapping(const Scalar& first_key, int depth) {
    if (depth > kMaxElementDepth) return false;
    const int column = first_key.place.column;
    builder_.open(first_key.place, YamlNode::Kind::kMapping);
    if (!read_pair(first_key, depth)) return false;
    while (indent_ == column && !is_dash()) {
      const auto key = read_scalar();
      if (!key || !is_behind_key() || !read_pair(*key, depth)) return false;
    }
    if (indent_ > column) return false;
    builder_.close();
    return true;
  }

  /// Behind the key.
  bool read_pair(const Scalar& key, int depth) {
    if (key.text.size() > kMaxKey) return false;
    add(key);
    ++at_;
    const std::size_t colon_end = at_;
    count_spaces();
    if (here() == '{' || here() == '[') return read_flow(depth + 1) && end_line();
    if (here() == '\n' || here() == '\r' || here() == '#') {
      at_ = colon_end;
      return end_line() && read_block(key.place.column, depth + 1);
    }
    const auto scalar = read_scalar();
    if (!scalar || is_behind_key()) return false;
    add(*scalar);
    return end_line();
  }

  /// A list or mapping in lines of its own, below a key in this column.
  bool read_block(int key_column, int depth) {
    if (is_dash() && indent_ >= key_column) return read_list(depth);
    if (indent_ <= key_column) return false;
    return read_collection(depth);
  }

  bool read_list(int depth) {
    if (depth > kMaxElementDepth) return false;
    const int column = indent_;
    builder_.open(place(), YamlNode::Kind::kList);
    while (indent_ == column && is_dash()) {
      skip_dash();
      if (!read_item(depth)) return false;
    }
    if (indent_ > column) return false;
    builder_.close();
    return true;
  }

  // Flow collections ------------------------------------------------------------------------------

  bool read_flow(int depth) {
    if (depth > kMaxElementDepth) return false;
    const bool is_mapping = here() == '{';
    const char end = is_mapping ? '}' : ']';
    builder_.open(place(), is_mapping ? YamlNode::Kind::kMapping : YamlNode::Kind::kList);
    ++at_;
    count_spaces();
    for (bool is_first = true; here() != end || !is_first; is_first = false) {
      if ((is_mapping && !read_flow_key()) || !read_flow_value(depth)) return false;
      count_spaces();
      if (here() == end) break;
      if (here() != ',') return false;
      ++at_;
      count_spaces();
    }
    ++at_;
    builder_.close();
    return true;
  }

  bool read_flow_key() {
    const auto key = read_scalar();
    if (!key || key->text.size() > kMaxKey || here() != ':' || next() != ' ') return false;
    add(*key);
    ++at_;
    count_spaces();
    return true;
  }

  bool read_flow_value(int depth) {
    if (here() == '{' || here() == '[') return read_flow(depth + 1);
    const auto scalar = read_scalar();
    if (!scalar) return false;
    add(*scalar);
    return true;  // the caller wants a comma or the end
  }

  // Scalars ---------------------------------------------------------------------------------------

  std::optional<Scalar> read_scalar() {
    return here() == '"' || here() == '\'' ? read_quoted() : read_plain();
  }

  std::optional<Scalar> read_quoted() {
    const char quote = here();
    const YamlPlace begin = place();
    const std::size_t first = ++at_;
    while (here() != quote) {
      if (here() < ' ' || here() > '~' || here() == '\\') return std::nullopt;
      ++at_;
    }
    const Scalar scalar{begin, text_.substr(first, at_ - first), true};
    ++at_;
    if (here() == quote) return std::nullopt;  // '' within single quotes
    return scalar;
  }

  std::optional<Scalar> read_plain() {
    const YamlPlace begin = place();
    const std::size_t first = at_;
    const auto is_in = [](const std::array<bool, 256>& set, char c) {
      return set[static_cast<unsigned char>(c)];
    };
    if (!is_in(kPlain.first, here())) return std::nullopt;
    // A colon ends a scalar before a blank, and in flow collections before their marks as well.
    while (is_in(kPlain.later, here()) ||
           (here() == ':' && (next() == ':' || is_in(kPlain.later, next()))))
      ++at_;
    return Scalar{begin, text_.substr(first, at_ - first), false};
  }

  void add(const Scalar& scalar) {
    if (!scalar.is_quoted && means_null(scalar.text))
      builder_.add_null(scalar.place);
    else
      builder_.add_scalar(scalar.place, scalar.text);
  }

  std::string_view text_;
  DocumentBuilder& builder_;
  TextWithoutElements out_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
  int indent_ = 0;  // of the line that is read; -1 at the end of the text
};

/// yaml-cpp reads other encodings by these, and takes octet 4 for the end of the text.
bool is_unusual(std::string_view text) {
  return text.find('\0') != std::string_view::npos || text.find('\4') != std::string_view::npos ||
         text.starts_with('\xFE') || text.starts_with('\xFF');
}

}  // namespace

TextWithoutElements read_simple_elements(std::string_view text, DocumentBuilder& builder) {
  if (is_unusual(text)) return {};
  return ElementReader(text, builder).run();
}

}  // namespace pando::config
