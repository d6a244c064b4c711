#include "ctl/verbs.h"

#include <iostream>

#include "ctl/commands/check_commands.h"
#include "ctl/commands/compare_command.h"
#include "ctl/commands/config_commands.h"
#include "ctl/commands/manager_commands.h"
#include "ctl/import/server_import.h"
#include "ctl/view/completion.h"

namespace pando::ctl {

namespace {

int run_compare(const Arguments& given) {
  const auto at = Endpoint::from_text(given.file);
  if (!at) return refuse(output_for(given), at.error());
  ComparisonWords words{given.zones, {*at}, given.limit};
  words.server.timeout = std::chrono::seconds(given.timeout_seconds);
  dns::TsigKeyring keyring;
  if (!given.key.empty()) {
    const auto key = key_of_configuration(given.config, given.key, keyring);
    if (!key) return refuse(output_for(given), key.error());
    words.server.key = *key;
  }
  return with_session(given, [&words](auto& s) { return compare(s, words); });
}

}  // namespace

void add_config_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* configuration = line.group("config", "configuration");
  line.add(configuration, "check", "check the configuration; needs no manager",
           [&given] { return check_config(given.config, output_for(given), given.all); })
      ->add_flag("--zones", given.all, "read all zone files, too");
  line.add_session(configuration, "show",
                   [&given](auto& s) { return ConfigCommands(s).show(given.zone); })
      ->add_option("zone", given.zone, "name of a zone");
  line.add_session(configuration, "diff",
                   [&given](auto& s) { return ConfigCommands(s).diff(given.limit); })
      ->add_option("--limit", given.limit, "rows of each kind")
      ->check(CLI::Range(1U, ipc::kZonePageRows))
      ->capture_default_str();
  CLI::App* log = line.group("log", "logs of the manager and the workers");
  line.add_session(log, "level",
                   [&given](auto& s) { return ConfigCommands(s).log_level(given.level); })
      ->add_option("level", given.level, "trace, debug, info, warning, error or off");
}

void add_import_verb(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  CLI::App* import = line.add(root, "import", "another server's configuration as one of ours",
                              [&given] { return import_foreign(given.import, output_for(given)); });
  ImportRequest& request = given.import;
  import
      ->add_option("file", request.file,
                   "named.conf, nsd.conf, knot.conf, pdns.conf, or zones of PowerDNS: a listing "
                   "by pdnsutil, a dump of the database")
      ->required();
  import
      ->add_option("--from", request.kind,
                   "what the file is: bind, nsd, knot, pdns, pdnsutil, pdns-dump")
      ->check(CLI::IsMember({"bind", "nsd", "knot", "pdns", "pdnsutil", "pdns-dump"}));
  import->add_option("--to", request.to, "a new file, instead of standard output");
  import->add_flag("--with-secrets", request.with_secrets,
                   "secrets of keys stand in the configuration, not in files of their own");
}

void add_compare_verb(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  CLI::App* compared = line.add(root, "compare", "zones that are served, beside another server's",
                                [&given] { return run_compare(given); });
  compared->add_option("--with", given.file, "address of the other server")
      ->required()
      ->type_name("ADDRESS[@PORT]");
  compared->add_option("--key", given.key, "key of the configuration that signs transfers");
  compared->add_option("--limit", given.limit, "records shown of each zone and server")
      ->check(CLI::Range(0U, 1'000'000U))
      ->capture_default_str();
  compared->add_option("zones", given.zones, "names of zones; without: all");
}

void add_completion_verb(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* root = line.root();
  line.add(root, "completion", "print a script that completes pandoctl's words in a shell",
           [root, &given] {
             std::cout << completion_script(*root,
                                            given.label == "zsh" ? Shell::kZsh : Shell::kBash);
             return kDone;
           })
      ->add_option("shell", given.label, "bash or zsh")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh"}));
}

}  // namespace pando::ctl
