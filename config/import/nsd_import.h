#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/import/model/line_settings.h"
#include "config/import/model/match_list.h"

namespace pando::config {

/// Imports an nsd.conf.
class NsdImport {
 public:
  NsdImport(ImportFiles& files, ImportedConfiguration& out, ImportReport& report)
      : files_(files), out_(out), report_(report) {}

  /// An error is one line with the file and line of a fault in the syntax.
  Status run(const ImportText& text);

 private:
  struct Zone;
  /// An address with its key, or with BLOCKED.
  struct Rule {
    bool blocked = false;
    MatchRules matches;
  };
  void take_server(const SettingSection& section);
  bool take_server_setting(const LineSetting& setting);
  bool take_answer_setting(const LineSetting& setting);
  void take_dnstap(const SettingSection& section);
  /// Patterns become templates, for zones that are added later.
  void take_patterns(const std::vector<SettingSection>& sections);
  void take_zone(const SettingSection& section);
  /// Zones of `nsd-control addzone`.
  Status take_zone_list(const ImportText& config);
  void take_listed(const SourceLine& at, std::string_view line);
  void report_unused_patterns();
  /// Options from the rules, when all settings have come.
  static void finish_rules_of(Zone& zone);
  void put_zone(const SourceLine& at, Zone& zone);
  void put_catalog(const SourceLine& at, Zone& zone);
  /// The zone's settings with those of its patterns in their places. `title` is for the report.
  void expand(const SettingSection& section, const std::string& title, int depth, Zone& zone);
  void take_zone_setting(const LineSetting& setting, const std::string& title, Zone& zone);
  void add_remote(const LineSetting& setting, std::size_t first, std::vector<std::string>& names);
  static zone::Acl acl_of(const std::vector<Rule>& list);
  Rule rule_of(const LineSetting& setting);

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  std::map<std::string, SettingSection, std::less<>> patterns_;
  std::map<std::string, std::string, std::less<>> templates_;  ///< names of ours, by pattern
  std::set<std::string, std::less<>> used_patterns_;           ///< some zone includes them
  std::string folder_ = "/etc/nsd";
  std::string nsid_;
  std::optional<LineSetting> zone_list_;
  std::size_t expanded_ = 0;
};

}  // namespace pando::config
