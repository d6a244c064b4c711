#include "config/import/pdns/sql_dump.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "dns/encoding.h"

namespace pando::config {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

/// Appends the character that a backslash before `c` stands for in strings of MySQL and MariaDB.
/// The backslash stays before `%` and `_`.
void append_mysql_escape(std::string& text, char c) {
  constexpr std::string_view kLetters = "0bnrtZ";
  constexpr std::string_view kMeanings("\0\b\n\r\t\x1A", kLetters.size());
  const std::size_t at = kLetters.find(c);
  if (c == '%' || c == '_') text += '\\';
  text += at == std::string_view::npos ? c : kMeanings[at];
}

/// Appends the octet that stands after a backslash of PostgreSQL: a letter's, or that of up to
/// three octal digits, or of up to two hexadecimal ones after `x`. Gives the length of these.
std::size_t append_postgres_escape(std::string& text, std::string_view rest) {
  constexpr std::string_view kLetters = "bfnrtv";
  constexpr std::string_view kMeanings = "\b\f\n\r\t\v";
  if (const std::size_t at = kLetters.find(rest.front()); at != std::string_view::npos) {
    text += kMeanings[at];
    return 1;
  }
  const bool is_hex = rest.front() == 'x';
  const std::string_view digits = rest.substr(is_hex ? 1 : 0, is_hex ? 2 : 3);
  unsigned octet = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), octet, is_hex ? 16 : 8);
  if (error != std::errc()) {
    text += rest.front();
    return 1;
  }
  text += static_cast<char>(octet);
  return static_cast<std::size_t>(end - rest.data());
}

/// Whether MySQL or MariaDB wrote it. Others write no names between backquotes after INTO.
bool is_mysql(std::string_view text) {
  constexpr std::size_t kBegin = 65536;
  const std::string begin = lower_case(text.substr(0, kBegin));
  for (const std::string_view part : {"-- mysql dump", "-- mariadb dump", "/*!40", "into `"})
    if (begin.find(part) != std::string::npos) return true;
  return false;
}

/// The next word of a statement, without quotes, in lower case.
std::string take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n`\""), text.size()));
  const auto end = std::find_if_not(text.begin(), text.end(), is_word);
  std::string word = lower_case(text.substr(0, static_cast<std::size_t>(end - text.begin())));
  text.remove_prefix(word.size());
  return word;
}

/// Whether the statement that begins `text` makes or fills a table of PowerDNS.
bool fills_a_table(std::string_view text) {
  constexpr std::string_view kBetween = " into or replace ignore table if not exists low_priority ";
  if (!is_listed(" insert replace copy create ", take_word(text))) return false;
  for (std::string word = take_word(text); !word.empty(); word = take_word(text)) {
    if (word == "domains" || word == "records") return true;
    if (text.starts_with('`') || text.starts_with('"')) text.remove_prefix(1);
    if (text.starts_with('.'))
      text.remove_prefix(1);  // the word is a schema
    else if (!is_listed(kBetween, word))
      return false;
  }
  return false;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

/// Octets of hexadecimal digits; absent when they are none.
SqlRow::Value from_hex(std::string_view digits) {
  const auto octets = dns::hex_decode(digits);
  if (!octets) return std::nullopt;
  return std::string(octets->begin(), octets->end());
}

/// A field of COPY: `\N` is NULL, and a backslash stands before special characters.
SqlRow::Value copied_value(std::string_view field) {
  if (field == "\\N") return std::nullopt;
  std::string text;
  while (!field.empty()) {
    const char c = field.front();
    field.remove_prefix(1);
    if (c == '\\' && !field.empty())
      field.remove_prefix(append_postgres_escape(text, field));
    else
      text += c;
  }
  return text;
}

/// True for a dump without the last line that its program writes. Statements may be missing then.
/// Dumps without such lines tell nothing.
bool lacks_its_end(std::string_view text) {
  constexpr std::size_t kHead = 512;
  const std::string_view head = text.substr(0, kHead);
  const auto has_head = [&](std::string_view line) { return head.find(line) != head.npos; };
  const auto has = [&](std::string_view line) { return text.find(line) != text.npos; };
  if (has_head("-- MySQL dump") || has_head("-- MariaDB dump")) return !has("-- Dump completed");
  if (has_head("-- PostgreSQL database dump")) return !has("-- PostgreSQL database dump complete");
  return has_head("BEGIN TRANSACTION;") && !has("\nCOMMIT;");
}

/// True for the words that begin an element of CREATE TABLE which is no column.
bool begins_constraint(std::string_view word) {
  return is_listed(" primary unique key constraint index foreign check fulltext spatial exclude ",
                   word);
}

}  // namespace

const SqlRow::Value* SqlRow::find(std::string_view column) const noexcept {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  const auto index = static_cast<std::size_t>(found - columns_.begin());
  return index < values_.size() ? &values_[index] : nullptr;
}

std::string_view SqlRow::text(std::string_view column) const noexcept {
  const Value* value = find(column);
  return value != nullptr && *value ? std::string_view(**value) : std::string_view();
}

bool SqlRow::is_null(std::string_view column) const noexcept {
  const Value* value = find(column);
  return value == nullptr || !*value;
}

SqlDump::SqlDump(const ImportText& text, Tables tables)
    : name_(text.name),
      text_(text.text),
      escapes_(is_mysql(text_) ? Escapes::kMySql : Escapes::kNone),
      tables_(std::move(tables)) {
  if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a mark of UTF-8
}

bool SqlDump::is_dump(std::string_view text) {
  if (is_binary_dump(text)) return true;
  while (true) {
    // Blank lines are passed over once, not by each look.
    text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
    if (fills_a_table(text)) return true;
    const std::size_t end = text.find_first_of(";\n");
    if (end == std::string_view::npos) return false;
    text.remove_prefix(end + 1);
  }
}

bool SqlDump::is_binary_dump(std::string_view text) noexcept {
  return text.starts_with("PGDMP") || text.starts_with("SQLite format 3");
}

Status SqlDump::run(const Visit& visit) {
  for (skip_space(); !at_end(); skip_space())
    if (auto done = statement(visit); !done) return done;
  if (cut_) return cut_off();
  if (lacks_its_end(text_))
    return fail(Errc::kInvalid, "{}:{}: the dump ends early: its last line is not there", *name_,
                line_);
  return {};
}

Status SqlDump::statement(const Visit& visit) {
  if (take(';')) return {};
  if (peek() == '\\') {  // a command of psql
    skip_comment_line();
    return {};
  }
  const std::string verb = lower_case(word());
  if (verb == "insert" || verb == "replace") return insert(visit);
  if (verb == "copy") return copy(visit);
  if (verb == "use") database_ = lower_case(word());
  if (verb == "create" && !create_table()) {
    skip_trigger();
    return {};
  }
  skip_statement();
  return {};
}

/// Tables of one database alone are read: numbers of others mean other zones.
Status SqlDump::visit_row(const Visit& visit, std::string_view table, const SqlRow& row) {
  const std::string source = database_ + "." + schema_;
  if (!source_) source_ = source;
  if (*source_ != source)
    return fail(Errc::kInvalid,
                "{}:{}: tables of a second database or schema: import one at a time", *name_,
                row.at().line);
  visit(table, row);
  return {};
}

/// `[IGNORE] INTO TABLE [(COLUMN, …)] VALUES (VALUE, …), …;`
Status SqlDump::insert(const Visit& visit) {
  std::string next = lower_case(word());
  while (!next.empty() && next != "into" && !tables_.contains(next)) next = lower_case(word());
  const std::string table = next == "into" ? table_name() : next;
  const auto known = tables_.find(table);
  if (known == tables_.end()) {
    skip_statement();
    return {};
  }
  std::vector<std::string> columns = known->second;
  if (skip_space(); peek() == '(') columns = column_names();
  for (std::string next_word = lower_case(word()); next_word != "values";
       next_word = lower_case(word())) {
    if (skip_space(); at_end()) return cut_off();
    if (peek() == ';')
      return fail(Errc::kInvalid, "{}:{}: rows of {} are not in the dump", *name_, line_, table);
    if (next_word.empty()) step();
  }
  do {
    skip_space();
    const SourceLine at = here();
    std::vector<SqlRow::Value> row;
    if (!values(row)) {
      if (at_end()) return cut_off();
      return fail(Errc::kInvalid, "{}:{}: a value is no number, text or NULL", *name_, line_);
    }
    if (auto done = visit_row(visit, table, SqlRow(at, columns, std::move(row))); !done)
      return done;
    skip_space();
  } while (take(','));
  if (at_end()) return cut_off();
  skip_statement();
  return {};
}

/// `TABLE [(COLUMN, …)] FROM stdin;`, then a line of fields with tabs for each row, up to `\.`.
Status SqlDump::copy(const Visit& visit) {
  const std::string table = table_name();
  const auto known = tables_.find(table);
  std::vector<std::string> columns;
  if (known != tables_.end()) columns = known->second;
  if (skip_space(); peek() == '(') columns = column_names();
  skip_statement();
  skip_comment_line();
  while (!at_end()) {
    std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const SourceLine at = here();
    skip_comment_line();
    if (line.starts_with("\\.")) return {};
    if (known == tables_.end()) continue;
    std::vector<SqlRow::Value> row;
    for (std::size_t begin = 0; begin <= line.size();) {
      const std::size_t end = std::min(line.find('\t', begin), line.size());
      row.push_back(copied_value(line.substr(begin, end - begin)));
      begin = end + 1;
    }
    if (auto done = visit_row(visit, table, SqlRow(at, columns, std::move(row))); !done)
      return done;
  }
  return cut_off();
}

/// `TABLE [IF NOT EXISTS] NAME (COLUMN TYPE …, …)`; other CREATEs are left to the caller. False for
/// a trigger, which has statements in it.
bool SqlDump::create_table() {
  std::string next = lower_case(word());
  while (next == "temporary" || next == "temp" || next == "unlogged") next = lower_case(word());
  if (next == "trigger") return false;
  if (next != "table") return true;
  std::string table = table_name();
  if (table == "if") {
    word();
    word();
    table = table_name();
  }
  const auto known = tables_.find(table);
  if (known == tables_.end() || !take('(')) return true;
  std::vector<std::string> columns;
  define_columns(columns);
  if (!columns.empty()) known->second = std::move(columns);
  return true;
}

/// After the `END;` of a trigger of SQLite, or after the statement of another one.
void SqlDump::skip_trigger() {
  bool begins = false;
  while (!at_end()) {
    skip_space();
    if (take(';')) {
      if (!begins) return;
    } else if (const char c = peek(); c == '\'' || c == '"' || c == '`') {
      quoted(c, c == '\'' ? escapes_ : Escapes::kNone);
    } else if (const std::string next = lower_case(word()); next == "begin") {
      begins = true;
    } else if (next == "end" && take(';')) {
      return;
    } else if (next.empty()) {
      step();
    }
  }
  cut_ = true;
}

/// The elements up to the closing bracket; the first word of each is a column, or a constraint.
void SqlDump::define_columns(std::vector<std::string>& columns) {
  while (!at_end()) {
    const std::string name = lower_case(word());
    if (!name.empty() && !begins_constraint(name)) columns.push_back(name);
    while (!at_end() && peek() != ',' && peek() != ')') {
      if (peek() == '(')
        skip_brackets();
      else if (peek() == '\'')
        quoted('\'', escapes_);
      else if (word().empty())
        step();
      skip_space();
    }
    if (!take(',')) return;
  }
}

std::vector<std::string> SqlDump::column_names() {
  std::vector<std::string> names;
  take('(');
  while (!at_end() && !take(')')) {
    if (std::string name = lower_case(word()); !name.empty())
      names.push_back(std::move(name));
    else
      step();
    skip_space();
  }
  return names;
}

/// `(VALUE, …)`; false when it is not that.
bool SqlDump::values(std::vector<SqlRow::Value>& row) {
  if (!take('(')) return false;
  do {
    Value next = value();
    if (!next.is_good) return false;
    row.push_back(std::move(next.text));
    skip_space();
  } while (take(','));
  return take(')');
}

/// A string, a number or NULL, which is absent. `E'…'`, `N'…'`, `_utf8 '…'`, `X'…'` and `0x…` are
/// strings, and so is what SQLite writes for a text with line ends: `replace('…','\n',char(10))`.
/// `depth`: number of `replace()` calls around this value.
SqlDump::Value SqlDump::value(int depth) {
  skip_space();
  const char first = peek();
  if (first == '\'' || (first == '"' && escapes_ == Escapes::kMySql))
    return behind_cast({quoted(first, escapes_), true});
  std::string text;
  while (is_word(peek()) || peek() == '-' || peek() == '+' || peek() == '.') {
    text += peek();
    step();
  }
  const std::string lower = lower_case(text);
  if (lower.starts_with("0x")) {
    auto octets = from_hex(std::string_view(lower).substr(2));
    return {octets, octets.has_value()};
  }
  skip_space();
  if (peek() == '\'') return prefixed_text(lower);
  if (lower == "replace" && peek() == '(') return replaced(depth);
  if (lower == "null") return {std::nullopt, true};
  if (lower == "true" || lower == "false" || is_number(text)) return {std::move(text), true};
  return {};
}

/// A text after its prefix, which is in lower case.
SqlDump::Value SqlDump::prefixed_text(std::string_view prefix) {
  std::string text = quoted('\'', prefix == "e" ? Escapes::kPostgres : escapes_);
  if (prefix == "e" || prefix == "n" || prefix == "b" || prefix.starts_with('_'))
    return behind_cast({std::move(text), true});
  if (prefix != "x") return {};
  auto octets = from_hex(text);
  return {octets, octets.has_value()};
}

/// `(TEXT, TEXT, char(NUMBER))`: the first text with the character in place of the second.
SqlDump::Value SqlDump::replaced(int depth) {
  constexpr int kDeepest = 4;  // SQLite has one for each of two characters
  if (depth == kDeepest) return {};
  take('(');
  Value text = value(depth + 1);
  if (!text.is_good || !text.text || !take(',')) return {};
  const Value mark = value();
  if (!mark.is_good || !mark.text || mark.text->empty() || !take(',')) return {};
  if (lower_case(word()) != "char" || !take('(')) return {};
  const Value number = value();
  unsigned octet = 0;
  if (!number.is_good || !number.text || !take(')') || !take(')')) return {};
  std::from_chars(number.text->data(), number.text->data() + number.text->size(), octet);
  std::string result;
  std::string_view rest = *text.text;
  for (std::size_t at = rest.find(*mark.text); at != rest.npos; at = rest.find(*mark.text)) {
    result.append(rest.substr(0, at)).push_back(static_cast<char>(octet));
    rest.remove_prefix(at + mark.text->size());
  }
  text.text = result.append(rest);
  return text;
}

/// The value; `::TYPE` after it is passed over, as PostgreSQL writes it.
SqlDump::Value SqlDump::behind_cast(Value value) {
  while (peek() == ':' && peek(1) == ':') {
    step();
    step();
    word();
  }
  return value;
}

/// A name in lower case; a schema before it becomes schema_.
std::string SqlDump::table_name() {
  std::string name = word();
  schema_.clear();
  while (peek() == '.') {
    step();
    schema_ = lower_case(name);
    name = word();
  }
  return lower_case(name);
}

/// A word, or a name between quotes; empty when neither is next.
std::string SqlDump::word() {
  skip_space();
  const char first = peek();
  if (first == '`' || first == '"') return quoted(first, Escapes::kNone);
  std::string text;
  for (; is_word(peek()); step()) text += peek();
  return text;
}

/// Text between quotes; two of them are one in the text.
std::string SqlDump::quoted(char quote, Escapes escapes) {
  std::string text;
  step();
  while (!at_end()) {
    const char c = peek();
    step();
    if (c == '\\' && escapes != Escapes::kNone && !at_end()) {
      take_escape(text, escapes);
    } else if (c != quote) {
      text += c;
    } else if (peek() == quote) {
      text += c;
      step();
    } else {
      return text;
    }
  }
  cut_ = true;
  return text;
}

/// Takes the character after a backslash.
void SqlDump::take_escape(std::string& text, Escapes escapes) {
  std::size_t length = 1;
  if (escapes == Escapes::kMySql)
    append_mysql_escape(text, peek());
  else
    length = append_postgres_escape(text, text_.substr(at_));
  for (; length > 0; --length) step();
}

/// Behind `$TAG$ … $TAG$`, the text of a function of PostgreSQL. False when none begins here.
bool SqlDump::skip_dollar_text() {
  if (peek() != '$') return false;
  const std::size_t end = text_.find('$', at_ + 1);
  if (end == std::string_view::npos) return false;
  const std::string_view tag = text_.substr(at_, end + 1 - at_);
  if (!std::all_of(tag.begin(), tag.end(), is_word)) return false;
  const std::size_t close = text_.find(tag, end + 1);
  const std::size_t behind = std::min(close, text_.size() - tag.size()) + tag.size();
  cut_ = cut_ || close == std::string_view::npos;
  while (at_ < behind) step();
  return true;
}

/// Blanks and comments.
void SqlDump::skip_space() {
  while (!at_end()) {
    if (is_blank(peek())) {
      step();
    } else if ((peek() == '-' && peek(1) == '-') ||
               (peek() == '#' && escapes_ == Escapes::kMySql)) {
      skip_comment_line();
    } else if (peek() == '/' && peek(1) == '*') {
      while (!at_end() && !(peek() == '*' && peek(1) == '/')) step();
      cut_ = cut_ || at_end();
      step();
      step();
    } else {
      return;
    }
  }
}

void SqlDump::skip_comment_line() {
  while (!at_end() && peek() != '\n') step();
  step();
}

/// Behind the next semicolon that is no part of a text.
void SqlDump::skip_statement() {
  while (!at_end()) {
    skip_space();
    if (take(';')) return;
    if (const char c = peek(); c == '\'' || c == '"' || c == '`')
      quoted(c, c == '\'' ? escapes_ : Escapes::kNone);
    else if (!skip_dollar_text())
      step();
  }
  cut_ = true;
}

void SqlDump::skip_brackets() {
  int depth = 0;
  do {
    skip_space();
    const char c = peek();
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '\'')
      quoted(c, escapes_);
    else
      step();
  } while (!at_end() && depth > 0);
}

bool SqlDump::take(char wanted) {
  skip_space();
  if (peek() != wanted || at_end()) return false;
  step();
  return true;
}

void SqlDump::step() noexcept {
  if (at_end()) return;
  if (text_[at_] == '\n') ++line_;
  ++at_;
}

Status SqlDump::cut_off() const {
  return fail(Errc::kInvalid, "{}:{}: the dump ends in the middle of a statement", *name_, line_);
}

}  // namespace pando::config
