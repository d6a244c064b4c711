#include "ctl/view/output.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ctl/view/json_text.h"

namespace pando::ctl {

namespace {

constexpr std::string_view kGap = "  ";

/// Bytes of a reason's line that are printed of its beginning and of its end. A word of the command
/// line in it may have a megabyte, and the reason itself stands after that word.
constexpr std::size_t kMaxOfLine = 400;

/// The text with the middle of its long lines left out.
std::string shortened(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const bool is_long = line.size() > 2 * kMaxOfLine;
    result += is_long ? line.substr(0, kMaxOfLine) : line;
    if (is_long) result.append("...").append(line.substr(line.size() - kMaxOfLine));
  }
  return result;
}

}  // namespace

void print_error(const Output& output, std::string_view reason) {
  if (output.json)
    output.err << json_text({{"error", shortened(reason)}}) << '\n';
  else
    output.err << "pandoctl: " << shortened(reason) << '\n';
}

int refuse(const Output& output, const Error& error, ExitCode code) {
  print_error(output, error.text);
  return code;
}

std::vector<std::string> Table::titles() const {
  std::vector<std::string> row;
  for (const Column& column : columns_) row.push_back(column.title);
  return row;
}

void Table::flush(std::ostream& out) {
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t& width = columns_[i].min_width;
    width = std::max(width, columns_[i].title.size());
    for (const auto& row : rows_) width = std::max(width, row[i].size());
  }
  if (!header_done_) print_row(out, titles());
  header_done_ = true;
  for (const auto& row : rows_) print_row(out, row);
  rows_.clear();
}

void Table::print_row(std::ostream& out, const std::vector<std::string>& row) const {
  std::string line;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const std::size_t width = columns_[i].min_width;
    line += columns_[i].number ? fmt::format("{:>{}}", row[i], width)
                               : fmt::format("{:<{}}", row[i], width);
    line += kGap;
  }
  line.erase(line.find_last_not_of(' ') + 1);
  out << line << '\n';
}

void Facts::add(std::string name, std::string value) {
  if (!value.empty()) facts_.push_back({std::move(name), std::move(value), false});
}

void Facts::add_problem(std::string name, std::string value) {
  if (!value.empty()) facts_.push_back({std::move(name), std::move(value), true});
}

void Facts::print(std::ostream& out, bool colour) const {
  std::size_t width = 0;
  for (const Fact& fact : facts_) width = std::max(width, fact.name.size());
  for (const Fact& fact : facts_) {
    const bool red = colour && fact.is_problem;
    out << fmt::format("{}{:<{}}{}{}{}\n", red ? "\x1b[31m" : "", fact.name + ":", width + 1, kGap,
                       fact.value, red ? "\x1b[0m" : "");
  }
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string number(std::uint64_t value) { return std::to_string(value); }

std::string author_text(const std::string& name, const std::string& client) {
  if (client.empty()) return name.empty() ? "-" : name;
  return name.empty() ? client : fmt::format("{} from {}", name, client);
}

std::string time_text(std::uint64_t seconds_since_1970) {
  // fmt refuses years beyond 9999; a later time needs a broken clock.
  constexpr std::uint64_t kLastSecond = 253'402'300'799;
  if (seconds_since_1970 == 0) return "never";
  if (seconds_since_1970 > kLastSecond) return std::to_string(seconds_since_1970);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(static_cast<std::time_t>(seconds_since_1970)));
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 7> kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024; ++unit) value /= 1024;
  if (unit == 0) return fmt::format("{} B", bytes);
  return fmt::format("{:.{}f} {}", value, value < 10 ? 2 : value < 100 ? 1 : 0, kUnits[unit]);
}

std::string counted(std::uint64_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string judged_text(std::uint64_t zones) {
  return fmt::format("{} still judged by programs: see pandoctl zone status NAME\n",
                     counted(zones, "zone"));
}

}  // namespace pando::ctl
