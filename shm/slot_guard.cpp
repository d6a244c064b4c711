#include "shm/slot_guard.h"

#include <signal.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <utility>

#include "shm/slots.h"

namespace pando::shm {

namespace {

constexpr std::uintptr_t kPage = 4096;

struct Range {
  std::atomic<std::uintptr_t> begin{0};  // 0 = unused
  std::atomic<std::uintptr_t> end{0};
};

/// Twice the slots: a table that replaces another exists beside it for a moment.
std::array<Range, 2 * std::size_t{kMaxSlots}> ranges;
struct sigaction previous;

bool is_guarded(std::uintptr_t address) noexcept {
  for (const Range& range : ranges) {
    const std::uintptr_t begin = range.begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < range.end.load(std::memory_order_relaxed))
      return true;
  }
  return false;
}

/// Async-signal-safe: atomics and mmap only.
void on_bus_error(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (is_guarded(address)) {
    void* page = reinterpret_cast<void*>(address / kPage * kPage);
    if (::mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1,
               0) != MAP_FAILED)
      return;
  }
  // The faulting instruction runs again and meets the handler that was installed before this one.
  ::sigaction(SIGBUS, &previous, nullptr);
}

}  // namespace

Status install_slot_guard() {
  struct sigaction action{};
  action.sa_sigaction = on_bus_error;
  action.sa_flags = SA_SIGINFO;
  ::sigemptyset(&action.sa_mask);
  struct sigaction before{};
  if (::sigaction(SIGBUS, nullptr, &before) != 0) return fail_errno("sigaction(SIGBUS)");
  if (before.sa_sigaction == on_bus_error) return {};
  previous = before;
  if (::sigaction(SIGBUS, &action, nullptr) != 0) return fail_errno("sigaction(SIGBUS)");
  return {};
}

GuardedPages::GuardedPages(void* pages, std::size_t bytes) noexcept {
  const auto begin = reinterpret_cast<std::uintptr_t>(pages);
  for (std::size_t place = 0; place < ranges.size(); ++place) {
    std::uintptr_t unused = 0;
    // `end` of a free place is 0, so the range is empty until the second store.
    if (!ranges[place].begin.compare_exchange_strong(unused, begin)) continue;
    ranges[place].end.store(begin + bytes, std::memory_order_release);
    place_ = place;
    return;
  }
}

GuardedPages::GuardedPages(GuardedPages&& other) noexcept
    : place_(std::exchange(other.place_, SIZE_MAX)) {}

GuardedPages& GuardedPages::operator=(GuardedPages&& other) noexcept {
  std::swap(place_, other.place_);
  return *this;
}

GuardedPages::~GuardedPages() {
  if (place_ == SIZE_MAX) return;
  ranges[place_].end.store(0, std::memory_order_relaxed);
  ranges[place_].begin.store(0, std::memory_order_release);
}

}  // namespace pando::shm
