#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "config/import/model/import_files.h"

namespace pando::config {

/// One row of a table in a dump: its values by the names of their columns.
class SqlRow {
 public:
  using Value = std::optional<std::string>;  // absent: NULL
  SqlRow(SourceLine at, const std::vector<std::string>& columns, std::vector<Value> values)
      : at_(std::move(at)), columns_(columns), values_(std::move(values)) {}

  [[nodiscard]] const SourceLine& at() const noexcept { return at_; }
  /// The value of that column; empty for NULL, and for a column that the row has not.
  [[nodiscard]] std::string_view text(std::string_view column) const noexcept;
  [[nodiscard]] bool is_null(std::string_view column) const noexcept;
  /// False when the row has more or fewer values than its table has columns.
  [[nodiscard]] bool is_whole() const noexcept { return columns_.size() == values_.size(); }

 private:
  [[nodiscard]] const Value* find(std::string_view column) const noexcept;
  SourceLine at_;
  const std::vector<std::string>& columns_;
  std::vector<Value> values_;
};

/// Reads the rows of some tables from a dump of a database: what mysqldump, pg_dump and SQLite's
/// `.dump` write. `INSERT`, `REPLACE` and `COPY … FROM stdin` give rows, and `CREATE TABLE` the
/// columns where those do not name them. Other statements are passed over.
class SqlDump {
 public:
  /// Columns of the wanted tables, for dumps that do not name them.
  using Tables = std::map<std::string, std::vector<std::string>, std::less<>>;
  using Visit = std::function<void(std::string_view table, const SqlRow& row)>;

  SqlDump(const ImportText& text, Tables tables);

  /// Calls `visit` for each row of a wanted table, in the order of the dump. kInvalid
  /// (`file:line: reason`) where the text ends early, a row of these tables cannot be read, or
  /// another database's rows follow.
  Status run(const Visit& visit);

  /// Whether the text looks like a dump of a database of PowerDNS.
  [[nodiscard]] static bool is_dump(std::string_view text);
  /// Whether it is a database of SQLite, or a dump of PostgreSQL that is no text.
  [[nodiscard]] static bool is_binary_dump(std::string_view text) noexcept;

 private:
  /// The meaning of a backslash in a string.
  enum class Escapes : std::uint8_t { kNone, kMySql, kPostgres };
  struct Value {
    SqlRow::Value text;
    bool is_good = false;
  };
  Status statement(const Visit& visit);
  Status insert(const Visit& visit);
  Status copy(const Visit& visit);
  Status visit_row(const Visit& visit, std::string_view table, const SqlRow& row);
  bool create_table();
  void define_columns(std::vector<std::string>& columns);
  std::vector<std::string> column_names();
  bool values(std::vector<SqlRow::Value>& row);
  Value value(int depth = 0);
  Value prefixed_text(std::string_view prefix);
  Value replaced(int depth);
  Value behind_cast(Value value);
  std::string table_name();
  std::string word();
  std::string quoted(char quote, Escapes escapes);
  void take_escape(std::string& text, Escapes escapes);
  void skip_space();
  void skip_comment_line();
  void skip_statement();
  void skip_trigger();
  bool skip_dollar_text();
  void skip_brackets();
  bool take(char wanted);
  [[nodiscard]] bool at_end() const noexcept { return at_ >= text_.size(); }
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }
  void step() noexcept;
  [[nodiscard]] SourceLine here() const { return {name_, line_}; }
  [[nodiscard]] Status cut_off() const;

  std::shared_ptr<const std::string> name_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  Escapes escapes_;  ///< in strings without a prefix
  Tables tables_;
  bool cut_ = false;                   ///< the text ended in the middle of something
  std::string database_;               ///< of the last USE
  std::string schema_;                 ///< of the table in hand
  std::optional<std::string> source_;  ///< database and schema of the rows so far
};

}  // namespace pando::config
