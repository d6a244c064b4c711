#include "shm/side_table.h"

#include "shm/layout.h"

namespace pando::shm {

const Store::SideEntry* known_side(const Window& window, std::uint32_t index) noexcept {
  if (index >= Store::kSideEntries) return nullptr;
  const Header& header = *reinterpret_cast<const Header*>(window.base());
  const std::uint32_t granule = index / kSidePerGranule;
  const std::uint64_t bits = header.side_backed[granule / 64].load(std::memory_order_acquire);
  if ((bits >> (granule % 64) & 1) == 0) return nullptr;
  return reinterpret_cast<const Store::SideEntry*>(window.base() + kSideOffset) + index;
}

}  // namespace pando::shm
