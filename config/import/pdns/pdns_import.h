#pragma once

#include <map>
#include <string>

#include "config/import/model/line_settings.h"
#include "config/import/model/match_list.h"

namespace pando::config {

/// Imports a pdns.conf of the PowerDNS Authoritative Server. Zones come from its bind backend;
/// those in a database have to be written to files first.
class PdnsImport {
 public:
  PdnsImport(ImportFiles& files, ImportedConfiguration& out, ImportReport& report)
      : files_(files), out_(out), report_(report) {}

  /// An error is one line with the file and line of a fault in the syntax.
  Status run(const ImportText& text);

 private:
  Status read(const ImportText& text, int depth);
  void take(const LineSetting& setting);
  [[nodiscard]] const LineSetting* find(std::string_view key, std::string_view older = {}) const;
  [[nodiscard]] bool is_on(std::string_view key, std::string_view older = {}) const;
  void take_launch();
  void take_listen();
  void take_texts();
  void take_sources();
  Status take_zones();
  void finish_zones();
  zone::Acl acl_of(const LineSetting& setting);
  void report_rest();

  ImportFiles& files_;
  ImportedConfiguration& out_;
  ImportReport& report_;
  std::map<std::string, LineSetting, std::less<>> settings_;
};

}  // namespace pando::config
