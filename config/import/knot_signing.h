#pragma once

#include <map>
#include <string>

#include "config/import/model/imported_policy.h"
#include "config/import/model/line_settings.h"

namespace pando::config {

/// How Knot signs zones: its sections `policy`, `keystore` and `database`.
class KnotSigning {
 public:
  /// Takes a section of these kinds. False for others.
  bool take(const SettingSection& section);
  /// Of a zone with `dnssec-signing: on` and this `dnssec-policy`; empty: Knot's `default`. The
  /// command for its keys asks Knot's `keymgr`, as the names of key files do not tell the zone.
  [[nodiscard]] ForeignSigning of(std::string_view policy, const dns::Name& zone) const;

 private:
  [[nodiscard]] std::string key_import_of(std::string_view keystore, const dns::Name& zone) const;

  std::map<std::string, SettingSection, std::less<>> policies_;
  std::map<std::string, SettingSection, std::less<>> keystores_;
  std::string storage_ = "/var/lib/knot";
  std::string kasp_db_ = "keys";  ///< below storage_
};

}  // namespace pando::config
