#pragma once

#include "ctl/command_line.h"

/// The verbs of pandoctl by family: their words, options, help, and the commands that they run.
/// docs/reference/pandoctl.md describes them.
namespace pando::ctl {

void add_manager_verbs(CommandLine& line);
void add_explain_verb(CommandLine& line);
void add_zone_verbs(CommandLine& line);
void add_store_verbs(CommandLine& line);
void add_journal_verbs(CommandLine& line);
void add_worker_verbs(CommandLine& line);
void add_config_verbs(CommandLine& line);
void add_backup_verbs(CommandLine& line);
void add_import_verb(CommandLine& line);
void add_compare_verb(CommandLine& line);
void add_completion_verb(CommandLine& line);

}  // namespace pando::ctl
