#pragma once

#include <cstdint>

#include "base/content_hash.h"
#include "base/result.h"
#include "dns/zonefile/zone_scanner.h"

namespace pando::dns {

/// The files that one scan includes: their number and depth, which ScanOptions bounds, and the hash
/// of their content.
class IncludedFiles {
 public:
  /// Counts an $INCLUDE in the current file; kDenied or kInvalid when `options` allow none there.
  Status count(const ScanOptions& options);
  /// The text of an included file begins.
  void enter() noexcept { ++depth_; }
  /// That text ends; `hash` is the hash of the file's octets.
  void leave(std::uint64_t hash);

  [[nodiscard]] bool any() const noexcept { return counted_ != 0; }
  /// Hash of all text: `file`, the hash of the scanned file's own octets, and the hashes of the
  /// included files, in the order of their ends. 0 when `file` is 0.
  [[nodiscard]] std::uint64_t hash_with(std::uint64_t file) const;

 private:
  std::uint32_t depth_ = 0;
  std::uint32_t counted_ = 0;
  ContentHash hashes_;
};

}  // namespace pando::dns
