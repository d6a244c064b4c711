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

void set_signatures_end(Store& store, std::uint32_t index, std::uint64_t end) {
  const Store::SideEntry* const known = known_side(store.window(), index);
  if (end == 0 && known == nullptr) return;
  if (known != nullptr && signatures_end(*known) == end) return;
  if (Store::SideEntry* const side = store.side(index))
    signatures_end(*side).store(end, std::memory_order_relaxed);
}

}  // namespace pando::shm
