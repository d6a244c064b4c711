#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

/// A worker may write its slot file, so a hijacked worker can also truncate it. The manager's next
/// access to the page would then be SIGBUS and end the manager. With the guard installed, an empty
/// page replaces the lost one. SlotTable::intact() is false then, and while the process lives the
/// slot counts as holding every version.
namespace pando::shm {

/// Installs the SIGBUS handler. Faults at other addresses go to the previous handler.
Status install_slot_guard();

/// Registers pages with the guard for as long as it lives.
class GuardedPages {
 public:
  GuardedPages() = default;
  GuardedPages(void* pages, std::size_t bytes) noexcept;
  GuardedPages(GuardedPages&& other) noexcept;
  GuardedPages& operator=(GuardedPages&& other) noexcept;
  ~GuardedPages();

 private:
  std::size_t place_ = SIZE_MAX;  // in the guard's list; SIZE_MAX = not in it
};

}  // namespace pando::shm
