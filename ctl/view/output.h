#pragma once

#include <chrono>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace pando::ctl {

/// Exit codes of pandoctl, for scripts.
enum ExitCode : int {
  kDone = 0,
  kFailed = 1,       ///< the request was refused, or a check found problems
  kUsage = 2,        ///< wrong command line
  kUnreachable = 3,  ///< no manager answers
  kNoZone = 4,       ///< the server has no zone: it answers, and every answer is REFUSED
};

/// The output streams of a command, and their form.
struct Output {
  std::ostream& out;
  std::ostream& err;
  bool json = false;    ///< output for programs
  bool colour = false;  ///< output for a terminal
};

/// Prints an error on the stream for errors: "pandoctl: REASON", or {"error": REASON} for programs.
void print_error(const Output& output, std::string_view reason);
/// Prints the error; returns the exit code.
int refuse(const Output& output, const Error& error, ExitCode code = kFailed);

/// Rows of words in columns; each column as wide as its widest word, numbers to the right.
class Table {
 public:
  struct Column {
    std::string title;
    bool number = false;
    std::size_t min_width = 0;  ///< keeps columns in place when rows come page by page
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  /// Writes the rows added so far and forgets them; the header only the first time.
  void flush(std::ostream& out);

 private:
  void print_row(std::ostream& out, const std::vector<std::string>& row) const;
  std::vector<Column> columns_;
  std::vector<std::string> titles() const;
  std::vector<std::vector<std::string>> rows_;
  bool header_done_ = false;
};

/// "name:   value" lines; lines whose value is empty are left out.
class Facts {
 public:
  void add(std::string name, std::string value);
  /// A fact that wants somebody's attention: red with colours.
  void add_problem(std::string name, std::string value);
  void print(std::ostream& out, bool colour = false) const;

 private:
  struct Fact {
    std::string name;
    std::string value;
    bool is_problem = false;
  };
  std::vector<Fact> facts_;
};

/// "one, two".
[[nodiscard]] std::string joined(const std::vector<std::string>& words);
[[nodiscard]] std::string number(std::uint64_t value);
/// RFC 3339 in UTC; "never" for 0.
[[nodiscard]] std::string time_text(std::uint64_t seconds_since_1970);
/// The author of a change: "user alice", "key ddns. from 192.0.2.7"; "-" if neither is known.
[[nodiscard]] std::string author_text(const std::string& name, const std::string& client);
/// "512 MiB": binary units, three digits.
[[nodiscard]] std::string bytes_text(std::uint64_t bytes);
/// "1 zone", "2 zones".
[[nodiscard]] std::string counted(std::uint64_t count, std::string_view noun);
/// A line about zones whose programs have no verdict yet.
[[nodiscard]] std::string judged_text(std::uint64_t zones);

}  // namespace pando::ctl
