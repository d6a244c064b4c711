#pragma once

#include "ctl/command_line.h"

/// The verbs of pandoctl by family: their words, options, help, and the commands that they run.
/// docs/reference/pandoctl.md describes them.
namespace pando::ctl {

/// All verbs, in the groups in which help pages show them.
void add_verbs(CommandLine& line);

void add_manager_verbs(CommandLine& line);
void add_explain_verb(CommandLine& line);
void add_zone_verbs(CommandLine& line);
/// The verb `sign` of the group `zone`.
void add_sign_verb(CommandLine& line, CLI::App* zone);
void add_dnssec_verbs(CommandLine& line);
void add_tls_verbs(CommandLine& line);
void add_store_verbs(CommandLine& line);
void add_journal_verbs(CommandLine& line);
void add_worker_verbs(CommandLine& line);
void add_config_verbs(CommandLine& line);
void add_backup_verbs(CommandLine& line);
void add_import_verb(CommandLine& line);
void add_compare_verb(CommandLine& line);
void add_completion_verb(CommandLine& line);
void add_help_verbs(CommandLine& line);

}  // namespace pando::ctl
