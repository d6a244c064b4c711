#include "config/import/pdns/sql_dump.h"

#include <algorithm>
#include <array>
#include <utility>

namespace pando::config {

namespace {

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || static_cast<unsigned char>(c) >= 0x80;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f'; }

/// What a backslash before the character stands for, in strings of MySQL and in rows of COPY.
char escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case 'r':
      return '\r';
    case 'b':
      return '\b';
    case '0':
      return '\0';
    default:
      return c;
  }
}

/// A field of COPY: `\N` is NULL, and a backslash stands before special characters.
SqlRow::Value copied_value(std::string_view field) {
  if (field == "\\N") return std::nullopt;
  std::string text;
  for (std::size_t i = 0; i < field.size(); ++i)
    text += field[i] == '\\' && i + 1 < field.size() ? escaped(field[++i]) : field[i];
  return text;
}

/// True for the words that begin an element of CREATE TABLE which is no column.
bool begins_constraint(std::string_view word) {
  constexpr std::array<std::string_view, 10> kWords{"primary", "unique",  "key",   "constraint",
                                                    "index",   "foreign", "check", "fulltext",
                                                    "spatial", "exclude"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
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
      // Only MySQL writes names between backquotes.
      backslashes_(text_.find("INTO `") != std::string_view::npos),
      tables_(std::move(tables)) {}

bool SqlDump::is_dump(std::string_view text) noexcept {
  for (const std::string_view begin :
       {"INSERT INTO `records`", "INSERT INTO records", "INSERT INTO \"records\"",
        "INSERT INTO public.records", "COPY public.records ", "COPY records "})
    if (text.find(begin) != std::string_view::npos) return true;
  return false;
}

Status SqlDump::run(const Visit& visit) {
  for (skip_space(); !at_end(); skip_space())
    if (auto done = statement(visit); !done) return done;
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
  if (verb == "create") create_table();
  skip_statement();
  return {};
}

/// `[IGNORE] INTO TABLE [(COLUMN, …)] VALUES (VALUE, …), …;`
Status SqlDump::insert(const Visit& visit) {
  std::string next = lower_case(word());
  while (!next.empty() && next != "into") next = lower_case(word());
  const std::string table = table_name();
  const auto known = tables_.find(table);
  if (known == tables_.end()) {
    skip_statement();
    return {};
  }
  std::vector<std::string> columns = known->second;
  if (skip_space(); peek() == '(') columns = column_names();
  for (std::string next_word = lower_case(word()); next_word != "values";
       next_word = lower_case(word())) {
    if (skip_space(); at_end() || peek() == ';') {  // a SELECT gives the rows
      skip_statement();
      return {};
    }
    if (next_word.empty()) step();
  }
  do {
    skip_space();
    const SourceLine at = here();
    std::vector<SqlRow::Value> row;
    if (!values(row)) return at_end() ? cut_off() : (skip_statement(), Status());
    visit(table, SqlRow(at, columns, std::move(row)));
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
    const std::string_view line = text_.substr(at_, text_.find('\n', at_) - at_);
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
    visit(table, SqlRow(at, columns, std::move(row)));
  }
  return cut_off();
}

/// `TABLE [IF NOT EXISTS] NAME (COLUMN TYPE …, …)`; other CREATEs are left to the caller.
void SqlDump::create_table() {
  std::string next = lower_case(word());
  while (next == "temporary" || next == "temp" || next == "unlogged") next = lower_case(word());
  if (next != "table") return;
  std::string table = table_name();
  if (table == "if") {
    word();
    word();
    table = table_name();
  }
  const auto known = tables_.find(table);
  if (known == tables_.end() || !take('(')) return;
  std::vector<std::string> columns;
  define_columns(columns);
  if (!columns.empty()) known->second = std::move(columns);
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
        quoted('\'', backslashes_);
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

/// A string, a number or a word; NULL is absent. `E'…'`, `N'…'` and `_utf8 '…'` are strings.
SqlDump::Value SqlDump::value() {
  skip_space();
  if (peek() == '\'') return {quoted('\'', backslashes_), true};
  std::string text;
  while (is_word(peek()) || peek() == '-' || peek() == '+' || peek() == '.') {
    text += peek();
    step();
  }
  if (text.empty()) return {};
  const std::string lower = lower_case(text);
  skip_space();
  if (peek() == '\'') return {quoted('\'', backslashes_ || lower == "e"), true};
  if (lower == "null") return {std::nullopt, true};
  return {std::move(text), true};
}

/// A name, of which a schema before it is dropped; in lower case.
std::string SqlDump::table_name() {
  std::string name = word();
  while (peek() == '.') {
    step();
    name = word();
  }
  return lower_case(name);
}

/// A word, or a name between quotes; empty when neither is next.
std::string SqlDump::word() {
  skip_space();
  const char first = peek();
  if (first == '`' || first == '"') return quoted(first, false);
  std::string text;
  for (; is_word(peek()); step()) text += peek();
  return text;
}

/// Text between quotes; two of them are one in the text.
std::string SqlDump::quoted(char quote, bool backslashes) {
  std::string text;
  step();
  while (!at_end()) {
    const char c = peek();
    step();
    if (c == '\\' && backslashes && !at_end()) {
      text += escaped(peek());
      step();
    } else if (c != quote) {
      text += c;
    } else if (peek() == quote) {
      text += c;
      step();
    } else {
      break;
    }
  }
  return text;
}

/// Blanks and comments.
void SqlDump::skip_space() {
  while (!at_end()) {
    if (is_blank(peek())) {
      step();
    } else if ((peek() == '-' && peek(1) == '-') || (peek() == '#' && backslashes_)) {
      skip_comment_line();
    } else if (peek() == '/' && peek(1) == '*') {
      while (!at_end() && !(peek() == '*' && peek(1) == '/')) step();
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
      quoted(c, c == '\'' && backslashes_);
    else
      step();
  }
}

void SqlDump::skip_brackets() {
  int depth = 0;
  do {
    skip_space();
    const char c = peek();
    if (c == '(') ++depth;
    if (c == ')') --depth;
    if (c == '\'')
      quoted(c, backslashes_);
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
