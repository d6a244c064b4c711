#include "shm/layout.h"

#include <xxhash.h>

namespace pando::shm {

std::uint64_t fold_layout(std::uint64_t callers) noexcept {
  const std::uint64_t facts[] = {
      kFormatVersion,    kUnit,
      kChunkBytes,       sizeof(Header),
      sizeof(RootBlock), sizeof(CountChange),
      kCountsOffset,     kSideOffset,
      kChunksOffset,     sizeof(Store::SideEntry),
      kSideGranuleBytes, sizeof(SlotPage),
      kSlotFileBytes,    sizeof(Lease),
      kLeasesPerSlot,    kCountersPerSlot,
      kMaxSlots,         offsetof(Header, publication),
      kTransferRows,     sizeof(TransferRow),
      callers,
  };
  return XXH3_64bits(facts, sizeof facts);
}

std::uint32_t root_checksum(const RootBlock& block) noexcept {
  const std::uint64_t seed = XXH3_64bits(&block, offsetof(RootBlock, checksum));
  return static_cast<std::uint32_t>(
      XXH3_64bits_withSeed(changes_of(block), block.changes * sizeof(CountChange), seed));
}

}  // namespace pando::shm
