#pragma once

#include <cstddef>

#include "base/result.h"
#include "dns/name.h"

namespace pando::zone {

class Draft;

/// Halves the change histories of zones after `cursor`, at most `zones` of them, when all histories
/// together have grown too large. Returns true when the walk reached the end (cursor is then
/// reset). At low space without pinned chunks, snapshots that need changesets or archived data are
/// lost. kFull, kCorrupt.
Result<bool> shorten_histories(Draft& draft, dns::Name& cursor, std::size_t zones);

}  // namespace pando::zone
