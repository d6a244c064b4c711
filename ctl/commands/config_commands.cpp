#include "ctl/commands/config_commands.h"

#include <fmt/format.h>

#include <ostream>
#include <string_view>

namespace pando::ctl {

namespace {

void print_more(std::ostream& out, std::uint64_t all, std::size_t shown, std::string_view noun) {
  if (all > shown) out << fmt::format("... and {} more {}\n", all - shown, noun);
}

void print_change(std::ostream& out, const ipc::SettingChangeRow& change, std::string_view indent) {
  const auto words = [](const std::string& value) { return value.empty() ? "absent" : value; };
  out << fmt::format("{}{}: {} -> {}\n", indent, change.key, words(change.before),
                     words(change.after));
}

void print_names(std::ostream& out, std::string_view title, std::uint64_t all,
                 const std::vector<std::string>& names) {
  if (all == 0) return;
  out << fmt::format("{} {}:\n", counted(all, "zone"), title);
  for (const std::string& name : names) out << "  " << name << '\n';
  print_more(out, all, names.size(), "zones");
}

void print_restarts(std::ostream& out, const ipc::ConfigDiffResult& diff) {
  for (const ipc::SettingChangeRow& change : diff.settings)
    if (!change.restart.empty())
      out << fmt::format("{} waits for a restart of {}\n", change.key, change.restart);
}

void print(std::ostream& out, const ipc::ConfigDiffResult& diff) {
  const std::uint64_t all =
      diff.settings_changed + diff.zones_added + diff.zones_removed + diff.zones_changed;
  if (all == 0) out << "a reload would change no setting\n";
  for (const ipc::SettingChangeRow& change : diff.settings) print_change(out, change, "");
  print_more(out, diff.settings_changed, diff.settings.size(), "settings");
  print_names(out, "added", diff.zones_added, diff.added);
  print_names(out, "removed", diff.zones_removed, diff.removed);
  if (diff.zones_changed > 0) out << counted(diff.zones_changed, "zone") << " changed:\n";
  for (const ipc::ZoneChangeRow& zone : diff.changed) {
    out << "  " << zone.zone << '\n';
    for (const ipc::SettingChangeRow& change : zone.settings) print_change(out, change, "    ");
  }
  print_more(out, diff.zones_changed, diff.changed.size(), "zones");
  print_restarts(out, diff);
}

}  // namespace

int ConfigCommands::show(const std::string& zone) {
  return session_.ask<ipc::ConfigShowResult>(
      {.verb = std::string(ipc::verb::kConfigShow), .name = zone},
      [&](const ipc::ConfigShowResult& result) { session_.output().out << result.yaml; });
}

int ConfigCommands::diff(std::uint32_t limit) {
  return session_.ask<ipc::ConfigDiffResult>(
      {.verb = std::string(ipc::verb::kConfigDiff), .limit = limit},
      [&](const ipc::ConfigDiffResult& result) {
        for (const std::string& warning : result.warnings)
          session_.output().err << "warning: " << warning << '\n';
        print(session_.output().out, result);
      });
}

int ConfigCommands::log_level(const std::string& level) {
  return session_.ask<ipc::LogLevelResult>(
      {.verb = std::string(ipc::verb::kLogLevel), .level = level},
      [&](const ipc::LogLevelResult& result) {
        session_.output().out << result.level;
        if (result.level != result.configured)
          session_.output().out << fmt::format(" until a reload or a restart, then {}",
                                               result.configured);
        session_.output().out << '\n';
      });
}

}  // namespace pando::ctl
