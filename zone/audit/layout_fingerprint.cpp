#include "dns/rdata/rdata.h"
#include "zone/draft/draft.h"
#include "zone/history/history.h"
#include "zone/record/shared_sets.h"
#include "zone/trie/zone_layout.h"

// A separate file, so that the upgrade tests can build the programs with another layout
// (tests/CMakeLists.txt) without compiling any other file twice.

#ifndef PANDO_LAYOUT_RAISED_BY
#define PANDO_LAYOUT_RAISED_BY 0
#endif

namespace pando::zone {

namespace {

std::uint64_t fold(std::uint64_t seed, std::uint64_t value) {
  return (seed ^ value) * 0x9E3779B97F4A7C15U;
}

}  // namespace

std::uint64_t layout_fingerprint() noexcept {
  std::uint64_t print = kFormatVersion + PANDO_LAYOUT_RAISED_BY;
  for (const std::size_t size :
       {sizeof(Branch), sizeof(RecordHeader), sizeof(ZoneEntry), sizeof(RootData),
        sizeof(SnapshotEntry), sizeof(SettingsEntry), sizeof(DiscardedStack), std::size_t{kSymbols},
        kInlineDataBytes, kSharedPageBytes, kHistoryPieceBytes, shm::kUnit})
    print = fold(print, size);
  // The store has no lengths for these types; a build with other types must not read its RDATA.
  for (unsigned type = 0; type <= 0xFFFF; ++type)
    if (const std::size_t length = dns::fixed_rdata_length(static_cast<dns::RRType>(type)))
      print = fold(fold(print, type), length);
  return print;
}

}  // namespace pando::zone
