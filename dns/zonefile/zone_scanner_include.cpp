#include "dns/zonefile/zone_scanner_include.h"

namespace pando::dns {

Status IncludedFiles::count(const ScanOptions& options) {
  if (!options.allow_include) return fail(Errc::kDenied, "$INCLUDE is not allowed here");
  if (depth_ >= options.max_include_depth)
    return fail(Errc::kInvalid, "$INCLUDE is nested more than {} deep", options.max_include_depth);
  if (counted_++ >= options.max_included)
    return fail(Errc::kInvalid, "more than {} files are included", options.max_included);
  return {};
}

void IncludedFiles::leave(std::uint64_t hash) {
  hashes_.add(&hash, sizeof hash);
  --depth_;
}

std::uint64_t IncludedFiles::hash_with(std::uint64_t file) const {
  if (!any() || file == 0) return file;
  ContentHash all;
  for (const std::uint64_t part : {file, hashes_.value()}) all.add(&part, sizeof part);
  return all.value();
}

}  // namespace pando::dns
