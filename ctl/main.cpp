#include <iostream>

#include "ctl/command_line.h"
#include "ctl/verbs.h"

int main(int argc, char** argv) {
  using namespace pando::ctl;  // NOLINT: a program's main file
  std::ios::sync_with_stdio(false);
  CommandLine line;
  add_manager_verbs(line);
  add_explain_verb(line);
  add_zone_verbs(line);
  add_store_verbs(line);
  add_journal_verbs(line);
  add_worker_verbs(line);
  add_config_verbs(line);
  add_backup_verbs(line);
  add_import_verb(line);
  add_compare_verb(line);
  add_completion_verb(line);
  const int code = line.run(argc, argv);
  if (std::cout.flush()) return code;
  std::cerr << "pandoctl: the output cannot be written\n";
  return code != 0 ? code : 1;
}
