#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "config/import/pdns/pdns_listing.h"
#include "config/import/pdns/pdns_signing.h"
#include "config/import/pdns/sql_dump.h"

namespace pando::config {

/// Imports a dump of a database of PowerDNS (MySQL, MariaDB, PostgreSQL, SQLite): its zones become
/// zone files, or secondary zones with their primaries, and its TSIG keys become keys.
///
/// Records are read as PdnsListing reads them. Disabled ones and metadata of zones are reported.
/// Signing keys become key files.
class PdnsDatabase {
 public:
  PdnsDatabase(ImportedConfiguration& out, ImportReport& report)
      : out_(out), report_(report), listing_(out, report), signing_(report) {}

  /// An error is one line with the file and line of a fault in the syntax.
  Status run(const ImportText& text);
  [[nodiscard]] std::vector<ZoneFileText> take_files() noexcept { return listing_.take_files(); }
  /// Key files of signed zones, in our form, that go beside the configuration.
  [[nodiscard]] std::vector<ZoneFileText> take_key_files() noexcept {
    return signing_.take_key_files();
  }

 private:
  struct Record {
    SourceLine at;
    std::string line;  ///< as in a listing
    std::string type;
  };
  /// A line of the report that waits until the names of all zones are known.
  struct Remark {
    SourceLine at;
    std::string id;  ///< the zone's number
    std::string text;
    ImportReason reason;
  };
  struct Zone {
    SourceLine at;
    std::string id;           ///< the database's number
    std::string catalog;      ///< the catalog of which the zone is a member
    std::string name;         ///< without a final dot; empty: the root
    bool is_known = false;    ///< the table domains has it
    bool has_rivals = false;  ///< other zones have its number, so no record is surely its own
    std::string kind;         ///< "native", "slave", …
    std::string primaries;    ///< as PowerDNS has them
    std::vector<Record> records;
  };
  void take(std::string_view table, const SqlRow& row);
  void take_zone(const SqlRow& row);
  void take_record(const SqlRow& row);
  [[nodiscard]] std::string rdata_of(const SqlRow& row, std::string_view type);
  [[nodiscard]] std::string soa_rdata(const SqlRow& row);
  void put_zone(const Zone& zone);
  void take_metadata(const SqlRow& row);
  void report_remarks();
  void put_secondary(const Zone& zone);
  void put_catalog(const Zone& zone);
  void join_catalogs();
  void sign_zones();
  Zone& zone_of(std::string_view id);
  [[nodiscard]] std::string_view name_of(std::string_view id) const;

  ImportedConfiguration& out_;
  ImportReport& report_;
  PdnsListing listing_;
  std::vector<Zone> zones_;                              ///< in the order of the dump
  std::unordered_map<std::string, std::size_t> places_;  ///< by the database's number
  std::vector<Remark> remarks_;
  PdnsSigning signing_;
  std::unordered_set<std::string> presigned_;  ///< that have signatures among their records
};

}  // namespace pando::config
