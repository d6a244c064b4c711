#pragma once

#include "shm/store.h"

namespace pando::shm {

/// An entry of the side table, without giving it memory: nullptr when nothing was ever said in it,
/// or near it. Zones without timers, which most are, cost nothing there. Any thread.
[[nodiscard]] const Store::SideEntry* known_side(const Window& window,
                                                 std::uint32_t index) noexcept;

}  // namespace pando::shm
