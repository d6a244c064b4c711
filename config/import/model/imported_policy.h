#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "config/import/model/imported.h"

/// How other servers sign zones, and the policies that come of it here. Importers read their own
/// statements; everything that decides what this server can do stands here.
namespace pando::config {

/// The way in which another server signs a zone. A time that it does not tell has our default.
struct ForeignSigning {
  std::string server;            ///< "BIND", for the report
  std::string how;               ///< its statement, for the report
  std::string policy_name;       ///< wanted name of our policy
  std::string algorithm{};       ///< name or number; empty: our default
  std::string obstacle{};        ///< reason against signing here; empty: none
  std::string rolls{};           ///< statement by which keys are rolled; empty: they are not
  Nsec3Use nsec3 = Nsec3Use::kOff;  ///< whatever its iterations and salt are
  std::optional<std::chrono::seconds> validity{};
  std::optional<std::chrono::seconds> refresh{};
  std::optional<std::chrono::seconds> propagation{};
  std::optional<std::chrono::seconds> parent_ds_ttl{};
  bool cds = true;
  std::string key_import{};  ///< command that gives the manager the zone's keys
};

/// Gives the zone the policy of this signing, with `make-keys: false`, and reports what changes.
/// False: it cannot be signed here, and is left out, with the reason in the report.
[[nodiscard]] bool take_signing(const ForeignSigning& signing, const SourceLine& at,
                                std::string_view title, ImportedConfiguration& out,
                                ImportReport& report, ImportedZone& zone);

/// Whether a zone with this signing can be signed here.
[[nodiscard]] bool is_possible(const ForeignSigning& signing);

/// A time as other servers write it: seconds, `1w2d3h4m5s`, `14D`, or ISO 8601's form, such as
/// `P1Y2M3W4DT5H6M7S`. nullopt for other texts, and above ten years.
[[nodiscard]] std::optional<std::chrono::seconds> foreign_time(std::string_view text);

/// A word for a shell: in quotation marks where it has anything but plain characters. Empty for
/// text with control characters, because it is shown on a terminal.
[[nodiscard]] std::string shell_word(std::string_view text);

/// The number of a signing algorithm, of which BIND, Knot and PowerDNS have the same names in other
/// spellings (`ecdsa256`, `rsasha256`). 0: none that signs here.
[[nodiscard]] std::uint8_t signing_algorithm(std::string_view name);

}  // namespace pando::config
