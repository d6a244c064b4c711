#pragma once

#include "shm/store.h"

namespace pando::shm {

/// An entry of the side table, without giving it memory: nullptr when neither the entry nor its
/// neighbours were ever set. Zones without timers, which are the majority, cost no memory there.
/// Any thread.
[[nodiscard]] const Store::SideEntry* known_side(const Window& window,
                                                 std::uint32_t index) noexcept;

}  // namespace pando::shm
