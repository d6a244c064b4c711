#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/result.h"

/// Open-file-description locks: owned by the descriptor's open file, not by the process. The kernel
/// drops a lock when the last descriptor of that file closes, however the process ends.
namespace pando::shm {

/// Far beyond any data, so that locks never meet I/O.
inline constexpr off_t kSlotLockBase = off_t{1} << 62;    ///< + slot number: "slot is alive"
inline constexpr off_t kManagerLock = kSlotLockBase - 1;  ///< exclusive: "the one writer"

enum class LockKind { kShared, kExclusive };

/// True when this descriptor now has the lock on the byte `at`; false when another holds it.
Result<bool> try_lock(int fd, LockKind kind, off_t at);
void unlock(int fd, off_t at) noexcept;
/// The first byte in [at, at + length) on which another process holds any lock. Reports byte `at`
/// when the probe itself fails: an unknown state must not free a living reader's memory.
[[nodiscard]] std::optional<off_t> find_lock(int fd, off_t at, off_t length) noexcept;

}  // namespace pando::shm
