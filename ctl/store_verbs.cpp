#include "ctl/verbs.h"

#include "ctl/backup/backup_command.h"
#include "ctl/backup/dump_commands.h"
#include "ctl/commands/journal_command.h"
#include "ctl/commands/manager_commands.h"
#include "ctl/commands/store_commands.h"

namespace pando::ctl {

void add_store_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* store = line.group("store", "the zone store");
  line.add_session(store, "stats", ipc::find_verb(ipc::verb::kStoreAudit)->help,
                   [&given](auto& s) { return s.store_stats(given.zone); })
      ->add_option("name", given.zone, "name of a zone");
  line.add_session(store, "checkpoint", [](auto& s) { return s.store_checkpoint(); });
  line.add_session(store, "copy", [&given](auto& s) { return s.store_copy(given.file); })
      ->add_option("file", given.file, "path of the image; its chunks are beside it")
      ->required();
  line.add_session(store, "dump", [&given](auto& s) { return s.store_dump(given.file); })
      ->add_option("file", given.file, "path of the dump")
      ->required();
  line.add(store, "load", "have the server start on a dump; needs no manager",
           [&given] { return load_dump(given.file, given.config, output_for(given)); })
      ->add_option("file", given.file, "path of the dump")
      ->required();
  line.add(store, "check", "check all that is in it, while it serves or in a file",
           [&given] {
             if (!given.file.empty()) return check_store_file(given.file, output_for(given));
             return with_session(given, [](auto& s) { return s.store_check(); });
           })
      ->add_option("--file", given.file,
                   "a store that no manager has, or an image, instead of the live one");
}

void add_backup_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  CLI::App* saved = line.add_session(
      root, "backup", "copy all that the server needs to go on elsewhere", [&given](auto& s) {
        return backup({given.config, given.file, given.all,
                       [&s](const std::string& path) { return s.write_dump(path); }},
                      output_for(given));
      });
  saved->add_option("folder", given.file, "folder that the backup makes")->required();
  saved->add_flag("--with-keys", given.all, "with secrets and private keys");
  CLI::App* restored =
      line.add(root, "restore", "put a backup's files back; needs no manager",
               [&given] { return restore(given.file, given.all, output_for(given)); });
  restored->add_option("folder", given.file, "folder of the backup")->required();
  restored->add_flag("--replace", given.all, "also files that differ from the backup");
}

void add_journal_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* journal = line.group("journal", "the journal of changes");
  CLI::App* print = line.add(journal, "print", "its records in words", [&given] {
    const JournalWords words{given.zone, given.position, given.limit};
    if (!given.file.empty()) return print_journal_files(given.file, words, output_for(given));
    return with_session(given, [words](auto& s) { return print_journal(s, words); });
  });
  print->add_option("zone", given.zone, "name of a zone; without: all zones");
  print->add_option("--from", given.position, "position of the first record");
  print->add_option("--limit", given.limit, "records")
      ->check(CLI::Range(1U, 1'000'000U))
      ->capture_default_str();
  print->add_option("--file", given.file,
                    "a journal's folder, or a file in it, that no manager has");
}

}  // namespace pando::ctl
