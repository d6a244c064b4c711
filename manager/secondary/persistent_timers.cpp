#include "manager/secondary/persistent_timers.h"

namespace pando::manager {

namespace {

/// Retry interval in seconds of a zone without data; constant, with no backoff.
constexpr std::uint64_t kRetryWithoutData = 60;

SoaTimers timers_of(const zone::ZoneView& zone) {
  return read_timers(zone && zone.loaded() ? zone.soa().first_rdata() : ByteView{});
}

}  // namespace

zone::ZoneView PersistentTimers::view_of(const dns::Name& zone) const {
  return committer_.current().zone_at(zone);
}

std::uint64_t PersistentTimers::jittered(std::uint64_t seconds) {
  // Up to a tenth earlier, so that zones that were loaded together do not stay in step.
  return seconds - (seconds >= 10 ? random_() % (seconds / 10) : 0);
}

std::uint64_t PersistentTimers::first_refresh(const dns::Name& zone, std::uint64_t now) {
  const zone::ZoneView view = view_of(zone);
  auto* side = view && view.loaded() ? store_.side(view.side_index()) : nullptr;
  if (side == nullptr) return now;
  const SoaTimers timers = timers_of(view);
  side->expires_at.store(
      believed_expiry(side->expires_at.load(), now, time_to_keep(timers, range_)));
  return believed_refresh(side->next_refresh.load(), now, within(range_, timers.refresh));
}

void PersistentTimers::clock_went_back(const dns::Name& zone, std::uint64_t due,
                                       std::uint64_t now) {
  const zone::ZoneView view = view_of(zone);
  auto* side = view && view.loaded() ? store_.side(view.side_index()) : nullptr;
  if (side == nullptr) return;
  side->next_refresh.store(due);
  side->expires_at.store(
      believed_expiry(side->expires_at.load(), now, time_to_keep(timers_of(view), range_)));
}

void PersistentTimers::confirm(const dns::Name& zone, std::optional<std::uint32_t> stated,
                               bool brought, std::uint64_t now) {
  const zone::ZoneView view = view_of(zone);
  auto* side = view ? store_.side(view.side_index()) : nullptr;
  if (side == nullptr) return;
  const std::uint64_t before = brought ? 0 : side->expires_at.load();
  side->expires_at.store(
      expiry_after_contact(before, stated, now, time_to_keep(timers_of(view), range_)));
}

std::uint64_t PersistentTimers::next_refresh(const dns::Name& zone, bool ok, std::uint64_t now) {
  const zone::ZoneView view = view_of(zone);
  const SoaTimers timers = timers_of(view);
  const bool loaded = view && view.loaded();
  std::uint64_t wait = jittered(!loaded ? within(range_, kRetryWithoutData)
                                        : within(range_, ok ? timers.refresh : timers.retry));
  if (auto* side = view ? store_.side(view.side_index()) : nullptr) {
    if (ok) side->last_ok.store(now);
    const std::uint64_t stored = side->expires_at.load();
    const std::uint64_t expires =
        loaded ? believed_expiry(stored, now, time_to_keep(timers, range_)) : stored;
    side->expires_at.store(expires);
    // A zone that would expire before its next refresh cycle gets an earlier one.
    if (ok && expires > now && expires < now + wait) wait = within(range_, (expires - now) / 2);
    side->next_refresh.store(now + wait);
  }
  return now + wait;
}

bool PersistentTimers::expired(const zone::ZoneView& zone, std::uint64_t now) const {
  const auto* side = store_.side(zone.side_index());
  const std::uint64_t at = side == nullptr ? 0 : side->expires_at.load(std::memory_order_relaxed);
  return at != 0 && at <= now;
}

PersistentTimers::Stored PersistentTimers::stored(const dns::Name& zone) const {
  const zone::ZoneView view = view_of(zone);
  const auto* side = view ? store_.side(view.side_index()) : nullptr;
  return side == nullptr ? Stored{} : Stored{side->expires_at.load(), side->last_ok.load()};
}

}  // namespace pando::manager
