#include "manager/secondary/primary_shares.h"

#include <utility>

namespace pando::manager {

void PrimaryShares::set_limits(const Limits& limits) {
  limits_ = limits;
  std::erase_if(
      states_, [](const auto& one) { return one.second.running == 0 && one.second.queue.empty(); });
  for (auto& primary : states_) offer(primary);
}

/// Attempts beyond kMaxWithoutPlace count as if they had places.
bool PrimaryShares::has_room() const noexcept {
  const std::size_t without = without_place();
  const std::size_t surplus = without > kMaxWithoutPlace ? without - kMaxWithoutPlace : 0;
  return placed_ + surplus < limits_.places;
}

bool PrimaryShares::may_begin(const State& state, Time now) const noexcept {
  if (limits_.places == 0 || state.running >= limits_.per_primary) return false;
  if (state.answers) return has_room();
  if (state.is_called) return has_room() || without_place() < kMaxWithoutPlace;
  if (state.running >= kMaxProbes || now < state.probe_at) return false;
  if (state.silence.empty()) return without_place() < kMaxWithoutPlace;
  return without_place() < (state.running == 0 ? kMaxFirstProbes : kMaxFirstProbes / 2);
}

bool PrimaryShares::may_begin(const Endpoint& primary, Time now) const {
  static const State kUnknown{};
  const auto found = states_.find(primary);
  const State& state = found == states_.end() ? kUnknown : found->second;
  return may_begin(state, now);
}

PrimaryShares::SharePtr PrimaryShares::begin(const Endpoint& primary, Time now) {
  State& state = states_[primary];
  auto share = std::make_shared<Share>();
  share->primary = primary;
  share->begun = share->judged = now;
  share->has_place = has_room();
  if (share->has_place) ++placed_;
  ++state.running;
  state.is_called = false;
  state.probe_at = now + kProbePause;
  share->at = running_.insert(running_.end(), share);
  return share;
}

void PrimaryShares::end(const SharePtr& share, const std::string& silence, Time now) {
  const auto found = states_.find(share->primary);
  State& state = found->second;
  --state.running;
  if (share->has_place) --placed_;
  running_.erase(share->at);
  if (share->progress.octets > share->heard) {
    heard(*found, now);
  } else if (!silence.empty() && state.heard_at <= share->begun) {
    state.answers = false;
    if (std::exchange(state.silence, silence).empty()) {
      state.released = state.queue.size();
      if (state.released > 0) released_.push_back(share->primary);
      on_change_(share->primary, silence);
    }
  }
  offer(*found);
}

void PrimaryShares::call(const Endpoint& primary) {
  const auto found = states_.find(primary);
  if (found == states_.end()) return;
  if (!std::exchange(found->second.is_called, true)) offer(*found, true);
}

/// Octets of an answer have come.
void PrimaryShares::heard(States::value_type& primary, Time now) {
  State& state = primary.second;
  state.heard_at = now;
  state.released = 0;
  state.answers = true;
  if (!std::exchange(state.silence, {}).empty()) on_change_(primary.first, {});
  offer(primary);
}

/// True if the attempt has received nothing since it was last rated.
bool PrimaryShares::judge(Share& share, Time now) {
  const std::uint64_t octets = share.progress.octets.load(std::memory_order_relaxed);
  const bool waits = share.progress.waits.load(std::memory_order_relaxed);
  if (octets > share.heard) heard(*states_.find(share.primary), now);
  share.heard = octets;
  if (now < share.judged + kJudgedAfter) return false;
  const std::uint64_t received = octets - share.counted;
  share.counted = octets;
  share.judged = now;
  const bool needs_place = !waits || received >= kLeastOctets;
  if (needs_place && !share.has_place) ++placed_;
  if (!needs_place && share.has_place) --placed_;
  share.has_place = needs_place;
  return waits && received == 0;
}

void PrimaryShares::tick(Time now) {
  std::list<SharePtr> silent;
  for (const SharePtr& share : running_)
    if (judge(*share, now)) silent.push_back(share);
  for (const SharePtr& share : silent) {
    State& state = states_.find(share->primary)->second;
    if (state.heard_at + kJudgedAfter <= now) state.answers = false;
  }
  for (auto& primary : states_) offer(primary);
}

bool PrimaryShares::is_away(const Endpoint& primary) const {
  const auto found = states_.find(primary);
  return found != states_.end() && !found->second.silence.empty();
}

std::string PrimaryShares::silence(const Endpoint& primary) const {
  const auto found = states_.find(primary);
  return found == states_.end() ? std::string() : found->second.silence;
}

bool PrimaryShares::is_silent(const Share& share, Time now) const {
  if (share.progress.octets.load(std::memory_order_relaxed) > 0) return false;
  return is_away(share.primary) || now >= share.begun + kJudgedAfter;
}

void PrimaryShares::wait(const Endpoint& primary, const dns::Name& zone, bool first) {
  auto& state = *states_.try_emplace(primary).first;
  auto& queue = state.second.queue;
  queue.insert(first ? queue.begin() : queue.end(), zone);
  ++waiting_;
  offer(state);
}

std::list<Endpoint>& PrimaryShares::list_of(const State& state) noexcept {
  if (state.answers) return ready_;
  return state.silence.empty() || state.is_called ? unproven_ : away_;
}

/// Gives the primary its turn if zones wait for it, in the list of its present state. `first`:
/// before the others.
void PrimaryShares::offer(States::value_type& primary, bool first) {
  State& state = primary.second;
  std::list<Endpoint>& list = list_of(state);
  if (state.queue.empty() || (state.list == &list && !first)) return;
  list.insert(first ? list.begin() : list.end(), primary.first);
  state.list = &list;
}

PrimaryShares::Waiting PrimaryShares::take(States::value_type& primary) {
  auto& queue = primary.second.queue;
  Waiting waiting{primary.first, queue.front()};
  queue.pop_front();
  --waiting_;
  return waiting;
}

std::optional<PrimaryShares::Waiting> PrimaryShares::next(Time now) {
  while (!released_.empty()) {
    const auto found = states_.find(released_.front());
    if (found != states_.end() && found->second.released > 0 && !found->second.queue.empty()) {
      --found->second.released;
      return take(*found);
    }
    released_.pop_front();
  }
  for (auto* list : {&unproven_, &away_, &ready_})
    if (auto waiting = next_of(*list, now)) return waiting;
  return std::nullopt;
}

/// A list whose limit is reached keeps its order, so that all of its primaries have their turns.
bool PrimaryShares::is_full(const std::list<Endpoint>& list) const noexcept {
  if (&list == &ready_) return !has_room();
  return &list == &away_ && without_place() >= kMaxFirstProbes;
}

/// A primary without room leaves the list. The end of an attempt or a tick offers it again.
std::optional<PrimaryShares::Waiting> PrimaryShares::next_of(std::list<Endpoint>& list, Time now) {
  while (!list.empty() && !is_full(list)) {
    const auto found = states_.find(list.front());
    list.pop_front();
    if (found == states_.end() || found->second.list != &list) continue;
    found->second.list = nullptr;
    if (found->second.queue.empty() || !may_begin(found->second, now)) continue;
    Waiting waiting = take(*found);
    offer(*found);
    return waiting;
  }
  return std::nullopt;
}

}  // namespace pando::manager
