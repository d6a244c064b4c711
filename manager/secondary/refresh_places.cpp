#include "manager/secondary/refresh_places.h"

#include <algorithm>
#include <utility>

#include "manager/verifier/program_places.h"

namespace pando::manager {

namespace {

/// All programs share one limit, as if all were one primary.
constexpr Endpoint kPrograms{};
/// Reserves threads for files, however many programs of transfers hang.
constexpr std::uint32_t kMaxPrograms = ProgramPlaces::kThreads / 2;

}  // namespace

void RefreshPlaces::set_limits(const PrimaryShares::Limits& limits) {
  primaries_.set_limits(limits);
  const std::uint32_t programs = std::min(limits.places, kMaxPrograms);
  programs_.set_limits({programs, programs});
}

bool RefreshPlaces::all_away(const Primaries& primaries) const {
  return std::all_of(primaries.begin(), primaries.end(), [this](const Primary& primary) {
    return primaries_.is_away(primary.endpoint);
  });
}

void RefreshPlaces::begin(RefreshAttempt& attempt, Time now) {
  attempt.share = primaries_.begin(attempt.primary.endpoint, now);
}

void RefreshPlaces::begin_program(const RefreshAttemptPtr& attempt, Time now) {
  with_program_.insert(attempt);
  programs_.begin(kPrograms);
  primaries_.end(std::exchange(attempt->share, nullptr), {}, now);
}

void RefreshPlaces::end(const RefreshAttemptPtr& attempt, Time now) {
  if (with_program_.erase(attempt) > 0)
    programs_.end(kPrograms);
  else
    primaries_.end(std::exchange(attempt->share, nullptr), attempt->silence, now);
}

bool RefreshPlaces::has_program_place() const { return programs_.has_room(kPrograms); }

/// An urgent zone goes to the front, and its earlier entry stays in the queue. More entries than
/// these two would fill the memory, as anybody can send NOTIFYs in the name of a primary that does
/// not answer.
void RefreshPlaces::wait(const dns::Name& zone, Queued& queued, const Endpoint& primary,
                         bool is_urgent) {
  queued.is_waiting = true;
  std::uint32_t& entries = queued.entries[primary];
  if (entries == 0 || (entries == 1 && is_urgent && !queued.is_first)) {
    ++entries;
    primaries_.wait(primary, zone, is_urgent);
  }
  queued.is_first = is_urgent;
}

void RefreshPlaces::wait_for_program(const dns::Name& zone, Queued& queued) {
  if (!std::exchange(queued.is_waiting, true)) programs_.wait(kPrograms, zone);
}

std::optional<dns::Name> RefreshPlaces::next_for_program(
    const std::function<bool(const dns::Name&)>& waits) {
  return programs_.next([&](const dns::Name& zone) { return waits(zone) ? &kPrograms : nullptr; });
}

void RefreshPlaces::taken(Queued& queued, const Endpoint& primary) {
  const auto entries = queued.entries.find(primary);
  if (entries != queued.entries.end() && --entries->second == 0) queued.entries.erase(entries);
  queued.is_first = false;
}

}  // namespace pando::manager
