#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <optional>
#include <string>

#include "base/nearest.h"
#include "base/secret.h"
#include "config/files.h"
#include "config/load.h"
#include "config/settings/section_text.h"
#include "ctl/backup/backup_command.h"
#include "ctl/backup/dump_commands.h"
#include "ctl/check_commands.h"
#include "ctl/compare_command.h"
#include "ctl/config_commands.h"
#include "ctl/explain_command.h"
#include "ctl/journal_command.h"
#include "ctl/manager_commands.h"
#include "ctl/record_commands.h"
#include "ctl/server_import.h"
#include "ctl/store_commands.h"
#include "ctl/upgrade/upgrade_command.h"
#include "ctl/view/completion.h"
#include "ctl/zone_commands.h"

namespace {

using namespace pando;  // NOLINT: a program's main file

struct Arguments {
  std::string config = "/etc/pando/pando.yaml";
  std::string run_directory;
  bool json = false;
  unsigned timeout_seconds = 60;
  std::string zone;
  std::string file;
  std::string content;
  std::uint32_t count = 1;
  std::uint32_t interval = 1;
  std::uint32_t times = 0;
  std::string label;
  bool remove = false;
  bool all = false;
  ctl::SignatureFaults verify = ctl::SignatureFaults::kErrors;
  std::string owner;
  std::string type;
  ctl::ImportRequest import;
  std::vector<std::string> zones;
  std::vector<std::string> words;
  std::vector<std::uint32_t> serials;
  std::optional<std::uint32_t> if_serial;
  std::string template_name;
  std::vector<std::string> primaries;
  std::string key;
  std::string level;
  std::uint32_t limit = 100;
  std::uint64_t position = 0;
  std::optional<std::string> value;
  ctl::QueryWords query;
};

ctl::Output output_for(const Arguments& arguments) {
  // https://no-color.org
  const char* plain = std::getenv("NO_COLOR");
  const bool colour = ::isatty(STDOUT_FILENO) != 0 && (plain == nullptr || *plain == '\0');
  return {std::cout, std::cerr, arguments.json, colour};
}

/// The folder, if the section that has it can be found without parsing the zones: a command must
/// not take seconds and hundreds of MiB for them.
std::optional<std::string> run_directory_of_large(const std::string& path) {
  constexpr std::size_t kLarge = std::size_t{1} << 20;
  const WipeFreed wipe_freed;  // the text may have secrets
  const auto text = config::read_regular_file(path);
  if (!text || text->size() < kLarge) return std::nullopt;
  const std::string section = config::section_text(*text, "server");
  if (section.empty()) return std::nullopt;
  const auto loaded = config::load_text(section, path, {.read_zone_lists = false});
  if (!loaded.ok()) return std::nullopt;
  return loaded.settings.server.run_directory;
}

/// Folder of the control socket. Even a configuration with errors must give it: pandoctl is the
/// tool for repairs.
Result<std::string> run_directory(const Arguments& arguments) {
  if (!arguments.run_directory.empty()) return arguments.run_directory;
  if (::access(arguments.config.c_str(), R_OK) != 0)
    return fail_errno("cannot read " + arguments.config);
  if (auto folder = run_directory_of_large(arguments.config)) return *folder;
  const auto loaded = config::load(arguments.config, {.read_zone_lists = false});
  if (!loaded.ok() && !arguments.json)
    std::cerr << "pandoctl: the configuration has errors; see 'pandoctl config check'\n";
  return loaded.settings.server.run_directory;
}

int with_session(const Arguments& arguments, const std::function<int(ctl::Session&)>& command) {
  const auto folder = run_directory(arguments);
  if (!folder) {
    ctl::print_error(output_for(arguments), folder.error().text);
    return ctl::kFailed;
  }
  auto fd = ipc::connect_control(*folder);
  if (!fd) {
    ctl::print_error(output_for(arguments), fd.error().text);
    return ctl::kUnreachable;
  }
  ctl::Session session(std::move(*fd), output_for(arguments),
                       std::chrono::seconds(arguments.timeout_seconds));
  return command(session);
}

/// The command line: each leaf command sets the action to run.
class CommandLine {
 public:
  CommandLine() {
    app_.require_subcommand(1);
    app_.set_version_flag("--version", PANDO_VERSION);
    app_.add_option("--config,-c", arguments_.config, "configuration file")->capture_default_str();
    app_.add_option("--run-directory", arguments_.run_directory,
                    "folder of the control socket, instead of asking the configuration");
    app_.add_flag("--json", arguments_.json, "JSON for programs");
    app_.add_option("--timeout", arguments_.timeout_seconds, "seconds to wait for an answer")
        ->check(CLI::Range(1, 86400))
        ->capture_default_str();
    app_.fallthrough();
    add_manager_commands();
    add_explain();
    add_zone_commands();
    add_store_commands();
    add_journal_commands();
    add_worker_commands();
    add_config_commands();
    add_backup_commands();
    add_import();
    add_compare();
    add_completion();
  }

  int run(int argc, char** argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
      if (error.get_exit_code() == 0) return app_.exit(error);  // help, or the version
      refuse(argc, argv, error.what());
      return ctl::kUsage;
    }
    return action_();
  }

 private:
  /// The options may not have been read when a word was wrong.
  void refuse(int argc, char** argv, const std::string& error) const {
    const auto is_json = [](std::string_view word) { return word == "--json"; };
    const bool json = std::any_of(argv + 1, argv + argc, is_json);
    std::string unknown = unknown_word(argc, argv);
    if (unknown.empty()) unknown = unknown_option(argc, argv);
    ctl::print_error({std::cout, std::cerr, json}, unknown.empty() ? error : unknown);
    if (!json) std::cerr << "Run with --help for more information.\n";
  }

  /// The first word that is no command where one is wanted, with the one that was probably meant.
  /// Empty: there is no such word.
  [[nodiscard]] std::string unknown_word(int argc, char** argv) const {
    const CLI::App* command = &app_;
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      if (word == "-c" || word == "--config" || word == "--run-directory" || word == "--timeout")
        ++i;  // its value
      if (word.starts_with('-')) continue;
      std::vector<std::string> names;
      for (const CLI::App* one : command->get_subcommands({})) names.push_back(one->get_name());
      const auto found = std::ranges::find(names, word);
      if (found != names.end()) {
        command = command->get_subcommand(*found);
        continue;
      }
      if (names.empty()) return {};  // the words of a command
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string_view meant = nearest(word, candidates);
      const std::string said =
          command == &app_ ? fmt::format("unknown command '{}'", word)
                           : fmt::format("unknown command '{} {}'", command->get_name(), word);
      return meant.empty() ? said : fmt::format("{}; did you mean '{}'?", said, meant);
    }
    return {};
  }

  /// The same for the first option that the command does not have.
  [[nodiscard]] std::string unknown_option(int argc, char** argv) const {
    std::vector<std::string> names = options_of(app_);
    const CLI::App* command = &app_;
    for (int i = 1; i < argc; ++i) {
      const std::string_view word = argv[i];
      const auto subcommands = command->get_subcommands({});
      const auto found = std::ranges::find(subcommands, word, &CLI::App::get_name);
      if (found == subcommands.end()) continue;
      command = *found;
      for (std::string& name : options_of(*command)) names.push_back(std::move(name));
    }
    for (int i = 1; i < argc; ++i) {
      const std::string word = std::string(argv[i]).substr(0, std::string_view(argv[i]).find('='));
      if (word == "--") return {};  // the words behind it are no options
      if (!word.starts_with("--") || std::ranges::find(names, word) != names.end()) continue;
      const std::vector<std::string_view> candidates(names.begin(), names.end());
      const std::string_view meant = nearest(word, candidates);
      return meant.empty() ? fmt::format("unknown option '{}'", word)
                           : fmt::format("unknown option '{}'; did you mean '{}'?", word, meant);
    }
    return {};
  }

  static std::vector<std::string> options_of(const CLI::App& command) {
    std::vector<std::string> names;
    for (const CLI::Option* option : command.get_options())
      for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    return names;
  }

  using SessionCommand = std::function<int(ctl::Session&)>;

  CLI::App* group(const char* name, const char* help) {
    CLI::App* command = app_.add_subcommand(name, help);
    command->require_subcommand(1);
    command->fallthrough();
    return command;
  }
  CLI::App* add(CLI::App* parent, const char* name, const char* help, std::function<int()> action) {
    CLI::App* command = parent->add_subcommand(name, help);
    command->fallthrough();
    command->callback([this, action = std::move(action)] { action_ = action; });
    return command;
  }
  CLI::App* add_session(CLI::App* parent, const char* name, const char* help,
                        SessionCommand command) {
    return add(parent, name, help,
               [this, command = std::move(command)] { return with_session(arguments_, command); });
  }

  void add_manager_commands() {
    add_session(&app_, "status", "state of the server", [this](auto& s) {
      return s.status(arguments_.all);
    })->add_flag("--all", arguments_.all, "with every counter");
    CLI::App* ready =
        add_session(&app_, "ready", "whether queries are answered, as exit code",
                    [this](auto& s) { return s.ready(arguments_.all, arguments_.words); });
    ready->add_flag("--zones", arguments_.all, "only if all zones are loaded");
    ready->add_option("--address", arguments_.words, "only if this address is open and the host's")
        ->type_name("ADDRESS");
    CLI::App* top =
        add_session(&app_, "top", "rates of queries and updates, every second", [this](auto& s) {
          const bool on_screen = !arguments_.json && ::isatty(STDOUT_FILENO);
          return s.top(std::chrono::seconds(arguments_.interval), arguments_.times, on_screen);
        });
    top->add_option("--interval", arguments_.interval, "seconds between two prints")
        ->check(CLI::Range(1, 3600))
        ->capture_default_str();
    top->add_option("--times", arguments_.times, "prints; without: until Ctrl-C");
    add_session(&app_, "reload", "read the configuration and changed zone files again",
                [](auto& s) { return s.reload(); });
    add_session(&app_, "stop", "stop the manager and its workers",
                [](auto& s) { return s.stop(); });
    add_session(&app_, "hand-over", "have the manager leave its work to another one, which follows",
                [](auto& s) { return s.hand_over(); });
    add(&app_, "upgrade", "have the installed programs take over from the running ones", [this] {
      return upgrade();
    })->add_option("--log", arguments_.file, "log file of a manager that no unit starts");
  }

  int upgrade() {
    const auto folder = run_directory(arguments_);
    if (folder)
      return ctl::upgrade({arguments_.config, *folder, arguments_.file,
                           std::chrono::seconds(arguments_.timeout_seconds)},
                          output_for(arguments_));
    ctl::print_error(output_for(arguments_), folder.error().text);
    return ctl::kFailed;
  }

  void add_explain() {
    CLI::App* explain = add_session(&app_, "explain", "the answer to a query, and why it is so",
                                    [this](auto& s) { return ctl::explain(s, arguments_.query); });
    ctl::QueryWords& query = arguments_.query;
    explain->add_option("name", query.name, "name that is asked for")->required();
    explain->add_option("type", query.type, "type that is asked for; A by default");
    explain->add_option("--from", query.from, "address of the client that asks");
    explain->add_option("--key", query.key, "name of the TSIG key that signs the query");
    explain->add_flag("--do", query.dnssec_ok, "ask for signatures and proofs (DO bit)");
  }

  void add_zone_commands() {
    CLI::App* zone = group("zone", "zones");
    add_session(zone, "list", "all zones", [](auto& s) { return s.zone_list(); });
    add_session(zone, "status", "one zone; without a name, those with problems", [this](auto& s) {
      return arguments_.zone.empty() ? s.zone_problems() : s.zone_status(arguments_.zone);
    })->add_option("name", arguments_.zone, "name of the zone");
    CLI::App* written =
        add_session(zone, "export", "write a zone to its file, or to another one",
                    [this](auto& s) { return s.zone_export(arguments_.zone, arguments_.file); });
    written->add_option("name", arguments_.zone, "name of the zone")->required();
    written->add_option("--to", arguments_.file, "another file; nothing else changes");
    CLI::App* back =
        add_session(zone, "rollback", "make a zone again what it was, under a new serial",
                    [this](auto& s) { return s.zone_rollback(arguments_.zone, arguments_.label); });
    back->add_option("name", arguments_.zone, "name of the zone")->required();
    back->add_option("version", arguments_.label,
                     "label of a snapshot, or a serial that its change history still has")
        ->required();
    const auto order = [this](std::string_view verb) {
      return [this, verb](auto& s) { return s.zone_order(verb, arguments_.zone); };
    };
    for (CLI::App* command :
         {add_session(zone, "purge", "drop the updates of a zone that left the configuration",
                      order(ipc::verb::kZonePurge)),
          add_session(zone, "refresh", "ask the primaries of a secondary zone now",
                      order(ipc::verb::kZoneRefresh)),
          add_session(zone, "retransfer", "transfer a secondary zone whole, whatever its serial",
                      order(ipc::verb::kZoneRetransfer)),
          add_session(zone, "notify", "send NOTIFY to the remotes of a zone now",
                      order(ipc::verb::kZoneNotify)),
          add_session(zone, "freeze", "keep updates and transfers from changing a zone",
                      order(ipc::verb::kZoneFreeze)),
          add_session(zone, "thaw", "let updates and transfers change a zone again",
                      order(ipc::verb::kZoneThaw))})
      command->add_option("name", arguments_.zone, "name of the zone")->required();
    add_snapshot_commands(zone);
    add_reading_commands(zone);
    add_transaction_commands(zone);
    add_run_time_commands(zone);
    CLI::App* check = add(zone, "check", "check a zone file; needs no manager", [this] {
      return ctl::check_zone(arguments_.zone, arguments_.file, output_for(arguments_),
                             arguments_.verify);
    });
    using Faults = ctl::SignatureFaults;
    const std::map<std::string, Faults> kinds{
        {"off", Faults::kOff}, {"warn", Faults::kWarnings}, {"refuse", Faults::kErrors}};
    check
        ->add_option("--verify", arguments_.verify,
                     "faults of signatures are errors (refuse), "
                     "warnings (warn), or not looked for (off)")
        ->transform(CLI::CheckedTransformer(kinds));
    check->add_option("name", arguments_.zone, "name of the zone")->required();
    check->add_option("file", arguments_.file, "zone file")->required();
  }

  void add_snapshot_commands(CLI::App* zone) {
    CLI::App* taken =
        add_session(zone, "snapshot", "give a zone's present version a label", [this](auto& s) {
          return arguments_.remove ? s.zone_snapshot_delete(arguments_.zone, arguments_.label)
                                   : s.zone_snapshot(arguments_.zone, arguments_.label);
        });
    taken->add_option("name", arguments_.zone, "name of the zone")->required();
    taken->add_option("label", arguments_.label, "for 'zone rollback'")->required();
    taken->add_flag("--delete", arguments_.remove, "let the snapshot go instead");
    add_session(zone, "snapshots", "all snapshots; with a name, those of one zone",
                [this](auto& s) { return s.zone_snapshots(arguments_.zone); })
        ->add_option("name", arguments_.zone, "name of a zone");
  }

  void add_reading_commands(CLI::App* zone) {
    CLI::App* read = add_session(zone, "read", "records that are served", [this](auto& s) {
      return ctl::RecordCommands(s).read(arguments_.zone, arguments_.owner, arguments_.type);
    });
    read->add_option("name", arguments_.zone, "name of the zone")->required();
    read->add_option("owner", arguments_.owner, kOwnerHelp);
    read->add_option("type", arguments_.type, "type of the records");
    CLI::App* diff =
        add_session(zone, "diff", "changes since a serial, or of the transaction", [this](auto& s) {
          return ctl::RecordCommands(s).diff(arguments_.zone, arguments_.serials);
        });
    diff->add_option("name", arguments_.zone, "name of the zone")->required();
    diff->add_option("serials", arguments_.serials, "from, and to; without: the transaction")
        ->expected(0, 2);
    add_session(zone, "history", "changesets that the store has of a zone",
                [this](auto& s) { return ctl::RecordCommands(s).history(arguments_.zone); })
        ->add_option("name", arguments_.zone, "name of the zone")
        ->required();
  }

  void add_transaction_commands(CLI::App* zone) {
    const auto with_zones = [this](CLI::App* command) {
      command->add_option("names", arguments_.zones, "names of zones")->required();
      return command;
    };
    const auto with_serial = [this](CLI::App* command) {
      command->add_option("--if-serial", arguments_.if_serial,
                          "refuse if a zone has another serial");
    };
    const auto with_owner = [this](CLI::App* command) {
      command->add_option("name", arguments_.zone, "name of the zone")->required();
      command->add_option("owner", arguments_.owner, kOwnerHelp)->required();
      return command;
    };
    with_serial(with_zones(
        add_session(zone, "begin", "open a transaction on records of zones", [this](auto& s) {
          return ctl::RecordCommands(s).begin(arguments_.zones, arguments_.if_serial);
        })));
    CLI::App* set =
        with_owner(add_session(zone, "set", "add a record in the transaction", [this](auto& s) {
          return ctl::RecordCommands(s).set(arguments_.zone, arguments_.owner, arguments_.words);
        }));
    CLI::App* unset =
        with_owner(add_session(zone, "unset", "remove records in the transaction", [this](auto& s) {
          return ctl::RecordCommands(s).unset(arguments_.zone, arguments_.owner, arguments_.words);
        }));
    set->add_option("record", arguments_.words, "[TTL] TYPE DATA...")->required();
    unset->add_option("record", arguments_.words, "[TYPE [DATA...]]");
    with_serial(with_zones(
        add_session(zone, "commit", "publish the transactions as one version", [this](auto& s) {
          return ctl::RecordCommands(s).commit(arguments_.zones, arguments_.if_serial);
        })));
    with_zones(add_session(zone, "abort", "forget the transactions", [this](auto& s) {
      return ctl::RecordCommands(s).abort(arguments_.zones);
    }));
  }

  void add_run_time_commands(CLI::App* zone) {
    add_session(zone, "reload", "read the files of zones again",
                [this](auto& s) { return ctl::ZoneCommands(s).reload(arguments_.zones); })
        ->add_option("names", arguments_.zones, "names of zones")
        ->required();
    CLI::App* add = add_session(zone, "add", "add a zone, or those of standard input",
                                [this](auto& s) { return add_zones(s); });
    add->add_option("name", arguments_.zone, "name of the zone; - reads a JSON array of zones")
        ->required();
    add->add_option("--template", arguments_.template_name, "template of its settings");
    add->add_option("--file", arguments_.file, "its file, as in the configuration");
    add->add_option("--content", arguments_.content,
                    "a file here with its first content, for a file of the manager's own");
    add->add_option("--primary", arguments_.primaries, "remote that the zone is transferred from");
    add->add_option("settings", arguments_.words, "KEY=VALUE, as in the configuration's zones");
    add_session(zone, "remove", "remove zones that were added",
                [this](auto& s) { return ctl::ZoneCommands(s).remove(arguments_.zones); })
        ->add_option("names", arguments_.zones, "names of zones")
        ->required();
    CLI::App* set = add_session(
        zone, "configure", "change a setting of a zone that was added", [this](auto& s) {
          return ctl::ZoneCommands(s).configure(arguments_.zone, arguments_.key, arguments_.value);
        });
    set->add_option("name", arguments_.zone, "name of the zone")->required();
    set->add_option("key", arguments_.key, "key, as in the configuration's zones")->required();
    set->add_option("value", arguments_.value, "text or JSON; none: the template's value again");
  }

  int add_zones(ctl::Session& session) const {
    ctl::ZoneCommands zones(session);
    if (arguments_.zone == "-") return zones.add_from(std::cin);
    return zones.add({arguments_.zone, arguments_.file, arguments_.template_name,
                      arguments_.primaries, arguments_.words, arguments_.content});
  }

  void add_store_commands() {
    CLI::App* store = group("store", "the zone store");
    add_session(store, "stats", "where its bytes are; with a name, those of one zone",
                [this](auto& s) { return s.store_stats(arguments_.zone); })
        ->add_option("name", arguments_.zone, "name of a zone");
    add_session(store, "checkpoint", "write the image now, and wait for it",
                [](auto& s) { return s.store_checkpoint(); });
    add_session(store, "copy", "write an image on which a server with an empty journal can start",
                [this](auto& s) { return s.store_copy(arguments_.file); })
        ->add_option("file", arguments_.file, "path of the image; its chunks are beside it")
        ->required();
    add_session(store, "dump", "write all of it as a stream that builds of other layouts read",
                [this](auto& s) { return s.store_dump(arguments_.file); })
        ->add_option("file", arguments_.file, "path of the dump")
        ->required();
    add(store, "load", "have the server start on a dump; needs no manager",
        [this] {
          return ctl::load_dump(arguments_.file, arguments_.config, output_for(arguments_));
        })
        ->add_option("file", arguments_.file, "path of the dump")
        ->required();
    add(store, "check", "check all that is in it, while it serves or in a file",
        [this] {
          if (!arguments_.file.empty())
            return ctl::check_store_file(arguments_.file, output_for(arguments_));
          return with_session(arguments_, [](auto& s) { return s.store_check(); });
        })
        ->add_option("--file", arguments_.file,
                     "a store that no manager has, or an image, instead of the live one");
  }

  void add_backup_commands() {
    CLI::App* saved = add_session(
        &app_, "backup", "copy all that the server needs to go on elsewhere", [this](auto& s) {
          return ctl::backup({arguments_.config, arguments_.file, arguments_.all,
                              [&s](const std::string& path) { return s.write_dump(path); }},
                             output_for(arguments_));
        });
    saved->add_option("folder", arguments_.file, "folder that the backup makes")->required();
    saved->add_flag("--with-keys", arguments_.all, "with secrets and private keys");
    CLI::App* restored = add(
        &app_, "restore", "put a backup's files back; needs no manager",
        [this] { return ctl::restore(arguments_.file, arguments_.all, output_for(arguments_)); });
    restored->add_option("folder", arguments_.file, "folder of the backup")->required();
    restored->add_flag("--replace", arguments_.all, "also files that differ from the backup");
  }

  void add_journal_commands() {
    CLI::App* journal = group("journal", "the journal of changes");
    CLI::App* print = add(journal, "print", "its records in words", [this] {
      const ctl::JournalWords words{arguments_.zone, arguments_.position, arguments_.limit};
      if (!arguments_.file.empty())
        return ctl::print_journal_files(arguments_.file, words, output_for(arguments_));
      return with_session(arguments_, [words](auto& s) { return ctl::print_journal(s, words); });
    });
    print->add_option("zone", arguments_.zone, "name of a zone; without: all zones");
    print->add_option("--from", arguments_.position, "position of the first record");
    print->add_option("--limit", arguments_.limit, "records")
        ->check(CLI::Range(1U, 1'000'000U))
        ->capture_default_str();
    print->add_option("--file", arguments_.file,
                      "a journal's folder, or a file in it, that no manager has");
  }

  void add_worker_commands() {
    CLI::App* worker = group("worker", "worker processes");
    add_session(worker, "list", "all workers", [](auto& s) { return s.worker_list(); });
    const auto with_count = [this](CLI::App* command) {
      command->add_option("count", arguments_.count, "how many")->check(CLI::Range(1, 1024));
    };
    with_count(add_session(worker, "add", "start workers, until the next reload",
                           [this](auto& s) { return s.worker_add(arguments_.count); }));
    with_count(add_session(worker, "remove", "end workers, highest slots first",
                           [this](auto& s) { return s.worker_remove(arguments_.count); }));
    add_session(worker, "restart", "replace all workers, one after the other",
                [](auto& s) { return s.worker_restart(); });
  }

  void add_config_commands() {
    CLI::App* configuration = group("config", "configuration");
    add(configuration, "check", "check the configuration; needs no manager", [this] {
      return ctl::check_config(arguments_.config, output_for(arguments_), arguments_.all);
    })->add_flag("--zones", arguments_.all, "read all zone files, too");
    add_session(configuration, "show", "settings in force; with a name, those of one zone",
                [this](auto& s) { return ctl::ConfigCommands(s).show(arguments_.zone); })
        ->add_option("zone", arguments_.zone, "name of a zone");
    add_session(configuration, "diff", "what a reload would change, without changing it",
                [this](auto& s) { return ctl::ConfigCommands(s).diff(arguments_.limit); })
        ->add_option("--limit", arguments_.limit, "rows of each kind")
        ->check(CLI::Range(1U, ipc::kZonePageRows))
        ->capture_default_str();
    CLI::App* log = group("log", "logs of the manager and the workers");
    add_session(log, "level", "show or set the level, until a reload or a restart",
                [this](auto& s) { return ctl::ConfigCommands(s).log_level(arguments_.level); })
        ->add_option("level", arguments_.level, "trace, debug, info, warning, error or off");
  }

  void add_completion() {
    add(&app_, "completion", "print a script that completes pandoctl's words in a shell",
        [this] {
          std::cout << ctl::completion_script(
              app_, arguments_.label == "zsh" ? ctl::Shell::kZsh : ctl::Shell::kBash);
          return ctl::kDone;
        })
        ->add_option("shell", arguments_.label, "bash or zsh")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh"}));
  }

  void add_import() {
    CLI::App* import =
        add(&app_, "import", "another server's configuration as one of ours",
            [this] { return ctl::import_foreign(arguments_.import, output_for(arguments_)); });
    ctl::ImportRequest& request = arguments_.import;
    import
        ->add_option(
            "file", request.file,
            "named.conf, nsd.conf, knot.conf, pdns.conf, or zones of PowerDNS: a listing by "
            "pdnsutil, a dump of the database")
        ->required();
    import
        ->add_option("--from", request.kind,
                     "what the file is: bind, nsd, knot, pdns, pdnsutil, pdns-dump")
        ->check(CLI::IsMember({"bind", "nsd", "knot", "pdns", "pdnsutil", "pdns-dump"}));
    import->add_option("--to", request.to, "a new file, instead of standard output");
    import->add_flag("--with-secrets", request.with_secrets,
                     "secrets of keys stand in the configuration, not in files of their own");
  }

  void add_compare() {
    CLI::App* compared = add(&app_, "compare", "zones that are served, beside another server's",
                             [this] { return compare(); });
    compared->add_option("--with", arguments_.file, "address of the other server")
        ->required()
        ->type_name("ADDRESS[@PORT]");
    compared->add_option("--key", arguments_.key, "key of the configuration that signs transfers");
    compared->add_option("--limit", arguments_.limit, "records shown of each zone and server")
        ->check(CLI::Range(0U, 1'000'000U))
        ->capture_default_str();
    compared->add_option("zones", arguments_.zones, "names of zones; without: all");
  }

  int compare() {
    const auto refuse = [this](const Error& error) {
      ctl::print_error(output_for(arguments_), error.text);
      return ctl::kFailed;
    };
    const auto at = Endpoint::from_text(arguments_.file);
    if (!at) return refuse(at.error());
    ctl::ComparisonWords words{arguments_.zones, {*at}, arguments_.limit};
    words.server.timeout = std::chrono::seconds(arguments_.timeout_seconds);
    dns::TsigKeyring keyring;
    if (!arguments_.key.empty()) {
      const auto key = ctl::key_of_configuration(arguments_.config, arguments_.key, keyring);
      if (!key) return refuse(key.error());
      words.server.key = *key;
    }
    return with_session(arguments_, [&words](auto& s) { return ctl::compare(s, words); });
  }

  static constexpr const char* kOwnerHelp =
      "relative to the zone unless it ends with a dot; @ is the zone";

  CLI::App app_{"pandoctl: control of the Pando DNS server", "pandoctl"};
  Arguments arguments_;
  std::function<int()> action_;
};

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  return CommandLine().run(argc, argv);
}
