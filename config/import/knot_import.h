#pragma once

#include <map>
#include <set>
#include <string>

#include "config/import/model/line_settings.h"
#include "config/import/model/match_list.h"

namespace pando::config {

/// Imports a knot.conf.
class KnotImport {
 public:
  KnotImport(ImportFiles& files, ImportedConfiguration& out, ImportReport& report)
      : files_(files), out_(out), report_(report) {}

  /// An error is one line with the file and line of a fault in the syntax.
  Status run(const ImportText& text);

 private:
  using Items = std::map<std::string, SettingSection, std::less<>>;

  void sort_items(const std::vector<SettingSection>& sections);
  void take_server(const SettingSection& section);
  void take_zone(const SettingSection& zone);
  /// A setting of the zone, or of its template.
  [[nodiscard]] const LineSetting* find(const SettingSection& zone, std::string_view key) const;
  /// All settings of this name, which together are a list.
  [[nodiscard]] std::vector<std::string> list_of(const SettingSection& section,
                                                 std::string_view key) const;
  [[nodiscard]] std::vector<std::string> zone_list(const SettingSection& zone,
                                                   std::string_view key) const;
  [[nodiscard]] const SettingSection* template_of(const SettingSection& zone) const;
  std::string file_of(const SettingSection& zone, const dns::Name& name);
  /// Our remotes for a remote of Knot, or for a group of them.
  std::vector<std::string> remotes_of(const SettingSection& zone, std::string_view key);
  void add_remote(const SourceLine& at, const std::string& id, std::vector<std::string>& names);
  void take_rules(const SettingSection& zone, const dns::Name& name, ZoneOptions& options);
  /// One `acl` as rules for those whom it concerns.
  MatchRules rules_of(const SettingSection& acl);
  void add_address(const SourceLine& at, const std::string& text, MatchRules& matches);
  bool limit_update(const SettingSection& acl, const dns::Name& zone, MatchRules& rules);
  void report_rest(const SettingSection& section, const std::string& title);

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  Items remotes_;
  Items groups_;
  Items acls_;
  Items templates_;
};

}  // namespace pando::config
