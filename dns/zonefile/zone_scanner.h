#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "dns/name.h"
#include "dns/types.h"

namespace pando::dns {

/// One record of a zone file. The views are valid during the callback only.
struct ScannedRecord {
  NameView owner;
  RRType type;
  Ttl ttl;
  ByteView rdata;  ///< uncompressed wire format, checked
};

struct ScanOptions {
  Name origin;                    ///< $ORIGIN at the start: the zone's name
  bool allow_include = true;      ///< $INCLUDE (relative to the including file's folder)
  std::uint32_t max_errors = 20;  ///< the scan continues after errors up to this number
  std::uint32_t max_include_depth = 16;
  /// Most files that one scan may include in all. Depth alone does not bound the work: sixteen
  /// files that each include the next ten times are 10^16 inclusions.
  std::uint32_t max_included = 100'000;
  std::uint64_t max_generated = 16'777'216;  ///< most records of one $GENERATE
  std::size_t window_octets = 256 * 1024;    ///< text in memory at once; grows for long records
  std::atomic<std::uint64_t>* bytes_read = nullptr;  ///< progress, updated during the scan
};

/// Result of scanning a file. Errors and warnings are `file:line: reason`, one line each, with the
/// line of the record's first word. A file that cannot be opened gives `file: reason`.
struct ScanReport {
  std::uint64_t records = 0;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;  ///< at most 100
  /// Hash of the file's octets (base/content_hash.h) and of its included files. 0: some octets were
  /// not read, or the text was not a file.
  std::uint64_t content_hash = 0;
  bool has_included = false;  ///< the records depend on other files, too
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Called once a record; a returned error becomes a `file:line:` error of the report.
using RecordSink = std::function<Status(const ScannedRecord&)>;

/// Reads a zone file (RFC 1035 §5, RFC 2308 §4 $TTL, RFC 3597; $GENERATE as in BIND). Records whose
/// class is not IN are errors. Owner names outside the origin are passed on: the caller decides.
/// `$INCLUDE` of a directory, a device or a file being read is an error. As in BIND, an included
/// file starts with the last owner, whereas origin and last owner are restored after it. A $TTL of
/// the included file stays in force.
ScanReport scan_zone_file(const std::string& path, const ScanOptions& options,
                          const RecordSink& sink);

/// Scans text in memory; `label` replaces the file name in messages.
ScanReport scan_zone_text(std::string_view text, std::string_view label, const ScanOptions& options,
                          const RecordSink& sink);

/// State that a place in a zone file inherits from the text before it.
struct ScanState {
  Name origin;
  std::optional<Name> owner;       ///< last stated one, for records that begin with a blank
  std::optional<Ttl> default_ttl;  ///< from $TTL (RFC 2308 §4) or the SOA's MINIMUM
  std::optional<Ttl> last_ttl;     ///< last stated one (RFC 1035 §5.1), used without default_ttl
  std::uint64_t line = 1;
  /// Directive after the last stated owner, a literal: a blank owner there gets a warning.
  std::string_view directive_behind_owner;
};

/// Scans a stretch of a zone file that starts and ends at record borders. `state` enters with the
/// inheritance from the text before and leaves with that for the text behind (options.origin is not
/// used). For loading a file in parts.
ScanReport scan_zone_range(std::string_view text, std::string_view label,
                           const ScanOptions& options, ScanState& state, const RecordSink& sink);

}  // namespace pando::dns
