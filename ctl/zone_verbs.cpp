#include "ctl/verbs.h"

#include <iostream>
#include <map>

#include "ctl/commands/check_commands.h"
#include "ctl/commands/manager_commands.h"
#include "ctl/commands/record_commands.h"
#include "ctl/commands/zone_commands.h"

namespace pando::ctl {

namespace {

constexpr const char* kOwnerHelp = "relative to the zone unless it ends with a dot; @ is the zone";

int add_zones(const Arguments& given, Session& session) {
  ZoneCommands zones(session);
  if (given.zone == "-") return zones.add_from(std::cin);
  return zones.add(
      {given.zone, given.file, given.template_name, given.primaries, given.words, given.content});
}

void add_snapshot_commands(CommandLine& line, CLI::App* zone) {
  Arguments& given = line.arguments();
  CLI::App* taken = line.add_session(zone, "snapshot", [&given](auto& s) {
    return given.remove ? s.zone_snapshot_delete(given.zone, given.label)
                        : s.zone_snapshot(given.zone, given.label);
  });
  taken->add_option("name", given.zone, "name of the zone")->required();
  taken->add_option("label", given.label, "for 'zone rollback'")->required();
  taken->add_flag("--delete", given.remove, "let the snapshot go instead");
  line.add_session(zone, "snapshots", [&given](auto& s) { return s.zone_snapshots(given.zone); })
      ->add_option("name", given.zone, "name of a zone");
}

void add_reading_commands(CommandLine& line, CLI::App* zone) {
  Arguments& given = line.arguments();
  CLI::App* read = line.add_session(zone, "read", [&given](auto& s) {
    return RecordCommands(s).read(given.zone, given.owner, given.type);
  });
  read->add_option("name", given.zone, "name of the zone")->required();
  read->add_option("owner", given.owner, kOwnerHelp);
  read->add_option("type", given.type, "type of the records");
  CLI::App* diff = line.add_session(zone, "diff", [&given](auto& s) {
    return RecordCommands(s).diff(given.zone, given.serials);
  });
  diff->add_option("name", given.zone, "name of the zone")->required();
  diff->add_option("serials", given.serials, "from, and to; without: the transaction")
      ->expected(0, 2);
  line.add_session(zone, "history",
                   [&given](auto& s) { return RecordCommands(s).history(given.zone); })
      ->add_option("name", given.zone, "name of the zone")
      ->required();
}

void add_transaction_commands(CommandLine& line, CLI::App* zone) {
  Arguments& given = line.arguments();
  const auto with_zones = [&given](CLI::App* command) {
    command->add_option("names", given.zones, "names of zones")->required();
    return command;
  };
  const auto with_serial = [&given](CLI::App* command) {
    command->add_option("--if-serial", given.if_serial, "refuse if a zone has another serial")
        ->check(CLI::Range(std::uint64_t{0}, std::uint64_t{UINT32_MAX}));
  };
  const auto with_owner = [&given](CLI::App* command) {
    command->add_option("name", given.zone, "name of the zone")->required();
    command->add_option("owner", given.owner, kOwnerHelp)->required();
    return command;
  };
  with_serial(with_zones(line.add_session(zone, "begin", [&given](auto& s) {
    return RecordCommands(s).begin(given.zones, given.if_serial);
  })));
  CLI::App* set = with_owner(line.add_session(zone, "set", [&given](auto& s) {
    return RecordCommands(s).set(given.zone, given.owner, given.words);
  }));
  CLI::App* unset = with_owner(line.add_session(zone, "unset", [&given](auto& s) {
    return RecordCommands(s).unset(given.zone, given.owner, given.words);
  }));
  set->add_option("record", given.words, "[TTL] TYPE DATA...")->required();
  unset->add_option("record", given.words, "[TYPE [DATA...]]");
  with_serial(with_zones(line.add_session(zone, "commit", [&given](auto& s) {
    return RecordCommands(s).commit(given.zones, given.if_serial);
  })));
  with_zones(line.add_session(zone, "abort",
                              [&given](auto& s) { return RecordCommands(s).abort(given.zones); }));
}

void add_run_time_commands(CommandLine& line, CLI::App* zone) {
  Arguments& given = line.arguments();
  line.add_session(zone, "reload",
                   [&given](auto& s) { return ZoneCommands(s).reload(given.zones); })
      ->add_option("names", given.zones, "names of zones")
      ->required();
  CLI::App* add = line.add_session(zone, "add", "add a zone, or those of standard input",
                                   [&given](auto& s) { return add_zones(given, s); });
  add->add_option("name", given.zone, "name of the zone; - reads a JSON array of zones")
      ->required();
  add->add_option("--template", given.template_name, "template of its settings");
  add->add_option("--file", given.file, "its file, as in the configuration");
  add->add_option("--content", given.content,
                  "a file here with its first content, for a file of the manager's own");
  add->add_option("--primary", given.primaries, "remote that the zone is transferred from");
  add->add_option("settings", given.words, "KEY=VALUE, as in the configuration's zones");
  line.add_session(zone, "remove",
                   [&given](auto& s) { return ZoneCommands(s).remove(given.zones); })
      ->add_option("names", given.zones, "names of zones")
      ->required();
  CLI::App* set = line.add_session(zone, "configure", [&given](auto& s) {
    return ZoneCommands(s).configure(given.zone, given.key, given.value);
  });
  set->add_option("name", given.zone, "name of the zone")->required();
  set->add_option("key", given.key, "key, as in the configuration's zones")->required();
  set->add_option("value", given.value, "text or JSON; none: the template's value again");
}

}  // namespace

void add_zone_verbs(CommandLine& line) {
  Arguments& given = line.arguments();
  CLI::App* zone = line.group("zone", "zones");
  line.add_session(zone, "list", [](auto& s) { return s.zone_list(); });
  line.add_session(zone, "status", "one zone; without a name, those with problems",
                   [&given](auto& s) {
                     return given.zone.empty() ? s.zone_problems() : s.zone_status(given.zone);
                   })
      ->add_option("name", given.zone, "name of the zone");
  CLI::App* written = line.add_session(
      zone, "export", [&given](auto& s) { return s.zone_export(given.zone, given.file); });
  written->add_option("name", given.zone, "name of the zone")->required();
  written->add_option("--to", given.file, "another file; nothing else changes");
  CLI::App* back = line.add_session(
      zone, "rollback", [&given](auto& s) { return s.zone_rollback(given.zone, given.label); });
  back->add_option("name", given.zone, "name of the zone")->required();
  back->add_option("version", given.label,
                   "label of a snapshot, or a serial that its change history still has")
      ->required();
  const auto order = [&given](std::string_view verb) {
    return [&given, verb](auto& s) { return s.zone_order(verb, given.zone); };
  };
  for (CLI::App* command : {line.add_session(zone, "purge", order(ipc::verb::kZonePurge)),
                            line.add_session(zone, "refresh", order(ipc::verb::kZoneRefresh)),
                            line.add_session(zone, "retransfer", order(ipc::verb::kZoneRetransfer)),
                            line.add_session(zone, "notify", order(ipc::verb::kZoneNotify)),
                            line.add_session(zone, "freeze", order(ipc::verb::kZoneFreeze)),
                            line.add_session(zone, "thaw", order(ipc::verb::kZoneThaw))})
    command->add_option("name", given.zone, "name of the zone")->required();
  add_snapshot_commands(line, zone);
  add_reading_commands(line, zone);
  add_transaction_commands(line, zone);
  add_run_time_commands(line, zone);
  CLI::App* check = line.add(zone, "check", "check a zone file; needs no manager", [&given] {
    return check_zone(given.zone, given.file, output_for(given), given.verify);
  });
  // No transformer of CLI11: in help and errors it prints the values, which are control characters.
  using Faults = SignatureFaults;
  const std::map<std::string, Faults> kinds{
      {"off", Faults::kOff}, {"warn", Faults::kWarnings}, {"refuse", Faults::kErrors}};
  check
      ->add_option_function<std::string>(
          "--verify", [&given, kinds](const std::string& word) { given.verify = kinds.at(word); },
          "faults of signatures are errors (refuse), "
          "warnings (warn), or not looked for (off)")
      ->check(CLI::IsMember(kinds));
  check->add_option("name", given.zone, "name of the zone")->required();
  check->add_option("file", given.file, "zone file")->required();
  add_sign_verb(line, zone);
}

}  // namespace pando::ctl
