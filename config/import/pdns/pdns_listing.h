#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/import/model/import_files.h"
#include "config/import/model/imported.h"

namespace pando::config {

/// A zone file that an import makes, beside the configuration.
struct ZoneFileText {
  std::string name;  ///< relative to the configuration's folder, as the configuration has it
  std::string text;
};

/// Imports what `pdnsutil list-zone` prints, of one zone or of several in one file: `$ORIGIN .`
/// before each zone, then records of five fields with tabs between them. Lines of one name, as
/// `pdnsutil list-all-zones` prints, name zones that should be in the listing.
///
/// A zone with a bad line is not taken over, and each bad line is reported. Records of types that
/// only PowerDNS has (ALIAS, LUA) are left out and reported.
class PdnsListing {
 public:
  /// A line that begins every listing of a zone.
  static constexpr std::string_view kHeader = "$ORIGIN .";

  PdnsListing(ImportedConfiguration& out, ImportReport& report) : out_(out), report_(report) {}

  void run(const ImportText& text);
  /// One line of a listing, without its end. finish() comes after the last one.
  void take_line(const SourceLine& at, std::string_view text);
  /// Begins a zone whose name is known from elsewhere: only an SOA record of this name makes it
  /// one.
  void begin_zone(const SourceLine& at, std::string_view name);
  /// A record's line from elsewhere, which no remark can be: owner, TTL, IN, type and data with
  /// tabs between them.
  void take_row(const SourceLine& at, std::string text, std::string type);
  void finish();
  [[nodiscard]] std::vector<ZoneFileText> take_files() noexcept { return std::move(zone_files_); }

 private:
  struct Line {
    SourceLine at;
    std::string text;
    std::string type;
  };
  using Lines = std::vector<Line>;
  void take_zone();
  [[nodiscard]] Lines::const_iterator find_soa(const Lines& lines, const std::string& name);
  void put_zone(const SourceLine& at, const std::string& statement, const dns::Name& name,
                std::string text);
  [[nodiscard]] bool take_record(const Line& line, dns::NameView zone, std::string& text);
  void bad(const Line& line, std::string_view reason);
  void report_missing();

  ImportedConfiguration& out_;
  ImportReport& report_;
  Lines lines_;                                            ///< of the zone in hand
  std::string name_;                                       ///< of that zone, if it is known
  std::size_t bad_ = 0;                                    ///< bad ones among them
  std::vector<std::pair<SourceLine, std::string>> named_;  ///< zones of list-all-zones
  std::vector<dns::Name> listed_;  ///< zones that have come, taken over or not
  std::vector<ZoneFileText> zone_files_;
};

}  // namespace pando::config
