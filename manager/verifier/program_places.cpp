#include "manager/verifier/program_places.h"

#include <algorithm>

#include "base/unix_time.h"

namespace pando::manager {

namespace {

/// The work of a thread may be given up without a word to the threads that wait here.
constexpr std::chrono::milliseconds kBetweenLooks{100};

}  // namespace

bool ProgramPlaces::has_room(Clock::time_point now) const {
  const auto quick =
      std::ranges::count_if(runs_, [&](const Run& run) { return now - run.began < kSlow; });
  return static_cast<std::size_t>(quick) < kAtOnce;
}

std::optional<ProgramPlaces::Taken> ProgramPlaces::try_take(dns::NameView zone,
                                                            const std::string& program,
                                                            std::chrono::milliseconds most_time,
                                                            Clock::time_point now) {
  const std::lock_guard lock(mutex_);
  if (!has_room(now)) return std::nullopt;
  const std::uint64_t since = unix_seconds();
  const auto time = std::chrono::ceil<std::chrono::seconds>(most_time).count();
  runs_.push_front(
      {dns::Name(zone), {program, since, since + static_cast<std::uint64_t>(time)}, now});
  return runs_.begin();
}

void ProgramPlaces::leave(Taken run) {
  {
    const std::lock_guard lock(mutex_);
    runs_.erase(run);
  }
  freed_.notify_one();
}

std::unique_ptr<ProgramPlaces::Place> ProgramPlaces::wait(dns::NameView zone,
                                                          const std::string& program,
                                                          std::chrono::milliseconds most_time,
                                                          const std::function<bool()>& is_over) {
  while (!is_over()) {
    if (const auto taken = try_take(zone, program, most_time, Clock::now()))
      return std::make_unique<Place>(*this, *taken);
    std::unique_lock lock(mutex_);
    freed_.wait_for(lock, kBetweenLooks);
  }
  return nullptr;
}

std::optional<ProgramUnderWay> ProgramPlaces::find(dns::NameView zone) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::ranges::find_if(runs_, [&](const Run& run) { return dns::NameView(run.zone) == zone; });
  return found == runs_.end() ? std::nullopt : std::optional(found->shown);
}

bool ProgramPlaces::is_slow(dns::NameView zone, Clock::time_point now) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(runs_, [&](const Run& run) {
    return dns::NameView(run.zone) == zone && now - run.began >= kSlow;
  });
}

}  // namespace pando::manager
