#pragma once

namespace pando::manager {

/// Compaction begins at this share of garbage in the chunks in use. Then the bytes copied are less
/// than five times the bytes freed.
inline constexpr unsigned kGarbagePercent = 20;
/// Compaction empties chunks with a live share below this.
inline constexpr unsigned kVictimPercent = 85;

}  // namespace pando::manager
