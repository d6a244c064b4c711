#pragma once

namespace pando::manager {

/// Compaction begins when so much of the chunks in use is garbage: then what it copies, less than
/// five times what it gives back, is worth it.
inline constexpr unsigned kGarbagePercent = 20;
/// It empties chunks of which less than so much is alive.
inline constexpr unsigned kVictimPercent = 85;

}  // namespace pando::manager
