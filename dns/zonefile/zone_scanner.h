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

/// One record as it stands in a zone file. The views are valid during the callback only.
struct ScannedRecord {
  NameView owner;
  RRType type;
  Ttl ttl;
  ByteView rdata;  ///< uncompressed wire format, checked
};

struct ScanOptions {
  Name origin;                    ///< $ORIGIN at the start: the zone's name
  bool allow_include = true;      ///< $INCLUDE (relative to the including file's folder)
  std::uint32_t max_errors = 20;  ///< the scan goes on after an error to report more, up to this
  std::uint32_t max_include_depth = 16;
  /// Files that one scan may include in all. Depth alone does not bound the work: sixteen files
  /// that each include the next ten times are 10^16 inclusions.
  std::uint32_t max_included = 100'000;
  std::uint64_t max_generated = 16'777'216;  ///< records one $GENERATE may make
  std::size_t window_octets = 256 * 1024;    ///< text looked at at once; grows for long records
  std::atomic<std::uint64_t>* bytes_read = nullptr;  ///< grows meanwhile, for who shows progress
};

/// What a scan says about a file. Errors and warnings are `file:line: reason`, one line each, where
/// the line is that of the record's first word; `file: reason` when the file cannot be opened.
struct ScanReport {
  std::uint64_t records = 0;
  std::vector<std::string> errors;
  std::vector<std::string> warnings;  ///< at most 100
  /// Of the file's octets (base/content_hash.h) and, if it includes others, of theirs. 0: not all
  /// were read, or there was no file.
  std::uint64_t content_hash = 0;
  bool has_included = false;  ///< the records depend on other files, too
  [[nodiscard]] bool ok() const noexcept { return errors.empty(); }
};

/// Called once a record; returning an error makes it a `file:line:` error of the report.
using RecordSink = std::function<Status(const ScannedRecord&)>;

/// Reads a zone file (RFC 1035 §5, RFC 2308 §4 $TTL, RFC 3597; $GENERATE as BIND has it).
/// Records whose class is not IN are errors. Owner names outside the origin are passed on: the
/// caller decides. `$INCLUDE` of a directory, a device or a file being read is an error. As in
/// BIND, an included file starts with the last owner, whereas origin and last owner are restored
/// behind it; $TTL stays as the included file set it.
ScanReport scan_zone_file(const std::string& path, const ScanOptions& options,
                          const RecordSink& sink);

/// The same for text in memory; `label` stands for the file name in messages.
ScanReport scan_zone_text(std::string_view text, std::string_view label, const ScanOptions& options,
                          const RecordSink& sink);

/// What a place in a zone file inherits from the text before it.
struct ScanState {
  Name origin;
  std::optional<Name> owner;       ///< last stated one, for records that begin with a blank
  std::optional<Ttl> default_ttl;  ///< from $TTL (RFC 2308 §4) or the SOA's MINIMUM
  std::optional<Ttl> last_ttl;     ///< last stated one (RFC 1035 §5.1), used without default_ttl
  std::uint64_t line = 1;
};

/// Scans a stretch of a zone file that starts and ends at record borders, and leaves in `state`
/// what the text behind it inherits (options.origin is not used). For loading a file in parts.
ScanReport scan_zone_range(std::string_view text, std::string_view label,
                           const ScanOptions& options, ScanState& state, const RecordSink& sink);

}  // namespace pando::dns
