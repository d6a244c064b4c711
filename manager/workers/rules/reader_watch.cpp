#include "manager/workers/rules/reader_watch.h"

#include <algorithm>

namespace pando::manager {

ReaderWatch::Verdict ReaderWatch::check(std::uint32_t slot, Clock::time_point now,
                                        std::chrono::milliseconds pin_time, std::uint64_t current) {
  // A worker that has cut its file off shows no pins any more, while it may still read.
  if (!slots_.intact(slot)) return Verdict::kDamaged;
  auto* page = slots_.page(slot);
  const bool stuck = page != nullptr && pins_[slot].overdue(*page, now, pin_time, current);
  return stuck ? Verdict::kStuck : Verdict::kHealthy;
}

ReaderWatch::Holders ReaderWatch::release_oldest(std::span<const std::uint32_t> readers,
                                                 std::uint64_t before, Clock::time_point now,
                                                 bool urgent) {
  Holders holders{UINT64_MAX};
  for (const std::uint32_t number : readers)
    if (const auto* page = slots_.page(number); page != nullptr)
      holders.version = std::min(holders.version, PinWatch::oldest(*page));
  if (holders.version >= before) return holders;
  const bool overdue = oldest_.overdue(holders.version, now, urgent);
  for (const std::uint32_t number : readers) {
    auto* page = slots_.page(number);
    if (page == nullptr || PinWatch::oldest(*page) != holders.version) continue;
    PinWatch::revoke_up_to(*page, holders.version);
    if (overdue) holders.overdue.push_back(number);
  }
  return holders;
}

}  // namespace pando::manager
