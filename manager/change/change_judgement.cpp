#include "manager/change/change_judgement.h"

#include <fmt/format.h>

#include <thread>
#include <utility>

#include "base/progress.h"
#include "base/unix_time.h"
#include "manager/commit/zone_diff.h"

namespace pando::manager {

namespace {

/// The faults in one line; empty = none.
std::string faults_text(const zone::Verification& found) {
  if (found.given_up) return kGivenUp;
  if (found.ok()) return {};
  if (found.fault_count == 1) return found.faults.front();
  return fmt::format("{} (and {} more)", found.faults.front(), found.fault_count - 1);
}

Verdict verify(const Judges& judges, const zone::ZoneView& before, const zone::ZoneView& after,
               std::span<const zone::Changeset> changes) {
  const std::uint64_t now = unix_seconds();
  if (judges.base_is_valid && !changes.empty())
    if (auto found = verify_changes(before, after, changes, now)) return {std::move(*found), false};
  const bool is_small = after.name_count() < kNamesForThreads;
  const unsigned threads = is_small ? 0 : std::thread::hardware_concurrency();
  return {zone::verify_zone(after, {now, threads}), true};
}

}  // namespace

Judgement judge_zone(const Judges& judges, const zone::ZoneView& before,
                     const zone::ZoneView& after, std::span<const zone::Changeset> changes) {
  Judgement judgement;
  if (judges.signatures) {
    auto verdict = std::make_shared<const Verdict>(verify(judges, before, after, changes));
    if (const std::string faults = faults_text(verdict->found); !faults.empty())
      judgement.refusal = "refused, as it is not valid: " + faults;
    judgement.signatures = std::move(verdict);
  }
  if (!judgement.refusal.empty() || !judges.program) return judgement;
  if (auto refusal = judges.program->refusal(after)) judgement.refusal = std::move(*refusal);
  return judgement;
}

Judgement judge_built(shm::Store& store, const Judges& judges, const dns::Name& apex,
                      const zone::ZoneView& before, const zone::BuiltZone& built) {
  const BuiltView view(store, apex, built);
  const auto zone = view.zone();
  if (!zone) return {{}, "refused, as it cannot be verified: " + zone.error().text};
  return judge_zone(judges, before, *zone, {});
}

}  // namespace pando::manager
