#pragma once

#include <cstddef>
#include <cstdint>

#include "base/result.h"

/// A worker may write its slot file, so a hijacked one can also cut it off; the manager's next look
/// at the page would then be SIGBUS and end the manager. With the guard installed, the page is
/// replaced by an empty one: the slot then shows no pin (which harms that worker only) and
/// SlotTable::intact() is false.
namespace pando::shm {

/// Installs the SIGBUS handler. Faults elsewhere go to whatever handled them before.
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
