#pragma once

#include <map>
#include <set>
#include <string>

#include "config/import/knot_signing.h"
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
  bool take_server_setting(const LineSetting& setting);
  void take_xdp(const SettingSection& section);
  /// The modules that a template or zone has, by `module` and `global-module`.
  void take_modules(const SettingSection& section, const std::string& title);
  void take_module(const LineSetting& setting, std::string_view reference,
                   const std::string& title);
  void take_rate_limit_of(const SettingSection* module);
  void take_whitelist(const SettingSection& module);
  bool take_dnstap(const SettingSection& module);
  /// Templates of catalogs' members.
  void take_templates();
  void take_zone(const SettingSection& zone);
  /// The statement that has Knot sign the zone; empty without one.
  [[nodiscard]] std::string signing_of(const SettingSection& zone) const;
  /// Gives a zone that Knot signs its policy here; false if it is left out.
  [[nodiscard]] bool sign(const SettingSection& zone, const std::string& title,
                          ImportedZone& result);
  [[nodiscard]] std::string_view role_of(const SettingSection& zone) const;
  void take_catalog(const SettingSection& zone, const dns::Name& name, ZoneOptions options);
  void take_membership(const SettingSection& zone, const std::string& title, ZoneOptions& options);
  void take_changes(const SettingSection& zone, ZoneOptions& options);
  ZoneOptions options_of(const SettingSection& zone, const dns::Name& name);
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
  /// The rules of one `acl`, for the clients that it matches.
  MatchRules rules_of(const SettingSection& acl);
  void add_address(const SourceLine& at, const std::string& text, MatchRules& matches);
  bool limit_update(const SettingSection& acl, const dns::Name& zone, MatchRules& rules);
  void report_rest(const SettingSection& section, const std::string& title);
  void report_setting(const LineSetting& setting, const std::string& title);

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  KnotSigning signing_;
  Items remotes_;
  Items groups_;
  Items acls_;
  Items templates_;
  std::map<std::string, Items, std::less<>> modules_;               ///< by `mod-…`, then by id
  std::map<std::string, std::string, std::less<>> template_names_;  ///< ours, by Knot's
};

}  // namespace pando::config
