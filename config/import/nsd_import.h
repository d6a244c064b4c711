#pragma once

#include <map>
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
  void take_zone(const SettingSection& section);
  /// The zone's settings with those of its patterns in their places.
  void expand(const SettingSection& section, int depth, Zone& zone);
  void take_zone_setting(const LineSetting& setting, Zone& zone);
  void add_remote(const LineSetting& setting, std::size_t first, std::vector<std::string>& names);
  static zone::Acl acl_of(const std::vector<Rule>& list);
  Rule rule_of(const LineSetting& setting);

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  std::map<std::string, SettingSection, std::less<>> patterns_;
  std::string folder_ = "/etc/nsd";
  std::size_t expanded_ = 0;
};

}  // namespace pando::config
