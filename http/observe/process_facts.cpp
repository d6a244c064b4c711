#include "http/observe/process_facts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <sstream>
#include <string_view>

#include "http/observe/proc_file.h"

namespace pando::http {

namespace {

/// Bytes of a line like "RssAnon:     1234 kB" of /proc/PID/status.
std::uint64_t bytes_of(std::string_view status, std::string_view name) {
  const auto at = status.find(name);
  if (at == status.npos) return 0;
  status.remove_prefix(at + name.size());
  status.remove_prefix(std::min(status.find_first_not_of(" \t"), status.size()));
  std::uint64_t kib = 0;
  std::from_chars(status.data(), status.data() + status.size(), kib);
  return kib << 10;
}

/// User and system time in /proc/PID/stat: fields 14 and 15. The name in field 2 may have blanks
/// and brackets.
double cpu_seconds(const std::string& stat) {
  const auto bracket = stat.rfind(')');
  if (bracket == stat.npos) return 0;
  std::istringstream rest(stat.substr(bracket + 1));
  std::string ignored;
  constexpr int kBeforeTimes = 11;  // fields 3 to 13
  for (int i = 0; i < kBeforeTimes; ++i) rest >> ignored;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  rest >> user >> system;
  static const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return static_cast<double>(user + system) / ticks;
}

}  // namespace

std::optional<ProcessFacts> read_process(std::string name, std::uint32_t pid) {
  if (pid == 0) return std::nullopt;
  const std::string status = read_proc_file(fmt::format("/proc/{}/status", pid));
  const std::string stat = read_proc_file(fmt::format("/proc/{}/stat", pid));
  if (status.empty() || stat.empty()) return std::nullopt;
  return ProcessFacts{std::move(name), bytes_of(status, "\nVmRSS:"), bytes_of(status, "\nRssAnon:"),
                      cpu_seconds(stat)};
}

}  // namespace pando::http
