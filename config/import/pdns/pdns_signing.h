#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/import/model/imported_policy.h"
#include "config/import/pdns/pdns_listing.h"
#include "config/import/pdns/sql_dump.h"

namespace pando::config {

/// How PowerDNS signs zones: the tables `cryptokeys` and `domainmetadata` of its database.
class PdnsSigning {
 public:
  explicit PdnsSigning(ImportReport& report) : report_(report) {}

  /// A row of `cryptokeys`.
  void take_key(const SqlRow& row);
  /// A row of `domainmetadata`. False for kinds that are not about NSEC3.
  bool take_metadata(const SqlRow& row);
  /// Whether the zone of this number has an active key, so that PowerDNS signs it.
  [[nodiscard]] bool signs(std::string_view id) const;
  /// Of a zone that it signs. A key file is made for each active key.
  [[nodiscard]] ForeignSigning of(std::string_view id, const dns::Name& zone);
  /// Key files in our form, whose names are relative to the configuration's folder.
  [[nodiscard]] std::vector<ZoneFileText> take_key_files() noexcept {
    return std::move(key_files_);
  }

 private:
  struct Key {
    SourceLine at;
    std::string flags;
    std::string text;  ///< the private key
  };
  [[nodiscard]] std::string make_file(const Key& key, const dns::Name& zone,
                                      ForeignSigning& signing);

  ImportReport& report_;
  std::unordered_map<std::string, std::vector<Key>> keys_;  ///< active ones, by the zone's number
  std::unordered_map<std::string, Nsec3Use> nsec3_;
  std::vector<ZoneFileText> key_files_;
};

}  // namespace pando::config
