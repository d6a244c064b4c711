#include "ctl/verbs.h"

#include "base/words.h"

namespace pando::ctl {

namespace {

/// Verbs that a help page shows together.
struct VerbGroup {
  std::string_view parent;  ///< the word before the verbs; empty = none
  std::string_view title;
  std::string_view verbs;
};

constexpr VerbGroup kVerbGroups[] = {
    {"", "Server", " status ready top reload stop hand-over upgrade "},
    {"", "Answers", " explain compare "},
    {"", "Words that verbs follow", " zone dnssec tls store worker journal config log "},
    {"", "Copies and moves", " backup restore import "},
    {"", "About pandoctl", " help version completion "},
    {"zone", "State", " list status "},
    {"zone", "Zones", " add remove configure reload purge "},
    {"zone", "Records", " read begin set unset diff commit abort "},
    {"zone", "Versions", " history snapshot snapshots rollback "},
    {"zone", "Other servers", " refresh retransfer notify "},
    {"zone", "Changes and files", " freeze thaw export check sign "},
};

void group_verbs(CLI::App& command, std::string_view parent) {
  for (CLI::App* verb : command.get_subcommands([](CLI::App*) { return true; })) {
    verb->group("Verbs");
    for (const VerbGroup& each : kVerbGroups)
      if (each.parent == parent && is_listed(each.verbs, verb->get_name()))
        verb->group(std::string(each.title));
    group_verbs(*verb, verb->get_name());
  }
}

}  // namespace

void add_verbs(CommandLine& line) {
  add_manager_verbs(line);
  add_explain_verb(line);
  add_zone_verbs(line);
  add_dnssec_verbs(line);
  add_tls_verbs(line);
  add_store_verbs(line);
  add_journal_verbs(line);
  add_worker_verbs(line);
  add_config_verbs(line);
  add_backup_verbs(line);
  add_import_verb(line);
  add_compare_verb(line);
  add_completion_verb(line);
  add_help_verbs(line);
  group_verbs(*line.root(), "");
}

}  // namespace pando::ctl
